"""Findings about a bundle's chat template, by reading it and by rendering a conversation of two rounds of calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from export.call_format import ANSWERED, ASKED, CALL, HISTORY, RESULT, TOOL, ChatTemplate, chat, first_difference
from export.findings import Check, Finding, Severity
from export.inspect import Bundle
from export.plain_engine import render_plain
from export.template_features import missing_features

_OURS = "take a template that does, such as that of the `hermes` dialect"


def chat_template(bundle: Bundle) -> ChatTemplate:
    """The bundle's template with the texts of its first and last token, which LiteRT-LM gives it."""
    if bundle.metadata is None:
        return ChatTemplate("")
    start = token_texts(bundle, bundle.metadata.start_token) if bundle.metadata.HasField("start_token") else []
    stops = [text for token in bundle.metadata.stop_tokens for text in token_texts(bundle, token)]
    return ChatTemplate(bundle.template, "".join(start), stops[0] if stops else "")


def token_texts(bundle: Bundle, token: Any) -> list[str]:
    """The texts of a metadata's token, which is given as text or as ids; unknown ids have none."""
    if token.token_str:
        return [str(token.token_str)]
    texts = {index: text for text, index in bundle.tokenizer.ids.items()} if bundle.tokenizer else {}
    return [texts[index] for index in token.token_ids.ids if index in texts]


def check_features(bundle: Bundle) -> Iterator[Finding]:
    """Every construct that some engine lacks, in branches that no conversation reached too."""
    if not bundle.template:
        yield Finding(
            "fault",
            "there is no chat template, so tools cannot be declared",
            "export with jinja_prompt_template in the metadata",
        )
        return
    try:
        features = missing_features(bundle.template)
    except ValueError as error:
        yield Finding("fault", f"the template is no Jinja: {error}", "mend that line")
        return
    for feature in features:
        lines = f"line{'s' if len(feature.lines) > 1 else ''} {', '.join(map(str, feature.lines))}"
        lacks = "LiteRT-LM lacks it" if feature.refused else "LiteRT-LM has it, other engines do not"
        severity: Severity = "fault" if feature.refused else "warning"
        yield Finding(severity, f"`{feature.name}` ({lines}): {lacks}", f"write {feature.instead}")


def check_contents(bundle: Bundle) -> Iterator[Finding]:
    """A message's content may be text or a list of parts, and nothing may get lost."""
    template = chat_template(bundle)
    if not template.text:
        yield Finding("not checked", "there is no chat template")
        return
    texts: dict[str, str] = {}
    for form, parts in (("text", False), ("lists of parts", True)):
        try:
            texts[form] = template.render(HISTORY, parts=parts)
        except ValueError as error:
            which = "LiteRT-LM 0.18 hands over" if parts else "transformers and LiteRT-LM 0.11 hand over"
            yield Finding("fault", f"contents as {form}, which {which}, are refused: {error}", _OURS)
    for form, text in texts.items():
        yield from _lost(form, text)
    if len(texts) == 2 and len(set(texts.values())) == 2:
        yield Finding("fault", "contents as text and as lists of parts are written differently", _OURS)


def _lost(form: str, text: str) -> Iterator[Finding]:
    needed = {
        "the user's text": ASKED.content,
        "the assistant's text": ANSWERED.content,
        "the name of a declared tool": TOOL.name,
        "the description of a declared tool": TOOL.description,
        "the arguments of a call": next(iter(CALL.arguments.values())),
        "a tool's result": next(iter(RESULT.content.values())),
    }
    for what, words in needed.items():
        if str(words) not in text:
            yield Finding("fault", f"{what} does not appear in the prompt, with contents as {form}", _OURS)
    if "'type':" in text or '"type": "text"' in text:
        yield Finding("fault", f"contents as {form} are printed as a list", _OURS)


def check_history(bundle: Bundle) -> Iterator[Finding]:
    """A longer history must begin with the shorter one, or LiteRT-LM fails in the second turn."""
    template = chat_template(bundle)
    try:
        shorter = [template.render(HISTORY[:length], parts=True) for length in range(1, len(HISTORY) + 1)]
        prompts = [template.render(HISTORY[:length], parts=True, prompt=True) for length in range(1, len(HISTORY))]
    except ValueError as error:
        yield Finding("not checked", f"the template refuses a conversation: {error}")
        return
    for length, (before, after) in enumerate(pairwise(shorter), 1):
        if not after.startswith(before):
            which = f"message {length + 1} ({HISTORY[length].role})"
            yield Finding(
                "fault",
                f"with {which} the template rewrites what it wrote before: {_difference(before, after)}",
                "write every message the same, wherever the conversation ends",
            )
    for length, (prompt, after) in enumerate(zip(prompts, shorter[1:], strict=False), 1):
        if HISTORY[length].role == "assistant" and not after.startswith(prompt):
            yield Finding(
                "warning",
                f"the prompt for message {length + 1} is not how that message begins: {_difference(prompt, after)}",
                "begin an assistant's turn as add_generation_prompt does",
            )
            return


def _difference(before: str, after: str) -> str:
    at = first_difference(before, after)
    return f"{before[at : at + 40]!r} became {after[at : at + 40]!r}"


def check_plain_engine(bundle: Bundle) -> Iterator[Finding]:
    """The same conversation in an engine that has none of Python's methods."""
    template = chat_template(bundle)
    for parts in (False, True):
        try:
            expected = template.render(HISTORY, parts=parts)
        except ValueError:
            yield Finding("not checked", "Jinja2 refuses the conversation, so there is nothing to compare with")
            return
        try:
            text = render_plain(
                template.text,
                messages=[chat(message, parts) for message in HISTORY],
                tools=[TOOL.to_openai()],
                add_generation_prompt=False,
                bos_token=template.bos_token,
                eos_token=template.eos_token,
            )
        except ValueError as error:
            yield Finding("warning", f"MiniJinja without Python's methods refuses the template: {error}", _OURS)
            return
        if text is None:
            yield Finding("not checked", "the package minijinja is not installed", "run `make setup`")
            return
        if text != expected:
            words = _difference(expected, text)
            yield Finding("warning", f"MiniJinja without Python's methods writes another text: {words}", _OURS)
            return


def check_first_token(bundle: Bundle) -> Iterator[Finding]:
    """The runtime puts `start_token` in front of the prompt; a template that writes it too doubles it."""
    metadata = bundle.metadata
    if metadata is None or not metadata.HasField("start_token"):
        return
    start = "".join(token_texts(bundle, metadata.start_token))
    if not start:
        yield Finding("not checked", "the text of start_token is not known")
        return
    try:
        begins = chat_template(bundle).render((ASKED,))
    except ValueError as error:
        yield Finding("not checked", f"the template refuses a conversation: {error}")
        return
    if begins.startswith(start):
        yield Finding(
            "fault",
            f"start_token is {start!r}, and the template begins with it: the model sees it twice",
            "leave start_token out of the metadata",
        )
    if bundle.tokenizer and start not in bundle.tokenizer.ids:
        yield Finding("warning", f"start_token {start!r} is no token of the tokenizer", "leave it out, or give its id")


TEMPLATE_CHECKS: tuple[tuple[str, Check], ...] = (
    ("template features", check_features),
    ("contents as text and as parts", check_contents),
    ("history stays as it was", check_history),
    ("an engine without Python's methods", check_plain_engine),
    ("first token", check_first_token),
)
