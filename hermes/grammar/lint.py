"""What the grammars of some tools do not enforce."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hermes.grammar.bounds import Bounds, Finding
from hermes.grammar.schema import ToolSchema
from hermes.grammar.strings import writer_for
from hermes.record import Tool

ENGINES = ("lark", "regex", "gbnf", "structural_tag")


def lint(tools: Sequence[Tool], engines: Collection[str] = ENGINES) -> list[Finding]:
    """Every keyword of the tools' schemas that a grammar does not enforce, so that calls must be validated for it.

    In the order of the tools, within a tool in that of the JSON Pointers. All engines are written from one form,
    so what one does not enforce, none does.

    Raises:
        ValueError: an unknown engine.
    """
    unknown = sorted(set(engines) - set(ENGINES))
    if unknown:
        raise ValueError(f"engine {unknown[0]!r}: must be one of {', '.join(ENGINES)}")
    return [finding for tool in tools for finding in _findings(tool)] if engines else []


def _findings(tool: Tool) -> list[Finding]:
    schema = ToolSchema(tool, writer_for(), Bounds(), "tool")
    refusal = []
    try:
        schema.arguments()
    except ValueError as error:
        refusal = [Finding(tool.name, "", "", "all", f"no grammar: {error}")]
    return refusal + sorted(schema.findings.values(), key=lambda each: (each.pointer, each.keyword))
