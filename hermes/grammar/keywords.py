"""Which JSON Schema keywords there are, and those of one type read off the schemas that all hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from hermes.grammar.numbers import Bound
from hermes.grammar.resolve import Node, Nodes, Note


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ANNOTATIONS = frozenset(
    _words(
        "$schema $id $anchor $comment $vocabulary title description default example examples deprecated "
        "readOnly writeOnly"
    )
)
STRUCTURE = frozenset(_words("$ref $defs definitions allOf anyOf oneOf type enum const nullable"))
BY_TYPE: dict[str, tuple[str, ...]] = {
    "string": _words("minLength maxLength pattern format contentEncoding contentMediaType contentSchema"),
    "number": _words("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
    "array": _words(
        "items prefixItems additionalItems minItems maxItems uniqueItems contains minContains maxContains "
        "unevaluatedItems"
    ),
    "object": _words(
        "properties required additionalProperties patternProperties propertyNames minProperties maxProperties "
        "dependencies dependentRequired dependentSchemas unevaluatedProperties"
    ),
}
"""The keywords that say something about values of one type only."""
TYPE_OF = {keyword: kind for kind, keywords in BY_TYPE.items() for keyword in keywords}
ALL_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def types_of(nodes: Nodes, note: Note) -> frozenset[str]:
    """The types that a value may have; without any `type`, those that the other keywords speak of."""
    types = ALL_TYPES
    stated = False
    for node in nodes:
        given = node.schema.get("type")
        if given is None:
            continue
        names = frozenset([given] if isinstance(given, str) else given if isinstance(given, list) else [])
        if not names or not names <= ALL_TYPES:
            note(node, "type", "ignored: it names no type of JSON")
            continue
        stated = True
        # A number may be an integer; an integer that must be a number stays one.
        types &= names | ({"integer"} if "number" in names else frozenset())
    if not stated:
        spoken = {TYPE_OF[keyword] for node in nodes for keyword in node.schema if keyword in TYPE_OF}
        types = frozenset(spoken) or types
    return types - {"integer"} if "number" in types else types


def note_unknown(nodes: Nodes, note: Note) -> None:
    """Take down every keyword that this package does not read."""
    for node in nodes:
        for keyword in node.schema:
            if keyword not in ANNOTATIONS and keyword not in STRUCTURE and keyword not in TYPE_OF:
                note(node, keyword, "ignored")


def note_ignored(nodes: Nodes, note: Note, keywords: Iterable[str], instead: str = "ignored") -> None:
    """Take down each of `keywords` that occurs."""
    for keyword in keywords:
        for node in nodes:
            if node.has(keyword):
                note(node, keyword, instead)


def counts(nodes: Nodes, note: Note, keyword: str) -> list[int]:
    """The readable values of a keyword that holds a count."""
    found = []
    for node in nodes:
        value = node.schema.get(keyword)
        if value is None:
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 and value == int(value):
            found.append(int(value))
        else:
            note(node, keyword, "ignored: it must be a count")
    return found


def size(nodes: Nodes, note: Note, what: str, bound: int | None) -> tuple[int, int | None]:
    """The least and the largest `Length` or `Items`; `bound` where nothing is said about the largest."""
    low = max(counts(nodes, note, f"min{what}"), default=0)
    high = min(counts(nodes, note, f"max{what}"), default=None)
    return low, max(bound, low) if high is None and bound is not None else high


def number_bounds(nodes: Nodes, note: Note) -> tuple[Bound | None, Bound | None]:
    """The tightest bounds of a number."""
    lows = _bounds(nodes, note, "minimum", "exclusiveMinimum")
    highs = _bounds(nodes, note, "maximum", "exclusiveMaximum")
    return (
        max(lows, key=lambda each: (each.value, each.strict), default=None),
        min(highs, key=lambda each: (each.value, not each.strict), default=None),
    )


def _bounds(nodes: Nodes, note: Note, plain: str, exclusive: str) -> list[Bound]:
    found = []
    for node in nodes:
        for keyword in (plain, exclusive):
            value = node.schema.get(keyword)
            # Once, exclusiveMinimum was a flag beside minimum.
            if value is None or (keyword == exclusive and isinstance(value, bool)):
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                note(node, keyword, "ignored: it must be a number")
                continue
            strict = keyword == exclusive or node.schema.get(exclusive) is True
            found.append(Bound(Decimal(str(value)), strict))
    return found


def names_in(node: Node, keyword: str, note: Note) -> list[str]:
    """The names that a keyword lists."""
    value = node.schema.get(keyword, [])
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return value
    # In drafts before 4 a property said of itself that it is required; it is no list then.
    note(node, keyword, "ignored: it must be a list of names")
    return []


def mapping_in(node: Node, keyword: str, note: Note) -> Mapping[str, Any]:
    """The schemas by name that a keyword holds."""
    value = node.schema.get(keyword, {})
    if isinstance(value, Mapping):
        return value
    note(node, keyword, "ignored: it must be an object of schemas")
    return {}
