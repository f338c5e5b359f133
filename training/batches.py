"""Which examples make which step, and how a step's examples are laid out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from data.tokenise import IGNORED, Example

if TYPE_CHECKING:
    import torch


def plan(examples: Sequence[Example], batch_size: int, epochs: int, seed: int) -> list[list[int]]:
    """Indices of the examples of every step of a run, in order; a pure function of its arguments.

    Each epoch is shuffled. Examples of like length share a batch, so that little is padding.
    """
    steps: list[list[int]] = []
    for epoch in range(epochs):
        rng = random.Random(f"{seed}/{epoch}")
        order = list(range(len(examples)))
        rng.shuffle(order)
        order.sort(key=lambda index: len(examples[index].input_ids) // 32)
        batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
        rng.shuffle(batches)
        steps.extend(batches)
    return steps


def collate(examples: Sequence[Example]) -> dict[str, torch.Tensor]:
    """Right-padded `input_ids`, `attention_mask` and `labels`, each int64, [batch, longest].

    Padding is masked by length, never by token id, so an end-of-turn token keeps its label even where
    it is also the padding token.
    """
    import torch

    longest = max(len(example.input_ids) for example in examples)
    input_ids = torch.zeros(len(examples), longest, dtype=torch.long)
    attention_mask = torch.zeros_like(input_ids)
    labels = torch.full_like(input_ids, IGNORED)
    for row, example in enumerate(examples):
        length = len(example.input_ids)
        input_ids[row, :length] = torch.tensor(example.input_ids)
        attention_mask[row, :length] = 1
        labels[row, :length] = torch.tensor(example.labels)
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}
