"""Text in, text out: what a bundle writes after a prompt that is taken as it is.

A session of the runtime does that, but takes no constraint; a conversation takes one, but renders and parses. Without
tools it parses nothing, and with a template that prints what it is given, it renders nothing either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

AS_IT_IS = (
    "{% for message in messages %}{% if message.role == 'user' %}"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}"
    "{% endif %}{% endfor %}"
)
"""A template that prints what the user said and nothing else."""


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen."""

    temperature: float = 0.0
    """0: always the likeliest token."""
    seed: int = 0

    def config(self) -> Any:
        """The runtime's settings; above temperature 0 any token may come."""
        import litert_lm

        if self.temperature == 0:
            return litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=0.0)
        return litert_lm.SamplerConfig(top_k=_WHOLE_VOCABULARY, top_p=1.0, temperature=self.temperature, seed=self.seed)


GREEDY = Sampling()
_WHOLE_VOCABULARY = 1_000_000
"""More than any vocabulary has; the runtime then takes all tokens."""


class Raw(Protocol):
    """A live exchange of text; its keys and values are kept until it is closed."""

    def ask(self, text: str) -> Iterator[str]:
        """What the model writes after all text so far and `text`, in pieces of at least a token."""
        ...

    def benchmark(self) -> Any:
        """The runtime's measurements of the last turn."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


class RawSession:
    """A session of the runtime."""

    def __init__(self, engine: Any, sampling: Sampling, limit: int) -> None:
        self._session = engine.create_session(
            apply_prompt_template=False, sampler_config=sampling.config(), max_output_tokens=limit
        )

    def ask(self, text: str) -> Iterator[str]:
        """One token a piece."""
        self._session.run_prefill([text])
        for response in self._session.run_decode_async():
            yield response.texts[0]

    def benchmark(self) -> Any:
        """The runtime's measurements of the last turn."""
        return self._session.get_benchmark_info()

    def close(self) -> None:
        """Release it."""
        self._session.close()


class RawConversation:
    """A conversation of the runtime that writes only what a regular expression allows."""

    def __init__(self, engine: Any, sampling: Sampling, limit: int, regex: str) -> None:
        self._conversation = engine.create_conversation(
            automatic_tool_calling=False,
            sampler_config=sampling.config(),
            max_output_tokens=limit,
            chat_template=AS_IT_IS,
            constrained_decoding_config=constrained_decoding(),
        )
        self._format = response_format(regex)

    def ask(self, text: str) -> Iterator[str]:
        """Pieces of one token, or of several where a call begins."""
        from runtime.litert_messages import text_of_content

        asked = {"role": "user", "content": text}
        for part in self._conversation.send_message_async(asked, response_format=self._format):
            yield text_of_content(part.get("content"))

    def benchmark(self) -> Any:
        """The runtime's measurements of the last turn."""
        return self._conversation.get_benchmark_info()

    def close(self) -> None:
        """Release it."""
        self._conversation.close()


def constrained_decoding() -> Any:
    """The setting that lets a conversation take a constraint."""
    import litert_lm

    provider = litert_lm.LiteRtLmConstraintProviderType.LL_GUIDANCE
    return litert_lm.ConstrainedDecodingConfig(enable=True, provider=provider)


def response_format(regex: str) -> Any:
    """A regular expression, in the tokenizer's alphabet, as a turn takes it."""
    import litert_lm

    return litert_lm.ResponseFormat.regex(regex)
