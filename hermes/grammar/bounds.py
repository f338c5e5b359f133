"""The bounds that make JSON a regular language, and what a schema loses on the way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far arguments may reach where their schema sets no end."""

    depth: int = 4
    """How often a recursive `$ref` may stand inside itself."""
    free_depth: int = 2
    """How deep arrays and objects nest where the schema allows any value."""
    max_string: int | None = None
    """The length of strings, in characters."""
    max_items: int | None = None
    """The length of arrays, and the number of properties that no schema declares."""

    def __post_init__(self) -> None:
        for name in ("depth", "free_depth", "max_string", "max_items"):
            value = getattr(self, name)
            if value is not None and value < (1 if name == "depth" else 0):
                raise ValueError(f"bounds: {name} is {value}; it must be {'1' if name == 'depth' else '0'} or more")


@dataclass(frozen=True, slots=True)
class Finding:
    """A keyword that a grammar does not enforce: calls must be validated for it."""

    tool: str
    pointer: str
    """JSON Pointer to the schema that holds the keyword."""
    keyword: str
    engine: str
    """`lark`, `regex`, `gbnf`, `structural_tag`, or `all`."""
    instead: str
    """What the grammar does instead."""
