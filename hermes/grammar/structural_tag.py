"""Structural tags for XGrammar: free text until a trigger, then one of the tags."""

from __future__ import annotations

from typing import Any

from hermes.grammar import gbnf
from hermes.grammar.calls import Reply
from hermes.grammar.form import Form


def write(reply: Reply) -> dict[str, Any]:
    """`reply` as a structural tag."""
    return {"type": "structural_tag", "format": _format(reply)}


def _format(reply: Reply) -> dict[str, Any]:
    if not reply.bodies or not reply.syntax.opening or reply.opened:
        return _grammar(reply.form)
    tags = [
        {"type": "tag", "begin": reply.syntax.opening, "content": _grammar(body), "end": reply.syntax.closing}
        for body in reply.bodies
    ]
    one: dict[str, Any] = tags[0] if len(tags) == 1 else {"type": "or", "elements": tags}
    next_one = {"type": "sequence", "elements": [_grammar(reply.separator), one]}
    more = [{"type": "star", "content": next_one}] if reply.parallel else []
    if reply.text is None:
        return _sequence([one, *more])
    first = {"type": "triggered_tags", "triggers": [reply.syntax.opening], "tags": tags, "stop_after_first": True}
    return _sequence([first, *more])


def _sequence(elements: list[dict[str, Any]]) -> dict[str, Any]:
    return elements[0] if len(elements) == 1 else {"type": "sequence", "elements": elements}


def _grammar(form: Form) -> dict[str, Any]:
    return {"type": "grammar", "grammar": gbnf.write(form)}
