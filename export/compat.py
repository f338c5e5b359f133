"""`hermes-edge compat`: the bundle in another version of LiteRT-LM, which has an environment of its own."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.console import console, printable
from core.errors import UserError
from core.failures import meaning_of, meaning_of_exit
from core.files import atomic_write_json
from core.models import load_tokenizer
from core.recipe import Recipe
from core.stages import PROJECT, Run, need_file
from data.build import read_conversations
from export.probes import RENDERED
from export.stage import bundle_path
from hermes import Conversation, Dialect, get_dialect, text_of
from runtime.litert_messages import compat_case

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MEND = "name the interpreter of an environment with litert-lm-api, such as the one that `make compat` makes"
_COLUMNS = {"version", "name", "sent", "failed", "tool_calls", "different_parts", "ended", "second_turn"}
_CONVERSATIONS = 3
"""With calls; one could be one that the model answers with text."""


def check_compat(recipe: Recipe, run: Run, python: Path) -> None:
    """Repeat the gates that another LiteRT-LM can run: prompts and token ids, calls, stop tokens, a second turn.

    All probes are rendered; the bundle is asked for every turn of some conversations with calls, and of one that
    needs none.

    Args:
        python: the interpreter of an environment with the other `litert-lm-api`.

    Raises:
        UserError: the other version cannot load the bundle, or a gate fails there.
    """
    bundle = need_file(bundle_path(recipe, run), "hermes-edge export")
    conversations = read_conversations(need_file(run.data / "test.jsonl", "hermes-edge data"))
    tokenizer = load_tokenizer(need_file(run.training / "merged", "hermes-edge train"))
    cases = list(_cases(conversations, get_dialect(recipe.dialect), tokenizer))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.json"
        atomic_write_json(path, cases)
        with console().status("compat: asking the bundle"):
            done = _asked(python, bundle, path)
    rows = list(_rows(done.stdout))
    for row in rows:
        outcome = "; ".join(row["failed"]) or _shown(row)
        console().print(f"compat: litert-lm-api {row['version']}: {row['name']}: {printable(outcome)}")
    if done.returncode or len(rows) != len(cases):
        words = [printable(line) for line in done.stderr.strip().splitlines()[-5:]]
        if "No module named 'litert_lm'" in done.stderr:
            raise UserError(f"{python}: this environment has no litert-lm-api; {_MEND}")
        meaning = meaning_of(done.stderr) or (meaning_of_exit(done.returncode) if done.returncode < 0 else None)
        words += [f"that is: {meaning}"] if meaning else []
        raise UserError("\n  ".join([f"{bundle}: does not work with the LiteRT-LM of {python}", *words]))
    _judge(bundle, [row for row in rows if row["sent"]], recipe.export.gates.stopped)


def _shown(row: dict[str, Any]) -> str:
    """A case that passed, in a few words."""
    if not row["sent"]:
        return "rendered and tokenised as in training"
    reply = "a call" if row["tool_calls"] else "text"
    ended = "" if row["ended"] else ", cut"
    return (
        f"{reply}{ended}" if row["second_turn"] == "not asked" else f"{reply}{ended}; second turn: {row['second_turn']}"
    )


def _judge(bundle: Path, rows: list[dict[str, Any]], stopped: float) -> None:
    """What only all replies together show.

    Raises:
        UserError: no call was parsed, too few replies ended, or all are of one token.
    """
    problems = []
    if not any(row["tool_calls"] for row in rows):
        problems.append(f"no call came in {len(rows)} turns, so whether calls are parsed is not known")
    ended = sum(row["ended"] for row in rows)
    if ended < stopped * len(rows):
        problems.append(
            f"{ended} of {len(rows)} replies ended by a stop token; export.gates.stopped asks for {stopped}"
        )
    if not any(row["tool_calls"] or row["different_parts"] > 1 for row in rows):
        problems.append("every reply is one token over and over")
    if problems:
        raise UserError("\n  ".join([f"{bundle}:", *problems]))


def _asked(python: Path, bundle: Path, cases: Path) -> subprocess.CompletedProcess[str]:
    """Run the script of the other environment.

    Raises:
        UserError: `python` cannot be run.
    """
    # Absolute, since a bare name is looked for in PATH; not resolved, since an environment's python is a link.
    command = [python.absolute(), PROJECT / "runtime" / "compat.py", bundle.resolve(), cases]
    try:
        return subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise UserError(f"{python}: cannot be run: {error.strerror or error}; {_MEND}") from None


def _rows(output: str) -> Iterator[dict[str, Any]]:
    """The rows that the script printed; whatever else an interpreter prints is not one."""
    for line in output.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and row.keys() >= _COLUMNS:
            yield row


def _cases(
    conversations: list[Conversation], dialect: Dialect, tokenizer: PreTrainedTokenizerFast
) -> Iterator[dict[str, Any]]:
    """Every probe to render, and every turn of the first test conversations of each kind to answer.

    Which of them the model gets right is its quality, which evaluation measures, not the runtime's.
    """

    def case(prompt: Conversation, **how: Any) -> dict[str, Any]:
        text = text_of(dialect.render(prompt, add_generation_prompt=True))
        return compat_case(prompt, dialect, tokenizer(text, add_special_tokens=False)["input_ids"], **how)

    for probe in RENDERED:
        yield case(probe, send=False)
    for kind, count in (("call", _CONVERSATIONS), ("none", 1)):
        for chosen in [each for each in conversations if each.notes.get("kind") == kind][:count]:
            prompts = chosen.prompts()
            for prompt, after in zip_longest(prompts, prompts[1:]):
                given = after.messages[len(prompt.messages) + 1 :] if after and prompt is prompts[0] else ()
                named = replace(prompt, id=f"{chosen.id} turn {len(prompt.messages)}")
                yield case(named, then=given[0] if len(given) == 1 else None)
