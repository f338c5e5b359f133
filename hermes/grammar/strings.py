"""JSON strings inside calls: what may be written between two quotes, so that no mark of a call is among it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from hermes.control import JSON_ESCAPES
from hermes.grammar.form import (
    ALL,
    EMPTY,
    Chain,
    Chars,
    Choice,
    Form,
    Ranges,
    Repeat,
    Rule,
    Text,
    alphabet,
    chain,
    choice,
    common,
    lengths,
    one_of,
    optional,
    points,
    repeat,
    shared,
    span,
    without,
)

CONTROL_TOKENS = tuple(marker for marker, _ in JSON_ESCAPES if "|" in marker)
"""Written only as the renderers write them: the raw text would be a control token."""
HEX = "0123456789abcdefABCDEF"
IN_ESCAPES = '"\\/bfnrtu' + HEX
CONTROL: Ranges = ((0, 0x1F),)
RAW: Ranges = without(ALL, (*CONTROL, *points('"\\')))
"""What JSON lets a string hold as it is."""

ESCAPE = chain(
    "\\",
    choice(
        one_of('"\\/bfnrt'),
        chain("u", one_of("0123456789abcefABCEF"), repeat(one_of(HEX), 3, 3)),
        chain("u", one_of("dD"), span("0", "7"), repeat(one_of(HEX), 2, 2)),
    ),
)
"""An escape that stands for one character by itself: no half of a surrogate pair."""

Trie: TypeAlias = "dict[str, Trie]"
"""The rest of every mark, by its next character; empty where a mark is complete."""


def writer_for(*marks: str) -> Strings:
    """The strings in which none of `marks` occurs.

    Raises:
        ValueError: JSON has no other spelling for any character of a mark.
    """
    possible = [mark for mark in dict.fromkeys(marks) if mark and min(mark) > "\x1f"]
    # Where one mark holds another, keeping out the shorter one is enough.
    return _writer(tuple(mark for mark in possible if not any(each in mark and each != mark for each in possible)))


@lru_cache(maxsize=64)
def _writer(marks: tuple[str, ...]) -> Strings:
    if marks and _simple(marks):
        return Strings(marks, marks[0][0], ())
    return Strings(marks, "", points(_barred(mark) for mark in marks))


def _simple(marks: tuple[str, ...]) -> bool:
    """Whether an unfinished mark can only be followed by another one at a character that begins every mark."""
    first = marks[0][0]
    same = all(mark[0] == first and first not in mark[1:] for mark in marks)
    return same and first not in IN_ESCAPES and not any("\\" in mark or '"' in mark for mark in marks)


def _barred(mark: str) -> str:
    for char in mark:
        if char not in IN_ESCAPES:
            return char
    raise ValueError(f"mark {mark!r}: JSON strings cannot be kept from holding it; choose one that begins with '<'")


@dataclass(frozen=True)
class Strings:
    """Writes the strings of one call syntax."""

    marks: tuple[str, ...]
    first: str
    """The character that begins every mark and is nowhere else in them; empty if there is none."""
    barred: Ranges
    """Characters that are only written escaped, where there is no such first character."""

    @cached_property
    def _raw(self) -> Ranges:
        return without(RAW, self.barred)

    def _unit(self, guarded: bool, free: bool = False) -> Form:
        return choice(Chars(without(self._raw, points(self.first)) if guarded else self._raw, free), ESCAPE)

    @cached_property
    def _trie(self) -> Trie:
        root: Trie = {}
        for mark in self.marks:
            node = root
            for char in mark[1:]:
                node = node.setdefault(char, {})
        return root

    def _unfinished(self, node: Trie) -> Form:
        """The beginning of a mark, broken off."""
        return optional(choice(*(chain(char, self._unfinished(rest)) for char, rest in node.items() if rest)))

    def _left(self, node: Trie) -> Form:
        """The beginning of a mark, and then a character that does not go on with it."""
        other = Chars(without(self._raw, points([self.first, *node])), free=True)
        return choice(other, *(chain(char, self._left(rest)) for char, rest in node.items() if rest))

    def _endless(self, low: int) -> Form:
        if not self.first or any(len(mark) == 1 for mark in self.marks):
            return repeat(self._unit(bool(self.first), free=low < 2), low)
        if low > 1:
            return chain(repeat(self._unit(True), low, low), self._endless(0))
        broken = chain(self.first, self._unfinished(self._trie))
        plain = Chars(without(self._raw, points(self.first)), free=True)
        step = choice(plain, chain(repeat(broken), choice(ESCAPE, chain(self.first, self._left(self._trie)))))
        if low == 1:
            return chain(repeat(step), choice(step, repeat(broken, 1)))
        return chain(repeat(step), repeat(broken))

    def _guarded(self, low_alphabet: Ranges, high: int | None) -> bool:
        """Whether a text of these characters, `high` at most, could hold a mark."""
        return bool(self.first) and any(
            (high is None or high >= len(mark)) and common(points(mark), low_alphabet) == points(mark)
            for mark in self.marks
        )

    @lru_cache(maxsize=256)  # noqa: B019 - writers are few and kept anyway
    def free(self, low: int = 0, high: int | None = None) -> Form:
        """Any string of `low` to `high` characters; an escape is one character."""
        if high is None:
            return shared("string", chain('"', self._endless(low), '"'))
        body = repeat(self._unit(self._guarded(RAW, high)), low, high)
        return shared(f"string-{low}-{high}", chain('"', body, '"'))

    @cached_property
    def plain_key(self) -> Form:
        """Any key that is written without escapes."""
        return shared("key", chain('"', repeat(self._key_char), '"'))

    @cached_property
    def _key_char(self) -> Chars:
        return Chars(without(self._raw, points(self.first)), free=True)

    def key_outside(self, names: Iterable[str]) -> Form:
        """Any key that is none of `names`, written without escapes."""
        return chain('"', self._outside(frozenset(names)), '"')

    def _outside(self, names: frozenset[str]) -> Form:
        if not names:
            return repeat(self._key_char)
        options: list[Form] = [] if "" in names else [EMPTY]
        begun = sorted({name[0] for name in names if name})
        for char in begun:
            if common(points(char), self._key_char.ranges):
                options.append(chain(char, self._outside(frozenset(n[1:] for n in names if n.startswith(char)))))
        # Not free: the character decides whether the name is another one, so it counts.
        options.append(chain(Chars(without(self._key_char.ranges, points(begun))), repeat(self._key_char)))
        return choice(*options)

    def quoted(self, text: str) -> Form:
        """Exactly this string, a slash with or without its escape, no mark in it."""
        parts: list[Form | str] = []
        at = 0
        while at < len(text):
            control = next((each for each in CONTROL_TOKENS if text.startswith(each, at)), "")
            if control:
                parts.append(_code(control[0]) + control[1:])
                at += len(control)
                continue
            mark = next((each for each in self.marks if self.first and text.startswith(each, at)), "")
            if mark[1:2] == "/":
                parts.append(choice(f"{self.first}\\/", chain(_code(self.first), one_of("/"))))
                at += 2
                continue
            parts.append(_code(mark[0]) if mark else self._char(text[at], guarded=False))
            at += 1
        return chain('"', *parts, '"')

    def escaped(self, written: str) -> str:
        """JSON text with every character escaped that a string may have to escape for the marks."""
        special = [self.first] if self.first else [chr(low) for low, _ in self.barred]
        for char in special:
            written = written.replace(char, _code(char))
        return written

    def _char(self, char: str, guarded: bool) -> Form:
        if char == "/":
            return choice("/", "\\/")
        if (guarded and char == self.first) or common(points(char), self.barred):
            return Text(_code(char))
        if "\ud800" <= char <= "\udfff":
            return Text(_code(char))
        return Text(json.dumps(char, ensure_ascii=False)[1:-1])

    def spelled(self, form: Form) -> Form:
        """The string whose decoded text is one of `form`."""
        return chain('"', self._spell(form, self._guarded(alphabet(form), lengths(form)[1])), '"')

    def _spell(self, form: Form, guarded: bool) -> Form:
        if isinstance(form, Text):
            return chain(*(self._char(char, guarded) for char in form.text))
        if isinstance(form, Chars):
            return self._spell_chars(form.ranges, guarded)
        if isinstance(form, Chain):
            return chain(*(self._spell(part, guarded) for part in form.parts))
        if isinstance(form, Choice):
            return choice(*(self._spell(option, guarded) for option in form.options))
        if isinstance(form, Repeat):
            return repeat(self._spell(form.item, guarded), form.low, form.high)
        return Rule(form.name, self._spell(form.body, guarded))

    def _spell_chars(self, ranges: Ranges, guarded: bool) -> Form:
        escaped = (*CONTROL, *points('"\\'), *self.barred, *(points(self.first) if guarded else ()))
        raw = without(ranges, escaped)
        special = common(ranges, (*escaped, *points("/")))
        chars = [chr(code) for low, high in special for code in range(low, high + 1)]
        spellings = ["\\/" if char == "/" else str_of(self._char(char, guarded)) for char in chars]
        short = "".join(spelling[1] for spelling in spellings if len(spelling) == 2)
        options = [Text(spelling) for spelling in spellings if len(spelling) > 2]
        return choice(
            *([Chars(raw)] if raw else []), *([chain("\\", one_of(short))] if short else []), *_grouped(options)
        )


def _grouped(codes: list[Text]) -> list[Form]:
    """Codes that differ in their last digit only become one option."""
    ends: dict[str, str] = {}
    for code in codes:
        ends[code.text[:-1]] = ends.get(code.text[:-1], "") + code.text[-1]
    return [chain(start, one_of(last)) for start, last in ends.items()]


def _code(char: str) -> str:
    return f"\\u{ord(char):04x}"


def str_of(form: Form) -> str:
    """The text of a form that is one text."""
    assert isinstance(form, Text)
    return form.text
