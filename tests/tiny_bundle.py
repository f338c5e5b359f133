"""A tiny bundle that was really exported, and others made of its parts with other metadata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.bundle import write_bundle
from export.convert import ConvertedModel
from export.inspect import read_bundle
from export.trial import export_tiny

Change = Callable[[Any], object]
"""Changes an `LlmMetadata` in place."""


@dataclass(frozen=True)
class TinyBundle:
    folder: Path
    path: Path

    @classmethod
    def export(cls, folder: Path) -> TinyBundle:
        return cls(folder, export_tiny(folder))

    @property
    def parts(self) -> ConvertedModel:
        return ConvertedModel(
            self.folder / "work" / "wi8-quantized.tflite", self.folder / "work" / "executor_metadata.pb"
        )

    @property
    def tokenizer(self) -> Path:
        return self.folder / "model" / "tokenizer.json"

    def with_metadata(self, target: Path, change: Change) -> Path:
        metadata = read_bundle(self.path).metadata
        change(metadata)
        write_bundle(target, self.parts, self.tokenizer, metadata.SerializeToString(), target.parent)
        return target
