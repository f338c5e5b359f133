"""Replies: text for the user and calls, in the syntax of a dialect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hermes.dialects.base import CallSyntax
from hermes.grammar.form import EMPTY, Form, chain, choice, one_of, optional, repeat, shared
from hermes.grammar.objects import COLON, COMMA
from hermes.grammar.strings import Strings
from hermes.grammar.text import text_not_starting_with_brace, text_without


@dataclass(frozen=True)
class Reply:
    """The parts of a reply, from which each engine's grammar is put together."""

    syntax: CallSyntax
    text: Form | None
    """Free text; None where the reply must be a call."""
    bodies: tuple[Form, ...]
    """For each tool that may be called: what stands between the marks."""
    parallel: bool
    opened: bool = False
    """Whether the first opening mark is already written, so that the rest of a call must follow."""

    @property
    def separator(self) -> Form:
        """What stands between two calls."""
        return optional("\n")

    @property
    def call(self) -> Form:
        """One call with its marks."""
        return shared("call", chain(self.syntax.opening, choice(*self.bodies), self.syntax.closing))

    @property
    def form(self) -> Form:
        """The whole reply."""
        if not self.bodies:
            return EMPTY if self.text is None else self.text
        if not self.syntax.opening:
            return self.call if self.text is None else choice(self.text, self.call)
        following = repeat(chain(self.separator, self.call), 0, None if self.parallel else 0)
        if self.opened:
            return chain(choice(*self.bodies), self.syntax.closing, following)
        if self.text is None:
            return chain(self.call, following)
        if self.parallel:
            # Text may end in a line break itself, so the first call needs no part of its own.
            return chain(self.text, following)
        return chain(self.text, optional(self.call))


def free_text(syntax: CallSyntax) -> Form:
    """Text that is no call and holds none."""
    return shared("text", text_without(syntax.opening) if syntax.opening else text_not_starting_with_brace())


def answer_body(syntax: CallSyntax, strings: Strings) -> Form:
    """An answer that is written as a call."""
    assert syntax.answer is not None
    name, key = syntax.answer
    return body(syntax, strings, name, strings.free(), key)


def body(syntax: CallSyntax, strings: Strings, name: str, arguments: Form, key: str = "") -> Form:
    """A call of the tool `name`, without its marks; `key` stands for another one than the arguments'."""
    space = one_of(" \n")
    padding = optional(space if len(syntax.padding) < 2 else choice(space, syntax.padding))
    return chain(
        padding,
        "{",
        strings.quoted(syntax.name_key),
        COLON,
        strings.quoted(name),
        COMMA,
        strings.quoted(key or syntax.arguments_key),
        COLON,
        arguments,
        "}",
        padding,
    )


def names_once(names: Sequence[str]) -> None:
    """Refuse tools that share a name.

    Raises:
        ValueError: names the tool.
    """
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f"tool {name!r}: there are two of this name; a call would not say which is meant")
