"""Dialects by name."""

from __future__ import annotations

from hermes.control import IM_END
from hermes.dialects.bare_json import BareJsonDialect
from hermes.dialects.base import (
    ArgumentsDelta,
    CallEnd,
    CallFailed,
    CallStart,
    CallSyntax,
    Dialect,
    Event,
    FinishReason,
    Policy,
    ReasoningDelta,
    StreamParser,
    TextDelta,
    text_of,
)
from hermes.dialects.fenced import FencedDialect
from hermes.dialects.hermes import HermesDialect
from hermes.dialects.native import ChatTemplate, NativeDialect

_DIALECTS: dict[str, Dialect] = {"hermes": HermesDialect(), "json": BareJsonDialect(), "fenced": FencedDialect()}
_NATIVE = "native"


def get_dialect(
    name: str, *, chat_template: ChatTemplate | None = None, bos_token: str = "", eos_token: str = IM_END
) -> Dialect:
    """The dialect called `name`.

    Args:
        name: `hermes`, `json`, `fenced` or `native`.
        chat_template: the checkpoint's own template, or its named templates; only `native` takes and needs it.
        bos_token: what that template may write at the beginning.
        eos_token: what ends an assistant turn in it.

    Raises:
        ValueError: no dialect has that name; the message lists those that exist. Or `native` has no template.
    """
    if name == _NATIVE:
        if not chat_template:
            raise ValueError("the native dialect needs the checkpoint's chat template (`chat_template`): it has none")
        return NativeDialect(chat_template, bos_token, eos_token)
    if name not in _DIALECTS:
        raise ValueError(f"no dialect {name!r}; there are: {', '.join((*_DIALECTS, _NATIVE))}")
    return _DIALECTS[name]


__all__ = [
    "ArgumentsDelta",
    "CallEnd",
    "CallFailed",
    "CallStart",
    "CallSyntax",
    "Dialect",
    "Event",
    "FinishReason",
    "Policy",
    "ReasoningDelta",
    "StreamParser",
    "TextDelta",
    "get_dialect",
    "text_of",
]
