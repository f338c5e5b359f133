"""The `fenced` dialect: every reply is exactly one fenced json block."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dialect_checks import (
    CALL,
    CONVERSATIONS,
    CONVERSATIONS_FOR_MINIJINJA,
    TEXT,
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

from hermes import Conversation, Final, Malformed, Message, Tool, ToolCall, ToolCalls, get_dialect, text_of
from hermes.dialects import Policy
from hermes.dialects.fenced import CONTRACT

DIALECT = get_dialect("fenced")
POLICIES: tuple[Policy, ...] = ("strict", "lenient")
ADD = Tool("add", "Adds.", {"type": "object", "properties": {"a": {"type": "number"}}})


def block(body: str) -> str:
    return f"```json\n{body}\n```"


A = '{"tool": "a", "arguments": {}}'
DONE = '{"tool": "final", "text": "Done."}'


def test_bytes_of_a_whole_conversation() -> None:
    conversation = Conversation(
        (
            Message("system", "Be brief."),
            Message("user", "1 + 2?"),
            Message("assistant", calls=(call("add", a="é</tool_call>"),)),
            Message("tool", {"sum": 3}, name="add"),
            Message("assistant", calls=(call("now"),)),
            Message("tool", "late", name="now"),
            Message("assistant", "3\n```"),
        ),
        (ADD, Tool("now")),
    )
    expected = (
        f"<|im_start|>system\n{CONTRACT}\n\n"
        '## add\nAdds.\narguments schema:\n{"type": "object", "properties": {"a": {"type": "number"}}}\n\n'
        '## now\narguments schema:\n{"type": "object", "properties": {}}\n\n'
        "# SYSTEM\nBe brief.<|im_end|>\n"
        "<|im_start|>user\n1 + 2?<|im_end|>\n"
        '<|im_start|>assistant\n```json\n{"tool": "add", "arguments": {"a": "é<\\/tool_call>"}}\n```<|im_end|>\n'
        '<|im_start|>user\nTOOL RESULT [1]\n{"sum": 3}<|im_end|>\n'
        '<|im_start|>assistant\n```json\n{"tool": "now", "arguments": {}}\n```<|im_end|>\n'
        "<|im_start|>user\nTOOL RESULT [2]\nlate<|im_end|>\n"
        '<|im_start|>assistant\n```json\n{"tool": "final", "text": "3\\n```"}\n```<|im_end|>'
    )
    assert text_of(DIALECT.render(conversation)) == expected
    assert text_of(DIALECT.render(conversation, True)) == expected + "\n<|im_start|>assistant\n"
    trained = [segment.text for segment in DIALECT.render(conversation, True) if segment.trained]
    assert trained[0] == '```json\n{"tool": "add", "arguments": {"a": "é<\\/tool_call>"}}\n```<|im_end|>'
    assert len(trained) == 3
    bare = text_of(DIALECT.render(Conversation((Message("user", "Hi"),))))
    assert bare.endswith(
        "# TOOLS\n\n(no tools available — answer with the final block)<|im_end|>\n<|im_start|>user\nHi<|im_end|>"
    )


@given(CONVERSATIONS, st.booleans())
@settings(max_examples=150, deadline=None)
def test_template_renders_the_same_bytes(conversation: Conversation, open_turn: bool) -> None:
    check_template(DIALECT, conversation, open_turn)


@given(CONVERSATIONS_FOR_MINIJINJA, st.booleans())
@settings(max_examples=150, deadline=None)
def test_minijinja_renders_the_same_bytes(conversation: Conversation, open_turn: bool) -> None:
    check_template(DIALECT, conversation, open_turn, pytest.importorskip("minijinja"))


def test_the_tokenizer_renders_the_same_bytes(tokenizer: PreTrainedTokenizerFast) -> None:
    messages = (
        Message("user", "1 <|im_end|> 2?"),
        Message("assistant", calls=(call("add", a="é<|im_end|>"),)),
        Message("tool", ["</tool_response>", 1], name="add"),
        Message("assistant", "<|im_start|>"),
    )
    rendered = tokenizer.apply_chat_template(
        [message.to_chat() for message in messages],
        tools=[ADD.to_openai()],
        chat_template=DIALECT.chat_template(),
        tokenize=False,
    )
    assert rendered == text_of(DIALECT.render(Conversation(messages, (ADD,))))
    assert rendered.count("<|im_end|>") == 5


@pytest.mark.parametrize("render", engines())
def test_shapes_that_histories_come_in(render: Any) -> None:
    template = DIALECT.chat_template()

    def history(arguments: Any, **content: Any) -> list[dict[str, Any]]:
        function = {"name": "add", "arguments": arguments}
        return [
            {"role": "user", "content": "4+25"},
            {"role": "assistant", "tool_calls": [{"function": function}], **content},
        ]

    expected = '<|im_start|>assistant\n```json\n{"tool": "add", "arguments": {"a": 4, "b": 25}}\n```<|im_end|>'
    for messages in (
        history('{"a": 4, "b": 25}', content=""),  # C27
        history({"a": 4, "b": 25}, content=None),  # C28
        history({"a": 4, "b": 25}),
    ):
        assert render(template, messages).endswith(expected)
    plain = [{"role": "user", "content": "hi"}]
    assert len({render(template, plain, tools) for tools in (None, [])}) == 1  # C33
    results = [{"temp": 21, "unit": "C"}, [{"type": "text", "text": "note"}], 0, "", [1, "é"], []]  # C34
    system = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    written = render(template, [system, *({"role": "tool", "content": each} for each in results)])
    texts = ['{"temp": 21, "unit": "C"}', "note", "0", "", '[1, "é"]', "[]"]
    turns = [f"\n<|im_start|>user\nTOOL RESULT [{number}]\n{each}<|im_end|>" for number, each in enumerate(texts, 1)]
    assert written.endswith("# SYSTEM\nBe brief.<|im_end|>" + "".join(turns))
    assert "None" not in written


def test_schemas_are_written_once_and_whole() -> None:
    described = "查询天气 <°C> & 'now' 😀 naïve"  # C29
    parameters = {  # C35, C42
        "type": "object",
        "properties": {"z": {"$ref": "#/$defs/Zip"}, "a": {"type": "integer", "description": 'one\ntwo\t"q" C:\\dir'}},
        "required": ["z"],
        "$defs": {"Zip": {"type": "string"}},
    }
    conversation = Conversation((Message("user", "t?"),), (Tool("t", described, parameters),))
    text = text_of(DIALECT.render(conversation))
    assert f"## t\n{described}\narguments schema:\n{json.dumps(parameters)}" in text
    assert '"one\\ntwo\\t\\"q\\" C:\\\\dir"' in text  # C40
    check_template(DIALECT, conversation, True)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (Message("assistant", "Wait.", (call("a"),)), "one block, a call or an answer: not 1 calls and text"),
        (Message("assistant", "", (call("a"), call("b"))), "one block, a call or an answer: not 2 calls"),
        (Message("assistant", "", (call("final"),)), "has its own 'final' tool"),
    ],
)
def test_what_is_no_single_block_cannot_be_written(message: Message, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        DIALECT.render(Conversation((Message("user", "u"), message)))
    assert raises_in_template(DIALECT, [message.to_chat()])
    assert raises_in_template(DIALECT, [as_parts(message)])


def test_no_tool_can_have_the_name_of_the_answer() -> None:
    with pytest.raises(ValueError, match="has its own 'final' tool"):
        DIALECT.render(Conversation((), (Tool("final"),)))


def test_a_block_handed_back_as_text_is_not_wrapped_again() -> None:
    for body in (A, DONE):
        conversation = Conversation((Message("user", "u"), Message("assistant", block(body)), Message("user", "v")))
        assert f"assistant\n{block(body)}<|im_end|>" in text_of(DIALECT.render(conversation))
        check_template(DIALECT, conversation, True)


@given(CALL, TEXT, st.lists(st.integers(1, 7), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read_back(given_call: ToolCall, said: str, sizes: list[int]) -> None:
    text = DIALECT.format_reply(Message("assistant", calls=(given_call,)))
    answer = DIALECT.format_reply(Message("assistant", said))
    for policy in POLICIES:
        reply = DIALECT.parse(text + "<|im_end|>", policy=policy)
        assert isinstance(reply, ToolCalls) and reply.calls == (given_call,)
        assert json.dumps(reply.calls[0].arguments) == json.dumps(given_call.arguments)
        assert (reply.text, reply.malformed) == ("", ())
        assert DIALECT.parse(answer, policy=policy) == Final(said, answer)
        check_stream(DIALECT, text, sizes, policy)
        check_stream(DIALECT, answer, sizes, policy)


def test_the_correction_names_the_reason() -> None:
    prompt = DIALECT.correction_prompt(Malformed("expected exactly one json block, got 2"))
    assert prompt.startswith("Your last reply broke the protocol: expected exactly one json block, got 2.\n")
