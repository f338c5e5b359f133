"""Schemas taken apart: references followed, combinations multiplied out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any
from urllib.parse import unquote

MAX_ALTERNATIVES = 64
"""Combinations of `anyOf` branches that one schema may have."""

Note = Callable[["Node", str, str], None]
"""Takes down that a node's keyword is not enforced, and what happens instead."""


@dataclass(frozen=True, slots=True)
class Node:
    """A schema, where it stands, and which references led into it how often."""

    schema: Any
    pointer: str = ""
    entered: tuple[tuple[str, int], ...] = ()

    def at(self, *path: str | int) -> Node:
        """The schema that stands at `path` inside this one."""
        value, pointer = self.schema, self.pointer
        for step in path:
            value = value[step]
            pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
        return Node(value, pointer, self.entered)

    def has(self, keyword: str) -> bool:
        """Whether the schema is an object that holds `keyword`."""
        return isinstance(self.schema, Mapping) and keyword in self.schema


Nodes = tuple[Node, ...]
"""Schemas that all hold."""

NULL = {"type": "null"}


class Resolver:
    """Multiplies one tool's schemas out."""

    def __init__(self, root: Any, depth: int, note: Note) -> None:
        self.root = root
        self.depth = depth
        self.note = note
        self.impossible: str | None = None
        """Where a schema was first found that no value can meet."""

    def alternatives(self, nodes: Nodes) -> list[Nodes]:
        """Where all of `nodes` hold: the ways to do so, each as nodes whose own keywords all hold."""
        return self._product([self._expand(node) for node in nodes], nodes[0])

    def _product(self, factors: list[list[Nodes]], node: Node) -> list[Nodes]:
        every = islice(product(*factors), MAX_ALTERNATIVES + 1)
        combined = [tuple(each for part in parts for each in part) for parts in every]
        if len(combined) > MAX_ALTERNATIVES:
            self.note(node, "anyOf", f"only the first {MAX_ALTERNATIVES} combinations can be written")
        return combined[:MAX_ALTERNATIVES]

    def _expand(self, node: Node) -> list[Nodes]:
        schema = node.schema
        if schema is True:
            return [()]
        if schema is False:
            return self._nothing(node)
        if not isinstance(schema, Mapping):
            self.note(node, "", "this is no schema: any value is taken")
            return [()]
        factors: list[list[Nodes]] = [[(node,)]]
        if "$ref" in schema:
            factors.append(self._reference(node))
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(keyword)
            if branches is None:
                continue
            if not isinstance(branches, list) or not branches:
                self.note(node, keyword, "ignored: it must be a list of schemas")
                continue
            parts = [self._expand(node.at(keyword, index)) for index in range(len(branches))]
            factors += parts if keyword == "allOf" else [[nodes for part in parts for nodes in part]]
            if keyword == "oneOf" and len(branches) > 1:
                self.note(node, keyword, "read as anyOf: more than one branch may hold")
        result = self._product(factors, node)
        if schema.get("nullable") is True:
            result.append((Node(NULL, node.pointer, node.entered),))
        return result or self._nothing(node)

    def _nothing(self, node: Node) -> list[Nodes]:
        self.impossible = self.impossible or node.pointer
        return []

    def _reference(self, node: Node) -> list[Nodes]:
        reference = node.schema["$ref"]
        target = self._target(reference)
        if target is None:
            self.note(node, "$ref", f"{reference!r} is not in this schema: any value is taken")
            return [()]
        entered = dict(node.entered)
        times = entered[target.pointer] = entered.get(target.pointer, 0) + 1
        if times > self.depth:
            return self._nothing(target)
        return self._expand(Node(target.schema, target.pointer, tuple(sorted(entered.items()))))

    def _target(self, reference: Any) -> Node | None:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        value, pointer = self.root, unquote(reference[1:])
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, Mapping) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                return None
        return Node(value, pointer)
