"""From a conversation to token ids and labels.

The whole rendering is tokenised at once, because tokens merge across segments otherwise; labels
follow from the character offsets of each token.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from hermes import Conversation, Dialect, Segment, text_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IGNORED = -100
"""Label of a position that is not trained; the value that PyTorch's cross entropy skips."""


@dataclass(frozen=True)
class Example:
    """One conversation as numbers; `input_ids` and `labels` have the same length and are not shifted."""

    id: str
    input_ids: list[int]
    labels: list[int]
    system_length: int
    """How many tokens the system turn has; conversations that share it are trained together."""

    @property
    def label_count(self) -> int:
        """How many positions are trained."""
        return sum(label != IGNORED for label in self.labels)


def tokenise(conversation: Conversation, dialect: Dialect, tokenizer: PreTrainedTokenizerFast) -> Example:
    """Ids and labels of a conversation. A token is trained if all of its characters are.

    Raises:
        ValueError: the rendering has no trained token.
    """
    segments = dialect.render(conversation)
    encoding = tokenizer(text_of(segments), add_special_tokens=False, return_offsets_mapping=True)
    ids: list[int] = encoding["input_ids"]
    trained = trained_tokens(segments, encoding["offset_mapping"])
    labels = [token if keep else IGNORED for token, keep in zip(ids, trained, strict=True)]
    if not any(trained):
        raise ValueError(f"conversation {conversation.id!r}: nothing to train on")
    system_end = len(segments[0].text)
    system_length = sum(end <= system_end for _, end in encoding["offset_mapping"])
    return Example(conversation.id, ids, labels, system_length)


def trained_tokens(segments: Sequence[Segment], offsets: Sequence[tuple[int, int]]) -> list[bool]:
    """Which tokens lie in trained segments, whole; `offsets` are half-open character ranges."""
    ends = list(accumulate(len(segment.text) for segment in segments))

    def is_trained(start: int, end: int) -> bool:
        first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
        return start < end and all(segments[index].trained for index in range(first, last + 1))

    return [is_trained(start, end) for start, end in offsets]
