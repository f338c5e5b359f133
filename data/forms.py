"""How a skill is presented: its name, its listing, its instructions, what its fields are called.

A skill that ships has its own form. Others of it are made from `requests/forms.yaml`; a skill that is only listed
gets one that is made up. A model that has seen a dozen forms of one skill learns to read instructions, not to recite
them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from data.phrases import slots
from data.requests import Listed, read
from hermes import Skill, ToolCall, dumps
from hermes.record import JSON

_SCRIPTS = ("index.html", "index.html", "index.html", "run.html", "main.html", "query.html")
_MADE_UP_SCRIPTS = ("index.html", "index.html", "index.html", "run.html", "start.html")


@dataclass(frozen=True)
class Form:
    """A skill as a conversation shows it."""

    task: str
    """The name of the skill that it is a form of."""
    skill: Skill
    script: str = "index.html"
    keys: Mapping[str, str] = field(default_factory=dict)
    """Names of fields, where they are not the shipped skill's."""
    intents: Mapping[str, str] = field(default_factory=dict)
    """Names of intents, where they are not the phone's."""

    def run_js(self, fields: Mapping[str, JSON]) -> ToolCall:
        """The call of the skill's script."""
        arguments = {"skill_name": self.skill.name, "script_name": self.script, "data": self._text(fields)}
        return ToolCall("run_js", arguments)

    def run_intent(self, intent: str, fields: Mapping[str, JSON]) -> ToolCall:
        """The call of an intent."""
        return ToolCall("run_intent", {"intent": self.intents.get(intent, intent), "parameters": self._text(fields)})

    def _text(self, fields: Mapping[str, JSON]) -> str:
        return dumps({self.keys.get(key, key): value for key, value in fields.items()})


@dataclass(frozen=True)
class _FieldText:
    """A field as instructions describe it."""

    key: str
    meaning: str
    example: JSON

    @property
    def kind(self) -> str:
        """The JSON type's name as instructions have it."""
        if isinstance(self.example, bool):
            return "Boolean"
        return "String" if isinstance(self.example, str) else "Number"


def shipped(skill: Skill) -> Form:
    """A shipped skill in its own form."""
    return Form(skill.name, skill)


def variant(skill: Skill, rng: random.Random, rename: Callable[[str], str] = str) -> Form:
    """Another form of a shipped skill: other name and description, often other fields and other instructions.

    Args:
        rename: what is done to the other name.
    """
    given = read("forms")[skill.name]
    name, description = rename(rng.choice(given["names"])), rng.choice((*given["descriptions"], skill.description))
    fields = given.get("fields", {})
    options = {key: each["names"] for key, each in fields.items()} or given.get("keys", {})
    keys = {key: rng.choice(names) if rng.random() < 0.5 else key for key, names in options.items()}
    intents = {one: rng.choice((one, *others)) for one, others in given.get("intents", {}).items()}
    script = rng.choice(_SCRIPTS)
    if fields and rng.random() < 0.7:
        texts = [_FieldText(keys[key], each["meaning"], each["example"]) for key, each in fields.items()]
        target = next(iter(intents.values()), None)
        body = _instructions(name, script, target, texts, rng)
    else:
        body = _renamed(skill, name, script, keys, intents)
    return Form(skill.name, Skill(name, description, body), script, keys, intents)


def _renamed(skill: Skill, name: str, script: str, keys: Mapping[str, str], intents: Mapping[str, str]) -> str:
    """The shipped instructions with other names in them."""
    body = skill.body.replace(skill.name, name).replace("index.html", script)
    for old, new in intents.items():
        body = body.replace(old, new)
    pattern = "|".join(rf'(?<="){key}(?=")|(?<=`){key}(?=`)|(?<=- ){key}(?=:)' for key in keys)
    return re.sub(pattern, lambda match: keys[match[0]], body) if keys else body


_MANNERS = (
    "Call {tool} with {target} and {argument}, a JSON string like {example}.\n\n{bullets}",
    "# {title}\n\n## How to\n\nUse the `{tool}` tool:\n\n- {where}\n- {argument}: a JSON string with\n{bullets}",
    "# {title}\n\nOne call of `{tool}` does it, with {where} and these fields as a JSON string in `{argument}`:\n\n"
    "{ticked}",
    "Steps:\n1. Take from what the user says:\n{bullets}\n2. Call {tool} ({target}); {argument} is JSON text such as "
    "{example}.\n3. Say the result in one sentence.",
    "{title}.\n\ntool: {tool}\n{where}\n{argument}: {example}\n\n{bullets}",
    "There is one tool for this, {tool}.\n{ticked}\n\nPass them as a JSON string in {argument}, with {target}.",
)
"""Manners of writing instructions. Not all name the skill or show an example: others' skills often do not."""


def _instructions(name: str, script: str, intent: str | None, fields: Sequence[_FieldText], rng: random.Random) -> str:
    """Instructions in one of several manners, for a skill with one call: a script's, or an intent's."""
    lines = [f"{each.key}: {each.meaning}. {each.kind}." for each in fields]
    return rng.choice(_MANNERS).format(
        tool="run_intent" if intent else "run_js",
        argument="parameters" if intent else "data",
        target=f"intent {intent}" if intent else f"skill_name {name}, script_name {script}",
        where=f"intent: `{intent}`" if intent else f"script name: `{script}`",
        title=name.replace("-", " ").replace("_", " ").capitalize(),
        example=dumps({each.key: each.example for each in fields}),
        bullets="\n".join(f"  - {line}" for line in lines),
        ticked="\n".join(f"- `{line.replace(':', '`:', 1)}" for line in lines),
    )


class Slot(NamedTuple):
    """A slot of the catalogue, as the field of a made-up skill."""

    names: tuple[str, ...]
    """What the field may be called."""
    meaning: str
    example: JSON


SLOTS: dict[str, Slot] = {
    "amount": Slot(("amount", "value", "number", "quantity"), "the amount, the first if there are two", 12.5),
    "amount2": Slot(("other_amount", "second", "number2"), "the second amount that the user names", 3),
    "name": Slot(("name", "person", "who", "contact"), "the name, the first if there are two", "Anna"),
    "name2": Slot(("other_name", "person2", "with"), "the second name that the user says", "Ben"),
    "city": Slot(("city", "place", "location", "town", "from"), "the city, the first if there are two", "Rome"),
    "city2": Slot(("other_city", "destination", "to"), "the second city that the user names", "Oslo"),
    "time": Slot(("time", "at", "when", "clock"), "the time as the user says it", "7:30"),
    "text": Slot(("text", "content", "input", "sentence"), "the user's text, copied", "Good day"),
    "phone": Slot(("phone", "number", "phone_number"), "the phone number", "555-0100"),
    "email": Slot(("email", "address", "mail", "email_address"), "the e-mail address", "ana@example.org"),
    "title": Slot(("title", "subject", "heading", "topic", "called"), "the title", "The blue door"),
    "date": Slot(("date", "day", "on", "due"), "the date as the user says it", "3 May"),
    "small": Slot(("count", "how_many", "number", "n"), "how many, the first number if there are two", 4),
    "small2": Slot(("other_count", "second_number", "n2", "score2"), "the second number that the user names", 7),
}
"""Every slot that a pattern of the catalogue may have."""


def made_up(entry: Listed, rng: random.Random) -> Form:
    """A form for a runnable skill that is only listed: a field for each slot of its patterns, one call, any manner."""
    used = [slot for slot in SLOTS if slot in slots(entry.patterns[0])]
    rng.shuffle(used)
    keys: dict[str, str] = {}
    for slot in used:
        keys[slot] = rng.choice([name for name in SLOTS[slot].names if name not in keys.values()])
    texts = [_FieldText(keys[slot], SLOTS[slot].meaning, SLOTS[slot].example) for slot in used]
    intent = re.sub(r"[\W_]+", "_", entry.name) if rng.random() < 0.25 else None
    script = rng.choice(_MADE_UP_SCRIPTS)
    body = _instructions(entry.shown, script, intent, texts, rng)
    intents = {} if intent is None else {"": intent}
    return Form(entry.name, Skill(entry.shown, entry.description, body), script, keys, intents)
