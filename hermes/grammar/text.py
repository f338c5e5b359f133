"""Free text that does not contain a mark."""

from __future__ import annotations

from functools import lru_cache

from hermes.grammar.form import ALL, EMPTY, Chars, Form, Text, chain, choice, inverted, merged, optional, points, repeat

WHITE_SPACE = "".join(
    map(chr, [*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029])
) + "".join(map(chr, [0x202F, 0x205F, 0x3000, 0xFEFF]))
"""What Python or ECMAScript takes for white space."""


@lru_cache(maxsize=64)
def text_without(mark: str) -> Form:
    """Any text in which `mark` does not occur.

    The automaton that searches for `mark` has one state for each part of it already seen. Its equations
    are solved from the last state to the first: a state's language is what ends there, or a step to an earlier
    state, each after any number of steps back to itself.
    """
    if not mark:
        raise ValueError("text without the empty mark: there is none")
    ends: Form = EMPTY
    steps: dict[int, Form] = {}
    for state in reversed(range(len(mark))):
        own = _steps_back(mark, state)
        if state < len(mark) - 1:
            onward = Text(mark[state])
            ends = optional(onward, ends)
            for target, step in steps.items():
                own[target] = choice(own[target], chain(onward, step)) if target in own else chain(onward, step)
        loop = repeat(own.pop(state)) if state in own else EMPTY
        ends = chain(loop, ends)
        steps = {target: chain(loop, step) for target, step in own.items()}
    return ends


def _steps_back(mark: str, state: int) -> dict[int, Form]:
    """From `state` characters of `mark` seen, every step that does not go on in it: new state to characters."""
    targets: dict[int, list[str]] = {}
    for char in dict.fromkeys(mark):
        if char != mark[state]:
            seen = mark[:state] + char
            target = next(n for n in range(state, -1, -1) if seen.endswith(mark[:n]))
            targets.setdefault(target, []).append(char)
    elsewhere = (*inverted(points(mark)), *points(targets.pop(0, [])))
    steps = {target: points(chars) for target, chars in targets.items()} | {0: merged(elsewhere)}
    return {target: Chars(ranges, free=True) for target, ranges in steps.items()}


def text_not_starting_with_brace() -> Form:
    """Any text whose first character that is not white space is not `{`."""
    first = Chars(inverted(points(WHITE_SPACE + "{")))
    return chain(repeat(Chars(points(WHITE_SPACE))), repeat(chain(first, repeat(Chars(ALL, free=True))), 0, 1))
