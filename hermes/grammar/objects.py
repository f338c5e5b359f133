"""JSON punctuation: objects and arrays as forms, compact or with a space after each comma and colon."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.grammar.form import EMPTY, NOTHING, Form, chain, choice, optional, repeat

COMMA = chain(",", optional(" "))
COLON = chain(":", optional(" "))
ANY_ORDER = 3
"""So many properties may come in any order; with more the number of orders grows beyond use."""

Pairs = Sequence[tuple[Form, bool]]
"""Each property with its name, and whether it must be there."""


def pair(name: Form, value: Form) -> Form:
    """One property."""
    return chain(name, COLON, value)


def obj(pairs: Pairs, extra: Form = NOTHING, most_extra: int | None = None) -> Form:
    """An object of these properties and, after them, any number of `extra` ones."""
    pairs = [each for each in pairs if each[0] != NOTHING or each[1]]
    more = repeat(chain(COMMA, extra), 0, most_extra)
    options = [chain(_any_order(pairs) if len(pairs) <= ANY_ORDER else _in_order(pairs), more)] if pairs else []
    if not any(required for _, required in pairs):
        options.append(EMPTY)
        if extra != NOTHING and most_extra != 0:
            options.append(chain(extra, repeat(chain(COMMA, extra), 0, None if most_extra is None else most_extra - 1)))
    return chain("{", _maybe(options), "}")


def _maybe(options: list[Form]) -> Form:
    written = [option for option in options if option != EMPTY]
    return repeat(choice(*written), 0, 1) if len(written) < len(options) else choice(*written)


def _any_order(pairs: Pairs) -> Form:
    """All required ones and any of the others, in any order; at least one."""
    return choice(*(chain(form, _more([*pairs[:index], *pairs[index + 1 :]])) for index, (form, _) in enumerate(pairs)))


def _more(pairs: Pairs) -> Form:
    if not pairs:
        return EMPTY
    written = chain(COMMA, _any_order(pairs))
    return written if any(required for _, required in pairs) else repeat(written, 0, 1)


def _in_order(pairs: Pairs) -> Form:
    """All required ones and any of the others, in the order given; at least one."""
    first = next((index for index, (_, required) in enumerate(pairs) if required), None)
    if first is not None:
        before = [optional(form, COMMA) for form, _ in pairs[:first]]
        return chain(*before, pairs[first][0], *_after(pairs[first + 1 :]))
    if len(pairs) == 1:
        return pairs[0][0]
    # Halving keeps the expression short: each property is written once a level.
    middle = len(pairs) // 2
    left, right = pairs[:middle], pairs[middle:]
    return choice(chain(_in_order(left), *_after(right)), _in_order(right))


def _after(pairs: Pairs) -> list[Form]:
    return [chain(COMMA, form) if required else optional(COMMA, form) for form, required in pairs]


def array(prefix: Sequence[Form], item: Form, low: int, high: int | None) -> Form:
    """An array of `low` to `high` items: the first ones those of `prefix`, all others `item`."""
    return chain("[", _items(list(prefix), item, low, high, first=True), "]")


def _items(prefix: list[Form], item: Form, low: int, high: int | None, first: bool) -> Form:
    if high is not None and high < max(low, 1):
        return EMPTY if low == 0 else NOTHING
    following = None if high is None else high - 1
    if prefix:
        head, tail = prefix[0], _items(prefix[1:], item, max(low - 1, 0), following, first=False)
    elif first:
        head, tail = item, repeat(chain(COMMA, item), max(low - 1, 0), following)
    else:
        return repeat(chain(COMMA, item), low, high)
    written = chain(head, tail) if first else chain(COMMA, head, tail)
    return written if low > 0 else repeat(written, 0, 1)
