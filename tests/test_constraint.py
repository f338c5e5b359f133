"""The folder beside a bundle, the tokenizer's alphabet, and the gate's verdicts; no bundle is loaded."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from test_grammar_engines import sample, verdict
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from benchmarks.constraint import enforced
from benchmarks.made_tools import random_tools
from core.errors import UserError
from core.stages import PROJECT
from export.constraint import sidecar_files, write_constraint
from export.constraint_gate import check_active
from hermes import Tool, ToolCalls, get_dialect, validate_call
from hermes.gallery_tools import GALLERY_TOOLS
from hermes.grammar import compile as compile_grammar
from runtime.backend import Completion
from runtime.bundle_tokenizer import TokenizerFacts, alphabet_of, bundle_tokenizer, tokenizer_facts
from runtime.constraint import MANIFEST, REGEX, TOOLS, Constraints, compiled

DIALECT = get_dialect("hermes")
FACTS = TokenizerFacts("byte_level", "0" * 64)
ADD = Tool("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "model.litertlm"
    write_constraint(path, sidecar_files(GALLERY_TOOLS, DIALECT, FACTS, path.name))
    return path


def test_what_a_tokenizer_spells_is_read_off_its_file() -> None:
    byte_level, marked, gemma, pieces = (Tokenizer(models.BPE()) for _ in range(4))
    byte_level.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    marked.pre_tokenizer = pre_tokenizers.Metaspace()
    gemma.normalizer = normalizers.Replace(" ", "\u2581")
    gemma.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    # A post-processor only moves offsets.
    pieces.post_processor = processors.ByteLevel()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found = [alphabet_of(json.loads(each.to_str())) for each in (byte_level, marked, gemma, pieces)]
    assert found == ["byte_level", "sentencepiece", "sentencepiece", None]
    with pytest.raises(UserError, match=r"here: no constraint can be written .* `export.constraint: none`"):
        tokenizer_facts(pieces.to_str().encode(), Path("here"))


def test_a_file_that_is_no_bundle_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.litertlm").write_bytes(b"not a bundle at all" * 10)
    with pytest.raises(UserError, match="x.litertlm: its tokenizer cannot be read"):
        bundle_tokenizer(tmp_path / "x.litertlm")


def test_the_same_inputs_give_the_same_bytes() -> None:
    script = (
        "import json\n"
        "from export.constraint import sidecar_files\n"
        "from hermes import get_dialect\n"
        "from benchmarks.made_tools import random_tools\n"
        "from runtime.bundle_tokenizer import TokenizerFacts\n"
        "tools = random_tools(5)\n"
        "facts = TokenizerFacts('sentencepiece', '1')\n"
        "print(json.dumps(sidecar_files(tools, get_dialect('hermes'), facts, 'x.litertlm')))\n"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=PROJECT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1] and len(texts[0]) > 1000


def test_the_manifest_names_what_the_grammars_were_made_for(bundle: Path) -> None:
    folder = bundle.parent / "constraint"
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    assert manifest["sentinels"] == ["<tool_call>", "</tool_call>"] and manifest["bundle"] == bundle.name
    assert manifest["tokenizer"] == dataclasses.asdict(FACTS) and manifest["not_enforced"] == []
    assert {path.name for path in folder.iterdir()} == {MANIFEST, *manifest["files"]}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    odd = Tool("odd", "", {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 3}}})
    (finding,) = json.loads(sidecar_files([odd], DIALECT, FACTS, "x")[MANIFEST])["not_enforced"]
    assert (finding["tool"], finding["pointer"], finding["keyword"]) == ("odd", "/properties/n", "multipleOf")


def test_the_folder_is_read_for_its_tools_and_others_are_compiled(bundle: Path) -> None:
    folder = bundle.parent / "constraint"
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    # Not what would be compiled, so that one sees where it comes from.
    (folder / REGEX).write_text("from the folder", encoding="utf-8")
    manifest["files"][REGEX] = hashlib.sha256(b"from the folder").hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    constraints = Constraints(bundle, DIALECT, FACTS)
    assert constraints.regex(GALLERY_TOOLS) == "from the folder"
    assert constraints.regex([ADD]) == compiled([ADD], DIALECT, FACTS)
    assert constraints.regex([ADD]) is constraints.regex([ADD])
    assert constraints.regex(GALLERY_TOOLS[:2]) == compiled(GALLERY_TOOLS[:2], DIALECT, FACTS)
    with pytest.raises(UserError, match="no constraint can be written for these tools: tool 'add': there are two"):
        constraints.regex([ADD, ADD])


def test_a_folder_for_something_else_is_refused(bundle: Path) -> None:
    other = dataclasses.replace(FACTS, sha256="1" * 64)
    with pytest.raises(UserError, match=r"manifest\.json: tokenizer\.sha256 is '0+', the bundle's is '1+'; export"):
        Constraints(bundle, DIALECT, other)
    with pytest.raises(UserError, match=r"tokenizer\.alphabet is 'byte_level', the bundle's is 'sentencepiece'"):
        Constraints(bundle, DIALECT, dataclasses.replace(FACTS, alphabet="sentencepiece"))
    with pytest.raises(UserError, match="dialect is 'hermes', the bundle's is 'json'"):
        Constraints(bundle, get_dialect("json"), FACTS)
    tools = bundle.parent / "constraint" / TOOLS
    tools.write_text(tools.read_text(encoding="utf-8").replace("Loads", "loads"), encoding="utf-8")
    with pytest.raises(UserError, match=r"tools\.json: altered since it was written"):
        Constraints(bundle, DIALECT, FACTS)
    (bundle.parent / "constraint" / MANIFEST).unlink()
    with pytest.raises(UserError, match=r"manifest\.json: cannot be read"):
        Constraints(bundle, DIALECT, FACTS)


def test_without_files_an_earlier_folder_goes(bundle: Path) -> None:
    assert write_constraint(bundle, {}) == [] and not (bundle.parent / "constraint").exists()


@pytest.mark.parametrize("seed", range(40))
def test_whatever_a_grammar_of_random_tools_writes_is_valid_for_what_is_enforced(seed: int) -> None:
    tools = random_tools(seed)
    assert tools == random_tools(seed)
    text = sample(compile_grammar(tools, DIALECT, "required").form, random.Random(seed))
    reply = DIALECT.parse(text, tools)
    assert isinstance(reply, ToolCalls) and not reply.malformed
    kept = [enforced(tool) for tool in tools]
    assert not [problem for call in reply.calls for problem in validate_call(call, kept)]


def test_after_the_opening_mark_the_rest_of_a_call_must_follow() -> None:
    call = '<tool_call>{"name": "load_skill", "arguments": {"skill_name": "maps"}}</tool_call>'
    grammar = compile_grammar(GALLERY_TOOLS)
    rest = call.removeprefix("<tool_call>")
    assert [
        verdict(grammar.after_opening, text) for text in (rest, f"{rest}\n{call}", call, "", "text", rest[:-1])
    ] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert grammar.after_opening.structural_tag["format"]["type"] == "grammar"
    with pytest.raises(ValueError, match="after_opening"):
        _ = compile_grammar(GALLERY_TOOLS, choice="none").after_opening
    with pytest.raises(ValueError, match="after_opening"):
        _ = compile_grammar(GALLERY_TOOLS, get_dialect("json")).after_opening


class Scripted:
    """Answers with one text without a constraint and another with it, however the reply begins."""

    dialect = DIALECT
    max_new_tokens = 8

    def __init__(self, free: str, held: str) -> None:
        self.texts = {True: free, False: held}

    def complete_prompt(self, prompt: str, *, regex: str | None = None) -> Completion:
        begun = "<tool_call>" if prompt.endswith("<tool_call>") else ""
        return Completion(self.texts[regex is None].removeprefix(begun), "stop", 0.0)


ILLEGAL = '<tool_call>{"name": "no_such_tool", "arguments": {}}</tool_call>'
LEGAL = '<tool_call>{"name": "load_skill", "arguments": {"skill_name": "x"}}</tool_call>'


@pytest.mark.parametrize(
    ("free", "held", "said"),
    [
        (ILLEGAL, LEGAL, "passed"),
        (LEGAL.replace("skill_name", "other"), LEGAL, "passed"),
        (ILLEGAL, ILLEGAL, "failed: illegal calls with the constraint: 4, must be at most 0"),
        (ILLEGAL, ILLEGAL[:-20], "failed: broken calls with the constraint: 4, must be at most 0"),
        (ILLEGAL[:-20], LEGAL, "not checked: the model wrote no illegal call without the constraint in 16 prompts"),
        (LEGAL, LEGAL, "not checked: the model wrote no illegal call without the constraint in 16 prompts"),
        ("No.", "No.", "not checked: the model wrote no illegal call without the constraint in 16 prompts"),
    ],
)
def test_the_gate_passes_only_where_the_constraint_prevents_something(free: str, held: str, said: str) -> None:
    assert str(check_active(Scripted(free, held), GALLERY_TOOLS, "byte_level")) == said  # type: ignore[arg-type]
