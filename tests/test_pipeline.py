"""Every recipe that ships, at tiny size, through all stages: a random Llama with the real tokenizer, the real
LiteRT-LM."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import litert_checks
import pytest
from tiny_run import Finished
from transformers import PreTrainedTokenizerFast

from core.errors import UserError
from core.stages import Run, read_facts
from data.build import read_conversations
from data.stage import build_data
from eval.results import load_results
from eval.stage import evaluate_models
from export.bundle import write_bundle
from export.constraint import constraint_files, sidecar_files, write_constraint
from export.constraint_gate import check_active
from export.convert import ConvertedModel
from export.metadata import llm_metadata
from export.stage import bundle_path, export
from export.stage import stage as export_stage
from hermes import Conversation, Message, get_dialect
from hermes.gallery_tools import GALLERY_TOOLS
from runtime.bundle_tokenizer import bundle_tokenizer
from runtime.litert_backend import LiteRTBackend
from training.checkpoint import Progress
from training.stage import stage as training_stage
from training.stage import train

DIALECT = get_dialect("hermes")


@pytest.fixture(scope="module")
def backend(finished: Finished):
    with LiteRTBackend(bundle_path(finished.recipe, finished.run), max_new_tokens=8) as opened:
        yield opened


def test_every_stage_leaves_what_it_promises(finished: Finished) -> None:
    run = finished.run
    expected = {
        run.data: ("train.jsonl", "validation.jsonl", "test.jsonl", "rejected.jsonl", "summary.json"),
        run.training: ("adapter/adapter_model.safetensors", "merged/model.safetensors", "loss.json", "loss.png"),
        run.export: (f"{finished.recipe.name}.litertlm", "card.md", "evidence.json", "constraint/manifest.json"),
        run.evaluation / "report": ("report.json", "report.md", "report.html"),
    }
    missing = [folder / name for folder, names in expected.items() for name in names if not (folder / name).is_file()]
    assert not missing
    for name in ("base", "tuned", "bundle"):
        assert len(load_results(run.evaluation / name / "results.json").cases) == 3
    assert not list(run.root.rglob("*.bin")) and not list(run.root.rglob("*.pt"))
    assert not list(run.root.rglob("refused-*")) and not list(run.root.rglob("*xnnpack*"))
    curve = json.loads((run.training / "loss.json").read_text(encoding="utf-8"))
    assert read_facts(run.training)["final_loss"] == curve[-1]["loss"] < curve[0]["loss"]


def test_a_second_run_does_nothing(finished: Finished) -> None:
    def times() -> dict[Path, int]:
        kept = (path for path in finished.run.root.rglob("*") if path.is_file() and "report" not in path.parts)
        return {path: path.stat().st_mtime_ns for path in kept if path.name != ".lock"}

    before = times()
    build_data(finished.recipe, finished.run)
    train(finished.recipe, finished.run)
    export(finished.recipe, finished.run)
    evaluate_models(finished.recipe, finished.run, ("base", "tuned", "bundle"))
    assert times() == before


def test_what_cannot_work_is_refused_before_an_earlier_result_is_touched(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, run = finished.recipe, finished.run
    short = recipe.model_copy(update={"training": recipe.training.model_copy(update={"max_length": 16})})
    with pytest.raises(UserError, match=r"no conversation fits training\.max_length = 16"):
        train(short, run)
    small = recipe.export.model_copy(update={"cache_length": 300, "prefill_lengths": (128,)})
    with pytest.raises(UserError, match=r"a prompt of \d+ tokens and an answer of up to 8 need \d+, the cache has 300"):
        export(recipe.model_copy(update={"export": small}), run)

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("training.stage.fit", stopped)
    monkeypatch.setattr("export.stage.convert_float", stopped)
    other = recipe.model_copy(update={"training": recipe.training.model_copy(update={"epochs": 2})})
    with pytest.raises(KeyboardInterrupt):
        train(other, run)
    with pytest.raises(KeyboardInterrupt):
        export(recipe.model_copy(update={"export": small.model_copy(update={"cache_length": 1300})}), run)
    assert training_stage(recipe, run).why_stale() is None
    assert export_stage(recipe, run).why_stale() is None


def test_an_export_with_other_versions_stops_before_the_graph_is_converted(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C97."""
    longer = finished.recipe.export.model_copy(update={"cache_length": 1300})
    files = sorted(finished.run.export.rglob("*"))
    record = tmp_path / "torch-1.0.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 1.0.0\n", encoding="utf-8")
    with monkeypatch.context() as pretended:
        pretended.syspath_prepend(str(tmp_path))
        with pytest.raises(UserError, match=r"torch 1\.0\.0 \(tested: <2\.14,>=2\.13"):
            export(finished.recipe.model_copy(update={"export": longer}), finished.run)
    assert sorted(finished.run.export.rglob("*")) == files
    assert export_stage(finished.recipe, finished.run).why_stale() is None


def test_a_prompt_must_leave_room_for_its_answer(finished: Finished) -> None:
    """C94."""
    answer = finished.recipe.evaluation.model_copy(update={"max_new_tokens": 1000})
    smaller = finished.recipe.export.model_copy(update={"prefill_lengths": (128,)})
    changed = finished.recipe.model_copy(update={"evaluation": answer, "export": smaller})
    with pytest.raises(
        UserError, match=r"a prompt of \d+ tokens and an answer of up to 1000 need \d+, the cache has 1280"
    ):
        export(changed, finished.run)


def test_the_record_is_there_before_checkpoints_go(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, run = finished.recipe, Run(tmp_path / "run")
    build_data(recipe, run)
    remove = shutil.rmtree

    def stopped(path: Path, **options: bool) -> None:
        if path.name == "checkpoints":
            raise KeyboardInterrupt
        remove(path, **options)

    point = {"step": 1, "loss": 1.0, "validation_loss": 1.0}
    monkeypatch.setattr("training.stage.fit", lambda *_, **__: Progress(1, [point], 0.0))
    monkeypatch.setattr("training.stage.shutil.rmtree", stopped)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, run)
    assert training_stage(recipe, run).why_stale() is None


def test_the_runtime_renders_what_training_rendered(backend: LiteRTBackend) -> None:
    litert_checks.check_rendering(backend)


@pytest.mark.parametrize("name", ["json", "fenced"])
def test_the_runtime_renders_the_other_dialects_too(finished: Finished, tmp_path: Path, name: str) -> None:
    dialect = get_dialect(name)
    (tmp_path / "parts").mkdir()
    metadata = llm_metadata(dialect, (2,), finished.recipe.export.cache_length)
    pack(finished, tmp_path / "parts", tmp_path / "other.litertlm", metadata)
    with LiteRTBackend(tmp_path / "other.litertlm", name) as opened:
        litert_checks.check_rendering(opened, litert_checks.WITHOUT_TEXT_BESIDE_CALLS)


def test_the_runtime_tokenises_what_training_tokenised(
    backend: LiteRTBackend, tokenizer: PreTrainedTokenizerFast
) -> None:
    for text in ("héllo <|im_start|>x<|im_end|>\n", '<tool_call>{"a": 1.50}</tool_call>', "東京 😀\t\\n", "  a  b "):
        assert backend.engine.tokenize(text) == tokenizer(text, add_special_tokens=False)["input_ids"]


def test_under_the_grammar_only_valid_calls_are_written(backend: LiteRTBackend) -> None:
    litert_checks.check_constraint(backend)


def test_the_folder_beside_a_bundle_is_for_it_and_for_no_other(
    finished: Finished, backend: LiteRTBackend, tmp_path: Path
) -> None:
    recipe, bundle = finished.recipe, bundle_path(finished.recipe, finished.run)
    files = constraint_files(recipe, bundle.name, bundle_tokenizer(bundle))
    assert {name: (bundle.parent / "constraint" / name).read_text(encoding="utf-8") for name in files} == files
    with LiteRTBackend(bundle, max_new_tokens=8, constrained=True) as held:
        assert held.constraints is not None and held.constraints.from_sidecar == files["tools.json"]
        litert_checks.check_free_text(backend, held)
        litert_checks.check_cut(held, Conversation((Message("user", "Hi"),), GALLERY_TOOLS))
    found = check_active(backend, GALLERY_TOOLS, bundle_tokenizer(bundle).alphabet)
    assert str(found).startswith("not checked: the model wrote no illegal call")
    # The same bundle beside the folder of another tokenizer.
    (tmp_path / bundle.name).symlink_to(bundle)
    other = replace(bundle_tokenizer(bundle), sha256="0" * 64)
    write_constraint(tmp_path / bundle.name, sidecar_files(GALLERY_TOOLS, DIALECT, other, bundle.name))
    with pytest.raises(UserError, match=r"manifest\.json: tokenizer\.sha256 is '0+', the bundle's is"):
        LiteRTBackend(tmp_path / bundle.name, constrained=True)


def test_the_bundle_is_evaluated_under_its_constraint_where_that_is_asked_for(finished: Finished) -> None:
    folder = finished.run.evaluation / "constrained"
    assert not folder.exists()
    evaluate_models(finished.recipe, finished.run, ("constrained",))
    result = load_results(folder / "results.json")
    assert len(result.cases) == 3 and result.meta["constraint"]
    shutil.rmtree(folder)


def test_a_prompt_that_is_too_long_says_so_whichever_way_it_goes(backend: LiteRTBackend) -> None:
    asked = Conversation((Message("user", "word " * 2000),))
    with pytest.raises(UserError, match=r"this conversation: \d+ tokens do not fit into the bundle's 1280; fewer"):
        backend.reply(asked)
    with pytest.raises(UserError, match=r"0: \d+ tokens do not fit into the bundle's 1280; fewer tools"):
        backend.complete([asked])


def test_a_second_turn_answers_as_in_a_fresh_conversation(backend: LiteRTBackend, finished: Finished) -> None:
    first = read_conversations(finished.run.data / "test.jsonl")[0]
    asked = replace(first, messages=first.messages[:2])
    litert_checks.check_cut(backend, asked)
    litert_checks.check_reply_agrees(backend, asked)


@pytest.mark.xfail(
    strict=False,
    reason="not understood: the graph that a fresh converter makes of the random model answers otherwise when a "
    "conversation goes on; the gates compare these turns for trained bundles",
)
def test_a_bundle_that_stops_at_once_goes_on_as_a_fresh_conversation(finished: Finished, tmp_path: Path) -> None:
    """A random model does not end its turns by itself, so a token that it writes is made the stop token.

    No case is a reply that a fresh conversation cannot have: its text, tokenised again, is not the tokens that were
    written, or has white space around it, which the runtime's message lacks.
    """
    asked = Conversation((Message("system", "Be brief."), Message("user", "What is 2 + 2?")))
    with LiteRTBackend(bundle_path(finished.recipe, finished.run), max_new_tokens=8) as opened:
        written = opened.engine.tokenize(opened.complete([asked])[0].text)
    # Not the first ones: an empty reply goes on otherwise than a fresh conversation with it, in this runtime.
    for token in dict.fromkeys((*written[2:], *written[:2])):
        metadata = llm_metadata(DIALECT, (token,), finished.recipe.export.cache_length)
        parts, bundle = tmp_path / f"parts-{token}", tmp_path / f"stops-{token}.litertlm"
        parts.mkdir()
        pack(finished, parts, bundle, metadata)
        with LiteRTBackend(bundle, max_new_tokens=8) as opened:
            reply = opened.complete([asked])[0]
            assert opened.speed is not None
            as_written = len(opened.engine.tokenize(reply.text)) == opened.speed.new_tokens - 1
            if reply.finish_reason == "stop" and reply.text and reply.text == reply.text.strip() and as_written:
                litert_checks.check_second_turn(opened, asked, Message("user", "And now?"))
                return
    pytest.skip(f"not checked: none of the tokens {written} ends a reply whose text has the tokens that were written")


def test_a_model_that_is_asked_for_by_name_must_be_there(finished: Finished, tmp_path: Path) -> None:
    recipe, run = finished.recipe, Run(tmp_path / "run")
    build_data(recipe, run)
    shutil.copytree(finished.run.training, run.training)
    shutil.copytree(finished.run.evaluation / "base", run.evaluation / "base")
    with pytest.raises(UserError, match="export: not finished yet; run `hermes-edge export` first"):
        evaluate_models(recipe, run, ("base", "tuned", "bundle"))
    assert not (run.evaluation / "tuned").exists()
    shutil.rmtree(run.training)
    evaluate_models(recipe, run)
    assert (run.evaluation / "report" / "report.json").is_file()


def pack(finished: Finished, parts: Path, target: Path, metadata: bytes) -> None:
    from litert_lm_builder import litertlm_builder

    litertlm_builder.unpack(str(bundle_path(finished.recipe, finished.run)), str(parts))
    graph = next(parts.glob("*.tflite"))
    executor = next(path for path in parts.iterdir() if "executor" in path.name.lower() and path.suffix != ".toml")
    tokenizer = finished.run.training / "merged" / "tokenizer.json"
    write_bundle(target, ConvertedModel(graph, executor), tokenizer, metadata, parts)


def test_packing_is_reproducible(finished: Finished, tmp_path: Path) -> None:
    metadata = llm_metadata(DIALECT, (2,), finished.recipe.export.cache_length)
    for name in ("again", "more"):
        (tmp_path / name).mkdir()
        pack(finished, tmp_path / name, tmp_path / f"{name}.litertlm", metadata)
    assert (tmp_path / "again.litertlm").read_bytes() == (tmp_path / "more.litertlm").read_bytes()


def test_a_bundle_that_fails_a_gate_lies_beside_its_evidence_and_the_earlier_one_stays(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, run = finished.recipe, Run(tmp_path / "run")
    shutil.copytree(finished.run.root, run.root)
    parts = tmp_path / "parts"
    parts.mkdir()
    pack(finished, parts, tmp_path / "x.litertlm", llm_metadata(DIALECT, (2,), recipe.export.cache_length))
    graph = next(parts.glob("*.tflite"))
    executor = next(path for path in parts.iterdir() if "executor" in path.name.lower() and path.suffix != ".toml")

    def converted(_: Path, work: Path, *__: object) -> ConvertedModel:
        work.mkdir()
        return ConvertedModel(graph, executor)

    monkeypatch.setattr("export.stage.convert_float", converted)
    monkeypatch.setattr("export.stage.quantised", lambda whole, *_: whole)
    strict = recipe.export.gates.model_copy(update={"max_difference": 1e-6, "set_loss": 1e-9})
    changed = recipe.model_copy(update={"export": recipe.export.model_copy(update={"gates": strict})})
    with pytest.raises(UserError, match=r"3 of \d+ gates failed") as caught:
        export(changed, run)
    assert "largest difference: " in str(caught.value) and "must be at most 1e-06" in str(caught.value)
    assert (run.export / f"refused-{recipe.name}.litertlm").is_file()
    evidence = json.loads((run.export / "refused-evidence.json").read_text(encoding="utf-8"))
    outcomes = {entry["gate"]: entry["outcome"] for entry in evidence["gates"]}
    # The graph that is taken for the float32 one is the quantised one.
    assert [name for name, outcome in outcomes.items() if outcome == "failed"] == [
        "logits of the float32 graph",
        "logits of the bundle's graph",
        "each kind of reply as likely as before",
    ]
    assert export_stage(recipe, run).why_stale() is None
