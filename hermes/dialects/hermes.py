"""The `hermes` dialect: ChatML turns, calls as JSON between `<tool_call>` and `</tool_call>`.

<|im_start|>system
…system text…

You have access to the following tools:
{"name": "…", "description": "…", "parameters": {…}}<|im_end|>
<|im_start|>user
…<|im_end|>
<|im_start|>assistant
<tool_call>{"name": "…", "arguments": {…}}</tool_call><|im_end|>
<|im_start|>tool
<tool_response>
…
</tool_response><|im_end|>
<|im_start|>assistant
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes.control import (
    IM_END,
    IM_START,
    JSON_ESCAPES,
    MARKERS,
    TOOL_CALL_END,
    TOOL_CALL_START,
    TOOL_RESPONSE_END,
    TOOL_RESPONSE_START,
    defuse,
    escape_in_json,
    neutralise,
)
from hermes.dialects.base import FinishReason
from hermes.record import (
    Conversation,
    Final,
    Malformed,
    Message,
    Reply,
    Segment,
    Tool,
    ToolCall,
    ToolCalls,
    dumps,
    loads,
)

DEFAULT_SYSTEM_PROMPT = (
    "You are Hermes, a helpful on-device AI agent. You can call tools when they help answer the user. "
    "To call a tool, respond ONLY with a <tool_call> block containing JSON: "
    '{"name": <tool_name>, "arguments": <json_args>}. '
    "After receiving a <tool_response>, use it to answer the user."
)
THINK_START, THINK_END = "<think>", "</think>"
TOOLS_HEADER = "You have access to the following tools:"


class HermesDialect:
    """Renderer, template and parser of the `hermes` dialect."""

    name = "hermes"
    sentinels = (TOOL_CALL_START, TOOL_CALL_END)
    stop = IM_END

    def render(self, conversation: Conversation, add_generation_prompt: bool = False) -> list[Segment]:
        """Segments of the whole conversation; assistant turns and their `<|im_end|>` are trained.

        A system message is read only in first place; without one the default prompt is used.
        """
        messages = conversation.messages
        system = DEFAULT_SYSTEM_PROMPT
        if messages and messages[0].role == "system":
            system, messages = neutralise(messages[0].content), messages[1:]
        if conversation.tools:
            lines = [TOOLS_HEADER, *(neutralise(dumps(tool.to_function())) for tool in conversation.tools)]
            system += "\n\n" + "\n".join(lines)
        segments = [Segment(f"{IM_START}system\n{system}{IM_END}", False)]
        for message in messages:
            segments.extend(self._render_turn(message))
        if add_generation_prompt:
            segments.append(Segment(f"\n{IM_START}assistant\n", False))
        return segments

    def _render_turn(self, message: Message) -> Iterator[Segment]:
        header = f"\n{IM_START}{message.role}\n"
        if message.role == "assistant":
            yield Segment(header, False)
            yield Segment(self.format_reply(message) + IM_END, True)
        elif message.role == "tool":
            content = message.content if isinstance(message.content, str) else dumps(message.content)
            yield Segment(f"{header}{TOOL_RESPONSE_START}\n{neutralise(content)}\n{TOOL_RESPONSE_END}{IM_END}", False)
        else:
            yield Segment(f"{header}{neutralise(message.content)}{IM_END}", False)

    def format_reply(self, message: Message) -> str:
        """An assistant turn's own text: its text, then its calls, one a line."""
        parts = [message.content] if message.content else []
        return "\n".join([*parts, *(self.format_call(call) for call in message.calls)])

    def format_call(self, call: ToolCall) -> str:
        """One call between its sentinels; nothing inside can close it."""
        body = escape_in_json(dumps({"name": call.name, "arguments": dict(call.arguments)}))
        return f"{TOOL_CALL_START}{body}{TOOL_CALL_END}"

    def chat_template(self) -> str:
        """The Jinja template that ships in tokenizer and bundle."""
        return _TEMPLATE

    def parse(self, text: str, tools: Iterable[Tool] = (), finish_reason: FinishReason = "stop") -> Reply:
        """Strict reading: every call must be closed and hold `{"name": …, "arguments": {…}}`.

        Calls that follow a broken one are still read; the broken ones are named in `malformed`.
        """
        reasoning, reply = _split_reasoning(text.split(IM_END, 1)[0])
        flags = ("cut",) if finish_reason == "length" else ()
        calls: list[ToolCall] = []
        problems: list[str] = []
        plain: list[str] = []
        position = 0
        while (start := reply.find(TOOL_CALL_START, position)) != -1:
            plain.append(reply[position:start])
            body_start = start + len(TOOL_CALL_START)
            end = reply.find(TOOL_CALL_END, body_start)
            if end == -1:
                problems.append("cut by the token limit" if finish_reason == "length" else "call is not closed")
                position = len(reply)
                break
            call = _read_call(reply[body_start:end])
            if isinstance(call, ToolCall):
                calls.append(call)
            else:
                problems.append(call)
            position = end + len(TOOL_CALL_END)
        plain.append(reply[position:])
        said = "".join(plain).strip()
        if calls:
            return ToolCalls(tuple(calls), said, tuple(problems), text, reasoning, flags)
        if not problems and TOOL_CALL_END in reply:
            problems.append(f"{TOOL_CALL_END} without {TOOL_CALL_START}")
        if problems:
            return Malformed("; ".join(problems), text, reasoning, flags)
        return Final(said, text, reasoning, flags)


def _split_reasoning(reply: str) -> tuple[str, str]:
    """What stands between think tags at the start of a reply, and the rest; a draft in there is no call."""
    start = reply.lstrip()
    if not start.startswith(THINK_START):
        return "", reply
    reasoning, _, rest = start[len(THINK_START) :].partition(THINK_END)
    return reasoning.strip(), rest


def _read_call(body: str) -> ToolCall | str:
    """The call in `body`, or what is wrong with it."""
    try:
        value = loads(body)
    except (ValueError, RecursionError) as error:
        return f"call is not JSON: {error}"
    if not isinstance(value, dict):
        return f"call must be a JSON object, not {type(value).__name__}"
    name, arguments = value.get("name"), value.get("arguments")
    if not isinstance(name, str) or not name:
        return "call has no 'name'"
    if not isinstance(arguments, dict):
        return f"call of {name!r} has no 'arguments' object"
    return ToolCall(name, arguments)


def _jinja_string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _jinja_replace(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f" | replace({_jinja_string(old)}, {_jinja_string(new)})" for old, new in pairs)


_NEUTRALISE = _jinja_replace((marker, defuse(marker)) for marker in MARKERS)
_ESCAPE = _jinja_replace(JSON_ESCAPES)

_TEMPLATE = (
    # Text of a message whose content is a string, a list of parts, an object, or nothing.
    "{%- macro text_of(content) -%}"
    "{%- if content is string -%}{{ content }}"
    "{%- elif content is none or content is undefined -%}"
    "{%- elif content is mapping or content is number -%}{{ content | tojson }}"
    "{%- else -%}"
    "{%- for part in content -%}"
    "{%- if part is string -%}{{ part }}"
    "{%- elif part.type == 'text' -%}{{ part.text }}"
    "{%- elif part.type == 'tool_response' -%}"
    "{%- if part.response is string -%}{{ part.response }}{%- else -%}{{ part.response | tojson }}{%- endif -%}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- endif -%}"
    "{%- endmacro -%}"
    "{%- set has_system = messages and messages[0].role == 'system' -%}"
    f"{{{{- '{IM_START}system\\n' -}}}}"
    "{%- if has_system -%}"
    f"{{{{- text_of(messages[0].content){_NEUTRALISE} -}}}}"
    "{%- else -%}"
    f"{{{{- {_jinja_string(DEFAULT_SYSTEM_PROMPT)} -}}}}"
    "{%- endif -%}"
    "{%- if tools -%}"
    f"{{{{- '\\n\\n{TOOLS_HEADER}' -}}}}"
    "{%- for tool in tools -%}"
    "{%- if tool.function is defined -%}"
    f"{{{{- '\\n' + (tool.function | tojson{_NEUTRALISE}) -}}}}"
    "{%- else -%}"
    f"{{{{- '\\n' + (tool | tojson{_NEUTRALISE}) -}}}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- endif -%}"
    f"{{{{- '{IM_END}' -}}}}"
    "{%- for message in messages -%}"
    "{%- if not (loop.first and has_system) -%}"
    f"{{{{- '\\n{IM_START}' + message.role + '\\n' -}}}}"
    "{%- if message.role == 'assistant' -%}"
    "{%- set said = text_of(message.content) -%}"
    "{{- said -}}"
    "{%- if message.tool_calls -%}"
    "{%- for item in message.tool_calls -%}"
    "{%- set call = item.function if item.function is defined else item -%}"
    "{{- '\\n' if said or not loop.first else '' -}}"
    f"{{{{- '{TOOL_CALL_START}{{\"name\": ' + (call.name | tojson{_ESCAPE}) + ', \"arguments\": ' -}}}}"
    "{%- if call.arguments is string -%}"
    f"{{{{- call.arguments{_ESCAPE} -}}}}"
    "{%- else -%}"
    f"{{{{- call.arguments | tojson{_ESCAPE} -}}}}"
    "{%- endif -%}"
    f"{{{{- '}}{TOOL_CALL_END}' -}}}}"
    "{%- endfor -%}"
    "{%- endif -%}"
    "{%- elif message.role == 'tool' -%}"
    f"{{{{- '{TOOL_RESPONSE_START}\\n' + (text_of(message.content){_NEUTRALISE}) + '\\n{TOOL_RESPONSE_END}' -}}}}"
    "{%- else -%}"
    f"{{{{- text_of(message.content){_NEUTRALISE} -}}}}"
    "{%- endif -%}"
    f"{{{{- '{IM_END}' -}}}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    f"{{%- if add_generation_prompt -%}}{{{{- '\\n{IM_START}assistant\\n' -}}}}{{%- endif -%}}"
)
