"""Sizes of a bundle: quantised graphs, the choice among them, the tokenizer that is packed; without a trained model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from eval_samples import call, none
from transformers import GemmaTokenizerFast, PreTrainedTokenizerFast

from core.errors import UserError
from core.recipe import ExportSettings, ModelSettings, Recipe, SweepSettings
from eval.results import ModelResult
from export.convert import ConvertedModel, quantised
from export.sweep_report import Size, pick, table, write_sweep
from export.tokenizer_parity import choose_tokenizer, comparable_texts, described, differences, texts


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> ConvertedModel:
    """Two layers as a feed-forward's, of which one has blocks of zeros."""
    import litert_torch
    import torch

    class LayerMLP(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up_proj, self.down_proj = torch.nn.Linear(64, 96, bias=False), torch.nn.Linear(96, 64, bias=False)
            self.down_proj.weight.data[:, 32:64] = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.down_proj(torch.relu(self.up_proj(x)))

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mlp = LayerMLP()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.mlp(x)

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("layers")
    litert_torch.convert(Layer().eval(), (torch.randn(1, 64),)).export(str(folder / "model.tflite"))
    return ConvertedModel(folder / "model.tflite", folder / "unused.pb")


def answer(graph: Path) -> list[float]:
    """What a graph makes of one input, by the runtime's own kernels, which refuse a scale of 0."""
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(graph), num_threads=1)
    interpreter.allocate_tensors()
    given = np.linspace(-1, 1, 64, dtype=np.float32)[None]
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], given)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0].tolist()


def test_each_size_is_smaller_and_nearly_the_same(layers: ConvertedModel, tmp_path: Path) -> None:
    import numpy as np

    float32 = quantised(layers, "float32", tmp_path, tmp_path / "log")
    assert float32 == layers
    weights = 64 * 96 * 2
    for quantization, bits, tolerance in (("wi8", 8, 0.02), ("mixed", 4.5, 0.25), ("wi4", 4.5, 0.25)):
        made = quantised(layers, quantization, tmp_path, tmp_path / "log")
        saved = layers.graph.stat().st_size - made.graph.stat().st_size
        assert saved > weights * (4 - bits / 8) - 4000  # scales, buffers' alignment, another table of operations
        exact, found = np.array(answer(layers.graph)), np.array(answer(made.graph))
        assert np.linalg.norm(found - exact) < tolerance * np.linalg.norm(exact)


def test_the_converters_own_quantisation_gives_the_same_bytes(layers: ConvertedModel, tmp_path: Path) -> None:
    from litert_torch.generative.export_hf.core.export_lib import quantize_model

    ours = quantised(layers, "wi8", tmp_path, tmp_path / "log")
    copy = tmp_path / "model.tflite"
    copy.write_bytes(layers.graph.read_bytes())
    assert Path(quantize_model(str(copy), "dynamic_wi8_afp32")).read_bytes() == ours.graph.read_bytes()


def test_a_model_that_has_no_such_layers_is_refused(tmp_path: Path) -> None:
    import litert_torch
    import torch

    graph = tmp_path / "model.tflite"
    litert_torch.convert(torch.nn.Linear(64, 8), (torch.randn(1, 64),)).export(str(graph))
    with pytest.raises(UserError, match="mixed: no layer of this model can be stored in 4-bit blocks.*choose wi8"):
        quantised(ConvertedModel(graph, graph), "mixed", tmp_path, tmp_path / "log")


def result(name: str, right: int, of: int = 20) -> ModelResult:
    """A model that gets the first `right` conversations right."""
    cases = [call(f"c{i}", run=6 if i < right else 4) for i in range(of)]
    return ModelResult(name, name, [*cases, none("n")])


FIGURES = {
    "load_seconds": 0.5,
    "prompt_tokens": 900,
    "prefill_tokens_per_second": 700.0,
    "first_token_seconds": 1.3,
    "new_tokens": 30,
    "decode_tokens_per_second": 70.0,
    "peak_memory_gb": 0.5,
    "threads": 2,
    "repeats": 5,
}
TUNED = result("tuned", 18)
SIZES = (
    Size("float32", {**FIGURES, "bytes": 540_000_000}, result("float32", 18)),
    Size("wi8", {**FIGURES, "bytes": 150_000_000}, result("wi8", 18)),
    Size("mixed", {**FIGURES, "bytes": 110_000_000}, result("mixed", 17)),
    Size("wi4", refused="export.quantization: wi4: no |\n layer"),
)


@pytest.mark.parametrize(("bound", "expected"), [(0.0, "wi8"), (0.02, "wi8"), (0.05, "mixed"), (0.5, "mixed")])
def test_the_smallest_within_the_bound_is_picked(bound: float, expected: str) -> None:
    picked = pick(SIZES, TUNED, bound)
    assert picked is not None and picked.quantization == expected
    assert pick(SIZES[2:], TUNED, 0.0) is None


def test_a_sweep_is_written_as_table_plot_and_json(tmp_path: Path) -> None:
    recipe = Recipe(name="x", model=ModelSettings(source="a/b"))
    write_sweep(tmp_path, SIZES, TUNED, recipe, "abc", "a processor")
    value = json.loads((tmp_path / "sweep.json").read_text(encoding="utf-8"))
    assert value["picked"] == "wi8" and value["model"] == "abc"
    mixed = value["candidates"][2]
    assert (mixed["calls_exact"]["k"], mixed["calls_exact"]["n"]) == (17, 20)
    assert mixed["against the tuned model"]["only_a"] == 1
    assert value["candidates"][3] == {"quantization": "wi4", "refused": "export.quantization: wi4: no |\n layer"}
    written = (tmp_path / "sweep.md").read_text(encoding="utf-8")
    rows = [line for line in written.splitlines() if line.startswith("| ")]
    assert len(rows) == 6 and len({row.replace("\\|", "").count("|") for row in rows}) == 1
    assert "**wi8** is the smallest that loses at most 2 points, though its interval reaches beyond that." in written
    assert "No candidate is within the bound" in table(SIZES[2:], TUNED, 0.0, "a processor")
    assert (tmp_path / "sweep.png").read_bytes()[:4] == b"\x89PNG"


def test_what_only_a_sweep_needs_changes_no_export() -> None:
    other = ExportSettings(sweep=SweepSettings(bound=0.5))
    assert other.model_dump(mode="json") == ExportSettings().model_dump(mode="json")
    named = ModelSettings(source="a/b", license="apache-2.0", base_model="a/c")
    assert named.model_dump(mode="json") == ModelSettings(source="a/b").model_dump(mode="json")


def test_the_texts_are_many_distinct_and_always_the_same() -> None:
    asked = texts()
    assert asked == texts()
    everything = [text for group in asked.values() for text in group]
    assert len(set(everything)) >= 10_000
    assert not any("\0" in text for text in everything)
    assert all(text.encode("utf-8") for text in everything)
    assert sum("<|im_start|>" in text for text in asked["control text"]) > 50
    for text in asked["JSON"]:
        json.loads(text)


def test_another_tokenizer_is_found_out(tokenizer: PreTrainedTokenizerFast) -> None:
    def other(text: str) -> list[int]:
        return tokenizer(text.replace("é", "e"), add_special_tokens=False)["input_ids"]

    asked = {kind: group[:300] for kind, group in texts().items()}
    found = differences(tokenizer, other, asked)
    assert [each.text for each in found] == [text for group in asked.values() for text in group if "é" in text]
    assert described(found).startswith(f"{len(found)} texts differ (") and len(found) > 10


def test_a_sentencepiece_model_is_packed_where_it_gives_the_models_ids(
    pieces: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    gemma = GemmaTokenizerFast.from_pretrained(pieces)
    packed = choose_tokenizer(tmp_path, pieces, gemma)
    assert packed.path == pieces / "tokenizer.model" and packed.read_as_text == {"<pad>", "<eos>", "<bos>", "<unk>"}
    other = choose_tokenizer(tmp_path, pieces, tokenizer)
    assert other.path == tmp_path / "tokenizer.json" and "is not the model's" in other.reason
    assert choose_tokenizer(tmp_path, tmp_path, gemma).reason == "the source has no SentencePiece model"
    (tmp_path / "tokenizer.model").write_bytes(b"no model")
    assert "cannot be read" in choose_tokenizer(tmp_path, tmp_path, gemma).reason
    found = differences(tokenizer, lambda text: gemma.encode(text, add_special_tokens=False), comparable_texts(packed))
    assert described(found).startswith(f"{len(found)} texts differ (")
