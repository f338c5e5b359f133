"""Arguments of the wrong type that have one meaning: a step of its own, never part of reading or validating."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from hermes.json_text import UnreadableError, decode_whole
from hermes.record import JSON, Tool, ToolCall, dumps

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,300})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,300})(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_POSITIONAL = ("prefixItems", "patternProperties")
"""Say which schema an item or property has; where one of them stands, what is inside is left alone."""
_DEEPEST = 100


def coerce(call: ToolCall, tool: Tool) -> tuple[ToolCall, tuple[str, ...]]:
    """`call` with arguments as the types of `tool`'s schema, and what was changed, each with its JSON path.

    Changed is only what has one meaning: `"3"` for 3, 3.0 for 3, `"true"` for true, 3 for `"3"`, JSON text for the
    list or object in it, another case of an enum's value. What does not fit stays; validate afterwards.
    """
    changes: list[str] = []
    walk = _Walk(dict(tool.parameters), changes)
    arguments = walk.value(dict(call.arguments), dict(tool.parameters), "$", 0)
    return ToolCall(call.name, arguments), tuple(changes)


class _Walk:
    def __init__(self, root: Mapping[str, JSON], changes: list[str]) -> None:
        self.root = root
        self.changes = changes

    def value(self, value: JSON, schema: JSON, path: str, depth: int) -> JSON:
        """`value` as `schema` wants it; of alternatives, the one whose type it has then."""
        schema = self._resolved(schema)
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return value
        types, alternatives = self._types(schema)
        changed = _as_listed(_as_type(value, types), schema.get("enum"))
        if changed is not value:
            self.changes.append(f"{path}: {dumps(value)} read as {dumps(changed)}")
        fitting = [each for each in alternatives if _has_type(changed, each["type"])]
        if alternatives:
            return self.value(changed, fitting[0], path, depth + 1) if len(fitting) == 1 else changed
        if any(keyword in schema for keyword in _POSITIONAL):
            return changed
        if isinstance(changed, Mapping):
            properties = schema.get("properties")
            known = properties if isinstance(properties, Mapping) else {}
            others = schema.get("additionalProperties")
            return {
                key: self.value(each, known.get(key, others), f"{path}.{key}", depth + 1)
                for key, each in changed.items()
            }
        if isinstance(changed, list):
            items = schema.get("items")
            return [self.value(each, items, f"{path}[{index}]", depth + 1) for index, each in enumerate(changed)]
        return changed

    def _types(self, schema: Mapping[str, JSON]) -> tuple[JSON, list[Mapping[str, JSON]]]:
        """The types that `schema` states, itself or in alternatives that are plain types."""
        if "type" in schema:
            return schema["type"], []
        listed = schema.get("anyOf", schema.get("oneOf"))
        resolved = [self._resolved(each) for each in listed] if isinstance(listed, list) else []
        plain = [each for each in resolved if isinstance(each, Mapping) and isinstance(each.get("type"), str)]
        return ([each["type"] for each in plain], plain) if plain and len(plain) == len(resolved) else (None, [])

    def _resolved(self, schema: JSON) -> JSON:
        """The schema that `schema` refers to within the tool's own."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, Mapping) or not isinstance(reference := schema.get("$ref"), str):
                return schema
            if not re.fullmatch(r"#(/.*)?", reference):
                return None
            target: JSON = self.root
            for part in reference.removeprefix("#").split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                target = target.get(name) if isinstance(target, Mapping) else None
            schema = target
        return None


def _as_type(value: JSON, stated: JSON) -> JSON:
    """`value` as the one type that it can be read as; itself where it has a type that is allowed."""
    types = stated if isinstance(stated, list) else [stated]
    if not stated or any(_has_type(value, each) for each in types):
        return value
    readings = []
    for each in types:
        read = _READERS.get(each) if isinstance(each, str) else None
        found = read(value) if read else None
        if found is not None:
            readings.append(found[0])
    return readings[0] if len(readings) == 1 else value


def _has_type(value: JSON, kind: JSON) -> bool:
    if isinstance(value, bool):
        return bool(kind == "boolean")
    of_kind: dict[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "array": list,
        "object": dict,
        "null": type(None),
    }
    return isinstance(kind, str) and isinstance(value, of_kind.get(kind, ()))


_Reading = tuple[Any] | None


def _integer(value: JSON) -> _Reading:
    if isinstance(value, float) and value.is_integer():
        return (int(value),)
    return (int(_bare(value)),) if isinstance(value, str) and _INTEGER.fullmatch(_bare(value)) else None


def _bare(text: str) -> str:
    """Without what JSON takes for white space; Python's own idea of it is wider."""
    return text.strip(" \t\r\n")


def _number(value: JSON) -> _Reading:
    if not isinstance(value, str) or not _NUMBER.fullmatch(_bare(value)):
        return None
    if (whole := _integer(value)) is not None:
        return whole
    number = float(_bare(value))
    # Digits that a float does not hold would be lost.
    exact = math.isfinite(number) and Decimal(repr(number)) == Decimal(_bare(value))
    return (number,) if exact else None


def _boolean(value: JSON) -> _Reading:
    word = _bare(value).lower() if isinstance(value, str) else None
    return (word == "true",) if word in ("true", "false") else None


def _null(value: JSON) -> _Reading:
    return (None,) if isinstance(value, str) and _bare(value).lower() == "null" else None


def _string(value: JSON) -> _Reading:
    return (dumps(value),) if isinstance(value, bool | int | float) else None


def _inside(kind: type) -> Callable[[JSON], _Reading]:
    """Reads the list or object that stands in text."""

    def read(value: JSON) -> _Reading:
        if not isinstance(value, str):
            return None
        try:
            found = decode_whole(value)
        except UnreadableError:
            return None
        return (found,) if isinstance(found, kind) else None

    return read


_READERS: dict[str, Callable[[JSON], _Reading]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "string": _string,
    "array": _inside(list),
    "object": _inside(dict),
}


def _as_listed(value: JSON, listed: JSON) -> JSON:
    """The listed value that `value` is in another case, if there is just one."""
    if not isinstance(value, str) or not isinstance(listed, list) or value in listed:
        return value
    same = [each for each in listed if isinstance(each, str) and each.lower() == _bare(value).lower()]
    return same[0] if len(same) == 1 else value
