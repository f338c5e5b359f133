"""Does the finished bundle do in LiteRT-LM what training saw? Checked before it gets its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import UserError
from hermes import Conversation, Dialect, Malformed, Message, Reply, ToolCalls, text_of
from runtime.litert_backend import LiteRTBackend, ReplyError
from runtime.litert_messages import as_message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PROMPTS = 24
"""Prompts whose text and token ids are compared."""
REPLIES = 4
"""Conversations whose first turns are asked for."""


def check_lengths(
    conversations: Sequence[Conversation],
    dialect: Dialect,
    tokenizer: PreTrainedTokenizerFast,
    cache_length: int,
    where: Path,
) -> int:
    """Tokens of the longest conversation.

    Raises:
        UserError: it does not fit into the cache; the message begins with `where`.
    """
    longest = max(
        len(tokenizer(text_of(dialect.render(each)), add_special_tokens=False)["input_ids"]) for each in conversations
    )
    if longest >= cache_length:
        raise UserError(
            f"{where}: the longest test conversation has {longest} tokens, the cache {cache_length}; "
            "raise export.cache_length"
        )
    return longest


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
    the dialect; a second turn is that of a fresh conversation. A check that could not be made says so, and
    is not a pass.

    Raises:
        UserError: a check failed; the message says what differs.
    """
    prompts = [prompt for conversation in conversations for prompt in conversation.prompts()]
    with LiteRTBackend(bundle, dialect.name, max_new_tokens=96) as backend:
        if backend.engine.bos_token_id is not None:
            raise UserError(f"{bundle}: the runtime puts token {backend.engine.bos_token_id} in front of every prompt")
        for prompt in prompts[:PROMPTS]:
            _check_prompt(backend, dialect, tokenizer, prompt, bundle)
        longest = check_lengths(conversations, dialect, tokenizer, cache_length, bundle)
        replies = _check_replies(backend, dialect, _samples(conversations), bundle)
    return {
        "prompts equal in text and token ids": min(len(prompts), PROMPTS),
        "token in front of the prompt": None,
        "longest conversation, tokens": longest,
        "cache, tokens": cache_length,
        "replies": replies,
    }


def _samples(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Conversations with a call first, then others."""
    return sorted(conversations, key=lambda each: len(each.prompts()) < 2)[:REPLIES]


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


def _check_replies(
    backend: LiteRTBackend, dialect: Dialect, conversations: Sequence[Conversation], bundle: Path
) -> dict[str, object]:
    """Ask for first turns, as raw text and as the runtime's parsed message, and go on with a second one."""
    written = stopped = 0
    second = "not checked: no first turn ended by itself"
    for conversation in conversations:
        prompt, *later = conversation.prompts()
        completion = backend.complete([prompt])[0]
        stopped += completion.finish_reason == "stop"
        ours = dialect.parse(completion.text, prompt.tools, finish_reason=completion.finish_reason)
        try:
            reply = as_message(backend.reply(prompt))
        except ReplyError as error:
            if not isinstance(ours, Malformed):
                raise UserError(f"{bundle}: LiteRT-LM refuses the answer to {prompt.id}: {error}") from None
            continue
        _same_calls(ours, reply, completion.text, bundle)
        written += isinstance(ours, ToolCalls)
        if later and completion.finish_reason == "stop":
            given = later[0].messages[len(prompt.messages) + 1 :]
            _check_second_turn(backend, replace(prompt, messages=(*prompt.messages, reply, *given)), bundle)
            second = "as in a fresh conversation"
    none = "not checked: the model wrote no call"
    return {
        "asked": len(conversations),
        "calls": f"{written} parsed alike by runtime and dialect" if written else none,
        "second turn": second,
        "stop token": f"ended {stopped} of {len(conversations)}" if stopped else "not checked: no reply ended",
    }


def _same_calls(ours: Reply, reply: Message, text: str, bundle: Path) -> None:
    """Both parsers must find the same calls; the runtime alone gives a body without arguments empty ones."""
    calls = ours.calls if isinstance(ours, ToolCalls) else ()
    if reply.calls != calls and not isinstance(ours, Malformed):
        raise UserError(f"{bundle}: LiteRT-LM reads {text!r} as {reply.calls}, the dialect as {calls}")


def _check_second_turn(backend: LiteRTBackend, conversation: Conversation, bundle: Path) -> None:
    """The turn after a result must be the same whether the cache of the first turn is kept or not."""
    kept = backend.reply(conversation)
    backend.complete([conversation])
    if backend.reply(conversation) != kept:
        raise UserError(f"{bundle}: the second turn of {conversation.id} differs from that of a fresh conversation")
