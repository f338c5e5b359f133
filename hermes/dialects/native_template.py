"""A checkpoint's chat template, rendered as transformers renders it. Jinja2 is imported only where it is needed."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from hermes.record import JSON

if TYPE_CHECKING:
    from jinja2 import Template


def render_template(template: str, **variables: JSON) -> str:
    """The text that `template` makes of `variables`.

    Raises:
        ValueError: it is no template, or it refuses them; says why.
    """
    from jinja2 import TemplateError

    try:
        return _compiled(template).render(**variables)
    except TemplateError as error:
        raise ValueError(str(error) or type(error).__name__) from error
    except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


@cache
def _compiled(template: str) -> Template:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}` marks what a model writes; it changes no text."""

        tags = {"generation"}  # noqa: RUF012 - jinja2 wants it so

        def parse(self, parser: Parser) -> list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def raise_exception(message: str) -> NoReturn:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment.from_string(template)


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)


def _to_json(
    value: JSON,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as templates print it: jinja2's own filter would escape `<`, `>`, `&` and `'`."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
