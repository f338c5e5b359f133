"""Writes the conversations of a recipe to disk, checked, and reads them back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import UserError
from core.files import atomic_write_json, atomic_write_text
from core.recipe import Recipe
from core.user_files import read_prompt
from data.agent_skills import TooFewRequestsError, generate_each
from data.values import SPLITS, Split
from hermes import Conversation, dumps, validate_conversation

OUTPUTS = (*(f"{split}.jsonl" for split in SPLITS), "rejected.jsonl", "summary.json")
"""The files that `build` writes."""

Progress = Callable[[str, int, int], None]

_TELL_EVERY = 100
"""Conversations between calls of `progress`."""
_MOST_PROBLEMS = 20
_MOST_SHARED = 5


def build(recipe: Recipe, folder: Path, progress: Progress | None = None) -> dict[str, Any]:
    """Write the conversations of `recipe` into `folder`; returns what `summary.json` holds.

    Written are `train.jsonl`, `validation.jsonl` and `test.jsonl`, `rejected.jsonl` with the reasons for every
    conversation that was left out, and `summary.json`. `progress` is told (split, done, total).

    Raises:
        UserError: two splits share something, more conversations are asked for than can be made, or a file
            cannot be written.
    """
    counts: dict[Split, int] = {
        "train": recipe.data.train,
        "validation": recipe.data.validation,
        "test": recipe.data.test,
    }
    prompts = [read_prompt(Path(path)) for path in recipe.data.system_prompts]
    kept: dict[Split, list[Conversation]] = {}
    rejected: list[dict[str, Any]] = []
    for split in SPLITS:
        kept[split], refused = _checked(_generate(split, counts[split], recipe.seed, prompts, progress))
        rejected += refused
        if progress:
            progress(split, counts[split], counts[split])
    check_disjoint(kept)
    for split, conversations in kept.items():
        _write_rows(folder / f"{split}.jsonl", (conversation.to_json() for conversation in conversations))
    _write_rows(folder / "rejected.jsonl", rejected)
    summary = _summary(kept, len(rejected))
    atomic_write_json(folder / "summary.json", summary)
    return summary


def _generate(
    split: Split, count: int, seed: int, prompts: Sequence[str], progress: Progress | None
) -> Iterator[Conversation]:
    try:
        for done, conversation in enumerate(generate_each(split, count, seed, prompts)):
            if progress and done % _TELL_EVERY == 0:
                progress(split, done, count)
            yield conversation
    except TooFewRequestsError as error:
        raise UserError(f"data.{split}: {error}") from None


def _checked(conversations: Iterable[Conversation]) -> tuple[list[Conversation], list[dict[str, Any]]]:
    """The valid conversations, and rows for the others with what is wrong with them."""
    kept: list[Conversation] = []
    rejected: list[dict[str, Any]] = []
    for conversation in conversations:
        reasons = validate_conversation(conversation)
        if reasons:
            rejected.append({**conversation.to_json(), "reasons": reasons})
        else:
            kept.append(conversation)
    return kept, rejected


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    atomic_write_text(path, "".join(dumps(row) + "\n" for row in rows))


def _summary(kept: Mapping[Split, Sequence[Conversation]], rejected: int) -> dict[str, Any]:
    def counted(key: str) -> dict[str, dict[str, int]]:
        return {
            split: dict(sorted(Counter(str(conversation.notes[key] or "none") for conversation in rows).items()))
            for split, rows in kept.items()
        }

    return {
        "conversations": {split: len(rows) for split, rows in kept.items()},
        "kinds": counted("kind"),
        "skills": counted("skill"),
        "rejected": rejected,
    }


def check_disjoint(splits: Mapping[Split, Sequence[Conversation]]) -> None:
    """Refuse splits that share a phrasing, a user's text or an open value.

    Raises:
        UserError: names what is shared, between which splits, with some examples.
    """
    seen: dict[tuple[str, str], Split] = {}
    shared: dict[tuple[str, Split, Split], set[str]] = {}
    for split, conversations in splits.items():
        for kind, text in {item for conversation in conversations for item in _unique_to_split(conversation)}:
            first = seen.setdefault((kind, text), split)
            if first != split:
                shared.setdefault((kind, first, split), set()).add(text)
    if shared:
        lines = [
            f"  {len(texts)} {kind}(s) in {first} and {second}, such as {sorted(texts)[:_MOST_SHARED]}"
            for (kind, first, second), texts in sorted(shared.items())
        ]
        raise UserError("the splits are not disjoint, so evaluation would measure memory:\n" + "\n".join(lines))


def _unique_to_split(conversation: Conversation) -> Iterable[tuple[str, str]]:
    notes = conversation.notes
    for template in notes.get("templates", ()):
        yield "template", str(template)
    for message in conversation.messages:
        if message.role == "user":
            yield "user text", str(message.content)
    for value in notes.get("values", {}).values():
        yield "value", str(value)


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a JSON Lines file.

    Raises:
        UserError: the file cannot be read, or some rows hold no valid conversation; up to 20 problems are listed,
            each with its line and field.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; `hermes-edge data` makes it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    conversations: list[Conversation] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = _read_row(line)
        if isinstance(row, Conversation):
            conversations.append(row)
        else:
            problems += [f"line {number}: {problem}" for problem in row]
    if problems:
        listed = problems[:_MOST_PROBLEMS]
        if len(problems) > len(listed):
            listed.append(f"and {len(problems) - len(listed)} more")
        raise UserError(f"{path}: {len(problems)} problem(s):\n" + "\n".join(f"  {line}" for line in listed))
    return conversations


def _read_row(line: str) -> Conversation | list[str]:
    """The conversation in a line, or what is wrong with it."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return [f"not JSON: {error}"]
    if not isinstance(row, dict):
        return [f"a row must be a JSON object, not {type(row).__name__}"]
    problems = [problem for key in ("messages", "tools", "notes") for problem in _field_problems(key, row.get(key))]
    if problems:
        return problems
    try:
        conversation = Conversation.from_json(row)
        return validate_conversation(conversation) or conversation
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return [str(error)]


def _field_problems(key: str, value: Any) -> Iterable[str]:
    """What is wrong with the shape of one field of a row."""
    if key != "messages":
        kind = list if key == "tools" else dict
        if value is not None and not isinstance(_json_of(value), kind):
            yield f"{key}: must be JSON text of {'a list' if kind is list else 'an object'}"
        return
    if not isinstance(value, list) or not value:
        yield "messages: must be a list of at least one message"
        return
    for index, message in enumerate(value):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            yield f"{where}: must be an object"
            continue
        yield from (f"{where}.{field}: missing" for field in ("role", "content") if field not in message)
        if message.get("content_is_json") and _json_of(message.get("content")) is None:
            yield f"{where}.content: is marked as JSON, but is not JSON text"
        yield from _call_problems(where, message.get("calls") or [])


def _call_problems(where: str, calls: Any) -> Iterable[str]:
    if not isinstance(calls, list):
        yield f"{where}.calls: must be a list"
        return
    for number, call in enumerate(calls):
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            yield f"{where}.calls[{number}].name: must be text"
        elif not isinstance(_json_of(call.get("arguments")), dict):
            yield f"{where}.calls[{number}].arguments: must be JSON text of an object"


def _json_of(text: Any) -> Any:
    """The value of JSON text; None where `text` is no such thing."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
