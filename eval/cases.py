"""Requests of a user's own, or of others, with the calls they need: for skills that no data set has.

A file of cases is a YAML list (`gallery_cases.yaml` is one):

    - skill: qr-code
      request: Make a QR code for https://example.org
      run: {tool: run_js, script: index.html, data: {url: https://example.org}}
    - skill: send-sms
      request: Text 555 0100 that I am late
      run: {tool: run_intent, intent: send_sms, data: {phone_number: 555 0100, sms_body: I am late}}
    - {skill: story-teller, request: Tell me a story, run: null}
    - {skill: null, request: Sing for me}

`run` is the first call after `load_skill`, null where the skill only tells the model what to say; `skill: null`
is a request that no skill serves. `script` is `index.html` if not given. Without `data` a script is passed nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from core.errors import UserError
from core.files import file_hash
from core.recipe_file import parse_yaml
from core.stages import Run
from core.user_files import SKILLS_PLACE, read_system
from data.skill_library import read_skills, system_prompt
from eval.suite import Suite
from hermes import Conversation, Message, Skill, ToolCall, dumps, list_skills, validate_conversation
from hermes.gallery_tools import GALLERY_TOOLS, NO_SKILL_ANSWER

_Text: TypeAlias = Annotated[str, Field(min_length=1)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RunScript(_Entry):
    """A call of `run_js`."""

    tool: Literal["run_js"]
    script: _Text = "index.html"
    data: dict[str, JsonValue] | None = None

    def call(self, skill: str) -> ToolCall:
        """The call, as the phone takes it."""
        data = "" if self.data is None else dumps(self.data)
        return ToolCall("run_js", {"skill_name": skill, "script_name": self.script, "data": data})


class RunIntent(_Entry):
    """A call of `run_intent`."""

    tool: Literal["run_intent"]
    intent: _Text
    data: dict[str, JsonValue] = {}

    def call(self, _: str) -> ToolCall:
        """The call, as the phone takes it."""
        return ToolCall("run_intent", {"intent": self.intent, "parameters": dumps(self.data)})


class Case(_Entry):
    """One request, and what a model should do about it."""

    skill: _Text | None
    request: _Text
    run: Annotated[RunScript | RunIntent, Field(discriminator="tool")] | None = None

    @model_validator(mode="after")
    def _check_run(self) -> Self:
        if self.skill is None and self.run is not None:
            raise ValueError("run: no skill fits, so there is nothing to run")
        if self.skill is not None and "run" not in self.model_fields_set:
            raise ValueError("run: missing; say null if the skill needs no call")
        return self


_CASE: TypeAdapter[Case] = TypeAdapter(Case)
_TOOL = "tool must be run_js or run_intent"
_WORDS = {
    "extra_forbidden": "unknown key",
    "missing": "missing",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "union_tag_invalid": _TOOL,
    "union_tag_not_found": _TOOL,
}
"""Kinds of problems that pydantic describes in its own terms."""


def cases_suite(run: Run, cases: Path, skills_folder: Path, system_file: Path | None = None) -> Suite:
    """The conversations of a file of cases, each with all skills of a folder on offer.

    Raises:
        UserError: a file cannot be read, or has problems; all are named.
    """
    skills = read_skills(skills_folder)
    system = read_system(system_file, skills) if system_file else system_prompt(skills)
    if list_skills(skills) not in system:
        raise UserError(f"{system_file}: {SKILLS_PLACE} must stand where the skills are to be listed; none is offered")
    conversations = read_cases(cases, skills, system)
    return Suite(
        title=f"{len(conversations)} cases of {cases.name}",
        folder=run.evaluation_cases,
        conversations=conversations,
        facts={
            "cases": {"file": cases.name, "sha256": file_hash(cases)},
            "skills": [skill.name for skill in skills],
            "system prompt": system_file.name if system_file else "the project's own",
        },
    )


def read_cases(path: Path, skills: Sequence[Skill], system: str) -> list[Conversation]:
    """The conversations of a file of cases, under one system prompt.

    Raises:
        UserError: the file cannot be read, or has problems; all are named, each with its entry, counted from 1.
    """
    try:
        entries = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{path}: must be a YAML list of at least one case; eval/gallery_cases.yaml is an example")
    by_name = {skill.name: skill for skill in skills}
    conversations: list[Conversation] = []
    problems: list[str] = []
    for number, entry in enumerate(entries, start=1):
        try:
            case = _CASE.validate_python(entry)
        except (ValidationError, RecursionError) as error:
            problems += [f"entry {number}: {problem}" for problem in _problems(error)]
            continue
        if case.skill is not None and case.skill not in by_name:
            problems.append(f"entry {number}: skill: {_unknown(case.skill, by_name)}")
            continue
        conversation = _conversation(case, f"{path.stem}/{number:03d}", by_name, system)
        problems += [f"entry {number}: {problem}" for problem in validate_conversation(conversation)]
        conversations.append(conversation)
    if problems:
        raise UserError(f"{path}: {len(problems)} problem(s):\n  " + "\n  ".join(problems))
    return conversations


def _conversation(case: Case, identity: str, skills: dict[str, Skill], system: str) -> Conversation:
    messages = [Message("system", system), Message("user", case.request)]
    if case.skill is None:
        messages.append(Message("assistant", NO_SKILL_ANSWER))
    else:
        messages.append(Message("assistant", calls=(ToolCall("load_skill", {"skill_name": case.skill}),)))
    if case.skill is not None and case.run is not None:
        messages.append(Message("tool", skills[case.skill].load_result(), name="load_skill"))
        messages.append(Message("assistant", calls=(case.run.call(case.skill),)))
    return Conversation(tuple(messages), GALLERY_TOOLS, identity, notes={"skill": case.skill})


def _problems(error: ValidationError | RecursionError) -> Iterator[str]:
    if isinstance(error, RecursionError):
        yield "nested too deeply"
        return
    for problem in error.errors():
        # The tool that tells the kinds of `run` apart is in the path, but not in the file.
        path = ".".join(str(part) for part in problem["loc"] if part not in ("run_js", "run_intent"))
        words = _WORDS.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
        yield ": ".join(filter(None, (path, words)))


def _unknown(name: str, known: dict[str, Skill]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"there is no skill {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}")
