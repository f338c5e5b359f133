"""Reading replies of the `fenced` dialect: one json block, a call or an answer."""

from __future__ import annotations

import time

import pytest
from dialect_checks import call, check_stream
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes import Final, Malformed, ToolCall, ToolCalls, get_dialect
from hermes.dialects import FinishReason, Policy, TextDelta

DIALECT = get_dialect("fenced")
POLICIES: tuple[Policy, ...] = ("strict", "lenient")


def block(body: str) -> str:
    return f"```json\n{body}\n```"


A = '{"tool": "a", "arguments": {}}'
DONE = '{"tool": "final", "text": "Done."}'

CALLS: dict[str, tuple[str, tuple[Policy, ...], ToolCall, str, set[str]]] = {
    "a block": (block(A), POLICIES, call("a"), "", set()),
    "white space": (f"\n {block(' ' + A + ' ')}\n", POLICIES, call("a"), "", set()),
    "stop token": (f"{block(A)}<|im_end|>", POLICIES, call("a"), "", set()),
    "after the stop token": (f"{block(A)}<|im_end|>\n{block(A)}", POLICIES, call("a"), "", {"text_after_stop"}),
    "fence after the object": (f"```json\n{A}```", POLICIES, call("a"), "", set()),
    "capitals and line ends": (f"```JSON\r\n{A}\r\n```\r\n", POLICIES, call("a"), "", set()),
    "four backticks": (f"````json\n{A}\n````", POLICIES, call("a"), "", set()),
    "several lines": (block('{\n "tool": "a",\n "arguments": {\n  "x": 1\n }\n}'), POLICIES, call("a", x=1), "", set()),
    "an unknown tool": (block('{"tool": "?", "arguments": {}}'), POLICIES, call("?"), "", set()),
    "a fence in a string": (
        block('{"tool": "a", "arguments": {"t": "x\\n```\\ny ```"}}'), POLICIES, call("a", t="x\n```\ny ```"), "", set()
    ),
    "marks in a string": (
        block('{"tool": "a", "arguments": {"t": "<|im_end|>"}}'), POLICIES, call("a", t="<|im_end|>"), "", set()
    ),
    "text before": (f"One moment.\n{block(A)}", POLICIES, call("a"), "One moment.", {"text_around"}),
    "text after": (f"{block(A)}\nSo.", POLICIES, call("a"), "So.", {"text_around"}),
    "text on the line of the fence": (f"```json\n{A}\n``` so\n", POLICIES, call("a"), "so\n", {"text_around"}),
    "another language": (
        f"```sh\nls\n```\n{block(A)}", POLICIES, call("a"), "```sh\nls\n```", {"text_around"}
    ),
    "a block in a block": (
        f"```md\n```json\n{DONE}\n```\n{block(A)}", POLICIES, call("a"), f"```md\n```json\n{DONE}\n```", {"text_around"}
    ),
    "reasoning": (f"<think>{block(DONE)}</think>\n{block(A)}", POLICIES, call("a"), "", set()),
    "a control character": (
        block('{"tool": "a", "arguments": {"q": "\\u0000"}}'),
        POLICIES,
        call("a", q="\0"),
        "",
        {"control_char_in_value"},
    ),
    "not closed": (f"```json\n{A}\n", ("lenient",), call("a"), "", {"unclosed"}),
    "not closed before the stop": (f"```json\n{A}<|im_end|>", ("lenient",), call("a"), "", {"unclosed"}),
    "no block": (A, ("lenient",), call("a"), "", {"untagged_call"}),
    "no language": (f"```\n{A}\n```", ("lenient",), call("a"), "", {"untagged_call"}),
    "the other name": (block('{"tool": "a", "args": {"x": 1}}'), ("lenient",), call("a", x=1), "", {"alias_args"}),
    "no arguments": (block('{"tool": "a"}'), ("lenient",), call("a"), "", {"arguments_missing"}),
    "missing brace": (block('{"tool": "a", "arguments": {}'), ("lenient",), call("a"), "", {"repaired"}),
    "raw newline": (
        block('{"tool": "a", "arguments": {"x": "1\n```\n2"}}'),
        ("lenient",),
        call("a", x="1\n```\n2"),
        "",
        {"control_chars_in_string"},
    ),
    "Python": (
        block("{'tool': 'a', 'arguments': {'x': None}}"), ("lenient",), call("a", x=None), "", {"python_literals"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS.keys())
def test_replies_that_are_calls(case: tuple[str, tuple[Policy, ...], ToolCall, str, set[str]]) -> None:
    text, policies, expected, said, flags = case
    for policy in policies:
        reply = DIALECT.parse(text, policy=policy)
        assert isinstance(reply, ToolCalls), reply
        assert (reply.calls, reply.text, reply.malformed) == ((expected,), said, ())
        assert (set(reply.flags), reply.raw) == (flags, text)


MALFORMED: dict[str, tuple[str, tuple[Policy, ...], str]] = {
    "two blocks": (f"{block(A)}\n{block(DONE)}", POLICIES, "expected exactly one json block, got 2"),
    "a second one not closed": (f"{block(A)}\n```json\n", POLICIES, "expected exactly one json block, got 2"),
    "no JSON": (block("a()"), POLICIES, "the json block did not parse: Expecting value"),
    "nothing": (block(""), POLICIES, "the json block did not parse"),
    "more in the block": (block(f"{A}\n{A}"), POLICIES, "the json block did not parse: more follows after the object"),
    "a list": (block("[1]"), POLICIES, 'the json block has no "tool" key'),
    "no tool": (block('{"name": "a", "arguments": {}}'), POLICIES, 'the json block has no "tool" key'),
    "final without text": (block('{"tool": "final"}'), POLICIES, 'a final block needs a "text" string'),
    "final with a number": (block('{"tool": "final", "text": 1}'), POLICIES, 'a final block needs a "text" string'),
    "no arguments": (block('{"tool": "a"}'), ("strict",), "tool 'a' needs an \"arguments\" object"),
    "a list of arguments": (
        block('{"tool": "a", "arguments": []}'),
        POLICIES,
        "tool 'a' needs an \"arguments\" object",
    ),
    "no name": (block('{"tool": null, "arguments": {}}'), POLICIES, "the call has no 'tool'"),
    "a key twice": (block('{"tool": "a", "tool": "final", "text": ""}'), POLICIES, "the key 'tool' stands twice"),
    "raw newline": (block('{"tool": "a", "arguments": {"x": "1\n2"}}'), ("strict",), "did not parse: Invalid control"),
    "not closed": (f"```json\n{A}\n", ("strict",), "the json block is not closed"),
    "not closed nor complete": ('```json\n{"tool": "a", "argum', POLICIES, "the json block "),
    "too deep": (block('{"tool": "a", "arguments": {"x": ' + "[" * 100_000), POLICIES, "nested too deeply"),
    "reasoning not closed": (f"<think>{block(A)}", POLICIES, "the reasoning is not closed"),
}


@pytest.mark.parametrize("case", MALFORMED.values(), ids=MALFORMED.keys())
def test_replies_that_break_the_protocol(case: tuple[str, tuple[Policy, ...], str]) -> None:
    text, policies, reason = case
    for policy in policies:
        reply = DIALECT.parse(text, policy=policy)
        assert isinstance(reply, Malformed), reply
        assert reason in reply.reason and reply.raw == text


TEXTS: dict[str, tuple[str, tuple[Policy, ...], str, set[str]]] = {
    "final": (block(DONE), POLICIES, "Done.", set()),
    "final with lines": (
        block('{"tool": "final", "text": "a\\n```py\\nb\\n```"}'), POLICIES, "a\n```py\nb\n```", set()
    ),
    "final with text around": (f"So:\n{block(DONE)}\nBye.", POLICIES, "Done.", {"text_around"}),
    "final in another order": (block('{"text": "Done.", "tool": "final"}'), POLICIES, "Done.", set()),
    "final with raw lines": (
        block('{"tool": "final", "text": "a\n```py\nb\n```"}'),
        ("lenient",),
        "a\n```py\nb\n```",
        {"control_chars_in_string"},
    ),
    "final without its brace": (block(DONE[:-1]), ("lenient",), "Done.", {"repaired"}),
    "final with a brace too many": (block(DONE + "}"), ("lenient",), "Done.", {"repaired"}),
    "final not closed": (f"```json\n{DONE}", ("lenient",), "Done.", {"unclosed"}),
    "final without a block": (DONE, ("lenient",), "Done.", {"untagged_call"}),
    "prose": ("\n Hello. \n", ("strict",), "\n Hello. \n", {"no_block"}),
    "prose, leniently": ("\n Hello. \n", ("lenient",), "\n Hello. \n", set()),
    "nothing": ("", ("strict",), "", {"no_block"}),
    "the object alone": (A, ("strict",), A, {"no_block", "untagged_call"}),
    "another language": (f"```yaml\n{A}\n```", ("strict",), f"```yaml\n{A}\n```", {"no_block", "untagged_call"}),
    "other languages": (
        "```js\n1\n```\n```json5\n{}\n```", ("strict",), "```js\n1\n```\n```json5\n{}\n```", {"no_block"}
    ),
    "a fence inside a line": (f"It is ```json\n{A}```", ("strict",), f"It is ```json\n{A}```", {"no_block"}),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS.values(), ids=TEXTS.keys())
def test_replies_that_are_text(case: tuple[str, tuple[Policy, ...], str, set[str]]) -> None:
    text, policies, said, flags = case
    for policy in policies:
        reply = DIALECT.parse(text, policy=policy)
        assert isinstance(reply, Final), reply
        assert (reply.text, set(reply.flags), reply.raw) == (said, flags, text)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_reply_cut_by_the_limit_is_no_call(policy: Policy) -> None:
    for text in (block(A)[:-4], block(A)[:-1], "```json\n{", "```json", block(DONE)[:-3]):
        reply = DIALECT.parse(text, policy=policy, finish_reason="length")
        assert reply == Malformed("the json block is cut by the token limit", text, flags=("cut",))
    for text in (A, "Once"):
        reply = DIALECT.parse(text, policy=policy, finish_reason="length")
        assert isinstance(reply, Final) and reply.text == text
    assert DIALECT.parse(block(A), policy=policy, finish_reason="length").flags == ("cut",)


@pytest.mark.parametrize(
    "piece", ["```json\n", "```json\n{", "```\n", '```json\n{"a', "```x\n```json\n", block(A) + "\n", "`"]
)
def test_the_time_grows_with_the_length_only(piece: str) -> None:
    started = time.perf_counter()
    for policy in POLICIES:
        DIALECT.parse(piece * 20_000, policy=policy)
    assert time.perf_counter() - started < 10


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1000])
def test_any_chunking_gives_the_result_of_the_whole(policy: Policy, size: int) -> None:
    for text in [text for text, *_ in (*CALLS.values(), *MALFORMED.values(), *TEXTS.values()) if len(text) < 1000]:
        for reason in ("stop", "length"):
            check_stream(DIALECT, text, [size], policy, reason)  # type: ignore[arg-type]


PARTS = st.sampled_from(
    ["<|im_end|>", "<think>", "</think>", "`", "```", "```json\n", "\n```", "\n", " ", '"', "<", "{", "}", ",", ":",
     "é", "\\", "\\n", "\\ud83d", "\\ude00", "\\\\", A, DONE, DONE[:-2], block(A), block(DONE), "{'tool': 'final'}",
     '{"tool": "final", "text": "', '{"tool" : "final","text":"a']
)  # fmt: skip


@given(st.lists(PARTS, max_size=12).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
@settings(max_examples=500, deadline=None)
def test_chunking_of_odd_texts(text: str, sizes: list[int], data: st.DataObject) -> None:
    policy: Policy = data.draw(st.sampled_from(POLICIES))
    reason: FinishReason = data.draw(st.sampled_from(["stop", "length"]))
    start = data.draw(st.sampled_from(["", '```json\n{"tool": "final", "text": "']))
    check_stream(DIALECT, start + text, sizes, policy, reason)


def test_an_answer_comes_as_it_is_written() -> None:
    parser = DIALECT.stream_parser()
    assert parser.feed('```json\n{"tool": "final", "te') == []
    assert parser.feed('xt": "One') == [TextDelta("One")]
    assert parser.feed(" mo\\") == [TextDelta(" mo")]
    assert parser.feed("n\\ud83d") == [TextDelta("\n")]
    assert parser.feed('\\ude00."}') == [TextDelta("😀.")]
    assert parser.feed("\n```") + parser.close() == []
    assert parser.reply.text == "One mo\n😀."  # type: ignore[union-attr]
