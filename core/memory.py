"""Memory of this process: how much it took, and giving back what it no longer uses."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any


def peak_memory_gb() -> float:
    """The most memory that this process has held since it began, or since `reset_peak`, in GB."""
    import resource

    # Linux's `ru_maxrss` begins with what the process that started this one held.
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) * 1024 / 1e9, 2)
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9, 2)


def peak_memory_with_children_gb() -> float:
    """The larger of what this process and any process that it started and waited for has held, in GB."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit / 1e9
    return max(peak_memory_gb(), round(children, 2))


def reset_peak() -> None:
    """Forget the peak so far. Only Linux can: elsewhere the peak stays that of the whole process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def release_freed() -> None:
    """Give memory that was freed back to the system, where the C library is glibc; elsewhere nothing happens.

    glibc keeps freed blocks for reuse, and blocks of ever new sizes leave gaps: without this the resident
    size of a training with batches of many shapes grows by half.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
