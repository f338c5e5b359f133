"""The loss and its gradient, the loop, and resuming."""

from __future__ import annotations

import copy
import json
import shutil
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from peft.tuners.lora import Linear as LoraLinear
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from core.errors import UserError
from core.recipe import ModelSettings, Recipe, TrainingSettings
from data.agent_skills import generate
from data.tokenise import IGNORED, Example, tokenise
from hermes import Conversation, Message, get_dialect
from training.adapter import attach, efficient, merge, save_adapter
from training.batches import collate, plan
from training.checkpoint import restore, trainable
from training.loop import fit, learning_rate
from training.loss import add_gradient, labelled_loss

DIALECT = get_dialect("hermes")


@pytest.fixture(scope="module")
def examples(tokenizer: PreTrainedTokenizerFast) -> list[Example]:
    return [tokenise(each, DIALECT, tokenizer) for each in generate("train", 36, 0)]


@pytest.fixture(scope="module")
def short(tokenizer: PreTrainedTokenizerFast) -> list[Example]:
    """Two-turn conversations under one system turn, a tenth as long."""
    system = Message("system", "Be brief, and copy what the user says.")
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    texts = [(system, Message("user", f"Say {word}"), Message("assistant", f"I say {word}")) for word in words]
    return [tokenise(Conversation(messages), DIALECT, tokenizer) for messages in texts]


def llama(folder: Path, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)


def toy(*rows: tuple[list[int], list[int]]) -> list[Example]:
    return [Example(str(index), ids, labels, 2) for index, (ids, labels) in enumerate(rows)]


def test_collate_masks_padding_by_length_and_never_by_id() -> None:
    batch = collate(toy(([5, 11, 12, 2], [IGNORED, 11, 12, 2]), ([5, 9, 2], [IGNORED, 9, 2])), 1000, share_prefix=False)
    (rows,) = batch.parts
    assert rows.input_ids.tolist() == [[5, 11, 12, 2], [5, 9, 2, 0]]
    assert rows.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert rows.labels.tolist() == [[IGNORED, 11, 12, 2], [IGNORED, 9, 2, IGNORED]]


def test_the_shared_prefix_stops_short_of_the_position_that_predicts_a_label() -> None:
    none = IGNORED
    alike = toy(([7, 8, 9, 3, 4], [none, none, none, 3, 4]), ([7, 8, 9, 3, 5], [none, none, none, 3, 5]))
    batch = collate(alike, 1000)
    assert batch.prefix.tolist() == [7, 8]
    assert batch.parts[0].input_ids.tolist() == [[9, 3, 4], [9, 3, 5]]
    assert collate(toy(([7, 8], [none, 8]), ([6, 8], [none, 8])), 1000).prefix.tolist() == []


def test_rows_of_very_different_length_stand_in_parts_of_their_own() -> None:
    lengths = [4, 30, 9, 16, 31, 8]
    batch = collate(toy(*(([7, *range(10, 10 + length)], [IGNORED] * length + [5]) for length in lengths)), 1000)
    assert batch.prefix.shape == (3,)
    assert [part.attention_mask.sum(1).tolist() for part in batch.parts] == [[29, 28], [14], [7, 6], [2]]


@pytest.mark.parametrize(("limit", "rows"), [(1000, [5]), (60, [2, 2, 1]), (59, [1] * 5), (1, [1] * 5)])
def test_a_part_has_at_most_so_many_tokens_or_one_row(limit: int, rows: list[int]) -> None:
    batch = collate(toy(*(([7, last, *range(10, 39)], [IGNORED] * 30 + [5]) for last in range(5))), limit)
    assert batch.prefix.tolist() == [7]
    assert [len(part.input_ids) for part in batch.parts] == rows


def test_plan_holds_every_example_once_an_epoch_and_never_mixes_system_turns(examples: list[Example]) -> None:
    steps = plan(examples, 4, 2, 0)
    assert steps == plan(examples, 4, 2, 0) != plan(examples, 4, 2, 1)
    for epoch in (steps[: len(steps) // 2], steps[len(steps) // 2 :]):
        assert sorted(index for step in epoch for index in step) == list(range(len(examples)))
    for step in steps:
        assert len({tuple(examples[i].input_ids[: examples[i].system_length]) for i in step}) == 1


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_shared_prefix_and_selective_logits_change_neither_loss_nor_gradient(
    tiny_llama: Path,
    examples: list[Example],
    dtype: torch.dtype,
    tolerance: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reference is transformers' own forward pass, one conversation at a time, with all logits.

    The tolerances are those of sums in another order: about 1e5 terms in float64 and float32. Transformers' norm
    layers compute in float32 whatever the model's dtype, so both models get one that keeps to its own.
    """
    monkeypatch.setattr(
        LlamaRMSNorm,
        "forward",
        lambda norm, x: torch.nn.functional.rms_norm(x, x.shape[-1:], norm.weight, norm.variance_epsilon),
    )
    batches = [[examples[index] for index in indices] for indices in plan(examples, 5, 1, 0)]
    rows = next(rows for rows in batches if len(collate(rows, 1000).parts) == 3)
    ours, reference = llama(tiny_llama, dtype), llama(tiny_llama, dtype)
    assert collate(rows, 1000).prefix.numel() > 400
    compare_gradients(ours, reference, rows, tolerance)
    with_adapters = [adapted(llama(tiny_llama, dtype)).to(dtype) for _ in range(2)]
    compare_gradients(*with_adapters, rows, tolerance)


@pytest.mark.parametrize(("fast", "tolerance"), [(False, 1e-5), (True, 3e-5)])
def test_the_gradient_of_smollm2_in_float32(smollm2: Path, short: list[Example], fast: bool, tolerance: float) -> None:
    """Measured: at most 6.1e-6 for a weight from another order of float32 sums, 1.6e-5 with merged weights.

    Transformers' own gradient in float32 differs from that in float64 by up to 5.9e-5.
    """
    compare_gradients(adapted(llama(smollm2)), adapted(llama(smollm2)), short[:5], tolerance, fast)


def adapted(model: torch.nn.Module) -> PeftModel:
    """`model` with an adapter through which gradients flow back to all of it; the same each time."""
    adapted = attach(model, settings(dropout=0.0), seed=1)
    for name, weight in trainable(adapted).items():
        if "lora_B" in name:
            # They begin at 0, and then nothing flows back to the other half of each pair.
            torch.nn.init.normal_(weight, std=0.02)
    return adapted


def test_within_a_fast_step_the_model_computes_otherwise_and_afterwards_as_before(
    tiny_llama: Path, short: list[Example]
) -> None:
    model = adapted(llama(tiny_llama))
    layers = [layer for layer in model.modules() if isinstance(layer, LoraLinear)]
    attention = model.config._attn_implementation
    with efficient(model):
        assert all("forward" in vars(layer) for layer in layers)
        assert model.config._attn_implementation != attention
    assert not any("forward" in vars(layer) for layer in layers)
    assert model.config._attn_implementation == attention


def test_dropout_keeps_pefts_own_products(tiny_llama: Path) -> None:
    model = attach(llama(tiny_llama), settings(dropout=0.1), seed=1)
    with efficient(model):
        assert not any("forward" in vars(layer) for layer in model.modules() if isinstance(layer, LoraLinear))


def compare_gradients(
    ours: torch.nn.Module, reference: torch.nn.Module, rows: list[Example], tolerance: float, fast: bool = True
) -> None:
    """`add_gradient` of a batch against transformers' own forward pass, row by row, with all logits."""
    batch = collate(rows, 1000)
    with efficient(ours) if fast else nullcontext():
        loss, count = add_gradient(ours, batch, 1.0)
        assert labelled_loss(ours, batch) == (pytest.approx(loss, rel=tolerance), count)
    expected, labels = 0.0, 0
    for row in rows:
        targets = torch.tensor(row.labels)
        logits = reference(input_ids=torch.tensor([row.input_ids])).logits[0]
        value = torch.nn.functional.cross_entropy(logits[:-1], targets[1:], ignore_index=IGNORED, reduction="sum")
        value.backward()
        expected, labels = expected + value.item(), labels + row.label_count
    assert count == labels
    assert loss == pytest.approx(expected, rel=tolerance)
    for (name, weight), other in zip(trainable(ours).items(), trainable(reference).values(), strict=True):
        assert weight.grad is not None and other.grad is not None
        difference = (weight.grad - other.grad).norm() / other.grad.norm()
        assert difference < tolerance, f"{name}: {difference}"


def settings(**changes: object) -> TrainingSettings:
    fixed = {"rank": 4, "learning_rate": 3e-2, "batch_size": 4, "epochs": 4, "checkpoint_every": 2}
    return TrainingSettings(precision="float32", **fixed, **changes)


def run(folder: Path, checkpoints: Path, examples: list[Example], stop_after: int | None = None, dropout: float = 0.1):
    """Train a fresh adapter; with `stop_after`, be interrupted after that step."""
    model = attach(llama(folder), settings(dropout=dropout), seed=1)

    def on_step(step: int, _steps: int, _point: dict[str, float]) -> None:
        if step == stop_after:
            raise KeyboardInterrupt

    history = fit(model, examples, examples[:4], settings(dropout=dropout), 1, checkpoints, "key", on_step).history
    return history, {name: weight.detach().clone() for name, weight in trainable(model).items()}


def test_loss_falls_and_resume_equals_no_interruption(tiny_llama: Path, short: list[Example], tmp_path: Path) -> None:
    history, weights = run(tiny_llama, tmp_path / "whole", short)
    assert history[-1]["loss"] < 0.7 * history[0]["loss"]
    assert history[-1]["validation_loss"] < history[0]["loss"]
    with pytest.raises(KeyboardInterrupt):
        run(tiny_llama, tmp_path / "cut", short, stop_after=5)
    resumed, resumed_weights = run(tiny_llama, tmp_path / "cut", short)
    assert resumed == history
    assert all(torch.equal(weights[name], resumed_weights[name]) for name in weights)
    assert not list((tmp_path / "cut").rglob("*.pt")) and not list((tmp_path / "cut").rglob("*.bin"))


def test_a_checkpoint_of_other_inputs_or_a_torn_one_is_not_used(
    tiny_llama: Path, short: list[Example], tmp_path: Path
) -> None:
    history, _ = run(tiny_llama, tmp_path / "a", short)
    folder = next((tmp_path / "a").iterdir())
    (folder / "state.json").write_text('{"key": "other", "step": 3, "history": []}')
    assert run(tiny_llama, tmp_path / "a", short)[0] == history
    folder = next((tmp_path / "a").iterdir())
    (folder / "state.json").write_text('{"key": "ke')
    assert run(tiny_llama, tmp_path / "a", short)[0] == history


def test_a_damaged_checkpoint_is_passed_over(tiny_llama: Path, short: list[Example], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tiny_llama, tmp_path / "good", short, stop_after=4)
    (good,) = (tmp_path / "good").iterdir()
    model = attach(llama(tiny_llama), settings(), seed=1)
    optimizer = torch.optim.AdamW(trainable(model).values())
    for number, (name, damage) in enumerate(
        [
            ("state.json", lambda _: b"[]"),
            ("state.json", lambda content: content.replace(b'"step"', b'"stop"')),
            ("state.json", lambda _: b"[" * 100_000),
            ("tensors.safetensors", lambda content: content[: len(content) // 2]),
            ("tensors.safetensors", lambda _: b""),
            ("tensors.safetensors", lambda content: content.replace(b"random_state", b"random_stare")),
        ]
    ):
        bad = tmp_path / str(number) / good.name.replace("step-000004", "step-000006")
        shutil.copytree(good, bad)
        (bad / name).write_bytes(damage((bad / name).read_bytes()))
        assert restore(bad.parent, "key", model, optimizer) is None, name
        shutil.copytree(good, bad.parent / good.name)
        found = restore(bad.parent, "key", model, optimizer)
        assert found is not None and found.step == 4


def test_the_adapters_description_does_not_depend_on_the_order_of_a_set(tiny_llama: Path, tmp_path: Path) -> None:
    model = attach(llama(tiny_llama), settings(), seed=1)
    save_adapter(model, "a/b", tmp_path)
    described = json.loads((tmp_path / "adapter_config.json").read_text(encoding="utf-8"))
    assert described["target_modules"] == sorted(described["target_modules"])
    assert described["base_model_name_or_path"] == "a/b"


def test_merged_model_is_base_plus_adapter(tiny_llama: Path, short: list[Example], tmp_path: Path) -> None:
    model = attach(llama(tiny_llama), settings(), seed=1)
    fit(model, short[:8], short[:2], settings(), 1, tmp_path / "checkpoints", "key")
    model.save_pretrained(tmp_path / "adapter", safe_serialization=True)
    recipe = Recipe(name="small", model=ModelSettings(source=str(tiny_llama)))
    merge(tiny_llama, recipe, tmp_path / "adapter", tmp_path / "merged")
    ids = torch.tensor([short[0].input_ids])
    merged = llama(tmp_path / "merged").eval()
    with torch.no_grad():
        difference = (merged(ids).logits - model.eval()(ids).logits).abs().max()
    # One float32 rounding of W + BA against W x + B (A x).
    assert difference < 1e-4
    assert merged.generation_config.eos_token_id == 2
    assert load_file(tmp_path / "merged" / "model.safetensors")
    assert DIALECT.chat_template() == (tmp_path / "merged" / "chat_template.jinja").read_text(encoding="utf-8")


def test_a_loss_that_is_not_finite_stops_with_the_mend(tiny_llama: Path, short: list[Example], tmp_path: Path) -> None:
    model = attach(llama(tiny_llama), settings(), seed=1)
    with torch.no_grad():
        next(iter(trainable(model).values())).fill_(float("nan"))
    with pytest.raises(UserError, match=r"not finite at step 1; lower training\.learning_rate .*training\.alpha \(32"):
        fit(model, short, short[:2], settings(), 1, tmp_path / "checkpoints", "key")
    assert not (tmp_path / "checkpoints").exists()


def test_learning_rate_rises_then_falls_to_a_tenth() -> None:
    rates = [learning_rate(step, 100, 1.0, 0.1) for step in range(100)]
    assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert rates[10] == 1.0 and all(a > b for a, b in pairwise(rates[10:]))
    assert rates[-1] == pytest.approx(0.1, abs=0.001)
    assert learning_rate(0, 1, 1.0, 0.5) == 1.0


def test_attach_trains_the_adapter_alone(tiny_llama: Path) -> None:
    model = attach(llama(tiny_llama), settings(), seed=1)
    again = copy.deepcopy(trainable(attach(llama(tiny_llama), settings(), seed=1)))
    names = trainable(model)
    assert names and all("lora_" in name for name in names)
    assert {name.split(".")[-4] for name in names} == {
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    }  # fmt: skip
    assert all(torch.equal(names[name], again[name]) for name in names)
