"""Replies read while they are written: any chunking gives what the whole gives, and the events agree with it."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import dialect_checks
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_parse import CALLS, DIALECT, MALFORMED, TEXTS, A, B, block, call

from hermes import Conversation, Malformed, Message, ToolCall, ToolCalls
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

streamed = partial(dialect_checks.streamed, DIALECT)


def check_events(events: list[Event], reply: Any) -> None:
    """The events say what the reply says."""
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    if not isinstance(reply, Malformed):
        assert said == reply.text
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == reply.reasoning
    calls = reply.calls if isinstance(reply, ToolCalls) else ()
    ends = [event for event in events if isinstance(event, CallEnd)]
    assert [(end.index, end.call) for end in ends] == list(enumerate(calls))
    open_call: str | None = None
    arguments, finished = "", 0
    for event in events:
        if isinstance(event, CallStart):
            assert open_call is None and event.index == finished
            open_call, arguments = event.name, ""
        elif isinstance(event, ArgumentsDelta):
            assert open_call is not None and event.index == finished
            arguments += event.text
        elif isinstance(event, CallEnd):
            assert open_call == event.call.name and json.loads(arguments) == event.call.arguments
            open_call, finished = None, finished + 1
        elif isinstance(event, CallFailed) and event.index is not None:
            assert open_call is not None and event.index == finished
            open_call = None
    assert open_call is None
    failed = sum(isinstance(event, CallFailed) for event in events)
    problems = 1 if isinstance(reply, Malformed) else len(reply.malformed) if isinstance(reply, ToolCalls) else 0
    assert failed >= problems
    for event in events:
        assert not isinstance(event, TextDelta | ArgumentsDelta | ReasoningDelta) or event.text


ALL_TEXTS = [text for text, *_ in (*CALLS.values(), *MALFORMED.values(), *TEXTS.values()) if len(text) < 1000]


@pytest.mark.parametrize("policy", ["strict", "lenient"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 13, 1000])
def test_any_chunking_gives_the_result_of_the_whole(policy: Policy, size: int) -> None:
    for text in ALL_TEXTS:
        events, reply = streamed(text, [size], policy)
        assert reply == DIALECT.parse(text, policy=policy)
        check_events(events, reply)


PARTS = st.sampled_from(
    [
        "<tool_call>", "</tool_call>", "<|im_end|>", "<think>", "</think>", "`", "```", "\n", " ", '"', "'", "“", "”",
        "<", "\\", "{", "}", "[", "]", ",", ":", "x", "é", "1", "null", "\\u0041", "name", "arguments", A, B, block(A),
        '{"name": "f", "arguments": {"a": "b', '{"arguments": {"a": [1, {"b": "c"}]}, "name": "f"}', "{'name': 'f'}",
    ]
)  # fmt: skip


@given(st.lists(PARTS, max_size=14).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
def test_chunking_of_odd_texts(text: str, sizes: list[int], data: st.DataObject) -> None:
    policy: Policy = data.draw(st.sampled_from(["strict", "lenient"]))
    reason: FinishReason = data.draw(st.sampled_from(["stop", "length"]))
    for each in (text, text.encode()):
        events, reply = streamed(each, sizes, policy, reason)
        assert reply == DIALECT.parse(text, policy=policy, finish_reason=reason)
        check_events(events, reply)


def test_text_and_arguments_come_as_they_are_written() -> None:
    parser = DIALECT.stream_parser()
    assert parser.feed("One mo") == [TextDelta("One mo")]
    assert parser.feed("ment.\n<tool") == [TextDelta("ment.")]
    assert parser.feed('_call>{"name": "f", "argu') == [CallStart(0, "f")]
    assert parser.feed('ments": {"a": "b') == [ArgumentsDelta(0, '{"a": "b')]
    assert parser.feed('c"}}') == [ArgumentsDelta(0, 'c"}')]
    assert parser.feed("</tool_call>") == [CallEnd(0, call("f", a="bc"))]
    assert parser.close() == []


@pytest.mark.parametrize("last", ["42", "true", "null", "[1, 2]", '{"k": 1}'])
def test_closers_in_one_chunk_after_any_last_value(last: str) -> None:
    parser = DIALECT.stream_parser()
    events = parser.feed('<tool_call>\n{"name": "fetch_row", "arguments": {"id": ' + last)
    events += parser.feed("}\n}\n</tool_call>") + parser.close()
    check_events(events, parser.reply)
    assert parser.reply.calls == (call("fetch_row", id=json.loads(last)),)


def test_bytes_may_be_cut_inside_a_character() -> None:
    parser = DIALECT.stream_parser()
    events = parser.feed(
        bytes.fromhex(
            "3c746f6f6c5f63616c6c3e7b226e616d65223a2022736179222c2022617267756d656e7473223a207b2274223a2022f09f"
        )
    )
    events += parser.feed(bytes.fromhex("9880227d7d3c2f746f6f6c5f63616c6c3e")) + parser.close()
    check_events(events, parser.reply)
    assert parser.reply.calls == (call("say", t="😀"),)
    assert "\ufffd" not in "".join(event.text for event in events if isinstance(event, ArgumentsDelta))


def test_a_closed_parser_takes_nothing_more() -> None:
    parser = DIALECT.stream_parser()
    with pytest.raises(RuntimeError):
        _ = parser.reply
    parser.close()
    with pytest.raises(RuntimeError):
        parser.feed("x")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CALL = st.builds(ToolCall, st.text(min_size=1), st.dictionaries(st.text(), JSON_VALUES, max_size=3))


@given(st.lists(CALL, min_size=1, max_size=3).map(tuple), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_what_is_rendered_is_read_back(calls: tuple[ToolCall, ...], sizes: list[int]) -> None:
    (segment,) = (each for each in DIALECT.render(Conversation((Message("assistant", calls=calls),))) if each.trained)
    for policy in ("strict", "lenient"):
        reply = DIALECT.parse(segment.text, policy=policy)  # type: ignore[arg-type]
        assert isinstance(reply, ToolCalls) and reply.calls == calls and reply.malformed == ()
        events, again = streamed(segment.text, sizes, policy)  # type: ignore[arg-type]
        assert again == reply
        check_events(events, again)


def test_a_failed_call_is_not_taken_for_the_next_one() -> None:
    twice = '<tool_call>{"name": "f", "name": "g", "arguments": {}}</tool_call>'
    text = twice + '<tool_call>{"name": "g", "arguments": {}}</tool_call>'
    for policy in ("strict", "lenient"):
        events, reply = streamed(text, [3], policy)  # type: ignore[arg-type]
        check_events(events, reply)
        assert [event.name for event in events if isinstance(event, CallStart)] == ["f", "g"]


@pytest.mark.parametrize("body", ['{"name": "f", "arguments": "' + "x" * 50_000, '{"thought": "' + "x" * 50_000])
def test_a_long_string_outside_of_the_arguments_is_held(body: str) -> None:
    """Were it looked through again with each chunk, this would not come to an end."""
    text = f'<tool_call>{body}", "name": "f"}}</tool_call>'
    events, reply = streamed(text, [1], "strict")
    check_events(events, reply)


def test_many_escaped_quotes_take_time_in_proportion() -> None:
    text = '<tool_call>{"a": "' + '\\"' * 300_000 + "</tool_call>"
    assert isinstance(DIALECT.parse(text, policy="lenient"), Malformed)
