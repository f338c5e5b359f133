"""`pattern` and `format`: which decoded strings they allow, as a form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hermes.grammar.form import (
    ALL,
    Chain,
    Chars,
    Form,
    Ranges,
    Repeat,
    Text,
    chain,
    choice,
    common,
    inverted,
    lengths,
    merged,
    points,
    repeat,
    without,
)
from hermes.grammar.text import WHITE_SPACE

parser: Any = re._parser  # type: ignore[attr-defined]
constants: Any = re._constants  # type: ignore[attr-defined]

DIGITS: Ranges = points("0123456789")
WORD: Ranges = merged((*DIGITS, (0x41, 0x5A), (0x61, 0x7A), (0x5F, 0x5F)))
SPACE: Ranges = points(" \t\n\r\f\v\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))
"""White space to Python and to ECMAScript."""
LINE_ENDS: Ranges = points("\n\r\u2028\u2029")
ANYTHING = repeat(Chars(ALL))

_DATE = (
    r"(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
    r"|(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
_TIME = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
_OCTET = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "uuid": r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "ipv4": rf"{_OCTET}(\.{_OCTET}){{3}}",
    "email": rf"{_ATOM}(\.{_ATOM})*@{_LABEL}(\.{_LABEL})*",
}


class UnsupportedError(ValueError):
    """A pattern that no form can follow."""


@lru_cache(maxsize=512)
def pattern(text: str) -> Form:
    """Every string in which `text` finds a match.

    Raises:
        UnsupportedError: it is no expression, or it looks around or back.
    """
    try:
        parsed = parser.parse(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnsupportedError(str(error)) from error
    # Without a flag in the text, the parser itself sets only this one.
    if parsed.state.flags & ~re.UNICODE:
        raise UnsupportedError("flags")
    return _found(list(parsed))


@lru_cache(maxsize=32)
def format_form(name: str) -> Form | None:
    """Strings of the format `name`; None where it is not known."""
    text = FORMATS.get(name)
    return None if text is None else pattern(f"^(?:{text})$")


def bounded(form: Form, low: int, high: int | None) -> Form | None:
    """The strings of `form` of `low` to `high` characters; None where that is no simple form."""
    least, most = lengths(form)
    if least >= low and (high is None or (most is not None and most <= high)):
        return form
    parts = form.parts if isinstance(form, Chain) else (form,)
    sizes = [lengths(part) for part in parts]
    varying = [index for index, (short, long) in enumerate(sizes) if short != long]
    if len(varying) != 1:
        return None
    part = parts[varying[0]]
    if not isinstance(part, Repeat) or lengths(part.item) != (1, 1):
        return None
    fixed = sum(short for short, long in sizes if short == long)
    tops = [top for top in (part.high, None if high is None else high - fixed) if top is not None]
    fitted = repeat(part.item, max(part.low, low - fixed), min(tops) if tops else None)
    return chain(*parts[: varying[0]], fitted, *parts[varying[0] + 1 :])


Items = Sequence[tuple[Any, Any]]


def _is(item: tuple[Any, Any], *places: str) -> bool:
    return str(item[0]) == "AT" and str(item[1]) in places


def _found(items: Items) -> Form:
    """Strings that hold a match of `items`; anchors may stand at either end of it."""
    if items and _anchored(items[0], 0):
        return choice(*(_found([*option, *items[1:]]) for option in _options(items[0])))
    if items and _anchored(items[-1], -1):
        return choice(*(_found([*items[:-1], *option]) for option in _options(items[-1])))
    start, end = 0, len(items)
    while start < end and _is(items[start], "AT_BEGINNING", "AT_BEGINNING_STRING"):
        start += 1
    while end > start and _is(items[end - 1], "AT_END", "AT_END_STRING"):
        end -= 1
    return chain(*([] if start else [ANYTHING]), _sequence(items[start:end]), *([] if end < len(items) else [ANYTHING]))


def _anchored(item: tuple[Any, Any], side: int) -> bool:
    """Whether an option of `item` begins (side 0) or ends (side -1) with an anchor."""
    return any(option and (str(option[side][0]) == "AT" or _anchored(option[side], side)) for option in _options(item))


def _options(item: tuple[Any, Any]) -> list[list[tuple[Any, Any]]]:
    kind, value = str(item[0]), item[1]
    if kind == "SUBPATTERN" and not value[1] and not value[2]:
        return [list(value[3])]
    return [list(option) for option in value[1]] if kind == "BRANCH" else []


def _sequence(items: Items) -> Form:
    return chain(*(_item(*item) for item in items))


def _item(kind: Any, value: Any) -> Form:
    name = str(kind)
    if name == "LITERAL":
        if 0xD800 <= value <= 0xDFFF:
            raise UnsupportedError("half of a surrogate pair")
        return Text(chr(value))
    if name == "NOT_LITERAL":
        return Chars(without(ALL, points(chr(value))))
    if name == "ANY":
        return Chars(without(ALL, LINE_ENDS))
    if name == "IN":
        return _class(value)
    if name == "BRANCH":
        return choice(*(_sequence(option) for option in value[1]))
    if name == "SUBPATTERN" and not value[1] and not value[2]:
        return _sequence(value[3])
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        low, high, item = value
        return repeat(_sequence(item), low, None if high is constants.MAXREPEAT else high)
    raise UnsupportedError(name)


def _class(members: Items) -> Form:
    negated = str(members[0][0]) == "NEGATE"
    ranges: list[tuple[int, int]] = []
    for kind, value in members[1:] if negated else members:
        if str(kind) == "LITERAL":
            ranges.append((value, value))
        elif str(kind) == "RANGE":
            ranges.append(value)
        else:
            # What is left out must be all that any engine takes for the class; what is let in, only what all do.
            ranges.extend(_category(str(value), wide=negated))
    result = inverted(ranges) if negated else merged(ranges)
    return Chars(result) if result else choice()


def _category(name: str, wide: bool) -> Ranges:
    kind = name.removeprefix("CATEGORY_").removeprefix("NOT_")
    if kind not in ("DIGIT", "WORD", "SPACE"):
        raise UnsupportedError(name)
    opposite = "NOT_" in name
    ranges = _unicode(kind) if wide != opposite else {"DIGIT": DIGITS, "WORD": WORD, "SPACE": SPACE}[kind]
    return inverted(ranges) if opposite else ranges


@lru_cache(maxsize=3)
def _unicode(kind: str) -> Ranges:
    """What Python or ECMAScript takes for the class, whichever takes more."""
    if kind == "SPACE":
        return points(WHITE_SPACE)
    code = {"DIGIT": r"\d+", "WORD": r"\w+"}[kind]
    every = "".join(map(chr, range(0x110000)))
    return merged((*common(WORD, DIGITS), *((hit.start(), hit.end() - 1) for hit in re.finditer(code, every))))
