"""The skills that draw: `dice-roller` and `password-maker`."""

from __future__ import annotations

import random

from data.skill_scripts.fields import parse, whole_within

_KINDS = ("abcdefghijkmnopqrstuvwxyz", "ABCDEFGHJKLMNPQRSTUVWXYZ", "23456789")
_SYMBOLS = "!#$%&*+-?@"


def dice_roller(data: str, rng: random.Random) -> str:
    """Each die and, if there are several, their sum.

    Raises:
        ValueError: the error that the script gives.
    """
    fields = parse(data)
    dice, sides = whole_within(fields, "dice", 1, 20, missing=1), whole_within(fields, "sides", 2, 1000, missing=6)
    rolled = [rng.randint(1, sides) for _ in range(dice)]
    text = " + ".join(map(str, rolled))
    return text if dice == 1 else f"{text} = {sum(rolled)}"


def password_maker(data: str, rng: random.Random) -> str:
    """A password with at least one character of each kind.

    Raises:
        ValueError: the error that the script gives.
    """
    fields = parse(data)
    length = whole_within(fields, "length", 4, 64, missing=16)
    symbols = fields.get("symbols", True)
    if symbols in ("true", "false"):
        symbols = symbols == "true"
    if not isinstance(symbols, bool):
        raise ValueError("symbols must be true or false")
    kinds = (*_KINDS, _SYMBOLS) if symbols else _KINDS
    # Drawing anew until every kind is there keeps all passwords that have every kind equally likely.
    while True:
        password = "".join(rng.choices("".join(kinds), k=length))
        if all(set(kind) & set(password) for kind in kinds):
            return password
