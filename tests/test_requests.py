"""Phrasings: patterns that can be read, disjoint between splits, and the forms of skills made from them."""

from __future__ import annotations

import random
import re
from itertools import islice

import pytest

from data.forms import SLOTS, Form, made_up, variant
from data.phrases import expand, expansions, phrase, slots
from data.requests import catalogue, chat, phrasings
from data.skill_library import shipped_skill
from data.tasks import HELD_OUT, TASKS, TRAINED
from data.values import SPLITS, Split, Values
from hermes import Skill

MOST = 4000


def test_expansion() -> None:
    pattern = "[please |]open [the [red|blue]|a] door, {name}"
    every = set(expansions(pattern))
    assert every == {
        f"{polite}open {door} door, {{name}}" for polite in ("please ", "") for door in ("the red", "the blue", "a")
    }
    assert {expand(pattern, random.Random(seed)) for seed in range(200)} == every
    assert slots(pattern) == {"name"}


@pytest.mark.parametrize("pattern", ["a [b", "a b]", "a | b", "[a|[b]"])
def test_brackets_must_match(pattern: str) -> None:
    with pytest.raises(ValueError, match="bracket"):
        expand(pattern, random.Random(0))


def test_a_phrase_keeps_its_values_and_puts_nothing_after_an_open_end() -> None:
    for seed in range(300):
        text = phrase("note this: {note}", {"note": "Ring Ana, 7.30!"}, random.Random(seed))
        assert text.endswith(": Ring Ana, 7.30!")
        asked = phrase("what is {expression}?", {"expression": "2 / 0"}, random.Random(seed))
        assert "2 / 0" in asked and "please" not in asked.casefold()


def every_pattern(split: Split) -> list[str]:
    """All patterns of `split`, of skills, catalogue and chat."""
    patterns = [pattern for name in TASKS for each in phrasings(name, split).values() for pattern in each]
    return [*patterns, *(pattern for each in catalogue(split) for pattern in each.patterns), *chat(split)]


def test_no_two_splits_can_give_the_same_request() -> None:
    owner: dict[str, Split] = {}
    for split in SPLITS:
        for pattern in every_pattern(split):
            for text in islice(expansions(pattern), MOST):
                assert owner.setdefault(text, split) == split, text
                assert "  " not in text and text == text.strip(), pattern
    assert len(owner) > 8000


def test_every_skill_has_phrasings_with_the_slots_that_its_values_fill() -> None:
    for name, task in TASKS.items():
        splits = ("test",) if name in HELD_OUT else SPLITS
        assert {split for split in SPLITS if phrasings(name, split)} == set(splits)
        for split in splits:
            for asked, patterns in phrasings(name, split).items():
                values = task.values(Values(split, random.Random(0)), asked)
                for pattern in patterns:
                    assert slots(pattern) <= values.keys(), (name, asked, pattern)


def test_catalogue_skills_are_distinct_and_none_is_a_skill_that_ships() -> None:
    names = [each.name for split in SPLITS for each in catalogue(split)]
    assert len(names) == len(set(names)) >= 100
    assert not set(names) & TASKS.keys()
    for split in SPLITS:
        assert all(like in TRAINED for each in catalogue(split) for like in each.like)
        for pattern in (*(p for each in catalogue(split) for p in each.patterns), *chat(split)):
            assert slots(pattern) <= SLOTS.keys(), pattern


def _as_the_app_reads_it(form: Form) -> None:
    assert Skill.parse(form.skill.to_text()) == form.skill
    words = re.findall(r"[\w-]+(?:\.html)?", form.skill.body)
    assert all(key in words for key in form.keys.values()), (form.keys, form.skill.body)
    assert all(intent in words for intent in form.intents.values()), (form.intents, form.skill.body)
    assert form.script == "index.html" or form.script in words or form.intents or "{" not in form.skill.body


@pytest.mark.parametrize("name", TRAINED)
def test_other_forms_of_a_skill_say_what_their_calls_use(name: str) -> None:
    skill = shipped_skill(name)
    forms = [variant(skill, random.Random(seed)) for seed in range(200)]
    for form in forms:
        _as_the_app_reads_it(form)
        assert form.task == name and form.skill.name != name
    assert len({form.skill.body for form in forms}) >= (1 if name == "plant-care" else 8)


def test_runnable_skills_have_the_same_slots_in_every_request() -> None:
    runnable = [each for split in SPLITS for each in catalogue(split) if each.runnable]
    assert len(runnable) > 30
    for entry in runnable:
        used = {frozenset(slots(text)) for pattern in entry.patterns for text in expansions(pattern)}
        assert len(used) == 1 and used != {frozenset()}, entry.name
        for seed in range(5):
            form = made_up(entry, random.Random(seed))
            _as_the_app_reads_it(form)
            assert {frozenset(form.keys)} == used
