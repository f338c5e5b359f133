"""The units that the `unit-converter` skill knows, and how it converts and prints them."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

UNITS: dict[str, tuple[str, float]] = {
    "mm": ("length", 0.001),
    "cm": ("length", 0.01),
    "m": ("length", 1),
    "km": ("length", 1000),
    "inches": ("length", 0.0254),
    "feet": ("length", 0.3048),
    "yards": ("length", 0.9144),
    "miles": ("length", 1609.344),
    "g": ("weight", 1),
    "kg": ("weight", 1000),
    "ounces": ("weight", 28.349523125),
    "pounds": ("weight", 453.59237),
    "celsius": ("temperature", 1),
    "fahrenheit": ("temperature", 1),
    "kelvin": ("temperature", 1),
    "ml": ("volume", 1),
    "liters": ("volume", 1000),
    "cups": ("volume", 236.5882365),
    "gallons": ("volume", 3785.411784),
    "kmh": ("speed", 1),
    "mph": ("speed", 1.609344),
    "knots": ("speed", 1.852),
    "seconds": ("time", 1),
    "minutes": ("time", 60),
    "hours": ("time", 3600),
    "days": ("time", 86400),
}
"""Dimension and size in its base unit, as the skill's script has them (a test compares the two)."""

SPELLINGS: dict[str, tuple[str, ...]] = {
    "mm": ("millimeters", "millimetres"),
    "cm": ("centimeters", "centimetres"),
    "m": ("meters", "metres"),
    "km": ("kilometers", "kilometres"),
    "inches": ("inch",),
    "feet": ("ft",),
    "yards": ("yd",),
    "miles": ("mi",),
    "g": ("grams", "grammes"),
    "kg": ("kilograms", "kilos"),
    "ounces": ("oz",),
    "pounds": ("lbs", "lb"),
    "celsius": ("°C", "degrees Celsius"),
    "fahrenheit": ("°F", "degrees Fahrenheit"),
    "kelvin": ("K", "kelvins"),
    "ml": ("milliliters", "millilitres"),
    "liters": ("litres", "liter"),
    "cups": ("cup",),
    "gallons": ("gal",),
    "kmh": ("km/h", "kph"),
    "mph": ("miles per hour",),
    "knots": ("kn",),
    "seconds": ("sec",),
    "minutes": ("min",),
    "hours": ("hrs",),
    "days": (),
}
"""How people write a unit besides its own name: what requests are drawn from. The skill's script takes these too."""

ALSO: dict[str, tuple[str, ...]] = {
    "mm": ("millimeter", "millimetre", "mms"),
    "cm": ("centimeter", "centimetre", "cms"),
    "m": ("meter", "metre"),
    "km": ("kilometer", "kilometre", "kms"),
    "inches": ("in", '"', "″", "”"),
    "feet": ("foot", "'", "′", "’"),
    "yards": ("yard", "yds"),
    "miles": ("mile",),
    "g": ("gram", "gramme", "gm", "gms"),
    "kg": ("kilogram", "kilogramme", "kilogrammes", "kilo", "kgs"),
    "ounces": ("ounce",),
    "pounds": ("pound",),
    "celsius": (
        "C", "deg C", "degree C", "degrees C", "ºC", "℃", "degree Celsius",
        "centigrade", "degree centigrade", "degrees centigrade",
    ),
    "fahrenheit": ("F", "deg F", "degree F", "degrees F", "ºF", "℉", "degree Fahrenheit"),
    "kelvin": ("°K", "degree kelvin", "degrees kelvin"),
    "ml": ("milliliter", "millilitre", "cc"),
    "liters": ("l", "litre", "ltr"),
    "cups": (),
    "gallons": ("gallon", "gals"),
    "kmh": (
        "kmph", "km/hr", "km per hour",
        "kilometer per hour", "kilometers per hour", "kilometre per hour", "kilometres per hour",
    ),
    "mph": ("mile per hour", "miles an hour", "mi/h", "miles/hour"),
    "knots": ("knot", "kt", "kts"),
    "seconds": ("second", "secs", "s"),
    "minutes": ("minute", "mins"),
    "hours": ("hour", "hr", "h"),
    "days": ("day", "d"),
}  # fmt: skip
"""More that the script reads and no request is drawn from, so that adding here changes no conversation."""

ABSOLUTE_ZERO = {"celsius": -273.15, "fahrenheit": -459.67, "kelvin": 0.0}


def _plain(spelling: str) -> str:
    """`spelling` in lower case, without spaces and the dots of abbreviations."""
    return re.sub(r"[ .\t\r\n\u00a0]", "", spelling.lower())


_NAMES = {_plain(text): unit for unit in UNITS for text in (unit, *SPELLINGS[unit], *ALSO[unit])}


def unit_of(spelling: str) -> str | None:
    """The unit that is written `spelling`; None if the skill knows none."""
    return _NAMES.get(_plain(spelling))


_LARGEST_RATIO = 5000

PAIRS: tuple[tuple[str, str], ...] = tuple(
    (one, other)
    for one, (kind, size) in UNITS.items()
    for other, (other_kind, other_size) in UNITS.items()
    if one != other and kind == other_kind and max(size / other_size, other_size / size) < _LARGEST_RATIO
)
"""Conversions that somebody might ask for: no millimetres in miles."""


def convert(value: float, source: str, target: str) -> float:
    """`value` in `target` units. Both must be of one dimension."""
    if source == target:
        return value
    dimension, size = UNITS[source]
    if dimension != "temperature":
        return (value * size) / UNITS[target][1]
    celsius = value
    if source == "fahrenheit":
        celsius = ((value - 32) * 5) / 9
    if source == "kelvin":
        celsius = value - 273.15
    if target == "fahrenheit":
        return (celsius * 9) / 5 + 32
    return celsius + 273.15 if target == "kelvin" else celsius


def to_fixed(value: float, decimals: int) -> str:
    """`value` as JavaScript's `toFixed` rounds it: exact halves away from zero."""
    # Adding 0.0 takes the sign from a zero, as `toFixed` does.
    return f"{Decimal(value + 0.0).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP):f}"


def show(value: float, decimals: int) -> str:
    """`value` as `to_fixed` writes it, without trailing zeros."""
    text = to_fixed(value, decimals).rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def show_exactly(value: float) -> str:
    """`value` with every digit, as a person writes it."""
    return f"{Decimal(repr(value + 0.0)):f}".removesuffix(".0")


def show_result(value: float, rounded: bool) -> str:
    """A converted value: 2 decimals, more below 1, and below 0.00001 four digits, whatever zeros stand before them.

    Args:
        rounded: the value may be off by what adding leaves, so that no more than 8 decimals mean anything.
    """
    size = abs(value)
    small = 8 if rounded else max(8, 3 - Decimal(repr(size)).adjusted())
    return show(value, 2 if size >= 1 else 4 if size >= 0.01 else small)
