"""The skills that ship with the project, and the system prompt that offers them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from core.console import console
from core.errors import UserError
from core.user_files import SKILLS_PLACE, skill_key
from data import prompts
from hermes import Skill, list_skills

SKILLS_FOLDER = Path(__file__).parent / "skills"
"""The skills that ship, each in a folder of its name."""


def read_skill(folder: Path) -> Skill:
    """The skill whose SKILL.md is in `folder`.

    Raises:
        UserError: the file is missing, is not as the app reads it, or names another folder.
    """
    path = folder / "SKILL.md"
    try:
        skill = Skill.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None
    if skill.name != folder.name:
        raise UserError(f"{path}: 'name: {skill.name}' must equal the folder's name, {folder.name!r}")
    return skill


def read_skills(folder: Path) -> tuple[Skill, ...]:
    """Every skill in `folder`, by the name of its own folder.

    Raises:
        UserError: there is none, one cannot be read, or two have names that the app takes for the same.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; it should hold skills, each a folder with a SKILL.md")
    skills = tuple(read_skill(path.parent) for path in sorted(folder.glob("*/SKILL.md")))
    if not skills:
        raise UserError(f"{folder}: no skill here; a skill is a folder with a SKILL.md")
    first: dict[str, str] = {}
    for skill in skills:
        other = first.setdefault(skill_key(skill.name), skill.name)
        if other != skill.name:
            raise UserError(f"{folder}: {other!r} and {skill.name!r} are one name to the app; rename a skill")
    for each in sorted(folder.iterdir()):
        if each.is_dir() and not each.name.startswith((".", "_")) and not (each / "SKILL.md").is_file():
            console().print(f"{each}: no skill, since it has no SKILL.md; it is left out")
    return skills


@cache
def shipped_skills() -> tuple[Skill, ...]:
    """The skills of `data/skills`, by name."""
    return read_skills(SKILLS_FOLDER)


def shipped_skill(name: str) -> Skill:
    """The skill of `data/skills` with this name, which must be there."""
    return next(skill for skill in shipped_skills() if skill.name == name)


def system_prompt(skills: Sequence[Skill]) -> str:
    """The system text that offers `skills`, in the given order."""
    return prompts.DEFAULT.replace(SKILLS_PLACE, list_skills(skills))
