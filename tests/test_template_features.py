"""What some template engine lacks: found in the syntax tree, and by rendering where an engine is installed."""

from __future__ import annotations

import json

import native_templates
import pytest

from export.call_format import HISTORY, TOOL, ChatTemplate, chat, probe_calls, probe_turns
from export.plain_engine import render_plain
from export.template_features import missing_features, without_generation_tags
from hermes import get_dialect
from hermes.dialects.native_template import render_template

PYTHON_ONLY = {
    "{{ messages[0].get('role', '') }}": ".get()",
    "{{ messages[0].content.startswith('h') }}": ".startswith()",
    "{% for m in messages[::-1] %}{{ m.role }}{% endfor %}": "[::step]",
    "{{ (messages[1].tool_calls[0].arguments | fromjson).a }}": "| fromjson",
}
"""C88."""
GENERATION = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}"
)
"""C89."""


@pytest.mark.parametrize("snippet", PYTHON_ONLY)
def test_each_of_them_is_found(snippet: str) -> None:
    """C88."""
    assert [feature.name for feature in missing_features(snippet)] == [PYTHON_ONLY[snippet]]


def test_all_of_them_are_found_in_branches_that_nothing_reaches_too() -> None:
    """C88."""
    template = "{% if messages | length > 99 %}\n" + "\n".join(PYTHON_ONLY) + "\n{% endif %}"
    features = missing_features(template)
    assert [(feature.name, feature.lines) for feature in features] == [
        (name, (line,)) for line, name in enumerate(PYTHON_ONLY.values(), 2)
    ]
    assert [feature.name for feature in features if feature.refused] == [".get()", "| fromjson"]


@pytest.mark.parametrize(
    ("snippet", "names"),
    [
        ("{{ x.strip() }}{{ x.strip() }}\n{{ y.strip() }}", [".strip()"]),
        ("{{ x | tojson(indent=2) }}{{ x | tojson }}", ["| tojson(…)"]),
        ("{{ x.replace('a', 'b', 1) }}", [".replace()"]),
        ("{{ ['a'] | map('wordcount') | list }}", ["| wordcount"]),
        ("{{ x | selectattr('a', 'callable') | list }}", ["is callable"]),
        ("{% if x is escaped %}{% endif %}{% if x is callable %}{% endif %}", ["is callable"]),
        ("{% for x in y %}{% if x %}{% continue %}{% endif %}{% break %}{% endfor %}", ["{% break %}, {% continue %}"]),
        ("{{ '%s' % x }}", ["'…' % value"]),
        ("{% if x == None %}{% endif %}{% if x == none %}{% endif %}", ["None"]),
        ("{{ cycler('a', 'b').next() }}", [".next()", "cycler()"]),
        ("{{ strftime_now('%d') }}", ["strftime_now()"]),
        ("{% include 'x' %}", ["{% include %}"]),
        ("{# {% generation %} #}{% raw %}{{ x.get() }}{% generation %}{% endraw %}", []),
        ("{% for x in y %}{{ loop.cycle('a', 'b') }}{{ x[1:] }}{{ x[0] }}{{ x | items }}{% endfor %}", []),
        ("{% set ns = namespace(a=1) %}{% macro f(x) %}{{ x }}{% endmacro %}{{ f(ns.a) }}", []),
        ("{{ raise_exception('no') }}", []),
    ],
)
def test_what_counts(snippet: str, names: list[str]) -> None:
    assert [feature.name for feature in missing_features(snippet)] == names


def test_a_construct_has_all_its_lines_and_what_to_write_instead() -> None:
    (feature,) = missing_features("{{ x.strip() }}\n{{ y.upper | trim }}\n{{ z.strip() }}")
    assert (feature.lines, feature.instead) == ((1, 3), "the filter `| trim`")


def test_what_is_no_template_says_where() -> None:
    with pytest.raises(ValueError, match="line 2: "):
        missing_features("a\n{% if %}")


@pytest.mark.parametrize("name", ["hermes", "json", "fenced"])
def test_our_own_templates_use_none_of_it_and_render_without_pythons_methods(name: str) -> None:
    template = get_dialect(name).chat_template()
    assert missing_features(template) == []
    for parts in (False, True):
        given = {"messages": [chat(message, parts) for message in HISTORY], "tools": [TOOL.to_openai()]}
        assert render_plain(template, **given) == ChatTemplate(template).render(HISTORY, parts=parts)


@pytest.mark.parametrize("snippet", [*list(PYTHON_ONLY)[:2], list(PYTHON_ONLY)[3], GENERATION])
def test_the_engine_without_pythons_methods_refuses_them(snippet: str) -> None:
    """C88, C89: a binding that hands over Python's objects would let `dict.get` pass."""
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"arguments": '{"a": 1}'}]},
    ]
    with pytest.raises(ValueError, match="unknown (method|filter|statement)"):
        render_plain(snippet, messages=messages)


@pytest.mark.parametrize(
    "template",
    [
        GENERATION,
        GENERATION.replace("{% generation %}", "\n  {%- generation -%}\n").replace(
            "endgeneration %}", "endgeneration -%}"
        ),
        GENERATION.replace("{% generation %}", "\n  {%generation%}\n x"),
        "{# {% generation %} #}" + GENERATION + "{% raw %}{% generation %}{% endraw %}",
    ],
)
def test_without_the_tags_of_training_the_text_stays(template: str) -> None:
    """C89."""
    cleaned = without_generation_tags(template)
    assert "{% generation" not in cleaned.replace("{# {% generation %} #}", "").replace("{% raw %}{% generation %}", "")
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}] * 2
    assert render_template(cleaned, messages=messages) == render_template(template, messages=messages)


@pytest.mark.parametrize("name", ["HERMES", "QWEN"])
def test_fences_and_end_of_turn_follow_from_a_rendered_call(name: str) -> None:
    """C90."""
    template = ChatTemplate(getattr(native_templates, name))
    calls = probe_calls(template)
    assert (calls.opening, calls.closing, calls.is_json) == ("<tool_call>", "</tool_call>", True)
    assert calls.written.startswith('<tool_call>\n{"name": "probe_tool"')
    assert probe_turns(template).ending == "<|im_end|>\n"


def test_a_call_that_is_no_object_of_name_and_arguments_is_not_taken_for_one() -> None:
    """C90."""
    assert not probe_calls(ChatTemplate(get_dialect("json").chat_template())).is_json
    assert not probe_calls(ChatTemplate(get_dialect("fenced").chat_template())).is_json
    with pytest.raises(ValueError, match="call does not appear"):
        probe_calls(ChatTemplate(native_templates.PLAIN))


def test_values_are_the_engines_own() -> None:
    value = {"a": [None, True, 1.5, "é\n\"'"], "b": {}}
    text = render_plain("{{ value | tojson }}", value=value)
    assert text is not None
    assert json.loads(text) == value
