"""Regular expressions, in the syntax that Rust's `regex` and Python's `re` share.

A runtime may match the tokenizer's spelling of tokens in place of their text, so the expression is written in
one of three alphabets. A character whose spelling differs from its text is never the only way on: a runtime that
finds text forced would tokenise the spelling as if it were text. Beside every such character stands one that no
token spells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

from hermes.grammar.form import (
    LAST_CODE_POINT,
    Chain,
    Chars,
    Choice,
    Form,
    Ranges,
    Repeat,
    Rule,
    Text,
    common,
    inverted,
    merged,
    points,
    without,
)

Alphabet = Literal["text", "byte_level", "sentencepiece"]
MAX_LENGTH = 4_000_000
"""Characters beyond which an expression is refused: names are written out, so sizes can multiply."""

NON_ASCII: Ranges = ((0x80, LAST_CODE_POINT),)
SURROGATES: Ranges = ((0xD800, 0xDFFF),)
UNSPELLED = "\x01"
"""What no token of a byte-level tokenizer spells: control characters are spelled as others."""
SENTENCEPIECE_SPACE = "\u2581"


class Spelling(Protocol):
    """How an alphabet writes text."""

    def text(self, text: str) -> str:
        """An expression for exactly `text`, a sequence."""
        ...

    def chars(self, chars: Chars) -> str:
        """An expression for one character, to which a repetition mark can be added."""
        ...


def write(form: Form, alphabet: Alphabet = "text") -> str:
    """`form` as a regular expression, to be matched against a whole reply.

    Raises:
        ValueError: it would be longer than `MAX_LENGTH`.
    """
    return Writer(SPELLINGS[alphabet]).write(form)


class Writer:
    """Writes forms in one alphabet; a rule is written once and copied."""

    def __init__(self, spelling: Spelling) -> None:
        self.spelling = spelling
        self.rules: dict[Rule, str] = {}

    def write(self, form: Form) -> str:
        """`form`, safe between other parts of a sequence."""
        if isinstance(form, Text):
            return self.spelling.text(form.text)
        if isinstance(form, Chars):
            return self.spelling.chars(form)
        if isinstance(form, Chain):
            return _checked("".join(self.write(part) for part in form.parts))
        if isinstance(form, Repeat):
            return self.atom(form.item) + times(form.low, form.high)
        if isinstance(form, Choice):
            if not form.options:
                raise ValueError("a form that matches nothing has no regular expression")
            return _checked("(?:" + "|".join(self.write(option) for option in form.options) + ")")
        if form not in self.rules:
            self.rules[form] = self.write(form.body)
        return self.rules[form]

    def atom(self, form: Form) -> str:
        """`form` so that a repetition mark applies to all of it."""
        while isinstance(form, Rule):
            form = form.body
        written = self.write(form)
        return written if isinstance(form, Choice | Chars) or len(written) == 1 else f"(?:{written})"


def _checked(written: str) -> str:
    if len(written) > MAX_LENGTH:
        raise ValueError(
            f"the regular expression is longer than {MAX_LENGTH} characters; use the Lark grammar, "
            "smaller bounds or simpler schemas"
        )
    return written


def times(low: int, high: int | None) -> str:
    """The mark of a repetition."""
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
    if short:
        return short
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def literal(char: str, special: str) -> str:
    """A character, escaped where it is one of `special` or would not be seen."""
    code = ord(char)
    if char in special:
        return "\\" + char
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    if named:
        return named
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if char.isprintable():
        return char
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


IN_TEXT, IN_CLASS = "\\.+*?()|[]{}^$#&-~", "\\[]^-&~|"


def class_of(ranges: Ranges) -> str:
    """A character class."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return literal(chr(ranges[0][0]), IN_TEXT)
    negated = bool(ranges) and ranges[-1][1] == LAST_CODE_POINT
    shown = inverted((*ranges, *SURROGATES)) if negated else ranges
    if negated and not shown:
        return "[\\s\\S]"
    inside = ""
    for low, high in shown:
        inside += literal(chr(low), IN_CLASS)
        if high > low:
            inside += ("-" if high > low + 1 else "") + literal(chr(high), IN_CLASS)
    return f"[{'^' if negated else ''}{inside}]"


class PlainText:
    """Text as it is."""

    def text(self, text: str) -> str:
        """An expression for exactly `text`."""
        return "".join(literal(char, IN_TEXT) for char in text)

    def chars(self, chars: Chars) -> str:
        """One character class."""
        return class_of(chars.ranges)


class SentencePiece:
    """A space is spelled `▁`."""

    def text(self, text: str) -> str:
        """An expression for exactly `text`."""
        space = f"[{SENTENCEPIECE_SPACE} ]"
        return "".join(space if char == " " else literal(char, IN_TEXT) for char in text)

    def chars(self, chars: Chars) -> str:
        """One character class."""
        both = points(" " + SENTENCEPIECE_SPACE)
        spaced = bool(common(chars.ranges, points(" ")))
        return class_of(merged((*without(chars.ranges, both), *(both if spaced else ()))))


def _byte_spellings() -> list[int]:
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    return [byte if byte in kept else 256 + others.index(byte) for byte in range(256)]


BYTE_SPELLINGS = _byte_spellings()
"""The code point that a byte-level tokenizer writes for each byte."""


class ByteLevel:
    """Every byte of the UTF-8 text is spelled as one visible character."""

    def text(self, text: str) -> str:
        """An expression for exactly `text`."""
        return "".join(self._byte(byte) for byte in text.encode("utf-8"))

    def _byte(self, byte: int) -> str:
        if 0x21 <= byte <= 0x7E:
            return literal(chr(byte), IN_TEXT)
        beside = {0x20: " ", 0x0A: "\\n"}.get(byte, "\\x01")
        return f"[{chr(BYTE_SPELLINGS[byte])}{beside}]"

    def chars(self, chars: Chars) -> str:
        """One character: a class, or a choice of byte sequences."""
        ascii_part = common(chars.ranges, ((0, 0x7F),))
        wide = without(chars.ranges, (*ascii_part, *SURROGATES))
        if wide == without(NON_ASCII, SURROGATES):
            if chars.free:
                return class_of(inverted(_spelled(without(((0, 0x7F),), ascii_part))))
            sequences = [[(lead, last)] + [(0x80, 0xBF)] * more for lead, last, more in LEADS]
        else:
            sequences = [each for low, high in wide for each in utf8_sequences(low, high)]
        options = ["".join(class_of(_unforced(step)) for step in sequence) for sequence in sequences]
        if ascii_part:
            spelled = _spelled(ascii_part)
            visible = common(ascii_part, ((0x21, 0x7E),))
            beside = points([" "] * bool(common(ascii_part, points(" "))) + [UNSPELLED] * (not visible))
            options.insert(0, class_of(merged((*spelled, *beside))))
        return options[0] if len(options) == 1 and ascii_part else "(?:" + "|".join(options) + ")"


LEADS = ((0xC2, 0xDF, 1), (0xE0, 0xEF, 2), (0xF0, 0xF4, 3))
"""First bytes of longer characters, and how many bytes follow."""


def _spelled(ranges: Ranges) -> Ranges:
    codes = (BYTE_SPELLINGS[byte] for low, high in ranges for byte in range(low, high + 1))
    return merged((code, code) for code in codes)


def _unforced(step: tuple[int, int]) -> Ranges:
    return merged((*_spelled((step,)), *points(UNSPELLED)))


def utf8_sequences(low: int, high: int) -> Iterator[list[tuple[int, int]]]:
    """The code points from `low` to `high` as sequences of byte ranges."""
    for limit in (0x7F, 0x7FF, 0xFFFF):
        if low <= limit < high:
            yield from utf8_sequences(low, limit)
            yield from utf8_sequences(limit + 1, high)
            return
    size = len(chr(high).encode("utf-8"))
    for digits in range(1, size):
        mask = (1 << 6 * digits) - 1
        if low & ~mask != high & ~mask:
            if low & mask:
                yield from utf8_sequences(low, low | mask)
                yield from utf8_sequences((low | mask) + 1, high)
                return
            if high & mask != mask:
                yield from utf8_sequences(low, (high & ~mask) - 1)
                yield from utf8_sequences(high & ~mask, high)
                return
    yield list(zip(chr(low).encode("utf-8"), chr(high).encode("utf-8"), strict=True))


SPELLINGS: dict[Alphabet, Spelling] = {
    "text": PlainText(),
    "byte_level": ByteLevel(),
    "sentencepiece": SentencePiece(),
}
