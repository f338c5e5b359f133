"""What every way of running a model offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hermes import Conversation
from hermes.dialects import FinishReason


@dataclass(frozen=True)
class Completion:
    """What a model wrote after a prompt, without its end-of-turn mark."""

    text: str
    finish_reason: FinishReason
    """`length`: cut by the limit of new tokens."""
    seconds: float
    """Wall-clock time of this completion; its share, where several were decoded together."""


OnDone = Callable[[int, Completion], None]
"""Called with the index of a conversation and its completion, as soon as that is known."""


class Backend(Protocol):
    """A model that can be asked, greedily, for the next assistant turn."""

    name: str
    batched: bool
    """Whether many conversations are decoded at once. If not, a conversation's next turn is cheapest right after
    the one before, whose keys and values are still there.
    """

    def complete(self, conversations: Sequence[Conversation], on_done: OnDone | None = None) -> list[Completion]:
        """The next assistant turn of each conversation, in the given order."""
        ...
