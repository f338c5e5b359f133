"""Greedy decoding of many conversations with transformers, on a CPU.

Prompts are grouped by their system turn, whose keys and values are computed once and kept until another one comes;
the rest is padded on the left and decoded together. The answers equal those of `model.generate`, one conversation
at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core.errors import UserError
from hermes import Conversation, Dialect, get_dialect, text_of
from runtime.backend import Completion, OnDone

if TYPE_CHECKING:
    import torch

    from runtime.shared_prefix import PrefixLayers

Ids = list[int]
Prefix = tuple[int, ...]


class TransformersBackend:
    """A causal language model of transformers, asked in batches."""

    batched = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        dialect: Dialect | None = None,
        *,
        batch_size: int = 10,
        max_new_tokens: int = 160,
        name: str = "transformers",
    ) -> None:
        """Wrap a loaded model and its fast tokenizer; both stay the caller's, but the weights must not change.

        Raises:
            UserError: the tokenizer has no single token for the dialect's end-of-turn mark.
        """
        self.name = name
        self.model = model
        self.tokenizer = tokenizer
        self.dialect = dialect or get_dialect("hermes")
        self.batch_size = batch_size
        self.max_new_tokens = max_new_tokens
        stop = tokenizer.encode(self.dialect.stop, add_special_tokens=False)
        if len(stop) != 1:
            raise UserError(f"{name}: the tokenizer has no single token for {self.dialect.stop!r}, which ends a reply")
        self._stops = {stop[0], tokenizer.eos_token_id} - {None}
        self._kept: tuple[Prefix, PrefixLayers] | None = None
        """The last prefix, with its keys and values: whoever asks step by step shares it again."""

    @classmethod
    def from_folder(
        cls,
        folder: Path,
        dialect: Dialect | None = None,
        *,
        batch_size: int = 10,
        max_new_tokens: int = 160,
        precision: Literal["auto", "bfloat16", "float32"] = "float32",
        trust_remote_code: bool = False,
        name: str | None = None,
    ) -> TransformersBackend:
        """Load a folder in Hugging Face layout: safetensors weights, its own code only if that is trusted."""
        from core.models import choose_dtype, load_model, load_tokenizer

        model = load_model(folder, choose_dtype(precision, on_cpu=True), trust_remote_code)
        tokenizer = load_tokenizer(folder, trust_remote_code)
        shown = name or folder.name
        return cls(model, tokenizer, dialect, batch_size=batch_size, max_new_tokens=max_new_tokens, name=shown)

    def complete(self, conversations: Sequence[Conversation], on_done: OnDone | None = None) -> list[Completion]:
        """The next assistant turn of each conversation, in the given order.

        Raises:
            UserError: a prompt and its reply do not fit into the model's context.
        """
        import torch

        from runtime.shared_prefix import sharing

        groups = self._groups(conversations)
        done: dict[int, Completion] = {}
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                for prefix, suffixes in groups.items():
                    started = time.perf_counter()
                    layers = self._prefix_layers(prefix) if prefix else None
                    spent = (time.perf_counter() - started) / len(suffixes)
                    with sharing(self.model) if layers else nullcontext():
                        for batch in _batches(suffixes, self.batch_size):
                            for index, completion in self._decode(batch, len(prefix), layers, spent):
                                done[index] = completion
                                if on_done is not None:
                                    on_done(index, completion)
        finally:
            self.model.train(was_training)
        return [done[index] for index in range(len(conversations))]

    def _groups(self, conversations: Sequence[Conversation]) -> dict[Prefix, dict[int, Ids]]:
        """Prompts by the prefix they share: prefix → index of the conversation → the token ids after the prefix.

        Prompts with the same system turn share it, one alone too if its prefix is the one that is kept. Those left
        alone share whatever they begin with.
        """
        from runtime.shared_prefix import can_share

        prompts = self._prompts(conversations)
        if not can_share(self.model):
            return {(): {index: ids for index, (ids, _) in enumerate(prompts)}}
        groups: dict[Prefix, dict[int, Ids]] = {}
        for index, (ids, length) in enumerate(prompts):
            groups.setdefault(tuple(ids[:length]), {})[index] = ids[length:]
        kept = self._kept[0] if self._kept else None
        shared = {prefix: rows for prefix, rows in groups.items() if len(rows) > 1 or prefix == kept}
        lonely = {
            index: [*prefix, *ids]
            for prefix, rows in groups.items()
            if prefix not in shared
            for index, ids in rows.items()
        }
        if lonely:
            first, last = min(lonely.values()), max(lonely.values())
            length = _common_length(first, last) if len(lonely) > 1 else 0
            length = min([length, *(len(ids) - 1 for ids in lonely.values())])
            rows = shared.setdefault(tuple(first[:length]), {})
            rows.update({index: ids[length:] for index, ids in lonely.items()})
        return shared

    def _prompts(self, conversations: Sequence[Conversation]) -> list[tuple[Ids, int]]:
        """Each prompt's token ids, and how many of them are its system turn; at least one id is not."""
        prompts: list[tuple[Ids, int]] = []
        heads: dict[str, Ids] = {}
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        for index, conversation in enumerate(conversations):
            segments = self.dialect.render(conversation, add_generation_prompt=True)
            ids = self._encode(text_of(segments))
            if limit is not None and len(ids) + self.max_new_tokens > limit:
                raise UserError(
                    f"{self.name}: conversation {conversation.id or index} has {len(ids)} tokens, with a reply of up "
                    f"to {self.max_new_tokens} more than the {limit} that the model can hold"
                )
            head = segments[0].text
            if head not in heads:
                heads[head] = self._encode(head)
            prompts.append((ids, min(_common_length(heads[head], ids), len(ids) - 1)))
        return prompts

    def _encode(self, text: str) -> Ids:
        ids: Ids = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _prefix_layers(self, prefix: Prefix) -> PrefixLayers:
        """Keys and values of `prefix`, one row: those that are kept, or computed and kept in their place."""
        import torch
        from transformers import DynamicCache

        if self._kept is None or self._kept[0] != prefix:
            cache = DynamicCache(config=self.model.config)
            self.model(input_ids=torch.tensor([prefix]), past_key_values=cache, use_cache=True, logits_to_keep=1)
            self._kept = prefix, [(layer.keys, layer.values) for layer in cache.layers]
        return self._kept[1]

    def _decode(
        self, batch: Sequence[tuple[int, Ids]], offset: int, prefix: PrefixLayers | None, spent: float
    ) -> Iterator[tuple[int, Completion]]:
        """Decode a batch of `(index, ids after the prefix)`; yields each row as it ends and drops it from the batch.

        `spent` seconds are each row's share of what the prefix took.
        """
        import torch
        from transformers import DynamicCache

        rows = [_Row(index, spent) for index, _ in batch]
        inputs, mask = _pad_left([ids for _, ids in batch])
        positions = offset + (mask.cumsum(1) - 1).clamp(min=0)
        cache = DynamicCache(config=self.model.config)
        shared = {} if prefix is None else {"shared_prefix": prefix}
        while rows:
            started = time.perf_counter()
            output = self.model(
                input_ids=inputs,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
                **shared,
            )
            tokens: Ids = output.logits[:, -1].argmax(-1).tolist()
            share = (time.perf_counter() - started) / len(rows)
            alive = [number for number, row in enumerate(rows) if not self._advance(row, tokens[number], share)]
            for row in rows:
                if row.finished:
                    yield row.index, self._completion(row)
            if len(alive) < len(rows):
                rows = [rows[number] for number in alive]
                chosen = torch.tensor(alive, dtype=torch.long)
                mask, positions = mask[chosen], positions[chosen]
                cache.batch_select_indices(chosen)
            inputs = torch.tensor([row.ids[-1:] for row in rows], dtype=torch.long)
            positions = positions[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)

    def _advance(self, row: _Row, token: int, seconds: float) -> bool:
        """Add a token to a row; whether that ends it."""
        row.seconds += seconds
        if token in self._stops:
            row.finished = "stop"
        else:
            row.ids.append(token)
            if len(row.ids) >= self.max_new_tokens:
                row.finished = "length"
        return row.finished is not None

    def _completion(self, row: _Row) -> Completion:
        assert row.finished is not None
        text = self.tokenizer.decode(row.ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return Completion(text, row.finished, row.seconds)


class _Row:
    """One conversation in a batch, while it is decoded."""

    def __init__(self, index: int, seconds: float) -> None:
        self.index = index
        self.ids: Ids = []
        self.seconds = seconds
        self.finished: Literal["stop", "length"] | None = None


def _common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their start."""
    for position, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return position
    return min(len(left), len(right))


def _batches(suffixes: dict[int, Ids], size: int) -> Iterator[list[tuple[int, Ids]]]:
    """Batches of rows of similar length."""
    ordered = sorted(suffixes.items(), key=lambda item: len(item[1]))
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def _pad_left(rows: Sequence[Ids]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask of `rows`, both `(rows, longest)` int64; padding (id 0, mask 0) stands left."""
    import torch

    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, width - len(row) :] = torch.tensor(row)
        mask[number, width - len(row) :] = 1
    return ids, mask
