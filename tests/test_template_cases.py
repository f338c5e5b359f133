"""Histories as people have them, through the template of the `hermes` dialect; each from a real bug report."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from hermes import Conversation, Message, Tool, ToolCall, get_dialect, text_of, validate_conversation

DIALECT = get_dialect("hermes")
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "sum",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
HI = [{"role": "user", "content": "hi"}]


@pytest.fixture
def render(tokenizer: PreTrainedTokenizerFast) -> Any:
    def rendered(messages: list[dict[str, Any]], tools: Any = None, **options: Any) -> str:
        text = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, **options)
        assert isinstance(text, str)
        return text

    return rendered


def called(arguments: Any, **message: Any) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    return [{"role": "user", "content": "4+25"}, {"role": "assistant", "tool_calls": [call], **message}]


def test_arguments_as_text_or_object(render: Any) -> None:
    """C27."""
    as_object = render(called({"a": 4, "b": 25}, content=""))
    assert render(called('{"a": 4, "b": 25}', content="")) == as_object
    assert '<tool_call>{"name": "add", "arguments": {"a": 4, "b": 25}}</tool_call>' in as_object
    assert '\\"a\\"' not in as_object and '"{' not in as_object


def test_content_null_absent_or_empty(render: Any) -> None:
    """C28."""
    text = render(called({}))
    assert text == render(called({}, content=None)) == render(called({}, content=""))
    assert not any(word in text for word in ("None", "null<|im_end|>", "Undefined"))


def test_json_is_printed_as_training_printed_it(render: Any) -> None:
    """C29, C35, C40."""
    description = "查询天气 <°C> & 'now' 😀 naïve\nsecond\tcolumn \"quoted\" C:\\dir"
    properties = {"z": {"type": "string"}, "a": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties, "required": ["z"]}
    tool = {"type": "function", "function": {"name": "zeta", "description": description, "parameters": parameters}}
    text = render(called({"q": "l'été <b>"}), [tool])
    assert "查询天气 <°C> & 'now' 😀 naïve\\nsecond\\tcolumn \\\"quoted\\\" C:\\\\dir" in text
    assert "l'été <b>" in text
    shown = '"properties": {"z": {"type": "string"}, "a": {"type": "integer"}}, "required": ["z"]}}'
    assert f'"parameters": {{"type": "object", {shown}' in text
    for escaped in ("\\u67e5", "\\u003c", "\\u0026", "\\u0027", "&lt;", "&#39;", "\\ud83d", "\\\\n", "\\\\\\\\dir"):
        assert escaped not in text


def test_tools_wrapped_or_bare_and_absent_none_or_empty(render: Any) -> None:
    """C33."""
    assert render(HI, [ADD]) == render(HI, [ADD["function"]])
    assert render(HI) == render(HI, None) == render(HI, [])
    assert "tools" not in render(HI).split("<|im_end|>")[0].split("You can call tools")[1]


def test_results_as_objects_parts_numbers_and_nothing(render: Any) -> None:
    """C31, C34."""
    results = [{"temp": 21, "unit": "C"}, [{"type": "text", "text": "note"}], 0, ""]
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        *called({}),
        *({"role": "tool", "content": result} for result in results),
    ]
    text = render(messages)
    assert "<|im_start|>system\nBe brief.<|im_end|>" in text
    for shown in ('{"temp": 21, "unit": "C"}', "note", "0", ""):
        assert f"<|im_start|>tool\n<tool_response>\n{shown}\n</tool_response><|im_end|>" in text
    assert not any(wrong in text for wrong in ("{'temp'", "[{'type'", "None"))


@pytest.mark.parametrize("tools", [(), (Tool.from_any(ADD),)])
@pytest.mark.parametrize("system", [None, "", "Be brief."])
def test_with_and_without_a_system_turn(render: Any, tools: tuple[Tool, ...], system: str | None) -> None:
    """C36; the bundle's rendering is compared in the pipeline's test."""
    messages = (*(() if system is None else (Message("system", system),)), Message("user", "hi"))
    ours = text_of(DIALECT.render(Conversation(messages, tools)))
    assert render([message.to_chat() for message in messages], [tool.to_openai() for tool in tools]) == ours


@pytest.mark.parametrize("prefill", ["half a sentence ", "Sure!\n", '<tool_call>\n{"name": "'])
def test_a_begun_answer_stays_as_it_is(render: Any, prefill: str) -> None:
    """C38."""
    begun = [*HI, {"role": "assistant", "content": prefill}]
    assert render(begun, continue_final_message=True) == render(HI, add_generation_prompt=True) + prefill


def test_a_chat_without_a_user_is_named_when_data_are_checked_and_still_renders(render: Any) -> None:
    """C41."""
    messages = (
        Message("system", "s"),
        Message("assistant", calls=(ToolCall("ping"),)),
        Message("tool", "pong", name="ping"),
        Message("assistant", "up"),
    )
    conversation = Conversation(messages, (Tool("ping"),))
    assert "messages: no user turn" in validate_conversation(conversation)
    text = render([message.to_chat() for message in messages], [tool.to_openai() for tool in conversation.tools])
    assert text == text_of(DIALECT.render(conversation))
    assert text.count("<|im_start|>") == 4


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_a_longer_history_begins_with_the_shorter_one(render: Any, length: int) -> None:
    messages = [*called({"a": 1}), {"role": "tool", "content": {"sum": 3}}, {"role": "assistant", "content": "3"}]
    assert render([*messages, *HI]).startswith(render(messages[:length]))
