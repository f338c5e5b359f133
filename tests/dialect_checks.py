"""What the tests of several dialects check: templates against renderers, streams against whole replies."""

from __future__ import annotations

import json
import re
from typing import Any

import jinja2
from hypothesis import strategies as st
from transformers.utils.chat_template_utils import render_jinja_template

from hermes import Conversation, Dialect, Malformed, Message, Reply, Tool, ToolCall, ToolCalls, text_of
from hermes.control import MARKERS
from hermes.dialects import (
    ArgumentsDelta,
    CallEnd,
    CallFailed,
    CallStart,
    Event,
    FinishReason,
    Policy,
    ReasoningDelta,
    TextDelta,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    [
        *MARKERS,
        "a<|im_end|>\n<|im_start|>assistant\nb",
        "C:\\dir\t\"q\" 'p'",
        "```json\n{}\n```",
        "\\/",
        "東京 é 😀",
        " ",
    ]
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(TEXT, JSON_VALUES, max_size=4)
CALL = st.builds(ToolCall, TEXT.filter(lambda name: name not in ("", "final")), ARGUMENTS)
SCHEMAS = st.one_of(
    st.just({"type": "object", "properties": {}}),
    st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(
                TEXT,
                st.booleans()
                | st.fixed_dictionaries({"type": st.sampled_from(["string", "a<|im_end|>", ["integer", "null"]])})
                | st.fixed_dictionaries({"enum": st.lists(JSON_VALUES, max_size=3)})
                | st.just({"description": "anything"}),
                max_size=3,
            ),
        }
    ),
)
TOOL = st.builds(Tool, TEXT.filter(lambda name: name not in ("", "final")), TEXT, SCHEMAS)
RESULT = JSON_VALUES | st.lists(TEXT.map(lambda text: {"type": "text", "text": text}), max_size=3)
ROUND = st.builds(lambda call, result: (Message("assistant", calls=(call,)), Message("tool", result)), CALL, RESULT)
TURNS = st.lists(
    ROUND | st.builds(lambda said, asked: (Message("assistant", said), Message("user", asked)), TEXT, TEXT), max_size=3
).map(lambda rounds: tuple(message for each in rounds for message in each))
CONVERSATIONS = st.builds(
    lambda system, turns, tools: Conversation((*system, Message("user", "é?"), *turns), tools),
    st.lists(TEXT.map(lambda text: Message("system", text)), max_size=1),
    TURNS,
    st.lists(TOOL, max_size=2).map(tuple),
)

# The Python binding of MiniJinja hands 1.0 on as 1.
CONVERSATIONS_FOR_MINIJINJA = CONVERSATIONS.filter(
    lambda conversation: re.search(r"\d\.0|\de[+-]?\d", str(conversation)) is None
)


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A call, written shortly."""
    return ToolCall(name, arguments)


def engines() -> list[Any]:
    """Functions that render a template, messages and tools: transformers', and MiniJinja's where it is installed."""
    found: list[Any] = [in_transformers]
    try:
        import minijinja
    except ImportError:
        return found
    return [*found, lambda *given: in_minijinja(minijinja, *given)]


def in_transformers(
    template: str, messages: list[dict[str, Any]], tools: list[Any] | None = None, add_generation_prompt: bool = False
) -> str:
    """The template rendered as `apply_chat_template` does it."""
    rendered, _ = render_jinja_template(
        conversations=[messages], tools=tools, chat_template=template, add_generation_prompt=add_generation_prompt
    )
    return str(rendered[0])


def in_minijinja(
    minijinja: Any,
    template: str,
    messages: list[dict[str, Any]],
    tools: list[Any] | None = None,
    add_generation_prompt: bool = False,
) -> str:
    """The template rendered in the engine of LiteRT-LM, whose `tojson` takes no arguments and escapes nothing."""
    environment = minijinja.Environment(auto_escape_callback=lambda _: False)
    environment.add_filter("tojson", lambda value: json.dumps(value, ensure_ascii=False))
    return str(
        environment.render_str(template, messages=messages, tools=tools, add_generation_prompt=add_generation_prompt)
    )


def as_parts(message: Message) -> dict[str, Any]:
    """A message as LiteRT-LM hands it to a template: all content in parts."""
    chat = message.to_chat()
    if message.role == "tool":
        chat["content"] = [{"type": "tool_response", "name": message.name or "", "response": message.content}]
    else:
        chat["content"] = [{"type": "text", "text": message.content}]
    return chat


def check_template(dialect: Dialect, conversation: Conversation, open_turn: bool, minijinja: Any = None) -> None:
    """The template writes what the renderer writes, whichever shapes messages and tools come in."""
    expected = text_of(dialect.render(conversation, open_turn))
    template = dialect.chat_template()
    chats = [
        [message.to_chat() for message in conversation.messages],
        [as_parts(message) for message in conversation.messages],
    ]
    declared = [[tool.to_openai() for tool in conversation.tools], [tool.to_function() for tool in conversation.tools]]
    for messages in chats:
        for tools in declared:
            if minijinja is None:
                assert in_transformers(template, messages, tools or None, open_turn) == expected
            else:
                assert in_minijinja(minijinja, template, messages, tools, open_turn) == expected


def raises_in_template(dialect: Dialect, messages: list[dict[str, Any]]) -> bool:
    """Whether the template refuses the messages."""
    try:
        in_transformers(dialect.chat_template(), messages)
    except jinja2.TemplateError:
        return True
    return False


def streamed(
    dialect: Dialect, text: str | bytes, sizes: list[int], policy: Policy, reason: FinishReason = "stop"
) -> tuple[list[Event], Reply]:
    """The events and the reply of `text` fed in pieces of `sizes`, over and over."""
    parser = dialect.stream_parser(policy=policy)
    events: list[Event] = []
    position = turn = 0
    while position < len(text):
        size = sizes[turn % len(sizes)]
        events += parser.feed(text[position : position + size])
        position, turn = position + size, turn + 1
    return events + parser.close(reason), parser.reply


def check_stream(dialect: Dialect, text: str, sizes: list[int], policy: Policy, reason: FinishReason = "stop") -> None:
    """Fed in pieces, as text or as bytes, a reply is what it is whole, and the events say the same."""
    expected = dialect.parse(text, policy=policy, finish_reason=reason)
    for each in (text, text.encode()):
        events, reply = streamed(dialect, each, sizes, policy, reason)
        assert reply == expected
        check_events(events, reply)


def check_events(events: list[Event], reply: Reply) -> None:
    """The events say what the reply says."""
    if not isinstance(reply, Malformed):
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.text
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == reply.reasoning
    calls = reply.calls if isinstance(reply, ToolCalls) else ()
    ends = [event for event in events if isinstance(event, CallEnd)]
    assert [(end.index, end.call) for end in ends] == list(enumerate(calls))
    for index, call in enumerate(calls):
        (start,) = (each for each in events if isinstance(each, CallStart) and each.index == index)
        deltas = [each for each in events if isinstance(each, ArgumentsDelta) and each.index == index]
        assert start.name == call.name
        assert json.loads("".join(each.text for each in deltas)) == call.arguments
        assert events.index(start) < events.index(deltas[0]) < events.index(ends[index])
    problems = [reply.reason] if isinstance(reply, Malformed) else getattr(reply, "malformed", ())
    assert [event.reason for event in events if isinstance(event, CallFailed)] == list(problems)
    for event in events:
        assert not isinstance(event, TextDelta | ArgumentsDelta | ReasoningDelta) or event.text
