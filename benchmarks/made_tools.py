"""Tools for benchmarks: so many alike, or random ones; the same seed gives the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from hermes import Tool

WORDS = ("city", "name", "amount", "unit", "day", "tags", "limit", "note", "colour", "from", "to", "straße", "é", "a b")
VALUES = ("celsius", "degrees fahrenheit", "Zürich", "New York", "東京", "a/b", 'say "hi"', "x < y", "", "line\nbreak")
PATTERNS = ("^\\d{4}-\\d{2}$", "^[a-z]+$", "^(?:GET|POST) /\\w*$", "^[A-Z]{2}\\d{3}$")
FORMATS = ("date", "time", "date-time", "email", "uuid", "ipv4")


def weather_tools(count: int) -> tuple[Tool, ...]:
    """`count` tools with four parameters each."""
    properties = {
        "city": {"type": "string", "description": "The city, in any language."},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit", "degrees kelvin"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
    }
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    return tuple(Tool(f"weather_{number}", f"Forecast of service {number}.", schema) for number in range(count))


def random_tools(seed: int, most: int = 4) -> tuple[Tool, ...]:
    """One to `most` tools; their schemas use most keywords that a grammar reads, and some that none enforces."""
    chance = random.Random(seed)
    return tuple(
        Tool(f"{chance.choice(WORDS[:9])}_{number}", f"Does {chance.choice(WORDS)}.", random_object(chance, 2))
        for number in range(chance.randint(1, most))
    )


def random_object(chance: random.Random, depth: int) -> dict[str, Any]:
    """The schema of an object with up to five properties."""
    names = chance.sample(WORDS, chance.randint(0, 5))
    schema: dict[str, Any] = {"type": "object", "properties": {name: random_schema(chance, depth) for name in names}}
    if required := [name for name in names if chance.random() < 0.6]:
        schema["required"] = required
    if chance.random() < 0.3:
        schema["additionalProperties"] = False
    return schema


def random_schema(chance: random.Random, depth: int) -> dict[str, Any]:
    """The schema of any value; arrays and objects nest `depth` times."""
    scalar: Mapping[str, Callable[[random.Random], dict[str, Any]]] = {
        "string": _string,
        "integer": _integer,
        "number": _number,
        "boolean": lambda chance: {"type": "boolean"},
        "enum": lambda chance: {"enum": chance.sample([*VALUES, 7, 2.5, True, None], chance.randint(1, 4))},
        "const": lambda chance: {"const": chance.choice(VALUES)},
        "nullable": lambda chance: {"type": ["string", "null"]},
    }
    kind = chance.choice([*scalar, *(("array", "object", "anyOf") if depth else ())])
    if kind in scalar:
        return scalar[kind](chance)
    if kind == "object":
        return random_object(chance, depth - 1)
    if kind == "anyOf":
        return {"anyOf": [random_schema(chance, depth - 1) for _ in range(2)]}
    low = chance.randint(0, 2)
    schema = {"type": "array", "items": random_schema(chance, depth - 1), "minItems": low}
    return schema | {"maxItems": low + chance.randint(0, 3)} | ({"uniqueItems": True} if chance.random() < 0.2 else {})


def _string(chance: random.Random) -> dict[str, Any]:
    low = chance.randint(0, 3)
    kinds: list[dict[str, Any]] = [
        {},
        {"minLength": low, "maxLength": low + chance.randint(0, 20)},
        {"pattern": chance.choice(PATTERNS)},
        {"format": chance.choice(FORMATS)},
    ]
    return {"type": "string", **chance.choice(kinds)}


def _integer(chance: random.Random) -> dict[str, Any]:
    low = chance.randint(-50, 50)
    bounds = chance.choice([{}, {"minimum": low}, {"minimum": low, "maximum": low + chance.randint(0, 400)}])
    return {"type": "integer", **bounds, **({"multipleOf": 5} if chance.random() < 0.1 else {})}


def _number(chance: random.Random) -> dict[str, Any]:
    low = chance.randint(-100, 100) / 4
    return {"type": "number", **chance.choice([{}, {"exclusiveMinimum": low, "maximum": low + 12.5}])}
