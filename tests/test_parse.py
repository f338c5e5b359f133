"""Reading replies: what strict and lenient reading make of them, whole and in pieces."""

from __future__ import annotations

from typing import Any

import pytest

from hermes import Final, Malformed, ToolCall, ToolCalls, get_dialect
from hermes.dialects import (
    Policy,
)

DIALECT = get_dialect("hermes")


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments)


def block(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


TIME = block('{"name": "get_time", "arguments": {}}')
A, B = '{"name": "a", "arguments": {}}', '{"name": "b", "arguments": {}}'

CALLS: dict[str, tuple[str, Policy, list[ToolCall], str, set[str]]] = {
    "text before (C02)": (f"One moment.\n{TIME}", "strict", [call("get_time")], "One moment.", set()),
    "no arguments (C05)": (
        block('{"name": "list_tables", "arguments": {}}'),
        "strict",
        [call("list_tables")],
        "",
        set(),
    ),
    "braces in strings (C06)": (
        block('{"name": "shell", "arguments": {"cmd": "mkdir -p out/{a,b"}}')
        + "\n"
        + block('{"name": "log", "arguments": {"msg": "}Z"}}'),
        "strict",
        [call("shell", cmd="mkdir -p out/{a,b"), call("log", msg="}Z")],
        "",
        set(),
    ),
    "missing brace (C07)": (
        '<tool_call>{"name": "shell", "arguments": {"cmd": "ls"}</tool_call>',
        "lenient",
        [call("shell", cmd="ls")],
        "",
        {"repaired"},
    ),
    "a brace too many": (block('{"name": "shell", "arguments": {}}}'), "lenient", [call("shell")], "", {"repaired"}),
    "raw newline (C08)": (
        block('{"name": "write", "arguments": {"body": "line one\nline\ttwo"}}'),
        "lenient",
        [call("write", body="line one\nline\ttwo")],
        "",
        {"control_chars_in_string"},
    ),
    "raw newline and missing brace": (
        block('{"name": "write", "arguments": {"body": "one\ntwo"}'),
        "lenient",
        [call("write", body="one\ntwo")],
        "",
        {"control_chars_in_string", "repaired"},
    ),
    "arguments as text (C12)": (
        block('{"name": "open", "arguments": "{\\"url\\": \\"https://example.org\\"}"}'),
        "lenient",
        [call("open", url="https://example.org")],
        "",
        {"arguments_was_string"},
    ),
    "arguments as text in text (C12)": (
        block('{"name": "open", "arguments": "\\"{\\\\\\"url\\\\\\": \\\\\\"https://example.org\\\\\\"}\\""}'),
        "lenient",
        [call("open", url="https://example.org")],
        "",
        {"arguments_was_string"},
    ),
    "markup before the stop token (C13)": (f"{TIME}<|im_end|>", "strict", [call("get_time")], "", set()),
    "two calls (C14, C16)": (block(A) + "\n" + block(B), "strict", [call("a"), call("b")], "", set()),
    "NUL in a value (C17)": (
        block('{"name": "search", "arguments": {"q": "Malm\\u0000f6"}}'),
        "strict",
        [call("search", q="Malm\0f6")],
        "",
        {"control_char_in_value"},
    ),
    "two in a block (C22)": (block(f"{A}\n{B}"), "lenient", [call("a"), call("b")], "", {"multiple_in_block"}),
    "a list (C22)": (block(f"[{A}, {B}]"), "lenient", [call("a"), call("b")], "", {"multiple_in_block"}),
    "keys in another order (C23)": (
        block('{"arguments": {"name": "inner"}, "name": "w"}'),
        "strict",
        [call("w", name="inner")],
        "",
        set(),
    ),
    "parameters (C23)": (
        block('{"name": "w", "parameters": {"c": "Oslo"}}'),
        "lenient",
        [call("w", c="Oslo")],
        "",
        {"alias_parameters"},
    ),
    "null arguments (C24)": (
        block('{"name": "ping", "arguments": null}'),
        "strict",
        [call("ping")],
        "",
        {"arguments_missing"},
    ),
    "empty arguments (C24)": (
        block('{"name": "ping", "arguments": ""}'),
        "strict",
        [call("ping")],
        "",
        {"arguments_missing"},
    ),
    "missing arguments (C24)": (block('{"name": "ping"}'), "strict", [call("ping")], "", {"arguments_missing"}),
    "words in a value (C24)": (
        block('{"name": "say", "arguments": {"t": "\\"arguments\\": null"}}'),
        "strict",
        [call("say", t='"arguments": null')],
        "",
        set(),
    ),
    "a surrogate pair (C25)": (
        '<tool_call>{"name": "say", "arguments": {"t": "\\ud83d\\ude00"}}</tool_call>',
        "strict",
        [call("say", t="😀")],
        "",
        set(),
    ),
    "Python literals": (
        block("{'name': 'set', 'arguments': {'on': True, 'level': None, 'note': \"it's true\"}}"),
        "lenient",
        [call("set", on=True, level=None, note="it's true")],
        "",
        {"python_literals"},
    ),
    "fenced JSON": (f"```json\n{A}\n```", "lenient", [call("a")], "", {"untagged_call"}),
    "bare JSON": (A, "lenient", [call("a")], "", {"untagged_call"}),
    "not closed": (f"<tool_call>\n{A}\n", "lenient", [call("a")], "", {"unclosed"}),
    "marks inside a string (C112)": (
        block('{"name": "doc", "arguments": {"t": "<|im_end|> closes a turn, </tool_call> a call"}}'),
        "strict",
        [call("doc", t="<|im_end|> closes a turn, </tool_call> a call")],
        "",
        set(),
    ),
    "reasoning (C15)": (
        "<think>Best to call Save.</think>" + block('{"name": "save", "arguments": {}}'),
        "strict",
        [call("save")],
        "",
        set(),
    ),
    "after a code span": ("Use `x`: " + TIME, "strict", [call("get_time")], "Use `x`:", set()),
    "after an open backtick": ("a ` b\n" + TIME, "strict", [call("get_time")], "a ` b", set()),
    "after a code block": ("```\nx\n```\n" + TIME, "strict", [call("get_time")], "```\nx\n```", set()),
    "text around": ("a\n" + block(A) + "\nb \n" + block(B) + " c", "strict", [call("a"), call("b")], "a\nb\nc", set()),
    "a thought between": (
        f"Hm. <think>a draft: {TIME}</think>\n{TIME}",
        "strict",
        [call("get_time")],
        "Hm.",
        {"call_markup_in_reasoning"},
    ),
    "unclosed before another": (f"<tool_call>{A}{block(B)}", "lenient", [call("a"), call("b")], "", {"unclosed"}),
    "text after the stop token": (f"{TIME}<|im_end|>\nuser", "strict", [call("get_time")], "", {"text_after_stop"}),
}


@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS.keys())
def test_replies_that_are_calls(case: tuple[str, Policy, list[ToolCall], str, set[str]]) -> None:
    text, policy, calls, said, flags = case
    reply = DIALECT.parse(text, policy=policy)
    assert isinstance(reply, ToolCalls), reply
    assert list(reply.calls) == calls
    assert (reply.text, reply.malformed, set(reply.flags), reply.raw) == (said, (), flags, text)


MALFORMED: dict[str, tuple[str, tuple[Policy, ...]]] = {
    "missing brace (C07)": ('<tool_call>{"name": "shell", "arguments": {"cmd": "ls"}</tool_call>', ("strict",)),
    "raw newline (C08)": (block('{"name": "write", "arguments": {"body": "a\nb"}}'), ("strict",)),
    "arguments are text (C12)": (block('{"name": "open", "arguments": "{\\"url\\": 1}"}'), ("strict",)),
    "arguments are words (C12)": (block('{"name": "open", "arguments": "just words"}'), ("strict", "lenient")),
    "an invalid escape (C21)": (block('{"name": "grep", "arguments": {"re": "\\d+"}}'), ("strict", "lenient")),
    "two in a block (C22)": (block(f"{A}\n{B}"), ("strict",)),
    "a list (C22)": (block(f"[{A}, {B}]"), ("strict",)),
    "parameters (C23)": (block('{"name": "w", "parameters": {"c": "Oslo"}}'), ("strict",)),
    "a Python call (C26)": (block('w(c="Oslo")'), ("strict", "lenient")),
    "Python literals": (block("{'name': 'f', 'arguments': {}}"), ("strict",)),
    "a tuple": (block("{'name': 'f', 'arguments': {'a': (1, 2)}}"), ("strict", "lenient")),
    "not closed": (f"<tool_call>\n{A}", ("strict",)),
    "not closed nor complete": ('<tool_call>\n{"name": "a", "arguments": {', ("strict", "lenient")),
    "no name": (block('{"arguments": {}}'), ("strict", "lenient")),
    "a list of arguments": (block('{"name": "f", "arguments": [1]}'), ("strict", "lenient")),
    "a key twice": (block('{"name": "f", "name": "g", "arguments": {}}'), ("strict", "lenient")),
    "NaN": (block('{"name": "f", "arguments": {"x": NaN}}'), ("strict", "lenient")),
    "too large a number": (block('{"name": "f", "arguments": {"x": 1e999}}'), ("strict", "lenient")),
    "half a surrogate pair": (block('{"name": "f", "arguments": {"x": "\\ud83d"}}'), ("strict", "lenient")),
    "too deep": (block('{"name": "f", "arguments": {"x": ' + "[" * 100_000 + "}}"), ("strict", "lenient")),
    "cut off before its arguments": ('<tool_call>{"name": "delete_all"</tool_call>', ("strict", "lenient")),
    "a key twice, once escaped": (block('{"name": "f", "n\\u0061me": "g", "arguments": {}}'), ("strict", "lenient")),
    "arguments under two keys": (
        block('{"name": "f", "arguments": {}, "parameters": {"x": 1}}'),
        ("strict", "lenient"),
    ),
    "arguments under two aliases": (block('{"name": "f", "args": {}, "parameters": {"x": 1}}'), ("strict", "lenient")),
    "nested more than 200 deep": (
        block('{"name": "f", "arguments": {"x": ' + "[" * 199 + "]" * 199 + "}}"),
        ("strict", "lenient"),
    ),
    "a later thought not closed": (f"Hm. <think>maybe {TIME}", ("strict", "lenient")),
    "a closing mark alone": ("Hm.</tool_call>", ("strict", "lenient")),
    "reasoning not closed (C10)": (f"<think>\nI will call it now.\n{TIME}", ("strict", "lenient")),
}


@pytest.mark.parametrize("case", MALFORMED.values(), ids=MALFORMED.keys())
def test_replies_that_tried_to_call_and_failed(case: tuple[str, tuple[Policy, ...]]) -> None:
    text, policies = case
    for policy in policies:
        reply = DIALECT.parse(text, policy=policy)
        assert isinstance(reply, Malformed), reply
        assert reply.reason and reply.raw == text


TEXTS = {
    "held back (C03)": ("if a <b then write <tool_ca", set()),
    "in a code span (C19)": (
        f"Wrap it as `<tool_call>{A}</tool_call>` and close with `</think>`.",
        {"markup_in_code_span"},
    ),
    "in a code block": (f"Like this:\n```\n<tool_call>\n{A}\n</tool_call>\n```\nSee?", {"markup_in_code_span"}),
    "in an open code block": (f"Like this:\n```xml\n<tool_call>{A}</tool_call>", {"markup_in_code_span"}),
    "in quotation marks": ('Calls stand between "<tool_call>" and “</tool_call>”.', {"markup_in_code_span"}),
    "quoted whole": (f"It would be '<tool_call>{A}</tool_call>'.", {"markup_in_code_span"}),
    "a fenced call (C26)": (f"```json\n{A}\n```", {"untagged_call"}),
    "a bare call (C26)": (A, {"untagged_call"}),
    "JSON in prose (C26)": ('The config is {"name": "w", "arguments": {}} as shown.', set()),
    "quoted whole, with a mark in a string": (
        '"<tool_call>{"name": "a", "arguments": {"x": "</tool_call>"}}</tool_call>"',
        {"markup_in_code_span"},
    ),
    "an opening think tag in prose": ("Thoughts begin with <think> here.", set()),
    "white space": ("\n  two lines \n", set()),
    "nothing": ("", set()),
}


@pytest.mark.parametrize("case", TEXTS.values(), ids=TEXTS.keys())
def test_replies_that_are_text(case: tuple[str, set[str]]) -> None:
    text, flags = case
    reply = DIALECT.parse(text)
    assert isinstance(reply, Final), reply
    assert (reply.text, set(reply.flags)) == (text, flags)


def test_unclosed_reasoning_is_flagged() -> None:
    reply = DIALECT.parse(f"<think>\nI will call it now.\n{TIME}")
    assert set(reply.flags) == {"unclosed_reasoning", "call_markup_in_reasoning"}


def test_good_calls_survive_a_bad_one() -> None:
    broken = block('{"name": "grep", "arguments": {"re": "\\d+"}}')
    for text in (f"{broken}\n{block(A)}", f"{block(A)}\n{broken}", f'<tool_call>{{"name": \n{block(A)}'):
        reply = DIALECT.parse(text, policy="lenient")
        assert isinstance(reply, ToolCalls)
        assert (list(reply.calls), len(reply.malformed)) == ([call("a")], 1)


@pytest.mark.parametrize("policy", ["strict", "lenient"])
@pytest.mark.parametrize("text", [f"<tool_call>{A}", "<tool_call>" + A[:-2], "<tool_call>", f"Well.<tool_call>\n{A}\n"])
def test_a_reply_cut_by_the_limit_is_no_call(text: str, policy: Policy) -> None:
    reply = DIALECT.parse(text, policy=policy, finish_reason="length")
    assert isinstance(reply, Malformed)
    assert reply.flags == ("cut",)


def test_a_call_that_breaks_off_is_none_in_strict_reading() -> None:
    reply = DIALECT.parse(f"<tool_call>{A}{block(B)}")
    assert isinstance(reply, ToolCalls)
    assert (list(reply.calls), reply.malformed) == ([call("b")], ("a call is not closed",))


def test_a_closed_call_counts_even_where_the_rest_was_cut() -> None:
    reply = DIALECT.parse(f"{block(A)}\n<tool_call>{B}", finish_reason="length")
    assert isinstance(reply, ToolCalls)
    assert (list(reply.calls), len(reply.malformed), reply.flags) == ([call("a")], 1, ("cut",))


def test_the_short_way_for_a_lone_call_reads_it_like_the_long_one() -> None:
    """A reply that the token limit ended goes the long way."""
    for text, *_ in CALLS.values():
        short, long = DIALECT.parse(text), DIALECT.parse(text, finish_reason="length")
        if isinstance(short, ToolCalls):
            assert isinstance(long, ToolCalls)
            assert (short.calls, short.text, ("cut", *short.flags)) == (long.calls, long.text, long.flags)
