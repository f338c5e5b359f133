"""SKILL.md as AI Edge Gallery reads it, and how its prompt lists skills.

The app does not use YAML: it splits the text on `---` and reads line prefixes. Required are `name:` and
`description:`, one line each, before `metadata:`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Skill:
    """One skill: what is listed in the prompt, and the instructions that `load_skill` answers with."""

    name: str
    description: str
    body: str

    @classmethod
    def parse(cls, text: str) -> Skill:
        """Read a SKILL.md.

        Raises:
            ValueError: no `---` header, or a missing `name:` or `description:` line.
        """
        parts = text.lstrip("\ufeff").split("---", 2)
        if len(parts) != 3 or parts[0].strip():
            raise ValueError("SKILL.md must begin with a header between two lines '---'")
        fields: dict[str, str] = {}
        for line in parts[1].replace("\r", "").split("\n"):
            key, colon, value = line.strip().partition(":")
            if key == "metadata":
                break
            if colon and key in ("name", "description"):
                fields.setdefault(key, value.strip())
        for key in ("name", "description"):
            if not fields.get(key):
                raise ValueError(f"SKILL.md header needs a line '{key}: …'")
        return cls(fields["name"], fields["description"], parts[2].strip())

    def to_text(self) -> str:
        """A SKILL.md that `parse` reads as this skill.

        Raises:
            ValueError: the app's format cannot hold it: a line break or `---` in the header, or an empty field.
        """
        text = f"---\nname: {self.name}\ndescription: {self.description}\n---\n\n{self.body}\n"
        try:
            same = Skill.parse(text) == self
        except ValueError:
            same = False
        if not same:
            raise ValueError(f"skill {self.name!r}: its name or description cannot stand in the header of a SKILL.md")
        return text

    def listing(self) -> str:
        """The two lines that the app's system prompt shows."""
        return f'- Skill name: "{self.name}"\n- Description: {self.description}'

    def load_result(self) -> dict[str, str]:
        """What the app's `load_skill` answers."""
        instructions = f"---\nname: {self.name}\ndescription: {self.description}\n---\n\n{self.body}"
        return {"skill_name": self.name, "skill_instructions": instructions}


def list_skills(skills: Iterable[Skill]) -> str:
    """Skills as the prompt's `___SKILLS___` shows them, a blank line between two."""
    return "\n\n".join(skill.listing() for skill in skills)
