"""The skill `calculator`: arithmetic, read by recursive descent."""

from __future__ import annotations

import re

from data.skill_scripts.fields import SPACE, parse, text_of
from data.units import show

_LONGEST = 200
_LARGEST = 1e15
_TOKEN = re.compile(rf"[0-9]+(?:\.[0-9]+)?|\.[0-9]+|[^{SPACE}]")
_HEXADECIMAL = re.compile(r"(?:^|[^0-9.])0[xX]")
_SIGNS = {"x": "*", "X": "*", "×": "*", "÷": "/", "−": "-"}


def calculator(data: str) -> str:
    """The expression of `data` and what it comes to, with at most 6 decimals.

    Raises:
        ValueError: the error that the script gives.
    """
    expression = text_of(parse(data), "expression").strip(SPACE)
    if len(expression) > _LONGEST:
        raise ValueError("the expression is too long")
    value = _Reader(expression).read()
    if not abs(value) <= _LARGEST:
        raise ValueError("the result is too large")
    return f"{expression} = {show(value, 6)}"


class _Reader:
    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens: list[str] = [_SIGNS.get(token, token) for token in _TOKEN.findall(expression)]
        self._next = 0

    def read(self) -> float:
        if _HEXADECIMAL.search(self._expression):
            raise self._unreadable()
        value = self._sum()
        if self._next < len(self._tokens):
            raise self._unreadable()
        return value

    def _unreadable(self) -> ValueError:
        return ValueError(f"cannot read the expression: {self._expression}")

    def _take(self, *wanted: str) -> str | None:
        """The next token if it is one of `wanted`, which is then passed."""
        if self._next == len(self._tokens) or self._tokens[self._next] not in wanted:
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def _sum(self) -> float:
        value = self._product()
        while sign := self._take("+", "-"):
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> float:
        value = self._factor()
        while sign := self._take("*", "/"):
            other = self._factor()
            if sign == "/" and other == 0:
                raise ValueError("division by zero")
            value = value * other if sign == "*" else value / other
        return value

    def _factor(self) -> float:
        if self._take("-"):
            return -self._factor()
        if self._take("("):
            value = self._sum()
            if not self._take(")"):
                raise self._unreadable()
            return value
        token = self._tokens[self._next] if self._next < len(self._tokens) else ""
        if not re.fullmatch(r"[0-9]*\.?[0-9]+", token):
            raise self._unreadable()
        self._next += 1
        return float(token)
