"""What is trained, by kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from click.testing import CliRunner
from transformers import PreTrainedTokenizerFast

from cli import main
from data.agent_skills import generate
from data.supervision import KINDS, audit, spans, token_kinds
from data.tokenise import IGNORED, tokenise
from hermes import Conversation, Message, Segment, ToolCall, get_dialect, text_of
from hermes.dialects.hermes import HermesDialect

DIALECT = get_dialect("hermes")
CONVERSATION = Conversation(
    (
        Message("user", "1 + 2?"),
        Message("assistant", "I add.", (ToolCall("add", {"a": 1, "list": ["x: y", {"b": None}], "c": {}}),)),
        Message("tool", "3", name="add"),
        Message("assistant", "3"),
    ),
    id="one",
)


def test_every_character_of_a_reply_has_its_kind() -> None:
    segments = DIALECT.render(CONVERSATION)
    text = text_of(segments)
    found = list(spans(segments, DIALECT))
    assert [span.start for span in found[1:]] == [span.end for span in found[:-1]]
    assert (found[0].start, found[-1].end) == (0, len(text))
    assert [(text[span.start : span.end], span.kind) for span in found if span.kind] == [
        ("I add.\n", "text"),
        ("<tool_call>", "mark"),
        ("{", "structure"),
        ('"name"', "key"),
        (": ", "structure"),
        ('"add"', "name"),
        (", ", "structure"),
        ('"arguments"', "key"),
        (": {", "structure"),
        ('"a"', "key"),
        (": ", "structure"),
        ("1", "value"),
        (", ", "structure"),
        ('"list"', "key"),
        (": [", "structure"),
        ('"x: y"', "value"),
        (", {", "structure"),
        ('"b"', "key"),
        (": ", "structure"),
        ("null", "value"),
        ("}], ", "structure"),
        ('"c"', "key"),
        (": {}}}", "structure"),
        ("</tool_call>", "mark"),
        ("<|im_end|>", "stop"),
        ("3", "text"),
        ("<|im_end|>", "stop"),
    ]


def test_trained_tokens_are_those_that_have_a_label(tokenizer: PreTrainedTokenizerFast) -> None:
    for conversation in generate("train", 24, 0):
        kinds = [kind for _, kind in token_kinds(conversation, DIALECT, tokenizer)]
        labels = tokenise(conversation, DIALECT, tokenizer).labels
        assert [kind is not None for kind in kinds] == [label != IGNORED for label in labels]


def test_the_audit_counts_every_kind(tokenizer: PreTrainedTokenizerFast) -> None:
    conversations = generate("train", 24, 0)
    counts = audit(conversations, DIALECT, tokenizer)
    assert list(counts) == list(KINDS) and all(counts.values())
    assert sum(counts.values()) == sum(tokenise(each, DIALECT, tokenizer).label_count for each in conversations)


def test_a_set_of_answers_needs_no_calls(tokenizer: PreTrainedTokenizerFast) -> None:
    said = replace(CONVERSATION, messages=(Message("user", "Hi"), Message("assistant", "Hello")))
    assert audit([said], DIALECT, tokenizer)["mark"] == 0


class WithoutStop(HermesDialect):
    """A dialect that forgot to train the end of the turn."""

    def render(self, conversation: Conversation, add_generation_prompt: bool = False) -> list[Segment]:
        return list(self._cut(super().render(conversation, add_generation_prompt)))

    def _cut(self, segments: list[Segment]) -> Iterator[Segment]:
        for segment in segments:
            yield Segment(segment.text.removesuffix(self.stop), segment.trained)
            if segment.text.endswith(self.stop):
                yield Segment(self.stop, False)


def test_a_stop_token_that_is_never_trained_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(ValueError, match="no stop token is trained"):
        audit([CONVERSATION], WithoutStop(), tokenizer)
    without_arguments = replace(
        CONVERSATION, messages=(Message("user", "?"), Message("assistant", calls=(ToolCall("f"),)))
    )
    with pytest.raises(ValueError, match="no value token is trained"):
        audit([without_arguments], DIALECT, tokenizer)


def test_show_prints_what_is_trained(tmp_path) -> None:
    options = ["data", "--runs", str(tmp_path), *("--set", "data.train=24"), *("--set", "data.test=6")]
    assert CliRunner().invoke(main, options).exit_code == 0
    shown = CliRunner().invoke(main, [*options, "show", "--count", "24"])
    assert shown.exit_code == 0
    assert "⟦No relevant skills found<|im_end|>⟧" in shown.output
    assert "24 conversations" in shown.output and "stop" in shown.output
    missing = CliRunner().invoke(main, [*options, "show", "--id", "nowhere"])
    assert missing.exit_code == 1 and "no conversation has the id 'nowhere'" in missing.output
