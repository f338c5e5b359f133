"""`hermes-edge export --check FILE`: is a bundle, made here or not, fit for AI Edge Gallery's Agent Skills?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.console import console, printable
from export.check_metadata import METADATA_CHECKS
from export.check_runtime import RUNTIME_CHECKS
from export.check_template import TEMPLATE_CHECKS
from export.findings import Check, Finding
from export.inspect import read_bundle

CHECKS: tuple[tuple[str, Check], ...] = (*METADATA_CHECKS, *TEMPLATE_CHECKS, *RUNTIME_CHECKS)
"""What is looked at, in the order of the report."""

Report = dict[str, list[Finding]]
"""Check's name → its findings; none where all is well."""


def check_bundle(path: Path, checks: Sequence[tuple[str, Check]] = CHECKS) -> Report:
    """Every finding about the bundle at `path`.

    Raises:
        UserError: the file is missing, or is no whole bundle.
    """
    bundle = read_bundle(path)
    return {name: list(check(bundle)) for name, check in checks}


def is_fit(report: Report) -> bool:
    """Whether there is no fault. What could not be checked is no fault, and no pass."""
    return not any(finding.severity == "fault" for findings in report.values() for finding in findings)


def check(path: Path) -> bool:
    """Print a report about the bundle at `path`; returns whether it has no fault.

    Raises:
        UserError: the file is missing, or is no whole bundle.
    """
    report = check_bundle(path)
    counts: dict[str, int] = {}
    for name, findings in report.items():
        if not findings:
            console().print(f"ok: {name}")
        for finding in findings:
            counts[finding.severity] = counts.get(finding.severity, 0) + 1
            console().print(printable(f"{name}: {finding}"))
    words = ", ".join(f"{count} × {severity}" for severity, count in sorted(counts.items())) or "nothing amiss"
    console().print(f"{path}: {words}")
    return is_fit(report)
