"""Arguments: what each JSON Schema lets through."""

import re

import pytest
from test_grammar_engines import verdict

from hermes.grammar import compile, lint
from hermes.record import Tool


def reply(arguments):
    return f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'


def judge(schema, arguments):
    """Verdict about the arguments of a call."""
    return verdict(compile([Tool("f", "", schema)], choice="f"), reply(arguments))


def judge_value(schema, value):
    return judge({"type": "object", "properties": {"v": schema}, "required": ["v"]}, f'{{"v": {value}}}')


def findings(schema):
    tool = Tool("f", "", {"type": "object", "properties": {"v": schema}, "required": ["v"]})
    return [each.keyword for each in lint([tool])]


RECURSIVE = {
    "$defs": {
        "n": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}},
            "required": ["v", "next"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/n",
}
NUMBERS = {"type": "object", "properties": {"to": {"type": "integer"}, "from": {"type": "integer"}}}

OBJECTS = [
    ({"type": "object", "properties": {}}, ["{}"], ['{"a": 1}']),
    ({"type": "object"}, ["{}", '{"a": [1, {"b": 2}]}'], ["[]"]),
    ({}, ["{}"], []),
    (None, ["{}"], []),
    ({"type": "object", "properties": {}, "additionalProperties": False}, ["{}"], ['{"a": 1}']),
    ({"type": "object", "required": ["key"]}, ['{"key": 1}', '{"key": 1, "more": 2}'], ["{}"]),
    (
        {"type": "object", "properties": {"count": {"type": "integer"}}, "additionalProperties": True},
        ['{"count": 4}', '{"other": "x"}', "{}", '{"count": 4, "coun": 1, "counts": null, "c": 0}', '{"": 1}'],
        ['{"count": "many"}', '{"c\\u006funt": "many"}', '{"count": 4, "count": "many"}', '{"a": 1, "count": "many"}'],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
        ['{"a": "x", "b": 1}', '{"b": 1}'],
        ['{"b": "x"}'],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {}},
        ['{"a": "x", "b": 1}'],
        ['{"a": 1}'],
    ),
    ({"type": "object", "properties": {"a": {"type": "string"}}}, ['{"a": "x"}'], ['{"a": "x", "b": 1}', '{"a": 1}']),
    (
        {
            "type": "object",
            "properties": {"field": {"type": "string"}, "val": {"description": "whatever fits"}},
            "required": ["field", "val"],
        },
        ['{"field": "x", "val": 1}', '{"field": "x", "val": null}', '{"field": "x", "val": [{"k": "v"}]}'],
        ['{"field": "x"}'],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"const": 7}, "b": {"enum": [True]}, "c": {"const": None}},
            "required": ["a", "b", "c"],
        },
        ['{"a": 7, "b": true, "c": null}', '{"c":null,"a":7,"b":true}'],
        ['{"a": 7, "b": True, "c": None}', '{"a": 7, "b": 1, "c": null}', '{"a": 7, "b": true}'],
    ),
    (
        RECURSIVE,
        ['{"v": 1, "next": {"v": 2, "next": null}}', '{"next": null, "v": 1}'],
        ['{"v": 1}', '{"v": 1, "next": 2}'],
    ),
    (
        NUMBERS,
        ['{"to": 9, "from": 1}', '{"from": 1, "to": 9}', '{"from":1}', "{}"],
        ['{"to": 1, "to": 2}', '{"to": 1,}'],
    ),
    (
        {
            "type": "object",
            "properties": {
                "m": {"type": "string", "pattern": "^\\d{4}-\\d{2}$"},
                "u": {"type": "string", "pattern": "^(https:\\/\\/)?ex\\.org\\/[\\w-]+$"},
            },
        },
        ['{"m": "2024-05"}', '{"u": "https://ex.org/a-b"}', '{"u": "https:\\/\\/ex.org\\/a"}'],
        ['{"m": "24-05"}', '{"u": "ex.com/a"}', '{"m": "2024-055"}'],
    ),
    (
        {"type": "object", "properties": {"u": {"type": "string", "nullable": True}}, "required": ["u"]},
        ['{"u": null}', '{"u": "x"}'],
        ['{"u": 1}'],
    ),
    (
        {"type": "object", "properties": {name: {"type": "null"} for name in "abcde"}, "required": ["b", "d"]},
        ['{"b": null, "d": null}', '{"a": null, "b": null, "c": null, "d": null, "e": null}'],
        ['{"d": null, "b": null}', '{"a": null, "b": null}'],
    ),
    (
        {"type": "object", "properties": {name: {"type": "null"} for name in "abcde"}},
        ["{}", '{"c": null}', '{"a": null, "e": null}', '{"d": null,"e": null}'],
        ['{"e": null, "a": null}', '{"a": null "b": null}'],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        ['{"a": null}', '{"b": null}', '{"b": null, "a": null}'],
        ["{}"],
    ),
    (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"a": {"minimum": 3}, "b": {"type": "null"}}},
            ]
        },
        ['{"a": 3}', '{"a": 12, "b": null}'],
        ['{"a": 2}', '{"b": null}'],
    ),
    ({"type": "object", "properties": {"a": False, "b": True}}, ["{}", '{"b": {}}'], ['{"a": 1}']),
]


@pytest.mark.parametrize(("schema", "accepted", "refused"), OBJECTS)
def test_objects(schema, accepted, refused):
    assert [judge(schema, each) for each in accepted] == [True] * len(accepted)
    assert [judge(schema, each) for each in refused] == [False] * len(refused)


VALUES = [
    (
        {"enum": ["https://example.org/a", "C:\\x", '5" disk', "it's", "Zürich"]},
        ['"https://example.org/a"', '"https:\\/\\/example.org/a"', '"C:\\\\x"', '"5\\" disk"', '"it\'s"', '"Zürich"'],
        ['"https://example.org/b"', '"5 disk"'],
    ),
    (
        {"enum": [1, "a", [1, {"k": None}]], "type": ["string", "array"]},
        ['"a"', '[1,{"k":null}]', '[1, {"k": null}]'],
        ["1"],
    ),
    ({"enum": ["a", "abc", "a<b"], "type": "string", "minLength": 2, "maxLength": 20}, ['"abc"', '"a<b"'], ['"a"']),
    ({"enum": [1, 5, 9], "minimum": 3}, ["5", "9"], ["1"]),
    ({"const": 1, "enum": [1.0, 2]}, ["1.0"], ["2", "true"]),
    (
        {"type": "string", "pattern": "^[A-F]+$", "minLength": 2, "maxLength": 4},
        ['"AB"', '"FADE"'],
        ['"A"', '"FACED"', '"ab"'],
    ),
    ({"type": "string", "minLength": 1}, ['"a"', '"<"', '"\\n"'], ['""', '"</tool_call>"']),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"é😀\\u00e9"'], ['"a"', '"abcd"']),
    ({"type": "string", "maxLength": 20}, ['"\\u003c/tool_call>"', '""'], ['"</tool_call>"']),
    ({"type": "string", "pattern": "b+"}, ['"abc"', '"b"', '"a\\nb \\"x"'], ['"ac"', '"</tool_call>b"']),
    ({"type": "string", "pattern": "^a$|^b"}, ['"a"', '"bcd"'], ['"ab"', '"cb"']),
    (
        {"type": "string", "pattern": "^(?:x|y)?[^\\s\\d]$"},
        ['"xa"', '"ü"', '"y\\""'],
        ['"x "', '"x1"', '"x\u00a0"', '"x\u0663"'],
    ),
    ({"type": "string", "pattern": "^.\\W$"}, ['"a-"', '"\\\\ "'], ['"aé"', '"\\n-"']),
    ({"type": "string", "pattern": "^<[a-z]+>$"}, ['"<b>"'], ['"b"']),
    (
        {"type": "string", "format": "date"},
        ['"2024-02-29"', '"2023-12-31"'],
        ['"2023-02-29"', '"2023-13-01"', '"2023-04-31"'],
    ),
    (
        {"type": "string", "format": "date-time"},
        ['"2024-02-29T10:00:00Z"', '"2024-01-01T10:00:00.5+01:00"'],
        ['"2024-01-01"'],
    ),
    ({"type": "string", "format": "time"}, ['"23:59:59Z"'], ['"24:00:00Z"', '"10:00"']),
    ({"type": "string", "format": "uuid"}, ['"123e4567-e89b-12d3-a456-426614174000"'], ['"123e4567"']),
    ({"type": "string", "format": "ipv4"}, ['"192.168.0.1"'], ['"256.1.1.1"', '"1.2.3"']),
    ({"type": "string", "format": "email"}, ['"a.b@c-d.org"'], ['"a@"', '"@b"']),
    ({"type": "string"}, ['"\\u0000\\ud7ff\\/\x7f\u2028"'], ['"\\ud800"', '"\x00"', '"\\x"', '"a', "'a'"]),
    ({"type": "integer"}, ["-5", "0", "12"], ["01", "1.5", "+1", "", "1e2"]),
    ({"type": "number", "minimum": 0}, ["0", "0.5", "100"], ["-1", "-0.1", ".5"]),
    ({"type": "number"}, ["1", "-2.50", "1e5", "1.5E-7"], ["1.", "NaN", "Infinity", "00"]),
    ({"type": "integer", "minimum": 1, "exclusiveMaximum": 8}, ["1", "7"], ["0", "8", "-1", "10"]),
    ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, ["4"], ["3"]),
    ({"type": "number", "minimum": 0.5, "maximum": 1}, ["0.5", "0.75", "1", "1.0"], ["0.4", "0", "1.1", "1.01"]),
    (
        {"type": "number", "exclusiveMinimum": -1, "exclusiveMaximum": 1},
        ["0", "-0.9", "0.99"],
        ["1", "-1", "1.0", "-1.00"],
    ),
    ({"type": "number", "exclusiveMaximum": 5}, ["4.5", "-100"], ["5", "4.99999999999999999999"]),
    ({"type": ["integer", "null"]}, ["1", "null"], ['"1"', "true"]),
    ({"type": "boolean"}, ["true", "false"], ["True", "1"]),
    (
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
        ["[1]", "[1, 2]", "[1,2]"],
        ["[]", "[1, 2, 3]", "[1,]"],
    ),
    (
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}], "items": False},
        ["[]", "[1]", "[1, null]"],
        ["[null]", "[1, null, 1]"],
    ),
    (
        {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}, "minItems": 2},
        ["[1, null]", "[1, null, null]"],
        ["[1]", "[null, null]"],
    ),
    ({"type": "array", "items": False}, ["[]"], ["[1]"]),
    ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
    ({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}, ["1", '"a"'], ['"ab"', "null"]),
    ({"anyOf": [{"type": "integer"}, False]}, ["1"], ["null"]),
    ({"minimum": 3}, ["3"], ["2"]),
    ({"items": {"type": "null"}}, ["[null]"], ["[1]"]),
    ({"type": ["number", "integer"]}, ["1", "1.5"], ["null"]),
    ({"allOf": [{"type": "number"}, {"type": "integer"}]}, ["1"], ["1.5"]),
    ({"$ref": "#/properties/v/definitions/x", "definitions": {"x": {"type": "null"}}}, ["null"], ["1"]),
    ({"type": "string", "format": "phone"}, ['"+1"'], ["1"]),
    ({"type": "odd", "minLength": -1}, ['"x"'], []),
]


@pytest.mark.parametrize(("schema", "accepted", "refused"), VALUES)
def test_values(schema, accepted, refused):
    assert [judge_value(schema, each) for each in accepted] == [True] * len(accepted)
    assert [judge_value(schema, each) for each in refused] == [False] * len(refused)


@pytest.mark.parametrize(
    ("schema", "keywords"),
    [
        ({"type": "string", "pattern": "^[A-F]+$", "minLength": 2, "maxLength": 4}, []),
        ({"type": "string", "pattern": "a", "maxLength": 4}, ["maxLength"]),
        ({"type": "string", "pattern": "a(?!b)"}, ["pattern"]),
        ({"type": "string", "pattern": "(a)\\1"}, ["pattern"]),
        ({"type": "string", "pattern": "["}, ["pattern"]),
        ({"type": "string", "pattern": "a\\bb"}, ["pattern"]),
        ({"type": "string", "pattern": "(?i)a"}, ["pattern"]),
        ({"type": "string", "pattern": 5}, ["pattern"]),
        ({"type": "string", "format": "phone"}, ["format"]),
        ({"type": "string", "format": "date"}, []),
        ({"type": "string", "format": "date", "pattern": "^2"}, ["format"]),
        ({"type": "integer", "format": "int32"}, ["format"]),
        ({"type": "integer", "multipleOf": 1}, []),
        ({"type": "integer", "minimum": "a"}, ["minimum"]),
        ({"type": "odd", "minLength": -1}, ["minLength", "type"]),
        ({"type": "integer", "minLength": 3}, []),
        ({"type": "array", "contains": {}, "unevaluatedItems": False}, ["contains", "unevaluatedItems"]),
        ({"type": "object", "patternProperties": {}, "propertyNames": {}}, ["patternProperties", "propertyNames"]),
        ({"type": "object", "properties": {"a": {}}, "required": True}, ["required"]),
        ({"type": "object", "properties": []}, ["properties"]),
        ({"anyOf": []}, ["anyOf"]),
        ({"enum": 5}, ["enum"]),
        (5, [""]),
        ({"$dynamicRef": "#x"}, ["$dynamicRef"]),
    ],
)
def test_findings(schema, keywords):
    assert findings(schema) == keywords


def test_an_impossible_schema_is_named():
    for schema in (
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"], "$defs": {"a": False}},
    ):
        with pytest.raises(ValueError, match=re.escape("tool 'f': no arguments can meet the schema at '#/$defs/a'")):
            compile([Tool("f", "", schema)])
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 1}},
        "required": ["a"],
    }
    with pytest.raises(ValueError, match="'#/properties/a'"):
        compile([Tool("f", "", schema)])


def test_500_nested_objects_are_refused():
    schema = {"type": "integer"}
    for _ in range(500):
        schema = {"type": "object", "properties": {"n": schema}, "required": ["n"]}
    with pytest.raises(ValueError, match="tool 'f'.*deeper than 32"):
        compile([Tool("f", "", schema)])
    with pytest.raises(ValueError, match="tool 'f'"):
        compile([Tool("f", "", {"allOf": [nested_all_of(2000)]})])


def nested_all_of(depth):
    schema = {"type": "object"}
    for _ in range(depth):
        schema = {"allOf": [schema]}
    return schema


def test_recursion_ends_at_the_bound():
    text = "null"
    for depth in range(1, 7):
        text = f'{{"v": {depth}, "next": {text}}}'
        assert judge(RECURSIVE, text) is (depth <= 4)


def test_a_tree_ends_in_empty_lists():
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}, "required": ["kids"]}
    assert judge(tree, '{"kids": [{"kids": []}, {"kids": [{"kids": []}]}]}')
