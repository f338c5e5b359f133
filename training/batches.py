"""Which examples make which step, and how a step's examples are laid out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from data.tokenise import IGNORED, Example

if TYPE_CHECKING:
    import torch


def plan(examples: Sequence[Example], batch_size: int, epochs: int, seed: int) -> list[list[int]]:
    """Indices of the examples of every step of a run, in order; a pure function of its arguments.

    Each epoch is shuffled. Only examples with the same system turn share a batch, so that it is computed
    once. Batches are not made of one length: length tells whether a conversation holds calls, and batches of
    refusals alone teach the model to refuse (tried: it then never loaded a skill).
    """
    steps: list[list[int]] = []
    for epoch in range(epochs):
        rng = random.Random(f"{seed}/{epoch}")
        order = list(range(len(examples)))
        rng.shuffle(order)
        batches: list[list[int]] = []
        for group in _by_system_turn(examples, order):
            batches += [group[start : start + batch_size] for start in range(0, len(group), batch_size)]
        rng.shuffle(batches)
        steps.extend(batches)
    return steps


def _by_system_turn(examples: Sequence[Example], order: Sequence[int]) -> list[list[int]]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for index in order:
        example = examples[index]
        groups.setdefault(tuple(example.input_ids[: example.system_length]), []).append(index)
    return list(groups.values())


@dataclass(frozen=True)
class Rows:
    """Examples of about one length, without the prefix that they share."""

    input_ids: torch.Tensor
    """int64, [rows, longest], right-padded."""
    attention_mask: torch.Tensor
    """int64, [rows, longest]; 0 where padded."""
    labels: torch.Tensor
    """int64, [rows, longest]; not shifted."""

    def to(self, device: torch.device) -> Rows:
        """The rows on `device`."""
        return Rows(self.input_ids.to(device), self.attention_mask.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Batch:
    """Examples that begin alike: the shared prefix once, and what follows it row by row."""

    prefix: torch.Tensor
    """int64, [shared]; empty if nothing is shared. Holds no label."""
    parts: tuple[Rows, ...]
    """Longest rows first; a row is more than half as long as the first of its part."""

    def to(self, device: torch.device) -> Batch:
        """The batch on `device`."""
        return Batch(self.prefix.to(device), tuple(part.to(device) for part in self.parts))


def collate(examples: Sequence[Example], part_tokens: int, share_prefix: bool = True) -> Batch:
    """Lay `examples` out as one batch, in parts of at most `part_tokens` tokens, padding included, or one row.

    A refusal is a tenth as long as a conversation with calls, so that rows of very different length stand in
    parts of their own: padding them to one length would be a good part of a step.
    """
    import torch

    shared = _shared_length(examples) if share_prefix and len(examples) > 1 else 0
    parts: list[list[Example]] = []
    for example in sorted(examples, key=lambda each: -len(each.input_ids)):
        longest = len(parts[-1][0].input_ids) - shared if parts else 0
        alike = 2 * (len(example.input_ids) - shared) > longest
        if parts and alike and (len(parts[-1]) + 1) * longest <= part_tokens:
            parts[-1].append(example)
        else:
            parts.append([example])
    prefix = torch.tensor(examples[0].input_ids[:shared], dtype=torch.long)
    return Batch(prefix, tuple(_rows(part, shared) for part in parts))


def _rows(examples: Sequence[Example], shared: int) -> Rows:
    """Padding is masked by length, never by token id: an end of turn keeps its label even where it also pads."""
    import torch

    longest = max(len(example.input_ids) for example in examples) - shared
    input_ids = torch.zeros(len(examples), longest, dtype=torch.long)
    attention_mask = torch.zeros_like(input_ids)
    labels = torch.full_like(input_ids, IGNORED)
    for row, example in enumerate(examples):
        length = len(example.input_ids) - shared
        input_ids[row, :length] = torch.tensor(example.input_ids[shared:])
        attention_mask[row, :length] = 1
        labels[row, :length] = torch.tensor(example.labels[shared:])
    return Rows(input_ids, attention_mask, labels)


def _shared_length(examples: Sequence[Example]) -> int:
    """How many tokens all examples begin with, short of the position that predicts the first label."""
    columns = zip(*(example.input_ids for example in examples), strict=False)
    common = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    first_label = min(
        next((position for position, label in enumerate(example.labels) if label != IGNORED), len(example.labels))
        for example in examples
    )
    return max(0, min(common, first_label - 1))
