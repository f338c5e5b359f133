"""Logits of the merged model in transformers and of a bundle's graph, at the same positions of the same tokens.

Both keep the keys and values of what they have read, so that sequences with a common start cost only what differs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.errors import UserError
from export.convert import output_to

Logits = npt.NDArray[np.float32]
_MASKED = -1e9
"""What a graph with an additive mask gets where a position must not be seen; minus infinity would make NaN of a row
without any visible position.
"""


_INPUTS = ("tokens", "input_pos", "mask")


class Scorer(Protocol):
    """Something that predicts the next token."""

    def logits(self, ids: Sequence[int], start: int) -> Logits:
        """Logits that predict `ids[start:]`, each from all tokens before it: `(len(ids) - start, vocabulary)`."""
        ...


def common_length(left: Sequence[object], right: Sequence[object]) -> int:
    """How many items two sequences have in common at their start."""
    for position, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return position
    return min(len(left), len(right))


class SourceModel:
    """The merged model in transformers, float32."""

    def __init__(self, folder: Path) -> None:
        """Load the model of `folder`, on the CPU.

        Raises:
            UserError: it cannot be read.
        """
        import torch

        from core.models import load_model
        from runtime.shared_prefix import can_share

        self._model = load_model(folder, torch.float32).eval()
        # Layers with a window drop what they no longer see, so their cache cannot go back.
        self._keeps = can_share(self._model)
        self._ids: list[int] = []
        self._cache: Any = None

    def logits(self, ids: Sequence[int], start: int) -> Logits:
        """See `Scorer`."""
        import torch
        from transformers import DynamicCache

        known = min(common_length(self._ids, ids), start - 1) if self._keeps else 0
        if known and self._cache is not None:
            self._cache.crop(known)
        else:
            known, self._cache = 0, DynamicCache(config=self._model.config)
        read = list(ids[:-1])
        with torch.inference_mode():
            output = self._model(
                input_ids=torch.tensor([read[known:]]),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=len(ids) - start,
            )
        self._ids = read
        found: Logits = output.logits[0].float().numpy()
        return found


class Graph:
    """A `.tflite` with a `decode` signature and `prefill_N` signatures, as litert-torch writes them.

    Prompts go through the longest prefill that fits, what is left and every scored token through decode, since only
    decode returns logits. The cache stays in the runtime's own buffers: copying it at each step would cost more than
    the step.
    """

    def __init__(self, path: Path) -> None:
        """Load the graph on the CPU.

        Raises:
            UserError: it cannot be loaded, or is no such graph.
        """
        from ai_edge_litert.compiled_model import CompiledModel, CpuOptions, Options
        from ai_edge_litert.hardware_accelerator import HardwareAccelerator

        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        options = Options(
            hardware_accelerators=HardwareAccelerator.CPU, cpu_options=CpuOptions(num_threads=min(threads, 8))
        )
        try:
            with output_to(Path(os.devnull)):
                self._model = CompiledModel.from_file(str(path), options=options)
        except (RuntimeError, ValueError) as error:
            raise UserError(f"{path}: this graph cannot be loaded: {error}") from None
        signatures = self._model.get_signature_list()
        details = {name: self._model.get_input_tensor_details(name) for name in signatures}
        prefills = {details[name]["tokens"]["shape"][1]: name for name in signatures if name.startswith("prefill")}
        if "decode" not in signatures or not prefills or "logits" not in signatures["decode"]["outputs"]:
            raise UserError(f"{path}: a graph needs decode with logits, and prefill; it has {sorted(signatures)}")
        self._signatures = {1: "decode", **dict(sorted(prefills.items()))}
        self.cache_length = int(details["decode"]["mask"]["shape"][-1])
        """Tokens that the cache holds."""
        self._make_buffers(signatures, details)
        self._ids: list[int] = []

    def _make_buffers(self, signatures: dict[str, Any], details: dict[str, Any]) -> None:
        """The cache is whatever a step both takes and gives; the same buffers serve for both, and for prefill."""
        decode = signatures["decode"]
        state = [name for name in decode["inputs"] if name in decode["outputs"]]
        self._state = {name: self._model.create_input_buffer_by_name("decode", name) for name in state}
        for name, buffer in self._state.items():
            tensor = details["decode"][name]
            buffer.write(np.zeros(tensor["shape"], tensor["dtype"]))
        self._inputs = {
            signature: {name: self._model.create_input_buffer_by_name(signature, name) for name in _INPUTS}
            for signature in self._signatures.values()
        }
        self._boolean_mask = details["decode"]["mask"]["dtype"] == "bool"
        self._vocabulary = int(self._model.get_output_tensor_details("decode")["logits"]["shape"][-1])
        self._output = self._model.create_output_buffer_by_name("decode", "logits")

    def logits(self, ids: Sequence[int], start: int) -> Logits:
        """See `Scorer`.

        Raises:
            UserError: the cache does not hold `ids`.
        """
        if len(ids) > self.cache_length:
            raise UserError(f"{len(ids)} tokens do not fit into the graph's cache of {self.cache_length}")
        known = min(common_length(self._ids, ids), start - 1)
        self._ids = []
        self._read(ids[: start - 1], known)
        rows = []
        for position in range(start - 1, len(ids) - 1):
            self._step(1, ids[position : position + 1], position)
            rows.append(self._output.read(self._vocabulary, np.float32))
        self._ids = list(ids[:-1])
        return np.stack(rows)

    def _read(self, ids: Sequence[int], known: int) -> None:
        """Write keys and values of `ids[known:]` into the cache."""
        while known < len(ids):
            left = len(ids) - known
            sizes = [size for size in self._signatures if size > 1 and known + size <= self.cache_length]
            # A padded prefill writes past the prompt, which later steps overwrite, but must not reach past the cache.
            size = next((size for size in sizes if size >= left), max(sizes, default=1))
            self._step(size, ids[known : known + size], known)
            known += size

    def _step(self, size: int, ids: Sequence[int], position: int) -> None:
        """Run the signature for `size` tokens on `ids`, of which the first stands at `position`."""
        tokens = np.zeros((1, size), np.int32)
        tokens[0, : len(ids)] = ids
        positions = np.arange(position, position + size, dtype=np.int32)
        visible = np.arange(self.cache_length)[None, :] <= positions[:, None]
        mask = visible if self._boolean_mask else np.where(visible, np.float32(0), np.float32(_MASKED))
        signature = self._signatures[size]
        inputs = self._inputs[signature]
        for name, value in zip(_INPUTS, (tokens, positions, mask), strict=True):
            inputs[name].write(value)
        outputs = {**self._state, "logits": self._output} if size == 1 else self._state
        self._model.run_by_name(signature, {**inputs, **self._state}, outputs)
