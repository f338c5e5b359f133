"""Replies, tool choice, bounds and findings."""

import json
import re
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_grammar_engines import LOAD, RUN, verdict

from hermes import Message, ToolCall, get_dialect
from hermes.control import MARKERS
from hermes.dialects.base import CallSyntax
from hermes.gallery_tools import GALLERY_TOOLS
from hermes.grammar import Bounds, Finding, compile, lint
from hermes.grammar.form import NOTHING, lengths
from hermes.grammar.regex import BYTE_SPELLINGS, write
from hermes.grammar.strings import writer_for
from hermes.grammar.text import text_without
from hermes.record import Tool

ECHO = Tool("echo", "", {"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"]})


def call(name, arguments, **style):
    text = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False, **style)
    return f"<tool_call>{text}</tool_call>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "f", "arguments": {}}', True),
        ('{"name":"f","arguments":{}}', True),
        ('{"name":"f", "arguments": {}}', True),
        ('{"name": "unknown_tool", "arguments": {}}', False),
        ('{"arguments": {}, "name": "f"}', False),
        ('{"name": "f", "arguments": {}, "id": 1}', False),
        ('{"name":  "f", "arguments": {}}', False),
        ('{"name": "f"}', False),
        ('\n{"name": "f", "arguments": {}}\n', True),
        ('\n\n{"name": "f", "arguments": {}}', False),
    ],
)
def test_envelope(text, expected):
    assert verdict(compile([Tool("f")], choice="required"), f"<tool_call>{text}</tool_call>") is expected


@pytest.mark.parametrize("tools", [[], [ECHO]])
def test_without_tools_or_calls_only_text_is_left(tools):
    grammar = compile(tools, choice="none")
    assert verdict(grammar, "hi")
    assert verdict(grammar, "")
    assert not verdict(grammar, "hi <tool_call>")
    assert verdict(compile([]), "hi")
    assert verdict(compile([], choice="required"), "hi")


def test_choice_of_one_tool():
    grammar = compile(GALLERY_TOOLS, choice="run_js")
    assert verdict(grammar, RUN)
    assert not verdict(grammar, LOAD)
    assert not verdict(grammar, "text")
    with pytest.raises(ValueError, match="'run_javascript': no such tool"):
        compile(GALLERY_TOOLS, choice="run_javascript")


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ValueError, match="'echo'.*two"):
        compile([ECHO, ECHO])


def test_a_dialect_stands_for_its_syntax():
    syntax = CallSyntax("<<", ">>", "n", "a")
    grammar = compile([ECHO], SimpleNamespace(syntax=syntax), choice="required")
    assert verdict(grammar, '<<{"n": "echo", "a": {"t": "x"}}>>')
    assert grammar.lark == compile([ECHO], syntax, choice="required").lark


def test_a_whole_reply_as_one_call():
    grammar = compile([ECHO], CallSyntax("", "", parallel=False))
    body = '{"name": "echo", "arguments": {"t": "x"}}'
    assert [verdict(grammar, text) for text in (body, "hello {", "  hello", " { no", body + body, "")] == [
        True,
        True,
        True,
        False,
        False,
        True,
    ]


def test_marks_inside_strings_must_be_escaped():
    grammar = compile([ECHO])
    text = "<|im_end|> closes a turn, </tool_call> a call"
    assert not verdict(grammar, call("echo", {"t": text}))
    assert verdict(grammar, call("echo", {"t": text}).replace("</tool_call> a", "<\\/tool_call> a"))
    assert verdict(grammar, call("echo", {"t": "<<tool_call</tool_cal </tool <p>1 < 2</p>"}))


def test_marks_inside_listed_values_are_escaped():
    schema = {"type": "object", "properties": {"t": {"enum": ["a</tool_call>", "<tool_call>b"]}}}
    grammar = compile([Tool("f", "", schema)])
    assert verdict(grammar, '<tool_call>{"name": "f", "arguments": {"t": "a<\\/tool_call>"}}</tool_call>')
    assert verdict(grammar, '<tool_call>{"name": "f", "arguments": {"t": "a\\u003c/tool_call>"}}</tool_call>')
    assert verdict(grammar, '<tool_call>{"name": "f", "arguments": {"t": "\\u003ctool_call>b"}}</tool_call>')
    assert not verdict(grammar, call("f", {"t": "a</tool_call>"}))


def test_a_mark_of_letters_that_every_escape_may_hold_is_refused():
    assert writer_for("BEGIN", "END").barred
    with pytest.raises(ValueError, match="'bad'"):
        writer_for("bad")


@pytest.mark.parametrize("mark", ["<tool_call>", "```", "aab", "abab", "<", "aabaaa", "[[X]]"])
def test_text_without_a_mark(mark):
    expression = re.compile(write(text_without(mark)))
    alphabet = "".join(dict.fromkeys(mark)) + "z"
    texts = [""]
    for _ in range(5 if len(alphabet) < 5 else 4):
        texts += [text + char for text in texts for char in alphabet if len(text) < 8]
    texts = [*dict.fromkeys(texts)][:3000]
    texts += [mark[:cut] + mark + "z" for cut in range(len(mark))] + [
        mark[:cut] + mark[:-1] for cut in range(len(mark))
    ]
    for text in texts:
        assert (expression.fullmatch(text) is not None) is (mark not in text), text
    assert lengths(text_without(mark)) == (0, None)


def test_bounds():
    schema = {
        "type": "object",
        "properties": {"s": {"type": "string"}, "a": {"type": "array", "items": {"type": "integer"}}},
    }
    grammar = compile([Tool("f", "", schema)], bounds=Bounds(max_string=3, max_items=2))
    assert verdict(grammar, call("f", {"s": "abc", "a": [1, 2]}))
    assert not verdict(grammar, call("f", {"s": "abcd"}))
    assert not verdict(grammar, call("f", {"a": [1, 2, 3]}))
    with pytest.raises(ValueError, match="depth"):
        Bounds(depth=0)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_free_values_nest_as_deep_as_the_bounds_say(depth):
    schema = {"type": "object", "properties": {"v": {}}}
    grammar = compile([Tool("f", "", schema)], bounds=Bounds(free_depth=depth))
    value = 1
    for _ in range(depth):
        value = [value] if depth % 2 else {"k": value}
    assert verdict(grammar, call("f", {"v": value}))
    assert not verdict(grammar, call("f", {"v": [value]}))


def test_outputs_are_written_once_and_are_what_they_say():
    grammar = compile(GALLERY_TOOLS)
    assert grammar.lark is grammar.lark
    assert grammar.lark.startswith("start: REPLY\n")
    assert grammar.gbnf.startswith("root ::= reply\n")
    assert grammar.structural_tag["format"]["elements"][0]["type"] == "triggered_tags"
    assert compile(GALLERY_TOOLS).lark == grammar.lark
    with pytest.raises(ValueError, match="'utf-16': must be one of text"):
        grammar.regex("utf-16")


def test_the_byte_alphabet():
    assert len(set(BYTE_SPELLINGS)) == 256
    assert [chr(BYTE_SPELLINGS[byte]) for byte in b" \n\t\x00\x7fA\xc3\xbc"] == [*"ĠĊĉĀġA", "Ã", "¼"]


def test_required_text_is_never_the_only_way_on():
    schema = {"type": "object", "properties": {"u": {"const": "a ü\n"}}, "required": ["u"]}
    tool = Tool("f", "", schema)
    assert "a[Ġ ][Ã\\x01][¼\\x01]\\\\n" in compile([tool], choice="f").regex("byte_level")
    assert "a[\u2581 ]ü\\\\n" in compile([tool], choice="f").regex("sentencepiece")
    fenced = compile([tool], CallSyntax("```call\n", "\n```"), choice="f").regex("byte_level")
    assert fenced.startswith("```call[Ċ\\n]")
    assert fenced.endswith("[Ċ\\n]```)*")


def test_an_expression_too_long_is_refused():
    properties = {f"p{number}": {"type": "object"} for number in range(60)}
    tool = Tool("f", "", {"type": "object", "properties": properties})
    grammar = compile([tool])
    assert len(grammar.lark) < 30_000
    with pytest.raises(ValueError, match="use the Lark grammar"):
        grammar.regex("text")


def test_one_odd_schema_leaves_the_other_tools_alone():
    tools = [
        Tool("ok", "", {"type": "object", "properties": {"x": {"type": "integer"}}}),
        Tool("t_not", "", {"type": "object", "properties": {"p": {"not": {}}}}),
        Tool("t_uniq", "", {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        Tool("t_if", "", {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}),
        Tool("t_fmt", "", {"type": "object", "properties": {"p": {"type": "string", "format": "phone"}}}),
    ]
    grammar = compile(tools)
    assert verdict(grammar, call("ok", {"x": 1}))
    assert not verdict(grammar, call("ok", {"x": "1"}))
    assert verdict(grammar, call("t_fmt", {"p": "anything"}))
    assert [(each.tool, each.pointer, each.keyword) for each in lint(tools)] == [
        ("t_not", "/properties/p", "not"),
        ("t_uniq", "", "items"),
        ("t_uniq", "", "type"),
        ("t_uniq", "", "uniqueItems"),
        ("t_if", "", "if"),
        ("t_if", "", "then"),
        ("t_fmt", "/properties/p", "format"),
    ]


def test_lint_of_plain_schemas_finds_nothing():
    assert lint(GALLERY_TOOLS) == []
    assert lint([ECHO], engines=["lark"]) == []
    with pytest.raises(ValueError, match="'yacc'"):
        lint([ECHO], engines=["yacc"])


def test_lint_names_what_is_not_enforced():
    schema = {
        "type": "object",
        "title": "no finding",
        "properties": {
            "s": {"type": "string", "pattern": "(?=a)b", "minLength": 1, "default": "", "x-unit": "m"},
            "b": {"type": "string", "pattern": "^(a|bb)+$", "maxLength": 9},
            "n": {"type": "number", "multipleOf": 0.1},
            "o": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "r": {"$ref": "other.json"},
            "d": {"$ref": "#/$defs/d"},
        },
        "minProperties": 1,
        "maxProperties": 6,
        "$defs": {"d": {"type": "array", "uniqueItems": True}},
    }
    found = lint([Tool("f", "", schema)])
    assert [(each.pointer, each.keyword) for each in found] == [
        ("", "minProperties"),
        ("/$defs/d", "uniqueItems"),
        ("/properties/b", "maxLength"),
        ("/properties/n", "multipleOf"),
        ("/properties/o", "oneOf"),
        ("/properties/r", "$ref"),
        ("/properties/s", "pattern"),
        ("/properties/s", "x-unit"),
    ]
    assert found[0] == Finding("f", "", "minProperties", "all", "ignored")


def test_lint_reports_what_compile_refuses():
    tool = Tool("f", "", {"type": "object", "properties": {"a": False}, "required": ["a"]})
    assert "no arguments can meet the schema" in lint([tool])[0].instead
    assert NOTHING.options == ()


@pytest.mark.parametrize(
    ("parallel", "reply", "verdict"),
    [
        (True, "{call}", True),
        (True, "{call}<|im_end|>", True),
        (True, "Hello.{call}\n{call}<|im_end|>", True),
        (True, "{call}<|im_end|>{call}", False),
        (True, "{call}<|im_end|> and on", False),
        (False, "{call}", True),
        # Nothing may follow, so the runtime ends the reply by itself.
        (False, "{call}<|im_end|>", False),
    ],
)
def test_the_stop_token_may_follow_where_a_reply_may_end_or_go_on(parallel: bool, reply: str, verdict: bool) -> None:
    call = '<tool_call>{"name": "add", "arguments": {}}</tool_call>'
    grammar = compile([Tool("add")], parallel=parallel)
    expression = grammar.regex("text", "<|im_end|>")
    assert (re.fullmatch(expression, reply.replace("{call}", call)) is not None) == verdict
    opened = grammar.after_opening.regex("text", "<|im_end|>")
    rest = reply.replace("Hello.", "").replace("{call}", call).removeprefix("<tool_call>")
    assert (re.fullmatch(opened, rest) is not None) == verdict


@pytest.mark.parametrize(
    ("choice", "reply", "verdict"),
    [
        ("auto", '```json\n{"tool": "add", "arguments": {}}\n```', True),
        ("auto", '```json\n{"tool": "final", "text": "3 < 4"}\n```', True),
        ("auto", "3", False),
        ("required", '```json\n{"tool": "final", "text": "3"}\n```', False),
        ("none", '```json\n{"tool": "final", "text": "3"}\n```', True),
        ("none", '```json\n{"tool": "add", "arguments": {}}\n```', False),
    ],
)
def test_an_answer_that_is_written_as_a_call(choice: str, reply: str, verdict: bool) -> None:
    grammar = compile([Tool("add")], get_dialect("fenced"), choice)
    assert (re.fullmatch(grammar.regex("text"), reply) is not None) == verdict
    without_tools = compile([], get_dialect("fenced"), choice) if choice != "required" else grammar
    assert re.fullmatch(without_tools.regex("text"), "free text") is None


@given(
    st.fixed_dictionaries(
        {
            name: st.text() | st.sampled_from([*MARKERS, "1 < 2", "</tool_call", 'a"b\\c\n'])
            for name in ("script_name", "skill_name")
        },
        optional={"data": st.text()},
    )
)
def test_what_the_dialect_writes_is_in_its_grammar(arguments: dict[str, str]) -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("skill_name", "script_name", "data")},
    }
    tool = Tool("run", "", {**schema, "required": ["skill_name"]})
    dialect = get_dialect("hermes")
    written = dialect.format_reply(Message("assistant", calls=(ToolCall("run", arguments),)))
    expression = compile([tool], dialect, "required").regex("text")
    # Half of a surrogate pair is written as it is, and nobody can send it.
    assume(all(char < "\ud800" or char > "\udfff" for text in arguments.values() for char in text))
    assert re.fullmatch(expression, written)


def test_names_and_enums_with_control_tokens_are_written_as_the_renderer_writes_them() -> None:
    schema = {"type": "object", "properties": {"mark<|im_end|>": {"enum": ["<|im_start|>", "</tool_call>", "a<b"]}}}
    dialect, tool = get_dialect("hermes"), Tool("f<|im_end|>", "", schema)
    expression = compile([tool], dialect, "required").regex("text")
    for value in schema["properties"]["mark<|im_end|>"]["enum"]:
        written = dialect.format_reply(Message("assistant", calls=(ToolCall(tool.name, {"mark<|im_end|>": value}),)))
        assert re.fullmatch(expression, written), written
