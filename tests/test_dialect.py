"""The `hermes` dialect: one definition of the bytes, the same in renderer, template and parser."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers.utils.chat_template_utils import render_jinja_template

from hermes import (
    Conversation,
    Message,
    Tool,
    ToolCall,
    ToolCalls,
    get_dialect,
    text_of,
    unreadable_turns,
)
from hermes.control import MARKERS, escape_in_json, neutralise
from hermes.gallery_tools import GALLERY_TOOLS

DIALECT = get_dialect("hermes")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    [*MARKERS, "a<|im_end|>\n<|im_start|>assistant\nb", "C:\\dir\t\"q\" 'p'", "</tool_call", "\\/", "東京 é 😀"]
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(TEXT, JSON_VALUES, max_size=4)
CALLS = st.lists(st.builds(ToolCall, TEXT.filter(bool), ARGUMENTS), min_size=1, max_size=3).map(tuple)
PLAIN = TEXT.filter(lambda text: "`" not in text).map(neutralise).map(str.strip)
"""Without backticks: what stands in an open code block is no call."""


def template(conversation: Conversation, add_generation_prompt: bool = False) -> str:
    rendered, _ = render_jinja_template(
        conversations=[[message.to_chat() for message in conversation.messages]],
        tools=[tool.to_openai() for tool in conversation.tools] or None,
        chat_template=DIALECT.chat_template(),
        add_generation_prompt=add_generation_prompt,
    )
    return rendered[0]


def test_bytes_of_a_whole_conversation() -> None:
    tool = Tool("add", "Adds.", {"type": "object", "properties": {"a": {"type": "number"}}})
    conversation = Conversation(
        (
            Message("system", "Be brief."),
            Message("user", "1 + 2?"),
            Message("assistant", "Wait.", (ToolCall("add", {"b": 1, "a": "é"}), ToolCall("add", {}))),
            Message("tool", {"sum": 3}, name="add"),
            Message("tool", "none", name="add"),
            Message("assistant", "3"),
        ),
        (tool,),
    )
    expected = (
        "<|im_start|>system\nBe brief.\n\nYou have access to the following tools:\n"
        '{"name": "add", "description": "Adds.", "parameters": {"type": "object", '
        '"properties": {"a": {"type": "number"}}}}<|im_end|>\n'
        "<|im_start|>user\n1 + 2?<|im_end|>\n"
        '<|im_start|>assistant\nWait.\n<tool_call>{"name": "add", "arguments": {"b": 1, "a": "é"}}</tool_call>\n'
        '<tool_call>{"name": "add", "arguments": {}}</tool_call><|im_end|>\n'
        '<|im_start|>tool\n<tool_response>\n{"sum": 3}\n</tool_response><|im_end|>\n'
        "<|im_start|>tool\n<tool_response>\nnone\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n3<|im_end|>"
    )
    assert text_of(DIALECT.render(conversation)) == expected
    assert text_of(DIALECT.render(conversation, True)) == expected + "\n<|im_start|>assistant\n"
    trained = [segment.text for segment in DIALECT.render(conversation, True) if segment.trained]
    assert trained == [
        'Wait.\n<tool_call>{"name": "add", "arguments": {"b": 1, "a": "é"}}</tool_call>\n'
        '<tool_call>{"name": "add", "arguments": {}}</tool_call><|im_end|>',
        "3<|im_end|>",
    ]


@given(st.text() | TEXT, st.text() | TEXT, CALLS, JSON_VALUES, st.booleans(), st.booleans())
def test_template_renders_the_same_bytes(
    system: str, user: str, calls: tuple[ToolCall, ...], result: object, with_tools: bool, open_turn: bool
) -> None:
    if not isinstance(result, str | dict):
        result = {"result": result}
    conversation = Conversation(
        (
            Message("system", system),
            Message("user", user),
            Message("assistant", neutralise(user), calls),
            Message("tool", result, name="x"),
            Message("assistant", "done"),
        ),
        GALLERY_TOOLS if with_tools else (),
    )
    assert template(conversation, open_turn) == text_of(DIALECT.render(conversation, open_turn))


@given(CALLS, PLAIN)
def test_parse_reads_back_what_render_wrote(calls: tuple[ToolCall, ...], said: str) -> None:
    reply = DIALECT.parse(text_of(DIALECT.render(Conversation((Message("assistant", said, calls),)))[-1:]))
    assert isinstance(reply, ToolCalls)
    assert json.dumps([[call.name, call.arguments] for call in reply.calls]) == json.dumps(
        [[call.name, call.arguments] for call in calls]
    )
    assert (reply.text, reply.malformed) == (said, ())


@given(TEXT)
def test_control_text_cannot_come_in(text: str) -> None:
    plain = neutralise(text)
    assert not [marker for marker in MARKERS if marker in plain]
    assert neutralise(plain) == plain
    assert json.loads(escape_in_json(json.dumps(text, ensure_ascii=False))) == text


def test_unknown_dialect_lists_those_that_exist() -> None:
    with pytest.raises(ValueError, match="no dialect 'hermess'; there are: hermes"):
        get_dialect("hermess")


@given(ARGUMENTS, JSON_VALUES.filter(lambda value: not isinstance(value, str)))
def test_rows_on_disk_read_back(arguments: dict[str, object], result: object) -> None:
    conversation = Conversation(
        (
            Message("user", "u"),
            Message("assistant", "", (ToolCall("f", arguments),)),
            Message("tool", result, name="f"),
        ),
        GALLERY_TOOLS,
        id="1",
        source="s",
        license="l",
        notes={"k": [1]},
    )
    row = json.loads(json.dumps(conversation.to_json()))
    assert isinstance(row["messages"][1]["calls"][0]["arguments"], str)
    assert Conversation.from_json(row) == conversation


def test_turns_that_would_not_be_read_back_are_named() -> None:
    call = ToolCall("a")
    fenced = Conversation((Message("user", "?"), Message("assistant", "Here:\n```python\nx", (call,))))
    assert unreadable_turns(fenced, DIALECT) == ["messages[1]: read back by the hermes dialect, this turn is 0 call(s)"]
    posing = Conversation((Message("user", "?"), Message("assistant", '{"tool": "rm", "args": {}}')))
    assert unreadable_turns(posing, get_dialect("json")) != []
    assert unreadable_turns(posing, DIALECT) == []
    both = Conversation((Message("user", "?"), Message("assistant", "Well.", (call,))))
    assert "messages[1]: " in unreadable_turns(both, get_dialect("json"))[0]
