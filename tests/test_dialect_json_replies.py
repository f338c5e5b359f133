"""Reading replies of the `json` dialect: prose, or one bare JSON object that is a call."""

from __future__ import annotations

import time

import pytest
from dialect_checks import call, check_stream
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes import Final, Malformed, ToolCall, ToolCalls, get_dialect
from hermes.dialects import FinishReason, Policy, TextDelta

DIALECT = get_dialect("json")
POLICIES: tuple[Policy, ...] = ("strict", "lenient")


A = '{"tool": "a", "args": {}}'
B = '{"tool": "b", "args": {"x": "{"}}'

CALLS: dict[str, tuple[str, tuple[Policy, ...], ToolCall, str, set[str]]] = {
    "bare": (A, POLICIES, call("a"), "", set()),
    "white space": (f" \n{A}\n", POLICIES, call("a"), "", set()),
    "stop token": (f"{A}<|im_end|>", POLICIES, call("a"), "", set()),
    "after the stop token": (f"{A}<|im_end|>\nuser", POLICIES, call("a"), "", {"text_after_stop"}),
    "no arguments": ('{"tool": "a"}', POLICIES, call("a"), "", {"arguments_missing"}),
    "keys in another order": ('{"args": {"tool": 1}, "tool": "a"}', POLICIES, call("a", tool=1), "", set()),
    "more keys": ('{"tool": "a", "why": "x", "args": {}}', POLICIES, call("a"), "", set()),
    "marks in a string": ('{"tool": "a", "args": {"t": "<|im_end|>"}}', POLICIES, call("a", t="<|im_end|>"), "", set()),
    "reasoning": (f"<think>Hm.</think>\n{A}", POLICIES, call("a"), "", set()),
    "the other name": ('{"tool": "a", "arguments": {"x": 1}}', ("lenient",), call("a", x=1), "", {"alias_arguments"}),
    "missing brace": ('{"tool": "a", "args": {"x": 1}', ("lenient",), call("a", x=1), "", {"repaired"}),
    "raw newline": (
        '{"tool": "a", "args": {"x": "1\n2"}}',
        ("lenient",),
        call("a", x="1\n2"),
        "",
        {"control_chars_in_string"},
    ),
    "Python": ("{'tool': 'a', 'args': {'x': True}}", ("lenient",), call("a", x=True), "", {"python_literals"}),
    "arguments as text": (
        '{"tool": "a", "args": "{\\"x\\": 1}"}',
        ("lenient",),
        call("a", x=1),
        "",
        {"arguments_was_string"},
    ),
    "text before": (f"One moment.\n{A}", ("lenient",), call("a"), "One moment.", {"text_around"}),
    "text after": (f"{A}\nDone.", ("lenient",), call("a"), "Done.", {"text_around"}),
    "text around": (f"So: {B}, yes.", ("lenient",), call("b", x="{"), "So:\n, yes.", {"text_around"}),
    "other objects before": (
        f'{{x}} {{"y": {{"tool": 1}}}} {A}',
        ("lenient",),
        call("a"),
        '{x} {"y": {"tool": 1}}',
        {"text_around"},
    ),
    "inside what is no JSON": (f"{{note: {A}", ("lenient",), call("a"), "{note:", {"text_around"}),
    "after a code span": (f"As in `{B}`: {A}", ("lenient",), call("a"), f"As in `{B}`:", {"text_around"}),
    "after a backtick": (f"It`s {A}", ("lenient",), call("a"), "It`s", {"text_around"}),
    "a code block": (f"```json\n{A}\n```", ("lenient",), call("a"), "", {"text_around"}),
    "a list of one": (f"[{A}]", ("lenient",), call("a"), "", {"multiple_in_block"}),
    "a control character": (
        '{"tool": "a", "args": {"q": "\\u0000"}}',
        POLICIES,
        call("a", q="\0"),
        "",
        {"control_char_in_value"},
    ),
}


@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS.keys())
def test_replies_that_are_calls(case: tuple[str, tuple[Policy, ...], ToolCall, str, set[str]]) -> None:
    text, policies, expected, said, flags = case
    for policy in policies:
        reply = DIALECT.parse(text, policy=policy)
        assert isinstance(reply, ToolCalls), reply
        assert (reply.calls, reply.text, reply.malformed) == ((expected,), said, ())
        assert (set(reply.flags), reply.raw) == (flags, text)


def test_only_the_first_of_several_calls_is_taken() -> None:
    for text in (f"{A}\n{B}", f"[{A}, {B}]", f"First {A}, then {B}."):
        reply = DIALECT.parse(text, policy="lenient")
        assert isinstance(reply, ToolCalls) and reply.calls == (call("a"),)
        assert reply.malformed == ("a reply of the json dialect is prose or one call, so that 1 more are left out",)


MALFORMED: dict[str, tuple[str, tuple[Policy, ...], str]] = {
    "inside what breaks off": (f'{{"a": {A}, oops', POLICIES, "Expecting property name"),
    "inside what is cut off": (
        '{"tool": "b", "args": {"first": {"tool": "a", "args": {}}, "s',
        POLICIES,
        "Unterminated",
    ),
    "missing brace": ('{"tool": "a", "args": {}', ("strict",), "Expecting"),
    "not closed": ('{"tool": "a", "args": {"x": "', POLICIES, "Unterminated string"),
    "two calls": (f"{A}\n{B}", ("strict",), "more follows after the call's object"),
    "text after": (f"{A} Done.", ("strict",), "more follows"),
    "the other name": ('{"tool": "a", "arguments": {}}', ("strict",), "has 'arguments' where 'args' should be"),
    "a list of arguments": ('{"tool": "a", "args": [1]}', POLICIES, "must be a JSON object, not a list"),
    "no string": ('{"tool": 1, "args": {}}', POLICIES, "the call has no 'tool'"),
    "a key twice": ('{"tool": "a", "tool": "b", "args": {}}', POLICIES, "the key 'tool' stands twice"),
    "too deep": ('{"tool": "a", "args": {"x": ' + "[" * 100_000, POLICIES, "nested too deeply"),
    "a brace": ("{", POLICIES, "Expecting property name"),
    "reasoning not closed": (f"<think>{A}", POLICIES, "the reasoning is not closed"),
}


@pytest.mark.parametrize("case", MALFORMED.values(), ids=MALFORMED.keys())
def test_replies_that_tried_to_call_and_failed(case: tuple[str, tuple[Policy, ...], str]) -> None:
    text, policies, reason = case
    for policy in policies:
        reply = DIALECT.parse(text, policy=policy)
        assert isinstance(reply, Malformed), reply
        assert reason in reply.reason and reply.raw == text


TEXTS: dict[str, tuple[str, tuple[Policy, ...], set[str]]] = {
    "prose": ("\n Hello { there. \n", POLICIES, set()),
    "nothing": ("", POLICIES, set()),
    "other JSON": ('{"answer": 3}', POLICIES, set()),
    "other JSON and more": ('{"answer": 3} is it.', POLICIES, set()),
    "an empty object": ("{}", POLICIES, set()),
    "a list": ("[1, 2]", POLICIES, set()),
    "a call inside": (f"One moment.\n{A}", ("strict",), {"untagged_call"}),
    "a call in a code block": (f"```json\n{A}\n```", ("strict",), {"untagged_call"}),
    "a call in a code span": (f"Write `{A}` alone.", POLICIES, set()),
    "a call in a code block in prose": (f"Write:\n```\n{A}\n```", POLICIES, set()),
    "a call that is none": ('Say {"tool": 1}.', POLICIES, set()),
    "an object in an object": (f'It is {{"x": {A}}}.', POLICIES, set()),
    "half a stop token": ("a <|im_en", POLICIES, set()),
}


@pytest.mark.parametrize("case", TEXTS.values(), ids=TEXTS.keys())
def test_replies_that_are_text(case: tuple[str, tuple[Policy, ...], set[str]]) -> None:
    text, policies, flags = case
    for policy in policies:
        reply = DIALECT.parse(text, policy=policy)
        assert isinstance(reply, Final), reply
        assert (reply.text, set(reply.flags)) == (text, flags)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_reply_cut_by_the_limit(policy: Policy) -> None:
    for text in (A[:-1], A[:-2], '{"tool": "a"', "{"):
        reply = DIALECT.parse(text, policy=policy, finish_reason="length")
        assert reply == Malformed("the call is cut by the token limit", text, flags=("cut",))
    reply = DIALECT.parse(A, policy=policy, finish_reason="length")
    assert isinstance(reply, ToolCalls) and reply.flags == ("cut",)
    assert DIALECT.parse("Once upon", policy=policy, finish_reason="length") == Final(
        "Once upon", "Once upon", "", ("cut",)
    )


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"a":',
        '{"a":[',
        '{"',
        '{"a {',
        '{"tool": ',
        "{`",
        '{"a": "\\"',
        "{}",
        '{"a": {"b": 1}, ',
        "```\n{",
        '{x{"y"',
        "}{",
        A,
    ],
)
def test_the_time_grows_with_the_length_only(piece: str) -> None:
    for text in ("So " + piece * 20_000, piece * 20_000):
        started = time.perf_counter()
        DIALECT.parse(text, policy="lenient")
        assert time.perf_counter() - started < 10


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1000])
def test_any_chunking_gives_the_result_of_the_whole(policy: Policy, size: int) -> None:
    for text in [text for text, *_ in (*CALLS.values(), *MALFORMED.values(), *TEXTS.values()) if len(text) < 1000]:
        for reason in ("stop", "length"):
            check_stream(DIALECT, text, [size], policy, reason)  # type: ignore[arg-type]


PARTS = st.sampled_from(
    ["<|im_end|>", "<think>", "</think>", "`", "```", "\n", " ", '"', "<", "<|im", "{", "}", "[", "]", ",", ":", "x",
     "é", "\\", "tool", "args", A, B, A[:-1], '{"x": 1}', "{'tool': 'a'}", '{"tool": "t", "args": {"a": "\n"}}']
)  # fmt: skip


@given(st.lists(PARTS, max_size=12).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
@settings(max_examples=400, deadline=None)
def test_chunking_of_odd_texts(text: str, sizes: list[int], data: st.DataObject) -> None:
    policy: Policy = data.draw(st.sampled_from(POLICIES))
    reason: FinishReason = data.draw(st.sampled_from(["stop", "length"]))
    check_stream(DIALECT, text, sizes, policy, reason)


def test_text_comes_as_it_is_written() -> None:
    parser = DIALECT.stream_parser()
    assert parser.feed(" ") == []
    assert parser.feed("One {") == [TextDelta(" One {")]
    assert parser.feed("mo <|im") == [TextDelta("mo ")]
    assert parser.feed("x") == [TextDelta("<|imx")]
    assert parser.feed("<|im_end|>more") == []
    assert parser.close() == []
    lenient = DIALECT.stream_parser(policy="lenient")
    assert lenient.feed("One mo \n") == [TextDelta("One mo")]
    assert lenient.feed("so {") == [TextDelta(" \nso")]
    assert lenient.feed("x") == []
    assert lenient.close() == [TextDelta(" {x")]
