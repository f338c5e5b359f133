"""Does the bundle's graph predict what the merged model predicts?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from export.gates import Outcome, Subject, judge, not_checked
from export.logits import Graph, Logits, Scorer, common_length
from export.probes import SETS
from hermes import Conversation


@dataclass(frozen=True)
class Turn:
    """A reply to score."""

    ids: list[int]
    """The conversation up to the end of the reply, with the token that ends it."""
    start: int
    """Where the reply begins."""


def turn_of(subject: Subject, prompt: Conversation, conversation: Conversation) -> Turn:
    """The reply that follows `prompt`, which is what `conversation` begins with and is one message shorter."""
    ids = subject.ids(conversation, prompt=False)
    start = common_length(ids, subject.ids(prompt, prompt=True))
    end = len(ids) - ids[::-1].index(subject.tokenizer.convert_tokens_to_ids(subject.dialect.stop))
    return Turn(ids[:end], start)


def turns_of(subject: Subject, conversation: Conversation) -> list[Turn]:
    """Every reply of a conversation."""
    turns = []
    for prompt in conversation.prompts():
        upto = Conversation(conversation.messages[: len(prompt.messages) + 1], conversation.tools)
        turns.append(turn_of(subject, prompt, upto))
    return turns


def check_float_graph(subject: Subject) -> Outcome:
    """The float32 graph gives the merged model's logits; on one conversation, since a wrong graph is wrong at once."""
    whole = subject.recipe.export.quantization == "float32"
    if not whole and subject.float_graph is None:
        return not_checked("this export has no float32 graph")
    graph = subject.graph if whole else Graph(_there(subject.float_graph))
    figures = compare(subject.source, graph, turns_of(subject, subject.samples(1)[0]))
    return judge(figures, at_most={"largest difference": subject.settings.float_difference})


def _there(path: Path | None) -> Path:
    assert path is not None
    return path


def check_bundle_graph(subject: Subject) -> Outcome:
    """The bundle's graph stays within the recipe's distance from the merged model, on real test conversations."""
    chosen = subject.samples(subject.settings.logit_conversations)
    figures = compare(subject.source, subject.graph, [turn for each in chosen for turn in turns_of(subject, each)])
    return judge(
        figures,
        at_most={
            "mean difference": subject.settings.mean_difference,
            "largest difference": subject.settings.max_difference,
        },
        at_least={"greedy agreement": subject.settings.agreement},
    )


def compare(source: Scorer, other: Scorer, turns: Sequence[Turn]) -> dict[str, int | float]:
    """How far the logits of two models are apart at every position of the replies."""
    agreed = positions = 0
    total = largest = 0.0
    for turn in turns:
        expected, found = source.logits(turn.ids, turn.start), other.logits(turn.ids, turn.start)
        if expected.shape != found.shape:
            vocabularies = f"{found.shape[1]} entries, the merged model's {expected.shape[1]}"
            raise ValueError(f"the graph's vocabulary has {vocabularies}")
        difference = np.abs(expected - found)
        total += float(difference.mean()) * len(found)
        largest = float(np.maximum(largest, difference.max()))  # Unlike Python's max, this keeps NaN.
        agreed += int((expected.argmax(-1) == found.argmax(-1)).sum())
        positions += len(found)
    return {
        "positions": positions,
        "mean difference": total / positions,
        "largest difference": largest,
        "greedy agreement": agreed / positions,
    }


def check_sets(subject: Subject) -> Outcome:
    """No kind of reply becomes less likely than the bound allows; each kind by itself, since an average hides one."""
    losses, agreements = compare_sets(subject, subject.source, subject.graph)
    shown = {f"{name}: greedy agreement": share for name, share in agreements.items()}
    limits = dict.fromkeys(losses, subject.settings.set_loss)
    return judge({**losses, **shown}, at_most=limits, detail="nats a token more than the merged model's")


def compare_sets(
    subject: Subject, source: Scorer, other: Scorer, sets: Mapping[str, Sequence[Conversation]] = SETS
) -> tuple[dict[str, float], dict[str, float]]:
    """By set: what `other` loses against `source`, in nats a token of the reply, and their greedy agreement."""
    losses: dict[str, float] = {}
    agreements: dict[str, float] = {}
    for name, conversations in sets.items():
        lost: list[float] = []
        agreed: list[bool] = []
        for conversation in conversations:
            turn = turns_of(subject, conversation)[-1]
            expected, found = source.logits(turn.ids, turn.start), other.logits(turn.ids, turn.start)
            reply = np.array(turn.ids[turn.start :])
            lost += (_log_likelihood(expected, reply) - _log_likelihood(found, reply)).tolist()
            agreed += (expected.argmax(-1) == found.argmax(-1)).tolist()
        losses[name], agreements[name] = float(np.mean(lost)), float(np.mean(agreed))
    return losses, agreements


def _log_likelihood(logits: Logits, ids: npt.NDArray[np.int_]) -> npt.NDArray[np.float64]:
    """Of each token of a reply, in nats: `(len(ids),)`."""
    rows = logits.astype(np.float64)
    highest = rows.max(-1, keepdims=True)
    norm = np.log(np.exp(rows - highest).sum(-1)) + highest[:, 0]
    found: npt.NDArray[np.float64] = rows[np.arange(len(ids)), ids] - norm
    return found
