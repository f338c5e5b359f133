"""What the trained tokens are: how much of the loss goes to marks, names, keys, values, text and the end of a turn.

A set in which one of them never occurs teaches nothing about it, and it shows only once the model is on the phone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hermes import Conversation, Dialect, Segment, text_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Kind = Literal["text", "mark", "structure", "name", "key", "value", "stop"]
KINDS: tuple[Kind, ...] = ("text", "mark", "structure", "name", "key", "value", "stop")
CALL_KINDS: tuple[Kind, ...] = ("mark", "structure", "name", "key", "value")

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"{}\[\],:]+')
_COLON = re.compile(r"\s*:")


@dataclass(frozen=True)
class Span:
    """A piece of a rendered conversation; `kind` is None where nothing is trained."""

    start: int
    end: int
    kind: Kind | None


def spans(segments: Sequence[Segment], dialect: Dialect) -> Iterator[Span]:
    """The pieces of a rendering, in order, without gaps."""
    position = 0
    for segment in segments:
        if not segment.trained:
            yield Span(position, position + len(segment.text), None)
        else:
            for start, end, kind in _trained(segment.text, dialect):
                yield Span(position + start, position + end, kind)
        position += len(segment.text)


def _trained(text: str, dialect: Dialect) -> Iterator[tuple[int, int, Kind]]:
    opening, closing = dialect.sentinels
    stop = len(text) - len(dialect.stop) if text.endswith(dialect.stop) else len(text)
    position = 0
    while opening and (start := text.find(opening, position, stop)) != -1:
        body = start + len(opening)
        end = text.find(closing, body, stop)
        end = stop if end == -1 else end
        if start > position:
            yield position, start, "text"
        yield start, body, "mark"
        yield from ((body + first, body + last, kind) for first, last, kind in _call(text[body:end], dialect))
        position = min(end + len(closing), stop)
        yield end, position, "mark"
    if position < stop:
        yield position, stop, "text"
    if stop < len(text):
        yield stop, len(text), "stop"


def _call(body: str, dialect: Dialect) -> Iterator[tuple[int, int, Kind]]:
    """The pieces of a call's object: the tool's name, keys, values, and what stands between them."""
    position, key = 0, ""
    for match in _TOKEN.finditer(body):
        if match.start() > position:
            yield position, match.start(), "structure"
        if _COLON.match(body, match.end()):
            key = match[0][1:-1]
            yield match.start(), match.end(), "key"
        else:
            yield match.start(), match.end(), "name" if key == dialect.syntax.name_key else "value"
            key = ""
        position = match.end()
    if position < len(body):
        yield position, len(body), "structure"


def token_kinds(
    conversation: Conversation, dialect: Dialect, tokenizer: PreTrainedTokenizerFast
) -> Iterator[tuple[str, Kind | None]]:
    """Each token's text and what it is trained as; a token belongs where its first character does."""
    segments = dialect.render(conversation)
    text = text_of(segments)
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    pieces = list(spans(segments, dialect))
    current = 0
    for start, end in offsets:
        while start >= pieces[current].end and current + 1 < len(pieces):
            current += 1
        yield text[start:end], pieces[current].kind


def audit(
    conversations: Iterable[Conversation], dialect: Dialect, tokenizer: PreTrainedTokenizerFast
) -> dict[Kind, int]:
    """How many trained tokens are of which kind.

    Raises:
        ValueError: a turn's end is never trained, or there are calls and a kind of their tokens is never trained.
    """
    counts: Counter[Kind] = Counter()
    called = False
    for conversation in conversations:
        called = called or any(message.calls for message in conversation.messages)
        counts.update(kind for _, kind in token_kinds(conversation, dialect, tokenizer) if kind is not None)
    needed: tuple[Kind, ...] = ("stop", *(CALL_KINDS if called and dialect.sentinels[0] else ()))
    missing = [kind for kind in needed if not counts[kind]]
    if missing:
        raise ValueError(
            f"no {' and no '.join(missing)} token is trained, so the model would not learn to write one; "
            "look at `hermes-edge data show`"
        )
    return {kind: counts[kind] for kind in KINDS}
