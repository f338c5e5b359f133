"""What text that is no JSON may stand for, if it has one meaning: the repairs of lenient reading."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping

from hermes.json_text import LETS_CONTROL_STAND, UnreadableError, decode, skip_space
from hermes.record import JSON

_RAW = re.compile("[\x00-\x1f]")
_STRINGS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)


_WORDS = {"true": "True", "false": "False", "null": "None"}
_PYTHON_TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|\b(?:true|false|null)\b")


def readings(text: str) -> Iterator[tuple[list[JSON], list[str]]]:
    """What `text`, which strict reading refuses, may stand for: values, and the flags that reading them so deserves."""
    text = text.strip()
    raw = [] if _is_strict_inside(text) else ["control_chars_in_string"]
    values = _values_in(text)
    if values:
        listed = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        yield listed, [*raw, *(["multiple_in_block"] if len(listed) > 1 or listed is not values else [])]
    for candidate in (text + "}", text[:-1] if text.endswith("}") else ""):
        values = _values_in(candidate)
        if values and len(values) == 1:
            yield values, [*raw, "repaired"]
    value = _python_value(text)
    if value is not None:
        yield [value], ["python_literals"]


def _is_strict_inside(text: str) -> bool:
    """Whether no string of `text` holds a raw control character."""
    return not any(_RAW.search(each) for each in _STRINGS.findall(text))


def _values_in(text: str) -> list[JSON] | None:
    """All JSON values in `text`, which holds nothing else; raw control characters in strings may stand."""
    values, position = [], skip_space(text, 0)
    while position < len(text):
        try:
            value, position = decode(text, position, LETS_CONTROL_STAND)
        except UnreadableError:
            return None
        values.append(value)
        position = skip_space(text, position)
    return values


def _python_value(text: str) -> JSON | None:
    """The value of a Python dict display, JSON's words allowed; None if it is none.

    With a backslash in it the two languages differ on what a string means, so that it has no single meaning.
    """
    if not text.startswith("{") or "\\" in text:
        return None
    source = _PYTHON_TOKEN.sub(lambda match: _WORDS.get(match[0], match[0]), text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, mode="eval")
            value = None if _has_key_twice(tree) else ast.literal_eval(tree)
        json.dumps(value, allow_nan=False).encode()
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, Mapping) and _is_json(value) else None


def _has_key_twice(tree: ast.AST) -> bool:
    """Whether a dict display in `tree` has a key twice; Python would keep the last."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            if len(set(map(repr, keys))) != len(keys):
                return True
    return False


def _is_json(value: JSON) -> bool:
    """Whether a Python value is what reading JSON could have given: no tuples, no keys but strings."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | bool | int | float)
