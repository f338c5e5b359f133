"""LoRA adapters: attached to every linear layer, saved, merged. Uses PEFT."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import UserError
from core.models import load_model, load_tokenizer
from core.recipe import TrainingSettings
from hermes import Dialect

if TYPE_CHECKING:
    import torch
    from peft import PeftModel
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


def choose_dtype(precision: str) -> torch.dtype:
    """The dtype that a recipe's `precision` means on this machine."""
    import torch

    if precision == "float32":
        return torch.float32
    if precision == "bfloat16" or torch.cuda.is_available() or _cpu_has_bfloat16():
        return torch.bfloat16
    return torch.float32


def _cpu_has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 in hardware; elsewhere it is emulated and slower than float32."""
    import torch

    cpu: object = torch.cpu
    return any(
        getattr(cpu, probe, lambda: False)() for probe in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )


def attach(model: PreTrainedModel, settings: TrainingSettings, seed: int) -> PeftModel:
    """`model` with a fresh LoRA adapter on all linear layers but the output head; only it is trainable."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def save_adapter(model: PeftModel, source: str, folder: Path) -> None:
    """Write the adapter to `folder`; the same adapter gives the same bytes.

    Args:
        source: what the adapter's card names as its base model, rather than a folder of this machine.
    """
    config = model.peft_config["default"]
    config.base_model_name_or_path = source
    # A set's order differs from process to process.
    config.target_modules = sorted(config.target_modules)
    model.save_pretrained(folder, safe_serialization=True, save_embedding_layers=False)


def prepare_tokenizer(tokenizer: PreTrainedTokenizerFast, dialect: Dialect) -> int:
    """Give `tokenizer` the dialect's template and end-of-turn token; returns that token's id.

    Raises:
        UserError: the end of turn is not one token of this vocabulary.
    """
    ids = tokenizer.encode(dialect.stop, add_special_tokens=False)
    if len(ids) != 1:
        raise UserError(
            f"{tokenizer.name_or_path}: {dialect.stop!r}, which ends a turn, is {len(ids)} tokens in this tokenizer "
            f"and must be one; the {dialect.name} dialect needs a ChatML checkpoint (SmolLM2, Qwen, Hermes)"
        )
    tokenizer.chat_template = dialect.chat_template()
    tokenizer.eos_token = dialect.stop
    tokenizer.pad_token = dialect.stop
    return int(ids[0])


def merge(base: Path, trust_remote_code: bool, adapter: Path, output: Path, dialect: Dialect) -> None:
    """Write base + adapter to `output` as a plain float32 model in safetensors, with tokenizer and template."""
    import torch
    from peft import PeftModel

    model = load_model(base, torch.float32, trust_remote_code)
    merged = PeftModel.from_pretrained(model, adapter).merge_and_unload()
    tokenizer = load_tokenizer(base, trust_remote_code)
    stop = prepare_tokenizer(tokenizer, dialect)
    merged.config.eos_token_id = stop
    merged.config.pad_token_id = stop
    merged.generation_config.eos_token_id = stop
    merged.generation_config.pad_token_id = stop
    merged.generation_config.do_sample = False
    merged.save_pretrained(output, safe_serialization=True)
    tokenizer.save_pretrained(output)
