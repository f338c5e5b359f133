"""Files that a user hands in: tools and system prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from core.errors import UserError
from hermes import Skill, Tool, list_skills
from hermes.validation import check_schema

SKILLS_PLACE = "___SKILLS___"
"""What AI Edge Gallery's prompts hold where the skills are listed."""

TOOLS_PLACE = "___TOOLS___"
"""What they hold where MCP tools are listed."""

_LONGEST_PROMPT = 50_000
"""Characters; more than any context that a phone has."""


def skill_key(name: str) -> str:
    """What tells skills apart: names that differ in case alone, or in space, `_` and `-`, have the same."""
    return name.strip().casefold().replace("_", "-").replace(" ", "-")


def read_tools(path: Path) -> tuple[Tool, ...]:
    """The tools of a JSON file: a list of declarations, bare or in OpenAI shape.

    Raises:
        UserError: the file cannot be read, or a declaration is wrong; all problems are listed.
    """
    try:
        values = json.loads(_read(path))
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    if not isinstance(values, list) or not values:
        raise UserError(f"{path}: must be a JSON list of at least one tool")
    tools: list[Tool] = []
    problems: list[str] = []
    for index, value in enumerate(values):
        try:
            tools.append(Tool.from_any(value))
            problems += [f"[{index}] {problem}" for problem in check_schema(tools[-1])]
        except ValueError as error:
            problems.append(f"[{index}] {error}")
    names = [tool.name for tool in tools]
    problems += [f"the name {name!r} stands twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if problems:
        raise UserError(f"{path}: {len(problems)} problem(s):\n  " + "\n  ".join(problems))
    return tuple(tools)


def read_system(path: Path, skills: Sequence[Skill]) -> str:
    """The text of a system prompt file, skills listed where it says `___SKILLS___`, if it does.

    Raises:
        UserError: the file cannot be read.
    """
    return _read(path).strip().replace(SKILLS_PLACE, list_skills(skills))


def read_prompt(path: Path) -> str:
    """The text of a system prompt file that says where skills are listed, for many lists of skills.

    Raises:
        UserError: the file cannot be read, is very long, or has no such place, or one for MCP tools.
    """
    text = _read(path).strip()
    if len(text) > _LONGEST_PROMPT:
        raise UserError(f"{path}: {len(text)} characters are too long for a system prompt; at most {_LONGEST_PROMPT}")
    if text.count(SKILLS_PLACE) != 1:
        raise UserError(f"{path}: {SKILLS_PLACE} must stand once, where the skills are to be listed")
    if TOOLS_PLACE in text:
        raise UserError(f"{path}: has {TOOLS_PLACE}, a prompt for MCP tools; conversations are made for skills only")
    return text


def _read(path: Path) -> str:
    try:
        # With or without a byte order mark.
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
