"""Reading a call: strictly, or with repairs of what has only one meaning. Lenient tries strict first."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermes.json_text import UnreadableError, decode_whole, holds
from hermes.record import JSON, ToolCall
from hermes.repair import readings
from hermes.syntax import CallSyntax, Policy

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MAY_HOLD_CONTROL = re.compile(r"\\[ubf]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ALIASES = ("parameters", "args", "arguments")
_UNWRAPPINGS = 3
"""How often arguments may be JSON text inside JSON text."""


def plain_call(body: str, syntax: CallSyntax) -> ToolCall | None:
    """The call in `body` if nothing about it is odd, else None: the common case, quickly."""
    try:
        value = decode_whole(body)
    except UnreadableError:
        return None
    if not isinstance(value, dict) or len(value) != 2:
        return None
    # Without an escape, strict JSON can hold no other control character.
    if "\x7f" in body or ("\\" in body and _MAY_HOLD_CONTROL.search(body)):
        return None
    name, arguments = value.get(syntax.name_key), value.get(syntax.arguments_key)
    return ToolCall(name, arguments) if name and isinstance(name, str) and isinstance(arguments, dict) else None


@dataclass(frozen=True)
class Body:
    """What stands where a call should: the calls in it, and what was repaired or odd."""

    calls: tuple[ToolCall, ...]
    flags: tuple[str, ...] = ()


def read_body(text: str, syntax: CallSyntax, policy: Policy) -> Body:
    """The call in `text`; in lenient reading several, if several are there.

    Raises:
        UnreadableError: no call can be read; says why.
    """
    try:
        return as_body([decode_whole(text)], syntax, policy, text)
    except UnreadableError as error:
        if policy == "strict":
            raise
        return _repaired(text, syntax, error)


def as_body(values: list[JSON], syntax: CallSyntax, policy: Policy, text: str, *flags: str) -> Body:
    """The calls that JSON `values` stand for; `text` is what they were read from.

    Raises:
        UnreadableError: one of them is no call.
    """
    found = dict.fromkeys(flags)
    calls = []
    may_hold_control = _MAY_HOLD_CONTROL.search(text) is not None
    for value in values:
        call, odd = as_call(value, syntax, policy)
        calls.append(call)
        found |= dict.fromkeys(odd)
        if may_hold_control and holds(dict(call.arguments), _CONTROL):
            found["control_char_in_value"] = None
    return Body(tuple(calls), tuple(found))


def as_call(value: JSON, syntax: CallSyntax, policy: Policy) -> tuple[ToolCall, tuple[str, ...]]:
    """The call that a JSON value stands for, and what is odd about it.

    Arguments that are missing, null or an empty string are none, flagged `arguments_missing`.

    Raises:
        UnreadableError: it is no call.
    """
    if not isinstance(value, dict):
        raise UnreadableError(f"a call must be a JSON object, not {type(value).__name__}")
    name = value.get(syntax.name_key)
    if not isinstance(name, str) or not name:
        raise UnreadableError(f"the call has no {syntax.name_key!r}")
    key, flags = syntax.arguments_key, []
    given = [alias for alias in dict.fromkeys((key, *_ALIASES)) if alias in value]
    if len(given) > 1:
        raise UnreadableError(f"the call of {name!r} has {' and '.join(map(repr, given))}")
    if given and given[0] != key:
        if policy == "strict":
            raise UnreadableError(f"the call of {name!r} has {given[0]!r} where {key!r} should be")
        key = given[0]
        flags.append(f"alias_{key}")
    arguments = value.get(key)
    if arguments in (None, ""):
        return ToolCall(name, {}), (*flags, "arguments_missing")
    if isinstance(arguments, str) and policy == "lenient":
        arguments = _unwrapped(arguments)
        flags.append("arguments_was_string")
    if not isinstance(arguments, dict):
        raise UnreadableError(f"the {key!r} of {name!r} must be a JSON object, not {_kind(arguments)}")
    return ToolCall(name, arguments), tuple(flags)


def _kind(value: JSON) -> str:
    return "text" if isinstance(value, str) else "a list" if isinstance(value, list) else repr(value)


def _unwrapped(text: str) -> JSON:
    """What JSON text inside a string stands for; the string itself if it is none."""
    value: JSON = text
    for _ in range(_UNWRAPPINGS):
        if not isinstance(value, str):
            break
        try:
            value = decode_whole(value)
        except UnreadableError:
            break
    return value


def _repaired(text: str, syntax: CallSyntax, problem: UnreadableError) -> Body:
    """The calls of a body that strict reading refuses, if it has one meaning.

    Raises:
        UnreadableError: `problem`, if nothing helps.
    """
    for values, flags in readings(text):
        try:
            body = as_body(values, syntax, "lenient", text, *flags)
        except UnreadableError:
            continue
        # A call that breaks off before its arguments is no call without arguments.
        if not {"repaired", "arguments_missing"} <= set(body.flags):
            return body
    raise problem
