"""LoRA adapters: attached to every linear layer, saved, merged. Uses PEFT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import UserError
from core.models import load_model, load_tokenizer
from core.recipe import Recipe, TrainingSettings
from core.sentinels import claim_tokens, start_rows
from hermes import Dialect, get_dialect
from hermes.control import SENTINELS

if TYPE_CHECKING:
    from peft import PeftModel
    from torch import nn
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


def attach(model: PreTrainedModel, settings: TrainingSettings, seed: int, rows: Sequence[int] = ()) -> PeftModel:
    """`model` with a fresh LoRA adapter on all linear layers but the output head; only it is trainable.

    Args:
        rows: token ids whose embeddings are trained too.
    """
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
        trainable_token_indices=list(rows) or None,
    )
    return get_peft_model(model, config)


@contextmanager
def efficient(model: nn.Module) -> Iterator[None]:
    """Within the block the tuned `model` computes its loss and gradient in less time.

    A bfloat16 model computes with its float32 adapter rounded to bfloat16; otherwise PEFT casts every layer's input
    to float32 and back. The adapter's own values, and their gradients, stay float32. On a processor, see also
    `training.processor`.
    """
    import torch
    from peft.helpers import disable_input_dtype_casting

    from training.processor import fast_step

    weight = next(model.parameters())
    with ExitStack() as stack:
        if weight.dtype == torch.bfloat16:
            stack.enter_context(disable_input_dtype_casting(model))
            stack.enter_context(torch.autocast(weight.device.type, dtype=torch.bfloat16))
        if weight.device.type == "cpu":
            stack.enter_context(fast_step(model))
        yield


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


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizer that a recipe trains with, and the rows of the embedding that are trained for it."""

    tokenizer: PreTrainedTokenizerFast
    plain: PreTrainedTokenizerFast
    """The checkpoint's own."""
    claimed: dict[str, int]
    """Sentinels that a reserved token was renamed for, and its id."""

    @classmethod
    def of(cls, base: Path, recipe: Recipe) -> Vocabulary:
        """The vocabulary of the checkpoint in `base`.

        Raises:
            UserError: the end of turn is not one token, or reserved tokens are missing.
        """
        plain = load_tokenizer(base, recipe.model.trust_remote_code)
        tokenizer, claimed = plain, dict[str, int]()
        if recipe.sentinels == "tokens":
            tokenizer, claimed = claim_tokens(plain, SENTINELS, recipe.model.reserved_tokens)
        prepare_tokenizer(tokenizer, get_dialect(recipe.dialect))
        return cls(tokenizer, plain, claimed)

    def start(self, model: PreTrainedModel) -> list[int]:
        """Give the claimed rows of a model of this checkpoint a start; returns their ids."""
        start_rows(model, self.plain, self.claimed)
        return sorted(self.claimed.values())


def merge(base: Path, recipe: Recipe, adapter: Path, output: Path) -> None:
    """Write base + adapter to `output` as a plain float32 model in safetensors, with tokenizer and template.

    Raises:
        UserError: the base model or its tokenizer cannot be loaded, or does not fit the recipe.
    """
    import torch
    from peft import PeftModel

    vocabulary = Vocabulary.of(base, recipe)
    model = load_model(base, torch.float32, recipe.model.trust_remote_code)
    vocabulary.start(model)
    merged = PeftModel.from_pretrained(model, adapter).merge_and_unload()
    stop = vocabulary.tokenizer.eos_token_id
    merged.config.eos_token_id = stop
    merged.config.pad_token_id = stop
    merged.generation_config.eos_token_id = stop
    merged.generation_config.pad_token_id = stop
    merged.generation_config.do_sample = False
    merged.save_pretrained(output, safe_serialization=True)
    vocabulary.tokenizer.save_pretrained(output)
