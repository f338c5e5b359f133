"""Modules of this project in a process of their own: nothing that happened before changes what they do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from core.stages import PROJECT


def run_module(
    name: str, *arguments: str | Path, stdout: IO[bytes] | int, stderr: IO[bytes] | int
) -> subprocess.CompletedProcess[str]:
    """Run the module `name` with this interpreter, and wait; when this process is interrupted, the other one ends too.

    Args:
        arguments: what the module finds in `sys.argv`.
        stdout: where its output goes, as `subprocess.run` takes it; text where that is a pipe.
        stderr: as `stdout`.
    """
    known = os.environ.get("PYTHONPATH")
    # -P: a folder `data` or `export` of the user's is not ours.
    return subprocess.run(
        [sys.executable, "-P", "-m", name, *(str(argument) for argument in arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(PROJECT), *([known] if known else [])])},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
