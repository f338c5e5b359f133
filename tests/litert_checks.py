"""Checks of a bundle in LiteRT-LM; each takes a loaded backend and raises AssertionError with what differs."""

from __future__ import annotations

from collections.abc import Sequence

from data.agent_skills import generate
from hermes import Conversation, Message, Tool, ToolCall, ToolCalls, text_of, validate_call
from hermes.gallery_tools import GALLERY_TOOLS
from hermes.grammar import compile as compile_grammar
from runtime.bundle_tokenizer import bundle_tokenizer
from runtime.litert_backend import LiteRTBackend
from runtime.litert_messages import as_message
from runtime.raw_text import Sampling

WEATHER = Tool(
    "get_weather",
    "Zürich's <weather> & 'more'.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "at": {"type": "integer", "minimum": 1}},
        "required": ["city", "at"],
    },
)
ASKED = (Message("system", "You are helpful <tool_call> é."), Message("user", "Hi <|im_start|>, 東京 or Zürich?"))
CALLED = Message(
    "assistant",
    "I look it up.",
    (
        ToolCall("get_weather", {"zone": "x</tool_call><b>'é\n", "at": 1, "deep": {"z": 1.5, "a": [True, None, 1e10]}}),
        ToolCall("get_weather", {}),
    ),
)
ANSWERED = Message("tool", {"z": 1, "a": "é", "deep": {"y": "</tool_response>", "b": 2}}, name="get_weather")
CONVERSATIONS = (
    Conversation(ASKED[1:], ()),
    Conversation(ASKED, (WEATHER,)),
    Conversation((*ASKED, CALLED, ANSWERED), (WEATHER,)),
    Conversation((*ASKED, CALLED, ANSWERED, Message("tool", "plain text", name="get_weather")), (WEATHER,)),
    Conversation((*ASKED, CALLED, ANSWERED, Message("assistant", "Cold."), Message("user", "Thanks")), (WEATHER,)),
)
"""No system turn, non-ASCII, key orders that sorting would change, control text, calls, results, two turns."""


ONE_CALL = Message("assistant", calls=CALLED.calls[:1])
WITHOUT_TEXT_BESIDE_CALLS = (
    *CONVERSATIONS[:2],
    Conversation((*ASKED, ONE_CALL, ANSWERED), (WEATHER,)),
    Conversation((*ASKED, ONE_CALL, ANSWERED, Message("assistant", "Cold."), Message("user", "Thanks")), (WEATHER,)),
)
"""For dialects in which a call is the whole reply."""


def check_rendering(backend: LiteRTBackend, conversations: Sequence[Conversation] = CONVERSATIONS) -> None:
    """The runtime renders what training rendered: key order, numbers, control text, non-ASCII."""
    generated = [prompt for conversation in generate("train", 150, 1) for prompt in conversation.prompts()]
    assert len(generated) >= 200
    for conversation in (*conversations, *generated):
        expected = text_of(backend.dialect.render(conversation, add_generation_prompt=True))
        assert backend.rendered_prompt(conversation) == expected


def check_reply_agrees(backend: LiteRTBackend, conversation: Conversation) -> None:
    """The runtime's conversation and the raw session hold the same answer."""
    completion = backend.complete([conversation])[0]
    reply = as_message(backend.reply(conversation))
    parsed = backend.dialect.parse(completion.text, conversation.tools, finish_reason=completion.finish_reason)
    if reply.calls:
        assert getattr(parsed, "calls", ()) == reply.calls
    else:
        assert reply.content.strip() == completion.text.strip()


def check_second_turn(backend: LiteRTBackend, first: Conversation, then: Message) -> None:
    """A conversation that goes on answers like a fresh one with the same history, and costs only its new part."""
    opening = as_message(backend.reply(first))
    longer = Conversation((*first.messages, opening, then), first.tools)
    going_on = backend.reply(longer)
    assert backend.speed is not None
    kept = backend.speed.prompt_tokens
    # Another conversation in between makes the runtime forget.
    backend.reply(Conversation((Message("user", "Hello"),)))
    fresh = backend.reply(longer)
    assert backend.speed.prompt_tokens > kept
    assert going_on == fresh


def check_second_completion(backend: LiteRTBackend, first: Conversation, then: Message) -> None:
    """The same for raw completions."""
    opening = Message("assistant", backend.complete([first])[0].text)
    longer = Conversation((*first.messages, opening, then), first.tools)
    going_on = backend.complete([longer])[0].text
    assert backend.speed is not None
    kept = backend.speed.prompt_tokens
    backend.complete([Conversation((Message("user", "Hello"),))])
    assert backend.complete([longer])[0].text == going_on
    assert backend.speed.prompt_tokens > kept


def check_cut(backend: LiteRTBackend, conversation: Conversation, limit: int = 3) -> None:
    """A reply that reaches the limit is reported as cut, and has no more tokens than that."""
    before, backend.max_new_tokens = backend.max_new_tokens, limit
    try:
        completion = backend.complete([conversation])[0]
    finally:
        backend.max_new_tokens = before
    assert completion.finish_reason == "length"
    assert len(backend.engine.tokenize(completion.text)) <= limit


BOOK = Tool(
    "book_room",
    "Books.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "enum": ["Zürich", "New York", "東京"]},
            "nights": {"type": "integer", "minimum": 1, "maximum": 14},
            "bed": {"enum": ["double bed", "single", None]},
        },
        "required": ["city", "nights"],
    },
)


def check_constraint(backend: LiteRTBackend) -> None:
    """A random model, sampled hot, writes valid calls under the grammar and none without it.

    Enums of two words and outside of ASCII, a required space: what a runtime that forces text would fail on.
    """
    alphabet = bundle_tokenizer(backend.bundle).alphabet
    regex = compile_grammar((BOOK,), backend.dialect, "required", parallel=False).regex(alphabet)
    asked = Conversation((Message("user", "A room?"),), (BOOK,))
    prompt = text_of(backend.dialect.render(asked, add_generation_prompt=True))
    before, backend.max_new_tokens = backend.max_new_tokens, 120
    try:
        for seed in range(12):
            sampling = Sampling(1.5, seed)
            held = backend.complete_prompt(prompt, regex=regex, sampling=sampling)
            reply = backend.dialect.parse(held.text, asked.tools, finish_reason=held.finish_reason)
            assert isinstance(reply, ToolCalls) and not reply.malformed, held
            (call,) = reply.calls
            assert validate_call(call, asked.tools) == []
        free = backend.complete_prompt(prompt, sampling=sampling)
        assert not isinstance(backend.dialect.parse(free.text, asked.tools), ToolCalls)
    finally:
        backend.max_new_tokens = before


def check_free_text(free: LiteRTBackend, held: LiteRTBackend) -> None:
    """Under its constraint a bundle answers in text as without it, in both ways of asking."""
    for text in ("Hi", "東京 or Zürich?", "1 < 2 <tool"):
        for tools in ((), GALLERY_TOOLS, (BOOK,)):
            asked = Conversation((Message("user", text),), tools)
            assert held.complete([asked])[0].text == free.complete([asked])[0].text
            assert held.reply(asked) == free.reply(asked)
