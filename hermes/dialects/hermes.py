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

from collections.abc import Iterator
from functools import lru_cache

from hermes.control import (
    IM_END,
    IM_START,
    TOOL_CALL_END,
    TOOL_CALL_START,
    TOOL_RESPONSE_END,
    TOOL_RESPONSE_START,
    escape_in_json,
    neutralise,
)
from hermes.dialects.base import Same
from hermes.dialects.chatml import CONTENT_MACROS, ESCAPE, NEUTRALISE, jinja_string, result_text
from hermes.dialects.tagged_stream import TaggedReading
from hermes.record import (
    Conversation,
    Message,
    Segment,
    Tool,
    ToolCall,
    dumps,
)
from hermes.syntax import HERMES

DEFAULT_SYSTEM_PROMPT = (
    "You are Hermes, a helpful on-device AI agent. You can call tools when they help answer the user. "
    "To call a tool, respond ONLY with a <tool_call> block containing JSON: "
    '{"name": <tool_name>, "arguments": <json_args>}. '
    "After receiving a <tool_response>, use it to answer the user."
)
TOOLS_HEADER = "You have access to the following tools:"


class HermesDialect(TaggedReading):
    """Renderer, template and parser of the `hermes` dialect."""

    name = "hermes"
    syntax = HERMES
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
            system += _announced(Same(conversation.tools))
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
            result = neutralise(result_text(message.content))
            yield Segment(f"{header}{TOOL_RESPONSE_START}\n{result}\n{TOOL_RESPONSE_END}{IM_END}", False)
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


@lru_cache(maxsize=256)
def _announced(tools: Same[tuple[Tool, ...]]) -> str:
    """How the system turn goes on: conversations mostly come in thousands with the same tools."""
    lines = [TOOLS_HEADER, *(neutralise(dumps(tool.to_function())) for tool in tools.value)]
    return "\n\n" + "\n".join(lines)


_TEMPLATE = (
    CONTENT_MACROS + "{%- set has_system = messages and messages[0].role == 'system' -%}"
    f"{{{{- '{IM_START}system\\n' -}}}}"
    "{%- if has_system -%}"
    f"{{{{- text_of(messages[0].content){NEUTRALISE} -}}}}"
    "{%- else -%}"
    f"{{{{- {jinja_string(DEFAULT_SYSTEM_PROMPT)} -}}}}"
    "{%- endif -%}"
    "{%- if tools -%}"
    f"{{{{- '\\n\\n{TOOLS_HEADER}' -}}}}"
    "{%- for tool in tools -%}"
    "{%- if tool.function is defined -%}"
    f"{{{{- '\\n' + (tool.function | tojson{NEUTRALISE}) -}}}}"
    "{%- else -%}"
    f"{{{{- '\\n' + (tool | tojson{NEUTRALISE}) -}}}}"
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
    f"{{{{- '{TOOL_CALL_START}{{\"name\": ' + (call.name | tojson{ESCAPE}) + ', \"arguments\": ' -}}}}"
    f"{{{{- arguments_text(call){ESCAPE} -}}}}"
    f"{{{{- '}}{TOOL_CALL_END}' -}}}}"
    "{%- endfor -%}"
    "{%- endif -%}"
    "{%- elif message.role == 'tool' -%}"
    f"{{{{- '{TOOL_RESPONSE_START}\\n' + (result_text(message.content){NEUTRALISE}) + '\\n{TOOL_RESPONSE_END}' -}}}}"
    "{%- else -%}"
    f"{{{{- text_of(message.content){NEUTRALISE} -}}}}"
    "{%- endif -%}"
    f"{{{{- '{IM_END}' -}}}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    f"{{%- if add_generation_prompt -%}}{{{{- '\\n{IM_START}assistant\\n' -}}}}{{%- endif -%}}"
)
