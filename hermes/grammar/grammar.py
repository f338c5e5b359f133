"""From tools to grammars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from hermes.grammar import gbnf, lark, regex, structural_tag
from hermes.grammar.bounds import Bounds
from hermes.grammar.calls import Reply, answer_body, body, free_text, names_once
from hermes.grammar.form import Form
from hermes.grammar.schema import ToolSchema
from hermes.grammar.strings import writer_for
from hermes.record import Tool
from hermes.syntax import HERMES, CallSyntax


class HasSyntax(Protocol):
    """A dialect, or anything else that says how its calls are written."""

    @property
    def syntax(self) -> CallSyntax:
        """How calls are written."""
        ...


@dataclass(frozen=True)
class Grammar:
    """The replies that a model may write, for every engine. Each is written when it is first asked for."""

    reply: Reply

    @cached_property
    def form(self) -> Form:
        """The regular expression that all engines' grammars are written from."""
        return self.reply.form

    @property
    def after_opening(self) -> Grammar:
        """The replies that go on where the first opening mark has already been written.

        Raises:
            ValueError: no tool may be called, or calls have no opening mark in this syntax.
        """
        if not (self.reply.bodies and self.reply.syntax.opening):
            raise ValueError("after_opening: no call can begin with an opening mark here")
        return Grammar(replace(self.reply, opened=True))

    @cached_property
    def lark(self) -> str:
        """A Lark grammar, for llguidance."""
        return lark.write(self.form)

    def regex(self, alphabet: regex.Alphabet) -> str:
        """A regular expression over what a tokenizer of this alphabet spells, for LiteRT-LM.

        Raises:
            ValueError: it would be millions of characters long, or the alphabet is unknown.
        """
        if alphabet not in regex.SPELLINGS:
            raise ValueError(f"alphabet {alphabet!r}: must be one of {', '.join(regex.SPELLINGS)}")
        return regex.write(self.form, alphabet)

    @cached_property
    def gbnf(self) -> str:
        """A GBNF grammar, for llama.cpp."""
        return gbnf.write(self.form)

    @cached_property
    def structural_tag(self) -> dict[str, Any]:
        """A structural tag, for XGrammar."""
        return structural_tag.write(self.reply)


def compile(
    tools: Sequence[Tool],
    syntax: CallSyntax | HasSyntax = HERMES,
    choice: str = "auto",
    parallel: bool = True,
    bounds: Bounds = Bounds(),  # noqa: B008 - it is immutable
) -> Grammar:
    """The grammar of replies that may call `tools`.

    Args:
        tools: those on offer; with none, the reply is free text.
        syntax: how a call is written, or a dialect.
        choice: `auto` (text, calls or both), `required` (calls only), `none` (text only), or the name of a tool
            (calls of that one only).
        parallel: whether a reply may hold several calls, where the syntax allows that.
        bounds: how far arguments may reach where their schema sets no end.

    Raises:
        ValueError: two tools of one name, a choice that is no tool, or a schema that no arguments can meet.
    """
    syntax = syntax if isinstance(syntax, CallSyntax) else syntax.syntax
    names_once([tool.name for tool in tools])
    named = [tool for tool in tools if tool.name == choice]
    if choice in ("auto", "required", "none"):
        named = [] if choice == "none" else list(tools)
    elif not named:
        known = ", ".join(repr(tool.name) for tool in tools) or "none"
        raise ValueError(f"choice {choice!r}: no such tool (there are: {known}); or auto, required, none")
    strings = writer_for(syntax.opening, syntax.closing)
    bodies = tuple(
        body(syntax, strings, tool.name, ToolSchema(tool, strings, bounds, f"tool-{number}").arguments())
        for number, tool in enumerate(named, 1)
    )
    may_answer = choice in ("auto", "none") or not named
    if may_answer and syntax.answer:
        bodies = (*bodies, answer_body(syntax, strings))
    text = free_text(syntax) if may_answer and not syntax.answer else None
    return Grammar(Reply(syntax, text, bodies, parallel and syntax.parallel))
