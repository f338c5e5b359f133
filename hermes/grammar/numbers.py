"""Numbers within bounds, exactly, as digits."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from hermes.grammar.form import DIGIT, EMPTY, NOTHING, Form, Text, chain, choice, one_of, optional, repeat, span

ANY_INTEGER = chain(optional("-"), choice("0", chain(span("1", "9"), repeat(DIGIT))))
ANY_NUMBER = chain(
    ANY_INTEGER,
    optional(".", repeat(DIGIT, 1)),
    optional(one_of("eE"), choice(chain("-", repeat(DIGIT, 1, 3)), chain(optional("+"), repeat(DIGIT, 1, 2)))),
)
"""Exponents are so short that the number is finite to every reader."""
EXACT_DIGITS = 15
"""Two decimals of so many digits are never the same double."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An end of a range; the end itself is outside where `strict`."""

    value: Decimal
    strict: bool = False

    def negated(self) -> Bound:
        """The same end seen from the other side of zero."""
        return Bound(self.value.copy_negate(), self.strict)


def integer(low: Bound | None, high: Bound | None) -> Form:
    """Every integer between the bounds, without fraction or exponent."""
    if low is None and high is None:
        return ANY_INTEGER
    least = None if low is None else _ceiling(low)
    most = None if high is None else -_ceiling(high.negated())
    options = [_naturals(max(0, least or 0), most)]
    if least is None or least < 0:
        below = 1 if most is None or most >= 0 else -most
        options.append(chain("-", _naturals(below, None if least is None else -least)))
    return choice(*options)


def _ceiling(bound: Bound) -> int:
    whole = int(bound.value.to_integral_value("ROUND_CEILING"))
    return whole + 1 if bound.strict and whole == bound.value else whole


def _naturals(low: int, high: int | None) -> Form:
    """Every integer from `low`, 0 or more, to `high`."""
    if high is not None and high < low:
        return NOTHING
    options = []
    text = str(low)
    if high is None:
        options = [_same_size(text, "9" * len(text)), chain(span("1", "9"), repeat(DIGIT, len(text)))]
        return choice(*options)
    while len(text) < len(str(high)):
        options.append(_same_size(text, "9" * len(text)))
        text = "1" + "0" * len(text)
    return choice(*options, _same_size(text, str(high)))


def _same_size(low: str, high: str) -> Form:
    """Every text of digits between two of the same length."""
    if not low:
        return EMPTY
    rest = len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return chain(_digits(low[0], high[0]), repeat(DIGIT, rest, rest))
    if low[0] == high[0]:
        return chain(low[0], _same_size(low[1:], high[1:]))
    options = [chain(low[0], _same_size(low[1:], "9" * rest)), chain(high[0], _same_size("0" * rest, high[1:]))]
    if int(high[0]) - int(low[0]) > 1:
        between = _digits(str(int(low[0]) + 1), str(int(high[0]) - 1))
        options.insert(1, chain(between, repeat(DIGIT, rest, rest)))
    return choice(*options)


def _digits(low: str, high: str) -> Form:
    return Text(low) if low == high else span(low, high)


def number(low: Bound | None, high: Bound | None) -> Form:
    """Every number between the bounds without exponent.

    Where an end is outside, fractions are so short that rounding to a double cannot reach it.
    """
    if low is None and high is None:
        return ANY_NUMBER
    options: list[Form] = []
    if high is None or high.value >= 0:
        options.append(_magnitudes(low if low is not None and low.value >= 0 else None, high))
    if low is None or low.value < 0:
        nearest = high.negated() if high is not None and high.value < 0 else Bound(Decimal(0), strict=True)
        options.append(chain("-", _magnitudes(nearest, None if low is None else low.negated())))
    return choice(*options)


def _magnitudes(low: Bound | None, high: Bound | None) -> Form:
    """Every number from `low`, 0 or more, to `high`, without sign."""
    low = low or Bound(Decimal(0))
    first, after = _parts(low)
    strict = any(bound is not None and bound.strict for bound in (low, high))
    room = None
    if strict:
        size = max(len(str(int(bound.value))) for bound in (low, high) if bound is not None)
        digits = max(len(_parts(bound)[1]) for bound in (low, high) if bound is not None)
        room = max(1, EXACT_DIGITS - size, digits)
    lower = _Lower(after, low.strict)
    free = optional(".", _some(room))
    if high is None:
        return choice(chain(str(first), _fraction(lower, None, room)), chain(_naturals(first + 1, None), free))
    last, upto = _parts(high)
    upper = _Upper(upto, high.strict)
    if first > last:
        return NOTHING
    if first == last:
        return chain(str(first), _fraction(lower, upper, room))
    return choice(
        chain(str(first), _fraction(lower, None, room)),
        chain(_naturals(first + 1, last - 1), free),
        chain(str(last), _fraction(None, upper, room)),
    )


def _parts(bound: Bound) -> tuple[int, str]:
    whole, _, fraction = format(bound.value, "f").partition(".")
    return int(whole), fraction.rstrip("0")


@dataclass(frozen=True, slots=True)
class _Lower:
    digits: str
    strict: bool

    @property
    def holds_at_end(self) -> bool:
        return not self.digits and not self.strict


@dataclass(frozen=True, slots=True)
class _Upper:
    digits: str
    strict: bool

    @property
    def holds_at_end(self) -> bool:
        return bool(self.digits) or not self.strict


def _some(room: int | None) -> Form:
    return repeat(DIGIT, 1, room)


def _fraction(low: _Lower | None, high: _Upper | None, room: int | None) -> Form:
    """The point and what follows it, or nothing where that is within the bounds too."""
    written = chain(".", _after_point(low, high, room))
    ends = (low is None or low.holds_at_end) and (high is None or high.holds_at_end)
    if written == NOTHING:
        return EMPTY if ends else NOTHING
    return repeat(written, 0, 1) if ends else written


def _after_point(low: _Lower | None, high: _Upper | None, room: int | None) -> Form:
    """At least one more digit, so that the fraction keeps within the bounds."""
    if room == 0:
        return NOTHING
    if low is not None and low.holds_at_end:
        low = None
    if low is None and high is None:
        return _some(room)
    least = int(low.digits[:1] or 0) if low else 0
    most = int(high.digits[:1] or 0) if high else 9
    if least > most:
        return NOTHING
    options: list[Form] = []
    for digit in sorted({least, most}):
        below = low and _Lower(low.digits[1:], low.strict) if digit == least else None
        above = high and _Upper(high.digits[1:], high.strict) if digit == most else None
        options.append(chain(str(digit), _rest(below, above, None if room is None else room - 1)))
    if most - least > 1:
        more = repeat(DIGIT, 0, None if room is None else room - 1)
        options.append(chain(_digits(str(least + 1), str(most - 1)), more))
    return choice(*options)


def _rest(low: _Lower | None, high: _Upper | None, room: int | None) -> Form:
    if high is not None and not high.digits:
        return repeat("0", 0, room) if not high.strict and (low is None or low.holds_at_end) else NOTHING
    ends = (low is None or low.holds_at_end) and (high is None or high.holds_at_end)
    more = _after_point(low, high, room)
    return more if not ends else choice(EMPTY, more)
