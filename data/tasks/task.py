"""A task: how a skill's slots are filled, and what happens once it is loaded."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from data.forms import Form
from data.skill_scripts import Notes, run_js_result, script_output
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
    spoken: frozenset[str] = frozenset()
    """Slots whose values count only where the request says them."""


def run_script(
    form: Form,
    fields: Mapping[str, JSON],
    answer: Callable[[str], tuple[str, tuple[str, ...]]],
    before: tuple[Exchange, ...] = (),
    *,
    rng: random.Random | None = None,
    notes: Notes | None = None,
) -> Episode:
    """An episode whose last call is that of the skill's script.

    Args:
        fields: the call's data, by the names of the shipped skill.
        answer: makes sentence and facts of the script's result.
        before: what happened before that call.
        rng: draws for the skills that draw.
        notes: what the phone keeps; the call may change it.
    """
    output = script_output(form.task, dumps(dict(fields)), rng=rng, notes=notes)
    exchanges = (*before, Exchange(form.run_js(fields), run_js_result(output)))
    if "error" in output:
        return failed(exchanges, output["error"])
    return Episode(exchanges, *answer(output["result"]))


def failed(exchanges: tuple[Exchange, ...], error: str) -> Episode:
    """An episode whose last call failed, which its answer says."""
    return Episode(exchanges, f"That did not work: {error}.", (error,))


def number(text: str) -> float | int:
    """The JSON number that is written `text`."""
    value: float | int = json.loads(text)
    return value
