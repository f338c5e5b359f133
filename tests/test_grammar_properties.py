"""Properties of grammars: what is written validates, what validates and is plain is taken, bounds are exact."""

import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from test_grammar_engines import sample, verdict
from test_grammar_schema import OBJECTS, VALUES, reply

from hermes.grammar import compile
from hermes.record import Tool

SCHEMAS = [
    schema if schema.get("type") == "object" or "$ref" in schema or "allOf" in schema else None
    for schema, _, _ in OBJECTS
    if schema and "nullable" not in json.dumps(schema)
]
SCHEMAS = [schema for schema in SCHEMAS if schema] + [
    {"type": "object", "properties": {"v": schema}, "required": ["v"]}
    for schema, _, _ in VALUES
    if isinstance(schema.get("type"), (str, list))
    and schema["type"] != "odd"
    and not isinstance(schema.get("exclusiveMinimum"), bool)
    and not isinstance(schema.get("items"), list)
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(range(len(SCHEMAS))), st.integers(0, 2**32))
def test_whatever_is_written_is_json_and_valid(index, seed):
    schema = SCHEMAS[index]
    grammar = compile([Tool("f", "", schema)], choice="f", parallel=False)
    text = sample(grammar.form, random.Random(seed))
    body = text.removeprefix("<tool_call>").removesuffix("</tool_call>")
    assert "tool_call>" not in body.replace("/tool_call>", "").replace("\\u003ctool_call>", "")
    call = json.loads(body)
    assert call["name"] == "f"
    errors = list(Draft202012Validator(schema).iter_errors(call["arguments"]))
    assert not errors, (schema, text, errors)
    assert verdict(grammar, text)


plain_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), max_size=8)
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9, allow_nan=False) | plain_text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("abcü ", max_size=3), inner, max_size=2),
    max_leaves=2,
).filter(lambda value: nesting(value) <= 2)


def nesting(value):
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(nesting, value), default=0) if isinstance(value, list) else 0


GENERATED = {
    "any": ({}, ANY_VALUE),
    "integers": ({"type": "integer", "minimum": -17, "maximum": 1234}, st.integers(-17, 1234)),
    "numbers": ({"type": "number", "minimum": -2.25, "maximum": 31.5}, st.decimals(-2.25, 31.5, places=3).map(float)),
    "text": ({"type": "string", "maxLength": 8}, plain_text),
    "list": ({"type": "array", "items": {"type": "string"}, "maxItems": 3}, st.lists(plain_text, max_size=3)),
    "object": (
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}, "c": {}},
            "required": ["b"],
        },
        st.fixed_dictionaries({"b": st.booleans()}, optional={"a": plain_text, "c": ANY_VALUE}),
    ),
}


@settings(max_examples=40, deadline=None)
@given(st.data())
@pytest.mark.parametrize("kind", GENERATED)
def test_valid_values_are_taken_compact_and_spaced(kind, data):
    schema, values = GENERATED[kind]
    tool = Tool("f", "", {"type": "object", "properties": {"v": schema}, "required": ["v"]})
    grammar = GRAMMARS.setdefault(kind, compile([tool], choice="f"))
    value = data.draw(values)
    for separators in ((",", ":"), (", ", ": ")):
        text = json.dumps({"v": value}, ensure_ascii=False, separators=separators)
        assert verdict(grammar, reply(text)), text


GRAMMARS = {}


@settings(max_examples=300, deadline=None)
@given(
    st.tuples(st.integers(-1500, 1500), st.integers(0, 3)),
    st.tuples(st.integers(-1500, 1500), st.integers(0, 3)),
    st.tuples(st.integers(-2000, 2000), st.integers(0, 4)),
    st.sampled_from([("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum")]),
    st.sampled_from(["integer", "number"]),
)
def test_bounds_of_numbers_are_exact(low, high, value, keywords, kind):
    ends = sorted((low[0] / 10 ** low[1], high[0] / 10 ** high[1]))
    schema = {"type": kind, keywords[0]: ends[0], keywords[1]: ends[1]}
    tool = Tool("f", "", {"type": "object", "properties": {"v": schema}})
    expression = re.compile(compile([tool], choice="f").regex("text"))
    number = value[0] / 10 ** value[1]
    text = format(number, f".{value[1]}f") if kind == "number" else str(value[0])
    if text.startswith("-0") and float(text) == 0:
        return
    valid = Draft202012Validator(schema).is_valid(json.loads(text))
    assert (expression.fullmatch(reply(f'{{"v": {text}}}')) is not None) is valid
