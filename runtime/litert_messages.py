"""Messages and tools in LiteRT-LM's shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes import Conversation, Dialect, Message, Tool, ToolCall, text_of


def to_runtime(message: Message) -> dict[str, Any]:
    """A message as the runtime takes it; a tool's result as a `tool_response` part."""
    if message.role == "tool":
        part = {"type": "tool_response", "name": message.name or "", "response": message.content}
        return {"role": "tool", "content": [part]}
    return message.to_chat()


def declared(tool: Tool) -> Any:
    """A tool that is only declared: the runtime never runs it."""
    import litert_lm

    class Declared(litert_lm.Tool):  # type: ignore[misc]
        def get_tool_description(self) -> dict[str, Any]:
            return tool.to_openai()

        def execute(self, param: Mapping[str, Any]) -> Any:
            raise NotImplementedError(f"{tool.name} is only declared")

    return Declared()


def text_of_content(content: Any) -> str:
    """The text in a runtime message's `content`: a string, a list of parts, or nothing."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.get("text", "") for part in content if part.get("type") == "text")


def calls_of(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls that the runtime parsed."""
    functions = (call.get("function", call) for call in message.get("tool_calls") or ())
    return tuple(ToolCall(function["name"], function.get("arguments") or {}) for function in functions)


def as_message(message: Mapping[str, Any]) -> Message:
    """A runtime's reply as an assistant turn of the record."""
    return Message("assistant", text_of_content(message.get("content")), calls_of(message))


def merge(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One message from the runtime's stream of partial ones."""
    text = ""
    calls: list[Any] = []
    for chunk in chunks:
        text += text_of_content(chunk.get("content"))
        calls.extend(chunk.get("tool_calls") or [])
    message: dict[str, Any] = {"role": "assistant"}
    if text:
        message["content"] = [{"type": "text", "text": text}]
    if calls:
        message["tool_calls"] = calls
    return message


def compat_case(
    conversation: Conversation, dialect: Dialect, ids: Sequence[int], *, send: bool = True, then: Message | None = None
) -> dict[str, Any]:
    """A case for `runtime/compat.py`: the prompt that the runtime must render, its token ids, and what to send.

    Args:
        send: whether the reply is asked for, too.
        then: the message after the reply, whose answer must be that of a fresh conversation.
    """
    return {
        "name": conversation.id,
        "messages": [to_runtime(message) for message in conversation.messages],
        "tools": [tool.to_openai() for tool in conversation.tools],
        "prompt": text_of(dialect.render(conversation, add_generation_prompt=True)),
        "ids": list(ids),
        "marks": list(dialect.sentinels),
        "send": send,
        "then": None if then is None else to_runtime(then),
    }
