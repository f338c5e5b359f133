"""`hermes-edge compat`: the bundle in another version of LiteRT-LM, which has an environment of its own."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.console import console, printable
from core.errors import UserError
from core.failures import meaning_of, meaning_of_exit
from core.files import atomic_write_json
from core.recipe import Recipe
from core.stages import PROJECT, Run, need_file
from data.build import read_conversations
from export.stage import bundle_path
from hermes import Conversation, get_dialect
from runtime.litert_messages import compat_case

_MEND = "name the interpreter of an environment with litert-lm-api, such as the one that `make compat` makes"
_CONVERSATIONS = 3
"""With calls; one could be one that the model answers with text."""


def check_compat(recipe: Recipe, run: Run, python: Path) -> None:
    """Ask the bundle for every turn of some conversations with calls, and of one that needs none.

    Args:
        python: the interpreter of an environment with the other `litert-lm-api`.

    Raises:
        UserError: the other version cannot load the bundle, renders another prompt, or parses no call.
    """
    bundle = need_file(bundle_path(recipe, run), "hermes-edge export")
    conversations = read_conversations(need_file(run.data / "test.jsonl", "hermes-edge data"))
    dialect = get_dialect(recipe.dialect)
    cases = [compat_case(prompt, dialect) for prompt in _prompts(conversations)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.json"
        atomic_write_json(path, cases)
        with console().status("compat: asking the bundle"):
            done = _asked(python, bundle, path)
    rows = list(_rows(done.stdout))
    for row in rows:
        outcome = "; ".join(row["failed"]) or ("a call" if row["tool_calls"] else "text")
        console().print(f"compat: litert-lm-api {row['version']}: {row['name']}: {printable(outcome)}")
    if done.returncode or len(rows) != len(cases):
        words = [printable(line) for line in done.stderr.strip().splitlines()[-5:]]
        if "No module named 'litert_lm'" in done.stderr:
            raise UserError(f"{python}: this environment has no litert-lm-api; {_MEND}")
        meaning = meaning_of(done.stderr) or (meaning_of_exit(done.returncode) if done.returncode < 0 else None)
        words += [f"that is: {meaning}"] if meaning else []
        raise UserError("\n  ".join([f"{bundle}: does not work with the LiteRT-LM of {python}", *words]))
    if not any(row["tool_calls"] for row in rows):
        raise UserError(f"{bundle}: no call came in {len(rows)} turns, so whether calls are parsed is not known")


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
        if isinstance(row, dict) and row.keys() >= {"version", "name", "failed", "tool_calls"}:
            yield row


def _prompts(conversations: list[Conversation]) -> Iterator[Conversation]:
    """Every turn of the first conversations of each kind.

    Which of them the model gets right is its quality, which evaluation measures, not the runtime's.
    """
    for kind, count in (("call", _CONVERSATIONS), ("none", 1)):
        for chosen in [each for each in conversations if each.notes.get("kind") == kind][:count]:
            for prompt in chosen.prompts():
                yield replace(prompt, id=f"{chosen.id} turn {len(prompt.messages)}")
