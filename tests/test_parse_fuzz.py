"""The parser on text that nobody would write: it answers, whatever it reads, and in time."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings

from hermes import Final, Malformed, ToolCalls, get_dialect
from hermes.dialects import FinishReason, Policy

DIALECT = get_dialect("hermes")
INPUTS = 200 * settings().max_examples
"""A million in the long profile."""
PARTS = (
    *("<tool_call>", "</tool_call>", "<|im_end|>", "<think>", "</think>", "<tool_", "</", "<"),
    *("`", "```", "```json\n", "\n", " ", '"', "'", "“", "”", "\\", "\\u", "\\ud83d", "\\u0000", "\x00", "\ud83d"),
    *("{", "}", "[", "]", ",", ":", "(", ")", "name", "arguments", "parameters", "null", "True", "NaN", "1e999"),
    *(
        '"name": "f"',
        '"arguments": ',
        '{"name": "f", "arguments": {}}',
        "{'name': 'f', 'arguments': {}}",
        "é",
        "9" * 5000,
        '<tool_call>{"name": "f", "arguments": {}}</tool_call>',
    ),
)


@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_every_text_is_read_as_one_of_three(policy: Policy) -> None:
    rng = random.Random(policy)
    reasons: tuple[FinishReason, ...] = ("stop", "length")
    kinds = set()
    for _ in range(INPUTS // 2):
        text = "".join(rng.choices(PARTS, k=rng.randrange(12)))
        reply = DIALECT.parse(text, policy=policy, finish_reason=rng.choice(reasons))
        assert isinstance(reply, Final | ToolCalls | Malformed) and reply.raw == text
        kinds.add(type(reply))
    assert kinds == {Final, ToolCalls, Malformed}


@pytest.mark.parametrize(
    "unit",
    [
        "<tool_call>",
        "</tool_call>",
        '<tool_call>{"a": "',
        '<tool_call>\\"',
        "`<tool_call>x",
        '"<tool_call>x',
        "<think>",
        "{",
        '<tool_call>["',
        '<tool_call>{"name": "f", "arguments": {}}</tool_call>',
        "<tool_call>{'a': ",
        "{} ",
        "\n```",
    ],
)
@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_a_megabyte_of_anything_is_read(unit: str, policy: Policy) -> None:
    """Were the time not in proportion to the length, this would not come to an end."""
    text = unit * (1_000_000 // len(unit))
    for whole in (text, f"<tool_call>{text}</tool_call>"):
        reply = DIALECT.parse(whole, policy=policy)
        assert isinstance(reply, Final | ToolCalls | Malformed)
