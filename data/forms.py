"""How a skill is presented: its name, its listing, its instructions, what its fields are called.

A skill that ships has its own form. Others are made from `requests/forms.yaml`, and wholly for skills that are
only listed: a model that has seen a dozen forms of one skill learns to read instructions, not to recite them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from data.requests import FOLDER
from hermes import Skill, ToolCall, dumps
from hermes.record import JSON

_SCRIPTS = ("index.html", "index.html", "index.html", "run.html", "main.html", "query.html")


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
class FieldText:
    """A field as instructions describe it."""

    key: str
    meaning: str
    example: JSON
    optional: bool = False

    @property
    def kind(self) -> str:
        """The JSON type's name as instructions have it."""
        if isinstance(self.example, bool):
            return "Boolean"
        return "String" if isinstance(self.example, str) else "Number"


def variant(skill: Skill, rng: random.Random, rename: Callable[[str], str] = str) -> Form:
    """Another form of a shipped skill: other name and description, often other fields and other instructions.

    Args:
        rename: what is done to the other name.
    """
    given = _forms()[skill.name]
    name, description = rename(rng.choice(given["names"])), rng.choice((*given["descriptions"], skill.description))
    fields = given.get("fields", {})
    options = {key: each["names"] for key, each in fields.items()} or given.get("keys", {})
    keys = {key: rng.choice(names) if rng.random() < 0.5 else key for key, names in options.items()}
    intents = {one: rng.choice((one, *others)) for one, others in given.get("intents", {}).items()}
    script = rng.choice(_SCRIPTS)
    if fields and rng.random() < 0.7:
        texts = [FieldText(keys[key], each["meaning"], each["example"]) for key, each in fields.items()]
        target = next(iter(intents.values()), None)
        body = instructions(name, script, target, texts, rng)
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


@cache
def _forms() -> dict[str, Any]:
    forms: dict[str, Any] = yaml.safe_load((FOLDER / "forms.yaml").read_text(encoding="utf-8"))
    return forms


_MANNERS = (
    "Call {tool} with {target} and {argument}, a JSON string like {example}.\n\n{bullets}",
    "# {title}\n\n## How to\n\nUse the `{tool}` tool:\n\n- {where}\n- {argument}: a JSON string with\n{bullets}",
    "# {title}\n\nOne call of `{tool}` does it, with {where} and these fields as a JSON string in `{argument}`:\n\n"
    "{ticked}",
    "Steps:\n1. Take {keys} from what the user says.\n2. Call {tool} ({target}); {argument} is JSON text such as "
    "{example}.\n3. Say the result in one sentence.",
    "{title}.\n\ntool: {tool}\n{where}\n{argument}: {example}\n\n{bullets}",
    "There is one tool for this, {tool}.\n{ticked}\n\nPass them as a JSON string in {argument}, with {target}.",
)
"""Manners of writing instructions. Not all name the skill or show an example: others' skills often do not."""


def instructions(name: str, script: str, intent: str | None, fields: Sequence[FieldText], rng: random.Random) -> str:
    """Instructions in one of several manners, for a skill with one call: a script's, or an intent's."""
    lines = [f"{each.key}: {each.meaning}. {each.kind}{', optional' * each.optional}." for each in fields]
    text = rng.choice(_MANNERS).format(
        tool="run_intent" if intent else "run_js",
        argument="parameters" if intent else "data",
        target=f"intent {intent}" if intent else f"skill_name {name}, script_name {script}",
        where=f"intent: `{intent}`" if intent else f"script name: `{script}`",
        title=name.replace("-", " ").replace("_", " ").capitalize(),
        example=dumps({each.key: each.example for each in fields if not each.optional or len(fields) == 1}),
        keys=", ".join(each.key for each in fields),
        bullets="\n".join(f"  - {line}" for line in lines),
        ticked="\n".join(f"- `{line.replace(':', '`:', 1)}" for line in lines),
    )
    return f"{text}\n\nLeave out what the user does not say." if any(each.optional for each in fields) else text


def shipped(skill: Skill) -> Form:
    """A shipped skill in its own form."""
    return Form(skill.name, skill)
