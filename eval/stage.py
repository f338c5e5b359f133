"""`hermes-edge eval`: the held-out conversations through base, tuned model and bundle; then the report."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.console import console, progress
from core.doctor import processor
from core.errors import UserError
from core.files import file_hash, value_hash
from core.memory import peak_memory_gb, reset_peak
from core.models import materialise, resolve_source
from core.recipe import Recipe
from core.stages import Run, Stage, code_hash, need_file, need_stage, read_facts, versions
from data.build import read_conversations
from eval.report import headline_table, write_report
from eval.results import ModelResult, load_results, save_results
from eval.trajectory import evaluate
from hermes import get_dialect
from runtime.backend import Backend

MODELS = ("base", "tuned", "bundle")
_CODE = (
    *(f"eval/{name}.py" for name in ("cache", "results", "scoring", "trajectory")),
    *(f"runtime/{name}.py" for name in ("litert_backend", "litert_messages", "shared_prefix", "transformers_backend")),
)
"""What decides replies and scores; the look of the report does not."""


@dataclass(frozen=True)
class _Subject:
    """One model that can be evaluated."""

    name: str
    label: str
    weights: str
    """Hash of what answers."""
    package: str
    """The library that runs it."""
    open: Callable[[], Backend]


def evaluate_models(recipe: Recipe, run: Run, names: Sequence[str] = ()) -> Path:
    """Evaluate the models `names`, and write the report over all whose results are up to date.

    Without names all of `MODELS` are evaluated; what has not been made yet is named and left out.

    Returns:
        The path of the HTML report.

    Raises:
        UserError: a model of `names` has not been made yet; nothing has been evaluated then.
    """
    test = need_file(run.data / "test.jsonl", "hermes-edge data")
    need_stage(run.data, "hermes-edge data", {"data": recipe.data.model_dump(), "seed": recipe.seed})
    for name in names:
        _need_model(name, recipe, run)
    results: dict[str, ModelResult] = {}
    for name in MODELS:
        try:
            _need_model(name, recipe, run)
        except UserError as error:
            console().print(f"eval: {name} is left out: {error}")
            continue
        subject = _subject(name, recipe, run)
        this = _stage(subject, recipe, run, test)
        if name in (names or MODELS):
            results[name] = _evaluate(subject, this, recipe, test)
        elif this.why_stale() is None:
            results[name] = load_results(this.folder / "results.json")
    report = run.evaluation / "report"
    write_report(report, results, _facts(recipe, run, test))
    _print_table(results)
    console().print(f"report: {report / 'report.html'}")
    if "bundle" in results:
        console().print(f"bundle: {_bundle(recipe, run)}\ncard:   {run.export / 'card.md'}")
    return report / "report.html"


def _need_model(name: str, recipe: Recipe, run: Run) -> None:
    """Do nothing if the model `name` of this recipe is there; else a UserError says why not."""
    if name == "base":
        return
    made_from = {"training": recipe.training.model_dump(), "model": recipe.model.model_dump(), "seed": recipe.seed}
    need_stage(run.training, "hermes-edge train", made_from)
    if name == "bundle":
        weights = run.training / "merged" / "model.safetensors"
        model = [file_hash(weights), file_hash(weights.parent / "tokenizer.json")]
        need_stage(run.export, "hermes-edge export", {"export": recipe.export.model_dump(mode="json"), "model": model})


def _bundle(recipe: Recipe, run: Run) -> Path:
    return run.export / f"{recipe.name}.litertlm"


def _subject(name: str, recipe: Recipe, run: Run) -> _Subject:
    if name == "bundle":
        bundle = _bundle(recipe, run)
        return _Subject(name, "bundle", file_hash(bundle), "litert-lm-api", lambda: _litert(recipe, bundle))
    if name == "tuned":
        merged = run.training / "merged"
        weights = file_hash(merged / "model.safetensors")
        return _Subject(name, "tuned", weights, "transformers", lambda: _transformers(recipe, merged, name))
    weights = resolve_source(recipe.model)[1]
    return _Subject(
        name, "base", weights, "transformers", lambda: _transformers(recipe, materialise(recipe.model), name)
    )


def _transformers(recipe: Recipe, folder: Path, name: str) -> Backend:
    from runtime.transformers_backend import TransformersBackend

    return TransformersBackend.from_folder(
        folder,
        get_dialect(recipe.dialect),
        batch_size=recipe.evaluation.batch_size,
        max_new_tokens=recipe.evaluation.max_new_tokens,
        trust_remote_code=recipe.model.trust_remote_code,
        name=name,
    )


def _litert(recipe: Recipe, bundle: Path) -> Backend:
    from runtime.litert_backend import LiteRTBackend

    return LiteRTBackend(bundle, recipe.dialect, recipe.evaluation.max_new_tokens, threads=os.cpu_count())


def _stage(subject: _Subject, recipe: Recipe, run: Run, test: Path) -> Stage:
    return Stage(
        run.evaluation / subject.name,
        {
            "evaluation": recipe.evaluation.model_dump(),
            "dialect": recipe.dialect,
            "model": subject.weights,
            "data": file_hash(test),
            "code": code_hash("hermes", *_CODE),
            "versions": versions(subject.package),
        },
    )


def _evaluate(subject: _Subject, this: Stage, recipe: Recipe, test: Path) -> ModelResult:
    """The results of one model; replies of an interrupted evaluation are kept and not asked for again."""
    target = this.folder / "results.json"
    stale = this.why_stale()
    if stale is None:
        console().print(f"eval: {subject.name}: up to date")
        return load_results(target)
    console().print(f"eval: {subject.name}: {stale}")
    this.begin()
    reset_peak()
    started = time.monotonic()
    conversations = read_conversations(test)
    with _opened(subject) as backend, progress(f"eval {subject.name}") as advance:
        cases = evaluate(
            backend,
            conversations,
            recipe.dialect,
            lambda known, total: advance(known, total, ""),
            cache=this.folder / "replies.jsonl",
            fingerprint=value_hash({name: this.inputs[name] for name in ("evaluation", "model", "code", "versions")}),
        )
    seconds = round(time.monotonic() - started, 1)
    result = ModelResult(subject.name, subject.label, cases, {"weights": subject.weights, "seconds": seconds})
    save_results(target, result)
    this.finish([target], seconds=seconds, peak_memory_gb=peak_memory_gb())
    return result


@contextmanager
def _opened(subject: _Subject) -> Iterator[Backend]:
    backend = subject.open()
    try:
        yield backend
    finally:
        close = getattr(backend, "close", None)
        if close is not None:
            close()


def _facts(recipe: Recipe, run: Run, test: Path) -> dict[str, object]:
    """What ran on what; stage times and peaks come from the stages' own records."""
    stages = {"training": run.training, "export": run.export}
    stages |= {f"evaluation of {name}": run.evaluation / name for name in MODELS}
    return {
        "recipe": recipe.name,
        "seed": recipe.seed,
        "source": recipe.model.source,
        "dialect": recipe.dialect,
        "test conversations": {"file": test.name, "sha256": file_hash(test)},
        "processor": processor(),
        "python": platform.python_version(),
        "versions": versions("torch", "transformers", "peft", "litert-torch", "litert-lm-api"),
        "stages": {name: facts for name, folder in stages.items() if (facts := read_facts(folder))},
    }


def _print_table(results: dict[str, ModelResult]) -> None:
    from rich.table import Table
    from rich.text import Text

    header, *rows = headline_table(results)
    table = Table(*header, title="held-out conversations, greedy; 95% intervals")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)
