"""How fast the runtime was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Speed:
    """What the runtime measured in its last turn."""

    prompt_tokens: int
    """Tokens prefilled in this turn; fewer than the prompt's where earlier ones were kept."""
    prompt_tokens_per_second: float
    new_tokens: int
    """With the end-of-turn mark."""
    new_tokens_per_second: float
    first_token_seconds: float
    """Time to the first token of the conversation or session."""


def speed_of(info: Any) -> Speed:
    """What the runtime measured, from its own record."""
    return Speed(
        info.last_prefill_token_count,
        info.last_prefill_tokens_per_second,
        info.last_decode_token_count,
        info.last_decode_tokens_per_second,
        info.time_to_first_token_in_second,
    )
