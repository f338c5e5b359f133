"""Batches with a shared prefix answer as `model.generate` does, one conversation at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from core.errors import UserError
from core.models import choose_dtype
from hermes import Conversation, Message, Tool, ToolCall, text_of
from runtime.backend import Completion
from runtime.shared_prefix import can_share
from runtime.transformers_backend import TransformersBackend

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.2,
    "max_position_embeddings": 512,
    "pad_token_id": 2,
}
FAMILIES: dict[str, tuple[Callable[[int], Any], bool]] = {
    "llama": (lambda size: LlamaForCausalLM(LlamaConfig(vocab_size=size, **SIZES)), True),
    "qwen3": (lambda size: Qwen3ForCausalLM(Qwen3Config(vocab_size=size, **SIZES)), True),
    "windows": (lambda size: MistralForCausalLM(MistralConfig(vocab_size=size, sliding_window=16, **SIZES)), False),
    "mixed": (
        lambda size: Gemma3ForCausalLM(
            Gemma3TextConfig(
                vocab_size=size,
                sliding_window=16,
                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                **SIZES,
            )
        ),
        False,
    ),
}
TOOL = Tool("get_weather", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}}})


def asked(*texts: str, system: str = "You are helpful.") -> list[Conversation]:
    return [
        Conversation((Message("system", system), Message("user", text)), (TOOL,), id=f"{system}/{text}")
        for text in texts
    ]


LONG = Conversation(
    (
        *asked("Weather?")[0].messages,
        Message("assistant", "", (ToolCall("get_weather", {"city": "Zürich"}),)),
        Message("tool", {"degrees": 3, "sky": "clear"}, name="get_weather"),
    ),
    (TOOL,),
)
CONVERSATIONS = [
    *asked("Hi", "What is the weather in Paris, and what in 東京?", "x " * 30),
    LONG,
    *asked("alone", system="A system turn that no other has."),
    *asked("alone too", system="A system turn that is unlike the rest."),
    *asked("Bye", "Hello there"),
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """These models are too small for more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def make(tokenizer: PreTrainedTokenizerFast) -> Callable[..., TransformersBackend]:
    def build(family: str = "llama", **options: Any) -> TransformersBackend:
        torch.manual_seed(1)
        model = FAMILIES[family][0](len(tokenizer)).eval()
        return TransformersBackend(model, tokenizer, batch_size=3, **{"max_new_tokens": 12, **options})

    return build


def one_by_one(backend: TransformersBackend, conversations: list[Conversation], stop: int) -> list[list[int]]:
    replies = []
    for conversation in conversations:
        prompt = text_of(backend.dialect.render(conversation, add_generation_prompt=True))
        ids = torch.tensor([backend.tokenizer.encode(prompt, add_special_tokens=False)])
        output = backend.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=backend.max_new_tokens,
            do_sample=False,
            eos_token_id=stop,
            pad_token_id=2,
        )
        replies.append(output[0, ids.shape[1] :].tolist())
    return replies


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_answers_as_one_by_one(family: str, make: Callable[..., TransformersBackend]) -> None:
    backend = make(family)
    assert can_share(backend.model) == FAMILIES[family][1]
    # A token from the middle of one answer serves as the end-of-turn mark, so that rows end at different steps.
    stop = one_by_one(backend, CONVERSATIONS[:1], -1)[0][5]
    backend._stops = {stop}
    expected = one_by_one(backend, CONVERSATIONS, stop)
    completions = backend.complete(CONVERSATIONS)
    assert [each.text for each in completions] == [
        backend.tokenizer.decode(ids[:-1] if ids[-1] == stop else ids) for ids in expected
    ]
    assert [each.finish_reason for each in completions] == ["stop" if ids[-1] == stop else "length" for ids in expected]
    assert {each.finish_reason for each in completions} == {"stop", "length"}


Shapes = list[tuple[int, ...]]


def watched(backend: TransformersBackend) -> Shapes:
    """The shapes of the inputs of every later forward pass."""
    shapes: Shapes = []
    forward = backend.model.forward

    def spy(**arguments: Any) -> Any:
        shapes.append(tuple(arguments["input_ids"].shape))
        return forward(**arguments)

    backend.model.forward = spy
    return shapes


def prefix_length(backend: TransformersBackend, conversation: Conversation) -> int:
    head = backend.dialect.render(conversation)[0].text
    return len(backend.tokenizer.encode(head, add_special_tokens=False))


def test_a_shared_system_turn_is_computed_once(make: Callable[..., TransformersBackend]) -> None:
    backend = make()
    shapes = watched(backend)
    conversations = asked("a", "b", "c", "d", "e")
    backend.complete(conversations)
    assert shapes[0] == (1, prefix_length(backend, conversations[0]))
    assert max(width for _, width in shapes[1:]) < 12
    assert [rows for rows, width in shapes[1:] if width > 1] == [3, 2]


def test_the_last_system_turn_is_kept_until_another_one_comes(make: Callable[..., TransformersBackend]) -> None:
    backend = make()
    shapes = watched(backend)
    conversations, others = asked("a", "b"), asked("c", "d", system="Another one.")
    length = prefix_length(backend, conversations[0])
    first = backend.complete(conversations)
    assert shapes.count((1, length)) == 1
    shapes.clear()
    assert [each.text for each in backend.complete(conversations)] == [each.text for each in first]
    assert backend.complete(conversations[1:])[0].text == first[1].text
    assert max(width for _, width in shapes) < 12
    backend.complete(others)
    shapes.clear()
    assert [each.text for each in backend.complete(conversations)] == [each.text for each in first]
    assert shapes.count((1, length)) == 1


def test_every_completion_is_reported_as_it_ends(make: Callable[..., TransformersBackend]) -> None:
    told: dict[int, Completion] = {}
    completions = make().complete(CONVERSATIONS, lambda index, each: told.update({index: each}))
    assert [told[index] for index in range(len(CONVERSATIONS))] == completions
    assert all(each.seconds > 0 for each in completions)


def test_the_model_is_left_as_it_was(make: Callable[..., TransformersBackend]) -> None:
    backend = make()
    backend.model.train()
    before = backend.model.config._attn_implementation
    backend.complete(asked("a", "b"))
    assert backend.model.training
    assert backend.model.config._attn_implementation == before


def test_a_prompt_that_does_not_fit_is_named(make: Callable[..., TransformersBackend]) -> None:
    with pytest.raises(UserError, match=r"too-long has \d+ tokens.* 512 "):
        make().complete([Conversation((Message("user", "word " * 600),), id="too-long")])


def test_nothing_asked_nothing_answered(make: Callable[..., TransformersBackend]) -> None:
    assert make().complete([]) == []


def test_a_folder_is_loaded(tiny_llama: Any) -> None:
    backend = TransformersBackend.from_folder(tiny_llama, max_new_tokens=2)
    assert backend.name == tiny_llama.name
    assert backend.complete(asked("Hi"))[0].finish_reason == "length"


@pytest.mark.parametrize(("precision", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_a_folder_is_loaded_in_the_precision_asked_for(
    tiny_llama: Any, precision: Literal["float32", "bfloat16"], dtype: torch.dtype
) -> None:
    backend = TransformersBackend.from_folder(tiny_llama, max_new_tokens=2, precision=precision)
    assert backend.model.dtype == dtype
    assert [each.finish_reason for each in backend.complete(asked("Hi", "Hello there"))] == ["length", "length"]


@pytest.mark.parametrize("computes", [True, False])
def test_auto_is_bfloat16_where_the_processor_computes_in_it(computes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.models._cpu_has_bfloat16", lambda: computes)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert choose_dtype("auto") == (torch.bfloat16 if computes else torch.float32)
