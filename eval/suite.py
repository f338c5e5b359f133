"""What models are asked, and where the results go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.files import file_hash, value_hash
from core.recipe import Recipe
from core.stages import Run, need_file, need_stage
from data.build import read_conversations
from data.stage import data_inputs
from hermes import Conversation
from hermes.record import JSON


@dataclass(frozen=True)
class Suite:
    """Conversations that every model is asked, under one folder of results."""

    title: str
    folder: Path
    """Has a folder for each model, and the report."""
    conversations: Sequence[Conversation]
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """Where the conversations come from, for the report."""
    others: Sequence[Path] = ()
    """Folders of other suites, some of whose conversations are the same: their replies are not asked for again."""

    def data(self) -> str:
        """Hash of the conversations."""
        return value_hash([conversation.to_json() for conversation in self.conversations])


def split_folder(run: Run, full: bool) -> Path:
    """Where results on the test split go: on all of it if `full`, else on its first conversations."""
    return run.evaluation_full if full else run.evaluation


def results_path(folder: Path, name: str) -> Path:
    """Where the results of the model `name` are in a suite's folder."""
    return folder / name / "results.json"


def split_suite(recipe: Recipe, run: Run, full: bool) -> Suite:
    """The first `evaluation.quick` conversations of the test split, or all of it.

    Raises:
        UserError: the recipe's data are not there, or cannot be read.
    """
    path = need_file(run.data / "test.jsonl", "hermes-edge data")
    need_stage(run.data, "hermes-edge data", data_inputs(recipe))
    conversations = read_conversations(path)
    asked = conversations if full else conversations[: recipe.evaluation.quick]
    some = f"the first {len(asked)} of {len(conversations)}"
    count = some if len(asked) < len(conversations) else f"all {len(asked)}"
    return Suite(
        title=f"{count} test conversations",
        folder=split_folder(run, full),
        conversations=asked,
        facts={"test conversations": {"file": path.name, "sha256": file_hash(path), "asked": count}},
        others=(split_folder(run, not full),),
    )
