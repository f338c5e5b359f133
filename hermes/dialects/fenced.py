"""The `fenced` dialect: every reply is exactly one fenced json block, a call or the final answer.

<|im_start|>system
…contract…

# TOOLS

## name
description
arguments schema:
{…}

# SYSTEM
…system text…<|im_end|>
<|im_start|>user
…<|im_end|>
<|im_start|>assistant
```json
{"tool": "…", "arguments": {…}}
```<|im_end|>
<|im_start|>user
TOOL RESULT [1]
…<|im_end|>
<|im_start|>assistant
```json
{"tool": "final", "text": "…"}
```<|im_end|>
"""

from __future__ import annotations

from collections.abc import Iterable

from hermes.control import IM_END, IM_START, escape_in_json, neutralise
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
from hermes.dialects.fenced_reading import FINAL, FINAL_TEXT, SYNTAX, read_fenced
from hermes.dialects.whole_stream import StringTeller, WholeStream
from hermes.record import JSON, Conversation, Malformed, Message, Reply, Segment, Tool, dumps

CONTRACT = """\
You decide what a program does next. No person reads your replies: each one is read by the program.

Reply with EXACTLY ONE fenced json block. Write nothing before it, nothing after it, and never a second block.

To call a tool:

```json
{"tool": "<tool name>", "arguments": {}}
```

To answer, when no tool is needed:

```json
{"tool": "final", "text": "<answer>"}
```

The result of a call comes back under the heading `TOOL RESULT [number]`. Never make up a result. Never call a tool \
that is not listed below.

# TOOLS"""
NO_TOOLS = "(no tools available — answer with the final block)"
ONE_BLOCK = "a reply of the fenced dialect is one block, a call or an answer"
RESERVED = f"the fenced dialect has its own {FINAL!r} tool, so that no other can have that name"
WRITTEN = f'{SYNTAX.opening}{{"tool": '
"""What a block begins with. Text that does is kept: a runtime that reads no calls hands back what the model wrote."""


class FencedDialect:
    """Renderer, template and parser of the `fenced` dialect."""

    name = "fenced"
    syntax = SYNTAX
    sentinels = (SYNTAX.opening, SYNTAX.closing)
    stop = IM_END

    def render(self, conversation: Conversation, add_generation_prompt: bool = False) -> list[Segment]:
        """Segments of the whole conversation; assistant turns and their `<|im_end|>` are trained.

        Raises:
            ValueError: an assistant turn is more than one block, or a tool has the name of the answer's block.
        """
        system, messages = split_system(conversation.messages)
        parts = [CONTRACT, *(map(_announce, conversation.tools) if conversation.tools else [NO_TOOLS])]
        if system:
            parts.append("# SYSTEM\n" + system)
        turns = [("system", neutralise("\n\n".join(parts)))]
        results = 0
        for message in messages:
            results += message.role == "tool"
            turns.append(self._turn(message, results))
        return render_turns(turns, add_generation_prompt)

    def _turn(self, message: Message, results: int) -> tuple[str, str]:
        if message.role == "assistant":
            return "assistant", self.format_reply(message)
        if message.role == "tool":
            return "user", f"TOOL RESULT [{results}]\n{neutralise(result_text(message.content))}"
        return message.role, neutralise(message.content)

    def format_reply(self, message: Message) -> str:
        """An assistant turn's own text: its call, or its text as the final answer, in a block.

        Raises:
            ValueError: it has both, or several calls, or calls a tool that has the name of the answer's block.
        """
        if not message.calls and message.content.startswith(WRITTEN):
            return str(message.content)
        value: dict[str, JSON] = {"tool": FINAL, "text": message.content}
        if message.calls:
            if message.content or len(message.calls) > 1:
                raise ValueError(f"{ONE_BLOCK}: not {len(message.calls)} calls{' and text' * bool(message.content)}")
            (call,) = message.calls
            if call.name == FINAL:
                raise ValueError(RESERVED)
            value = {"tool": call.name, "arguments": dict(call.arguments)}
        return SYNTAX.opening + escape_in_json(dumps(value)) + SYNTAX.closing

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
        """Read a reply. `tools` decide nothing: validation names unknown ones."""
        return read_fenced(text, policy, finish_reason)

    def stream_parser(self, tools: Iterable[Tool] = (), policy: Policy = "strict") -> StreamParser:
        """A parser for one reply that comes in chunks; of these, only a final answer is told before the end."""
        return WholeStream(lambda text, reason: read_fenced(text, policy, reason), StringTeller(FINAL_TEXT))

    def correction_prompt(self, malformed: Malformed) -> str:
        """What to tell the model, as the user."""
        return (
            f"Your last reply broke the protocol: {malformed.reason}.\n"
            "Send the same answer again as EXACTLY ONE fenced json block and nothing else: "
            'either {"tool": "<name>", "arguments": {}} or {"tool": "final", "text": "<answer>"}.'
        )


def _announce(tool: Tool) -> str:
    if tool.name == FINAL:
        raise ValueError(RESERVED)
    lines = ["## " + tool.name, tool.description, "arguments schema:", dumps(dict(tool.parameters))]
    return "\n".join(filter(None, lines))


def _jinja_quote(text: str) -> str:
    return jinja_string(text).join(("{{- ", " -}}"))


_TEMPLATE = (
    CONTENT_MACROS + "{%- macro announcement(tool) -%}"
    f"{{%- if tool.name == '{FINAL}' -%}}{{{{ raise_exception({jinja_string(RESERVED)}) }}}}{{%- endif -%}}"
    "{{- '## ' + tool.name + '\\n' + (tool.description + '\\n' if tool.description else '') -}}"
    "{{- 'arguments schema:\\n' -}}"
    "{%- if tool.parameters is mapping -%}{{ tool.parameters | tojson }}"
    '{%- else -%}{{ \'{"type": "object", "properties": {}}\' }}'
    "{%- endif -%}"
    "{%- endmacro -%}"
    "{%- macro system_text(tools, said) -%}" + _jinja_quote(CONTRACT) + "{%- for tool in tools or [] -%}"
    "{{- '\\n\\n' + announcement(tool.function if tool.function is defined else tool) -}}"
    "{%- endfor -%}"
    "{%- if not tools -%}" + _jinja_quote("\n\n" + NO_TOOLS) + "{%- endif -%}"
    "{%- if said -%}{{- '\\n\\n# SYSTEM\\n' + said -}}{%- endif -%}"
    "{%- endmacro -%}"
    "{%- macro reply_text(message) -%}"
    "{%- set said = text_of(message.content) -%}"
    "{%- if message.tool_calls -%}"
    f"{{%- if said or message.tool_calls | length > 1 -%}}{{{{ raise_exception({jinja_string(ONE_BLOCK)}) }}}}"
    "{%- endif -%}"
    "{%- set call = message.tool_calls[0].function if message.tool_calls[0].function is defined"
    " else message.tool_calls[0] -%}"
    f"{{%- if call.name == '{FINAL}' -%}}{{{{ raise_exception({jinja_string(RESERVED)}) }}}}{{%- endif -%}}"
    f"{{{{- {jinja_string(WRITTEN)} + (call.name | tojson{ESCAPE}) + ', \"arguments\": ' -}}}}"
    f"{{{{- arguments_text(call){ESCAPE} -}}}}"
    + _jinja_quote("}" + SYNTAX.closing)
    + f"{{%- elif said[:{len(WRITTEN)}] == {jinja_string(WRITTEN)} -%}}{{{{- said -}}}}"
    "{%- else -%}"
    + _jinja_quote(WRITTEN + dumps(FINAL) + ', "text": ')
    + f"{{{{- said | tojson{ESCAPE} -}}}}"
    + _jinja_quote("}" + SYNTAX.closing)
    + "{%- endif -%}"
    "{%- endmacro -%}"
    # The results up to this one, as many characters.
    "{%- macro counted(messages, index) -%}"
    "{%- for message in messages -%}"
    "{%- if message.role == 'tool' and loop.index0 <= index -%}x{%- endif -%}"
    "{%- endfor -%}"
    "{%- endmacro -%}"
    "{%- macro result_turn(message, messages, index) -%}"
    "{{- 'TOOL RESULT [' -}}{{- counted(messages, index) | length -}}{{- ']\\n' -}}"
    f"{{{{- result_text(message.content){NEUTRALISE} -}}}}"
    "{%- endmacro -%}"
    "{%- set has_system = true -%}"
    "{%- set given = messages and messages[0].role == 'system' -%}"
    f"{{{{- '{IM_START}system\\n' -}}}}"
    f"{{{{- system_text(tools, text_of(messages[0].content) if given else ''){NEUTRALISE} -}}}}"
    f"{{{{- '{IM_END}' -}}}}" + TURNS
)
