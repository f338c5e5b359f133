"""What an evaluation found: scores of single replies, of conversations, of a model; and their file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from core.errors import UserError
from core.files import atomic_write_json
from hermes.dialects import FinishReason
from hermes.record import JSON, ToolCall

StepKind = Literal["load", "run", "answer", "abstain"]
CALL_KINDS: tuple[StepKind, ...] = ("load", "run")
NO_CALL, MALFORMED, UNKNOWN_TOOL, SEVERAL_CALLS = "no call", "malformed", "unknown tool", "several calls"
_FORMAT = 2


@dataclass(frozen=True)
class StepScore:
    """How one reply compares with the recorded one. For a call, each field down to `exact` implies those above."""

    kind: StepKind
    well_formed: bool
    """Where a call is due: calls and nothing malformed; where text is due: text without any call. Never if cut."""
    known_tool: bool
    """Every tool that is called is on offer. (For text: as `well_formed`.)"""
    right_tool: bool
    """The tools called are those of the record, as many and in its order. (For text: as `well_formed`.)"""
    required_arguments: bool
    """Every argument that the tools' schemas require is there, and none that they exclude. (For text: as
    `well_formed`.)
    """
    valid_arguments: bool
    """The arguments are valid for the tools' schemas. (For text: as `well_formed`.)"""
    exact: bool
    """The recorded calls (`same_call`), or the recorded text, ignoring case, white space and a final period."""
    abstained: bool
    """The reply holds no call, not even a broken one."""
    facts: bool
    """The reply is finished text with every fact that it must hold."""

    @property
    def right(self) -> bool:
        """What counts as a right step: the exact call; an answer with its facts; the wording of abstention."""
        return self.facts if self.kind == "answer" else self.exact


@dataclass(frozen=True)
class StepResult:
    """One reply of a model, and its score."""

    score: StepScore
    expected: str
    """The record's turn, as the dialect writes it."""
    expected_tool: str
    """Name of the tool that should be called, or `no call`."""
    raw: str
    called: str
    """Name of the tool that was called, or what happened instead: `no call`, `malformed`, …"""
    calls: tuple[ToolCall, ...]
    finish_reason: FinishReason
    seconds: float


@dataclass(frozen=True)
class CaseResult:
    """One conversation, step by step."""

    id: str
    kind: Literal["call", "none"]
    """`none`: no skill fits, and the model should say so."""
    skill: str
    steps: tuple[StepResult, ...]
    held_out: bool = False
    """No training conversation lists the skill that it needs."""

    @property
    def trajectory(self) -> bool:
        """Whether every step is right."""
        return bool(self.steps) and all(step.score.right for step in self.steps)


@dataclass(frozen=True)
class ModelResult:
    """All cases of one model."""

    name: str
    label: str
    """As reports call the model."""
    cases: list[CaseResult]
    meta: dict[str, JSON] = field(default_factory=dict)
    """What was run: hashes, backend, limits."""

    def part(self, held_out: bool) -> ModelResult:
        """The result over those cases only whose skill training never saw, or over all others."""
        return replace(self, cases=[case for case in self.cases if case.held_out == held_out])


def save_results(path: Path, result: ModelResult) -> None:
    """Write one model's results as JSON."""
    atomic_write_json(
        path,
        {
            "format": _FORMAT,
            "name": result.name,
            "label": result.label,
            "meta": result.meta,
            "cases": [_case_to_json(case) for case in result.cases],
        },
    )


def load_results(path: Path) -> ModelResult:
    """The inverse of `save_results`.

    Raises:
        UserError: the file is missing or does not hold results of this version.
    """
    remedy = "run the evaluation again"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["format"] != _FORMAT:
            raise UserError(f"{path}: results in format {value['format']!r}, this version reads {_FORMAT}; {remedy}")
        cases = [_case_from_json(case) for case in value["cases"]]
        return ModelResult(value["name"], value["label"], cases, value["meta"])
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}; {remedy}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: does not hold evaluation results ({error!r}); {remedy}") from error


def _case_to_json(case: CaseResult) -> dict[str, JSON]:
    names = ("id", "kind", "skill", "held_out")
    return {name: getattr(case, name) for name in names} | {"steps": [_step_to_json(step) for step in case.steps]}


def _case_from_json(row: Mapping[str, JSON]) -> CaseResult:
    steps = tuple(_step_from_json(step) for step in row["steps"])
    return CaseResult(row["id"], row["kind"], row["skill"], steps, row["held_out"])


def _step_to_json(step: StepResult) -> dict[str, JSON]:
    calls = [{"name": _ascii(call.name), "arguments": json.dumps(dict(call.arguments))} for call in step.calls]
    return {**_fields(step), "score": asdict(step.score), "calls": calls}


def _step_from_json(row: Mapping[str, JSON]) -> StepResult:
    calls = tuple(ToolCall(json.loads(call["name"]), json.loads(call["arguments"])) for call in row["calls"])
    return StepResult(**{**row, "score": StepScore(**row["score"]), "calls": calls})


def _fields(step: StepResult) -> dict[str, JSON]:
    names = ("expected", "expected_tool", "raw", "called", "finish_reason", "seconds")
    return {name: getattr(step, name) for name in names}


def _ascii(text: str) -> str:
    """JSON text of a string that may hold anything a model can write, half surrogate pairs included."""
    return json.dumps(text)
