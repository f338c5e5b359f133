"""Worlds: one system prompt with the skills that it lists, for ten conversations in a row.

Conversations with one system prompt are trained and evaluated together, which computes it once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.user_files import SKILLS_PLACE, skill_key
from data import prompts, words
from data.forms import Form, shipped, variant
from data.requests import Listed, catalogue
from data.skill_library import shipped_skill
from data.tasks import HELD_OUT, TRAINED
from data.tasks.words import other_advice
from data.values import Split
from hermes import Skill, list_skills

SIZE = 10
"""Conversations of one world."""

_OWN_FORM = 0.5
"""Share of skills that training shows as they ship."""
_ENDINGS = ("helper", "skill", "tool", "plus", "pro", "2", "app", "now")
_BEGINNINGS = ("my", "quick", "easy", "smart", "the", "new")
_USERS_PROMPT = 0.35
"""Share of worlds with a system prompt of the user's, where there are any."""


@dataclass(frozen=True)
class World:
    """What a system prompt offers."""

    prompt: str
    forms: tuple[Form, ...]
    """Skills with a task of their own."""
    listed: tuple[Listed, ...]
    """Skills that are only listed."""

    def form(self, task: str) -> Form:
        """How the skill `task` is presented here.

        Raises:
            KeyError: it is not offered.
        """
        return {form.task: form for form in self.forms}[task]


def make_world(split: Split, seed: int, number: int, users: Sequence[str] = ()) -> World:
    """World `number` of a split; a pure function of its arguments.

    Args:
        users: the user's own system prompts, with the place where skills are listed.
    """
    rng = random.Random(f"{seed}/{split}/world/{number}")
    size = rng.randint(3, 8) if rng.random() < 0.65 else rng.randint(9, 15)
    tasks = _tasks(split, size, rng)
    taken = {skill_key(name) for name in tasks}
    forms = tuple(_form(name, split, taken, rng) for name in tasks)
    listed = _listed(split, size - len(forms), taken, rng)
    skills = [*(form.skill for form in forms), *(Skill(each.shown, each.description, "") for each in listed)]
    rng.shuffle(skills)
    own = not users or rng.random() >= _USERS_PROMPT
    wording = _wording(split, rng) if own else rng.choice(users)
    return World(wording.replace(SKILLS_PLACE, list_skills(skills)), forms, listed)


def _listed(split: Split, count: int, taken: set[str], rng: random.Random) -> tuple[Listed, ...]:
    """At most `count` skills of the catalogue; in training at least one of them can be run, and names are others."""
    others = catalogue(split)
    # Some stay unlisted, so that there are requests which no skill serves.
    chosen = rng.sample(others, min(count, len(others) - 3))
    if split == "test":
        return tuple(each for each in chosen if skill_key(each.name) not in taken)
    if chosen and not any(each.runnable for each in chosen):
        chosen[0] = rng.choice([each for each in others if each.runnable])
    return tuple(replace(each, alias=_alias(each.name, taken, rng)) for each in chosen)


def _tasks(split: Split, size: int, rng: random.Random) -> list[str]:
    """Skills with a task, at most `size` of them, that a world lists."""
    if split != "test":
        return rng.sample(TRAINED, min(size - 1, rng.randint(2, 5)))
    held_out = rng.sample(HELD_OUT, rng.randint(1, min(2, size - 2)))
    return [*held_out, *rng.sample(TRAINED, min(size - len(held_out), rng.randint(3, 6)))]


def _alias(name: str, taken: set[str], rng: random.Random) -> str:
    """A name for a skill, which is added to `taken`: its own, often written otherwise, or one that says nothing.

    A model that loads by habit, not from the list, is wrong about the last.
    """
    while True:
        style, parts = rng.random(), name.split("-")
        if style < 0.5:
            alias = name
        elif style < 0.88:
            order = rng.sample(parts, len(parts)) if rng.random() < 0.4 else parts
            alias = rng.choice((
                "_".join(order), "".join(map(str.capitalize, order)), "-".join((*order, rng.choice(_ENDINGS))),
                "-".join((rng.choice(_BEGINNINGS), *order)), order[-1] if len(order[-1]) > 3 else order[0],
            ))  # fmt: skip
        else:
            first = rng.choice((*words.ADJECTIVES, *words.NOUNS))
            alias = f"{first}-{rng.choice((rng.choice(words.NOUNS), str(rng.randint(2, 99))))}"
        if skill_key(alias) not in taken:
            taken.add(skill_key(alias))
            return alias


def _wording(split: Split, rng: random.Random) -> str:
    known = (prompts.DEFAULT, *prompts.WORDINGS["train"])
    share = rng.random()
    if share < 0.4:
        return prompts.DEFAULT
    return rng.choice(known if split == "train" or share < 0.6 else prompts.WORDINGS[split])


def _form(name: str, split: Split, taken: set[str], rng: random.Random) -> Form:
    skill = shipped_skill(name)
    if split == "test" or rng.random() < _OWN_FORM:
        return shipped(skill)
    if name == "plant-care":
        skill = Skill(skill.name, skill.description, other_advice(skill.body, rng))
    return variant(skill, rng, lambda other: _alias(other, taken, rng))
