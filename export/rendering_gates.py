"""Does the bundle see the tokens that training saw, and do they fit into its cache?"""

from __future__ import annotations

from collections.abc import Iterator

from export.gates import Outcome, Subject, judge, not_checked
from export.lengths import longest_prompt
from export.logits import common_length
from export.probes import RENDERED, SETS
from export.tokenizer_parity import comparable_texts, described, differences
from hermes import Conversation, text_of

_SHOWN = 60
"""Characters of a difference that are printed."""


def check_token_ids(subject: Subject) -> Outcome:
    """Training's rendering, the chat template in transformers and LiteRT-LM give the same ids for every probe."""
    found: dict[str, list[str]] = {"transformers": [], "LiteRT-LM": []}
    prompts = list(_prompts(subject))
    for prompt in prompts:
        expected = subject.ids(prompt, prompt=True)
        for where, (text, ids) in (
            ("transformers", _in_transformers(subject, prompt)),
            ("LiteRT-LM", _in_runtime(subject, prompt)),
        ):
            if ids != expected:
                found[where].append(_difference(subject, prompt, where, text, ids))
    in_front = subject.backend.engine.bos_token_id
    figures = {
        "prompts": len(prompts),
        **{f"different in {where}": len(differences) for where, differences in found.items()},
        "tokens put in front": int(in_front is not None),
    }
    first = [differences[0] for differences in found.values() if differences]
    if in_front is not None:
        first.append(f"LiteRT-LM puts token {in_front} in front of every prompt; leave start_token out of the metadata")
    limits = {name: 0 for name in figures if name != "prompts"}
    return judge(figures, at_most=limits, detail="; ".join(first))


def _prompts(subject: Subject) -> Iterator[Conversation]:
    yield from RENDERED
    for conversations in SETS.values():
        for conversation in conversations:
            yield conversation.prompts()[-1]
    tests = [prompt for conversation in subject.conversations for prompt in conversation.prompts()]
    yield from tests[: subject.settings.prompts]


def _in_transformers(subject: Subject, prompt: Conversation) -> tuple[str, list[int]]:
    chat = [message.to_chat() for message in prompt.messages]
    tools = [tool.to_openai() for tool in prompt.tools] or None
    text = subject.tokenizer.apply_chat_template(chat, tools=tools, add_generation_prompt=True, tokenize=False)
    encoded = subject.tokenizer.apply_chat_template(chat, tools=tools, add_generation_prompt=True, return_dict=True)
    return str(text), list(encoded["input_ids"])


def _in_runtime(subject: Subject, prompt: Conversation) -> tuple[str, list[int]]:
    text = subject.backend.rendered_prompt(prompt)
    return text, subject.backend.engine.tokenize(text)


def _difference(subject: Subject, prompt: Conversation, where: str, text: str, ids: list[int]) -> str:
    """The first difference from what training saw, as text where the texts differ."""
    expected = text_of(subject.dialect.render(prompt, add_generation_prompt=True))
    name = prompt.id or "a prompt"
    if text == expected:
        trained = subject.ids(prompt, prompt=True)
        at = common_length(ids, trained)
        return f"{name!r} in {where} from token {at} on: {ids[at : at + 5]} where training saw {trained[at : at + 5]}"
    at = common_length(text, expected)
    shown, trained_text = text[at : at + _SHOWN], expected[at : at + _SHOWN]
    return f"{name!r} in {where} from character {at} on: {shown!r} where training saw {trained_text!r}"


def check_texts(subject: Subject) -> Outcome:
    """The bundle's tokenizer gives the merged model's ids for texts of all kinds."""
    if subject.packed is None:
        return not_checked("which tokenizer was packed is not known")
    asked = comparable_texts(subject.packed)
    found = differences(subject.tokenizer, subject.backend.engine.tokenize, asked)
    figures = {"texts": sum(map(len, asked.values())), "texts that differ": len(found)}
    return judge(figures, at_most={"texts that differ": 0}, detail=described(found) if found else "")


def check_cache(subject: Subject) -> Outcome:
    """Graph and metadata allow for the longest prompt and its answer."""
    figures = {
        **needed_tokens(subject),
        "cache of the graph, tokens": subject.graph.cache_length,
        "cache in the metadata, tokens": subject.backend.context_tokens,
    }
    need = figures["together, tokens"]
    caches = {name: need for name in figures if name.startswith("cache")}
    return judge(figures, at_least=caches, detail="raise export.cache_length and export again")


def needed_tokens(subject: Subject) -> dict[str, int]:
    """The longest prompt of test and training conversations, the longest answer, and their sum."""
    conversations = [*subject.conversations, *subject.trained]
    _, longest = longest_prompt(conversations, subject.dialect, subject.tokenizer)
    answer = subject.recipe.evaluation.max_new_tokens
    return {"longest prompt, tokens": longest, "answer, tokens": answer, "together, tokens": longest + answer}
