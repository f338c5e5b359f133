"""What a chat template uses that some template engine lacks, found in its syntax tree, whether a branch runs or not.

A template is written for Jinja2 and runs in other engines. What LiteRT-LM's refuses was tried on 0.11.0, 0.17.1 and
0.18.1, one bundle a construct; see `docs/check.md`. An expression that it refuses makes the whole prompt empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment, nodes


@dataclass(frozen=True)
class Feature:
    """A construct that not every engine has."""

    name: str
    lines: tuple[int, ...]
    """Where it stands, from 1."""
    refused: bool
    """LiteRT-LM itself lacks it; otherwise only engines without Python's methods and transformers' tags do."""
    instead: str
    """What to write."""


_METHODS = {
    "get": "`x.key`, with `| default(…)` where it may be missing",
    "items": "the filter `| items`",
    "keys": "a loop over the object itself",
    "values": "a loop over `x | items`",
    "startswith": "`x[:3] == 'abc'`",
    "endswith": "`x[-3:] == 'abc'`",
    "strip": "the filter `| trim`",
    "lstrip": "the filter `| trim`",
    "rstrip": "the filter `| trim`",
    "split": "a test with `in`, or `| replace(…)`",
    "join": "the filter `| join(…)`",
    "format": "`~` between the parts",
    "append": "`list + [x]`, kept in a namespace",
    **{name: f"the filter `| {name}`" for name in ("replace", "upper", "lower", "title", "capitalize", "count")},
}
_METHODS_OF_LITERT = frozenset({"startswith", "endswith", "lstrip", "rstrip", "replace", "items", "split"})
"""`strip` is not among them: 0.11.0 lacks it."""

_FILTER_NAMES = (
    "abs attr batch bool capitalize chain count d default dictsort e escape first float format groupby indent int "
    "items join last length lines list lower map max min pprint reject rejectattr replace reverse round safe select "
    "selectattr slice sort split string sum title tojson trim unique upper zip"
)
_TEST_NAMES = (
    "boolean defined divisibleby endingwith eq equalto escaped even false filter float ge gt in integer iterable le "
    "lower lt mapping ne none number odd sameas sequence startingwith string test true undefined upper "
    "== != > >= < <= greaterthan lessthan"
)
_FILTERS, _TESTS = frozenset(_FILTER_NAMES.split()), frozenset(_TEST_NAMES.split())
"""What LiteRT-LM's engine has, from 0.11.0 on."""
_FUNCTIONS = {
    "cycler": "`loop.cycle(…)`",
    "joiner": "`'' if loop.first else ', '`",
    "lipsum": "the text itself",
}
_LOOP_METHODS = frozenset({"cycle", "changed"})

_TAG = re.compile(
    r"(?P<kept>\{#.*?#\}|\{%[-+]?\s*raw\b.*?\bendraw\s*[-+]?%\})"
    r"|\{%(?P<left>[-+]?)\s*(?P<end>end)?generation\s*(?P<right>[-+]?)%\}",
    re.DOTALL,
)


def without_generation_tags(template: str) -> str:
    """The template without the marks of what is trained, `{% generation %}`; it renders the same text.

    Each pair becomes `{% if true %}` and `{% endif %}`, so that white space around it is trimmed as before.
    """

    def replaced(match: re.Match[str]) -> str:
        if match["kept"] is not None:
            return match["kept"]
        word = "endif" if match["end"] else "if true"
        return f"{{%{match['left']} {word} {match['right']}%}}"

    return _TAG.sub(replaced, template)


def missing_features(template: str) -> list[Feature]:
    """Every construct that some engine lacks, by first line, each once with all its lines.

    Raises:
        ValueError: it is no Jinja template; says why, and in which line.
    """
    from jinja2 import TemplateSyntaxError

    environment = _environment()
    try:
        tree = environment.parse(without_generation_tags(template))
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.message}") from None
    found: dict[str, list[tuple[int, bool, str]]] = {}
    for line, name, refused, instead in (*_tags(template), *_names(environment, template), *_in_tree(tree)):
        found.setdefault(name, []).append((line, refused, instead))
    features = (
        Feature(name, tuple(sorted({line for line, *_ in places})), *places[0][1:]) for name, places in found.items()
    )
    return sorted(features, key=lambda feature: (feature.lines, feature.name))


_Place = tuple[int, str, bool, str]
"""Line, name, whether LiteRT-LM refuses it, what to write instead."""


def _environment() -> Environment:
    from jinja2 import Environment

    extensions = ["jinja2.ext.loopcontrols", "jinja2.ext.do"]
    return Environment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)


def _tags(template: str) -> Iterator[_Place]:
    for match in _TAG.finditer(template):
        if match["kept"] is None and not match["end"]:
            line = template.count("\n", 0, match.start()) + 1
            yield line, "{% generation %}", False, "nothing: the tags mark what is trained and change no text"


def _names(environment: Environment, template: str) -> Iterator[_Place]:
    """Python's spelling of nothing, which the syntax tree does not tell from Jinja's."""
    for line, kind, value in environment.lex(without_generation_tags(template)):
        if kind == "name" and value == "None":
            yield line, "None", True, "`none`: elsewhere `None` is a variable that is not set"


def _in_tree(tree: nodes.Template) -> Iterator[_Place]:
    from jinja2 import nodes

    for node in tree.find_all(nodes.Node):
        line = node.lineno
        match node:
            case nodes.Call(node=nodes.Getattr(node=nodes.Name(name="loop"), attr=attr)) if attr in _LOOP_METHODS:
                pass
            case nodes.Call(node=nodes.Getattr(attr=attr)):
                refused = attr not in _METHODS_OF_LITERT or (attr == "replace" and len(node.args) > 2)
                yield line, f".{attr}()", refused, _METHODS.get(attr, "filters and tests instead of a method")
            case nodes.Call(node=nodes.Name(name="strftime_now")):
                yield line, "strftime_now()", False, "no date: the prompt would change from day to day"
            case nodes.Call(node=nodes.Name(name=name)) if name in _FUNCTIONS:
                yield line, f"{name}()", True, _FUNCTIONS[name]
            case nodes.Slice(step=step) if step is not None:
                yield line, "[::step]", False, "`| reverse` for `[::-1]`"
            case nodes.Filter() | nodes.Test():
                yield from _filter_or_test(node)
            case nodes.Mod(left=nodes.Const(value=str())):
                yield line, "'…' % value", True, "`~` between the parts"
            case nodes.Break() | nodes.Continue():
                yield line, "{% break %}, {% continue %}", True, "`{% if %}` around what follows"
            case nodes.Include() | nodes.Import() | nodes.FromImport() | nodes.Extends():
                yield line, f"{{% {type(node).__name__.lower()} %}}", True, "the other template's text"


def _filter_or_test(node: nodes.Filter | nodes.Test) -> Iterator[_Place]:
    from jinja2 import nodes

    known = _FILTERS if isinstance(node, nodes.Filter) else _TESTS
    if node.name not in known:
        yield node.lineno, _shown(node.name, known), True, _instead(node.name)
    elif node.name == "tojson" and (node.args or node.kwargs):
        yield node.lineno, "| tojson(…)", True, "`| tojson` without arguments"
    for name, names in _named_inside(node):
        if name not in names:
            yield node.lineno, _shown(name, names), True, _instead(name)


def _named_inside(node: nodes.Filter | nodes.Test) -> Iterator[tuple[str, frozenset[str]]]:
    """Filters and tests that are named as text: `map('upper')`, `selectattr('role', 'equalto', …)`."""
    from jinja2 import nodes

    at = {"map": 0, "select": 0, "reject": 0, "selectattr": 1, "rejectattr": 1}.get(node.name)
    if at is not None and isinstance(node, nodes.Filter) and len(node.args) > at:
        argument = node.args[at]
        if isinstance(argument, nodes.Const) and isinstance(argument.value, str):
            yield argument.value, _FILTERS if node.name == "map" else _TESTS


def _shown(name: str, known: Iterable[str]) -> str:
    return f"| {name}" if known is _FILTERS else f"is {name}"


def _instead(name: str) -> str:
    if name in ("fromjson", "from_json"):
        return "the text as it is, or arguments handed over as an object"
    return "a filter or test that Jinja2 and MiniJinja both have"
