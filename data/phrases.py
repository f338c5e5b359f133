"""From a pattern to a request, as somebody types it.

A pattern is written in lower case and without final punctuation, with `{slots}` and `[one|or|another]`
alternatives, which may be empty and may be nested. One that ends in a question mark is a question.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from itertools import product

_OPENERS = ("", "", "", "", "please ", "hey, ", "hi, ", "ok, ", "hello! ", "quick one: ", "one thing: ", "so, ")
_REQUEST_ENDS = (".", ".", "", "", "", " please", ", please.", ", thanks", ". thank you!")
_QUESTION_ENDS = ("?", "?", "?", "", "? thanks")

_VERBS = re.compile(
    "(add|block|book|calculate|call|change|check|compose|compute|convert|correct|count|delete|deliver|dial|divide|"
    "drop|exchange|express|find|fire|get|give|have|keep|let|list|look|mail|make|measure|message|multiply|note|order|"
    "play|put|reach|read|recommend|remind|remove|rewrite|roll|run|save|say|schedule|send|set|shoot|show|sing|start|"
    "store|summarise|swap|switch|take|tally|tell|text|throw|translate|turn|wake|work|write) "
)
"""First words that can follow "please"."""

_SLOT = re.compile(r"(\{[a-z_]+\d?\})")
_OPEN_END = re.compile(r"[:.,] \{(text|sms_body|note|body)\}$")
_PIECES = re.compile(r"[\[\]|]|[^\[\]|]+")


def slots(pattern: str) -> set[str]:
    """The names of the slots in `pattern`, in whichever alternative."""
    return {slot[1:-1] for slot in _SLOT.findall(pattern)}


def expand(pattern: str, rng: random.Random) -> str:
    """`pattern` with one of each of its alternatives.

    Raises:
        ValueError: its brackets do not match.
    """
    return _choose(_parse(pattern), rng)


def expansions(pattern: str) -> Iterator[str]:
    """Every text that `expand` can give."""
    return _every(_parse(pattern))


_Choice = list["str | list[_Choice]"]
"""A sequence of texts and of lists of alternatives, each of them such a sequence."""


def _parse(pattern: str) -> _Choice:
    stack: list[list[_Choice]] = [[[]]]
    for piece in _PIECES.findall(pattern):
        if piece == "[":
            stack.append([[]])
        elif piece == "|" and len(stack) > 1:
            stack[-1].append([])
        elif piece == "]" and len(stack) > 1:
            alternatives = stack.pop()
            stack[-1][-1].append(alternatives)
        elif piece in ("]", "|"):
            raise ValueError(f"{pattern!r}: {piece!r} without a bracket")
        else:
            stack[-1][-1].append(piece)
    if len(stack) > 1:
        raise ValueError(f"{pattern!r}: a bracket is not closed")
    return stack[0][0]


def _choose(choice: _Choice, rng: random.Random) -> str:
    return "".join(part if isinstance(part, str) else _choose(rng.choice(part), rng) for part in choice)


def _every(choice: _Choice) -> Iterator[str]:
    parts = [[part] if isinstance(part, str) else [text for each in part for text in _every(each)] for part in choice]
    return ("".join(texts) for texts in product(*parts))


def phrase(core: str, values: Mapping[str, str], rng: random.Random) -> str:
    """A request: opener, `core` and closer, in some style of typing, with `values` filled in unchanged.

    Nothing follows a value that ends the core without quotes, since it would read as part of the value.
    """
    question = core.endswith("?")
    opener = rng.choice(_OPENERS)
    end = "" if _OPEN_END.search(core) else rng.choice(_QUESTION_ENDS if question else _REQUEST_ENDS)
    if opener == "please " and ("?" in core or not _VERBS.match(core)):
        opener = ""
    if "please" in core and "please" in end:
        end = "."
    pieces = _SLOT.split(opener + core.removesuffix("?") + end)
    pieces[0::2] = _typed(pieces[0::2], rng)
    return "".join(values[piece[1:-1]] if number % 2 else piece for number, piece in enumerate(pieces))


def _typed(pieces: list[str], rng: random.Random) -> list[str]:
    """The fixed text of a request as somebody types it: most with capitals, some without, a few with a slip."""
    if rng.random() < 0.1:
        pieces = _with_typo(pieces, rng)
    if rng.random() < 0.3:
        return pieces
    pieces = [re.sub(r"\bi\b", "I", piece) for piece in pieces]
    pieces = [re.sub(r"([.!?] )([a-z])", lambda match: match[1] + match[2].upper(), piece) for piece in pieces]
    pieces[0] = pieces[0][:1].upper() + pieces[0][1:]
    return pieces


def _with_typo(pieces: list[str], rng: random.Random) -> list[str]:
    """`pieces` with two letters of one longer word swapped, or one left out."""
    found = [(n, match) for n, piece in enumerate(pieces) for match in re.finditer(r"[a-z]{5,}", piece)]
    if not found:
        return pieces
    number, match = rng.choice(found)
    at = rng.randrange(match.start() + 1, match.end() - 1)
    piece = pieces[number]
    slip = piece[at + 1] + piece[at] if rng.random() < 0.5 else piece[at + 1]
    changed = piece[:at] + slip + piece[at + 2 :]
    return [*pieces[:number], changed, *pieces[number + 1 :]]
