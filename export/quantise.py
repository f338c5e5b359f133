"""What `export.quantization` means, and a float32 graph made smaller by it.

All ways store weights in fewer bits and quantise activations as they come; the cache and all else stay float32.
`wi8` has 8 bits and one scale for each output channel. `wi4` has 4 bits and a 16-bit scale for each block of 32
weights. `mixed` has `wi4`'s blocks in the feed-forward layers, where most weights are, and `wi8` elsewhere: attention,
embedding and head. A head that is tied to the embedding is stored once, since both are always quantised alike.

The recipes are ai-edge-quantizer's (0.9.0). Of its others, 4 bits with one scale for a channel, the same with Hadamard
rotations, and 4 bits for storage only were seen to run in LiteRT-LM 0.18.1 and were not compared; static quantisation
needs calibration data; blocks of 8-bit weights are not in the quantizer's policy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import UserError
from core.recipe import Quantization

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 32
"""Weights that share a scale in a 4-bit layer; a layer's input width must be a multiple of it."""
_FEED_FORWARD = r"_mlp/[^;]*_proj"
"""In a graph by litert-torch, operations are named after their modules: `…LlamaMLP_mlp/…Linear_gate_proj;1`."""
_SMALLEST_SCALE = 2.0**-14
"""The smallest normal float16."""


def quantise(graph: Path, target: Path, quantization: Quantization) -> None:
    """Write the float32 `.tflite` file `graph`, quantised, to `target`.

    Raises:
        UserError: a layer cannot be stored in this way; the message says what to choose instead.
    """
    from ai_edge_quantizer import quantizer

    quantized = quantizer.Quantizer(str(graph), _recipe(quantization)).quantize().quantized_model
    content = bytearray(quantized)
    if quantization != "wi8" and not _mend_blocks(content):
        raise UserError(
            f"export.quantization: {quantization}: no layer of this model can be stored in 4-bit blocks: none has a "
            f"name like a feed-forward layer's with an input width that is a multiple of {BLOCK}; choose wi8"
        )
    target.write_bytes(content)


def _recipe(quantization: Quantization) -> list[dict[str, Any]]:
    """The quantizer's own recipe; where two of its entries apply to an operation, the later one wins."""
    from ai_edge_quantizer import recipe
    from ai_edge_quantizer.qtyping import TFLOperationName as Operation

    eight_bits: list[dict[str, Any]] = recipe.dynamic_wi8_afp32()
    blocks = recipe.dynamic_wi4b32_afp32
    if quantization == "wi8":
        return eight_bits
    if quantization == "mixed":
        return [*eight_bits, *blocks(regex=_FEED_FORWARD, operation_name=Operation.FULLY_CONNECTED)]
    assert quantization == "wi4", quantization
    everywhere = (Operation.EMBEDDING_LOOKUP, Operation.FULLY_CONNECTED)
    return [*eight_bits, *(entry for kind in everywhere for entry in blocks(operation_name=kind))]


def _mend_blocks(content: bytearray) -> int:
    """Give blocks of zeros a scale, in place; returns how many layers have blocks.

    The quantizer gives a block without any weight but 0 (a padding token's row has many) the scale 0, and the
    runtime's CPU kernels refuse the whole model then. Zeros are zeros at any scale.
    """
    import numpy as np
    from ai_edge_litert.tools import flatbuffer_utils

    # The model's arrays are views of `content`.
    model = flatbuffer_utils.read_model_from_bytearray(memoryview(content))
    layers = 0
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            details = getattr(tensor.quantization, "details", None)
            if details is not None and hasattr(details, "blockSize"):
                layers += 1
                data = model.buffers[subgraph.tensors[details.scales].buffer].data
                scales: NDArray[Any] = np.frombuffer(data, np.float16)
                scales[scales < _SMALLEST_SCALE] = _SMALLEST_SCALE
    return layers
