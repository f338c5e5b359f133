"""Dialects by name."""

from __future__ import annotations

from hermes.dialects.base import Dialect, FinishReason, text_of
from hermes.dialects.hermes import HermesDialect

_DIALECTS: dict[str, Dialect] = {"hermes": HermesDialect()}


def get_dialect(name: str) -> Dialect:
    """The dialect called `name`.

    Raises:
        ValueError: no dialect has that name; the message lists those that exist.
    """
    if name not in _DIALECTS:
        raise ValueError(f"no dialect {name!r}; there are: {', '.join(sorted(_DIALECTS))}")
    return _DIALECTS[name]


__all__ = ["Dialect", "FinishReason", "get_dialect", "text_of"]
