"""Does a prompt fit into the cache together with its answer?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.errors import UserError
from hermes import Conversation, Dialect, text_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def room_problem(prompt_tokens: int, max_output: int, cache_length: int) -> str | None:
    """What is wrong where a prompt and its answer need more than the cache has, all in tokens; None if they fit."""
    needed = prompt_tokens + max_output
    if needed <= cache_length:
        return None
    return (
        f"a prompt of {prompt_tokens} tokens and an answer of up to {max_output} need {needed}, "
        f"the cache has {cache_length}"
    )


def longest_prompt(
    conversations: Sequence[Conversation], dialect: Dialect, tokenizer: PreTrainedTokenizerFast
) -> tuple[str, int]:
    """Which conversation has the longest prompt, and that prompt's tokens, with all its tools; 0 if there is none."""
    # The last prompt of a conversation is its longest.
    prompts = [prompt for each in conversations for prompt in each.prompts()[-1:]]
    texts = [text_of(dialect.render(prompt, add_generation_prompt=True)) for prompt in prompts]
    lengths = [len(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]] if texts else []
    longest = max(lengths, default=0)
    return (prompts[lengths.index(longest)].id if lengths else "") or "a conversation", longest


def check_room(
    conversations: Sequence[Conversation],
    dialect: Dialect,
    tokenizer: PreTrainedTokenizerFast,
    max_output: int,
    cache_length: int,
) -> int:
    """Tokens of the longest prompt.

    Raises:
        UserError: that prompt and an answer of `max_output` tokens do not fit; the message has all three numbers.
    """
    name, longest = longest_prompt(conversations, dialect, tokenizer)
    problem = room_problem(longest, max_output, cache_length)
    if problem is not None:
        raise UserError(f"{name}: {problem}; raise export.cache_length, or lower evaluation.max_new_tokens")
    return longest
