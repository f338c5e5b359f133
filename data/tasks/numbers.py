"""Skills that compute: units, sums, dice, passwords, colors, tips."""

from __future__ import annotations

import random
from collections.abc import Mapping

from data.forms import Form
from data.tasks.task import Episode, Task, number, run_script
from data.units import PAIRS, SPELLINGS, UNITS
from data.values import Values

_MISTAKES = 0.06
"""Share of requests that a skill answers with an error."""


def _convert_values(draw: Values, variant: str) -> dict[str, str]:
    rng = draw.rng
    source, target = rng.choice(PAIRS)
    if rng.random() < _MISTAKES:
        target = rng.choice([unit for unit, (kind, _) in UNITS.items() if kind != UNITS[source][0]])
    value = draw.number(source in ("celsius", "fahrenheit"))
    return {"value": value, "from": _spelled(source, rng), "to": _spelled(target, rng)}


def _spelled(unit: str, rng: random.Random) -> str:
    """`unit` as somebody writes it."""
    return rng.choice((unit, *SPELLINGS[unit]))


def _convert(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    fields = {"value": number(values["value"]), "from": values["from"], "to": values["to"]}

    def answer(result: str) -> tuple[str, tuple[str, ...]]:
        before, _, after = result.partition(" = ")
        return f"{before} is {after}.", tuple(after.split(" "))

    return run_script(form, fields, answer)


def _sum_values(draw: Values, variant: str) -> dict[str, str]:
    return {"expression": draw.own(lambda: _expression(draw.rng))}


def _expression(rng: random.Random) -> str:
    """A calculation of two or three numbers, a few of them a division by zero."""

    def one() -> str:
        whole = rng.randint(2, rng.choice((20, 200, 2000)))
        return f"{whole}.{rng.randint(1, 9)}" if rng.random() < 0.2 else str(whole)

    first, second, third = one(), one(), one()
    operators = ["+", "-", "*", "/"]
    left, right = rng.choice(operators), rng.choice(operators)
    if rng.random() < _MISTAKES:
        return f"{first} / 0"
    style = rng.random()
    if style < 0.5:
        text = f"{first} {left} {second}"
    elif style < 0.75:
        text = f"{first} {left} {second} {right} {third}"
    elif style < 0.9:
        text = f"{first} * ({second} {rng.choice('+-')} {third})"
    else:
        text = f"({first} {rng.choice('+-')} {second}) {rng.choice('*/')} {rng.randint(2, 12)}"
    return text.replace(" ", "") if rng.random() < 0.3 else text


def _sum(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    def answer(result: str) -> tuple[str, tuple[str, ...]]:
        return f"{result}.", (result.rpartition(" = ")[2],)

    return run_script(form, {"expression": values["expression"]}, answer)


def _dice_values(draw: Values, variant: str) -> dict[str, str]:
    rng = draw.rng
    sides = str(rng.choice((4, 6, 6, 6, 8, 10, 12, 20, 20, 30, 100, rng.randint(3, 60))))
    return {"dice": str(rng.randint(2, 8)), "sides": sides} if variant == "several" else {"sides": sides}


def _dice(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    fields = {"dice": int(values.get("dice", "1")), "sides": int(values["sides"])}

    def answer(result: str) -> tuple[str, tuple[str, ...]]:
        return f"You rolled {result}.", (result.rpartition(" = ")[2],)

    return run_script(form, fields, answer, rng=rng)


def _password_values(draw: Values, variant: str) -> dict[str, str]:
    return {"length": str(draw.rng.randint(6, 20))}


def _password(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    fields = {"length": int(values["length"]), "symbols": variant == "symbols"}

    def answer(result: str) -> tuple[str, tuple[str, ...]]:
        return f"Your password is {result}", (result,)

    return run_script(form, fields, answer, rng=rng)


def _color_values(draw: Values, variant: str) -> dict[str, str]:
    def color() -> str:
        digits = "".join(draw.rng.choices("0123456789abcdef", k=draw.rng.choice((6, 6, 6, 3))))
        digits = digits.upper() if draw.rng.random() < 0.3 else digits
        return digits if draw.rng.random() < 0.15 else f"#{digits}"

    return {"color": draw.own(color, lambda text: text.lower().lstrip("#"))}


def _color(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    color = values["color"]

    def answer(result: str) -> tuple[str, tuple[str, ...]]:
        return f"{color} is {result}.", (result,)

    return run_script(form, {"hex": color}, answer)


def _tip_values(draw: Values, variant: str) -> dict[str, str]:
    rng = draw.rng
    bill = draw.own(lambda: rng.choice((f"{rng.randint(8, 400)}", f"{rng.randint(8, 400)}.{rng.randint(10, 99)}")))
    return {"bill": bill, "percent": str(rng.choice((5, 8, 10, 12, 15, 18, 20, 22))), "people": str(rng.randint(2, 9))}


def _tip(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    fields = {key: number(values[key]) for key in ("bill", "percent", "people")}

    def answer(result: str) -> tuple[str, tuple[str, ...]]:
        amounts = (part.rpartition(" ")[2] for part in result.split(", "))
        return f"{result[0].upper()}{result[1:]}.", tuple(amounts)

    return run_script(form, fields, answer)


TASKS = (
    Task("unit-converter", _convert_values, _convert, frozenset({"from", "to"})),
    Task("calculator", _sum_values, _sum),
    Task("dice-roller", _dice_values, _dice, frozenset({"dice", "sides"})),
    Task("password-maker", _password_values, _password, frozenset({"length"})),
    Task("color-converter", _color_values, _color),
    Task("tip-calculator", _tip_values, _tip, frozenset({"percent", "people"})),
)
