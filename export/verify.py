"""Does the finished bundle do in LiteRT-LM what training saw? Checked before it gets its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import UserError
from hermes import Conversation, Dialect, Malformed, ToolCalls, text_of
from runtime.litert_backend import LiteRTBackend, ReplyError
from runtime.litert_messages import as_message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PROMPTS = 24
"""Prompts whose text and token ids are compared."""
CALLS = 4
"""Conversations that are asked for their first call."""


def verify(
    bundle: Path,
    dialect: Dialect,
    tokenizer: PreTrainedTokenizerFast,
    conversations: Sequence[Conversation],
    cache_length: int,
) -> dict[str, Any]:
    """Evidence that `bundle` can be trusted.

    Checked: every prompt is, in text and token ids, what training rendered; no token is put in front of
    it; the longest conversation fits; calls that the model writes are parsed alike by the runtime and by
    the dialect. A check that could not be made says so, and is not a pass.

    Raises:
        UserError: a check failed; the message says what differs.
    """
    prompts = [prompt for conversation in conversations for prompt in _prompts(conversation)]
    with LiteRTBackend(bundle, dialect.name, max_new_tokens=96) as backend:
        if backend.engine.bos_token_id is not None:
            raise UserError(f"{bundle}: the runtime puts token {backend.engine.bos_token_id} in front of every prompt")
        for prompt in prompts[:PROMPTS]:
            _check_prompt(backend, dialect, tokenizer, prompt, bundle)
        longest = max(
            len(tokenizer(text_of(dialect.render(each)), add_special_tokens=False)["input_ids"])
            for each in conversations
        )
        if longest >= cache_length:
            raise UserError(
                f"{bundle}: the longest test conversation has {longest} tokens, the cache {cache_length}; "
                "raise export.cache_length"
            )
        calls = _check_calls(backend, dialect, [each for each in prompts if len(each.messages) == 2][:CALLS], bundle)
    return {
        "prompts equal in text and token ids": min(len(prompts), PROMPTS),
        "token in front of the prompt": None,
        "longest conversation, tokens": longest,
        "cache, tokens": cache_length,
        "calls": calls,
    }


def _prompts(conversation: Conversation) -> list[Conversation]:
    """The conversation up to each of its assistant turns."""
    ends = [index for index, message in enumerate(conversation.messages) if message.role == "assistant"]
    return [replace(conversation, messages=conversation.messages[:end]) for end in ends]


def _check_prompt(
    backend: LiteRTBackend, dialect: Dialect, tokenizer: PreTrainedTokenizerFast, prompt: Conversation, bundle: Path
) -> None:
    expected = text_of(dialect.render(prompt, add_generation_prompt=True))
    rendered = backend.rendered_prompt(prompt)
    if rendered != expected:
        at = next((i for i, (a, b) in enumerate(zip(rendered, expected, strict=False)) if a != b), 0)
        raise UserError(
            f"{bundle}: LiteRT-LM renders {prompt.id} differently from character {at} on: "
            f"{rendered[at : at + 60]!r} where training saw {expected[at : at + 60]!r}"
        )
    ids = tokenizer(expected, add_special_tokens=False)["input_ids"]
    if backend.engine.tokenize(expected) != ids:
        raise UserError(f"{bundle}: LiteRT-LM tokenises {prompt.id} differently from training")


def _check_calls(
    backend: LiteRTBackend, dialect: Dialect, prompts: Sequence[Conversation], bundle: Path
) -> dict[str, object]:
    """Ask each prompt twice, as raw text and as the runtime's parsed message, and compare the calls."""
    written = 0
    for prompt in prompts:
        completion = backend.complete([prompt])[0]
        ours = dialect.parse(completion.text, prompt.tools, completion.finish_reason)
        try:
            theirs = as_message(backend.reply(prompt)).calls
        except ReplyError as error:
            if not isinstance(ours, Malformed):
                raise UserError(f"{bundle}: LiteRT-LM refuses the answer to {prompt.id}: {error}") from None
            continue
        if isinstance(ours, ToolCalls):
            written += 1
            if theirs != ours.calls:
                raise UserError(
                    f"{bundle}: LiteRT-LM reads {completion.text!r} as {theirs}, "
                    f"the {dialect.name} dialect as {ours.calls}"
                )
    status = "parsed alike" if written else "not checked: the model wrote no call"
    return {"asked": len(prompts), "written": written, "status": status}
