"""What every dialect offers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from hermes.record import Conversation, Malformed, Message, Reply, Segment, Tool, ToolCall
from hermes.syntax import CallSyntax as CallSyntax
from hermes.syntax import FinishReason as FinishReason
from hermes.syntax import Policy as Policy

Value = TypeVar("Value")


@dataclass(frozen=True)
class TextDelta:
    """More of the text for the user."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """More of what stands between think tags."""

    text: str


@dataclass(frozen=True)
class CallStart:
    """A call of the tool `name` has begun; `index` counts the reply's calls from 0."""

    index: int
    name: str


@dataclass(frozen=True)
class ArgumentsDelta:
    """More JSON text of a call's arguments; the deltas of a call together are one JSON object."""

    index: int
    text: str


@dataclass(frozen=True)
class CallEnd:
    """A call is complete."""

    index: int
    call: ToolCall


@dataclass(frozen=True)
class CallFailed:
    """What looked like a call is none. `index` is that of its `CallStart`, or None where there was none."""

    index: int | None
    reason: str


Event: TypeAlias = TextDelta | ReasoningDelta | CallStart | ArgumentsDelta | CallEnd | CallFailed


class StreamParser(Protocol):
    """Reads a reply while it is written. However the text is cut into chunks, the outcome is that of `parse`."""

    def feed(self, chunk: str | bytes) -> list[Event]:
        """Take more of the reply (bytes: UTF-8, cut anywhere); returns what is now certain."""
        ...

    def close(self, finish_reason: FinishReason = "stop") -> list[Event]:
        """The reply has ended; returns what was held back. `reply` is known afterwards."""
        ...

    @property
    def reply(self) -> Reply:
        """The whole reply as `parse` reads it; only after `close`."""
        ...


class Dialect(Protocol):
    """One way of writing tools, calls and results. The bytes of a conversation are defined here, once."""

    name: str
    syntax: CallSyntax
    stop: str
    """The text that ends an assistant turn; the model is trained to write it."""

    @property
    def sentinels(self) -> tuple[str, str]:
        """Opening and closing mark of a call."""
        ...

    def render(self, conversation: Conversation, add_generation_prompt: bool = False) -> list[Segment]:
        """The conversation's text in segments; their concatenation is the prompt."""
        ...

    def format_reply(self, message: Message) -> str:
        """The text of an assistant turn without its end-of-turn mark: what the model is trained to write."""
        ...

    def chat_template(self) -> str:
        """A Jinja template that renders the same bytes in transformers and in LiteRT-LM."""
        ...

    def parse(
        self,
        text: str,
        tools: Iterable[Tool] = (),
        policy: Policy = "strict",
        finish_reason: FinishReason = "stop",
    ) -> Reply:
        """Read a reply: the text that the model wrote, with or without its end-of-turn mark."""
        ...

    def stream_parser(self, tools: Iterable[Tool] = (), policy: Policy = "strict") -> StreamParser:
        """A parser for one reply that comes in chunks."""
        ...

    def correction_prompt(self, malformed: Malformed) -> str:
        """What to tell the model, as the user, after a reply that could not be read."""
        ...


def text_of(segments: Iterable[Segment]) -> str:
    """The text of a rendering."""
    return "".join(segment.text for segment in segments)


@dataclass(frozen=True, eq=False)
class Same(Generic[Value]):
    """A value that is a key by identity: for caches over immutable values that cannot be hashed."""

    value: Value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value
