"""The gate "constraint active": asked for an illegal call, the bundle writes one, and under the constraint cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Literal

from export.constraint import TOOLS_OF_BUILDER
from export.gates import Figure, Outcome, judge, not_checked
from hermes import Conversation, Dialect, Malformed, Message, Tool, ToolCall, ToolCalls, text_of, validate_call
from hermes.grammar import compile as compile_grammar
from hermes.grammar.regex import Alphabet
from runtime.backend import Completion
from runtime.bundle_tokenizer import bundle_tokenizer
from runtime.litert_backend import LiteRTBackend

if TYPE_CHECKING:
    from export.gates import Subject

Written = Literal["legal", "illegal", "broken", "cut", "no call"]
ENOUGH = 4
"""Illegal calls to see prevented before no more prompts are tried."""
LONGEST = 64
"""Tokens of a reply; a call of the tools that are offered here takes about 25."""

_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ILLEGAL_TOOLS = (Tool("no_such_tool", "Tells the weather of a city.", _CITY), Tool("get_weather", "Weather.", _CITY))
"""Offered in the prompts and unknown to the constraint."""
_CITIES = ("Paris", "Oslo", "Rome", "Lima")


def constraint_active(subject: Subject) -> Outcome:
    """Ask for calls that the constraint of the recipe's tools does not know.

    Every prompt is asked with the opening sentinel already written, and as it is, each without the constraint, and with
    it if an illegal call came. Only such prompts can show anything; without one, nothing was checked.
    """
    if subject.recipe.export.constraint == "none":
        return not_checked("the recipe says `export.constraint: none`")
    tools = TOOLS_OF_BUILDER[subject.recipe.data.builder]
    return check_active(subject.backend, tools, bundle_tokenizer(subject.bundle).alphabet)


def check_active(backend: LiteRTBackend, tools: Sequence[Tool], alphabet: Alphabet) -> Outcome:
    """As `constraint_active`, for a loaded bundle and the tools that the constraint is for."""
    dialect, opening = backend.dialect, backend.dialect.sentinels[0]
    grammar = compile_grammar(tools, dialect)
    whole = grammar.regex(alphabet)
    opened = grammar.after_opening.regex(alphabet) if opening else whole
    free: Counter[Written] = Counter()
    held: Counter[Written] = Counter()
    examples: list[str] = []
    before, backend.max_new_tokens = backend.max_new_tokens, LONGEST
    try:
        for prompt, (start, regex) in product(
            illegal_prompts(dialect), dict.fromkeys(((opening, opened), ("", whole)))
        ):
            if free["illegal"] < ENOUGH:
                without = backend.complete_prompt(prompt + start)
                written = read(dialect, start, without, tools)
                free[written] += 1
                if written == "illegal":
                    under = backend.complete_prompt(prompt + start, regex=regex)
                    held[read(dialect, start, under, tools)] += 1
                    examples = examples or [start + without.text, start + under.text]
    finally:
        backend.max_new_tokens = before
    figures: dict[str, Figure] = {
        "prompts": free.total(),
        "illegal calls without the constraint": free["illegal"],
        **{f"{words} with the constraint": held[kind] for kind, words in _WORDS.items()},
        **dict(zip(("written without", "written with"), examples, strict=False)),
    }
    if not free["illegal"]:
        return not_checked(f"the model wrote no illegal call without the constraint in {free.total()} prompts", figures)
    return judge(figures, at_most={f"{_WORDS[kind]} with the constraint": 0 for kind in ("illegal", "broken")})


_WORDS: dict[Written, str] = {
    "illegal": "illegal calls",
    "broken": "broken calls",
    "legal": "legal calls",
    "cut": "replies cut",
    "no call": "texts",
}


def illegal_prompts(dialect: Dialect) -> Iterator[str]:
    """Prompts that ask for a call of a tool that only they declare, alone and after turns that made such calls."""
    for tool in ILLEGAL_TOOLS:
        turns: list[Message] = [Message("system", f"Answer with a call of {tool.name}.")]
        for city in _CITIES:
            asked = Message("user", f"What is the weather in {city}?")
            yield text_of(dialect.render(Conversation((*turns, asked), (tool,)), add_generation_prompt=True))
            call = Message("assistant", calls=(ToolCall(tool.name, {"city": city}),))
            turns += [asked, call, Message("tool", {"sky": "clear"}, name=tool.name), Message("assistant", "Clear.")]


def read(dialect: Dialect, start: str, written: Completion, tools: Sequence[Tool]) -> Written:
    """What a reply is that begins with `start`; a call is illegal if `tools` do not take it."""
    reply = dialect.parse(start + written.text, tools, finish_reason=written.finish_reason)
    if isinstance(reply, ToolCalls):
        if any(validate_call(call, tools) for call in reply.calls):
            return "illegal"
        return "broken" if reply.malformed else "legal"
    if written.finish_reason == "length":
        return "cut"
    return "broken" if isinstance(reply, Malformed) else "no call"
