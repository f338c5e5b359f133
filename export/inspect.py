"""What is in a `.litertlm` file, read without running it.

The file's layout (a header with the sections' places, LiteRT-LM's own protocol buffers, a compressed tokenizer.json
or a SentencePiece model, TFLite graphs) comes from the schemas that `litert-lm-builder` and `ai-edge-litert` ship.
"""

from __future__ import annotations

import json
import mmap
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from core.errors import UserError
from export.stops import token_ids

Shapes = dict[str, tuple[int, ...]]
"""Name of an input or output → its shape."""


@dataclass(frozen=True)
class Section:
    """One part of the file."""

    kind: str
    """As the schema names it: TFLiteModel, LlmMetadataProto, HF_Tokenizer_Zlib, SP_Tokenizer, …"""
    begin: int
    end: int
    items: dict[str, Any]
    """What the header says of it, such as `model_type`."""

    @property
    def model_type(self) -> str:
        """Which of the model's graphs it is, e.g. `tf_lite_prefill_decode`; empty for other sections."""
        return str(self.items.get("model_type") or "").lower()


@dataclass(frozen=True)
class Signature:
    """One entry point of a graph."""

    inputs: Shapes
    outputs: Shapes


@dataclass(frozen=True)
class BundleTokenizer:
    """The tokenizer in the bundle."""

    kind: str
    """`tokenizer.json` or `SentencePiece`."""
    ids: dict[str, int]
    """Text → id of every token."""
    json: dict[str, Any]
    """The content of tokenizer.json; empty for SentencePiece."""
    encode: Callable[[str], list[int]] = field(repr=False)
    """Text → ids, nothing put in front."""


@dataclass(frozen=True)
class Bundle:
    """A bundle's parts."""

    path: Path
    sections: tuple[Section, ...]
    metadata: Any
    """The `LlmMetadata` message, None without one."""
    graphs: dict[str, dict[str, Signature]]
    """Model type → signature's name → signature, of the graphs that can be read."""
    tokenizer: BundleTokenizer | None
    cache_axis: dict[str, int]
    """Cache input's name → which of its axes counts tokens, where the executor's metadata say so."""

    @property
    def template(self) -> str:
        """The chat template's text; empty without one."""
        return str(self.metadata.jinja_prompt_template) if self.metadata is not None else ""

    @property
    def type_name(self) -> str:
        """The field of `LlmModelType` that is set, which decides the parser; empty without one."""
        kind = None if self.metadata is None else self.metadata.llm_model_type.WhichOneof("model_type")
        return str(kind or "")

    @cached_property
    def main_graph(self) -> dict[str, Signature]:
        """Signatures of the graph that reads and writes text; empty where it cannot be read."""
        return self.graphs.get("tf_lite_prefill_decode", {})

    @cached_property
    def vocabulary(self) -> int | None:
        """Tokens that the graph gives a score, None if it cannot be read."""
        shapes = [signature.outputs.get("logits") for name, signature in self.main_graph.items() if "decode" in name]
        return next((shape[-1] for shape in shapes if shape), None)

    @cached_property
    def cache_length(self) -> int | None:
        """Tokens that the graph's cache holds, None if it cannot be read or differs between layers."""
        lengths = set()
        for signature in self.main_graph.values():
            for name, shape in signature.inputs.items():
                # Graphs of older tools come without the executor's metadata; their mask has the cache's length.
                axis = self.cache_axis.get(name, None if self.cache_axis or name != "mask" else -1)
                if axis is not None and axis < len(shape):
                    lengths.add(shape[axis])
        return next(iter(lengths)) if len(lengths) == 1 else None


def read_bundle(path: Path) -> Bundle:
    """Read `path`.

    Raises:
        UserError: it is missing, is no bundle, or is cut short or damaged.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _read(path, content)
    except FileNotFoundError:
        raise UserError(f"{path}: no such bundle") from None
    except (OSError, ValueError, struct.error, zlib.error, IndexError) as error:
        raise UserError(f"{path}: no whole .litertlm bundle: {error}; copy or export it again") from None


def _read(path: Path, content: mmap.mmap) -> Bundle:
    from google.protobuf.message import DecodeError
    from litert_lm_builder.runtime.proto import executor_metadata_pb2, llm_metadata_pb2

    sections = tuple(_sections(content))

    def first(kind: str) -> bytes | None:
        return next((content[each.begin : each.end] for each in sections if each.kind == kind), None)

    try:
        metadata = first("LlmMetadataProto")
        executor = executor_metadata_pb2.ExecutorMetadata.FromString(first("ExecutorMetadataProto") or b"")
        parsed = None if metadata is None else llm_metadata_pb2.LlmMetadata.FromString(metadata)
    except DecodeError as error:
        raise ValueError(f"its metadata cannot be read: {error}") from None
    buffers = executor.llm_executor_metadata.state_buffers
    return Bundle(
        path,
        sections,
        parsed,
        _graphs(content, sections),
        _tokenizer(first("HF_Tokenizer_Zlib"), first("SP_Tokenizer")),
        {buffer.decode_input_name: buffer.sequence_axis for buffer in buffers if buffer.HasField("sequence_axis")},
    )


def _sections(content: mmap.mmap) -> Iterator[Section]:
    """The sections, from the header of a bundle."""
    from litert_lm_builder import litertlm_core, litertlm_header_schema_py_generated, litertlm_peek

    magic = litertlm_core.HEADER_MAGIC_BYTES
    if content[: len(magic)] != magic:
        raise ValueError(f"it does not begin with {magic.decode()}")
    (end,) = struct.unpack_from("<Q", content, litertlm_core.HEADER_END_LOCATION_BYTE_OFFSET)
    begin = litertlm_core.HEADER_BEGIN_BYTE_OFFSET
    if not begin < end <= len(content):
        raise ValueError(f"its header ends at byte {end}, the file has {len(content)}")
    root = litertlm_header_schema_py_generated.LiteRTLMMetaData.GetRootAs(content[begin:end], 0)
    listed = root.SectionMetadata()
    for index in range(0 if listed is None else listed.ObjectsLength()):
        each = listed.Objects(index)
        kind = litertlm_core.SECTION_DATA_TYPE_TO_STRING_MAP.get(each.DataType(), f"kind {each.DataType()}")
        if not 0 < each.BeginOffset() <= each.EndOffset() <= len(content):
            raise ValueError(f"its section {index} ({kind}) ends at byte {each.EndOffset()}, the file {len(content)}")
        pairs = (litertlm_peek.kvp_to_dict(each.Items(item)) for item in range(each.ItemsLength()))
        items = {str(pair["key"]): pair["value"] for pair in pairs}
        yield Section(kind, each.BeginOffset(), each.EndOffset(), items)


def _graphs(content: mmap.mmap, sections: tuple[Section, ...]) -> dict[str, dict[str, Signature]]:
    """Signatures by model type. A graph that cannot be read, such as one compiled for an NPU, has none."""
    graphs = {}
    for section in sections:
        if section.kind == "TFLiteModel":
            # A copy: the schema's readers hold on to their buffer, and the file is closed after this.
            graphs[section.model_type] = dict(_signatures(content[section.begin : section.end]))
    return graphs


def _signatures(graph: bytes) -> Iterator[tuple[str, Signature]]:
    from ai_edge_litert import schema_py_generated as schema

    if graph[4:8] != b"TFL3":
        return
    model = schema.Model.GetRootAs(graph, 0)
    for index in range(model.SignatureDefsLength()):
        signature = model.SignatureDefs(index)
        subgraph = model.Subgraphs(signature.SubgraphIndex())

        def shapes(count: int, entry: Callable[[int], Any], subgraph: Any = subgraph) -> Shapes:
            listed = (entry(at) for at in range(count))
            return {each.Name().decode(): _shape(subgraph.Tensors(each.TensorIndex())) for each in listed}

        inputs = shapes(signature.InputsLength(), signature.Inputs)
        outputs = shapes(signature.OutputsLength(), signature.Outputs)
        yield signature.SignatureKey().decode(), Signature(inputs, outputs)


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(tensor.Shape(axis) for axis in range(tensor.ShapeLength()))


def _tokenizer(compressed: bytes | None, sentencepiece: bytes | None) -> BundleTokenizer | None:
    if compressed is not None:
        from tokenizers import Tokenizer

        # The first eight bytes are the length of what is compressed.
        text = zlib.decompress(compressed[8:]).decode("utf-8")
        loaded = Tokenizer.from_str(text)
        content = json.loads(text)

        def encode(each: str) -> list[int]:
            return list(loaded.encode(each, add_special_tokens=False).ids)

        return BundleTokenizer("tokenizer.json", token_ids(content), content, encode)
    if sentencepiece is not None:
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor(model_proto=sentencepiece)
        ids = {processor.IdToPiece(index): index for index in range(processor.GetPieceSize())}
        return BundleTokenizer("SentencePiece", ids, {}, lambda each: list(processor.Encode(each)))
    return None
