"""The fields of a script's data, read with the words that every script has for what is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hermes.record import refuse_constant

SPACE = " \t\r\n\u00a0"
"""What the scripts take for white space."""


def parse(data: str) -> dict[str, Any]:
    """The object in `data`, its numbers all floats, as JavaScript reads them.

    Raises:
        ValueError: the error that the scripts give.
    """
    try:
        fields = json.loads(data, parse_int=float, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError("data is not JSON") from None
    if not isinstance(fields, dict):
        raise ValueError("data must be a JSON object")
    return fields


def text_of(fields: Mapping[str, Any], key: str) -> str:
    """The text `key`.

    Raises:
        ValueError: it is missing or no text.
    """
    if key not in fields:
        raise ValueError(f"missing field: {key}")
    if not isinstance(fields[key], str):
        raise ValueError(f"{key} must be text")
    return str(fields[key])


def number_of(fields: Mapping[str, Any], key: str, wanted: str = "a number") -> float:
    """The number `key`, or the text that holds one.

    Raises:
        ValueError: it is missing or no number; the message says that it must be `wanted`.
    """
    if key not in fields:
        raise ValueError(f"missing field: {key}")
    value = fields[key]
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        value = float(value)
    if not isinstance(value, float):
        raise ValueError(f"{key} must be {wanted}")
    return value


def number_within(fields: Mapping[str, Any], key: str, low: int, high: int) -> float:
    """The number `key`.

    Raises:
        ValueError: it is missing, no number, or not from `low` to `high`.
    """
    wanted = f"a number from {low} to {high}"
    value = number_of(fields, key, wanted)
    if not low <= value <= high:
        raise ValueError(f"{key} must be {wanted}")
    return value


def whole_within(fields: Mapping[str, Any], key: str, low: int, high: int, missing: int | None = None) -> int:
    """The whole number `key`; `missing` is what stands for none.

    Raises:
        ValueError: it is missing, no whole number, or not from `low` to `high`.
    """
    if missing is not None and key not in fields:
        return missing
    wanted = f"a whole number from {low} to {high}"
    value = number_of(fields, key, wanted)
    if not (value.is_integer() and low <= value <= high):
        raise ValueError(f"{key} must be {wanted}")
    return int(value)
