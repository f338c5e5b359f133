"""Run a model through recorded conversations, turn by turn, and score every reply.

Where a backend decodes many at once, conversations with the same system turn and tools go in step, group by group;
else one goes after the other. After a right reply the history goes on with the model's own words, after a wrong one
with the record's, and in both cases with the record's tool results: later turns are measured even where an earlier
one failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import UserError
from core.files import value_hash
from eval.cache import ReplyCache
from eval.results import NO_CALL, CaseResult, StepResult
from eval.scoring import called_tool, refuse_depth, score_step, step_kind
from hermes import Conversation, Dialect, Malformed, Message, ToolCalls, dumps, get_dialect, text_of
from runtime.backend import Backend, Completion

OnProgress = Callable[[int, int], None]
"""Called with the number of replies that are known and the number that will be."""


def evaluate(
    backend: Backend,
    conversations: Sequence[Conversation],
    dialect_name: str,
    on_progress: OnProgress | None = None,
    *,
    cache: Path | None = None,
    others: Sequence[Path] = (),
    fingerprint: str = "",
) -> list[CaseResult]:
    """Ask for every assistant turn of every conversation, and score the replies.

    Args:
        backend: The model.
        conversations: Records with distinct ids; `notes["facts"]` are what the final answer must contain,
            `notes["held_out"]` marks a skill that training never saw.
        dialect_name: How the model writes calls.
        on_progress: Told after each reply.
        cache: A JSON Lines file of replies that are already known; a run that is started again asks only for
            the others. Replies are found by the text of their prompt.
        others: More such files, which are only read.
        fingerprint: What else decides a reply (the weights' hash, the token limit): others' replies are not used.

    Raises:
        UserError: two conversations have the same id, or the cache cannot be written.
    """
    dialect = get_dialect(dialect_name)
    runs = [_Run.start(conversation, dialect) for conversation in conversations]
    _refuse_equal_ids(conversations)
    total, known = sum(len(run.turns) for run in runs), 0

    def progress() -> None:
        nonlocal known
        known += 1
        if on_progress is not None:
            on_progress(known, total)

    with ReplyCache(cache, others) as replies:
        for together in _groups(runs) if backend.batched else [[run] for run in runs]:
            step = 0
            while active := [run for run in together if step < len(run.turns)]:
                prompts = [run.prompt() for run in active]
                keys = [_key(dialect, prompt, backend.name, fingerprint) for prompt in prompts]
                completions = _ask(backend, prompts, keys, step, replies, progress)
                for run, completion in zip(active, completions, strict=True):
                    run.take(completion)
                step += 1
    return [run.result() for run in runs]


def _groups(runs: Sequence[_Run]) -> list[list[_Run]]:
    """Runs by what their prompts begin with; those that share it with no other make up the last group.

    All steps of a group come before the next one, so that a backend can keep the group's prefix.
    """
    groups: dict[str, list[_Run]] = {}
    for run in runs:
        groups.setdefault(run.opening(), []).append(run)
    alone = [run for group in groups.values() if len(group) == 1 for run in group]
    return [group for group in groups.values() if len(group) > 1] + ([alone] if alone else [])


def _ask(
    backend: Backend,
    prompts: Sequence[Conversation],
    keys: Sequence[str],
    step: int,
    replies: ReplyCache,
    progress: Callable[[], None],
) -> list[Completion]:
    """The reply to each prompt: known ones from `replies`, the others from the model."""
    found = {index: completion for index, key in enumerate(keys) if (completion := replies.get(key)) is not None}
    for _ in found:
        progress()
    missing = [index for index in range(len(prompts)) if index not in found]

    def done(position: int, completion: Completion) -> None:
        index = missing[position]
        if index in found:
            return
        found[index] = completion
        replies.add(keys[index], completion, case=prompts[index].id, step=step)
        progress()

    if missing:
        completions = backend.complete([prompts[index] for index in missing], done)
        assert len(completions) == len(missing), f"asked for {len(missing)} replies, got {len(completions)}"
        for position, completion in enumerate(completions):
            done(position, completion)
    return [found[index] for index in range(len(prompts))]


@dataclass
class _Run:
    """One conversation on its way."""

    conversation: Conversation
    dialect: Dialect
    turns: list[int]
    """Where the record's assistant turns stand."""
    history: list[Message]
    steps: list[StepResult] = field(default_factory=list)

    @classmethod
    def start(cls, conversation: Conversation, dialect: Dialect) -> _Run:
        turns = [index for index, message in enumerate(conversation.messages) if message.role == "assistant"]
        return cls(conversation, dialect, turns, list(conversation.messages[: turns[0] if turns else 0]))

    def opening(self) -> str:
        """What conversations of one group have in common: the system turn and the tools."""
        system = [message.content for message in self.conversation.messages[:1] if message.role == "system"]
        return dumps([system, [tool.to_function() for tool in self.conversation.tools]])

    def prompt(self) -> Conversation:
        """The conversation up to the next assistant turn."""
        return Conversation(tuple(self.history), self.conversation.tools, id=self.conversation.id)

    def take(self, completion: Completion) -> None:
        """Score the reply to `prompt()`, and lengthen the history up to the next assistant turn."""
        record, tools = self.conversation.messages, self.conversation.tools
        turn = self.turns[len(self.steps)]
        expected = record[turn]
        kind = step_kind(expected, record[:turn])
        last = len(self.steps) + 1 == len(self.turns)
        # Another request may follow the answer.
        answered = all(record[later].calls for later in self.turns[len(self.steps) + 1 :])
        facts = self.conversation.notes.get("facts", ()) if kind == "answer" and answered else ()
        reply = refuse_depth(self.dialect.parse(completion.text, tools, finish_reason=completion.finish_reason))
        cut = completion.finish_reason == "length"
        score = score_step(expected, reply, kind=kind, tools=tools, facts=facts, cut=cut)
        step = StepResult(
            score=score,
            expected=_as_text(self.dialect, expected),
            expected_tool=expected.calls[0].name if expected.calls else NO_CALL,
            raw=_encodable(completion.text),
            called=_encodable(called_tool(reply, tools)),
            calls=reply.calls if isinstance(reply, ToolCalls) else (),
            finish_reason=completion.finish_reason,
            seconds=completion.seconds,
        )
        self.steps.append(step)
        if score.right and not isinstance(reply, Malformed):
            self.history.append(Message("assistant", reply.text, step.calls))
        else:
            self.history.append(expected)
        following = len(record) if last else self.turns[len(self.steps)]
        self.history.extend(record[turn + 1 : following])

    def result(self) -> CaseResult:
        notes = self.conversation.notes
        abstains = bool(self.steps) and self.steps[0].score.kind == "abstain"
        return CaseResult(
            id=self.conversation.id,
            kind="none" if abstains else "call",
            skill=str(notes.get("skill") or ""),
            steps=tuple(self.steps),
            held_out=notes.get("held_out") is True,
        )


def _key(dialect: Dialect, prompt: Conversation, *others: str) -> str:
    return value_hash([text_of(dialect.render(prompt, add_generation_prompt=True)), dialect.name, *others])


def _as_text(dialect: Dialect, message: Message) -> str:
    trained = (segment.text for segment in dialect.render(Conversation((message,))) if segment.trained)
    return "".join(trained).removesuffix(dialect.stop)


def _encodable(text: str) -> str:
    """Text that UTF-8 can hold: half a surrogate pair is written as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _refuse_equal_ids(conversations: Sequence[Conversation]) -> None:
    ids = [conversation.id for conversation in conversations]
    twice = sorted({repr(each) for each in ids if ids.count(each) > 1})
    if twice:
        raise UserError(f"evaluation needs a distinct id for each conversation; more than one has: {', '.join(twice)}")
