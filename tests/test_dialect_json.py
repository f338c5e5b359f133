"""The `json` dialect: prose, or one bare JSON object that is a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dialect_checks import (
    CALL,
    CONVERSATIONS,
    CONVERSATIONS_FOR_MINIJINJA,
    as_parts,
    call,
    check_stream,
    check_template,
    engines,
    raises_in_template,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from hermes import Conversation, Malformed, Message, Tool, ToolCall, ToolCalls, get_dialect, text_of
from hermes.control import neutralise
from hermes.dialects import Policy

DIALECT = get_dialect("json")
POLICIES: tuple[Policy, ...] = ("strict", "lenient")
ADD = Tool(
    "add",
    "Adds.",
    {
        "type": "object",
        "properties": {
            "a": {"type": "number"},
            "b": {"type": ["number", "null"]},
            "unit": {"enum": ["m", "km"]},
            "note": {},
        },
    },
)


A = '{"tool": "a", "args": {}}'
B = '{"tool": "b", "args": {"x": "{"}}'


def test_bytes_of_a_whole_conversation() -> None:
    conversation = Conversation(
        (
            Message("system", "Be brief."),
            Message("user", "1 + 2?"),
            Message("assistant", calls=(call("add", a=1, b="é</tool_call>"),)),
            Message("tool", {"sum": 3}, name="add"),
            Message("assistant", "3"),
        ),
        (ADD, Tool("now")),
    )
    expected = (
        "<|im_start|>system\nBe brief.\n\n"
        'You may answer in prose, OR call exactly one tool by answering only JSON: {"tool": "<name>", "args": {...}}\n'
        'Tools:\n- add(a: number, b: ["number", "null"], unit: ["m", "km"], note: any) — Adds.\n- now()<|im_end|>\n'
        "<|im_start|>user\n1 + 2?<|im_end|>\n"
        '<|im_start|>assistant\n{"tool": "add", "args": {"a": 1, "b": "é<\\/tool_call>"}}<|im_end|>\n'
        '<|im_start|>user\nTOOL RESULT: {"sum": 3}\nNow answer in prose.<|im_end|>\n'
        "<|im_start|>assistant\n3<|im_end|>"
    )
    assert text_of(DIALECT.render(conversation)) == expected
    assert text_of(DIALECT.render(conversation, True)) == expected + "\n<|im_start|>assistant\n"
    trained = [segment.text for segment in DIALECT.render(conversation, True) if segment.trained]
    assert trained == ['{"tool": "add", "args": {"a": 1, "b": "é<\\/tool_call>"}}<|im_end|>', "3<|im_end|>"]
    bare = Conversation((Message("user", "Hi"),))
    assert text_of(DIALECT.render(bare)) == "<|im_start|>user\nHi<|im_end|>"


@given(CONVERSATIONS, st.booleans())
@settings(max_examples=150, deadline=None)
def test_template_renders_the_same_bytes(conversation: Conversation, open_turn: bool) -> None:
    check_template(DIALECT, conversation, open_turn)


@given(CONVERSATIONS_FOR_MINIJINJA, st.booleans())
@settings(max_examples=150, deadline=None)
def test_minijinja_renders_the_same_bytes(conversation: Conversation, open_turn: bool) -> None:
    check_template(DIALECT, conversation, open_turn, pytest.importorskip("minijinja"))


def test_the_tokenizer_renders_the_same_bytes(tokenizer: PreTrainedTokenizerFast) -> None:
    conversation = Conversation(
        (Message("user", "1 <|im_end|> 2?"), Message("assistant", calls=(call("add", a="é<|im_end|>"),))), (ADD,)
    )
    rendered = tokenizer.apply_chat_template(
        [message.to_chat() for message in conversation.messages],
        tools=[ADD.to_openai()],
        chat_template=DIALECT.chat_template(),
        tokenize=False,
    )
    assert rendered == text_of(DIALECT.render(conversation))


@pytest.mark.parametrize("render", engines())
def test_shapes_that_histories_come_in(render: Any) -> None:
    template = DIALECT.chat_template()

    def history(arguments: Any, **content: Any) -> list[dict[str, Any]]:
        function = {"name": "add", "arguments": arguments}
        return [
            {"role": "user", "content": "4+25"},
            {"role": "assistant", "tool_calls": [{"function": function}], **content},
        ]

    expected = '<|im_start|>assistant\n{"tool": "add", "args": {"a": 4, "b": 25}}<|im_end|>'
    for messages in (
        history('{"a": 4, "b": 25}', content=""),  # C27
        history({"a": 4, "b": 25}, content=""),
        history({"a": 4, "b": 25}, content=None),  # C28
        history({"a": 4, "b": 25}),
        history({"a": 4, "b": 25}, content=[]),
    ):
        assert render(template, messages).endswith(expected)
    for nothing in ({}, None, ""):
        assert render(template, history(nothing)).endswith('{"tool": "add", "args": {}}<|im_end|>')
    plain = [{"role": "user", "content": "hi"}]
    assert {render(template, plain, tools) for tools in (None, [])} == {"<|im_start|>user\nhi<|im_end|>"}  # C33
    results = [{"temp": 21, "unit": "C"}, [{"type": "text", "text": "note"}], 0, "", [1, "é"], []]  # C34
    system = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    written = render(template, [system, *({"role": "tool", "content": each} for each in results)])
    turns = ['{"temp": 21, "unit": "C"}', "note", "0", "", '[1, "é"]', "[]"]
    expected_turns = [f"<|im_start|>user\nTOOL RESULT: {each}\nNow answer in prose.<|im_end|>" for each in turns]
    assert written == "\n".join(["<|im_start|>system\nBe brief.<|im_end|>", *expected_turns])
    assert "None" not in written


def test_descriptions_are_written_as_they_are() -> None:
    tool = Tool("t", "查询天气 <°C> & 'now' 😀 naïve\nsecond\tcolumn \"quoted\" C:\\dir")  # C29, C40
    conversation = Conversation((Message("user", "l'été <b>"),), (tool,))
    assert f"- t() — {tool.description}<|im_end|>" in text_of(DIALECT.render(conversation))
    check_template(DIALECT, conversation, True)


def test_a_conversation_without_a_user_is_rendered() -> None:  # C41
    messages = (
        Message("system", "s"),
        Message("assistant", calls=(call("ping"),)),
        Message("tool", "pong"),
        Message("assistant", "up"),
    )
    check_template(DIALECT, Conversation(messages), False)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (Message("assistant", "Wait.", (call("a"),)), "one call: not 1 calls and text"),
        (Message("assistant", "", (call("a"), call("b"))), "one call: not 2 calls"),
    ],
)
def test_more_than_one_call_cannot_be_written(message: Message, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        DIALECT.render(Conversation((Message("user", "u"), message)))
    assert raises_in_template(DIALECT, [message.to_chat()])
    assert raises_in_template(DIALECT, [as_parts(message)])


@given(CALL, st.lists(st.integers(1, 7), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read_back(given_call: ToolCall, sizes: list[int]) -> None:
    text = DIALECT.format_reply(Message("assistant", calls=(given_call,)))
    for policy in POLICIES:
        reply = DIALECT.parse(text + "<|im_end|>", policy=policy)
        assert isinstance(reply, ToolCalls) and reply.calls == (given_call,)
        assert json.dumps(reply.calls[0].arguments) == json.dumps(given_call.arguments)
        assert (reply.text, reply.malformed) == ("", ())
        check_stream(DIALECT, text, sizes, policy)


def test_the_correction_names_the_reason() -> None:
    prompt = DIALECT.correction_prompt(Malformed("the call has no 'tool'"))
    assert prompt == "That call was invalid (the call has no 'tool'). Answer in prose, or retry with valid JSON."
    assert neutralise(prompt) == prompt
