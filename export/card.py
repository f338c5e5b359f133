"""The card of a bundle, written from what was measured: what it is, what it proved, and how to use it.

`write_card` looks at what lies in the run: `lock.json` and `evidence.json` of the export, the results of an evaluation
of this very bundle, a sweep of this model, a GGUF file. What is not there is said to be not measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.errors import UserError
from core.files import atomic_write_text
from core.recipe import Recipe
from core.stages import Run, need_file, read_facts
from eval.page import interval, percent
from eval.report import headlines
from eval.results import ModelResult, load_results
from eval.subjects import bundle_path, need_model
from eval.suite import results_path
from hermes.gallery_tools import GALLERY_TOOLS


def write_card(recipe: Recipe, run: Run) -> Path:
    """Write `card.md` beside the finished bundle, if it would change."""
    path = run.export / "card.md"
    text = card(recipe, run)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        atomic_write_text(path, text)
    return path


def renew_card(recipe: Recipe, run: Run) -> None:
    """`write_card` where there is a finished bundle of this recipe; else nothing."""
    with suppress(UserError):
        need_model("bundle", recipe, run)
        write_card(recipe, run)


def card(recipe: Recipe, run: Run) -> str:
    """Markdown about the finished bundle of `recipe`.

    Raises:
        UserError: there is no finished export.
    """
    lock = _read(need_file(run.export / "lock.json", "hermes-edge export"))
    bundle = lock["bundle"]
    sections = (
        _introduction(recipe, bundle),
        _on_the_phone(recipe, bundle["name"]),
        _on_a_computer(recipe, run, bundle["name"]),
        _inside(recipe, lock),
        "## What was checked\n\n" + "\n".join(_evidence(_read(run.export / "evidence.json"))),
        "## What was measured\n\n" + _figures(bundle_results(recipe, run)),
        _sweep(run, lock),
    )
    return "\n\n".join(section for section in sections if section) + "\n"


def bundle_results(recipe: Recipe, run: Run) -> ModelResult | None:
    """The evaluation of this very bundle on the most conversations, if there is one."""
    digest = _read(run.export / "lock.json")["bundle"]["sha256"]
    for folder in (run.evaluation_full, run.evaluation):
        try:
            result = load_results(results_path(folder, "bundle"))
        except UserError:
            continue
        if result.meta.get("weights") == digest and bundle_path(recipe, run).is_file():
            return result
    return None


def gguf_files(run: Run) -> list[Path]:
    """The files for llama.cpp that were made of the model that the bundle was made of."""
    model = _read(run.export / "lock.json")["model"]["model.safetensors"]
    folders = [each for each in sorted(run.export.glob("gguf-*")) if read_facts(each).get("model") == model]
    return [path for folder in folders for path in sorted(folder.glob("*.gguf"))]


def _introduction(recipe: Recipe, bundle: Mapping[str, Any]) -> str:
    base = recipe.model.base_model or recipe.model.source
    licence = recipe.model.license or "not given in the recipe (`model.license`); look it up before you pass this on"
    return f"""# {recipe.name}

A small model for AI Edge Gallery's Agent Skills and for LiteRT-LM, tuned from `{base}`.

| file | size | SHA-256 |
| --- | --- | --- |
| `{bundle["name"]}` | {bundle["bytes"] / 1e6:.0f} MB | `{bundle["sha256"]}` |

Licence of the base model: {licence}."""


def _on_the_phone(recipe: Recipe, name: str) -> str:
    tools = ", ".join(f"`{tool.name}`" for tool in GALLERY_TOOLS)
    return f"""## Put it on the phone

1. Copy `{name}` to the phone, for example with `adb push {name} /sdcard/Download/`.
2. In AI Edge Gallery open the model list, tap **+** and choose the file.
3. In the import dialog set **Max tokens** to **{min(recipe.export.cache_length, 4096)}**. It starts at 1024, which is
   less than the skills prompt, the tools and one loaded skill need, and cannot be changed after the import.
4. Leave **image** and **audio** support off: the bundle has text only.
5. Open **Agent Skills**, choose the model, and select the skills.

Decoding is greedy in the app. The model was trained for one call a turn of {tools}."""


def _on_a_computer(recipe: Recipe, run: Run, name: str) -> str:
    text = f"""## Run it on a computer

```
hermes-edge run {name}
```"""
    files = gguf_files(run)
    if not files:
        return text
    grammar = f"{recipe.name}.gbnf"
    lines = "\n".join(f"llama-server -m {file.name} --jinja --temp 0" for file in files)
    return f"""{text}

In llama.cpp, with the chat template that is in the file:

```
{lines}
llama-cli -m {files[0].name} --jinja --temp 0 --grammar-file {grammar}
```

Under the grammar a reply is text, or valid calls of the app's four tools and no others; without it, calls are free."""


def _inside(recipe: Recipe, lock: Mapping[str, Any]) -> str:
    rows = {
        "recipe": f"{recipe.name}, seed {recipe.seed}",
        "call syntax": f"`{recipe.dialect}`: JSON between `<tool_call>` and `</tool_call>`; runtime parser `qwen3`",
        "cache": f"{recipe.export.cache_length} tokens",
        "weights": recipe.export.quantization,
        **{f"{name} of the merged model": f"SHA-256 `{digest}`" for name, digest in lock["model"].items()},
        **lock["versions"],
        "made with": f"Python {lock['python']} on {lock['machine']}",
    }
    return f"## What is inside\n\n{_table(('fact', 'value'), rows.items())}"


def _evidence(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Gates as a table."""
    gates = evidence.get("gates", ())
    if gates:
        rows = [(gate["gate"], _outcome(gate), _listed(gate.get("figures", {}))) for gate in gates]
        yield _table(("gate", "outcome", "figures"), rows) + "\n"


def _outcome(gate: Mapping[str, Any]) -> str:
    return f"{gate['outcome']}: {gate['reason']}" if gate.get("reason") else str(gate["outcome"])


def _listed(value: object) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_listed(part)}" for name, part in value.items())
    return "none" if value is None else str(value)


def _figures(result: ModelResult | None) -> str:
    if result is None:
        return "Tool calling of this bundle was not measured; `hermes-edge eval` does that."
    lines = headlines([result])
    rows = [(label, percent(cell.share), interval(cell.low, cell.high)) for label, (cell,) in lines]
    table = _table(("", "share", "95% interval"), rows)
    return f"The bundle on {len(result.cases)} held-out conversations, greedy:\n\n{table}"


def _sweep(run: Run, lock: Mapping[str, Any]) -> str:
    """The table of a sweep, if one was made of this model."""
    try:
        sweep = _read(run.export / "sweep" / "sweep.json")
        table = (run.export / "sweep" / "sweep.md").read_text(encoding="utf-8")
    except OSError:
        return ""
    return f"## Other sizes\n\n{table.strip()}" if sweep["model"] == lock["model"]["model.safetensors"] else ""


def _table(header: tuple[str, ...], rows: Any) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value
