"""Agent Skills conversations, made rather than collected: request, `load_skill`, `run_js` or `run_intent`, answer.

`generate` is deterministic, and asking for more conversations only appends: the first ones stay the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from data.phrases import CORES, phrase
from data.phrases_none import NONE_CORES
from data.skill_library import shipped_skills, system_prompt
from data.skill_results import run_intent_result, run_js_result
from data.units import PAIRS, SPELLINGS
from data.values import Split, Values
from hermes import Conversation, Message, Skill, ToolCall, dumps
from hermes.gallery_tools import GALLERY_TOOLS, NO_SKILL_ANSWER

SOURCE = "hermes-edge"
LICENSE = "Apache-2.0"
SKILL_NAMES = ("text-message", "unit-converter", "word-counter")

_LISTINGS: tuple[tuple[str, ...], ...] = (
    ("text-message", "unit-converter", "word-counter"),
    ("unit-converter", "word-counter", "text-message"),
    ("word-counter", "text-message", "unit-converter"),
    ("unit-converter", "text-message"),
    ("word-counter", "unit-converter"),
    ("text-message", "word-counter"),
)
"""Skill lists that the prompts show. They are few, since conversations with one prompt are trained together."""

_Plan = Literal["call", "opening", "near", "far", "unlisted"]
_Block = tuple[tuple[_Plan, str | None], ...]
_HELD_OUT: _Block = (
    *(("call", name) for name in SKILL_NAMES for _ in range(6)),
    *((plan, None) for plan in ("near", "far", "unlisted") for _ in range(2)),
)
_BLOCKS: dict[Split, _Block] = {
    "train": (
        *(("call", name) for name in SKILL_NAMES for _ in range(2)),
        *(("opening", name) for name in SKILL_NAMES for _ in range(3)),
        *(("near", None), ("far", None), ("unlisted", None)) * 3,
    ),
    "validation": _HELD_OUT,
    "test": _HELD_OUT,
}
"""What 24 conversations in a row are, in shuffled order.

Where a skill serves, an opening ends with `load_skill`: which skill a request needs takes many phrasings to learn,
what follows takes few, and is ten times as long. With a quarter of requests without a skill the tuned model called
something for most of those.
"""

_TRIES = 200


@dataclass(frozen=True)
class _Request:
    """A user's text, and what it was made from."""

    text: str
    template: str
    values: dict[str, str]
    """Each slot's value, in the request as in the call."""


def generate(split: Split, count: int, seed: int) -> list[Conversation]:
    """`count` conversations of `split`, no two with the same user text.

    The phrasings and the open values of a split occur in no other split.
    """
    return list(generate_each(split, count, seed))


def generate_each(split: Split, count: int, seed: int) -> Iterator[Conversation]:
    """The conversations of `generate`, each as soon as it is made."""
    texts: set[str] = set()
    for index, (plan, skill) in zip(range(count), _plans(split, seed), strict=False):
        for attempt in range(_TRIES):
            rng = random.Random(f"{seed}/{split}/{index}/{attempt}")
            conversation = _make(f"agent_skills/{split}/{index:04d}", split, plan, skill, rng)
            text = str(conversation.messages[1].content)
            if text not in texts:
                break
        else:
            raise ValueError(f"no {count} different requests can be made for split {split!r}; ask for fewer")
        texts.add(text)
        yield conversation


def _plans(split: Split, seed: int) -> Iterator[tuple[_Plan, str | None]]:
    """What each conversation is, without end."""
    rng = random.Random(f"{seed}/{split}/plans")
    while True:
        yield from rng.sample(_BLOCKS[split], len(_BLOCKS[split]))


def _make(identity: str, split: Split, plan: _Plan, skill: str | None, rng: random.Random) -> Conversation:
    if skill is not None:
        return _call_conversation(identity, split, skill, rng, opening=plan == "opening")
    if plan == "unlisted":
        asked = rng.choice(SKILL_NAMES)
        listing = rng.choice([names for names in _LISTINGS if asked not in names])
        request = _skill_request(asked, split, rng)
    else:
        listing = rng.choice(_LISTINGS)
        request = _other_request(plan, split, rng)
    messages = (*_opening(listing, request), Message("assistant", NO_SKILL_ANSWER))
    return _conversation(identity, messages, request, None, dict(request.values), [NO_SKILL_ANSWER])


def _call_conversation(identity: str, split: Split, skill: str, rng: random.Random, opening: bool) -> Conversation:
    pairs = [names for names in _LISTINGS if skill in names and len(names) == 2]
    whole = [names for names in _LISTINGS if len(names) == len(SKILL_NAMES)]
    listing = rng.choice(pairs if rng.random() < 0.3 else whole)
    request = _skill_request(skill, split, rng)
    load = Message("assistant", calls=(ToolCall("load_skill", {"skill_name": skill}),))
    if opening:
        return _conversation(identity, (*_opening(listing, request), load), request, skill, dict(request.values), [])
    fields = _fields(skill, request.values)
    call, result = _call_and_result(skill, dumps(fields))
    answer, facts = _answer(skill, request.values, result)
    messages = (
        *_opening(listing, request),
        load,
        Message("tool", _skills()[skill].load_result(), name="load_skill"),
        Message("assistant", calls=(call,)),
        Message("tool", result, name=call.name),
        Message("assistant", answer),
    )
    return _conversation(identity, messages, request, skill, {**request.values, **fields}, facts)


def _opening(listing: tuple[str, ...], request: _Request) -> tuple[Message, Message]:
    prompt = system_prompt([_skills()[name] for name in listing])
    return Message("system", prompt), Message("user", request.text)


def _conversation(
    identity: str,
    messages: tuple[Message, ...],
    request: _Request,
    skill: str | None,
    values: dict[str, object],
    facts: list[str],
) -> Conversation:
    notes = {
        "kind": "none" if skill is None else "call" if facts else "opening",
        "skill": skill,
        "template": request.template,
        "values": values,
        "facts": facts,
    }
    return Conversation(messages, GALLERY_TOOLS, identity, SOURCE, LICENSE, notes)


@cache
def _skills() -> dict[str, Skill]:
    return {skill.name: skill for skill in shipped_skills()}


def _skill_request(skill: str, split: Split, rng: random.Random) -> _Request:
    """A request that `skill` serves."""
    cores = CORES[skill][split]
    number = rng.randrange(len(cores))
    draw = Values(split, rng)
    if skill == "unit-converter":
        source, target = rng.choice(PAIRS)
        number_text = draw.number(source in ("celsius", "fahrenheit"))
        values = {"value": number_text, "from": _spelled(source, rng), "to": _spelled(target, rng)}
    elif skill == "word-counter":
        values = {"text": draw.text()}
    else:
        values = {"phone_number": draw.phone(), "sms_body": draw.message()}
        if "{name}" in cores[number]:
            values["name"] = draw.name()
    return _Request(phrase(cores[number], values, rng), f"{skill}/{split}/{number:02d}", values)


def _spelled(unit: str, rng: random.Random) -> str:
    """`unit` as somebody writes it."""
    return rng.choice((unit, *SPELLINGS[unit]))


def _other_request(plan: str, split: Split, rng: random.Random) -> _Request:
    """A request that no skill serves."""
    cores = NONE_CORES[plan][split]
    number = rng.randrange(len(cores))
    draw = Values(split, rng)
    makers = {
        "amount": draw.number,
        "amount2": draw.number,
        "name": draw.name,
        "name2": draw.name,
        "city": draw.city,
        "city2": draw.city,
        "phone": draw.phone,
        "time": draw.time,
        "text": draw.text,
    }
    values = {slot: make() for slot, make in makers.items() if f"{{{slot}}}" in cores[number]}
    return _Request(phrase(cores[number], values, rng), f"none/{plan}/{split}/{number:02d}", values)


def _fields(skill: str, values: dict[str, str]) -> dict[str, object]:
    """The object that is passed to the skill, in the order of its SKILL.md."""
    if skill == "unit-converter":
        return {"value": json.loads(values["value"]), "from": values["from"], "to": values["to"]}
    if skill == "word-counter":
        return {"text": values["text"]}
    return {"phone_number": values["phone_number"], "sms_body": values["sms_body"]}


def _call_and_result(skill: str, data: str) -> tuple[ToolCall, dict[str, str]]:
    if skill == "text-message":
        arguments = {"intent": "send_sms", "parameters": data}
        return ToolCall("run_intent", arguments), run_intent_result("send_sms", data)
    arguments = {"skill_name": skill, "script_name": "index.html", "data": data}
    return ToolCall("run_js", arguments), run_js_result(skill, data)


def _answer(skill: str, values: dict[str, str], result: dict[str, str]) -> tuple[str, list[str]]:
    """The final sentence, and the facts that it must hold."""
    if skill == "text-message":
        number = values["phone_number"]
        return f"Your message to {number} is ready to send.", [number]
    before, _, after = result["result"].partition(" = " if skill == "unit-converter" else ", ")
    if skill == "unit-converter":
        return f"{before} is {after}.", after.split(" ")
    return f"Your text has {before} and {after}.", [before, after]
