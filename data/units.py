"""The units that the `unit-converter` skill knows, and how it converts and prints them."""

from __future__ import annotations

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
"""How people write a unit besides its own name; the skill's script takes these too, in any case."""

_NAMES = {spelling.lower(): unit for unit, others in SPELLINGS.items() for spelling in (unit, *others)}


def unit_of(spelling: str) -> str | None:
    """The unit that is written `spelling`; None if the skill knows none."""
    return _NAMES.get(spelling.lower())


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


def show_result(value: float) -> str:
    """A converted value: 2 decimals, more below 1."""
    size = abs(value)
    return show(value, 2 if size >= 1 else 4 if size >= 0.01 else 8)
