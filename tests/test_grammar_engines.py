"""The same verdict from every engine that a grammar is written for."""

import functools
import json
import random
import re

import pytest

from hermes.dialects.base import CallSyntax
from hermes.gallery_tools import GALLERY_TOOLS
from hermes.grammar import Grammar, compile
from hermes.grammar.form import Chain, Chars, Choice, Form, Repeat, Rule, Text
from hermes.grammar.regex import BYTE_SPELLINGS, utf8_sequences
from hermes.record import Tool

LOAD = '<tool_call>{"name": "load_skill", "arguments": {"skill_name": "maps"}}</tool_call>'
RUN = '<tool_call>{"name":"run_js","arguments":{"data":"x","skill_name":"ü","script_name":"index.html"}}</tool_call>'


class ByteTokens:
    """A token for every byte, as llguidance wants to see a tokenizer."""

    eos_token_id = 256
    bos_token_id = None
    special_token_ids = (256,)
    tokens = (*(bytes([value]) for value in range(256)), b"<eos>")

    def __call__(self, text):
        return list(text if isinstance(text, bytes) else text.encode())


class SpelledTokens(ByteTokens):
    """A token for every byte, known by its spelling in a byte-level vocabulary."""

    tokens = (*(chr(code).encode() for code in BYTE_SPELLINGS), b"<eos>")

    def __call__(self, text):
        text = text.decode() if isinstance(text, bytes) else text
        return [BYTE_SPELLINGS.index(ord(char)) for char in text]


@functools.cache
def tokenizer(kind=ByteTokens):
    llguidance = pytest.importorskip("llguidance")
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(kind()), slices=[])


def matcher(written, kind=ByteTokens):
    found = pytest.importorskip("llguidance").LLMatcher(tokenizer(kind), written)
    assert not found.is_error(), found.get_error()
    return found


@functools.lru_cache(maxsize=8)
def engines(grammar: Grammar):
    """Every engine that is installed, as a function from a text to its verdict."""
    expression = re.compile(grammar.regex("text"))
    byte_level = re.compile(grammar.regex("byte_level"))
    sentencepiece = re.compile(grammar.regex("sentencepiece"))
    found = {
        "re": lambda text: expression.fullmatch(text) is not None,
        "byte_level": lambda text: byte_level.fullmatch(spelled(text)) is not None,
        "sentencepiece": lambda text: sentencepiece.fullmatch(text.replace(" ", "\u2581")) is not None,
    }
    try:
        from llguidance import LLMatcher
        from llguidance.gbnf_to_lark import gbnf_to_lark
    except ImportError:
        return found
    written = {
        "lark": LLMatcher.grammar_from_lark(grammar.lark),
        "regex": LLMatcher.grammar_from_regex(grammar.regex("text")),
        "gbnf": LLMatcher.grammar_from_lark(gbnf_to_lark(grammar.gbnf)),
    }
    return found | {name: functools.partial(taken, matcher(text)) for name, text in written.items()}


def taken(found, text):
    found.reset()
    data = list(text.encode())
    return found.try_consume_tokens(data) == len(data) and found.is_accepting()


def spelled(text):
    return "".join(chr(BYTE_SPELLINGS[byte]) for byte in text.encode())


def verdict(grammar: Grammar, text: str) -> bool:
    """What all engines say; they must agree."""
    verdicts = {name: engine(text) for name, engine in engines(grammar).items()}
    assert len(set(verdicts.values())) == 1, (text, verdicts)
    return verdicts["re"]


def sample(form: Form, chance: random.Random) -> str:
    """A text of `form`, by a random walk."""
    if isinstance(form, Text):
        return form.text
    if isinstance(form, Chars):
        low, high = chance.choice(form.ranges)
        code = chance.randint(low, min(high, low + 300) if chance.random() < 0.8 else high)
        return chr(low if 0xD800 <= code <= 0xDFFF else code)
    if isinstance(form, Chain):
        return "".join(sample(part, chance) for part in form.parts)
    if isinstance(form, Choice):
        return sample(chance.choice(form.options), chance)
    if isinstance(form, Repeat):
        top = form.low + 3 if form.high is None else min(form.high, form.low + 3)
        return "".join(sample(form.item, chance) for _ in range(chance.randint(form.low, top)))
    assert isinstance(form, Rule)
    return sample(form.body, chance)


REPLIES = [
    "",
    "Hi <b>there</b>, 1 < 2 <tool <tool_cal",
    "<tool_call>",
    "</tool_call>",
    LOAD,
    RUN,
    f"Wait.\n{LOAD}",
    f"{LOAD}{RUN}",
    f"{LOAD}\n{RUN}",
    f"Two: {LOAD}\n{RUN}",
    f"{LOAD}\n\n{RUN}",
    f"{LOAD} {RUN}",
    f"{LOAD}\n",
    f"{LOAD} done",
    LOAD.replace("maps", "a </tool_call> b"),
    LOAD.replace("maps", "a <tool_call> b"),
    LOAD.replace("maps", "a <\\/tool_call> \\u003ctool_call> <</tool_cal <tool_<"),
    LOAD.replace("maps", "tab\there"),
    LOAD.replace("maps", "\\ud83d"),
    LOAD.replace("maps", "a-^]b & [c]"),
    LOAD.replace("load_skill", "other"),
    LOAD.replace("<tool_call>", "<tool_call>\n").replace("</", "\n</"),
]


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("choice", ["auto", "required", "none", "run_js"])
def test_engines_agree_about_replies(choice, parallel):
    grammar = compile(GALLERY_TOOLS, choice=choice, parallel=parallel)
    taken_ones = [text for text in REPLIES if verdict(grammar, text)]
    assert (LOAD in taken_ones) is (choice in ("auto", "required"))
    assert (RUN in taken_ones) is (choice != "none")
    assert ("" in taken_ones) is (choice in ("auto", "none"))
    assert (f"{LOAD}\n{RUN}" in taken_ones) is (parallel and choice in ("auto", "required"))


@pytest.mark.parametrize("seed", range(40))
def test_engines_take_whatever_the_form_writes(seed):
    grammar = compile(GALLERY_TOOLS)
    text = sample(grammar.form, random.Random(seed))
    assert verdict(grammar, text)
    for broken in (text.replace('"', "", 1), text + "}", text.replace("</tool", "<tool")):
        verdict(grammar, broken)


@pytest.mark.parametrize(
    "syntax",
    [
        CallSyntax("```tool_call\n", "\n```", padding=""),
        CallSyntax("", "", name_key="function", arguments_key="parameters", parallel=False),
        CallSyntax("[TOOL]", "[/TOOL]", padding="\n"),
        CallSyntax("BEGIN CALL", "END CALL"),
    ],
)
def test_engines_agree_about_other_syntaxes(syntax):
    grammar = compile(GALLERY_TOOLS, syntax)
    call = json.dumps({syntax.name_key: "load_skill", syntax.arguments_key: {"skill_name": "a"}})
    call = f"{syntax.opening}{call}{syntax.closing}"
    assert verdict(grammar, call)
    assert verdict(grammar, "Hello ``` [TOOL BEGIN")
    assert verdict(grammar, f"{call}\n{call}") is syntax.parallel
    assert verdict(grammar, f"So: {call}")
    assert not verdict(grammar, call.replace("load_skill", "other"))
    if syntax.opening:
        assert not verdict(grammar, f"text {syntax.opening} text")
    if syntax.closing and "\n" not in syntax.closing:
        assert not verdict(grammar, call.replace('"a"', f'"a {syntax.closing}"'))


@pytest.mark.parametrize("size", [1999, 2000, 2001])
def test_long_repetitions_can_be_built(size):
    item = {"type": "object", "properties": {"s": {"type": "string", "maxLength": size}}, "required": ["s"]}
    tool = Tool("f", "", {"type": "object", "properties": {"f": {"type": "array", "maxItems": 50, "items": item}}})
    grammar = compile([tool])
    text = '<tool_call>{"name": "f", "arguments": {"f": [{"s": "%s"}]}}</tool_call>'
    pytest.importorskip("llguidance")
    ready = engines(grammar)
    for name in ("lark", "regex", "gbnf"):
        assert ready[name](text % "x") and ready[name](text % ("é" * size))
        assert not ready[name](text % ("é" * (size + 1)))
    assert all(int(number) <= 1000 for number in re.findall(r"\{(?:\d+,)?(\d+)\}", grammar.gbnf))


def test_nothing_that_is_spelled_otherwise_is_forced():
    values = ["degrees celsius", "Zürich", "二", "a\nb"]
    schema = {"type": "object", "properties": {"u": {"enum": values}}, "required": ["u"]}
    tools = [Tool("f", "", schema)]
    for syntax in (CallSyntax("<tool_call>", "</tool_call>"), CallSyntax("```call me\n", "\n```")):
        for value in values:
            written = matcher_of(compile(tools, syntax, choice="required"))
            body = json.dumps({"name": "f", "arguments": {"u": value}}, ensure_ascii=False)
            for byte in f"{syntax.opening}{body}{syntax.closing}".encode():
                forced = written.compute_ff_bytes()
                assert all(0x21 <= each <= 0x7E for each in forced), forced
                assert written.consume_token(byte)
            assert written.is_accepting()


def matcher_of(grammar):
    llguidance = pytest.importorskip("llguidance")
    return matcher(llguidance.LLMatcher.grammar_from_regex(grammar.regex("byte_level")), SpelledTokens)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0x10FFFF), (0x7F, 0x80), (0xE9, 0xE9), (0x7FF, 0x800), (0x3000, 0x1F600), (0x41, 0xFFFF)]
)
def test_byte_ranges_are_those_of_utf8(low, high):
    sequences = list(utf8_sequences(low, high))
    codes = {low, high, (low + high) // 2, max(low - 1, 0), min(high + 1, 0x10FFFF), 0x41, 0x20AC, 0x1F600}
    for code in codes:
        if 0xD800 <= code <= 0xDFFF:
            continue
        data = chr(code).encode()
        inside = any(
            len(sequence) == len(data) and all(a <= byte <= b for byte, (a, b) in zip(data, sequence, strict=True))
            for sequence in sequences
        )
        assert inside is (low <= code <= high), hex(code)


def test_structural_tags_agree_with_the_regex():
    pytest.importorskip("torch")
    xgrammar = pytest.importorskip("xgrammar")
    info = xgrammar.TokenizerInfo(
        list(ByteTokens.tokens), vocab_type=xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256]
    )
    compiler = xgrammar.GrammarCompiler(info)
    tools = (*GALLERY_TOOLS, Tool("any", "", {"type": "object", "properties": {"v": {"enum": ["a/b", "ü", 7, [1]]}}}))
    extra = [f'<tool_call>{{"name": "any", "arguments": {{"v": {v}}}}}</tool_call>' for v in ('"a/b"', '"ü"', "7", "8")]
    for choice in ("auto", "required", "none", "run_js"):
        for parallel in (True, False):
            grammar = compile(tools, choice=choice, parallel=parallel)
            compiled = compiler.compile_structural_tag(json.dumps(grammar.structural_tag))
            for text in [*REPLIES, *extra]:
                found = xgrammar.GrammarMatcher(compiled)
                accepted = (not text or found.accept_string(text)) and found.accept_token(256)
                assert accepted is engines(grammar)["re"](text), (choice, parallel, text)
