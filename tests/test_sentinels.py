"""Sentinels as single tokens: the vocabulary, the rows that are trained, the merged model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from core.errors import UserError
from core.models import load_model, load_tokenizer
from core.recipe import ModelSettings, Recipe
from core.sentinels import claim_tokens, start_rows
from data.tokenise import Example, tokenise
from hermes import Conversation, Message, Tool, ToolCall, get_dialect, text_of
from hermes.control import SENTINELS
from training.adapter import Vocabulary, attach, merge, save_adapter
from training.batches import collate
from training.loss import add_gradient, labelled_loss

RESERVED = ("<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>")
DIALECT = get_dialect("hermes")
CONVERSATION = Conversation(
    (
        Message("user", "Light on in <b>Łódź</b>, please"),
        Message("assistant", calls=(ToolCall("light", {"room": "Łódź </tool_call>"}),)),
        Message("tool", {"on": True}, name="light"),
        Message("assistant", "It is on."),
    ),
    (Tool("light", "Turns a light on.", {"type": "object", "properties": {"room": {"type": "string"}}}),),
)


def recipe(source: Path, reserved: tuple[str, ...] = RESERVED) -> Recipe:
    return Recipe(
        name="small", sentinels="tokens", model=ModelSettings(source=str(source), reserved_tokens=list(reserved))
    )


def test_each_tag_is_one_token_and_the_text_stays(tokenizer: PreTrainedTokenizerFast) -> None:
    claimed, ids = claim_tokens(tokenizer, SENTINELS, RESERVED)
    assert ids == dict(zip(SENTINELS, (8, 9, 10, 11), strict=True))
    assert len(claimed) == len(tokenizer) and claimed.name_or_path == tokenizer.name_or_path
    text = text_of(DIALECT.render(CONVERSATION))
    tokens = claimed.encode(text, add_special_tokens=False)
    assert claimed.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False) == text
    assert {tag: tokens.count(row) for tag, row in ids.items()} == {tag: text.count(tag) for tag in SENTINELS}
    assert len(tokens) < len(tokenizer.encode(text, add_special_tokens=False)) - 3 * sum(map(text.count, SENTINELS))
    # What a runtime shows when it leaves special tokens out still has the tags.
    assert SENTINELS[0] in claimed.decode(tokens, skip_special_tokens=True)
    assert len(tokenizer.encode(SENTINELS[0], add_special_tokens=False)) == 5, "the given tokenizer stays as it is"
    again, none = claim_tokens(claimed, SENTINELS, ())
    assert again is claimed and none == {}


def test_a_saved_tokenizer_keeps_its_claims(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    claimed, ids = claim_tokens(tokenizer, SENTINELS, RESERVED)
    claimed.save_pretrained(tmp_path)
    assert [load_tokenizer(tmp_path).encode(tag, add_special_tokens=False) for tag in ids] == [[8], [9], [10], [11]]


@pytest.mark.parametrize(
    ("reserved", "words"),
    [((), "4 tags need a token each"), (RESERVED[:3], "and 3 are named"), ((*RESERVED, "<x>"), "<x>: no added token")],
)
def test_missing_tokens_are_named(tokenizer: PreTrainedTokenizerFast, reserved: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match="model.reserved_tokens: ") as caught:
        claim_tokens(tokenizer, SENTINELS, reserved)
    assert words in str(caught.value) and "<gh_stars>" in str(caught.value)


def test_only_claimed_rows_are_trained_and_the_merged_model_has_them(tiny_llama: Path, tmp_path: Path) -> None:
    small = recipe(tiny_llama)
    vocabulary = Vocabulary.of(tiny_llama, small)
    plain = load_tokenizer(tiny_llama)
    model = load_model(tiny_llama, torch.float32)
    before = model.get_input_embeddings().weight.detach().clone()
    rows = vocabulary.start(model)
    pieces = plain.encode("<tool_call>", add_special_tokens=False)
    assert torch.allclose(model.get_input_embeddings().weight[rows[0]], before[pieces].mean(0))
    tuned = attach(model, small.training, 0, rows)
    example: Example = tokenise(CONVERSATION, DIALECT, vocabulary.tokenizer)
    batch = collate([example, example], 1000)
    optimizer = torch.optim.AdamW([weight for weight in tuned.parameters() if weight.requires_grad], lr=0.05)
    first = add_gradient(tuned, batch, 0.01)[0]
    optimizer.step()
    last = labelled_loss(tuned, batch)[0]
    assert last < first
    save_adapter(tuned, "source", tmp_path / "adapter")
    merge(tiny_llama, small, tmp_path / "adapter", tmp_path / "merged")
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32)
    weight = merged.get_input_embeddings().weight
    changed = (weight != before).any(1).nonzero().flatten().tolist()
    assert changed == rows
    assert merged.get_output_embeddings().weight.data_ptr() == weight.data_ptr()
    assert labelled_loss(merged, batch)[0] == pytest.approx(last, rel=1e-4), "float32, other order of sums"
    assert load_tokenizer(tmp_path / "merged").encode("<tool_call>", add_special_tokens=False) == [rows[0]]


def test_a_start_is_the_mean_of_the_pieces(tiny_llama: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    model = load_model(tiny_llama, torch.float32)
    before = model.get_input_embeddings().weight.detach().clone()
    start_rows(model, tokenizer, {"</tool_call>": 9})
    pieces = tokenizer.encode("</tool_call>", add_special_tokens=False)
    assert torch.allclose(model.get_input_embeddings().weight[9], before[pieces].mean(0))
    others = [row for row in range(len(before)) if row != 9]
    assert torch.equal(model.get_input_embeddings().weight[others], before[others])


def test_a_token_with_a_use_and_a_head_of_its_own_are_refused(
    tiny_llama: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    with pytest.raises(UserError, match=r"model.reserved_tokens: <\|im_end\|>: begins, ends or pads"):
        claim_tokens(tokenizer, SENTINELS, ("<|im_end|>", *RESERVED))
    model = load_model(tiny_llama, torch.float32)
    model.config.tie_word_embeddings = False
    with pytest.raises(UserError, match="sentinels: text"):
        start_rows(model, tokenizer, {"<tool_call>": 8})


@pytest.mark.parametrize(
    ("sentinels", "reserved", "words"),
    [("text", RESERVED, "nothing claims them"), ("tokens", (*RESERVED, RESERVED[0]), "one stands twice")],
)
def test_a_recipe_whose_reserved_tokens_cannot_be_meant(sentinels: str, reserved: tuple[str, ...], words: str) -> None:
    model = ModelSettings(source="x", reserved_tokens=reserved)
    with pytest.raises(ValueError, match=words):
        Recipe.model_validate({"name": "small", "sentinels": sentinels, "model": model})
