"""`lock.json` beside a bundle: what it was made from and by, so that others can make the same bytes or see why not.

It holds no time and no path: the same inputs give the same lock.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.files import file_hash
from core.requirements import EXPORT
from core.stages import versions

_BESIDE = ("flatbuffers", "numpy", "protobuf", "sentencepiece", "tokenizers")
"""What the packages that an export must have (`core.requirements.EXPORT`) rest on."""
_FORMAT = 1


def lock(
    bundle: Path, model: Path, parts: Mapping[str, str], template: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of `lock.json`.

    Args:
        bundle: the finished bundle.
        model: folder of the merged model.
        parts: SHA-256 of what was packed, by name.
        template: SHA-256 of the chat template in the metadata.
        settings: what the recipe says of the export.
    """
    files = sorted(path for pattern in ("*.safetensors", "*.json") for path in model.glob(pattern))
    return {
        "format": _FORMAT,
        "bundle": {"name": bundle.name, "bytes": bundle.stat().st_size, "sha256": file_hash(bundle)},
        "parts": {**parts, "template": template},
        "model": {path.name: file_hash(path) for path in files},
        "settings": dict(settings),
        "versions": {**versions(*EXPORT), **_installed(_BESIDE)},
        "python": platform.python_version(),
        # Graphs are folded and weights rounded with the machine's own arithmetic.
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _installed(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
