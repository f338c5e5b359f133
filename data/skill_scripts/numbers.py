"""The skills `unit-converter` and `tip-calculator`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from data.skill_scripts.fields import number_of, number_within, parse, text_of, whole_within
from data.units import UNITS, convert, show, show_result, to_fixed, unit_of

_LARGEST_VALUE = 1e12
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
    source, target = _unit_of(fields, "from"), _unit_of(fields, "to")
    if UNITS[source][0] != UNITS[target][0]:
        raise ValueError(f"cannot convert {fields['from']} to {fields['to']}")
    return f"{show(value, 6)} {fields['from']} = {show_result(convert(value, source, target))} {fields['to']}"


def _unit_of(fields: Mapping[str, Any], key: str) -> str:
    spelling = text_of(fields, key)
    unit = unit_of(spelling)
    if unit is None:
        raise ValueError(f"unknown unit: {spelling}")
    return unit


def tip_calculator(data: str) -> str:
    """Tip, total and, for several people, what each pays.

    Raises:
        ValueError: the error that the script gives.
    """
    fields = parse(data)
    bill = number_within(fields, "bill", 0, _LARGEST_BILL)
    percent = number_within(fields, "percent", 0, _LARGEST_PERCENT)
    people = whole_within(fields, "people", 1, _MOST_PEOPLE, missing=1)
    tip = to_fixed((bill * percent) / 100, 2)
    # The total is the bill plus the tip as it is shown.
    total = to_fixed(bill + float(tip), 2)
    each = "" if people == 1 else f", each {to_fixed(float(total) / people, 2)}"
    return f"tip {tip}, total {total}{each}"
