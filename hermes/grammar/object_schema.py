"""Objects as JSON Schema describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.grammar.form import NOTHING, Form, shared
from hermes.grammar.keywords import counts, mapping_in, names_in, note_ignored
from hermes.grammar.objects import obj, pair
from hermes.grammar.resolve import Nodes

if TYPE_CHECKING:
    from hermes.grammar.schema import ToolSchema

IGNORED = (
    "patternProperties",
    "propertyNames",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
)


class ObjectSchema:
    """An object that meets all of `nodes`."""

    def __init__(self, schema: ToolSchema, nodes: Nodes) -> None:
        self.schema = schema
        self.nodes = nodes
        self.declared = {id(node): mapping_in(node, "properties", schema.note) for node in nodes}
        self.required = [name for node in nodes for name in names_in(node, "required", schema.note)]

    def form(self, level: int) -> Form:
        """Every such object."""
        note_ignored(self.nodes, self.schema.note, IGNORED)
        names = list(dict.fromkeys([*(name for each in self.declared.values() for name in each), *self.required]))
        strings, label = self.schema.strings, self.schema.label
        pairs: list[tuple[Form, bool]] = []
        for name in names:
            value = self.schema.form(self._nodes_of(name), level + 1)
            form = shared(f"{label}-property", pair(strings.quoted(name), value))
            pairs.append((form, name in self.required))
        extra: Form = NOTHING
        if not self._closed():
            key = strings.key_outside(names) if names else strings.plain_key
            extra = shared(f"{label}-extra", pair(key, self.schema.form(self._nodes_of(None), level + 1)))
        self._note_counts(len([form for form, _ in pairs if form != NOTHING]), extra)
        return obj(pairs, extra, self.schema.bounds.max_items)

    def _closed(self) -> bool:
        """Whether only declared properties may be written: where nothing is said, `properties` close an object."""
        said = [node for node in self.nodes if node.has("additionalProperties")]
        silent = [node for node in self.nodes if node.has("properties") and node not in said]
        return bool(silent) or any(node.schema["additionalProperties"] is False for node in said)

    def _nodes_of(self, name: str | None) -> Nodes:
        """What the value of a property must meet; None is any that no schema declares."""
        found = []
        for node in self.nodes:
            if name is not None and name in self.declared[id(node)]:
                found.append(node.at("properties", name))
            elif node.has("additionalProperties"):
                found.append(node.at("additionalProperties"))
        return tuple(found)

    def _note_counts(self, most: int, extra: Form) -> None:
        note = self.schema.note
        if any(count > len(set(self.required)) for count in counts(self.nodes, note, "minProperties")):
            note_ignored(self.nodes, note, ["minProperties"])
        if any(count < most or extra != NOTHING for count in counts(self.nodes, note, "maxProperties")):
            note_ignored(self.nodes, note, ["maxProperties"])
