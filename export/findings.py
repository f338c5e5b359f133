"""What a check of a bundle found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from export.inspect import Bundle

Severity = Literal["fault", "warning", "not checked"]


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be, or that could not be looked at."""

    severity: Severity
    """`fault`: it does not work in LiteRT-LM or in AI Edge Gallery; `warning`: it does, but not everywhere or always;
    `not checked`: nobody knows, which is not a pass."""
    found: str
    mend: str = ""
    """What to do; empty where there is nothing to do."""

    def __str__(self) -> str:
        return f"{self.severity}: {self.found}" + (f"; {self.mend}" if self.mend else "")


Check: TypeAlias = Callable[[Bundle], Iterator[Finding]]
"""Looks at one side of a bundle."""
