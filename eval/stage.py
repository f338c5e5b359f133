"""`hermes-edge eval`: the same conversations through base, tuned model and bundle; then the report."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from core.console import console, progress
from core.doctor import processor
from core.errors import UserError
from core.files import value_hash
from core.memory import peak_memory_gb, reset_peak
from core.recipe import Recipe
from core.stages import Run, Stage, code_hash, read_facts, versions
from eval.cases import cases_suite
from eval.report import headline_table, write_report
from eval.results import ModelResult, load_results, save_results
from eval.subjects import CONSTRAINED, MODELS, Subject, bundle_path, need_model, subject
from eval.suite import Suite, results_path, split_suite
from eval.trajectory import evaluate
from hermes.record import JSON

_RUNTIME = (
    "bundle_tokenizer",
    "constraint",
    "litert_backend",
    "litert_messages",
    "raw_text",
    "speed",
    "shared_prefix",
    "transformers_backend",
)
_CODE = (
    *(f"eval/{name}.py" for name in ("cache", "results", "scoring", "trajectory")),
    *(f"runtime/{name}.py" for name in _RUNTIME),
)
"""What decides replies and scores; the look of the report does not."""
_REPLIES = "replies.jsonl"


def evaluate_models(recipe: Recipe, run: Run, names: Sequence[str] = (), *, full: bool = False) -> Path:
    """Evaluate the models `names` on the test split, and write the report over all whose results are up to date.

    Without names all of `MODELS` are evaluated; what has not been made yet is named and left out. `CONSTRAINED` is
    evaluated only by its name. Unless `full`, only the first `evaluation.quick` conversations are asked.

    Returns:
        The path of the HTML report.

    Raises:
        UserError: a model of `names` has not been made yet; nothing has been evaluated then.
    """
    return evaluate_suite(split_suite(recipe, run, full), recipe, run, names)


def evaluate_cases(
    recipe: Recipe, run: Run, names: Sequence[str], cases: Path, skills: Path, system: Path | None = None
) -> Path:
    """As `evaluate_models`, on a file of cases (see `eval.cases`), with the skills of a folder on offer."""
    return evaluate_suite(cases_suite(run, cases, skills, system), recipe, run, names)


def evaluate_suite(suite: Suite, recipe: Recipe, run: Run, names: Sequence[str] = ()) -> Path:
    """As `evaluate_models`, for any suite."""
    for name in names:
        need_model(name, recipe, run)
    results: dict[str, ModelResult] = {}
    for name in (*MODELS, CONSTRAINED):
        if name == CONSTRAINED and name not in names and not results_path(suite.folder, name).is_file():
            continue
        try:
            need_model(name, recipe, run)
        except UserError as error:
            console().print(f"eval: {name} is left out: {error}")
            continue
        model = subject(name, recipe, run)
        this = _stage(model, suite, recipe)
        if name in (names or MODELS):
            results[name] = evaluate_subject(model, suite, recipe)
        elif this.why_stale() is None:
            results[name] = load_results(results_path(suite.folder, name))
    report = suite.folder / "report"
    write_report(report, results, _facts(suite, recipe, run))
    _print_table(results, suite.title)
    console().print(f"report: {report / 'report.html'}")
    if "bundle" in results:
        console().print(f"bundle: {bundle_path(recipe, run)}\ncard:   {run.export / 'card.md'}")
    return report / "report.html"


def evaluate_subject(model: Subject, suite: Suite, recipe: Recipe) -> ModelResult:
    """The results of one model on `suite`, which are up to date; asked for again only where they are not."""
    return _evaluate(model, _stage(model, suite, recipe), suite, recipe)


def _stage(model: Subject, suite: Suite, recipe: Recipe) -> Stage:
    return Stage(
        suite.folder / model.name,
        {
            "evaluation": dict(model.settings),
            "dialect": recipe.dialect,
            "model": model.weights,
            "data": suite.data(),
            "code": code_hash("hermes", *_CODE),
            "versions": versions(model.package),
        },
    )


def _evaluate(model: Subject, this: Stage, suite: Suite, recipe: Recipe) -> ModelResult:
    """The results of one model; replies of an interrupted evaluation are kept and not asked for again."""
    target = results_path(suite.folder, model.name)
    stale = this.why_stale()
    if stale is None:
        console().print(f"eval: {model.name}: up to date")
        return load_results(target)
    console().print(f"eval: {model.name}: {stale}")
    this.begin()
    reset_peak()
    started = time.monotonic()
    with model.opened() as backend, progress(f"eval {model.name}") as advance:
        cases = evaluate(
            backend,
            suite.conversations,
            recipe.dialect,
            lambda known, total: advance(known, total, ""),
            cache=this.folder / _REPLIES,
            others=[folder / model.name / _REPLIES for folder in suite.others],
            fingerprint=value_hash({name: this.inputs[name] for name in ("evaluation", "model", "code", "versions")}),
        )
    seconds = round(time.monotonic() - started, 1)
    meta = {"weights": model.weights, **model.settings, "seconds": seconds}
    result = ModelResult(model.name, model.name, cases, meta)
    save_results(target, result)
    this.finish([target], seconds=seconds, peak_memory_gb=peak_memory_gb())
    return result


def _facts(suite: Suite, recipe: Recipe, run: Run) -> dict[str, JSON]:
    """What ran on what; stage times and peaks come from the stages' own records."""
    stages = {"training": run.training, "export": run.export}
    stages |= {f"evaluation of {name}": suite.folder / name for name in (*MODELS, CONSTRAINED)}
    return {
        "recipe": recipe.name,
        "seed": recipe.seed,
        "source": recipe.model.source,
        "dialect": recipe.dialect,
        **suite.facts,
        "processor": processor(),
        "python": platform.python_version(),
        "versions": versions("torch", "transformers", "peft", "litert-torch", "litert-lm-api"),
        "stages": {name: facts for name, folder in stages.items() if (facts := read_facts(folder))},
    }


def _print_table(results: Mapping[str, ModelResult], title: str) -> None:
    from rich.table import Table
    from rich.text import Text

    header, *rows = headline_table(results)
    table = Table(*header, title=f"{title}, greedy; 95% intervals")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)
