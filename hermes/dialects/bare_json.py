"""The `json` dialect: a reply is prose, or one bare JSON object that is a call.

<|im_start|>system
…system text…

You may answer in prose, OR call exactly one tool by answering only JSON: {"tool": "<name>", "args": {...}}
Tools:
- name(key: type, …) — description<|im_end|>
<|im_start|>user
…<|im_end|>
<|im_start|>assistant
{"tool": "…", "args": {…}}<|im_end|>
<|im_start|>user
TOOL RESULT: …
Now answer in prose.<|im_end|>
<|im_start|>assistant
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hermes.control import IM_END, IM_START, escape_in_json, neutralise
from hermes.dialects.bare_json_reading import ONE_CALL, SYNTAX, read_bare
from hermes.dialects.base import FinishReason, Policy, StreamParser
from hermes.dialects.chatml import (
    CONTENT_MACROS,
    ESCAPE,
    NEUTRALISE,
    TURNS,
    jinja_string,
    render_turns,
    result_text,
    split_system,
)
from hermes.dialects.whole_stream import TextTeller, WholeStream
from hermes.record import JSON, Conversation, Malformed, Message, Reply, Segment, Tool, dumps

ANNOUNCEMENT = (
    'You may answer in prose, OR call exactly one tool by answering only JSON: {"tool": "<name>", "args": {...}}\n'
    "Tools:"
)
RESULT = "TOOL RESULT: "
AFTER_RESULT = "\nNow answer in prose."


class BareJsonDialect:
    """Renderer, template and parser of the `json` dialect."""

    name = "json"
    syntax = SYNTAX
    sentinels = ("", "")
    stop = IM_END

    def render(self, conversation: Conversation, add_generation_prompt: bool = False) -> list[Segment]:
        """Segments of the whole conversation; assistant turns and their `<|im_end|>` are trained.

        Raises:
            ValueError: an assistant turn holds more than prose or one call.
        """
        system, messages = split_system(conversation.messages)
        turns = []
        if system is not None or conversation.tools:
            tools = "\n".join([ANNOUNCEMENT, *map(announce, conversation.tools)]) if conversation.tools else ""
            turns.append(("system", neutralise("\n\n".join(filter(None, (system, tools))))))
        return render_turns([*turns, *map(self._turn, messages)], add_generation_prompt)

    def _turn(self, message: Message) -> tuple[str, str]:
        if message.role == "assistant":
            return "assistant", self.format_reply(message)
        if message.role == "tool":
            return "user", RESULT + neutralise(result_text(message.content)) + AFTER_RESULT
        return message.role, neutralise(message.content)

    def format_reply(self, message: Message) -> str:
        """An assistant turn's own text: its text, or its call.

        Raises:
            ValueError: it has both, or several calls.
        """
        if not message.calls:
            return str(message.content)
        if message.content or len(message.calls) > 1:
            raise ValueError(f"{ONE_CALL}: not {len(message.calls)} calls{' and text' if message.content else ''}")
        (call,) = message.calls
        return escape_in_json(dumps({SYNTAX.name_key: call.name, SYNTAX.arguments_key: dict(call.arguments)}))

    def chat_template(self) -> str:
        """The Jinja template that ships in tokenizer and bundle."""
        return _TEMPLATE

    def parse(
        self,
        text: str,
        tools: Iterable[Tool] = (),
        policy: Policy = "strict",
        finish_reason: FinishReason = "stop",
    ) -> Reply:
        """Read a reply. `tools` decide nothing: validation names unknown ones.

        Strict: a reply that begins with a brace is a call, JSON that is none, or malformed; any other is prose.
        Lenient: prose may have a call inside it, outside of code.
        """
        return read_bare(text, policy, finish_reason)

    def stream_parser(self, tools: Iterable[Tool] = (), policy: Policy = "strict") -> StreamParser:
        """A parser for one reply that comes in chunks."""
        teller = TextTeller(self.stop, "{") if policy == "strict" else TextTeller(self.stop, "{[`", held="{`")
        return WholeStream(lambda text, reason: read_bare(text, policy, reason), teller)

    def correction_prompt(self, malformed: Malformed) -> str:
        """What to tell the model, as the user."""
        return f"That call was invalid ({malformed.reason}). Answer in prose, or retry with valid JSON."


def announce(tool: Tool) -> str:
    """The line that tells of a tool."""
    properties = tool.parameters.get("properties")
    named = properties.items() if isinstance(properties, Mapping) else ()
    line = f"- {tool.name}({', '.join(f'{key}: {_type(schema)}' for key, schema in named)})"
    return f"{line} — {tool.description}" if tool.description else line


def _type(schema: JSON) -> str:
    """A property's type; without one the values it may have."""
    known = [schema.get("type"), schema.get("enum")] if isinstance(schema, Mapping) else []
    found = next((each for each in known if each is not None), "any")
    return found if isinstance(found, str) else dumps(found)


_TEMPLATE = (
    CONTENT_MACROS + "{%- macro type_of(schema) -%}"
    "{%- if schema is mapping and schema.type is string -%}{{ schema.type }}"
    "{%- elif schema is mapping and schema.type is defined and schema.type is not none -%}{{ schema.type | tojson }}"
    "{%- elif schema is mapping and schema.enum is string -%}{{ schema.enum }}"
    "{%- elif schema is mapping and schema.enum is defined and schema.enum is not none -%}{{ schema.enum | tojson }}"
    "{%- else -%}any"
    "{%- endif -%}"
    "{%- endmacro -%}"
    "{%- macro signature(parameters) -%}"
    "{%- if parameters is mapping and parameters.properties is mapping -%}"
    "{%- for key in parameters.properties -%}"
    "{{- ', ' if not loop.first else '' -}}{{- key + ': ' + type_of(parameters.properties[key]) -}}"
    "{%- endfor -%}"
    "{%- endif -%}"
    "{%- endmacro -%}"
    "{%- macro announcement(tools) -%}"
    f"{{{{- {jinja_string(ANNOUNCEMENT)} -}}}}"
    "{%- for tool in tools -%}"
    "{%- set function = tool.function if tool.function is defined else tool -%}"
    "{{- '\\n- ' + function.name + '(' + signature(function.parameters) + ')' -}}"
    "{{- ' — ' + function.description if function.description else '' -}}"
    "{%- endfor -%}"
    "{%- endmacro -%}"
    "{%- macro reply_text(message) -%}"
    "{%- set said = text_of(message.content) -%}"
    "{%- if message.tool_calls -%}"
    f"{{%- if said or message.tool_calls | length > 1 -%}}{{{{ raise_exception({jinja_string(ONE_CALL)}) }}}}"
    "{%- endif -%}"
    "{%- set call = message.tool_calls[0].function if message.tool_calls[0].function is defined"
    " else message.tool_calls[0] -%}"
    f"{{{{- '{{\"tool\": ' + (call.name | tojson{ESCAPE}) + ', \"args\": ' -}}}}"
    f"{{{{- arguments_text(call){ESCAPE} -}}}}"
    "{{- '}' -}}"
    "{%- else -%}{{- said -}}"
    "{%- endif -%}"
    "{%- endmacro -%}"
    "{%- macro result_turn(message, messages, index) -%}"
    f"{{{{- {jinja_string(RESULT)} + (result_text(message.content){NEUTRALISE})"
    f" + {jinja_string(AFTER_RESULT)} -}}}}"
    "{%- endmacro -%}"
    "{%- set given = messages and messages[0].role == 'system' -%}"
    "{%- set has_system = given or tools -%}"
    "{%- if has_system -%}"
    "{%- set said = text_of(messages[0].content) if given else '' -%}"
    f"{{{{- '{IM_START}system\\n' -}}}}"
    "{%- if tools -%}"
    f"{{{{- (said + ('\\n\\n' if said else '') + announcement(tools)){NEUTRALISE} -}}}}"
    "{%- else -%}"
    f"{{{{- said{NEUTRALISE} -}}}}"
    "{%- endif -%}"
    f"{{{{- '{IM_END}' -}}}}"
    "{%- endif -%}" + TURNS
)
