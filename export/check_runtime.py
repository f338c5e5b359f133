"""Findings about a bundle in LiteRT-LM itself: it loads, renders, answers with and without a tool, parses a call."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.console import printable
from core.failures import meaning_of, meaning_of_exit, with_meaning
from core.files import atomic_write_json
from core.requirements import installed_version
from core.stages import PROJECT
from export.call_format import ASKED, CALL, CALLED, HISTORY, RESULT, TOOL, CallFormat, first_difference, probe_calls
from export.check_metadata import has_empty_fence
from export.check_template import chat_template
from export.findings import Check, Finding
from export.inspect import Bundle, BundleTokenizer
from hermes import Message, Tool
from hermes.grammar.form import Text
from hermes.grammar.regex import Alphabet, write
from runtime.bundle_tokenizer import alphabet_of
from runtime.litert_messages import to_runtime

SECONDS = 300
"""How long the runtime may take for everything."""

_TEXTS = ("The probe: <b>naïve</b> 東京\n\t{}", json.dumps(dict(CALL.arguments)))
_CASES: dict[str, tuple[tuple[Message, ...], tuple[Tool, ...]]] = {
    "no tool": ((ASKED,), ()),
    "one declared tool": ((ASKED,), (TOOL,)),
    "a call and its result": ((ASKED, CALLED, RESULT), (TOOL,)),
    "a second question": (HISTORY[:5], (TOOL,)),
}
"""A bundle whose metadata do not fit its template fails only once a tool is declared, or a call is in the history."""
_JSON_TYPES = ("qwen3", "qwen2p5", "generic_model")
"""Types that hand tools and calls to the template as they are; others may write them in their own way first."""


def check_runtime(bundle: Bundle) -> Iterator[Finding]:
    """Everything that only the runtime can tell; each step that it did not come to is not checked."""
    if installed_version("litert-lm-api") is None:
        yield Finding("not checked", "litert-lm-api is not installed", "run `make setup`")
        return
    if has_empty_fence(bundle):
        yield Finding("not checked", "LiteRT-LM would hang on the empty code fence", "see the finding about fences")
        return
    steps, ended = _run(bundle)
    loaded = next((step for step in steps if step["step"] == "load"), None)
    if loaded is None or "error" in loaded:
        words = ended if loaded is None else printable(with_meaning(loaded["error"]))
        yield Finding("fault", f"LiteRT-LM cannot load it: {words}", "see the other findings")
        return
    yield from _tokens(bundle, steps)
    yield from _prompts(bundle, steps)
    yield from _replies(steps)
    yield from _call(bundle, steps)
    if steps[-1]["step"] != "end":
        yield Finding("fault", f"LiteRT-LM {loaded['version']} did not finish: {ended}", "see the other findings")


def _run(bundle: Bundle) -> tuple[list[dict[str, Any]], str]:
    """The steps that the runtime came to, and how its process ended."""
    with tempfile.TemporaryDirectory() as folder:
        probes = Path(folder) / "probes.json"
        atomic_write_json(probes, _probes(bundle))
        command = [sys.executable, "-m", "runtime.probe", str(bundle.path.resolve()), str(probes)]
        try:
            done = subprocess.run(
                command, cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as late:
            return _steps(late.stdout or b""), f"it was stopped after {SECONDS} s"
    last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    words = [meaning_of_exit(done.returncode), *map(printable, last)]
    meaning = meaning_of(" ".join(last))
    return _steps(done.stdout), "; ".join([*words, *([meaning] if meaning else [])])


def _steps(output: bytes) -> list[dict[str, Any]]:
    steps = []
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            step = json.loads(line)
        except ValueError:
            continue
        if isinstance(step, dict) and "step" in step:
            steps.append(step)
    return steps


def _probes(bundle: Bundle) -> dict[str, Any]:
    cases = [_case(name, *given) for name, given in _CASES.items()]
    call = None
    calls = _calls(bundle)
    alphabet = None if bundle.tokenizer is None else _alphabet(bundle.tokenizer)
    if calls is not None and bundle.tokenizer is not None and alphabet is not None:
        written = calls.written.strip()
        regex, limit = write(Text(written), alphabet), 2 * len(bundle.tokenizer.encode(written)) + 8
        call = _case("call", (ASKED,), (TOOL,)) | {"regex": regex, "limit": limit}
    return {"texts": _TEXTS, "cases": cases, "call": call}


def _case(name: str, messages: tuple[Message, ...], tools: tuple[Tool, ...]) -> dict[str, Any]:
    return {
        "name": name,
        "messages": [to_runtime(message) for message in messages],
        "tools": [tool.to_openai() for tool in tools],
    }


def _calls(bundle: Bundle) -> CallFormat | None:
    try:
        return probe_calls(chat_template(bundle))
    except ValueError:
        return None


def _alphabet(tokenizer: BundleTokenizer) -> Alphabet | None:
    """How the tokenizer spells a space; None if that is not known."""
    return "sentencepiece" if tokenizer.kind == "SentencePiece" else alphabet_of(tokenizer.json)


def _tokens(bundle: Bundle, steps: list[dict[str, Any]]) -> Iterator[Finding]:
    found = next((step["ids"] for step in steps if step["step"] == "tokens"), None)
    if found is None or bundle.tokenizer is None:
        yield Finding("not checked", "how LiteRT-LM tokenises")
        return
    for text, ids in zip(_TEXTS, found, strict=True):
        expected = bundle.tokenizer.encode(text)
        if ids != expected:
            words = f"LiteRT-LM tokenises {text!r} as {ids}, the {bundle.tokenizer.kind} in the bundle as {expected}"
            yield Finding("fault", words, "pack the tokenizer in its other form (tokenizer.json or SentencePiece)")
            return


def _prompts(bundle: Bundle, steps: list[dict[str, Any]]) -> Iterator[Finding]:
    prompts = {step["name"]: step["prompt"] for step in steps if step["step"] == "prompt"}
    template = chat_template(bundle)
    for name, prompt in prompts.items():
        messages, tools = _CASES[name]
        if not prompt:
            yield Finding("fault", f"{name}: LiteRT-LM renders nothing", "mend the template (see its features)")
            continue
        try:
            expected = template.render(messages, tools=tools, parts=True, prompt=True)
        except ValueError as error:
            yield Finding("not checked", f"{name}: whether LiteRT-LM renders what training saw: {error}")
            continue
        if prompt != expected:
            at = first_difference(prompt, expected)
            words = f"LiteRT-LM renders {prompt[at : at + 40]!r}, Jinja2 {expected[at : at + 40]!r}"
            if bundle.type_name in _JSON_TYPES:
                words = f"{name}: from character {at} on {words}"
                yield Finding("fault", words, "write the template with what both engines have")
            else:
                words = f"{name}: {bundle.type_name} hands tools and calls to the template in its own words: {words}"
                yield Finding("warning", words, "train on what LiteRT-LM renders, or take the type qwen3")


def _replies(steps: list[dict[str, Any]]) -> Iterator[Finding]:
    replies = {step["name"]: step for step in steps if step["step"] == "reply"}
    for name in _CASES:
        if name not in replies:
            yield Finding("not checked", f"{name}: the runtime did not come to it")
        elif "error" in replies[name]:
            words = printable(with_meaning(replies[name]["error"]))
            yield Finding("fault", f"{name}: the turn fails: {words}", "see the findings about template and parser")


def _call(bundle: Bundle, steps: list[dict[str, Any]]) -> Iterator[Finding]:
    step = next((step for step in steps if step["step"] == "call"), None)
    calls = _calls(bundle)
    if step is None or calls is None:
        yield Finding("not checked", "whether a call is parsed: none could be written")
    elif "error" in step:
        yield Finding("not checked", f"whether a call is parsed: {printable(with_meaning(step['error']))}")
    elif not step["tool_calls"]:
        words = f"a call as the template writes it, {calls.written.strip()!r}, comes back as text"
        yield Finding("fault", words, "see the finding about parser and fences")
    else:
        found = [call.get("function", call) for call in step["tool_calls"]]
        if found[0].get("name") != CALL.name or found[0].get("arguments") != CALL.arguments:
            yield Finding("fault", f"a call as the template writes it comes back as {found}", "see parser and fences")


RUNTIME_CHECKS: tuple[tuple[str, Check], ...] = (("in LiteRT-LM", check_runtime),)
