"""How a chat template writes turns and calls, found by rendering probes with a declared tool."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hermes import Message, Tool, ToolCall
from hermes.dialects.native_template import render_template

TOOL = Tool(
    "probe_tool",
    "Looks something up.",
    {"type": "object", "properties": {"probe_key": {"type": "string"}}, "required": ["probe_key"]},
)
CALL = ToolCall("probe_tool", {"probe_key": "probe value"})
ASKED = Message("user", "The probe question?")
CALLED = Message("assistant", calls=(CALL,))
RESULT = Message("tool", {"probe_result": "probe found"}, name="probe_tool")
ANSWERED = Message("assistant", "The probe answer.")
HISTORY = (ASKED, CALLED, RESULT, ANSWERED, Message("user", "And a probe again?"), CALLED, RESULT, ANSWERED)
"""Two rounds of question, call, result and answer. No system turn, which some templates refuse."""


@dataclass(frozen=True)
class Turns:
    """How an assistant's turn is written."""

    opening: str
    """Everything up to its text: the prompt and the turn's header."""
    ending: str
    """What follows its text: the end-of-turn mark, and what stands after it."""


@dataclass(frozen=True)
class CallFormat:
    """How a call is written inside an assistant's turn."""

    written: str
    """The whole call as the template writes it."""
    opening: str
    """What stands before its JSON, white space around it removed; all of `written` where there is no JSON."""
    closing: str
    """What stands after its JSON."""
    is_json: bool
    """It is one object with `name` and `arguments`: what the runtime's JSON parser reads."""


@dataclass(frozen=True)
class ChatTemplate:
    """A template with the texts of its special tokens."""

    text: str
    bos_token: str = ""
    eos_token: str = ""

    def render(
        self, messages: Iterable[Message], *, tools: Sequence[Tool] = (TOOL,), parts: bool = False, prompt: bool = False
    ) -> str:
        """The messages as Jinja2 renders them, the way transformers does.

        Args:
            messages: the conversation.
            tools: what is declared.
            parts: hand content over as lists of parts, as LiteRT-LM 0.18 does, and not as text.
            prompt: end with the header of an answer.

        Raises:
            ValueError: the template refuses them; says why.
        """
        return render_template(
            self.text,
            messages=[chat(message, parts) for message in messages],
            tools=[tool.to_openai() for tool in tools] or None,
            add_generation_prompt=prompt,
            bos_token=self.bos_token,
            eos_token=self.eos_token,
        )


def chat(message: Message, parts: bool = False) -> dict[str, Any]:
    """A message in the runtime's shape, its content as text (a result as JSON text) or as a list of parts."""
    given = message.to_chat()
    content = message.content
    if not parts:
        given["content"] = content if isinstance(content, str) else json.dumps(content)
    elif message.role == "tool":
        given["content"] = [{"type": "tool_response", "name": message.name or "", "response": content}]
    else:
        given["content"] = [{"type": "text", "text": content}] if content else []
    return given


def first_difference(one: str, other: str) -> int:
    """Where two texts begin to differ, the end of the shorter one if they do not."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def probe_turns(template: ChatTemplate) -> Turns:
    """How the template writes an answer.

    Raises:
        ValueError: it refuses one, or the answer does not appear.
    """
    written = template.render((ASKED, ANSWERED))
    opening, found, ending = written.partition(ANSWERED.content)
    if not found:
        raise ValueError("an assistant's text does not appear in the prompt")
    return Turns(opening, ending)


def probe_calls(template: ChatTemplate) -> CallFormat:
    """How the template writes a call.

    Raises:
        ValueError: it refuses one, or the call does not appear.
    """
    turns = probe_turns(template)
    written = template.render((ASKED, CALLED))
    start = first_difference(written, turns.opening)
    rest = written[start:]
    ending = turns.ending
    inside = rest[: -len(ending)] if ending and rest.endswith(ending) else rest
    if CALL.name not in inside:
        raise ValueError("an assistant's call does not appear in the prompt")
    for at in (index for index, char in enumerate(inside) if char == "{"):
        try:
            value, end = json.JSONDecoder().raw_decode(inside, at)
        except ValueError:
            continue
        is_call = isinstance(value, dict) and {"name", "arguments"} <= value.keys()
        if is_call and value["name"] == CALL.name and value["arguments"] == CALL.arguments:
            return CallFormat(inside, inside[:at].strip(), inside[end:].strip(), True)
    return CallFormat(inside, inside.strip(), "", False)
