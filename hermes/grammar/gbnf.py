"""GBNF grammars for llama.cpp, and the same notation as XGrammar reads it."""

from __future__ import annotations

from hermes.grammar.form import (
    LAST_CODE_POINT,
    Chain,
    Chars,
    Choice,
    Form,
    Ranges,
    Repeat,
    Rule,
    Text,
    chain,
    choice,
    inverted,
    names_for,
    repeat,
    rules_of,
    shared,
)
from hermes.grammar.regex import SURROGATES, times

MAX_REPEAT = 1000
"""llama.cpp refuses longer repetitions, so they are nested."""


def write(form: Form) -> str:
    """`form` as a grammar whose start is `root`."""
    form = _split(form, {})
    rules = rules_of(form)
    names = names_for(rules, ["root", "reply"])
    lines = ["root ::= reply", f"reply ::= {_write(form, names)}"]
    lines += [f"{names[rule]} ::= {_write(rule.body, names)}" for rule in reversed(rules)]
    return "\n".join(lines) + "\n"


def _split(form: Form, done: dict[Rule, Rule]) -> Form:
    """`form` with long repetitions written as shorter ones."""
    if isinstance(form, Rule):
        if form not in done:
            body = _split(form.body, done)
            done[form] = form if body is form.body else Rule(form.name, body)
        return done[form]
    if isinstance(form, Repeat):
        item = _split(form.item, done)
        longest = form.low if form.high is None else form.high
        if longest > MAX_REPEAT:
            return _long(shared("one", item), form.low, form.high)
        return form if item is form.item else repeat(item, form.low, form.high)
    if isinstance(form, Chain | Choice):
        parts = form.parts if isinstance(form, Chain) else form.options
        split = [_split(part, done) for part in parts]
        if all(new is old for new, old in zip(split, parts, strict=True)):
            return form
        return Chain(tuple(split)) if isinstance(form, Chain) else Choice(tuple(split))
    return form


def _long(item: Form, low: int, high: int | None) -> Form:
    """A long repetition: so many for certain, then up to so many more, without two ways to count the same text."""
    block = shared(f"times-{MAX_REPEAT}", repeat(item, MAX_REPEAT, MAX_REPEAT))
    whole, rest = divmod(low, MAX_REPEAT)
    certain = chain(*[block] * whole, repeat(item, rest, rest))
    if high is None:
        return chain(certain, repeat(item))
    more = high - low
    tail = repeat(item, 0, more % MAX_REPEAT)
    for _ in range(more // MAX_REPEAT):
        tail = choice(repeat(item, 0, MAX_REPEAT - 1), chain(block, tail))
    return chain(certain, tail)


def _write(form: Form, names: dict[Rule, str]) -> str:
    if isinstance(form, Rule):
        return names[form]
    if isinstance(form, Text):
        return '"' + "".join(_char(char, '"\\') for char in form.text) + '"'
    if isinstance(form, Chars):
        return _class(form.ranges)
    if isinstance(form, Chain):
        return " ".join(_write(part, names) for part in form.parts)
    if isinstance(form, Repeat):
        inner = _write(form.item, names)
        simple = isinstance(form.item, Rule | Text | Chars | Choice)
        return (inner if simple else f"({inner})") + times(form.low, form.high)
    return "(" + " | ".join(_write(option, names) for option in form.options) + ")"


def _class(ranges: Ranges) -> str:
    negated = bool(ranges) and ranges[-1][1] == LAST_CODE_POINT
    shown = inverted((*ranges, *SURROGATES)) if negated else ranges
    if negated and not shown:
        # Everything: neither an empty negation nor "." means that in every engine.
        return "[\\x01-\U0010ffff]"
    inside = ""
    for low, high in shown:
        inside += _char(chr(low), "\\[]")
        if high > low:
            inside += "-" + _char(chr(high), "\\[]")
    return f"[{'^' if negated else ''}{inside}]"


def _char(char: str, escaped: str) -> str:
    if char in escaped:
        return "\\" + char
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    if named:
        return named
    if ord(char) < 0x20 or ord(char) == 0x7F or (escaped != '"\\' and char in "-^"):
        return f"\\x{ord(char):02X}"
    return char
