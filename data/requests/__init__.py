"""Phrasings, by skill and split, and the skills that exist only as a listing: YAML files, read once.

`SKILL.yaml` has `train`, `validation` and `test`, each a list of patterns (`data.phrases`), or a mapping of
what is asked (a variant, such as `add` and `find`) to such lists. `catalogue.yaml` has skills that are listed
and asked for but have no instructions of their own, `chat.yaml` requests that no skill serves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from data.values import SPLITS, Split

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Listed:
    """A skill that is only listed."""

    name: str
    """Its name in the catalogue, whatever a list shows."""
    description: str
    patterns: tuple[str, ...]
    like: frozenset[str] = frozenset()
    """Skills that might serve its requests as well."""
    alias: str = ""
    """The name under which a list shows it, where that is another one."""

    @property
    def shown(self) -> str:
        """The name under which it is listed and loaded."""
        return self.alias or self.name


@cache
def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


@cache
def phrasings(skill: str, split: Split) -> dict[str, tuple[str, ...]]:
    """Patterns by variant; a skill without variants has one, named ``""``. Empty for a split without phrasings."""
    given = _read(skill).get(split, {})
    by_variant = given if isinstance(given, dict) else {"": given}
    return {variant: tuple(patterns) for variant, patterns in by_variant.items()}


@cache
def catalogue(split: Split) -> tuple[Listed, ...]:
    """The skills that are only listed; no two splits share one."""
    return tuple(
        Listed(each["name"], each["description"], tuple(each["requests"]), frozenset(each.get("like", ())))
        for each in _read("catalogue")[split]
    )


@cache
def chat(split: Split) -> tuple[str, ...]:
    """Patterns of requests that no skill serves."""
    return tuple(_read("chat")[split])


def every_pattern(split: Split) -> list[str]:
    """All patterns of `split`, of skills, catalogue and chat."""
    names = [path.stem for path in sorted(FOLDER.glob("*.yaml")) if path.stem not in ("catalogue", "chat", "forms")]
    patterns = [pattern for name in names for each in phrasings(name, split).values() for pattern in each]
    return [*patterns, *(pattern for each in catalogue(split) for pattern in each.patterns), *chat(split)]


__all__ = ["FOLDER", "SPLITS", "Listed", "catalogue", "chat", "every_pattern", "phrasings"]
