"""Worlds: one system prompt with the skills that it lists, for ten conversations in a row.

Conversations with one system prompt are trained and evaluated together, which computes it once.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.user_files import SKILLS_PLACE, skill_key
from data import prompts, words
from data.forms import FieldText, Form, instructions, shipped, variant
from data.phrases import slots
from data.requests import Listed, catalogue
from data.skill_library import shipped_skills
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
    own_wording: bool
    """Whether the prompt is one of ours."""

    def form(self, task: str) -> Form:
        """How the skill `task` is presented here."""
        return next(form for form in self.forms if form.task == task)


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
    others = catalogue(split)
    # Some stay unlisted, so that there are requests which no skill serves.
    listed = tuple(
        replace(each, alias=_alias(each.name, taken, rng)) if split != "test" else each
        for each in rng.sample(others, min(size - len(forms), len(others) - 3))
        if skill_key(each.name) not in taken
    )
    skills = [*(form.skill for form in forms), *(Skill(each.shown, each.description, "") for each in listed)]
    rng.shuffle(skills)
    own = not users or rng.random() >= _USERS_PROMPT
    wording = _wording(split, rng) if own else rng.choice(users)
    return World(wording.replace(SKILLS_PLACE, list_skills(skills)), forms, listed, own)


def _tasks(split: Split, size: int, rng: random.Random) -> list[str]:
    """Skills with a task, at most `size` of them, that a world lists."""
    if split != "test":
        return rng.sample(TRAINED, min(size - 1, rng.randint(2, 5)))
    held_out = rng.sample(HELD_OUT, rng.randint(1, min(2, size - 2)))
    return [*held_out, *rng.sample(TRAINED, min(size - len(held_out), rng.randint(3, 6)))]


def _alias(name: str, taken: set[str], rng: random.Random) -> str:
    """Another name for a skill, often its own written otherwise, and some that say nothing: a model that loads by
    habit, not from the list, is wrong about those. `taken` is added to.
    """
    while True:
        style, words_ = rng.random(), name.split("-")
        if style < 0.4:
            alias = name
        elif style < 0.75:
            order = rng.sample(words_, len(words_)) if rng.random() < 0.4 else words_
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
    skill = next(skill for skill in shipped_skills() if skill.name == name)
    if split == "test" or rng.random() < _OWN_FORM:
        return shipped(skill)
    if name == "plant-care":
        skill = Skill(skill.name, skill.description, other_advice(skill.body, rng))
    return variant(skill, rng, lambda other: _alias(other, taken, rng))


_FIELDS: dict[str, tuple[tuple[str, ...], str, object]] = {
    "amount": (("amount", "value", "number", "quantity"), "the number", 12.5),
    "amount2": (("other_amount", "second", "number2"), "the other number", 3),
    "name": (("name", "person", "who", "contact"), "the name", "Anna"),
    "name2": (("other_name", "person2", "with"), "the other name", "Ben"),
    "city": (("city", "place", "location", "town", "from"), "the city", "Rome"),
    "city2": (("other_city", "destination", "to"), "the other city", "Oslo"),
    "time": (("time", "at", "when", "clock"), "the time as the user says it", "7:30"),
    "text": (("text", "content", "input", "sentence"), "the user's text, copied", "Good day"),
    "phone": (("phone", "number", "phone_number"), "the phone number", "555-0100"),
    "email": (("email", "address", "mail", "email_address"), "the e-mail address", "ana@example.org"),
    "title": (("title", "subject", "heading", "topic", "called"), "the title", "The blue door"),
    "date": (("date", "day", "on", "due"), "the date as the user says it", "3 May"),
    "small": (("count", "how_many", "number", "n"), "how many", 4),
    "small2": (("other_count", "second_number", "n2", "score2"), "the other number", 7),
}
"""For each slot of the catalogue: names of a field for it, what it means, an example."""


def runnable(entry: Listed) -> list[str]:
    """The patterns of `entry` whose slots make a call with arguments."""
    return [pattern for pattern in entry.patterns if slots(pattern)]


def made_up(entry: Listed, rng: random.Random) -> Form:
    """A form for a skill that is only listed: a field for each slot of its patterns, one call, any manner."""
    patterns = runnable(entry)
    used = [slot for slot in _FIELDS if any(slot in slots(pattern) for pattern in patterns)]
    rng.shuffle(used)
    keys: dict[str, str] = {}
    for slot in used:
        keys[slot] = rng.choice([name for name in _FIELDS[slot][0] if name not in keys.values()])
    texts = [
        FieldText(keys[slot], _FIELDS[slot][1], _FIELDS[slot][2], any(slot not in slots(each) for each in patterns))
        for slot in used
    ]
    intent = re.sub(r"[\W_]+", "_", entry.name) if rng.random() < 0.25 else None
    script = rng.choice(("index.html", "index.html", "index.html", "run.html", "start.html"))
    body = instructions(entry.shown, script, intent, texts, rng)
    intents = {} if intent is None else {"": intent}
    return Form(entry.name, Skill(entry.shown, entry.description, body), script, keys, intents)
