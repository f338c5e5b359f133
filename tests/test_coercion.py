"""Arguments of the wrong type: what has one meaning is read, the rest stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes import Tool, ToolCall, coerce, validate

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "days": {"type": "integer"},
        "share": {"type": "number"},
        "on": {"type": "boolean"},
        "phone": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "integer"}},
        "place": {"$ref": "#/$defs/place"},
        "unit": {"enum": ["Celsius", "kelvin"]},
        "note": {"type": ["string", "null"]},
        "either": {"type": ["integer", "boolean"]},
        "any": {},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
        "anchor": {"$ref": "#place"},
    },
    "additionalProperties": {"type": "integer"},
    "$defs": {"place": {"type": "object", "properties": {"zip": {"type": "string"}}}},
}
TOOL = Tool("f", "", SCHEMA)


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        ("days", "3", 3),
        ("days", " -3 ", -3),
        ("days", 3.0, 3),
        ("share", "0.5", 0.5),
        ("share", "2", 2),
        ("on", "True", True),
        ("on", "false", False),
        ("phone", 5550100, "5550100"),
        ("tags", "[1, 2]", [1, 2]),
        ("tags", ["1", 2], [1, 2]),
        ("place", '{"zip": 150}', {"zip": "150"}),
        ("place", {"zip": 150}, {"zip": "150"}),
        ("unit", "celsius", "Celsius"),
        ("other", "7", 7),
        ("maybe", "7", 7),
    ],
)
def test_what_has_one_meaning_is_read(key: str, before: Any, after: Any) -> None:
    call, changes = coerce(ToolCall("f", {key: before}), TOOL)
    assert repr(call.arguments) == repr({key: after})
    assert changes and all(change.startswith(f"$.{key}") for change in changes)
    assert validate(call, TOOL) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("days", "three"),
        ("days", 3.5),
        ("days", True),
        ("days", None),
        ("days", "3.5"),
        ("share", "half"),
        ("on", 1),
        ("on", "yes"),
        ("tags", "1, 2"),
        ("tags", 1),
        ("place", "[]"),
        ("unit", "rankine"),
        ("note", "null"),
        ("note", None),
        ("phone", None),
        ("phone", ["5"]),
        ("either", "x"),
        ("any", "3"),
        ("days", "007"),
        ("days", "0\x1f"),
        ("days", "+3"),
        ("share", "9007199254740993.0"),
        ("share", "9" * 300 + "e99"),
        ("pair", ["3", "4"]),
        ("maybe", None),
        ("anchor", "3"),
    ],
)
def test_what_has_none_or_several_stays(key: str, value: Any) -> None:
    call = ToolCall("f", {key: value})
    assert coerce(call, TOOL) == (call, ())


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(SCHEMA["properties"])), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), JSON_VALUES))
def test_a_valid_call_stays_and_a_second_time_changes_nothing(arguments: dict[str, Any]) -> None:
    call = ToolCall("f", arguments)
    changed, changes = coerce(call, TOOL)
    if validate(call, TOOL) == []:
        assert changed.arguments == arguments
    assert len(validate(changed, TOOL)) <= len(validate(call, TOOL))
    assert coerce(changed, TOOL) == (changed, ())
    assert bool(changes) == (repr(changed.arguments) != repr(arguments))
