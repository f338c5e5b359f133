"""The `native` dialect: the checkpoint's own template, proven or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dialect_checks import JSON_VALUES, TEXT, call, check_stream, in_transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from native_templates import HERMES, PLAIN, QWEN, THINKING

from hermes import Conversation, Final, Malformed, Message, Tool, ToolCall, ToolCalls, get_dialect, text_of
from hermes.control import MARKERS, neutralise
from hermes.dialects import Dialect, Policy
from hermes.dialects.native import NativeDialect

TEMPLATES = {"hermes": HERMES, "qwen": QWEN, "thinking": THINKING}
ADD = Tool("add", "Zürich's <sum> & 'more'.", {"type": "object", "properties": {"b": {"type": "number"}, "a": {}}})


READ_BOTH = (
    Message("user", "read both"),
    Message("assistant", "", (call("cat", f="a"), call("cat", f="b"))),
    Message("tool", "AAA", name="cat"),
    Message("tool", {"é": ["BBB"]}, name="cat"),
    Message("assistant", "Both read."),
    Message("user", "Thanks"),
    Message("assistant", "Bye."),
)


def rendered(dialect: Dialect, conversation: Conversation, open_turn: bool = False) -> str:
    return text_of(dialect.render(conversation, open_turn))


def as_chats(conversation: Conversation) -> list[dict[str, Any]]:
    """The messages as a template takes them: results as text."""
    chats = [message.to_chat() for message in conversation.messages]
    for chat in chats:
        if not isinstance(chat["content"], str):
            chat["content"] = json.dumps(chat["content"], ensure_ascii=False)
    return chats


@pytest.mark.parametrize("kind", TEMPLATES)
def test_trained_is_what_the_model_says(kind: str) -> None:
    dialect = get_dialect("native", chat_template=TEMPLATES[kind])
    think = "<think>\n\n</think>\n\n" if kind == "thinking" else ""
    cat = Tool("cat")
    segments = dialect.render(Conversation(READ_BOTH, (cat,)))
    assert [segment.text for segment in segments if segment.trained] == [
        '<tool_call>\n{"name": "cat", "arguments": {"f": "a"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "cat", "arguments": {"f": "b"}}\n</tool_call><|im_end|>',
        "Both read.<|im_end|>",
        f"{think}Bye.<|im_end|>",
    ]
    assert all(segment.text.endswith("<|im_start|>assistant\n") for segment in segments[:-1] if not segment.trained)
    assert segments[-1].text == "\n"
    text = text_of(segments)
    assert text.index('"cat"') < text.index("read both") < text.index("AAA") < text.index('{"é": ["BBB"]}')
    merged = (
        '<|im_start|>user\n<tool_response>\nAAA\n</tool_response>\n<tool_response>\n{"é": ["BBB"]}\n</tool_response>'
    )
    assert (merged in text) is (kind != "hermes")  # C31


@pytest.mark.parametrize("kind", TEMPLATES)
@pytest.mark.parametrize("tools", [(), (ADD,)])
@pytest.mark.parametrize("open_turn", [False, True])
def test_transformers_renders_the_same_bytes(kind: str, tools: tuple[Tool, ...], open_turn: bool) -> None:
    dialect = get_dialect("native", chat_template=TEMPLATES[kind])
    for end in range(1, len(READ_BOTH) + 1):
        for system in ((), (Message("system", "Sei kurz, 東京."),)):
            conversation = Conversation((*system, *READ_BOTH[:end]), tools)
            expected = in_transformers(
                dialect.chat_template(), as_chats(conversation), [tool.to_openai() for tool in tools] or None, open_turn
            )
            assert rendered(dialect, conversation, open_turn) == expected


@given(TEXT, TEXT, JSON_VALUES, st.dictionaries(TEXT, JSON_VALUES, max_size=3), st.sampled_from(sorted(TEMPLATES)))
@settings(max_examples=150, deadline=None)
def test_any_text_is_carried_and_none_is_control_text(
    user: str, system: str, result: object, arguments: dict[str, Any], kind: str
) -> None:
    dialect = get_dialect("native", chat_template=TEMPLATES[kind])
    called = ToolCall("add", arguments)
    messages = (
        Message("system", system),
        Message("user", user),
        Message("assistant", "", (called,)),
        Message("tool", result, name="add"),
        Message("assistant", "Done."),
    )
    segments = dialect.render(Conversation(messages, (Tool("add", user),)), True)
    text = text_of(segments)
    assert text.count("<|im_start|>") == text.count("<|im_end|>") + 1
    assert text.count("<|im_end|>") == sum("<|im_end|>" in segment.text for segment in segments if segment.trained) + (
        text.count("<|im_start|>system") + text.count("<|im_start|>user") + text.count("<|im_start|>tool")
    )
    reply = dialect.parse(next(segment.text for segment in segments if segment.trained))
    assert isinstance(reply, ToolCalls) and json.dumps(reply.calls[0].arguments) == json.dumps(arguments)


def test_control_text_in_a_call_is_escaped() -> None:
    dialect = get_dialect("native", chat_template=HERMES)
    said = "".join(MARKERS) + "control-text0."
    message = Message("assistant", "", (call("add", **{said: [said]}),))
    text = dialect.format_reply(message)
    assert "<|im" not in text and text.count("</tool_call>") == 1
    assert dialect.parse(text) == ToolCalls(message.calls, raw=text)


def test_first_and_last_token_of_the_checkpoint() -> None:
    template = HERMES.replace("<|im_end|>", "</s>")
    dialect = NativeDialect(template, bos_token="<s>", eos_token="</s>")
    messages = (Message("user", "a</s><s>b"), Message("assistant", "", (call("add", a="</s>"),)), Message("user", "c"))
    segments = dialect.render(Conversation(messages))
    assert text_of(segments).startswith("<s><|im_start|>user\na< /s>< s>b</s>\n")
    assert [segment.text for segment in segments if segment.trained] == [
        '<tool_call>\n{"name": "add", "arguments": {"a": "\\u003c/s>"}}\n</tool_call></s>'
    ]


REFUSED = {
    "tools": (PLAIN, "leaves out the tools"),
    "results": (
        HERMES.replace("+ message.content + '\\n</tool_response>", "+ '</tool_response>"),
        "leaves out the results",
    ),
    "calls": (HERMES.replace("message.tool_calls", "message.no_calls"), "does not write this turn as it is"),
    "another form of calls": (
        HERMES.replace("<tool_call>\\n' +", "<function>\\n' +"),
        "calls must stand between <tool_call>",
    ),
    "arguments": (HERMES.replace("call.arguments | tojson", "call.arguments | tojson | upper"), "read back, it is"),
    "text": (HERMES.replace("'\\n' + message.content", "'\\n' + message.content[:2]"), "its text is changed"),
    "history": (
        HERMES.replace("'\\n' + message.content }}", "'\\n' + message.content + messages[-1].role }}"),
        "differently",
    ),
    "an open turn": (HERMES.replace("if add_generation_prompt", "if false"), "opens no assistant turn"),
    "another opening": (
        HERMES.replace("<|im_start|>assistant\\n", "<|im_start|>assistant\\n<think>"),
        "begins this turn differently",
    ),
    "no end": (HERMES.replace("{{- '<|im_end|>\\n' }}", "{{- '\\n' }}"), "does not end this turn with '<|im_end|>'"),
    "an exception": ("{{ raise_exception('only users') }}", "refuses the conversation: only users"),
    "an error": ("{{ messages + 1 }}", "refuses the conversation: TypeError"),
    "no template": ("{% if %}", "refuses the conversation"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_survive_is_named(case: tuple[str, str]) -> None:
    template, problem = case
    assert template != HERMES
    messages = (*READ_BOTH[:4], Message("assistant", "Both are read."))
    with pytest.raises(ValueError, match=problem):
        get_dialect("native", chat_template=template).render(Conversation(messages, (ADD,)))


def test_a_template_for_chats_only_renders_chats() -> None:
    dialect = get_dialect("native", chat_template=PLAIN)
    segments = dialect.render(Conversation((Message("user", "Hi"), Message("assistant", "Ho"))), True)
    assert [segment.text for segment in segments] == [
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
        "Ho<|im_end|>",
        "\n<|im_start|>assistant\n",
    ]


@pytest.mark.parametrize("form", ["list", "mapping"])
def test_named_templates(form: str) -> None:
    """C39."""
    named = {"default": PLAIN, "tool_use": QWEN}
    given_form: Any = named if form == "mapping" else [{"name": k, "template": v} for k, v in named.items()]
    dialect = get_dialect("native", chat_template=given_form)
    hi = (Message("user", "hi"),)
    assert '{"name": "add"' in rendered(dialect, Conversation(hi, (ADD,)))
    assert rendered(dialect, Conversation(hi)) == "<|im_start|>user\nhi<|im_end|>\n"
    assert dialect.chat_template() == QWEN
    with pytest.raises(ValueError, match="needs one named default or tool_use; it has: rag"):
        get_dialect("native", chat_template={"rag": PLAIN})


def test_templates_as_transformers_takes_them() -> None:
    template = (
        "{% for message in messages %}{% if message.role == 'system' %}{% continue %}{% endif %}\n"
        "{% generation %}{{ message.content | tojson(indent=1) }}{% endgeneration %}\n"
        "    {% endfor %}{{ strftime_now('%Y') | length }}<é>"
    )
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "é<"}]
    conversation = Conversation((Message("system", "s"), Message("user", "é<")))
    assert rendered(NativeDialect(template), conversation) == in_transformers(template, messages) == '"é<"4<é>'


@given(
    st.lists(
        st.builds(ToolCall, st.text(min_size=1), st.dictionaries(TEXT, JSON_VALUES, max_size=3)), min_size=1, max_size=3
    ),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
)
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read_back(calls: list[ToolCall], sizes: list[int]) -> None:
    dialect = get_dialect("native", chat_template=HERMES)
    text = dialect.format_reply(Message("assistant", "", tuple(calls)))
    policies: tuple[Policy, ...] = ("strict", "lenient")
    for policy in policies:
        reply = dialect.parse(text, policy=policy)
        assert isinstance(reply, ToolCalls) and list(reply.calls) == calls and reply.malformed == ()
        check_stream(dialect, text, sizes, policy)


def test_a_reply_that_could_not_be_read_stays_in_the_history() -> None:
    dialect = get_dialect("native", chat_template=QWEN)
    broken = '<tool_call>\n{"name": '
    reply = dialect.parse(broken)
    assert isinstance(reply, Malformed)
    correction = Message("user", dialect.correction_prompt(reply))
    assert neutralise(correction.content) == correction.content
    text = rendered(
        dialect, Conversation((Message("user", "u"), Message("assistant", broken), correction), (ADD,)), True
    )
    assert f"<|im_start|>assistant\n{broken}<|im_end|>\n<|im_start|>user\n{correction.content}" in text


def test_text_is_text() -> None:
    assert get_dialect("native", chat_template=QWEN).parse("Hi.<|im_end|>") == Final("Hi.", "Hi.<|im_end|>")


def test_what_is_missing_is_said() -> None:
    with pytest.raises(ValueError, match="needs the checkpoint's chat template"):
        get_dialect("native")
    with pytest.raises(ValueError, match="no dialect 'x'; there are: hermes, json, fenced, native"):
        get_dialect("x")
