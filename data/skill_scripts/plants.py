"""The skill `plant-care`, which has no script: its table is in its SKILL.md."""

from __future__ import annotations

import re
from functools import cache

from data.skill_library import SKILLS_FOLDER, read_skill


@cache
def plant_care() -> dict[str, str]:
    """Each plant's advice, such as `water every 3 weeks, full sun`, in the order of the SKILL.md."""
    body = read_skill(SKILLS_FOLDER / "plant-care").body
    return dict(re.findall(r"^- ([a-z ]+): (.+)$", body, flags=re.MULTILINE))


def plant_answer(plant: str) -> str:
    """The sentence that the skill answers with.

    Raises:
        KeyError: the list has no such plant.
    """
    return f"{plant[:1].upper()}{plant[1:]}: {plant_care()[plant]}."
