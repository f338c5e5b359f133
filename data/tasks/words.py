"""Skills about words: counting, notes, and one that answers from its own text."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from data import words
from data.forms import Form
from data.skill_library import shipped_skill
from data.skill_scripts import Notes
from data.tasks.task import Episode, Task, run_script
from data.values import Values


def _count_values(draw: Values, variant: str) -> dict[str, str]:
    return {"text": draw.text()}


def _count(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    def answer(result: str) -> tuple[str, tuple[str, ...]]:
        before, _, after = result.partition(", ")
        return f"Your text has {before} and {after}.", (before, after)

    return run_script(form, {"text": values["text"]}, answer)


def _note_values(draw: Values, variant: str) -> dict[str, str]:
    if variant == "add":
        return {"note": draw.message()}
    if variant == "list":
        return {}
    word = draw.own(lambda: draw.rng.choice((*words.NOUNS, *words.NOTE_WORDS)))
    note = draw.own(lambda: draw.filled(draw.rng.choice(words.NOTES)).replace("*", word))
    return {"word": word, "found": note}


def _note(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    number = rng.randint(1, 60)
    if variant == "add":
        notes = Notes({}, number)
        return run_script(form, {"action": "add", "text": values["note"]}, _as_sentence, notes=notes)
    if variant == "list":
        others = rng.sample(words.SHORT_NOTES, rng.randint(0, 3))
        kept = {number + place: text for place, text in enumerate(others)}
        return run_script(form, {"action": "list"}, _as_sentence, notes=Notes(kept, number + len(kept)))
    notes = Notes({number: values["found"]} if rng.random() > 0.15 else {}, number + 1)
    find = {"action": "find", "text": values["word"]}
    found = run_script(form, find, lambda result: (_sentence(result), (values["found"],)), notes=notes)
    if variant == "find" or not notes.texts:
        return found
    return run_script(form, {"action": "delete", "id": number}, _as_sentence, found.exchanges, notes=notes)


def _as_sentence(result: str) -> tuple[str, tuple[str, ...]]:
    return _sentence(result), (result,)


def _sentence(text: str) -> str:
    return text if text[-1] in ".!?" else f"{text}."


_PLANT = re.compile(r"^- ([^:\n]+): (water (every [^,\n]+)[^\n]*)$", re.MULTILINE)
"""A line of `plant-care`'s list: the plant, the advice, and how often to water."""


def _plant_values(draw: Values, variant: str) -> dict[str, str]:
    return {"plant": draw.rng.choice(_PLANT.findall(shipped_skill("plant-care").body))[0]}


def _plant(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    plant = values["plant"]
    advice, interval = next((line, often) for name, line, often in _PLANT.findall(form.skill.body) if name == plant)
    return Episode((), f"{plant[0].upper()}{plant[1:]}: {advice}.", (interval,))


def other_advice(body: str, rng: random.Random) -> str:
    """`plant-care`'s instructions with plants and advice in another order: what is true stands only there."""
    lines = _PLANT.findall(body)
    advice = rng.sample([line for _, line, _ in lines], len(lines))
    shuffled = [f"- {name}: {line}" for (name, _, _), line in zip(rng.sample(lines, len(lines)), advice, strict=True)]
    return _PLANT.sub(lambda match: shuffled.pop(), body)


TASKS = (
    Task("word-counter", _count_values, _count),
    Task("note-keeper", _note_values, _note),
    Task("plant-care", _plant_values, _plant, frozenset({"plant"})),
)
