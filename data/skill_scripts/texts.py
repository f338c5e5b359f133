"""The skills `word-counter` and `color-converter`."""

from __future__ import annotations

import re

from data.skill_scripts.fields import SPACE, parse, text_of


def amount(number: int, noun: str) -> str:
    """The number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def word_counter(data: str) -> str:
    """How many words and characters a text has.

    Raises:
        ValueError: the error that the script gives.
    """
    text = text_of(parse(data), "text")
    words = [word for word in re.split(f"[{SPACE}]+", text) if word]
    return f"{amount(len(words), 'word')}, {amount(len(text), 'character')}"


def color_converter(data: str) -> str:
    """The color as CSS writes its three values.

    Raises:
        ValueError: the error that the script gives.
    """
    text = text_of(parse(data), "hex")
    digits = re.fullmatch("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})", text)
    if digits is None:
        raise ValueError(f"not a hex color: {text}")
    size = len(digits[1]) // 3
    red, green, blue = (int(digits[1][at : at + size] * (3 - size), 16) for at in range(0, 3 * size, size))
    return f"rgb({red}, {green}, {blue})"
