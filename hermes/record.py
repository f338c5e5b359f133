"""The record: one conversation, its tools, and the ways a reply can be read.

Everything here is an immutable value. Arguments and schemas are plain JSON values in memory;
on disk they are JSON text (see `Conversation.to_json`), because columnar formats corrupt nested
objects whose keys differ from row to row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from hermes.skills import Skill
from hermes.tools import JSON as JSON
from hermes.tools import read_declaration, read_function

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")


def dumps(value: JSON) -> str:
    """JSON text as every prompt of this project prints it: one line, `", "` and `": "`, no escaping of
    non-ASCII, key order kept. The template engines' `tojson` prints the same bytes.

    Raises:
        ValueError: for NaN or infinity, which JSON cannot hold.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def loads(text: str) -> JSON:
    """The value of JSON text; Python's own reader would let NaN and infinity pass.

    Raises:
        ValueError: not JSON.
        RecursionError: nested too deeply to read.
    """
    return json.loads(text, parse_constant=refuse_constant)


def refuse_constant(name: str) -> None:
    """For `parse_constant` of JSON readers: NaN and infinity are refused."""
    raise ValueError(f"{name} is not JSON")


def _sorted_keys(value: JSON) -> JSON:
    if isinstance(value, Mapping):
        return {key: _sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_sorted_keys(item) for item in value]
    return value


@dataclass(frozen=True)
class ToolCall:
    """A call of one tool."""

    name: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A tool that a model may call."""

    name: str
    description: str = ""
    parameters: Mapping[str, JSON] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments object, keys in the order in which they are printed."""

    @classmethod
    def from_any(cls, value: JSON | Callable[..., JSON] | Tool) -> Tool:
        """Read a declaration: OpenAI's, the bare function object, Anthropic's, MCP's, a Python function, or the
        text of a SKILL.md, whose tool takes whatever its instructions say.

        Raises:
            ValueError: names the tool, the JSON path and what is missing or wrong; see `hermes.tools`.
        """
        if isinstance(value, Tool):
            return value
        if isinstance(value, str):
            skill = Skill.parse(value)
            return cls(skill.name, skill.description, {"type": "object"})
        return cls(*(read_function(value) if callable(value) else read_declaration(value)))

    def to_function(self) -> dict[str, JSON]:
        """The bare function object that prompts print."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}

    def to_openai(self) -> dict[str, JSON]:
        """The wrapped shape that chat templates and LiteRT-LM take."""
        return {"type": "function", "function": self.to_function()}

    def to_anthropic(self) -> dict[str, JSON]:
        """Anthropic's shape."""
        return {"name": self.name, "description": self.description, "input_schema": dict(self.parameters)}

    def to_mcp(self) -> dict[str, JSON]:
        """The shape of the Model Context Protocol."""
        return {"name": self.name, "description": self.description, "inputSchema": dict(self.parameters)}


@dataclass(frozen=True)
class Message:
    """One turn. Only an assistant turn has `calls`; only a tool turn has `name` (of the tool that answered)."""

    role: Role
    content: JSON = ""
    """Text; for a tool turn any JSON value (an object is printed as JSON, and kept with its keys sorted)."""
    calls: tuple[ToolCall, ...] = ()
    name: str | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"message role {self.role!r}: must be one of {', '.join(ROLES)}")
        if self.calls and self.role != "assistant":
            raise ValueError(f"a {self.role} message cannot hold tool calls")
        if self.role != "tool" and not isinstance(self.content, str):
            raise ValueError(f"a {self.role} message needs text, not {type(self.content).__name__}")
        # LiteRT-LM sorts the keys of a result that is sent to it, so training must see them sorted.
        object.__setattr__(self, "content", _sorted_keys(self.content))

    def to_chat(self) -> dict[str, JSON]:
        """The shape that `apply_chat_template` takes."""
        message: dict[str, JSON] = {"role": self.role, "content": self.content}
        if self.calls:
            message["tool_calls"] = [
                {"type": "function", "function": {"name": call.name, "arguments": dict(call.arguments)}}
                for call in self.calls
            ]
        if self.name is not None:
            message["name"] = self.name
        return message


@dataclass(frozen=True)
class Conversation:
    """Messages, the tools on offer, and where the conversation came from."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    id: str = ""
    source: str = ""
    license: str = ""
    notes: Mapping[str, JSON] = field(default_factory=dict)
    """Facts about the conversation that no prompt shows (which template, which values, what is required)."""

    def prompts(self) -> list[Conversation]:
        """The conversation up to each of its assistant turns."""
        ends = [index for index, message in enumerate(self.messages) if message.role == "assistant"]
        return [replace(self, messages=self.messages[:end]) for end in ends]

    def to_json(self) -> dict[str, JSON]:
        """A row for a JSON Lines file: nested objects as JSON text."""
        return {
            "id": self.id,
            "source": self.source,
            "license": self.license,
            "messages": [_message_to_row(message) for message in self.messages],
            "tools": dumps([tool.to_function() for tool in self.tools]),
            "notes": dumps(dict(self.notes)),
        }

    @classmethod
    def from_json(cls, row: Mapping[str, JSON]) -> Conversation:
        """The inverse of `to_json`.

        Raises:
            ValueError, KeyError: the row does not hold a conversation; the message names the field.
        """
        return cls(
            messages=tuple(_message_from_row(message) for message in row["messages"]),
            tools=tuple(Tool.from_any(tool) for tool in json.loads(row.get("tools") or "[]")),
            id=row.get("id", ""),
            source=row.get("source", ""),
            license=row.get("license", ""),
            notes=json.loads(row.get("notes") or "{}"),
        )


def _message_to_row(message: Message) -> dict[str, JSON]:
    row: dict[str, JSON] = {"role": message.role, "content": message.content}
    if message.role == "tool" and not isinstance(message.content, str):
        row["content"], row["content_is_json"] = dumps(message.content), True
    if message.calls:
        row["calls"] = [{"name": call.name, "arguments": dumps(dict(call.arguments))} for call in message.calls]
    if message.name is not None:
        row["name"] = message.name
    return row


def _arguments(text: str) -> dict[str, JSON]:
    value = loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"a call's arguments must be JSON text of an object, not {text[:80]!r}")
    return value


def _message_from_row(row: Mapping[str, JSON]) -> Message:
    content = row["content"]
    if row.get("content_is_json"):
        content = json.loads(content)
    calls: Sequence[Mapping[str, JSON]] = row.get("calls") or ()
    return Message(
        role=row["role"],
        content=content,
        calls=tuple(ToolCall(call["name"], _arguments(call["arguments"])) for call in calls),
        name=row.get("name"),
    )


@dataclass(frozen=True)
class Segment:
    """A piece of a rendered conversation; `trained` where it is what the model itself must write."""

    text: str
    trained: bool


@dataclass(frozen=True)
class Final:
    """A reply that is plain text for the user."""

    text: str
    raw: str = ""
    reasoning: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolCalls:
    """A reply that holds at least one readable call. Calls of unknown tools count: validation names those."""

    calls: tuple[ToolCall, ...]
    text: str = ""
    malformed: tuple[str, ...] = ()
    raw: str = ""
    reasoning: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Malformed:
    """A reply that tried to call a tool and failed; `reason` says how."""

    reason: str
    raw: str = ""
    reasoning: str = ""
    flags: tuple[str, ...] = ()


Reply: TypeAlias = Final | ToolCalls | Malformed
