"""The form: a regular expression as an immutable value, from which every engine's grammar is written.

JSON nests without end and regular expressions do not, so whoever builds a form expands nesting to a bound.
Build forms with `chain`, `choice`, `repeat` and `optional`: they keep forms small and prune what is impossible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points as inclusive ranges, sorted, apart from each other."""

LAST_CODE_POINT = 0x10FFFF
ALL: Ranges = ((0, LAST_CODE_POINT),)


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of `ranges`."""

    ranges: Ranges
    free: bool = False
    """Stands in a loop that goes on with any further character, so that nobody counts how often it matched."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Each part after the other."""

    parts: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the options; no options match nothing at all."""

    options: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`item`, `low` to `high` times; without end where `high` is None."""

    item: Form
    low: int
    high: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A form with a name, written once by engines that know names. Two rules are equal only if they are the same."""

    name: str
    body: Form


Form: TypeAlias = Text | Chars | Chain | Choice | Repeat | Rule

EMPTY = Text("")
NOTHING = Choice(())


def chain(*parts: Form | str) -> Form:
    """The parts one after the other; nothing where one of them is nothing."""
    flat: list[Form] = []
    for part in parts:
        form = Text(part) if isinstance(part, str) else part
        if form == NOTHING:
            return NOTHING
        for each in form.parts if isinstance(form, Chain) else (form,):
            if isinstance(each, Text) and flat and isinstance(flat[-1], Text):
                flat[-1] = Text(flat[-1].text + each.text)
            elif each != EMPTY:
                flat.append(each)
    if not flat:
        return EMPTY
    return flat[0] if len(flat) == 1 else Chain(tuple(flat))


def choice(*options: Form | str) -> Form:
    """One of the options; impossible and repeated ones are left out."""
    flat: dict[Form, None] = {}
    for option in options:
        form = Text(option) if isinstance(option, str) else option
        flat.update(dict.fromkeys(form.options if isinstance(form, Choice) else (form,)))
    return next(iter(flat)) if len(flat) == 1 else Choice(tuple(flat))


def repeat(item: Form | str, low: int = 0, high: int | None = None) -> Form:
    """`item`, `low` to `high` times."""
    form = Text(item) if isinstance(item, str) else item
    if high is not None and high < low:
        return NOTHING
    if form == NOTHING:
        return EMPTY if low == 0 else NOTHING
    if form == EMPTY or high == 0:
        return EMPTY
    return form if (low, high) == (1, 1) else Repeat(form, low, high)


def optional(*parts: Form | str) -> Form:
    """The chain of `parts`, or nothing written."""
    return repeat(chain(*parts), 0, 1)


def shared(name: str, body: Form) -> Form:
    """`body` under a name, unless it is too small to be worth one."""
    return body if isinstance(body, Text | Chars | Rule) or body == NOTHING else Rule(name, body)


def rules_of(form: Form) -> list[Rule]:
    """Every rule that `form` refers to, each after those that it needs itself."""
    found: dict[Rule, None] = {}

    def visit(each: Form) -> None:
        if isinstance(each, Rule):
            if each not in found:
                visit(each.body)
                found[each] = None
            return
        for child in children(each):
            visit(child)

    visit(form)
    return list(found)


def children(form: Form) -> tuple[Form, ...]:
    """The forms directly inside `form`."""
    if isinstance(form, Chain):
        return form.parts
    if isinstance(form, Choice):
        return form.options
    if isinstance(form, Repeat):
        return (form.item,)
    return (form.body,) if isinstance(form, Rule) else ()


def names_for(rules: Iterable[Rule], taken: Iterable[str] = ()) -> dict[Rule, str]:
    """A name of its own for every rule, close to the one it asks for."""
    names: dict[Rule, str] = {}
    used = set(taken)
    for rule in rules:
        name, number = rule.name, 1
        while name in used:
            number += 1
            name = f"{rule.name}-{number}"
        used.add(name)
        names[rule] = name
    return names


def lengths(form: Form) -> tuple[int, int | None]:
    """How many characters `form` matches at least and at most (None: no end)."""
    if isinstance(form, Text):
        return len(form.text), len(form.text)
    if isinstance(form, Chars):
        return 1, 1
    inner = [lengths(child) for child in children(form)] or [(0, 0)]
    low, high = [each[0] for each in inner], [each[1] for each in inner]
    if isinstance(form, Repeat):
        top = None if form.high is None or high[0] is None else high[0] * form.high
        return low[0] * form.low, top
    ends = [each for each in high if each is not None]
    if isinstance(form, Chain):
        return sum(low), sum(ends) if len(ends) == len(high) else None
    return min(low), max(ends) if len(ends) == len(high) else None


def alphabet(form: Form) -> Ranges:
    """Every character that a text of `form` can hold."""
    return merged(_ranges_in(form))


def _ranges_in(form: Form) -> Iterator[tuple[int, int]]:
    if isinstance(form, Text):
        yield from ((ord(char), ord(char)) for char in form.text)
    elif isinstance(form, Chars):
        yield from form.ranges
    for child in children(form):
        yield from _ranges_in(child)


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same code points as sorted ranges with gaps between them."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def inverted(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Every code point that is not in `ranges`."""
    result: list[tuple[int, int]] = []
    start = 0
    for low, high in merged(ranges):
        if low > start:
            result.append((start, low - 1))
        start = high + 1
    if start <= LAST_CODE_POINT:
        result.append((start, LAST_CODE_POINT))
    return tuple(result)


def without(ranges: Iterable[tuple[int, int]], removed: Iterable[tuple[int, int]]) -> Ranges:
    """The code points of `ranges` that are not in `removed`."""
    return inverted((*inverted(ranges), *removed))


def common(left: Iterable[tuple[int, int]], right: Iterable[tuple[int, int]]) -> Ranges:
    """The code points that are in both."""
    return without(left, inverted(right))


def points(chars: Iterable[str]) -> Ranges:
    """The code points of `chars`."""
    return merged((ord(char), ord(char)) for char in chars)


def span(low: str, high: str) -> Chars:
    """One character from `low` to `high`."""
    return Chars(((ord(low), ord(high)),))


def one_of(chars: str) -> Form:
    """One of `chars`."""
    return Chars(points(chars)) if len(chars) > 1 else Text(chars)


DIGIT = span("0", "9")
