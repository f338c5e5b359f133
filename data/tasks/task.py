"""A task: how a skill's slots are filled, and what happens once it is loaded."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from data.forms import Form
from data.skill_scripts import run_js_result
from data.values import Values
from hermes import ToolCall, dumps
from hermes.record import JSON


@dataclass(frozen=True)
class Exchange:
    """A call after `load_skill`, and what the phone answers."""

    call: ToolCall
    result: JSON


@dataclass(frozen=True)
class Episode:
    """Everything after `load_skill`."""

    exchanges: tuple[Exchange, ...]
    answer: str
    facts: tuple[str, ...]
    """What the answer must hold."""


@dataclass(frozen=True)
class Task:
    """What a skill is asked and does."""

    skill: str
    values: Callable[[Values, str], dict[str, str]]
    """Values of the slots for a variant of the request."""
    play: Callable[[Form, str, Mapping[str, str], random.Random], Episode]
    """What follows for a form of the skill, a variant and its values."""
    closed: frozenset[str] = frozenset()
    """Slots whose values come from a short list, so that splits may share them."""


FAILED = "That did not work: {error}."
"""The answer after a call that failed."""


def run_script(
    form: Form,
    fields: Mapping[str, JSON],
    answer: Callable[[str], tuple[str, tuple[str, ...]]],
    before: tuple[Exchange, ...] = (),
    **state: object,
) -> Episode:
    """An episode whose last call is that of the skill's script; `answer` makes sentence and facts of its result."""
    result = run_js_result(form.task, dumps(dict(fields)), **state)  # type: ignore[arg-type]
    exchanges = (*before, Exchange(form.run_js(fields), result))
    text = result["result"]
    error = _error(text)
    if error is not None:
        return Episode(exchanges, FAILED.format(error=error), (error,))
    return Episode(exchanges, *answer(text))


def _error(result: str) -> str | None:
    """The error of a script's result, which arrives as a result of its own."""
    if not result.startswith('{"error"'):
        return None
    return str(json.loads(result)["error"])


def number(text: str) -> float | int:
    """The JSON number that is written `text`."""
    value: float | int = json.loads(text)
    return value
