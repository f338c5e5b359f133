"""A `.litertlm` bundle in LiteRT-LM, the runtime that the phone app uses.

Prompts are rendered by the runtime's own template engine from the bundle's template. `complete` then decodes in a
raw session, since the runtime's message is not what the model wrote: it drops white space, the order of text
and calls, and calls that are no JSON objects. `reply` is the phone's path: the runtime's conversation, its
parser, and the keys and values of earlier turns kept. Both can be constrained: free text, then only valid calls.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.errors import UserError
from core.failures import with_meaning
from hermes import Conversation, get_dialect
from runtime.backend import Completion, OnDone
from runtime.bundle_tokenizer import bundle_tokenizer
from runtime.constraint import Constraints
from runtime.litert_messages import as_message, declared, merge, to_runtime
from runtime.raw_text import GREEDY, Raw, RawConversation, RawSession, Sampling, constrained_decoding, response_format
from runtime.speed import Speed, speed_of

NO_CACHE = ":nocache"
"""What the runtime calls keeping its prepared weights in memory; by default it writes them beside the bundle."""


class ReplyError(UserError):
    """The runtime refused a turn, e.g. since it could not read a call; the message is its own."""


class LiteRTBackend:
    """A bundle, loaded once; close it, or use it as a context manager."""

    batched = False

    def __init__(
        self,
        bundle: Path,
        dialect_name: str = "hermes",
        max_new_tokens: int = 160,
        *,
        threads: int | None = None,
        cache_dir: Path | None = None,
        verbose: bool = False,
        constrained: bool = False,
    ) -> None:
        """Load `bundle`.

        Args:
            bundle: the `.litertlm` file.
            dialect_name: the dialect that the bundle was exported for.
            max_new_tokens: limit of one reply.
            threads: of the CPU; the runtime decides where None.
            cache_dir: an existing folder for the runtime's prepared weights (about the bundle's size, they
                make the next load faster); None keeps them in memory.
            verbose: let the runtime log to stderr.
            constrained: let only valid calls of the conversation's tools be written (`runtime/constraint.py`).

        Raises:
            UserError: the file is missing, or the runtime cannot load it, or its constraint is not for it.
        """
        import litert_lm

        if not bundle.is_file():
            raise UserError(f"{bundle}: no such bundle")
        litert_lm.set_min_log_severity(litert_lm.LogSeverity.INFO if verbose else litert_lm.LogSeverity.SILENT)
        self.bundle = bundle
        self.name = bundle.stem
        self.dialect = get_dialect(dialect_name)
        self.max_new_tokens = max_new_tokens
        self.constraints = Constraints(bundle, self.dialect, bundle_tokenizer(bundle)) if constrained else None
        self.speed: Speed | None = None
        self.cut = False
        self.pieces: tuple[str, ...] = ()
        """The last raw completion, token by token."""
        try:
            self.context_tokens = int(litert_lm.ModelInfo(str(bundle)).max_context_tokens)
            self.engine = litert_lm.Engine(
                str(bundle),
                litert_lm.Backend.CPU(thread_count=threads),
                cache_dir=NO_CACHE if cache_dir is None else str(cache_dir),
                enable_benchmark=True,
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"{bundle}: LiteRT-LM cannot load it: {with_meaning(str(error))}") from None
        self._live: list[Any] = []
        self._raw_text = ""
        self._raw_kind: tuple[Sampling, str | None] = (GREEDY, None)
        self._known: Conversation | None = None
        # The runtime crashes at exit where an engine goes before its sessions.
        self._finalizer = weakref.finalize(self, _close_all, self._live, self.engine)

    def __enter__(self) -> LiteRTBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the bundle; the backend is of no use afterwards."""
        self._finalizer()

    def complete(self, conversations: Sequence[Conversation], on_done: OnDone | None = None) -> list[Completion]:
        """The next assistant turn of each conversation, as the model wrote it, in the given order.

        Raises:
            UserError: a prompt does not fit into the bundle's context.
        """
        completions = []
        for index, conversation in enumerate(conversations):
            prompt, label = self.rendered_prompt(conversation), conversation.id or str(index)
            completion = self.complete_prompt(prompt, label, regex=self._regex(conversation))
            completions.append(completion)
            if on_done is not None:
                on_done(index, completion)
        return completions

    def rendered_prompt(self, conversation: Conversation) -> str:
        """The prompt as the runtime's template engine renders it from the bundle's template."""
        opened = self._create_conversation(conversation)
        try:
            return str(opened.render_message_to_string(to_runtime(conversation.messages[-1])))
        finally:
            opened.close()

    def complete_prompt(
        self, prompt: str, label: str = "prompt", *, regex: str | None = None, sampling: Sampling = GREEDY
    ) -> Completion:
        """What the model writes after `prompt`, which is taken as it is.

        A prompt that goes on where the last reply ended costs only its new part.

        Args:
            label: names the prompt in errors.
            regex: what the reply must match, in the tokenizer's alphabet; anything where None.
            sampling: how tokens are chosen.
        """
        started = time.perf_counter()
        prompt_tokens = self._check_length(prompt, label)
        raw, rest = self._raw_for(prompt, regex, sampling)
        limit = self.max_new_tokens
        try:
            pieces = list(raw.ask(rest))
        except RuntimeError as error:
            self._drop()
            raise ReplyError(f"{label}: {with_meaning(str(error))}") from None
        info = raw.benchmark()
        self.speed = speed_of(info)
        # One token more than allowed is asked for: a reply that needs it was cut, one that does not ended by itself.
        cut = info.last_decode_token_count > limit
        full = prompt_tokens + info.last_decode_token_count >= self.context_tokens
        text = self._first_tokens(pieces, limit) if cut else "".join(pieces)
        self.pieces = tuple(pieces[:limit])
        if cut or full:
            self._drop()
        else:
            # The stop token that ended the reply is already among the keys and values.
            self._raw_text = prompt + text + self.dialect.stop
        return Completion(text, "length" if cut or full else "stop", time.perf_counter() - started)

    def _first_tokens(self, pieces: list[str], limit: int) -> str:
        """The first `limit` tokens of a reply; a piece of several tokens is not known to end between two."""
        if len(pieces) > limit:
            return "".join(pieces[:limit])
        ids = self.engine.tokenize("".join(pieces))
        return str(self.engine.detokenize(ids[:limit])) if len(ids) > limit else "".join(pieces)

    def reply(self, conversation: Conversation) -> dict[str, Any]:
        """The runtime's own message: `content` parts, and `tool_calls` in OpenAI shape where it parsed any.

        A conversation that extends the last one by its reply and one message is continued, as on the phone.

        Raises:
            ReplyError: the runtime refused the turn; after a malformed call the message holds the full response.
            UserError: the conversation does not fit into the bundle's context.
        """
        return merge(self.stream(conversation))

    def stream(self, conversation: Conversation) -> Iterator[dict[str, Any]]:
        """The parts of `reply`, as they come; `merge` puts them together. `cut` is known at the end."""
        opened = self._conversation_for(conversation)
        self._known, self.cut = None, False
        parts: list[dict[str, Any]] = []
        regex = self._regex(conversation)
        options = {} if regex is None else {"response_format": response_format(regex)}
        try:
            for part in opened.send_message_async(to_runtime(conversation.messages[-1]), **options):
                parts.append(dict(part))
                yield parts[-1]
        except RuntimeError as error:
            self._drop()
            self._refuse_long(conversation)
            raise ReplyError(str(error)) from None
        except GeneratorExit:
            self.cancel()
            self._drop()
            raise
        info = opened.get_benchmark_info()
        self.speed = speed_of(info)
        full = opened.token_count >= self.context_tokens
        self.cut = self.cut or full or info.last_decode_token_count >= self.max_new_tokens
        # After a cut the runtime would go on without an end-of-turn mark; a fresh conversation has it.
        if not self.cut:
            self._known = replace(conversation, messages=(*conversation.messages, as_message(merge(parts))))

    def forget(self) -> None:
        """Drop what is kept of the last turn: the next one starts a fresh conversation."""
        self._drop()

    def cancel(self) -> None:
        """End the `stream` that is being read; safe in a signal handler."""
        self.cut = True
        for opened in self._live:
            opened.cancel_process()

    def _conversation_for(self, conversation: Conversation) -> Any:
        known = self._known
        if known is not None and known.messages == conversation.messages[:-1] and known.tools == conversation.tools:
            return self._live[0]
        self._drop()
        self._live.append(self._create_conversation(conversation))
        return self._live[0]

    def _regex(self, conversation: Conversation) -> str | None:
        """What a reply must match; None if anything may be written."""
        return None if self.constraints is None else self.constraints.regex(conversation.tools)

    def _create_conversation(self, conversation: Conversation) -> Any:
        return self.engine.create_conversation(
            messages=[to_runtime(message) for message in conversation.messages[:-1]],
            tools=[declared(tool) for tool in conversation.tools],
            automatic_tool_calling=False,
            sampler_config=GREEDY.config(),
            max_output_tokens=self.max_new_tokens,
            constrained_decoding_config=None if self.constraints is None else constrained_decoding(),
        )

    def _raw_for(self, prompt: str, regex: str | None, sampling: Sampling) -> tuple[Raw, str]:
        """A live exchange of text, and the part of `prompt` that it does not know yet."""
        known, kind = self._raw_text, (sampling, regex)
        if known and prompt.startswith(known) and prompt != known and kind == self._raw_kind:
            return self._live[0], prompt[len(known) :]
        self._drop()
        limit = self.max_new_tokens + 1
        raw: Raw = (
            RawSession(self.engine, sampling, limit)
            if regex is None
            else RawConversation(self.engine, sampling, limit, regex)
        )
        self._live.append(raw)
        self._raw_kind = kind
        return raw, prompt

    def _drop(self) -> None:
        """Close what is kept of the last turn."""
        self._raw_text = ""
        self._known = None
        while self._live:
            self._live.pop().close()

    def _refuse_long(self, conversation: Conversation) -> None:
        """Raise a UserError with the mend if the prompt is too long; looked at only after the runtime refused it."""
        try:
            prompt = self.rendered_prompt(conversation)
        except RuntimeError:
            return
        self._check_length(prompt, conversation.id or "this conversation")

    def _check_length(self, prompt: str, label: str) -> int:
        """Tokens of `prompt`; the runtime itself only says that it failed."""
        tokens = len(self.engine.tokenize(prompt))
        if tokens >= self.context_tokens:
            raise UserError(
                f"{label}: {tokens} tokens do not fit into the bundle's {self.context_tokens}; "
                "fewer tools or skills, or an export with a longer export.cache_length"
            )
        return tokens


def _close_all(opened: list[Any], engine: Any) -> None:
    while opened:
        opened.pop().close()
    engine.close()
