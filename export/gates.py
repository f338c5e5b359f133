"""Gates: what a bundle must prove before it gets its name.

A gate measures figures of a bundle and holds them against thresholds of the recipe (`export.gates`). Its outcome is
`passed`, `failed` or `not checked`, the last two with a reason; a check that was not made is never a pass.
`run_gates` runs all of them, so that one export shows everything that is wrong, and leaves the evidence in any case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.console import console, printable
from core.errors import UserError
from core.files import atomic_write_json, file_hash
from core.recipe import GateSettings, Recipe
from hermes import Conversation, Dialect, get_dialect, text_of
from runtime.litert_backend import LiteRTBackend

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from export.logits import Graph, SourceModel
    from export.reply_gates import Asked
    from export.tokenizer_parity import PackedTokenizer

Verdict: TypeAlias = Literal["passed", "failed", "not checked"]
Figure: TypeAlias = int | float | str | bool | None
Limits: TypeAlias = Mapping[str, int | float]
"""The name of a figure → what it may be at most, or must be at least."""


@dataclass(frozen=True)
class Outcome:
    """What one gate found."""

    verdict: Verdict
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """What was measured, by name."""
    thresholds: Mapping[str, str] = field(default_factory=dict)
    """What a figure was held against, by its name: `at most 0.001`."""
    reason: str = ""
    """Why it failed or was not checked; empty for a pass."""

    def to_json(self, gate: str) -> dict[str, object]:
        """An entry of `evidence.json`."""
        entry: dict[str, object] = {"gate": gate, "outcome": self.verdict}
        if self.reason:
            entry["reason"] = self.reason
        figures = {name: _in_json(figure) for name, figure in self.figures.items()}
        return {**entry, "figures": figures, "thresholds": dict(self.thresholds)}

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}" if self.reason else self.verdict


def _in_json(figure: Figure) -> Figure:
    """JSON has no NaN and no infinity; more than four digits of a measured figure say nothing."""
    if not isinstance(figure, float):
        return figure
    return float(f"{figure:.4g}") if math.isfinite(figure) else str(figure)


def judge(
    figures: Mapping[str, Figure], *, at_most: Limits | None = None, at_least: Limits | None = None, detail: str = ""
) -> Outcome:
    """Hold figures against their limits; one that is not a number, or not there, is beyond any limit.

    Args:
        detail: what a reader needs beside the figures to find the fault; part of the reason if the gate fails.
    """
    thresholds: dict[str, str] = {}
    beyond: list[str] = []
    for words, limits in (("at most", at_most or {}), ("at least", at_least or {})):
        for name, limit in limits.items():
            thresholds[name] = f"{words} {limit}"
            figure = figures.get(name)
            kept = isinstance(figure, (int, float)) and (figure <= limit if words == "at most" else figure >= limit)
            if not kept:
                beyond.append(f"{name}: {_in_json(figure)}, must be {thresholds[name]}")
    reason = "; ".join([*beyond, detail] if detail else beyond) if beyond else ""
    return Outcome("failed" if beyond else "passed", figures, thresholds, reason)


def not_checked(reason: str, figures: Mapping[str, Figure] | None = None) -> Outcome:
    """For a check that could not be made; `reason` says why."""
    return Outcome("not checked", figures or {}, {}, reason)


@dataclass
class Subject:
    """A finished bundle, what it was made from, and what it is asked; what costs time is loaded when first used."""

    bundle: Path
    """The `.litertlm` file."""
    model: Path
    """Folder of the merged model, the source of the bundle, with its tokenizer."""
    recipe: Recipe
    conversations: Sequence[Conversation]
    """The recipe's test conversations."""
    trained: Sequence[Conversation] = ()
    """What was trained on; only its length matters."""
    float_graph: Path | None = None
    """The float32 `.tflite` that a quantised graph was made from, where it is still there."""
    packed: PackedTokenizer | None = None
    """The tokenizer that was packed, where that is known."""
    _folder: ExitStack = field(default_factory=ExitStack)

    @property
    def settings(self) -> GateSettings:
        """The recipe's thresholds and counts."""
        return self.recipe.export.gates

    @cached_property
    def dialect(self) -> Dialect:
        """The recipe's way of writing calls."""
        return get_dialect(self.recipe.dialect)

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The merged model's tokenizer, with the chat template."""
        from core.models import load_tokenizer

        return load_tokenizer(self.model)

    @cached_property
    def backend(self) -> LiteRTBackend:
        """The bundle in LiteRT-LM.

        Raises:
            UserError: the runtime cannot load it.
        """
        return LiteRTBackend(self.bundle, self.recipe.dialect, self.settings.reply_tokens)

    @cached_property
    def source(self) -> SourceModel:
        """The merged model in transformers, float32."""
        from export.logits import SourceModel

        return SourceModel(self.model)

    @cached_property
    def graph(self) -> Graph:
        """The bundle's own graph, taken out of the bundle.

        Raises:
            UserError: it has none, or one that cannot be loaded.
        """
        from litert_lm_builder import litertlm_builder

        from export.logits import Graph

        folder = Path(self._folder.enter_context(TemporaryDirectory(dir=self.bundle.parent, prefix=".graph-")))
        litertlm_builder.unpack(str(self.bundle), str(folder))
        found = sorted(folder.glob("*.tflite"))
        if len(found) != 1:
            raise UserError(f"{self.bundle}: must hold one graph, not {len(found)}")
        return Graph(found[0])

    @cached_property
    def asked(self) -> list[Asked]:
        """What the bundle answered to the first turns of some test conversations."""
        from export.reply_gates import ask

        return ask(self)

    def ids(self, conversation: Conversation, *, prompt: bool) -> list[int]:
        """Token ids of a conversation as training saw it; with the opening of the next reply if it is a `prompt`."""
        text = text_of(self.dialect.render(conversation, add_generation_prompt=prompt))
        found: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return found

    def samples(self, count: int) -> list[Conversation]:
        """Some test conversations: those with most turns first, and of several one without a call, if there is one."""
        turns = sorted(self.conversations, key=lambda each: -min(len(each.prompts()), 3))
        without = [each for each in turns if not any(message.calls for message in each.messages)]
        kept = [each for each in turns if each not in without[:1]]
        last = max(count - 1, 1)
        return [*kept[:last], *without[:1], *kept[last:]][:count]

    def __enter__(self) -> Subject:
        return self

    def __exit__(self, *_: object) -> None:
        if "backend" in self.__dict__:
            self.backend.close()
        self._folder.close()


@dataclass(frozen=True)
class Gate:
    """One check of a bundle."""

    name: str
    """What holds if it passes, in a few words: `token ids equal`."""
    check: Callable[[Subject], Outcome]
    """Measures and judges; any exception that it raises is a failure."""


def run_gates(gates: Sequence[Gate], subject: Subject, evidence: Path) -> dict[str, Outcome]:
    """The outcome of every gate by its name; `evidence` (JSON) holds them, whether they passed or not.

    Raises:
        UserError: at least one gate failed; the message lists each that did, with its reason.
    """
    outcomes: dict[str, Outcome] = {}
    for gate in gates:
        outcomes[gate.name] = outcome = _outcome(gate, subject)
        console().print(f"export:   {gate.name}: {printable(str(outcome))}")
    entries = [outcome.to_json(name) for name, outcome in outcomes.items()]
    atomic_write_json(evidence, {"sha256": file_hash(subject.bundle), "gates": entries})
    failed = [f"  {name}: {outcome.reason}" for name, outcome in outcomes.items() if outcome.verdict == "failed"]
    if failed:
        lines = "\n".join(failed)
        raise UserError(
            f"{subject.bundle}: {len(failed)} of {len(gates)} gates failed, so it is not fit for use:\n{lines}\n"
            f"  figures and thresholds: {evidence}"
        )
    return outcomes


def _outcome(gate: Gate, subject: Subject) -> Outcome:
    try:
        return gate.check(subject)
    except UserError as error:
        return Outcome("failed", reason=str(error))
    except Exception as error:  # What a runtime or a template engine raises must not hide the other outcomes.
        return Outcome("failed", reason=f"{type(error).__name__}: {error}")
