"""Messages in LiteRT-LM's shapes."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import UserError
from hermes import Conversation, Message, Tool, ToolCall, get_dialect, text_of
from runtime.litert_backend import LiteRTBackend
from runtime.litert_messages import as_message, compat_case, declared, merge, to_runtime


def test_a_result_becomes_a_tool_response_part() -> None:
    message = Message("tool", {"a": 1}, name="t")
    part = {"type": "tool_response", "name": "t", "response": {"a": 1}}
    assert to_runtime(message) == {"role": "tool", "content": [part]}


def test_calls_keep_the_order_of_their_arguments() -> None:
    call = ToolCall("t", {"z": 1, "a": 2})
    sent = to_runtime(Message("assistant", "text", (call,)))
    assert list(sent["tool_calls"][0]["function"]["arguments"]) == ["z", "a"]
    assert as_message(sent) == Message("assistant", "text", (call,))


def test_streamed_parts_make_one_message() -> None:
    function = {"name": "t", "arguments": {"a": 1}}
    parts: list[dict[str, Any]] = [
        {"role": "assistant", "content": [{"type": "text", "text": "I "}]},
        {"role": "assistant", "content": "look"},
        {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]},
    ]
    merged = merge(parts)
    assert merged["content"] == [{"type": "text", "text": "I look"}]
    assert as_message(merged) == Message("assistant", "I look", (ToolCall("t", {"a": 1}),))
    assert merge([]) == {"role": "assistant"}


def test_a_declared_tool_cannot_be_run() -> None:
    tool = declared(Tool("t"))
    assert tool.get_tool_description() == Tool("t").to_openai()
    with pytest.raises(NotImplementedError):
        tool.execute({})


def test_a_compat_case_holds_the_expected_prompt() -> None:
    conversation = Conversation((Message("user", "é"),), (Tool("t"),), id="x")
    dialect = get_dialect("hermes")
    case = compat_case(conversation, dialect, [3, 1])
    assert case["prompt"] == text_of(dialect.render(conversation, add_generation_prompt=True))
    assert case["ids"] == [3, 1]
    assert (case["name"], len(case["messages"]), len(case["tools"])) == ("x", 1, 1)
    assert case["marks"] == ["<tool_call>", "</tool_call>"]


def test_a_bundle_that_is_missing_or_broken_is_named(tmp_path: Any) -> None:
    with pytest.raises(UserError, match="no such bundle"):
        LiteRTBackend(tmp_path / "none.litertlm")
    broken = tmp_path / "broken.litertlm"
    broken.write_bytes(b"not a bundle" * 100)
    with pytest.raises(UserError, match="cannot load"):
        LiteRTBackend(broken)
    assert [path.name for path in tmp_path.iterdir()] == ["broken.litertlm"]
