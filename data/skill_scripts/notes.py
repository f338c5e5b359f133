"""The skill `note-keeper`, and the notes that it keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from data.skill_scripts.fields import SPACE, parse, text_of, whole_within
from data.skill_scripts.texts import amount

_LARGEST_ID = 999_999
_BREAKS = re.compile("[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")


@dataclass
class Notes:
    """What the phone keeps between two calls."""

    texts: MutableMapping[int, str] = field(default_factory=dict)
    """Each note's text by its id."""
    next_id: int = 1
    """The next note's id; that of a deleted note is never given again."""


def note_keeper(data: str, notes: Notes) -> str:
    """What the action of `data` answers; adding and deleting change `notes`.

    Raises:
        ValueError: the error that the script gives.
    """
    fields = parse(data)
    action = text_of(fields, "action")
    if action == "add":
        return _add(_filled(fields), notes)
    if action == "find":
        return _find(_filled(fields), notes)
    if action == "list":
        # The semicolon is the list's own, so that no note looks like two.
        listed = "; ".join(f"{number}: {text.replace(';', ',')}" for number, text in sorted(notes.texts.items()))
        return amount(len(notes.texts), "note") + (f": {listed}" if listed else "")
    if action == "delete":
        return _delete(whole_within(fields, "id", 1, _LARGEST_ID), notes)
    raise ValueError(f"unknown action: {action}")


def _filled(fields: Mapping[str, Any]) -> str:
    """The text in one line, so that no note looks like two where notes stand one a line."""
    text = _BREAKS.sub(" ", text_of(fields, "text")).strip(SPACE)
    if not text:
        raise ValueError("text is empty")
    return text


def _add(text: str, notes: Notes) -> str:
    number = notes.next_id
    notes.texts[number] = text
    notes.next_id += 1
    return f"Note {number} saved."


def _find(text: str, notes: Notes) -> str:
    words = re.split(f"[{SPACE}]+", text.lower())
    found = [
        f"Note {number}: {kept}"
        for number, kept in sorted(notes.texts.items())
        if all(word in kept.lower() for word in words)
    ]
    if not found:
        raise ValueError(f"no note has: {text}")
    return "\n".join(found)


def _delete(number: int, notes: Notes) -> str:
    if number not in notes.texts:
        raise ValueError(f"there is no note {number}")
    del notes.texts[number]
    return f"Note {number} deleted."
