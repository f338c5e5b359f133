"""JSON values that stand for themselves (`enum`, `const`) or for anything."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hermes.grammar.bounds import Bounds
from hermes.grammar.form import EMPTY, NOTHING, Form, Text, chain, choice, shared
from hermes.grammar.numbers import ANY_NUMBER
from hermes.grammar.objects import COMMA, array, obj, pair
from hermes.grammar.strings import Strings

NUMBER = shared("number", ANY_NUMBER)


@lru_cache(maxsize=256)
def anything(strings: Strings, bounds: Bounds, depth: int | None = None) -> Form:
    """Any JSON value, nested `depth` times (by default as deep as `bounds` say)."""
    depth = bounds.free_depth if depth is None else depth
    scalars = [strings.free(0, bounds.max_string), NUMBER, Text("true"), Text("false"), Text("null")]
    inner = anything(strings, bounds, depth - 1) if depth else NOTHING
    nested = [array([], inner, 0, bounds.max_items), free_object(strings, bounds, inner)]
    return shared(f"value-{depth}", choice(*scalars, *nested))


def free_object(strings: Strings, bounds: Bounds, value: Form) -> Form:
    """An object of any keys."""
    return obj([], pair(strings.plain_key, value) if value != NOTHING else NOTHING, bounds.max_items)


def exactly(strings: Strings, value: Any) -> Form:
    """The JSON of one value, compact or spaced; nothing for what JSON cannot hold."""
    if isinstance(value, str):
        return strings.quoted(value)
    if isinstance(value, Mapping):
        pairs = [pair(strings.quoted(name), exactly(strings, each)) for name, each in value.items()]
        return chain("{", _listed(pairs), "}")
    if isinstance(value, list | tuple):
        return chain("[", _listed([exactly(strings, each) for each in value]), "]")
    if isinstance(value, float) and not math.isfinite(value):
        return NOTHING
    return Text(json.dumps(value))


def _listed(forms: list[Form]) -> Form:
    if not forms:
        return EMPTY
    return chain(forms[0], *(part for form in forms[1:] for part in (COMMA, form)))


def is_of_type(value: Any, types: frozenset[str]) -> bool:
    """Whether a value of JSON is of one of `types`."""
    if value is None:
        return "null" in types
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int | float):
        return "number" in types or ("integer" in types and value == math.floor(value))
    if isinstance(value, str):
        return "string" in types
    return ("array" if isinstance(value, list | tuple) else "object") in types


def equal(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON value: 1 is 1.0 and is not true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)
