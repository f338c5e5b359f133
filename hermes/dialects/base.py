"""What every dialect offers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from hermes.record import Conversation, Reply, Segment, Tool

FinishReason = Literal["stop", "length"]


class Dialect(Protocol):
    """One way of writing tools, calls and results. The bytes of a conversation are defined here, once."""

    name: str
    sentinels: tuple[str, str]
    """Opening and closing mark of a call: parsers cut and constraints anchor on these."""
    stop: str
    """The text that ends an assistant turn; the model is trained to write it."""

    def render(self, conversation: Conversation, add_generation_prompt: bool = False) -> list[Segment]:
        """The conversation's text in segments; their concatenation is the prompt."""
        ...

    def chat_template(self) -> str:
        """A Jinja template that renders the same bytes in transformers and in LiteRT-LM."""
        ...

    def parse(self, text: str, tools: Iterable[Tool] = (), finish_reason: FinishReason = "stop") -> Reply:
        """Read a reply: the text that the model wrote, with or without its end-of-turn mark."""
        ...


def text_of(segments: Iterable[Segment]) -> str:
    """The text of a rendering."""
    return "".join(segment.text for segment in segments)
