"""`export --check` on a tiny bundle that was really exported, and on the same with one thing wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import native_templates
import pytest
from click.testing import CliRunner
from tiny_bundle import Change, TinyBundle

from cli import main
from core.errors import UserError
from export.check import CHECKS, check_bundle, is_fit
from export.check_runtime import check_runtime
from export.inspect import read_bundle

WITHOUT_RUNNING = [each for each in CHECKS if each[1] is not check_runtime]
CHATML = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}
{%- for part in message.content %}{{ part.text or part.response | tojson }}{% endfor %}{% endif %}
{%- for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- for tool in tools or [] %}{{ tool | tojson }}{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Takes both kinds of content, and writes tools where a later message will stand."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyBundle:
    return TinyBundle.export(tmp_path_factory.mktemp("tiny") / "bundle")


def lines(report: dict[str, Any]) -> list[str]:
    return [f"{name}: {finding}" for name, findings in report.items() for finding in findings]


def test_what_is_exported_here_passes_every_check_in_the_runtime_too(tiny: TinyBundle) -> None:
    """C90: with no tool, with a declared one, and with a call and its result."""
    assert lines(check_bundle(tiny.path)) == []


def test_the_command_needs_no_recipe_and_says_by_its_exit_code_whether_there_is_a_fault(
    tiny: TinyBundle, tmp_path: Path
) -> None:
    broken = tiny.with_metadata(tmp_path / "broken.litertlm", lambda metadata: set_fences(metadata, "", ""))
    done = CliRunner().invoke(main, ["export", "--recipe", "nowhere.yaml", "--check", str(broken)])
    assert done.exit_code == 1
    assert "parser and fences: fault: a code fence is empty: LiteRT-LM 0.18.1 hangs" in done.output
    assert "in LiteRT-LM: not checked: LiteRT-LM would hang" in done.output
    assert "ok: token ids" in done.output
    done = CliRunner().invoke(main, ["export", "--check", str(tmp_path / "missing.litertlm")])
    assert done.exit_code == 1
    assert "no such bundle" in done.output


def test_the_parts_of_a_bundle_are_read(tiny: TinyBundle) -> None:
    bundle = read_bundle(tiny.path)
    assert [each.kind for each in bundle.sections] == [
        "LlmMetadataProto",
        "ExecutorMetadataProto",
        "HF_Tokenizer_Zlib",
        "TFLiteModel",
    ]
    assert (bundle.type_name, bundle.cache_length, bundle.vocabulary) == ("qwen3", 4096, 259)
    assert bundle.main_graph.keys() == {"prefill_128", "decode"}
    assert bundle.tokenizer is not None
    assert bundle.tokenizer.encode("<|im_end|>") == [2]
    assert [list(token.token_ids.ids) for token in bundle.metadata.stop_tokens] == [[0], [2]]


def set_fences(metadata: Any, opening: str, closing: str) -> None:
    metadata.llm_model_type.qwen3.code_fence_start = opening
    metadata.llm_model_type.qwen3.code_fence_end = closing


def start_with(text: str) -> Change:
    return lambda metadata: setattr(metadata.start_token, "token_str", text)


def stop_at(*ids: int) -> Change:
    def change(metadata: Any) -> None:
        del metadata.stop_tokens[:]
        for each in ids:
            metadata.stop_tokens.add().token_ids.ids.append(each)

    return change


def with_template(text: str) -> Change:
    return lambda metadata: setattr(metadata, "jinja_prompt_template", text)


def before_template(text: str) -> Change:
    return lambda metadata: setattr(metadata, "jinja_prompt_template", text + metadata.jinja_prompt_template)


BROKEN: dict[str, tuple[Change, str]] = {
    "no parser": (
        lambda metadata: metadata.llm_model_type.generic_model.SetInParent(),
        "parser and fences: fault: llm_model_type is generic_model, which never parses a call: it is shown as text; "
        "export with llm_model_type qwen3, code_fence_start '<tool_call>' and code_fence_end '</tool_call>'",
    ),
    "other fences": (
        lambda metadata: set_fences(metadata, "<call>", "</call>"),
        "parser and fences: fault: the parser looks for calls between '<call>' and '</call>', the template writes "
        "them between '<tool_call>' and '</tool_call>'",
    ),
    "fences with a newline that the template does not write": (
        lambda metadata: set_fences(metadata, "<tool_call>\n", "\n</tool_call>"),
        "parser and fences: fault: the parser looks for calls between '<tool_call>\\n'",
    ),
    "flag": (
        lambda metadata: setattr(metadata, "supports_function_calling", False),
        "parser and fences: warning: supports_function_calling is false",
    ),
    "doubled first token": (
        start_with("<|im_start|>"),
        "first token: fault: start_token is '<|im_start|>', and the template begins with it",
    ),
    "no stop token": (stop_at(), "stop tokens: fault: there are no stop tokens"),
    "another stop token": (
        stop_at(0),
        "stop tokens: fault: the template ends a turn with '<|im_end|>', the stop tokens are <|endoftext|>",
    ),
    "one end of turn of two": (
        stop_at(2),
        "stop tokens: warning: the vocabulary also has <|endoftext|>, which do not stop a reply",
    ),
    "stop token of another vocabulary": (
        stop_at(2, 151645),
        "token ids: fault: stop_tokens: id 151645 is outside of the graph's 259 tokens",
    ),
    "suppressed token": (
        lambda metadata: metadata.suppress_tokens.ids.append(999),
        "token ids: fault: suppress_tokens: id 999 is outside",
    ),
    "stop token by another name": (
        lambda metadata: setattr(metadata.stop_tokens[0], "token_str", "<end_of_turn>"),
        "token ids: fault: stop_tokens: '<end_of_turn>' is no token of the vocabulary",
    ),
    "limit above the cache": (
        lambda metadata: setattr(metadata, "max_num_tokens", 8192),
        "cache and prompt: fault: max_num_tokens is 8192, the graph's cache holds 4096; set max_num_tokens to 4096",
    ),
    "images": (
        lambda metadata: setattr(metadata.llm_model_type.gemma3.start_of_image_token, "token_str", "<start_of_image>"),
        "text only: fault: llm_model_type gemma3 speaks of image, and no section of the file reads it",
    ),
    "sampler": (
        lambda metadata: setattr(metadata.sampler_params, "type", 3),
        "parts of the file: fault: the sampler is GREEDY",
    ),
    "newer runtime": (
        lambda metadata: setattr(metadata, "min_runtime_version", "0.18.0"),
        "parts of the file: warning: it asks for LiteRT-LM 0.18.0, AI Edge Gallery 1.0.18 has 0.11.0",
    ),
    "no template": (
        lambda metadata: metadata.ClearField("jinja_prompt_template"),
        "template features: fault: there is no chat template",
    ),
    "no Jinja": (before_template("\n{% if %}"), "template features: fault: the template is no Jinja: line 2: "),
    "a method": (
        before_template("\n{%- if messages[0].get('x') %}{% endif -%}"),
        "template features: fault: `.get()` (line 2): LiteRT-LM lacks it; write `x.key`",
    ),
    "text only contents": (
        with_template(native_templates.HERMES),
        "contents as text and as parts: fault: contents as lists of parts, which LiteRT-LM 0.18 hands over",
    ),
    "contents printed as lists": (
        with_template("{% for message in messages %}{{ message.content }}{% endfor %}"),
        "contents as text and as parts: fault: contents as lists of parts are printed as a list",
    ),
    "no tools": (
        with_template(native_templates.PLAIN),
        "contents as text and as parts: fault: the name of a declared tool does not appear in the prompt",
    ),
    "rewritten history": (
        with_template(CHATML),
        "history stays as it was: fault: with message 2 (assistant) the template rewrites what it wrote before",
    ),
    "a prompt that no turn begins with": (
        lambda metadata: with_template(
            metadata.jinja_prompt_template + "{% if add_generation_prompt %}Well{% endif %}"
        )(metadata),
        "history stays as it was: warning: the prompt for message 2 is not how that message begins",
    ),
    "a method in the other engine": (
        before_template("{% if messages[0].content is string and messages[0].content.startswith('x') %}{% endif %}"),
        "an engine without Python's methods: warning: MiniJinja without Python's methods refuses the template: unknown "
        "method: string has no method named startswith",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_thing_wrong_is_found_and_named(tiny: TinyBundle, tmp_path: Path, name: str) -> None:
    change, expected = BROKEN[name]
    report = check_bundle(tiny.with_metadata(tmp_path / "broken.litertlm", change), WITHOUT_RUNNING)
    assert any(line.startswith(expected) for line in lines(report)), "\n".join(lines(report))
    assert is_fit(report) == (": fault: " not in " ".join(lines(report)))


def test_a_prompt_that_leaves_no_room_is_told_with_all_three_numbers(tiny: TinyBundle, tmp_path: Path) -> None:
    """C94."""
    small = tiny.with_metadata(tmp_path / "small.litertlm", lambda metadata: setattr(metadata, "max_num_tokens", 2048))
    (finding,) = check_bundle(small, WITHOUT_RUNNING)["cache and prompt"]
    assert finding.severity == "fault"
    assert "tokens and an answer of up to 256 need" in finding.found
    assert "the cache has 2048" in finding.found


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (BROKEN["no parser"][0], "in LiteRT-LM: fault: a call as the template writes it, '<tool_call>{"),
        (BROKEN["other fences"][0], "in LiteRT-LM: fault: a call as the template writes it, '<tool_call>{"),
        (BROKEN["a method"][0], "in LiteRT-LM: fault: no tool: LiteRT-LM renders nothing"),
        (
            lambda metadata: metadata.llm_model_type.gemma3.SetInParent(),
            "in LiteRT-LM: warning: one declared tool: gemma3 hands tools and calls to the template in its own words",
        ),
    ],
    ids=["no parser", "other fences", "a method", "a type with words of its own"],
)
def test_the_runtime_says_the_same(tiny: TinyBundle, tmp_path: Path, change: Change, expected: str) -> None:
    report = check_bundle(tiny.with_metadata(tmp_path / "broken.litertlm", change), CHECKS[-1:])
    assert any(line.startswith(expected) for line in lines(report)), "\n".join(lines(report))


def test_an_image_encoder_is_named(tiny: TinyBundle, tmp_path: Path) -> None:
    from litert_lm_builder import litertlm_builder

    builder = litertlm_builder.LitertLmFileBuilder()
    builder.add_system_metadata(
        litertlm_builder.Metadata(key="Authors", value="someone", dtype=litertlm_builder.DType.STRING)
    )
    builder.add_hf_tokenizer(str(tiny.tokenizer))
    builder.add_tflite_model(str(tiny.parts.graph), litertlm_builder.TfLiteModelType.VISION_ENCODER)
    with (tmp_path / "images.litertlm").open("wb") as file:
        builder.build(file)
    found = lines(check_bundle(tmp_path / "images.litertlm", WITHOUT_RUNNING))
    assert any(line.startswith("text only: warning: the bundle has tf_lite_vision_encoder") for line in found)
    assert any(line.startswith("parts of the file: fault: there is no prefill-decode graph") for line in found)
    assert any(line.startswith("parser and fences: fault: there are no LLM metadata") for line in found)


@pytest.mark.parametrize("length", [0, 7, 40, 20_000, 60_000])
def test_a_file_that_is_cut_short_is_one_message(tiny: TinyBundle, tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.litertlm"
    path.write_bytes(tiny.path.read_bytes()[:length])
    with pytest.raises(UserError, match=r"cut\.litertlm: no whole \.litertlm bundle: .*; copy or export it again"):
        check_bundle(path, WITHOUT_RUNNING)
