"""Packing: graph, tokenizer and metadata into one `.litertlm` file, in a fixed order."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.files import atomic_path, file_hash, value_hash
from export.convert import ConvertedModel


def write_bundle(path: Path, converted: ConvertedModel, tokenizer: Path, metadata: bytes, work: Path) -> dict[str, str]:
    """Pack `path`. The same parts give the same bytes: the file's uuid is derived from their hashes.

    Args:
        tokenizer: a `tokenizer.json`, or a SentencePiece model.
        metadata: a serialised `LlmMetadata`.
        work: a folder for intermediate files.

    Returns:
        SHA-256 of each part, by its name.
    """
    from litert_lm_builder import litertlm_builder

    metadata_file = work / "llm_metadata.pb"
    metadata_file.write_bytes(metadata)
    parts = {
        "metadata": metadata_file,
        "executor metadata": converted.executor_metadata,
        "tokenizer": tokenizer,
        "graph": converted.graph,
    }
    builder = litertlm_builder.LitertLmFileBuilder()
    builder.add_system_metadata(
        litertlm_builder.Metadata(key="Authors", value="hermes-edge", dtype=litertlm_builder.DType.STRING)
    )
    builder.add_llm_metadata(str(metadata_file))
    builder.add_executor_metadata(str(converted.executor_metadata))
    if tokenizer.suffix == ".json":
        builder.add_hf_tokenizer(str(tokenizer))
    else:
        builder.add_sentencepiece_tokenizer(str(tokenizer))
    builder.add_tflite_model(str(converted.graph), litertlm_builder.TfLiteModelType.PREFILL_DECODE)
    hashes = {name: file_hash(part) for name, part in parts.items()}
    identity = uuid.uuid5(uuid.NAMESPACE_URL, value_hash(list(hashes.values())))
    with atomic_path(path) as temporary, _fixed_identity(identity), temporary.open("wb") as file:
        builder.build(file)
    return hashes


@contextmanager
def _fixed_identity(identity: uuid.UUID) -> Iterator[None]:
    """Within the block, the builder writes `identity` instead of a random uuid, and no time of creation."""
    from litert_lm_builder import litertlm_builder

    original = litertlm_builder.populate_system_metadata

    def populate(entries: list[object]) -> list[object]:
        string = litertlm_builder.DType.STRING
        return [*entries, litertlm_builder.Metadata(key="uuid", value=str(identity), dtype=string)]

    litertlm_builder.populate_system_metadata = populate
    try:
        yield
    finally:
        litertlm_builder.populate_system_metadata = original
