"""Agent Skills conversations, made rather than collected: request, `load_skill`, `run_js` or `run_intent`, answer.

`generate` is deterministic, and asking for more conversations only appends: the first ones stay the same.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from data.forms import SLOTS, Form, made_up
from data.phrases import expand, phrase, slots
from data.requests import catalogue, chat, phrasings
from data.tasks import HELD_OUT, TASKS, TRAINED, Episode, Exchange
from data.tasks.task import failed, number
from data.values import Split, Values
from data.worlds import SIZE, World, make_world
from hermes import Conversation, Message, ToolCall
from hermes.gallery_tools import GALLERY_TOOLS, NO_SKILL_ANSWER

SOURCE = "hermes-edge"
LICENSE = "Apache-2.0"

Plan = Literal["call", "held_out", "opening", "listed_run", "listed_opening", "unlisted", "listed_elsewhere", "chat"]
"""What a conversation is.

call: a skill with a task, to the end. held_out: the same for a skill that training never mentions.
opening: up to `load_skill`. listed_run and listed_opening: a skill of the catalogue, up to its call or its loading.
unlisted, listed_elsewhere, chat: no skill that is listed serves the request, which is one of a shipped skill, one of
the catalogue, or neither.

Where a world leaves no shipped skill unlisted, unlisted is as listed_elsewhere; where it lists none of the catalogue
that can be run, listed_run is as listed_opening.
"""

_TRAINING: dict[Plan, int] = {
    "call": 6, "listed_run": 2, "opening": 3, "listed_opening": 3, "unlisted": 2, "listed_elsewhere": 3, "chat": 1,
}  # fmt: skip
_PLANS: dict[Split, dict[Plan, int]] = {
    "train": _TRAINING,
    "validation": _TRAINING,
    "test": {"call": 22, "held_out": 8, "unlisted": 3, "listed_elsewhere": 4, "chat": 3},
}
"""How often each plan comes in so many conversations in a row, in shuffled order.

An opening is a tenth as long as a whole conversation: which skill a request needs takes many phrasings to learn,
what follows takes fewer.
"""

_EARLIER_REQUEST = 0.1
_FOLLOW_UP = 0.1
_FAILURE = 0.03
"""Shares of conversations that begin with a request without a skill, go on after the answer, or whose call fails."""
_FAILURES = ("Script timed out", "No result from the script", "Network unavailable", "Permission denied")
_CLOSED = frozenset({"small", "small2"})
"""Slots of the catalogue whose values are too few to be split."""
_TRIES = 200


@dataclass(frozen=True)
class _Request:
    """A user's text, and what it was made from."""

    text: str
    pattern: str
    """The phrasing, its alternatives chosen, with its slots."""
    variant: str
    values: dict[str, str]
    closed: frozenset[str] = frozenset()
    """Slots whose values come from a short list."""

    def open_values(self, prefix: str = "") -> dict[str, str]:
        """The values that no other split may have."""
        return {f"{prefix}{slot}": value for slot, value in self.values.items() if slot not in self.closed}


class TooFewRequestsError(ValueError):
    """More conversations are asked for than there are different requests."""


def generate(split: Split, count: int, seed: int, prompts: Sequence[str] = ()) -> list[Conversation]:
    """`count` conversations of `split`, no two with the same user text.

    The phrasings and the open values of a split occur in no other split.
    """
    return list(generate_each(split, count, seed, prompts))


def generate_each(split: Split, count: int, seed: int, prompts: Sequence[str] = ()) -> Iterator[Conversation]:
    """The conversations of `generate`, each as soon as it is made.

    Args:
        prompts: system prompts of the user's, to be used besides ours.
    """
    texts: set[str] = set()
    used: Counter[str] = Counter()
    users = tuple(prompts)
    for index, plan in zip(range(count), _plans(split, seed), strict=False):
        world = _world(split, seed, index // SIZE, users)
        rng = random.Random(f"{seed}/{split}/{index}/skill")
        subject = _subject(plan, world, used, rng)
        for attempt in range(_TRIES):
            rng = random.Random(f"{seed}/{split}/{index}/{attempt}")
            conversation = _Maker(split, world, rng).make(f"agent_skills/{split}/{index:04d}", plan, subject)
            text = "\n".join(str(message.content) for message in conversation.messages if message.role == "user")
            if text not in texts:
                break
        else:
            raise TooFewRequestsError(f"no {count} different requests can be made for split {split!r}; ask for fewer")
        texts.add(text)
        yield conversation


@lru_cache(maxsize=4)
def _world(split: Split, seed: int, number: int, users: tuple[str, ...]) -> World:
    return make_world(split, seed, number, users)


def _plans(split: Split, seed: int) -> Iterator[Plan]:
    """What each conversation is, without end."""
    rng = random.Random(f"{seed}/{split}/plans")
    while True:
        block = [plan for plan, count in _PLANS[split].items() for _ in range(count)]
        yield from rng.sample(block, len(block))


def _subject(plan: Plan, world: World, used: Counter[str], rng: random.Random) -> str:
    """The shipped skill that a conversation is about, of those that `plan` allows the one that came least often.

    Empty where the plan is about none, or the world leaves none.
    """
    tasks = {form.task for form in world.forms}
    if plan in ("call", "opening"):
        names = [name for name in TRAINED if name in tasks]
    elif plan == "held_out":
        names = [name for name in HELD_OUT if name in tasks]
    elif plan == "unlisted":
        rivals = {name for each in world.listed for name in each.like}
        names = [name for name in TRAINED if name not in tasks and name not in rivals]
    else:
        names = []
    if not names:
        return ""
    least = min(used[f"{plan}/{name}"] for name in names)
    name = rng.choice([name for name in names if used[f"{plan}/{name}"] == least])
    used[f"{plan}/{name}"] += 1
    return name


class _Maker:
    """Makes one conversation in a world."""

    def __init__(self, split: Split, world: World, rng: random.Random) -> None:
        self.split, self.world, self.rng = split, world, rng
        self.draw = Values(split, rng)

    def make(self, identity: str, plan: Plan, subject: str) -> Conversation:
        if plan in ("call", "held_out", "opening"):
            form = self.world.form(subject)
            request = self._task_request(subject)
            if plan == "opening":
                return self._conversation(identity, "opening", subject, request, [_load(form.skill.name)])
            return self._call(identity, form, request)
        if plan in ("listed_run", "listed_opening") and self.world.listed:
            return self._listed(identity, plan == "listed_run")
        request = self._other_request(plan, subject)
        answer = Message("assistant", NO_SKILL_ANSWER)
        return self._conversation(identity, "none", "", request, [answer], [NO_SKILL_ANSWER])

    def _call(self, identity: str, form: Form, request: _Request) -> Conversation:
        """A conversation with a shipped skill, to its end or a little beyond."""
        episode = TASKS[form.task].play(form, request.variant, request.values, self.rng)
        if episode.exchanges and self.rng.random() < _FAILURE:
            episode = _with_failure(episode, self.rng.choice(_FAILURES))
        messages = [_load(form.skill.name), _loaded(form)]
        for exchange in episode.exchanges:
            messages += [
                Message("assistant", calls=(exchange.call,)),
                Message("tool", exchange.result, name=exchange.call.name),
            ]
        messages.append(Message("assistant", episode.answer))
        following: _Request | None = None
        # A held-out skill's figures are of that skill alone.
        if form.task not in HELD_OUT and self.rng.random() < _FOLLOW_UP:
            task = self.rng.choice([form.task for form in self.world.forms if form.task in TRAINED])
            following = self._task_request(task)
            messages += [Message("user", following.text), _load(self.world.form(task).skill.name)]
        return self._conversation(identity, "call", form.task, request, messages, episode.facts, following)

    def _listed(self, identity: str, run: bool) -> Conversation:
        """A conversation with a skill of the catalogue, which ends with its loading or, if it can be, with its call."""
        runnable = [each for each in self.world.listed if each.runnable]
        run = run and bool(runnable)
        entry = self.rng.choice(runnable if run else self.world.listed)
        core = expand(self.rng.choice(entry.patterns), self.rng)
        request = self._request(core, "", {})
        messages = [_load(entry.shown)]
        if run:
            form = made_up(entry, self.rng)
            fields = {
                slot: request.values[slot] if isinstance(SLOTS[slot].example, str) else number(request.values[slot])
                for slot in form.keys
            }
            call = form.run_intent("", fields) if form.intents else form.run_js(fields)
            messages += [_loaded(form), Message("assistant", calls=(call,))]
        return self._conversation(identity, "run" if run else "opening", entry.name, request, messages)

    def _other_request(self, plan: Plan, subject: str) -> _Request:
        """A request that no skill of this world serves."""
        if subject:
            return self._task_request(subject)
        if plan == "chat":
            return self._request(self.rng.choice(chat(self.split)), "", {})
        here = {each.name for each in self.world.listed} | {form.task for form in self.world.forms}
        others = [each for each in catalogue(self.split) if each.name not in here and not each.like & here]
        return self._request(self.rng.choice(self.rng.choice(others).patterns), "", {})

    def _task_request(self, task: str) -> _Request:
        patterns = phrasings(task, self.split)
        variant = self.rng.choice(sorted(patterns))
        return self._request(self.rng.choice(patterns[variant]), variant, TASKS[task].values(self.draw, variant), task)

    def _request(self, pattern: str, variant: str, values: Mapping[str, str], task: str = "") -> _Request:
        """The request of a pattern; values that no task gives are drawn."""
        core = expand(pattern, self.rng)
        given = dict(values) or {slot: self._value(slot) for slot in sorted(slots(core))}
        if task:
            unsaid = TASKS[task].spoken - slots(core)
            given = {slot: value for slot, value in given.items() if slot not in unsaid}
        closed = TASKS[task].closed if task else _CLOSED
        return _Request(phrase(core, given, self.rng), core, variant, given, closed)

    def _value(self, slot: str) -> str:
        """A value for a slot of the catalogue or of `chat`; a 2 at its end only tells it from its twin."""
        draw = self.draw
        draws: dict[str, Callable[[], str]] = {
            "amount": draw.number, "phone": draw.phone, "time": draw.time, "text": draw.text, "name": draw.name,
            "city": draw.city, "email": draw.email, "date": draw.date, "title": draw.subject,
            "small": lambda: str(self.rng.randint(2, 12)),
        }  # fmt: skip
        return draws[slot.rstrip("2")]()

    def _conversation(
        self,
        identity: str,
        kind: str,
        skill: str,
        request: _Request,
        messages: Sequence[Message],
        facts: Sequence[str] = (),
        following: _Request | None = None,
    ) -> Conversation:
        before: list[Message] = []
        requests = {"": request, **({"then_": following} if following else {})}
        if self.rng.random() < _EARLIER_REQUEST:
            earlier = self._request(self.rng.choice(chat(self.split)), "", {})
            before = [Message("user", earlier.text), Message("assistant", NO_SKILL_ANSWER)]
            requests["before_"] = earlier
        notes = {
            "kind": kind,
            "skill": skill or None,
            "held_out": skill in HELD_OUT,
            "templates": [each.pattern for each in requests.values()],
            "values": {
                key: text for prefix, each in requests.items() for key, text in each.open_values(prefix).items()
            },
            "facts": list(facts),
        }
        opening = (Message("system", self.world.prompt), *before, Message("user", request.text))
        return Conversation((*opening, *messages), GALLERY_TOOLS, identity, SOURCE, LICENSE, notes)


def _load(name: str) -> Message:
    return Message("assistant", calls=(ToolCall("load_skill", {"skill_name": name}),))


def _loaded(form: Form) -> Message:
    return Message("tool", form.skill.load_result(), name="load_skill")


def _with_failure(episode: Episode, error: str) -> Episode:
    """`episode`, but its last call fails on the phone's side."""
    *before, last = episode.exchanges
    return failed((*before, Exchange(last.call, {"error": error, "status": "failed"})), error)
