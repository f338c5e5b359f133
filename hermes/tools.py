"""Reading tool declarations in the shapes that people have them.

| shape | parameters stand under |
| --- | --- |
| OpenAI, `{"type": "function", "function": {…}}`, and its bare function object | `parameters` |
| Anthropic | `input_schema` |
| MCP | `inputSchema` |
| a Python function | its signature, type hints and docstring |

Schemas are kept whole (`$defs`, key order). Rewritten is only what JSON Schema does not know or what cannot be printed
in one way: OpenAPI's `nullable`, missing parameters, `true` and `false` in place of a schema.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

JSON: TypeAlias = Any

PARAMETER_KEYS = ("parameters", "input_schema", "inputSchema")

_SCHEMA_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMAS = (
    *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_MAY_BE_BOOLEAN = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems")
_VALUES = ("default", "const", "enum", "examples")
"""Hold values, in which nothing is a keyword."""
_DEEPEST = 100


def read_declaration(value: JSON) -> tuple[str, str, dict[str, JSON]]:
    """Name, description and parameters of a tool declaration in any shape but a function.

    Raises:
        ValueError: names the tool, the JSON path and what is missing or wrong.
    """
    body = value.get("function", value) if isinstance(value, Mapping) else None
    name = body.get("name") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(name, str) or not name:
        raise ValueError(f"tool {_shown(value)}: needs a non-empty string 'name'")
    description = body.get("description")
    if description is not None and not isinstance(description, str):
        raise ValueError(f"tool {name!r}: 'description' must be text, not {_shown(description)}")
    given = [key for key in PARAMETER_KEYS if body.get(key) is not None]
    if len(given) > 1:
        raise ValueError(f"tool {name!r}: has {' and '.join(given)}; one of them must go")
    parameters = body[given[0]] if given else {}
    return name, description or "", read_parameters(name, parameters, given[0] if given else PARAMETER_KEYS[0])


def read_parameters(name: str, parameters: JSON, key: str = "parameters") -> dict[str, JSON]:
    """The JSON Schema of a tool's arguments, normalised: an object's.

    Raises:
        ValueError: names the tool, the JSON path and what is wrong.
    """
    if parameters is True:
        parameters = {"type": "object"}
    if not isinstance(parameters, Mapping):
        raise ValueError(f"tool {name!r}: {key!r} must be a JSON Schema object, not {_shown(parameters)}")
    schema = _normalised(parameters, f"tool {name!r}: {key}", 0)
    if not schema:
        return {"type": "object", "properties": {}}
    if "type" not in schema and "$ref" not in schema and not any(key in schema for key in _SCHEMA_LISTS):
        schema = {"type": "object", **schema}
    if schema.get("type", "object") != "object":
        raise ValueError(f"tool {name!r}: {key}.type must be 'object', not {_shown(schema['type'])}")
    return schema


def _normalised(schema: Mapping[str, JSON], where: str, depth: int) -> dict[str, JSON]:
    """`schema` without `nullable` and without boolean schemas where an object can stand."""
    if depth > _DEEPEST:
        raise ValueError(f"{where}: nested more than {_DEEPEST} levels deep")
    result: dict[str, JSON] = {}
    for key, value in schema.items():
        path = f"{where}.{key}"
        if key in _SCHEMA_MAPS:
            if not isinstance(value, Mapping):
                raise ValueError(f"{path}: must be an object of schemas, not {_shown(value)}")
            result[key] = {name: _schema(each, f"{path}.{name}", depth) for name, each in value.items()}
        elif key in _SCHEMA_LISTS:
            if not isinstance(value, list):
                raise ValueError(f"{path}: must be a list of schemas, not {_shown(value)}")
            result[key] = [_schema(each, f"{path}[{index}]", depth) for index, each in enumerate(value)]
        elif key in _MAY_BE_BOOLEAN and isinstance(value, bool):
            result[key] = value
        elif key in _SCHEMAS:
            result[key] = _schema(value, path, depth)
        elif key == "required" and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise ValueError(f"{path}: must be a list of property names, not {_shown(value)}")
        elif key != "nullable":
            result[key] = value
    return _with_null(result) if schema.get("nullable") is True else result


def _schema(value: JSON, where: str, depth: int) -> dict[str, JSON]:
    if isinstance(value, bool):
        return {} if value else {"not": {}}
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: must be a schema, not {_shown(value)}")
    return _normalised(value, where, depth + 1)


def _with_null(schema: dict[str, JSON]) -> dict[str, JSON]:
    """`schema` that allows null too."""
    if "type" not in schema or any(key in schema for key in ("const", "not", "$ref", *_SCHEMA_LISTS)):
        return {"anyOf": [schema, {"type": "null"}]} if schema else schema
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    changed = {**schema, "type": [*types, *(() if "null" in types else ("null",))]}
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        changed["enum"] = [*schema["enum"], None]
    return changed


def _shown(value: JSON) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


def read_function(function: Callable[..., Any]) -> tuple[str, str, dict[str, JSON]]:
    """Name, description and parameters of a Python function.

    Types come from the hints (anything that pydantic has a schema for), descriptions from the docstring (Google,
    NumPy, Sphinx or Epydoc style), defaults from the signature.

    Raises:
        ValueError: a parameter without a hint, one that JSON cannot hold, or one that cannot be passed by name.
    """
    from docstring_parser import parse

    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise ValueError(f"tool {_shown(function)}: needs a name; write it as a function with def")
    # A class without a docstring would have that of its base.
    docstring = parse(inspect.cleandoc(function.__doc__ or ""))
    described = {each.arg_name: each.description or "" for each in docstring.params}
    properties: dict[str, JSON] = {}
    required: list[str] = []
    definitions: dict[str, JSON] = {}
    for parameter, hint in _hints(function, name):
        schema = _hint_schema(hint, f"tool {name!r}: parameter {parameter.name!r}")
        for title, definition in schema.pop("$defs", {}).items():
            if definitions.setdefault(title, definition) != definition:
                raise ValueError(f"tool {name!r}: two of its types are called {title!r}; rename one")
        if described.get(parameter.name) and "description" not in schema:
            schema["description"] = " ".join(described[parameter.name].split())
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        elif _is_plain(parameter.default):
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    parameters: dict[str, JSON] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    if definitions:
        parameters["$defs"] = definitions
    said = [each for each in (docstring.short_description, docstring.long_description) if each]
    return name, " ".join(" ".join(said).split()), read_parameters(name, parameters)


def _is_plain(value: JSON) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | bool | int)


def _hints(function: Callable[..., Any], name: str) -> list[tuple[inspect.Parameter, Any]]:
    """The parameters of `function` that a caller fills in, with their type hints."""
    from typing import get_type_hints

    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except Exception as error:  # Hints are evaluated: they can raise anything.
        raise ValueError(f"tool {name!r}: its signature or type hints cannot be read: {error}") from None
    found = []
    for parameter in parameters:
        if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise ValueError(f"tool {name!r}: parameter {parameter.name!r} cannot be passed by name")
        if parameter.name not in hints:
            raise ValueError(f"tool {name!r}: parameter {parameter.name!r} needs a type hint")
        found.append((parameter, hints[parameter.name]))
    return found


def _hint_schema(hint: Any, where: str) -> dict[str, JSON]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        schema: dict[str, JSON] = TypeAdapter(hint).json_schema()
    except PydanticUserError as error:
        raise ValueError(f"{where}: {_shown(hint)} has no JSON Schema: {error.message.splitlines()[0]}") from None
    cleaned = _without_titles(schema)
    assert isinstance(cleaned, dict)
    return cleaned


def _without_titles(value: JSON, names: bool = False) -> JSON:
    """Without the titles that pydantic makes from names; `names`: the keys of `value` are names, not keywords."""
    if isinstance(value, dict):
        return {
            key: each if not names and key in _VALUES else _without_titles(each, not names and key in _SCHEMA_MAPS)
            for key, each in value.items()
            if names or key != "title"
        }
    return [_without_titles(each) for each in value] if isinstance(value, list) else value
