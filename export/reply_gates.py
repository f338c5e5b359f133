"""Does the bundle answer in LiteRT-LM as a model for tools must: stops, calls that parse, turns that go on?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from export.gates import Outcome, Subject, judge, not_checked
from hermes import Conversation, Malformed, Message, Reply, ToolCalls
from runtime.backend import Completion
from runtime.litert_backend import ReplyError
from runtime.litert_messages import as_message


@dataclass(frozen=True)
class Asked:
    """A first turn, and what came back."""

    prompt: Conversation
    completion: Completion
    """What the model wrote."""
    pieces: tuple[str, ...]
    """The same, token by token."""
    reply: Message | None
    """What the runtime read in it; None where it refused to."""
    error: str
    """Why it refused."""


def ask(subject: Subject) -> list[Asked]:
    """Ask for first turns of test conversations, as raw text and as the runtime's parsed message."""
    asked = []
    for conversation in subject.samples(subject.settings.replies):
        prompt = conversation.prompts()[0]
        completion = subject.backend.complete([prompt])[0]
        pieces = subject.backend.pieces
        reply, error = None, ""
        try:
            reply = as_message(subject.backend.reply(prompt))
        except ReplyError as refusal:
            error = str(refusal)
        asked.append(Asked(prompt, completion, pieces, reply, error))
    return asked


def check_first_tokens(subject: Subject) -> Outcome:
    """Each reply begins with the merged model's best token, or one that it rates as high within the bound."""
    equal, behind, compared, detail = 0, 0.0, 0, ""
    for asked in subject.asked:
        ids = subject.ids(asked.prompt, prompt=True)
        logits = subject.source.logits([*ids, 0], len(ids))[0]
        best = int(logits.argmax())
        best_text = _text(subject, best)
        if "\ufffd" in best_text:
            continue  # Part of a character: the runtime shows it only with what follows.
        compared += 1
        written = asked.pieces[0] if asked.pieces else ""
        if written == best_text:
            equal += 1
            continue
        token = subject.backend.engine.tokenize(written or subject.dialect.stop)[0]
        lead = float(logits[best] - logits[token])
        if lead > behind:
            behind = lead
            detail = f"{asked.prompt.id!r}: begins with {written!r}, the merged model with {best_text!r}"
    if not compared:
        return not_checked("every reply of the merged model begins with part of a character")
    figures = {"replies": compared, "equal": equal, "furthest behind, logits": behind}
    return judge(figures, at_most={"furthest behind, logits": subject.settings.first_token_lead}, detail=detail)


def _text(subject: Subject, token: int) -> str:
    """What the runtime shows for a token: nothing where it ends the reply."""
    if [token] in subject.backend.engine.eos_token_ids:
        return ""
    return str(subject.tokenizer.decode([token], clean_up_tokenization_spaces=False))


def check_variety(subject: Subject) -> Outcome:
    """The bundle says something: not only padding, not one token over and over."""
    return judge_variety([asked.pieces for asked in subject.asked], subject)


def judge_variety(replies: Sequence[Sequence[str]], subject: Subject) -> Outcome:
    """`check_variety` for replies given as the text of each token."""
    special = set(subject.tokenizer.all_special_tokens)
    pieces = [piece for reply in replies for piece in reply]
    figures = {
        "replies": len(replies),
        "tokens": len(pieces),
        "different tokens": len(set(pieces)),
        "tokens with text": sum(bool(piece.strip()) and piece not in special for piece in pieces),
    }
    limits = {"different tokens": subject.settings.different_tokens, "tokens with text": 1}
    return judge(figures, at_least=limits, detail=f"the first reply begins with {''.join(replies[0][:8])!r}")


def check_calls(subject: Subject) -> Outcome:
    """The runtime reads the calls that the dialect reads."""
    calls, otherwise, first = 0, 0, ""
    for asked in subject.asked:
        completion = asked.completion
        ours = subject.dialect.parse(completion.text, asked.prompt.tools, finish_reason=completion.finish_reason)
        calls += len(ours.calls) if isinstance(ours, ToolCalls) else 0
        difference = _reading_difference(ours, asked)
        otherwise += bool(difference)
        first = first or difference
    figures = {"replies": len(subject.asked), "calls": calls, "replies read otherwise": otherwise}
    if not calls and not otherwise:
        return not_checked(f"the model wrote no call in {len(subject.asked)} replies", figures)
    return judge(figures, at_most={"replies read otherwise": 0}, detail=first)


def _reading_difference(ours: Reply, asked: Asked) -> str:
    """How runtime and dialect differ on a reply; the runtime alone gives a body without arguments empty ones."""
    if isinstance(ours, Malformed):
        return ""
    text = asked.completion.text
    if asked.reply is None:
        return f"LiteRT-LM refuses {text!r}: {asked.error}"
    calls = ours.calls if isinstance(ours, ToolCalls) else ()
    return "" if asked.reply.calls == calls else f"LiteRT-LM reads {text!r} as {asked.reply.calls}, training as {calls}"


def check_stops(subject: Subject) -> Outcome:
    """Replies end by a stop token, within the limit of `reply_tokens`."""
    ended = sum(asked.completion.finish_reason == "stop" for asked in subject.asked)
    figures = {"replies": len(subject.asked), "ended": ended, "share ended": ended / len(subject.asked)}
    if not ended and subject.settings.stopped == 0:
        return not_checked(f"no reply ended within {subject.settings.reply_tokens} tokens", figures)
    limit = subject.settings.reply_tokens
    detail = f"the others went on to the limit of {limit} tokens: a wrong stop token in the metadata, or a model that "
    return judge(figures, at_least={"share ended": subject.settings.stopped}, detail=detail + "does not end its turns")


def check_second_turn(subject: Subject) -> Outcome:
    """A second turn answers as in a fresh conversation."""
    return _check_turn(subject, 2)


def check_third_turn(subject: Subject) -> Outcome:
    """A third turn answers as in a fresh conversation."""
    return _check_turn(subject, 3)


def _check_turn(subject: Subject, number: int) -> Outcome:
    equal = different = 0
    reasons: list[str] = []
    detail = ""
    long_enough = [each for each in subject.conversations if len(each.prompts()) >= number]
    for conversation in long_enough[: subject.settings.continued]:
        reached = _go_on(subject, conversation, number)
        if isinstance(reached, str):
            reasons.append(reached)
            continue
        longer, kept = reached
        subject.backend.forget()
        fresh = _reply(subject, longer)
        equal += kept == fresh
        if kept != fresh:
            different += 1
            detail = detail or f"{conversation.id!r}: {kept} where a fresh conversation says {fresh}"
    figures = {"conversations": equal + different, "different": different}
    if not equal + different:
        return not_checked(reasons[0] if reasons else f"no test conversation has {number} turns")
    return judge(figures, at_most={"different": 0}, detail=detail)


def _go_on(subject: Subject, conversation: Conversation, number: int) -> tuple[Conversation, Message | str] | str:
    """Answer turn after turn up to `number`, keeping the cache: what was then asked and answered, or why not."""
    prompts = conversation.prompts()[:number]
    subject.backend.forget()
    asked, answer = prompts[0], _reply(subject, prompts[0])
    for turn, (before, after) in enumerate(pairwise(prompts), start=1):
        if isinstance(answer, str):
            return f"LiteRT-LM refuses what the model wrote in turn {turn}: {answer}"
        if subject.backend.cut:
            return f"turn {turn} did not end within {subject.settings.reply_tokens} tokens"
        if not answer.calls and not answer.content:
            return f"turn {turn} is empty, and LiteRT-LM goes on after that otherwise than a fresh conversation"
        given = after.messages[len(before.messages) + 1 :]
        if len(given) != 1:
            return f"what follows turn {turn} is {len(given)} messages, and LiteRT-LM is sent one at a time"
        asked = replace(asked, messages=(*asked.messages, answer, *given))
        answer = _reply(subject, asked)
    return asked, answer


def _reply(subject: Subject, conversation: Conversation) -> Message | str:
    """The runtime's message, or its refusal."""
    try:
        return as_message(subject.backend.reply(conversation))
    except ReplyError as error:
        return str(error)
