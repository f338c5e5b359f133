"""The skills `unit-converter` and `tip-calculator`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from data.skill_scripts.fields import number_of, number_within, parse, text_of, whole_within
from data.units import ABSOLUTE_ZERO, UNITS, convert, show_exactly, show_result, unit_of

_LARGEST_VALUE = 1e12
_SMALLEST_VALUE = 1e-30
_LARGEST_BILL = 1_000_000_000
_LARGEST_PERCENT = 100
_MOST_PEOPLE = 100


def unit_converter(data: str) -> str:
    """The value in both units.

    Raises:
        ValueError: the error that the script gives.
    """
    fields = parse(data)
    value = number_of(fields, "value")
    if abs(value) > _LARGEST_VALUE:
        raise ValueError("value is too large")
    if 0 < abs(value) < _SMALLEST_VALUE:
        raise ValueError("value is too small")
    source, target = _unit_of(fields, "from"), _unit_of(fields, "to")
    if UNITS[source][0] != UNITS[target][0]:
        raise ValueError(f"cannot convert {fields['from']} to {fields['to']}")
    if value < ABSOLUTE_ZERO.get(source, -math.inf):
        raise ValueError("below absolute zero")
    rounded = source in ABSOLUTE_ZERO and source != target
    converted = show_result(convert(value, source, target), rounded)
    return f"{show_exactly(value)} {fields['from']} = {converted} {fields['to']}"


def _unit_of(fields: Mapping[str, Any], key: str) -> str:
    spelling = text_of(fields, key)
    unit = unit_of(spelling)
    if unit is None:
        raise ValueError(f"unknown unit: {spelling}")
    return unit


def tip_calculator(data: str) -> str:
    """Tip, total and, for several people, what each pays, counted in whole cents.

    Raises:
        ValueError: the error that the script gives.
    """
    fields = parse(data)
    bill = number_within(fields, "bill", 0, _LARGEST_BILL)
    percent = number_within(fields, "percent", 0, _LARGEST_PERCENT)
    people = whole_within(fields, "people", 1, _MOST_PEOPLE, missing=1)
    # The decimals as they are written, not as the float has them: 10 % of 262.55 is 26.255 and no less.
    bill_cents = _whole(Fraction(repr(bill)) * 100)
    tip = _whole(bill_cents * Fraction(repr(percent)) / 100)
    total = bill_cents + tip
    each = "" if people == 1 else f", each {_money(_whole(Fraction(total, people)))}"
    return f"tip {_money(tip)}, total {_money(total)}{each}"


def _whole(amount: Fraction) -> int:
    """`amount` rounded, halves up."""
    return math.floor(amount + Fraction(1, 2))


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"
