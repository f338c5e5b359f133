"""`hermes-edge doctor --export`: a model of a few thousand random weights, exported and checked on this machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from core.errors import UserError
from core.recipe import ExportSettings
from core.requirements import EXPORT, need_versions
from export.bundle import write_bundle
from export.check import check_bundle
from export.convert import convert
from export.metadata import llm_metadata
from export.stops import stop_tokens_of
from hermes import get_dialect
from hermes.control import IM_END, IM_START

CACHE_LENGTH = 4096
"""Tokens; enough for the prompt of Agent Skills, of which each byte is a token here."""
_TOKENS = ("<|endoftext|>", IM_START, IM_END)


def tiny_model(folder: Path) -> None:
    """Write a Llama of one layer with random weights, and a tokenizer with a token a byte, into `folder`."""
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from core.models import quiet_libraries

    quiet_libraries()
    pieces = (*_TOKENS, *sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer = Tokenizer(models.BPE(vocab={piece: index for index, piece in enumerate(pieces)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in _TOKENS])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=IM_END, pad_token=IM_END)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(pieces),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=CACHE_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=pieces.index(IM_START),
        eos_token_id=pieces.index(IM_END),
        pad_token_id=pieces.index(IM_END),
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)


def export_tiny(folder: Path) -> Path:
    """Export the tiny model in `folder` as a real model is exported; returns the bundle.

    Raises:
        UserError: versions do not fit, or the conversion failed.
    """
    need_versions(EXPORT, "export")
    model, work, bundle = folder / "model", folder / "work", folder / "tiny.litertlm"
    model.mkdir(parents=True)
    tiny_model(model)
    settings = ExportSettings(cache_length=CACHE_LENGTH, prefill_lengths=(128,))
    converted = convert(model, work, settings, folder / "convert.log")
    dialect = get_dialect("hermes")
    metadata = llm_metadata(dialect, stop_tokens_of(model, (dialect.stop,)), CACHE_LENGTH)
    write_bundle(bundle, converted, model / "tokenizer.json", metadata, work)
    return bundle


def trial() -> Iterator[str]:
    """Lines for a person, as of `core.doctor.report`: does an export work here, and is its bundle fit for the phone?"""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            report = check_bundle(export_tiny(Path(folder)))
        except UserError as error:
            # The log goes with the folder; its last words are what a person needs of it.
            log = Path(folder) / "convert.log"
            words = log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:] if log.is_file() else []
            yield "\n    ".join([f"! export: {error}", *words])
            return
    for name, findings in report.items():
        for finding in findings:
            mark = "! " if finding.severity == "fault" else ""
            yield f"{mark}export of a tiny model: {name}: {finding}"
    faults = sum(finding.severity == "fault" for findings in report.values() for finding in findings)
    outcome = f"{faults} faults" if faults else "its bundle loads, renders and parses a call"
    yield f"{'! ' if faults else ''}export of a tiny model: {outcome} ({time.monotonic() - started:.0f} s)"
