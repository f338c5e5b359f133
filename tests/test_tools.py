"""Tool declarations in every shape, and back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from hermes import Skill, Tool, ToolCall, dumps, validate

SCHEMA = {
    "type": "object",
    "properties": {"z": {"type": "string"}, "a": {"type": "integer"}},
    "required": ["z"],
}
TOOL = Tool("zeta", "d", SCHEMA)
SHAPES = {
    "bare": {"name": "zeta", "description": "d", "parameters": SCHEMA},
    "OpenAI": {"type": "function", "function": {"name": "zeta", "description": "d", "parameters": SCHEMA}},
    "OpenAI, flat": {"type": "function", "name": "zeta", "description": "d", "parameters": SCHEMA, "strict": True},
    "Anthropic": {"name": "zeta", "description": "d", "input_schema": SCHEMA},
    "MCP": {"name": "zeta", "title": "Zeta", "description": "d", "inputSchema": SCHEMA, "annotations": {}},
    "ours": TOOL,
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_every_shape_reads_as_the_same_tool(shape: Any) -> None:
    assert Tool.from_any(shape) == TOOL
    assert list(Tool.from_any(shape).parameters["properties"]) == ["z", "a"]


def test_every_shape_is_written_so_that_it_reads_back() -> None:
    for written in (TOOL.to_function(), TOOL.to_openai(), TOOL.to_anthropic(), TOOL.to_mcp()):
        assert Tool.from_any(written) == TOOL


@pytest.mark.parametrize("parameters", [None, {}, True, {"type": "object"}, {"properties": {}}, "absent"])
def test_a_tool_without_parameters_takes_an_empty_object(parameters: Any) -> None:
    declaration = {"name": "ping", **({} if parameters == "absent" else {"parameters": parameters})}
    tool = Tool.from_any(declaration)
    assert tool.parameters["type"] == "object"
    assert validate(ToolCall("ping", {}), tool) == []


HOME = {
    "type": "object",
    "properties": {
        "home": {"$ref": "#/$defs/Addr"},
        "work": {"anyOf": [{"$ref": "#/$defs/Addr"}, {"type": "null"}]},
    },
    "required": ["home"],
    "$defs": {"Addr": {"type": "object", "properties": {"zip": {"type": "string"}}, "required": ["zip"]}},
}


def test_definitions_stay_with_the_schema() -> None:
    """Case C42."""
    tool = Tool.from_any({"name": "move", "parameters": HOME})
    assert tool.parameters == HOME
    for valid in ({"home": {"zip": "0150"}}, {"home": {"zip": "0150"}, "work": None}):
        assert validate(ToolCall("move", valid), tool) == []
    for invalid in ({"home": {}}, {"home": {"zip": 150}}, {"home": "x"}):
        assert validate(ToolCall("move", invalid), tool) != []


NORMALISED: dict[str, tuple[Any, Any]] = {
    "nullable (C118)": ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    "not nullable": ({"type": "string", "nullable": False}, {"type": "string"}),
    "nullable list of types": ({"type": ["string", "null"], "nullable": True}, {"type": ["string", "null"]}),
    "nullable enum": (
        {"type": "string", "enum": ["a"], "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    "nullable reference": (
        {"$ref": "#/$defs/x", "nullable": True},
        {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]},
    ),
    "true": (True, {}),
    "false": (False, {"not": {}}),
    "inside items": (
        {"type": "array", "items": {"type": "integer", "nullable": True}},
        {"type": "array", "items": {"type": ["integer", "null"]}},
    ),
    "a property called nullable": (
        {"type": "object", "properties": {"nullable": {"type": "boolean"}}},
        {"type": "object", "properties": {"nullable": {"type": "boolean"}}},
    ),
    "closed object": (
        {"type": "object", "additionalProperties": False},
        {"type": "object", "additionalProperties": False},
    ),
    "a value that looks like a schema": ({"const": {"nullable": True}}, {"const": {"nullable": True}}),
}


@pytest.mark.parametrize("case", NORMALISED.values(), ids=NORMALISED.keys())
def test_what_json_schema_does_not_know_is_rewritten(case: tuple[Any, Any]) -> None:
    given_schema, expected = case
    tool = Tool.from_any({"name": "f", "parameters": {"type": "object", "properties": {"u": given_schema}}})
    assert tool.parameters["properties"]["u"] == expected


def test_null_is_valid_where_nullable_says_so() -> None:
    schema = {"type": "object", "properties": {"u": {"type": "string", "nullable": True}}, "required": ["u"]}
    assert validate(ToolCall("f", {"u": None}), Tool.from_any({"name": "f", "parameters": schema})) == []


@pytest.mark.parametrize(
    ("extra", "verdict"), [({"additionalProperties": {}}, True), ({"additionalProperties": False}, False), ({}, True)]
)
def test_an_empty_schema_for_other_properties_is_not_false(extra: dict[str, Any], verdict: bool) -> None:
    """Case C114."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, **extra}
    tool = Tool.from_any({"name": "f", "parameters": schema})
    assert (validate(ToolCall("f", {"a": "x", "b": 1}), tool) == []) == verdict


ERRORS: dict[str, tuple[Any, str]] = {
    "no name": ({"description": "x"}, "needs a non-empty string 'name'"),
    "no object": ([], "needs a non-empty string 'name'"),
    "empty name": ({"name": ""}, "needs a non-empty string 'name'"),
    "description": ({"name": "f", "description": 3}, "'description' must be text, not 3"),
    "two schemas": ({"name": "f", "parameters": {}, "input_schema": {}}, "has parameters and input_schema"),
    "false": ({"name": "f", "parameters": False}, "'parameters' must be a JSON Schema object, not False"),
    "a list": ({"name": "f", "inputSchema": []}, "'inputSchema' must be a JSON Schema object"),
    "no object's schema": ({"name": "f", "parameters": {"type": "string"}}, "parameters.type must be 'object'"),
    "properties": ({"name": "f", "parameters": {"properties": ["a"]}}, "parameters.properties: must be an object of"),
    "property": ({"name": "f", "parameters": {"properties": {"a": "x"}}}, "parameters.properties.a: must be a schema"),
    "required": ({"name": "f", "parameters": {"required": "a"}}, "parameters.required: must be a list of property"),
    "anyOf": (
        {"name": "f", "parameters": {"properties": {"a": {"anyOf": {}}}}},
        "parameters.properties.a.anyOf: must be a list of schemas",
    ),
}


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS.keys())
def test_what_cannot_be_is_named(case: tuple[Any, str]) -> None:
    declaration, message = case
    with pytest.raises(ValueError, match="tool ") as raised:
        Tool.from_any(declaration)
    assert message in str(raised.value)


def test_a_schema_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(500):
        schema = {"type": "object", "properties": {"x": schema}}
    with pytest.raises(ValueError, match="more than 100 levels"):
        Tool.from_any({"name": "deep", "parameters": schema})


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    city: str
    title: str


class Opaque: ...


def test_a_python_function() -> None:
    def paint(
        wall: str,
        colour: Colour,
        place: Place,
        ways: list[Place],
        coats: Annotated[int, Field(ge=1)] = 2,
        mood: Literal["calm", "loud"] | None = None,
    ) -> str:
        """Paint a wall.

        Slowly.

        Args:
            wall: Which wall,
                by name.
            colour: Of the paint.
        """
        return wall

    tool = Tool.from_any(paint)
    assert (tool.name, tool.description) == ("paint", "Paint a wall. Slowly.")
    parameters = tool.parameters
    assert list(parameters) == ["type", "properties", "required", "$defs"]
    assert parameters["required"] == ["wall", "colour", "place", "ways"]
    assert parameters["properties"]["wall"] == {"type": "string", "description": "Which wall, by name."}
    assert parameters["properties"]["coats"] == {"minimum": 1, "type": "integer", "default": 2}
    assert parameters["properties"]["place"]["properties"] == {"city": {"type": "string"}, "title": {"type": "string"}}
    assert parameters["properties"]["ways"] == {"type": "array", "items": {"$ref": "#/$defs/Place"}}
    good = {"wall": "north", "colour": "red", "place": {"city": "Oslo", "title": "x"}, "ways": [], "mood": None}
    assert validate(ToolCall("paint", good), tool) == []
    assert validate(ToolCall("paint", {**good, "colour": "green"}), tool) != []
    assert validate(ToolCall("paint", {**good, "coats": 0}), tool) != []
    assert validate(ToolCall("paint", {**good, "ways": [{"city": 3}]}), tool) != []


def test_functions_that_cannot_be_tools() -> None:
    def method_alone(self, a: int) -> None: ...

    def untyped(a) -> None: ...  # type: ignore[no-untyped-def]

    def many(*a: int) -> None: ...

    def odd(a: object, b: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

    def opaque(a: Opaque) -> None: ...

    for function, message in (
        (method_alone, "'self' needs a type hint"),
        (untyped, "'a' needs a type hint"),
        (many, "cannot be passed by name"),
        (odd, "type hints cannot be read"),
        (max, "'max': its signature or type hints cannot be read"),
        (opaque, "has no JSON Schema"),
        (lambda: None, "needs a name"),
    ):
        with pytest.raises(ValueError, match=message):
            Tool.from_any(function)


WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1).filter(
    lambda word: "---" not in word and word.strip() == word and "\ufeff" not in word
)


@given(WORD, WORD, st.lists(WORD).map("\n".join))
def test_a_skill_is_written_so_that_it_reads_back(name: str, description: str, body: str) -> None:
    skill = Skill(name, description, body)
    assert Skill.parse(skill.to_text()) == skill


def test_a_skills_text_is_a_tool_that_takes_what_its_instructions_say() -> None:
    tool = Tool.from_any("---\nname: spin\ndescription: Spins.\n---\n\nTurn it.")
    assert (tool.name, tool.description, tool.parameters) == ("spin", "Spins.", {"type": "object"})


@pytest.mark.parametrize("description", ["", "a --- b", "two\nlines"])
def test_a_skill_that_its_format_cannot_hold_is_refused(description: str) -> None:
    with pytest.raises(ValueError, match=r"skill 'x': .* cannot stand in the header"):
        Skill("x", description, "body").to_text()


def test_defaults_keep_what_looks_like_a_keyword_and_infinity_is_left_out() -> None:
    def f(meta: dict[str, str] = {"title": "x"}, limit: float = float("inf")) -> None: ...  # noqa: B006

    properties = Tool.from_any(f).parameters["properties"]
    assert "default" not in properties["limit"]
    dumps(Tool.from_any(f).to_function())


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"type": "object", "properties": {"c": {"$ref": "#"}}}, "deep"),
        ({"properties": {"a": {"multipleOf": 0.5}}}, {"a": 10**400}),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, {"a": 1}),
        ({"properties": {"a": {"$ref": "#/properties/b/enum/0"}, "b": {"enum": ["x"]}}}, {"a": 1}),
        ({"properties": {"a": {"default": float("inf")}}}, {"a": 1}),
    ],
)
def test_what_cannot_be_validated_is_a_problem_and_no_crash(schema: dict[str, Any], arguments: Any) -> None:
    if arguments == "deep":
        arguments = {}
        for _ in range(600):
            arguments = {"c": arguments}
    (problem,) = validate(ToolCall("t", arguments), Tool("t", "", schema))
    assert problem.startswith("$: ")
