"""What the shipped skills' scripts return, computed in Python, and what the phone answers around them.

A test runs these and the scripts in `data/skills/*/scripts/index.html` on the same inputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime

from data.skill_scripts.calculator import calculator
from data.skill_scripts.chance import dice_roller, password_maker
from data.skill_scripts.dates import days_until, timestamp
from data.skill_scripts.notes import Notes, note_keeper
from data.skill_scripts.numbers import tip_calculator, unit_converter
from data.skill_scripts.texts import color_converter, word_counter
from hermes import dumps

__all__ = [
    "SCRIPTED_SKILLS",
    "Notes",
    "current_date_result",
    "run_intent_result",
    "run_js_result",
    "script_output",
]

_PLAIN: dict[str, Callable[[str], str]] = {
    "calculator": calculator,
    "color-converter": color_converter,
    "days-until": days_until,
    "tip-calculator": tip_calculator,
    "unit-converter": unit_converter,
    "word-counter": word_counter,
}
_RANDOM: dict[str, Callable[[str, random.Random], str]] = {
    "dice-roller": dice_roller,
    "password-maker": password_maker,
}
_NOTES: dict[str, Callable[[str, Notes], str]] = {"note-keeper": note_keeper}

SCRIPTED_SKILLS: tuple[str, ...] = tuple(sorted((*_PLAIN, *_RANDOM, *_NOTES)))
"""The shipped skills that have a script, by name."""


def script_output(
    skill_name: str, data: str, *, rng: random.Random | None = None, notes: Notes | None = None
) -> dict[str, str]:
    """What the script of a shipped skill returns for `data`: `{"result": …}` or `{"error": …}`.

    `rng` is for the skills that draw, by default the system's; `notes` is what the phone keeps for `note-keeper`,
    changed in place, by default nothing yet.

    Raises:
        KeyError: no shipped skill of that name has a script.
    """
    try:
        if skill_name in _RANDOM:
            return {"result": _RANDOM[skill_name](data, random.SystemRandom() if rng is None else rng)}
        if skill_name in _NOTES:
            return {"result": _NOTES[skill_name](data, Notes() if notes is None else notes)}
        return {"result": _PLAIN[skill_name](data)}
    except ValueError as error:
        return {"error": str(error)}


def run_js_result(output: Mapping[str, str]) -> dict[str, str]:
    """What the phone answers to `run_js` where the script returned `output` (see `script_output`).

    A script's own error arrives as the result of a call that succeeded.
    """
    return {"result": output["result"] if "result" in output else dumps(dict(output)), "status": "succeeded"}


def run_intent_result(intent: str, parameters: str) -> dict[str, str]:
    """What the phone answers to `run_intent` when the intent went through."""
    return {"action": intent, "parameters": parameters, "result": "succeeded"}


def current_date_result(moment: datetime) -> dict[str, str]:
    """What the phone answers to the intent `get_current_date_and_time` at `moment`."""
    return {"action": "get_current_date_and_time", "parameters": "{}", "result": timestamp(moment)}
