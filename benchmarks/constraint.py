"""What a constraint costs and whether it holds: `python -m benchmarks.constraint --bundle FILE`.

    --pairs 20         interleaved pairs of replies with and without the constraint, for 1, 8 and 32 tools
    --generations 1000 calls at temperature 1 of random tools, each opened by the sentinel
    --texts 200        prompts for free text, whose answers must be the same with and without the constraint

A count of 0 leaves a part out. Prints Markdown; exits with 1 if a call does not parse or validate, a text
differs, or too few answers were text.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.made_tools import random_tools, weather_tools
from benchmarks.paired import Ratio, ratio
from core.console import progress
from core.errors import UserError
from hermes import Conversation, Message, Tool, ToolCalls, text_of, validate_call
from hermes.grammar import lint
from runtime.backend import Completion
from runtime.bundle_tokenizer import bundle_tokenizer
from runtime.constraint import compiled
from runtime.litert_backend import LiteRTBackend
from runtime.raw_text import Sampling

TOOL_COUNTS = (1, 8, 32)
TOPICS = ("the sea", "bread", "a violin", "Zürich", "rain", "chess", "the moon", "tea", "bicycles", "the number 7")
QUESTIONS = (
    "Say one sentence about {}.",
    "What do you know about {}?",
    "Write two lines of a poem about {}.",
    "Why do people like {}?",
    "Explain {} to a child.",
    "Give me three words about {}.",
    "Is {} old or new?",
    "Tell me a joke about {}.",
    "What is the opposite of {}?",
    "Who could write a book about {}?",
    "Compare {} with a stone.",
    "Name a colour for {}.",
    "How would you draw {}?",
    "What would you ask {}?",
    "Where does one find {}?",
    "When did you last think of {}?",
    "Describe {} in a letter.",
    "What does {} sound like?",
    "Begin a story with {}.",
    "Finish this: I need {} because",
)


def prompt_for(backend: LiteRTBackend, tools: Sequence[Tool], text: str) -> str:
    """A prompt that offers `tools`."""
    asked = Conversation((Message("user", text),), tuple(tools))
    return text_of(backend.dialect.render(asked, add_generation_prompt=True))


@dataclass(frozen=True)
class Cost:
    """Replies with the constraint against the same without it."""

    decoding: Ratio
    """Time of a token."""
    starting: float
    """Seconds more that a reply takes outside prefill and decoding, mean."""
    same: int
    """Pairs with the same text."""


def cost(backend: LiteRTBackend, tools: Sequence[Tool], required: bool, pairs: int) -> Cost:
    """Time pairs of replies: calls under a constraint that allows nothing else, or text under the usual one."""
    facts = bundle_tokenizer(backend.bundle)
    regex = compiled(tools, backend.dialect, facts, "required" if required else "auto")
    with_it: list[float] = []
    without: list[float] = []
    extra: list[float] = []
    same = 0
    for number in range(-1, pairs):
        text = "What is the weather in Paris for three days?" if required else QUESTIONS[number % len(QUESTIONS)]
        prompt = prompt_for(backend, tools, text.format(TOPICS[number % len(TOPICS)]))
        # Who goes first changes, and the first pair only warms up.
        order = (regex, None) if number % 2 else (None, regex)
        seconds: dict[str | None, tuple[float, float, str]] = {}
        for each in order:
            completion = backend.complete_prompt(prompt, regex=each)
            seconds[each] = (*_times(backend, completion), completion.text)
        if number >= 0:
            with_it.append(seconds[regex][0])
            without.append(seconds[None][0])
            extra.append(seconds[regex][1] - seconds[None][1])
            same += seconds[regex][2] == seconds[None][2]
    return Cost(ratio(with_it, without), sum(extra) / len(extra), same)


def _times(backend: LiteRTBackend, completion: Completion) -> tuple[float, float]:
    """Seconds of a decoded token, and seconds that went neither into prefill nor into decoding."""
    speed = backend.speed
    assert speed is not None
    prefill = speed.prompt_tokens / speed.prompt_tokens_per_second
    token = 1 / speed.new_tokens_per_second
    return token, completion.seconds - prefill - token * speed.new_tokens


def costs(backend: LiteRTBackend, pairs: int) -> Iterator[str]:
    """The table of costs."""
    yield "| tools | reply | time of a token, with / without | upper 95% bound | seconds more a reply | same text |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for count in TOOL_COUNTS:
        for required in (False, True):
            found = cost(backend, weather_tools(count), required, pairs)
            shown = f"{found.decoding.mean:.3f} | {found.decoding.upper:.3f} | {found.starting:.3f}"
            yield f"| {count} | {'call' if required else 'text'} | {shown} | {found.same}/{pairs} |"


@dataclass
class Tally:
    """What constrained generations gave."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """The first calls that do not parse or validate, with their seed."""


def enforced(tool: Tool) -> Tool:
    """`tool` without the keywords that `lint` reports as not enforced."""
    schema: Any = copy.deepcopy(dict(tool.parameters))
    for finding in lint([tool]):
        place: Any = schema
        for part in finding.pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            place = place[int(key)] if isinstance(place, list) else place.get(key, {})
        if isinstance(place, dict):
            place.pop(finding.keyword, None)
    return Tool(tool.name, tool.description, schema)


def generate_calls(backend: LiteRTBackend, count: int, seed: int, temperature: float) -> Tally:
    """Ask for `count` calls, each of another set of tools, and judge what was written."""
    tally = Tally()
    facts = bundle_tokenizer(backend.bundle)
    with progress("generations") as advance:
        for number in range(seed, seed + count):
            tools = random_tools(number)
            regex = compiled(tools, backend.dialect, facts, "required")
            prompt = prompt_for(backend, tools, f"Call {tools[-1].name}.")
            completion = backend.complete_prompt(
                prompt, f"seed {number}", regex=regex, sampling=Sampling(temperature, number)
            )
            outcome = judge(backend, completion, tools)
            tally.counts[outcome] += 1
            if outcome.startswith("does not") and len(tally.wrong) < 10:
                tally.wrong.append(f"seed {number}: {outcome}: {completion.text!r}")
            advance(number - seed + 1, count, "")
    return tally


def judge(backend: LiteRTBackend, completion: Completion, tools: Sequence[Tool]) -> str:
    """What a reply is that must be calls of `tools`."""
    if completion.finish_reason == "length":
        return "cut by the limit"
    reply = backend.dialect.parse(completion.text, tools)
    if not isinstance(reply, ToolCalls) or reply.malformed or reply.text.strip():
        return "does not parse"
    kept = [enforced(tool) for tool in tools]
    if any(validate_call(call, kept) for call in reply.calls):
        return "does not validate"
    fully = not any(validate_call(call, tools) for call in reply.calls)
    return "valid" if fully else "valid but for keywords that lint reports"


def text_prompts(backend: LiteRTBackend, most: int) -> Iterator[str]:
    """Up to `most` prompts, with and without tools; in two of three the answer is begun, so that text goes on."""
    tools = weather_tools(8)
    for number in range(most):
        question = QUESTIONS[number % len(QUESTIONS)].format(TOPICS[number // len(QUESTIONS) % len(TOPICS)])
        yield prompt_for(backend, tools if number % 2 else (), question) + ("Well, I think that" if number % 3 else "")


def same_texts(backend: LiteRTBackend, count: int) -> Tally:
    """Greedy answers with the constraint of eight tools and without it, until `count` were free text."""
    tally = Tally()
    regex = compiled(weather_tools(8), backend.dialect, bundle_tokenizer(backend.bundle))
    with progress("texts") as advance:
        for prompt in text_prompts(backend, 4 * count):
            free = backend.complete_prompt(prompt).text
            if backend.dialect.syntax.opening in free:
                tally.counts["no free text: a call"] += 1
                continue
            held = backend.complete_prompt(prompt, regex=regex).text
            tally.counts[_SAME if free == held else "differs"] += 1
            if free != held and len(tally.wrong) < 10:
                tally.wrong.append(f"{prompt[-200:]!r}: {free!r} became {held!r}")
            compared = tally.counts[_SAME] + tally.counts["differs"]
            advance(compared, count, "")
            if compared == count:
                return tally
    tally.wrong.append(f"not checked: fewer than {count} answers were free text")
    return tally


_SAME = "the same"


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, required=True, help="a .litertlm file of the hermes dialect")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--generations", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first set of tools")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--limit", type=int, default=256, help="tokens of a generation")
    parser.add_argument("--cost-limit", type=int, default=48, help="tokens of a timed reply or a text")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    wrong: list[str] = []
    try:
        with LiteRTBackend(given.bundle, max_new_tokens=given.cost_limit, threads=given.threads) as backend:
            if given.pairs:
                for line in costs(backend, given.pairs):
                    print(line, flush=True)
            if given.texts:
                wrong += _report("texts", same_texts(backend, given.texts))
            backend.max_new_tokens = given.limit
            if given.generations:
                wrong += _report(
                    "generations", generate_calls(backend, given.generations, given.seed, given.temperature)
                )
    except UserError as error:
        sys.exit(str(error))
    sys.exit(1 if wrong else 0)


def _report(title: str, tally: Tally) -> list[str]:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in tally.counts.most_common())
    print("\n".join([f"\n{title}: {counts}", *tally.wrong]), flush=True)
    return tally.wrong


if __name__ == "__main__":
    main()
