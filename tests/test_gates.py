"""The gates of an export, on a random Llama that is really exported, and on bundles with one thing wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from core.errors import UserError
from core.recipe import Recipe
from core.recipe_file import load_recipe
from core.stages import PROJECT
from data.agent_skills import generate
from export.bundle import write_bundle
from export.convert import ConvertedModel, convert
from export.every_gate import GATES
from export.gates import Outcome, Subject, judge, run_gates
from export.logit_gates import check_bundle_graph, check_float_graph, check_sets, compare_sets
from export.logits import Graph, Logits, SourceModel
from export.metadata import llm_metadata
from export.probes import SETS
from export.rendering_gates import check_cache, check_token_ids
from export.reply_gates import check_calls, check_first_tokens, check_second_turn, check_stops, check_variety
from hermes import ToolCalls, get_dialect

DIALECT = get_dialect("hermes")
CACHE = 1280
SETTINGS = {
    "model.source": "a/b",
    "evaluation.max_new_tokens": "8",
    "export.cache_length": str(CACHE),
    "export.prefill_lengths": "[128]",
    # A random model is never sure of its next token, and never ends a turn.
    "export.gates.agreement": "0.7",
    "export.gates.reply_tokens": "12",
    "export.gates.stopped": "0",
    "export.gates.replies": "2",
    "export.gates.logit_conversations": "2",
}
TESTS = generate("test", 4, 0)


@dataclass(frozen=True)
class Exported:
    model: Path
    converted: ConvertedModel
    float_graph: Path
    norm: bytes
    """The weights of the last layer norm, as they stand in the graph."""


@pytest.fixture(scope="module")
def exported(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("gates")
    model, norm = random_model(folder / "model", tokenizer, seed=0)
    recipe = recipe_with()
    converted = convert(model, folder / "work", recipe.export, folder / "log")
    graph = folder / "work" / "model.tflite"
    assert graph != converted.graph
    return Exported(model, converted, graph, norm)


def random_model(folder: Path, tokenizer: PreTrainedTokenizerFast, seed: int) -> tuple[Path, bytes]:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        initializer_range=0.2,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        model.model.norm.weight.uniform_(0.5, 1.5)
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return folder, model.model.norm.weight.detach().numpy().tobytes()


def metadata_of(stop: int = 2, cache: int = CACHE) -> bytes:
    return llm_metadata(DIALECT, (stop,), cache)


def recipe_with(**changed: str) -> Recipe:
    overrides = SETTINGS | {key.replace("__", "."): value for key, value in changed.items()}
    return load_recipe(PROJECT / "configs" / "smollm2-135m.yaml", overrides)


def subject_of(
    exported: Exported,
    folder: Path,
    *,
    metadata: bytes | None = None,
    graph: Path | None = None,
    model: Path | None = None,
    **changed: str,
) -> Subject:
    """A bundle in `folder`, with what is given in place of its own."""
    parts = folder / "parts"
    parts.mkdir()
    bundle = folder / "x.litertlm"
    converted = replace(exported.converted, graph=graph or exported.converted.graph)
    tokenizer = exported.model / "tokenizer.json"
    write_bundle(bundle, converted, tokenizer, metadata or metadata_of(), parts)
    return Subject(bundle, model or exported.model, recipe_with(**changed), TESTS, float_graph=exported.float_graph)


def read_entries(path: Path) -> dict[str, dict[str, object]]:
    return {entry["gate"]: entry for entry in json.loads(path.read_text(encoding="utf-8"))["gates"]}


def test_a_sound_bundle_passes_and_what_could_not_be_checked_says_so(exported: Exported, tmp_path: Path) -> None:
    with subject_of(exported, tmp_path) as subject:
        outcomes = run_gates(GATES, subject, tmp_path / "evidence.json")
    assert not list(tmp_path.glob(".graph-*"))
    entries = read_entries(tmp_path / "evidence.json")
    assert list(entries) == list(outcomes) == [gate.name for gate in GATES]
    unchecked = {name for name, outcome in outcomes.items() if outcome.verdict == "not checked"}
    assert unchecked == {
        "calls are parsed",
        "stop tokens stop",
        "second turn as in a fresh conversation",
        "third turn as in a fresh conversation",
        "token ids equal in texts of all kinds",
        "constraint active",
        "constraint changes no legal reply",
    }
    assert all(outcomes[name].reason and not outcomes[name].thresholds for name in unchecked)
    for name, entry in entries.items():
        assert entry["outcome"] == outcomes[name].verdict
        assert name in unchecked or (entry["figures"] and entry["thresholds"] and "reason" not in entry)
    exact, bundle = entries["logits of the float32 graph"], entries["logits of the bundle's graph"]
    assert exact["figures"]["largest difference"] < 1e-4 < bundle["figures"]["largest difference"]  # type: ignore[index]
    assert exact["figures"]["greedy agreement"] == 1  # type: ignore[index]


def test_another_template_is_named_with_the_first_difference(exported: Exported, tmp_path: Path) -> None:
    metadata = metadata_of().replace(b"You have access", b"You have excess")
    with subject_of(exported, tmp_path, metadata=metadata) as subject, pytest.raises(UserError) as caught:
        run_gates(GATES, subject, tmp_path / "evidence.json")
    message = str(caught.value)
    assert f"1 of {len(GATES)} gates failed" in message and "evidence.json" in message
    assert "'one tool' in LiteRT-LM from character" in message and "where training saw 'access" in message
    entries = read_entries(tmp_path / "evidence.json")
    ids = entries["token ids equal in training, transformers and LiteRT-LM"]
    assert ids["outcome"] == "failed" and ids["figures"]["different in transformers"] == 0  # type: ignore[index]
    assert entries["logits of the bundle's graph"]["outcome"] == "passed"


def test_a_token_in_front_of_the_prompt_is_named(exported: Exported, tmp_path: Path) -> None:
    from litert_lm_builder.runtime.proto import llm_metadata_pb2

    metadata = llm_metadata_pb2.LlmMetadata.FromString(metadata_of())
    metadata.start_token.token_ids.ids.append(1)
    with subject_of(exported, tmp_path, metadata=metadata.SerializeToString()) as subject:
        outcome = check_token_ids(subject)
    assert outcome.verdict == "failed" and outcome.figures["different in LiteRT-LM"] == 0
    assert "LiteRT-LM puts token 1 in front of every prompt; leave start_token out" in outcome.reason


def test_weights_of_another_model_are_found(
    exported: Exported, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    other, _ = random_model(tmp_path / "other", tokenizer, seed=1)
    with subject_of(exported, tmp_path, model=other) as subject:
        outcomes = [check(subject) for check in (check_float_graph, check_bundle_graph, check_sets, check_first_tokens)]
    assert [outcome.verdict for outcome in outcomes] == ["failed"] * 4
    assert "greedy agreement: 0" in outcomes[1].reason
    assert "the merged model with" in outcomes[3].reason


def test_a_bundle_that_writes_one_token_over_and_over_is_found(exported: Exported, tmp_path: Path) -> None:
    """C96: with the last norm at nothing, every logit is 0 and the best token is the first of the vocabulary."""
    graph = tmp_path / "silent.tflite"
    content = exported.float_graph.read_bytes()
    assert content.count(exported.norm) >= 1
    graph.write_bytes(content.replace(exported.norm, bytes(len(exported.norm))))
    with subject_of(exported, tmp_path, graph=graph, export__gates__stopped="0.5") as subject:
        written = {piece for asked in subject.asked for piece in asked.pieces}
        outcomes = [check(subject) for check in (check_variety, check_stops, check_first_tokens)]
    assert written == {"<|endoftext|>"}
    assert [outcome.verdict for outcome in outcomes] == ["failed"] * 3
    assert "different tokens: 1, must be at least 2; tokens with text: 0" in outcomes[0].reason
    assert "share ended: 0.0, must be at least 0.5; the others went on to the limit of 12" in outcomes[1].reason


def test_a_small_cache_is_found_before_and_after_the_conversion(exported: Exported, tmp_path: Path) -> None:
    with subject_of(exported, tmp_path, metadata=metadata_of(cache=300)) as subject:
        outcome = check_cache(subject)
        longest = outcome.figures["longest prompt, tokens"]
        assert outcome.verdict == "failed" and isinstance(longest, int) and 300 < longest < CACHE
        assert f"cache in the metadata, tokens: 300, must be at least {longest + 8}" in outcome.reason


def test_turns_that_go_on_are_compared_where_they_end(exported: Exported, tmp_path: Path) -> None:
    """A random model does not end its turns by itself, so a token that it writes is made the stop token."""
    (tmp_path / "plain").mkdir()
    with subject_of(exported, tmp_path / "plain") as subject:
        prompt = next(prompts[0] for each in TESTS if len(prompts := each.prompts()) > 1)
        written = subject.backend.engine.tokenize(subject.backend.complete([prompt])[0].text)
    outcomes: list[Outcome] = []
    for token in dict.fromkeys((*written[2:], *written[:2])):
        folder = tmp_path / str(token)
        folder.mkdir()
        with subject_of(exported, folder, metadata=metadata_of(token)) as subject:
            outcomes.append(check_second_turn(subject))
        if outcomes[-1].verdict == "passed":
            assert outcomes[-1].figures == outcomes[-1].figures | {"conversations": 1, "different": 0}
            return
        assert outcomes[-1].verdict == "not checked"
    pytest.fail(f"no turn ended: {outcomes}")


class Spoiled:
    """A model that has unlearnt what ends a call, but only where one text stands in the prompt."""

    def __init__(self, source: SourceModel, marker: Sequence[int], spoiled: int) -> None:
        self.source, self.marker, self.spoiled = source, tuple(marker), spoiled

    def logits(self, ids: Sequence[int], start: int) -> Logits:
        found = self.source.logits(ids, start).copy()
        windows = zip(*(ids[offset:] for offset in range(len(self.marker))), strict=False)
        if self.marker in set(windows):
            found[:, self.spoiled] -= 20
        return found


def test_a_set_that_gets_worse_fails_by_itself(exported: Exported, tmp_path: Path) -> None:
    """C95."""
    with subject_of(exported, tmp_path) as subject:
        marker = subject.tokenizer(" Ann on", add_special_tokens=False)["input_ids"]
        stop = subject.tokenizer.convert_tokens_to_ids(DIALECT.stop)
        losses, _ = compare_sets(subject, subject.source, Spoiled(subject.source, marker, stop))
    bound = dict.fromkeys(losses, 0.15)
    assert set(losses) == set(SETS) and losses["nested object argument"] > 0.15
    assert all(abs(loss) < 1e-3 for name, loss in losses.items() if name != "nested object argument")
    assert np.mean(list(losses.values())) < 0.15
    assert judge(losses, at_most=bound).verdict == "failed"


def test_the_graph_and_the_model_score_alike_whatever_they_have_read_before(exported: Exported) -> None:
    graph, source = Graph(exported.float_graph), SourceModel(exported.model)
    numbers = np.random.default_rng(0)
    ids = numbers.integers(20, 40_000, CACHE).tolist()
    fresh = SourceModel(exported.model).logits(ids, len(ids) - 3)
    for length, start in ((40, 1), (200, 190), (200, 140), (CACHE, CACHE - 3)):
        for scorer in (graph, source):
            assert scorer.logits(ids[:length], start).shape == (length - start, graph._vocabulary)
    for scorer in (graph, source):
        np.testing.assert_allclose(scorer.logits(ids, len(ids) - 3), fresh, atol=1e-4)
    with pytest.raises(UserError, match="1281 tokens do not fit into the graph's cache of 1280"):
        graph.logits([*ids, 1], CACHE)


def test_what_is_no_graph_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.tflite").write_bytes(b"no graph")
    with pytest.raises(UserError, match=r"x\.tflite: this graph cannot be loaded"):
        Graph(tmp_path / "x.tflite")


def test_calls_are_compared_with_what_the_runtime_read(exported: Exported, tmp_path: Path) -> None:
    call = '<tool_call>{"name": "load_skill", "arguments": {"skill_name": "x"}}</tool_call>'
    with subject_of(exported, tmp_path) as subject:
        subject.asked[0] = asked = replace(
            subject.asked[0], completion=replace(subject.asked[0].completion, text=call, finish_reason="stop")
        )
        outcome = check_calls(subject)
        assert outcome.verdict == "failed" and "LiteRT-LM reads '<tool_call>" in outcome.reason
        parsed = DIALECT.parse(call, asked.prompt.tools)
        assert isinstance(parsed, ToolCalls) and asked.reply is not None
        subject.asked[0] = replace(asked, reply=replace(asked.reply, calls=parsed.calls))
        assert check_calls(subject).verdict == "passed"
