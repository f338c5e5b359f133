"""Lark grammars for llguidance.

The whole reply is one terminal: between terminals the lexer takes the longest match, which would
let free text swallow calls or refuse replies that another engine takes.
"""

from __future__ import annotations

from hermes.grammar.form import Chain, Choice, Form, Repeat, Rule, children, names_for, rules_of
from hermes.grammar.regex import SPELLINGS, Writer, times


def write(form: Form) -> str:
    """`form` as a Lark grammar whose start is `start`."""
    return LarkWriter(form).grammar()


class LarkWriter:
    """Writes rules as terminals that refer to each other."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.rules = rules_of(form)
        self.names = {
            rule: name.upper().replace("-", "_") for rule, name in names_for(self.rules, ["start", "reply"]).items()
        }
        self.regex = Writer(SPELLINGS["text"])

    def grammar(self) -> str:
        """All terminals, the reply first."""
        lines = ["start: REPLY", f"REPLY: {self.write(self.form)}"]
        lines += [f"{self.names[rule]}: {self.write(rule.body)}" for rule in reversed(self.rules)]
        return "\n".join(lines) + "\n"

    def write(self, form: Form) -> str:
        """`form` as an expression of terminals."""
        if isinstance(form, Rule):
            return self.names[form]
        if not _has_rules(form):
            written = self.regex.write(form)
            return f"/{written.replace('/', chr(92) + '/')}/" if written else '""'
        if isinstance(form, Chain):
            return " ".join(self.write(part) for part in form.parts)
        if isinstance(form, Repeat):
            mark = times(form.low, form.high)
            return f"({self.write(form.item)}){mark}"
        assert isinstance(form, Choice)
        return "(" + " | ".join(self.write(option) for option in form.options) + ")"


def _has_rules(form: Form) -> bool:
    return isinstance(form, Rule) or any(_has_rules(child) for child in children(form))
