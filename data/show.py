"""`hermes-edge data show`: conversations as the model sees them, with what is trained marked by kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.console import console, printable
from core.errors import UserError
from core.files import file_hash
from core.models import load_tokenizer, materialise
from core.recipe import Recipe
from core.stages import Run, need_file, need_stage
from data.build import read_conversations
from data.stage import data_inputs
from data.supervision import KINDS, Kind, audit, token_kinds
from hermes import Conversation, get_dialect

if TYPE_CHECKING:
    from rich.console import Console
    from transformers import PreTrainedTokenizerFast

STYLES: dict[Kind | None, str] = {
    None: "dim",
    "text": "green",
    "mark": "bold magenta",
    "structure": "white",
    "name": "bold yellow",
    "key": "cyan",
    "value": "bold green",
    "stop": "bold red",
}


def show(recipe: Recipe, run: Run, split: str, count: int, identity: str | None) -> None:
    """Print `count` conversations of `split`, or the one called `identity`, and what the whole split trains.

    Raises:
        UserError: the data are not there, or none has that id.
    """
    from rich.console import Console

    need_stage(run.data, "hermes-edge data", data_inputs(recipe))
    path = need_file(run.data / f"{split}.jsonl", "hermes-edge data")
    conversations = read_conversations(path)
    if not conversations:
        raise UserError(f"{path}: holds no conversation; run `hermes-edge data` again")
    chosen = [each for each in conversations if identity in (None, each.id)][: count if identity is None else 1]
    if not chosen:
        raise UserError(f"{path}: no conversation has the id {identity!r}; the first is {conversations[0].id!r}")
    tokenizer = load_tokenizer(materialise(recipe.model), recipe.model.trust_remote_code)
    output = Console(highlight=False, markup=False, soft_wrap=True)
    for conversation in chosen:
        _show_one(output, conversation, recipe.dialect, tokenizer)
    console().print(f"{path} ({file_hash(path)[:12]}): {len(conversations)} conversations")
    try:
        counts = audit(conversations, get_dialect(recipe.dialect), tokenizer)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    console().print(f"trained tokens: {shares(counts)}")


def _show_one(output: Console, conversation: Conversation, dialect: str, tokenizer: PreTrainedTokenizerFast) -> None:
    from rich.text import Text

    tokens = list(token_kinds(conversation, get_dialect(dialect), tokenizer))
    output.rule(
        f"{printable(conversation.id)}: {len(tokens)} tokens, {sum(kind is not None for _, kind in tokens)} trained"
    )
    text = Text()
    for number, (token, kind) in enumerate(tokens):
        if not output.is_terminal and (kind is None) != (_kind_before(tokens, number) is None):
            text.append("⟦" if kind is not None else "⟧")
        text.append(printable(token), STYLES[kind])
    if not output.is_terminal and tokens and tokens[-1][1] is not None:
        text.append("⟧")
    output.print(text)
    output.print()


def _kind_before(tokens: Sequence[tuple[str, Kind | None]], number: int) -> Kind | None:
    return tokens[number - 1][1] if number else None


def shares(counts: dict[Kind, int]) -> str:
    """Counts by kind as one line of percentages."""
    whole = sum(counts.values())
    return f"{whole}; " + ", ".join(f"{kind} {100 * counts[kind] / whole:.1f}%" for kind in KINDS)
