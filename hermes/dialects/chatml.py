"""What the dialects written in ChatML share: turns, the text of a result, and the same in Jinja.

The Jinja here keeps to what Jinja2 and MiniJinja both have: filters and macros, no methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from hermes.control import IM_END, IM_START, JSON_ESCAPES, MARKERS, defuse
from hermes.record import JSON, Message, Segment, dumps

Turn: TypeAlias = tuple[str, str]
"""Role and text."""


def render_turns(turns: Iterable[Turn], add_generation_prompt: bool = False) -> list[Segment]:
    """Turns joined by newlines; what the assistant says, with its `<|im_end|>`, is trained."""
    segments: list[Segment] = []
    for role, text in turns:
        header = f"{IM_START}{role}\n"
        segments.append(Segment("\n" + header if segments else header, False))
        segments.append(Segment(text + IM_END, role == "assistant"))
    if add_generation_prompt:
        header = f"{IM_START}assistant\n"
        segments.append(Segment("\n" + header if segments else header, False))
    return segments


def split_system(messages: tuple[Message, ...]) -> tuple[str | None, tuple[Message, ...]]:
    """The text of a system message in first place, None without one, and the other messages."""
    if messages and messages[0].role == "system":
        return str(messages[0].content), messages[1:]
    return None, messages


def result_text(content: JSON) -> str:
    """A tool's result as text: text parts and response parts joined, any other value that is no text as JSON."""
    if isinstance(content, list) and content and all(map(_is_part, content)):
        return "".join(part["text"] if part["type"] == "text" else _plain(part["response"]) for part in content)
    return _plain(content)


def _plain(content: JSON) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list) and content and all(map(_is_text_part, content)):
        return "".join(part["text"] for part in content)
    return dumps(content)


def _is_text_part(part: JSON) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _is_part(part: JSON) -> bool:
    is_response = isinstance(part, Mapping) and part.get("type") == "tool_response" and "response" in part
    return is_response or _is_text_part(part)


def jinja_string(text: str) -> str:
    """`text` as a Jinja literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _jinja_replace(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f" | replace({jinja_string(old)}, {jinja_string(new)})" for old, new in pairs)


NEUTRALISE = _jinja_replace((marker, defuse(marker)) for marker in MARKERS)
"""Filters that do what `hermes.control.neutralise` does."""
ESCAPE = _jinja_replace(JSON_ESCAPES)
"""Filters that do what `hermes.control.escape_in_json` does."""

CONTENT_MACROS = (
    # What in a list is no text part; nothing if all of it is.
    "{%- macro other_than_text(parts) -%}"
    "{%- for part in parts -%}"
    "{%- if not (part is mapping and part.type == 'text' and part.text is string) -%}x{%- endif -%}"
    "{%- endfor -%}"
    "{%- endmacro -%}"
    "{%- macro other_than_parts(parts) -%}"
    "{%- for part in parts -%}"
    "{%- if not (part is mapping and (part.type == 'text' and part.text is string"
    " or part.type == 'tool_response' and part.response is defined)) -%}x{%- endif -%}"
    "{%- endfor -%}"
    "{%- endmacro -%}"
    # Text of a system, user or assistant message: a string, a list of parts, an object, or nothing.
    "{%- macro text_of(content) -%}"
    "{%- if content is string -%}{{ content }}"
    "{%- elif content is none or content is undefined -%}"
    "{%- elif content is mapping or content is not iterable -%}{{ content | tojson }}"
    "{%- else -%}"
    "{%- for part in content -%}"
    "{%- if part is string -%}{{ part }}{%- elif part.type == 'text' -%}{{ part.text }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- endif -%}"
    "{%- endmacro -%}"
    "{%- macro plain(content) -%}"
    "{%- if content is string -%}{{ content }}"
    "{%- elif content is none or content is mapping or content is not iterable or not content"
    " or other_than_text(content) -%}{{ content | tojson }}"
    "{%- else -%}{%- for part in content -%}{{ part.text }}{%- endfor -%}"
    "{%- endif -%}"
    "{%- endmacro -%}"
    # Text of a tool's message, which may hold any value.
    "{%- macro result_text(content) -%}"
    "{%- if content is undefined -%}"
    "{%- elif content is string or content is none or content is mapping or content is not iterable or not content"
    " or other_than_parts(content) -%}{{ plain(content) }}"
    "{%- else -%}"
    "{%- for part in content -%}"
    "{%- if part.type == 'text' -%}{{ part.text }}{%- else -%}{{ plain(part.response) }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- endif -%}"
    "{%- endmacro -%}"
    # The arguments of a call, which may be JSON text already.
    "{%- macro arguments_text(call) -%}"
    "{%- if call.arguments is string and call.arguments -%}{{ call.arguments }}"
    "{%- elif call.arguments is mapping -%}{{ call.arguments | tojson }}"
    "{%- else -%}{}"
    "{%- endif -%}"
    "{%- endmacro -%}"
)
"""Jinja macros `text_of`, `result_text` and `arguments_text`."""

TURNS = (
    "{%- for message in messages -%}"
    "{%- if not (loop.first and message.role == 'system') -%}"
    "{{- '\\n' if has_system or not loop.first else '' -}}"
    f"{{{{- '{IM_START}' + ('user' if message.role == 'tool' else message.role) + '\\n' -}}}}"
    "{%- if message.role == 'assistant' -%}"
    "{{- reply_text(message) -}}"
    "{%- elif message.role == 'tool' -%}"
    "{{- result_turn(message, messages, loop.index0) -}}"
    "{%- else -%}"
    f"{{{{- text_of(message.content){NEUTRALISE} -}}}}"
    "{%- endif -%}"
    f"{{{{- '{IM_END}' -}}}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{- '\\n' if has_system or messages else '' -}}"
    f"{{{{- '{IM_START}assistant\\n' -}}}}"
    "{%- endif -%}"
)
"""All turns but the system turn, which `has_system` says was written. Needs the macros `reply_text(message)`
and `result_turn(message, messages, index)`."""
