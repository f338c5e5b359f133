"""JSON Schema to form: the arguments that a tool takes.

A form may be narrower than its schema, never wider, but for the keywords that the notes name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hermes.grammar.bounds import Bounds, Finding
from hermes.grammar.form import NOTHING, Form, Text, choice, shared
from hermes.grammar.keywords import (
    TYPE_OF,
    note_ignored,
    note_unknown,
    number_bounds,
    size,
    types_of,
)
from hermes.grammar.numbers import integer, number
from hermes.grammar.object_schema import ObjectSchema
from hermes.grammar.objects import array
from hermes.grammar.patterns import UnsupportedError, bounded, format_form, pattern
from hermes.grammar.regex import write as write_regex
from hermes.grammar.resolve import Node, Nodes, Resolver
from hermes.grammar.strings import Strings
from hermes.grammar.values import NUMBER, anything, equal, exactly, is_of_type
from hermes.record import Tool

MAX_NESTING = 32
"""Levels of declared objects and arrays."""


class ToolSchema:
    """Reads the schema of one tool's arguments."""

    def __init__(self, tool: Tool, strings: Strings, bounds: Bounds, label: str) -> None:
        self.tool = tool
        self.strings = strings
        self.bounds = bounds
        self.label = label
        self.findings: dict[tuple[str, str], Finding] = {}
        self.resolver = Resolver(tool.parameters, bounds.depth, self.note)
        self.known: dict[Nodes, Form] = {}

    def note(self, node: Node, keyword: str, instead: str) -> None:
        """Take down that `keyword` is not enforced."""
        finding = Finding(self.tool.name, node.pointer, keyword, "all", instead)
        self.findings.setdefault((node.pointer, keyword), finding)

    def arguments(self) -> Form:
        """Every arguments object that the tool takes.

        Raises:
            ValueError: there is none, or the schema nests too deep; the message names the tool and the place.
        """
        if not self.tool.parameters:
            return Text("{}")
        root = Node(self.tool.parameters)
        try:
            form = self._arguments(root)
        except RecursionError as error:
            raise ValueError(f"tool {self.tool.name!r}: the schema nests too deep") from error
        if form == NOTHING:
            where = self.resolver.impossible or ""
            raise ValueError(f"tool {self.tool.name!r}: no arguments can meet the schema at '#{where}'")
        return shared(f"{self.label}-arguments", form)

    def _arguments(self, root: Node) -> Form:
        stated = root.schema.get("type")
        types = stated if isinstance(stated, list) else [stated]
        if stated is not None and "object" not in types:
            self.note(root, "type", "arguments are always an object: any object is taken")
            note_ignored((root,), self.note, sorted(set(root.schema) - {"type"}))
            return ObjectSchema(self, ()).form(0)
        return self.form((root, Node({"type": "object"}, "/")), 0)

    def form(self, nodes: Nodes, level: int) -> Form:
        """Every value that meets all of `nodes`."""
        if level > MAX_NESTING:
            raise ValueError(
                f"tool {self.tool.name!r}: the schema at '#{nodes[0].pointer}' nests deeper than {MAX_NESTING} levels"
            )
        nodes = tuple(node for node in nodes if node.schema is not True)
        if not nodes:
            return anything(self.strings, self.bounds)
        key = tuple(Node(None, node.pointer, node.entered) for node in nodes)
        if key not in self.known:
            options = [self._plain(alternative, level) for alternative in self.resolver.alternatives(nodes)]
            form = choice(*options)
            if form == NOTHING:
                self.resolver.impossible = self.resolver.impossible or nodes[0].pointer
            self.known[key] = shared(f"{self.label}-{len(self.known) + 1}", form)
        return self.known[key]

    def _plain(self, nodes: Nodes, level: int) -> Form:
        """Every value that meets the nodes' own keywords."""
        note_unknown(nodes, self.note)
        if any(node.has("enum") or node.has("const") for node in nodes):
            return self._listed(nodes, level)
        types = types_of(nodes, self.note)
        if not nodes or (len(types) == 6 and not any(set(node.schema) & {"type"} for node in nodes)):
            return anything(self.strings, self.bounds)
        if types & {"integer", "number"} and "string" not in types:
            note_ignored(nodes, self.note, ["format"])
        build: dict[str, Callable[[Nodes, int], Form]] = {
            "null": lambda nodes, level: Text("null"),
            "boolean": lambda nodes, level: choice("true", "false"),
            "integer": self._integer,
            "number": self._number,
            "string": self._string,
            "array": self._array,
            "object": lambda nodes, level: ObjectSchema(self, nodes).form(level),
        }
        return choice(*(build[kind](nodes, level) for kind in build if kind in types))

    def _listed(self, nodes: Nodes, level: int) -> Form:
        """The values that `enum` and `const` leave."""
        values: list[Any] | None = None
        for node in nodes:
            for keyword in ("enum", "const"):
                if node.has(keyword):
                    given = node.schema[keyword] if keyword == "enum" else [node.schema[keyword]]
                    if not isinstance(given, list):
                        self.note(node, keyword, "ignored: it must be a list of values")
                        continue
                    if values is None:
                        values = list(given)
                    else:
                        values = [value for value in values if any(equal(value, each) for each in given)]
        rest = tuple(
            Node({k: v for k, v in node.schema.items() if k not in ("enum", "const")}, node.pointer, node.entered)
            for node in nodes
        )
        if values is None:
            return self._plain(rest, level)
        if any(node.has("type") for node in rest):
            types = types_of(rest, self.note)
            values = [value for value in values if is_of_type(value, types)]
        forms = [(value, exactly(self.strings, value)) for value in values]
        return choice(*(form for value, form in forms if self._meets(value, rest, level)))

    def _meets(self, value: Any, nodes: Nodes, level: int) -> bool:
        """Whether a listed value meets the other keywords too."""
        limits = tuple(node for node in nodes if TYPE_OF.keys() & set(node.schema))
        if not limits:
            return True
        form = self._plain(nodes, level)
        if form == NOTHING:
            return False
        written = json.dumps(value, ensure_ascii=False)
        spellings = (written, self.strings.escaped(written))
        expression = re.compile(write_regex(form))
        return any(expression.fullmatch(spelling) for spelling in spellings)

    def _integer(self, nodes: Nodes, level: int) -> Form:
        low, high = number_bounds(nodes, self.note)
        for node in nodes:
            if node.has("multipleOf") and node.schema["multipleOf"] != 1:
                self.note(node, "multipleOf", "ignored")
        return shared("integer", integer(low, high)) if low is high is None else integer(low, high)

    def _number(self, nodes: Nodes, level: int) -> Form:
        low, high = number_bounds(nodes, self.note)
        note_ignored(nodes, self.note, ["multipleOf"])
        return NUMBER if low is high is None else number(low, high)

    def _string(self, nodes: Nodes, level: int) -> Form:
        note_ignored(nodes, self.note, ["contentEncoding", "contentMediaType", "contentSchema"])
        shape = self._shape(nodes)
        low, high = size(nodes, self.note, "Length", self.bounds.max_string)
        if shape is None:
            return NOTHING if high is not None and high < low else self.strings.free(low, high)
        fitted = bounded(shape, low, high)
        if fitted is None:
            note_ignored(nodes, self.note, ["minLength", "maxLength"], "ignored beside pattern or format")
        return self.strings.spelled(shape if fitted is None else fitted)

    def _shape(self, nodes: Nodes) -> Form | None:
        """What `pattern` or `format` says, the first of them that can be followed."""
        found: Form | None = None
        for keyword in ("pattern", "format"):
            for node in nodes:
                value = node.schema.get(keyword)
                if value is None:
                    continue
                form = _read(keyword, value)
                if form is None:
                    self.note(node, keyword, f"{value!r} cannot be followed: ignored")
                elif found is not None and form != found:
                    self.note(node, keyword, "ignored beside another pattern or format")
                else:
                    found = form
        return found

    def _array(self, nodes: Nodes, level: int) -> Form:
        note_ignored(nodes, self.note, ["uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"])
        low, high = size(nodes, self.note, "Items", self.bounds.max_items)
        if high is not None and high < low:
            return NOTHING
        longest = max((len(_prefix(node)) for node in nodes), default=0)
        prefix = [self._item(nodes, index, level) for index in range(longest)]
        return array(prefix, self._item(nodes, longest, level), low, high)

    def _item(self, nodes: Nodes, index: int, level: int) -> Form:
        """The value that an array may hold at `index`."""
        found: list[Node] = []
        for node in nodes:
            prefix = _prefix(node)
            listed = isinstance(node.schema.get("items"), list)
            rest = "additionalItems" if listed else "items"
            if index < len(prefix):
                found.append(node.at("items" if listed else "prefixItems", index))
            elif node.has(rest):
                found.append(node.at(rest))
        return self.form(tuple(found), level + 1)


def _prefix(node: Node) -> list[Any]:
    for keyword in ("prefixItems", "items"):
        value = node.schema.get(keyword)
        if isinstance(value, list):
            return value
    return []


def _read(keyword: str, value: Any) -> Form | None:
    if not isinstance(value, str):
        return None
    if keyword == "format":
        return format_form(value)
    try:
        return pattern(value)
    except UnsupportedError:
        return None
