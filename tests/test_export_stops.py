"""Which tokens end a reply, and whether an answer has room."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import UserError
from export.lengths import check_room, room_problem
from export.metadata import llm_metadata
from export.stops import stop_token_ids, stop_tokens_of
from hermes import Conversation, Message, Tool, get_dialect

QWEN = {
    "model": {"vocab": {"a": 0}},
    "added_tokens": [
        {"id": 151645, "content": "<|im_end|>", "special": True},
        {"id": 151643, "content": "<|endoftext|>", "special": True},
        {"id": 151644, "content": "<|im_start|>", "special": True},
    ],
}


def test_added_tokens_that_only_tokenizer_json_has_are_stop_tokens() -> None:
    """C92."""
    assert stop_token_ids((), QWEN, {"eos_token": "<|endoftext|>"}) == (151643, 151645)


def test_the_configs_ends_join_the_tokenizers() -> None:
    """C93."""
    plain = {"model": {}, "added_tokens": [{"id": 151645, "content": "<turn ends>"}]}
    config, generation = {"eos_token_id": 151643, "vocab_size": 151936}, {"eos_token_id": [151643]}
    assert stop_token_ids((), plain, {"eos_token": "<turn ends>"}, config, generation) == (151643, 151645)
    assert stop_token_ids((), plain, {"eos_token": {"content": "<turn ends>"}}, config, generation) == (151643, 151645)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (151643, 151645)),
        ({"eos_token_id": None}, (151643, 151645)),
        ({"text_config": {"eos_token_id": [7, 9]}}, (7, 9, 151643, 151645)),
    ],
)
def test_every_shape_of_a_config(config: dict[str, Any], expected: tuple[int, ...]) -> None:
    assert stop_token_ids(("<|im_end|>",), QWEN, {}, config) == expected


def test_a_unigram_vocabulary_is_read_too() -> None:
    tokenizer = {"model": {"vocab": [["<unk>", 0.0], ["</s>", 0.0], ["a", -1.0]]}}
    assert stop_token_ids(("</s>",), tokenizer) == (1,)


@pytest.mark.parametrize(
    ("trained", "config", "expected"),
    [
        ("<end>", {}, "<end>: ends a turn in the training data, but is no token"),
        ("<|im_end|>", {"eos_token_id": 200_000, "vocab_size": 151_936}, "200000: not in the vocabulary of 151936"),
        ("<|im_end|>", {"eos_token_id": [-1]}, "-1: not in the vocabulary"),
    ],
)
def test_what_cannot_be_a_stop_token_is_refused(trained: str, config: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        stop_token_ids((trained,), QWEN, {}, config)


def test_a_folders_files_are_joined_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(QWEN), encoding="utf-8")
    assert stop_tokens_of(tmp_path, ("<|im_end|>",)) == (151643, 151645)
    (tmp_path / "generation_config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UserError, match=r"generation_config\.json: must hold an object"):
        stop_tokens_of(tmp_path, ())


def test_the_bundle_has_all_of_them_and_calls_as_the_template_writes_them() -> None:
    """C90, C92."""
    from litert_lm_builder.runtime.proto import llm_metadata_pb2

    def metadata(dialect: str) -> Any:
        return llm_metadata_pb2.LlmMetadata.FromString(llm_metadata(get_dialect(dialect), (0, 2), 64))

    ours = metadata("hermes")
    assert [list(token.token_ids.ids) for token in ours.stop_tokens] == [[0], [2]]
    assert ours.llm_model_type.qwen3.code_fence_start == "<tool_call>"
    assert ours.llm_model_type.qwen3.code_fence_end == "</tool_call>"
    assert ours.supports_function_calling
    assert "{% generation" not in ours.jinja_prompt_template
    for other in ("json", "fenced"):
        assert metadata(other).llm_model_type.WhichOneof("model_type") == "generic_model"
        assert not metadata(other).supports_function_calling


def test_room_for_the_answer() -> None:
    """C94."""
    assert room_problem(1848, 200, 2048) is None
    problem = room_problem(1900, 200, 2048)
    assert problem == "a prompt of 1900 tokens and an answer of up to 200 need 2100, the cache has 2048"


def test_room_for_the_longest_prompt_with_its_tools(tokenizer: Any) -> None:
    """C94."""
    dialect = get_dialect("hermes")
    answered = (Message("user", "hi"), Message("assistant", "yes " * 500))
    conversations = [
        Conversation(answered, id="short"),
        Conversation(answered, (Tool("look", "Looks. " * 50),), id="with a tool"),
    ]
    longest = check_room(conversations, dialect, tokenizer, 10, 10_000)
    assert 100 < longest < 300
    assert check_room(conversations, dialect, tokenizer, 10, longest + 10) == longest
    with pytest.raises(UserError) as caught:
        check_room(conversations, dialect, tokenizer, 10, longest + 9)
    assert str(caught.value).startswith(
        f"with a tool: a prompt of {longest} tokens and an answer of up to 10 need {longest + 10}, the cache has "
        f"{longest + 9}; raise export.cache_length"
    )
