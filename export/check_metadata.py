"""Findings about a bundle's metadata: parser and fences, stop tokens, lengths, ids, sampler, images and audio."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from export.call_format import CallFormat, probe_calls, probe_turns
from export.check_template import chat_template, token_texts
from export.findings import Check, Finding
from export.inspect import Bundle
from export.lengths import room_problem
from export.stops import ENDS_OF_TURN
from hermes import Message
from hermes.gallery_tools import GALLERY_TOOLS

GALLERY_RUNTIME = (0, 11, 0)
"""LiteRT-LM's version in AI Edge Gallery 1.0.18."""
ANSWER_TOKENS = 256
"""Room that an answer of Agent Skills needs at least: a call with a longer text argument."""


@dataclass(frozen=True)
class _Parser:
    """How a model type finds calls in a reply where the metadata do not say otherwise."""

    opening: str
    closing: str
    syntax: str
    """`json`: one object with `name` and `arguments`; other syntaxes are only tried in the runtime."""


_PARSERS = {
    "qwen3": _Parser("<tool_call>", "</tool_call>", "json"),
    "qwen2p5": _Parser("<tool_call>", "</tool_call>", "json"),
    "function_gemma": _Parser("<start_function_call>", "<end_function_call>", "fc"),
    "gemma4": _Parser("<|tool_call>", "<tool_call|>", "fc"),
    "gemma3": _Parser("```tool_code\n", "\n```", "python"),
    "gemma3n": _Parser("```tool_code\n", "\n```", "python"),
    "lfm2": _Parser("", "", "python"),
    "minicpm5": _Parser("", "", "xml"),
}
"""Model types with a parser. The others (`generic_model`, `fast_vlm`, `minicpmv4`) show a call as text."""


_FENCES = ("code_fence_start", "code_fence_end")


def check_parser(bundle: Bundle) -> Iterator[Finding]:
    """A parser exists for the type, and reads what the template writes for a call."""
    if bundle.metadata is None:
        yield Finding("fault", "there are no LLM metadata", "export with add_llm_metadata")
        return
    try:
        calls = probe_calls(chat_template(bundle))
    except ValueError as error:
        yield Finding("not checked", f"the template shows no call: {error}")
        return
    parser = _PARSERS.get(bundle.type_name)
    if parser is None:
        yield Finding(
            "fault",
            f"llm_model_type is {bundle.type_name or 'not set'}, which never parses a call: it is shown as text",
            _mended(calls),
        )
        return
    given = getattr(bundle.metadata.llm_model_type, bundle.type_name)
    parser = _Parser(
        _given(given, "code_fence_start", parser.opening),
        _given(given, "code_fence_end", parser.closing),
        getattr(given, "syntax_type", "") or parser.syntax,
    )
    if parser.syntax == "json":
        yield from _json_parser(bundle, given, parser, calls)
    if _set(bundle.metadata, "supports_function_calling") and not bundle.metadata.supports_function_calling:
        yield Finding(
            "warning",
            "supports_function_calling is false, while the template writes calls",
            "set it, or apps may offer no tools",
        )


def has_empty_fence(bundle: Bundle) -> bool:
    """Whether a code fence is set to nothing, with which LiteRT-LM searches a reply for ever (0.18.1)."""
    kind = getattr(bundle.metadata.llm_model_type, bundle.type_name) if bundle.type_name else None
    return any(_set(kind, name) and not getattr(kind, name) for name in _FENCES) if kind is not None else False


def _json_parser(bundle: Bundle, given: Any, parser: _Parser, calls: CallFormat) -> Iterator[Finding]:
    if has_empty_fence(bundle):
        yield Finding("fault", "a code fence is empty: LiteRT-LM 0.18.1 hangs in the first reply", _mended(calls))
    elif not getattr(given, "escape_fence_strings", True) and _set(given, "escape_fence_strings"):
        yield Finding("not checked", "the fences are regular expressions, which are not compared with the template")
    elif not calls.is_json:
        yield Finding(
            "fault",
            f"the parser reads a JSON object with `name` and `arguments`, the template writes {calls.written!r}",
            _mended(calls),
        )
    elif not _reads(parser, calls.written.strip()):
        yield Finding(
            "fault",
            f"the parser looks for calls between {parser.opening!r} and {parser.closing!r}, "
            f"the template writes them between {calls.opening!r} and {calls.closing!r}",
            _mended(calls),
        )


def _reads(parser: _Parser, written: str) -> bool:
    if not (written.startswith(parser.opening) and written.endswith(parser.closing)):
        return False
    try:
        json.loads(written[len(parser.opening) : -len(parser.closing)])
    except ValueError:
        return False
    return True


def _mended(calls: CallFormat) -> str:
    if calls.is_json:
        fences = f"code_fence_start {calls.opening!r} and code_fence_end {calls.closing!r}"
        return f"export with llm_model_type qwen3, {fences}"
    return "take a template that writes a call as JSON with `name` and `arguments` between two marks"


def _set(message: Any, name: str) -> bool:
    """Whether an optional field is there and set; fields without presence count as set where they are not empty."""
    field = message.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        return False
    return bool(message.HasField(name)) if field.has_presence else bool(getattr(message, name))


def _given(message: Any, name: str, default: str) -> str:
    return str(getattr(message, name)) if _set(message, name) else default


def check_stops(bundle: Bundle) -> Iterator[Finding]:
    """A reply must end: by what the template writes after it, and by every end of turn that the vocabulary has."""
    if bundle.metadata is None:
        return
    stops = [text for token in bundle.metadata.stop_tokens for text in token_texts(bundle, token)]
    if not bundle.metadata.stop_tokens:
        yield Finding("fault", "there are no stop tokens: a reply ends only where the cache is full", "add them")
        return
    if bundle.tokenizer is None:
        yield Finding("not checked", "there is no tokenizer to compare stop tokens with")
        return
    try:
        ending = probe_turns(chat_template(bundle)).ending.strip()
    except ValueError as error:
        yield Finding("not checked", f"the template shows no end of a turn: {error}")
    else:
        mark = max((text for text in bundle.tokenizer.ids if ending.startswith(text)), key=len, default="")
        if ending and not any(ending.startswith(stop) for stop in stops):
            yield Finding(
                "fault",
                f"the template ends a turn with {(mark or ending)[:40]!r}, the stop tokens are {', '.join(stops)}",
                "add it to stop_tokens",
            )
    others = sorted(text for text in bundle.tokenizer.ids if text in ENDS_OF_TURN and text not in stops)
    if others:
        words = f"the vocabulary also has {', '.join(others)}, which do not stop a reply"
        yield Finding("warning", words, "add those that the model was trained to write to stop_tokens")


def check_ids(bundle: Bundle) -> Iterator[Finding]:
    """No id outside of the vocabulary that the graph scores."""
    if bundle.metadata is None:
        return
    tokens = {"stop_tokens": [*bundle.metadata.stop_tokens]}
    tokens |= {
        name: [getattr(bundle.metadata, name)]
        for name in ("start_token", "pad_token")
        if bundle.metadata.HasField(name)
    }
    ids = {name: [each for token in given for each in token.token_ids.ids] for name, given in tokens.items()}
    ids["suppress_tokens"] = list(bundle.metadata.suppress_tokens.ids)
    size = bundle.vocabulary
    if size is None:
        yield Finding("not checked", "the graph's vocabulary cannot be read, so ids are not compared with it")
        return
    if bundle.tokenizer is not None and bundle.tokenizer.ids:
        ids["the tokenizer"] = [max(bundle.tokenizer.ids.values())]
    for name, given in ids.items():
        outside = sorted({each for each in given if not 0 <= each < size})
        if outside:
            words = f"{name}: id {', '.join(map(str, outside))} is outside of the graph's {size} tokens"
            yield Finding("fault", words, "take the tokenizer and the ids of the same checkpoint as the graph")
    for name, given in tokens.items():
        for text in (token.token_str for token in given if token.token_str):
            if bundle.tokenizer is not None and text not in bundle.tokenizer.ids:
                yield Finding("fault", f"{name}: {text!r} is no token of the vocabulary", "give the token's id")


def check_lengths(bundle: Bundle) -> Iterator[Finding]:
    """The cache, the limit of tokens, and the prompt of Agent Skills with an answer."""
    if bundle.metadata is None:
        return
    limit, cache = bundle.metadata.max_num_tokens, bundle.cache_length
    if cache is None:
        yield Finding("not checked", "the length of the graph's cache cannot be read")
    elif limit > cache:
        yield Finding(
            "fault", f"max_num_tokens is {limit}, the graph's cache holds {cache}", f"set max_num_tokens to {cache}"
        )
    room = min(each for each in (limit or cache, cache or limit, 1 << 30) if each)
    if room == 1 << 30 or bundle.tokenizer is None:
        yield Finding("not checked", "whether the prompt of Agent Skills fits")
        return
    try:
        prompt = chat_template(bundle).render(_agent_skills(), tools=GALLERY_TOOLS, parts=True, prompt=True)
    except ValueError as error:
        yield Finding("not checked", f"the template refuses the prompt of Agent Skills: {error}")
        return
    problem = room_problem(len(bundle.tokenizer.encode(prompt)), ANSWER_TOKENS, room)
    if problem is not None:
        words = f"Agent Skills with the skills that ship here: {problem}"
        yield Finding("fault", words, "export with a longer cache, or select fewer skills")


def _agent_skills() -> tuple[Message, ...]:
    """The phone's first turn."""
    from data.skill_library import shipped_skills, system_prompt

    return (Message("system", system_prompt(shipped_skills())), Message("user", "How many miles are 12 km?"))


def check_text_only(bundle: Bundle) -> Iterator[Finding]:
    """No images and no audio, neither in the file nor promised by the model type."""
    others = sorted(
        {each.model_type for each in bundle.sections if "vision" in each.model_type or "audio" in each.model_type}
    )
    if others:
        words = f"the bundle has {', '.join(others)}, which Agent Skills do not use"
        yield Finding("warning", words, "leave image and audio support off when it is imported")
    if bundle.metadata is None or not bundle.type_name:
        return
    kind = getattr(bundle.metadata.llm_model_type, bundle.type_name)
    for what, kinds in (("image", "vision"), ("audio", "audio")):
        promised = _set(kind, f"start_of_{what}_token") or bool(getattr(kind, f"{what}_enabled", False))
        if promised and not any(kinds in name for name in others):
            words = f"llm_model_type {bundle.type_name} speaks of {what}, and no section of the file reads it"
            yield Finding("fault", words, f"remove the {what} fields from the metadata")


def check_file(bundle: Bundle) -> Iterator[Finding]:
    """What is there at all, and whether the phone's version of the runtime takes it."""
    if bundle.path.suffix != ".litertlm":
        yield Finding("fault", "LiteRT-LM loads only files whose name ends in .litertlm", "rename the file")
    if bundle.tokenizer is None:
        yield Finding("fault", "there is no tokenizer", "add the checkpoint's tokenizer.json")
    if "tf_lite_prefill_decode" not in bundle.graphs:
        yield Finding("fault", "there is no prefill-decode graph", "export the model again")
    elif not bundle.main_graph:
        yield Finding("not checked", "the graph's signatures cannot be read")
    else:
        for need in ("prefill", "decode"):
            if not any(name.startswith(need) for name in bundle.main_graph):
                yield Finding("fault", f"the graph has no {need} signature", "export the model again")
    if bundle.metadata is None:
        return
    if bundle.metadata.HasField("sampler_params") and bundle.metadata.sampler_params.type == 3:
        yield Finding(
            "fault",
            "the sampler is GREEDY, which LiteRT-LM has not for the CPU",
            "use top-p with k = 1, which is greedy too",
        )
    needed = bundle.metadata.min_runtime_version
    numbers = tuple(int(part) for part in needed.split(".") if part.isdecimal())
    if numbers > GALLERY_RUNTIME:
        words = f"it asks for LiteRT-LM {needed}, AI Edge Gallery 1.0.18 has {'.'.join(map(str, GALLERY_RUNTIME))}"
        yield Finding("warning", words, "lower min_runtime_version if it runs there (`make compat`)")


METADATA_CHECKS: tuple[tuple[str, Check], ...] = (
    ("parts of the file", check_file),
    ("parser and fences", check_parser),
    ("stop tokens", check_stops),
    ("token ids", check_ids),
    ("cache and prompt", check_lengths),
    ("text only", check_text_only),
)
