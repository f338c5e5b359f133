"""Phrasings, by skill and split, and the skills that exist only as a listing: YAML files, read once.

`SKILL.yaml` has `train`, `validation` and `test`, each a list of patterns (`data.phrases`), or a mapping of
what is asked (a variant, such as `add` and `find`) to such lists. `catalogue.yaml` has skills that are listed
and asked for but have no instructions of their own, `chat.yaml` requests that no skill serves, `forms.yaml` other
ways in which a shipped skill could have been written (`data.forms`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from core.recipe_file import parse_yaml
from data.values import Split

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Listed:
    """A skill that is only listed."""

    name: str
    """Its name in the catalogue, whatever a list shows."""
    description: str
    patterns: tuple[str, ...]
    like: frozenset[str] = frozenset()
    """Skills that might serve its requests as well."""
    runnable: bool = False
    """Whether every request has the same slots and says nothing else that a call would need."""
    alias: str = ""
    """The name under which a list shows it, where that is another one."""

    @property
    def shown(self) -> str:
        """The name under which it is listed and loaded."""
        return self.alias or self.name


@cache
def read(name: str) -> dict[str, Any]:
    """The content of `NAME.yaml` in this folder.

    Raises:
        UserError: it is not YAML, or a key stands twice.
    """
    path = _FOLDER / f"{name}.yaml"
    content: dict[str, Any] = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    return content


@cache
def phrasings(skill: str, split: Split) -> dict[str, tuple[str, ...]]:
    """Patterns by variant; a skill without variants has one, named ``""``. Empty for a split without phrasings."""
    given = read(skill).get(split, {})
    by_variant = given if isinstance(given, dict) else {"": given}
    return {variant: tuple(patterns) for variant, patterns in by_variant.items()}


@cache
def catalogue(split: Split) -> tuple[Listed, ...]:
    """The skills that are only listed; no two splits share one."""
    return tuple(
        Listed(
            each["name"],
            each["description"],
            tuple(each["requests"]),
            frozenset(each.get("like", ())),
            each.get("run", False),
        )
        for each in read("catalogue")[split]
    )


@cache
def chat(split: Split) -> tuple[str, ...]:
    """Patterns of requests that no skill serves."""
    return tuple(read("chat")[split])
