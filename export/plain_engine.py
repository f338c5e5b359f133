"""A chat template in an engine without Python's methods: MiniJinja, where its package is installed.

The binding hands a Python object over with all its methods, so that even without its compatibility mode a `dict.get`
works. What is rendered here is therefore written into the template as literals, which are the engine's own values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn


def render_plain(template: str, **variables: Any) -> str | None:
    """What the engine makes of `template`; None where the package is not installed.

    Args:
        template: a Jinja template.
        **variables: JSON values.

    Raises:
        ValueError: the engine refuses it; says why.
    """
    try:
        from minijinja import Environment, TemplateError
    except ModuleNotFoundError:
        return None

    def raise_exception(message: str) -> NoReturn:
        raise ValueError(message)

    environment = Environment(
        pycompat=False, trim_blocks=True, lstrip_blocks=True, globals={"raise_exception": raise_exception}
    )
    values = "".join(f"{{% set {name} = {_literal(value)} %}}" for name, value in variables.items())
    try:
        return str(environment.render_str(values + template))
    except (TemplateError, ValueError) as error:
        raise ValueError(str(error).splitlines()[0]) from None


def _literal(value: Any) -> str:
    """A JSON value as an expression of Jinja's, whose nothing has another name."""
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
