"""Recipe files: YAML in, a checked `Recipe` out; all problems at once, an unknown key with a suggestion."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from core.errors import UserError
from core.recipe import Recipe

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100


class _Loader(yaml.SafeLoader):
    """Plain YAML, but a key that stands twice in a mapping is refused: the first would be dropped in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue
            if key in seen:
                problem = f"the key {key!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_recipe(path: Path, overrides: dict[str, str] | None = None) -> Recipe:
    """Read and check a recipe file; `overrides` maps dotted keys to YAML values and wins over the file.

    Raises:
        UserError: the file is missing, is not YAML, or has problems; all of them are listed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe; those that ship are in configs/") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    content = parse_yaml(text, str(path))
    if not isinstance(content, dict):
        raise UserError(f"{path}: a recipe is a mapping of keys to values, not {type(content).__name__}")
    for key, value in (overrides or {}).items():
        _override(content, key, value)
    try:
        return Recipe.model_validate(content)
    except ValidationError as error:
        lines = "\n".join(f"  {line}" for line in _problems(error))
        raise UserError(f"{path}: {error.error_count()} problem(s):\n{lines}") from None


def _override(content: dict[str, object], dotted: str, value: str) -> None:
    *sections, last = dotted.split(".")
    target: dict[str, object] = content
    for section in sections:
        child = target.setdefault(section, {})
        if not isinstance(child, dict):
            raise UserError(f"--set {dotted}: {section!r} is a value, not a section")
        target = child
    target[last] = parse_yaml(value, f"--set {dotted}")


def parse_yaml(text: str, where: str) -> Any:
    """The value of YAML text from `where`; a key that stands twice is refused.

    Raises:
        UserError: it is not YAML, or holds what YAML allows and Python has not, such as the 31st of February.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise UserError(f"{where}: cannot be read as YAML: nested too deeply") from None
    except (yaml.YAMLError, ValueError, OverflowError, AttributeError, KeyError) as error:
        words = str(error).replace("<unicode string>", where)
        raise UserError(f"{where}: cannot be read as YAML: {words}") from None


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "invalid_key":
            yield f"{path}: unknown key; keys are words"
        elif problem["type"] == "extra_forbidden":
            yield f"{path}: unknown key{_suggestion(problem['loc'])}"
        elif problem["type"] == "missing":
            yield f"{path}: missing"
        elif problem["type"] == "tuple_type":
            yield f"{path}: must be a list, not {_shown(problem['input'])}"
        else:
            shown = "" if isinstance(problem["input"], dict) else f", not {_shown(problem['input'])}"
            yield f"{path}: {problem['msg'].removeprefix('Value error, ')}{shown}"


def _shown(value: object) -> str:
    """`value` in short: aliases can make a value of any size out of a few lines."""
    try:
        return _SHORT.repr(value)
    except (ValueError, RecursionError):
        return f"this {type(value).__name__}"


def _suggestion(location: tuple[int | str, ...]) -> str:
    """What the unknown key at `location` was probably meant to be."""
    section: type[BaseModel] = Recipe
    for part in location[:-1]:
        annotation = section.model_fields[str(part)].annotation
        assert isinstance(annotation, type) and issubclass(annotation, BaseModel)
        section = annotation
    keys = list(section.model_fields)
    near = difflib.get_close_matches(str(location[-1]), keys, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; this section knows: {', '.join(keys)}"
