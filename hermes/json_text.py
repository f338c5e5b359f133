"""JSON text that is read strictly: as RFC 8259 has it, and narrower where a value could be read in two ways.

Refused are a key that stands twice, a number too large for a float, NaN, and half of a surrogate pair.
"""

from __future__ import annotations

import json
import re

from hermes.record import JSON, refuse_constant

DEEPEST = 200
"""Lists and objects in each other; what follows works through values recursively."""
_SPACES = ("", " ", "\t", "\r", "\n")
_SPACE = re.compile(r"[ \t\r\n]*")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{digits} is too large for a number")
    return value


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=refuse_constant)
LETS_CONTROL_STAND = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=refuse_constant, strict=False
)
"""As strict, but raw control characters may stand in strings."""
_ANY_KEYS = json.JSONDecoder(parse_float=_finite, parse_constant=refuse_constant)
"""Faster; of a key that stands twice it keeps the last."""
_KEY = re.compile(r'"([^"]*)"\s*:')
_KEY_END = re.compile(r'"\s*:')
_SHORT = 180
"""Characters of text that cannot nest deeper than `DEEPEST` and in which comparing keys is cheaper than counting."""


class UnreadableError(ValueError):
    """The text is not a JSON value, or none that can be passed on."""


def decode(text: str, start: int = 0, decoder: json.JSONDecoder = _STRICT) -> tuple[JSON, int]:
    """The JSON value that begins at `start`, after white space, and where it ends.

    A failure takes time in proportion to the whole of `text`.

    Raises:
        UnreadableError: says what is wrong.
    """
    try:
        value, end = decoder.raw_decode(text, skip_space(text, start))
    except json.JSONDecodeError as error:
        raise UnreadableError(f"{error.msg} at character {max(0, error.pos - start)}") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableError("nested too deeply" if isinstance(error, RecursionError) else str(error)) from None
    if text.count("{", start, end) + text.count("[", start, end) > DEEPEST:
        _check_depth(_keys_and_depth(value)[1])
    if text.find("\\u", start, end) != -1 and holds(value, _LONE_SURROGATE):
        raise UnreadableError("a string holds half of a surrogate pair")
    return value, end


def _check_depth(depth: int) -> None:
    if depth > DEEPEST:
        raise UnreadableError(f"nested more than {DEEPEST} levels deep")


def decode_whole(text: str) -> JSON:
    """The JSON value that `text` is.

    Raises:
        UnreadableError: says what is wrong.
    """
    if "\\" in text:
        value, end = decode(text)
    else:
        value, end = _decode_without_escapes(text)
    if end != len(text) and skip_space(text, end) != len(text):
        raise UnreadableError("more follows after the call's object")
    return value


def _decode_without_escapes(text: str) -> tuple[JSON, int]:
    """As `decode`: looking for keys that stand twice takes most of the time, so it is done where there may be some."""
    try:
        value, end = _ANY_KEYS.raw_decode(text, skip_space(text, 0))
    except (ValueError, RecursionError):
        return decode(text)
    if len(text) < _SHORT:
        keys = _KEY.findall(text)
        return (value, end) if len(set(keys)) == len(keys) else decode(text)
    keys_there, depth = _keys_and_depth(value)
    _check_depth(depth)
    return (value, end) if keys_there == len(_KEY_END.findall(text)) else decode(text)


def _keys_and_depth(value: JSON) -> tuple[int, int]:
    """How many keys all objects in `value` have together, and how many lists and objects stand in each other."""
    keys, depth, level = 0, 0, [value]
    while True:
        objects = [each for each in level if type(each) is dict]
        lists = [each for each in level if type(each) is list]
        if not objects and not lists:
            return keys, depth
        depth += 1
        keys += sum(map(len, objects))
        level = [inner for each in objects for inner in each.values()]
        level += [inner for each in lists for inner in each]


def skip_space(text: str, start: int) -> int:
    """The first position from `start` on that is no JSON white space."""
    if text[start : start + 1] not in _SPACES:
        return start
    found = _SPACE.match(text, start)
    assert found is not None
    return found.end()


def holds(value: JSON, pattern: re.Pattern[str]) -> bool:
    """Whether any string in `value`, key or not, matches `pattern`."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            if pattern.search(each):
                return True
        elif isinstance(each, dict):
            pending.extend(each)
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)
    return False
