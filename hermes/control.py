"""Control text: what a prompt may not carry in from outside.

Tokenizers of transformers and of LiteRT-LM both turn a `<|im_start|>` typed by a user into the control
token. Every renderer therefore writes the markers below, where they occur in user, tool or system
text, with one space after the `<`. Inside a call's arguments, which are JSON, the same characters are
escaped, so that the value stays what it was.
"""

from __future__ import annotations

IM_START = "<|im_start|>"
IM_END = "<|im_end|>"
TOOL_CALL_START = "<tool_call>"
TOOL_CALL_END = "</tool_call>"
TOOL_RESPONSE_START = "<tool_response>"
TOOL_RESPONSE_END = "</tool_response>"

SENTINELS = (TOOL_CALL_START, TOOL_CALL_END, TOOL_RESPONSE_START, TOOL_RESPONSE_END)
"""The tags, which a vocabulary may have as single tokens."""

MARKERS: tuple[str, ...] = (
    IM_START,
    IM_END,
    "<|endoftext|>",
    *SENTINELS,
)
"""In the order in which they are replaced. No replacement makes another marker."""

JSON_ESCAPES: tuple[tuple[str, str], ...] = (
    (TOOL_CALL_END, "<\\/tool_call>"),
    (TOOL_CALL_START, "\\u003ctool_call>"),
    (IM_START, "\\u003c|im_start|>"),
    (IM_END, "\\u003c|im_end|>"),
    ("<|endoftext|>", "\\u003c|endoftext|>"),
)
"""Spellings of the same JSON inside a call. `<` occurs only inside JSON strings, so this is always legal."""


def defuse(marker: str) -> str:
    """The harmless spelling of one marker: a space after its `<`."""
    return "< " + marker[1:]


def neutralise(text: str) -> str:
    """`text` with every marker written harmlessly; other text is unchanged."""
    for marker in MARKERS:
        text = text.replace(marker, defuse(marker))
    return text


def escape_in_json(text: str) -> str:
    """JSON text of a call with markers escaped; it decodes to the same value."""
    for marker, escaped in JSON_ESCAPES:
        text = text.replace(marker, escaped)
    return text
