"""Generated conversations: the same every time, disjoint between splits, and as the phone would have them."""

import json
import re
from collections import Counter
from itertools import pairwise

import pytest

from core.errors import UserError
from data.agent_skills import generate
from data.build import check_disjoint
from data.tasks import HELD_OUT, TRAINED
from data.values import SPLITS, Split, split_of
from hermes import Conversation, dumps, get_dialect, text_of, validate_conversation
from hermes.gallery_tools import GALLERY_TOOLS, NO_SKILL_ANSWER

COUNTS: dict[Split, int] = {"train": 400, "validation": 80, "test": 240}


@pytest.fixture(scope="module")
def splits() -> dict[Split, list[Conversation]]:
    return {split: generate(split, count, seed=0) for split, count in COUNTS.items()}


@pytest.fixture(scope="module")
def conversations(splits: dict[Split, list[Conversation]]) -> list[Conversation]:
    return [conversation for rows in splits.values() for conversation in rows]


def _rows(conversations: list[Conversation]) -> list[str]:
    return [dumps(conversation.to_json()) for conversation in conversations]


def _user_texts(conversation: Conversation) -> list[str]:
    return [str(message.content) for message in conversation.messages if message.role == "user"]


def test_same_seed_gives_same_bytes_and_a_larger_count_appends() -> None:
    assert _rows(generate("test", 50, 7)) == _rows(generate("test", 90, 7))[:50]


def test_another_seed_gives_other_conversations() -> None:
    assert not set(_rows(generate("test", 30, 7))) & set(_rows(generate("test", 30, 8)))


@pytest.mark.parametrize("seed", range(3))
def test_splits_of_different_seeds_share_nothing(seed: int) -> None:
    check_disjoint({split: generate(split, 90, seed + number) for number, split in enumerate(SPLITS)})


def test_every_open_value_lies_in_its_split(splits: dict[Split, list[Conversation]]) -> None:
    for split, rows in splits.items():
        for conversation in rows:
            for key, value in conversation.notes["values"].items():
                slot = key.removeprefix("then_").removeprefix("before_")
                identity = {
                    "phone": lambda text: re.sub("[^0-9]", "", text),
                    "phone_number": lambda text: re.sub("[^0-9]", "", text),
                    "color": lambda text: text.lower().lstrip("#"),
                }.get(slot, str)
                assert split_of(identity(value)) == split, (key, value)


def test_ids_and_user_texts_are_unique(conversations: list[Conversation]) -> None:
    assert len({conversation.id for conversation in conversations}) == len(conversations)
    assert len({tuple(_user_texts(conversation)) for conversation in conversations}) == len(conversations)
    assert conversations[7].id == "agent_skills/train/0007"


def test_conversations_are_valid_and_survive_the_disk(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        assert validate_conversation(conversation) == []
        assert Conversation.from_json(json.loads(dumps(conversation.to_json()))) == conversation
        assert conversation.tools == GALLERY_TOOLS
        assert (conversation.source, conversation.license) == ("hermes-edge", "Apache-2.0")


def test_no_slot_is_left_unfilled(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        for text in _user_texts(conversation):
            assert not re.search(r"[{}|\[\]]|  ", text), text


def test_kinds_and_skills_are_balanced(splits: dict[Split, list[Conversation]]) -> None:
    kinds = {split: Counter(row.notes["kind"] for row in rows) for split, rows in splits.items()}
    assert kinds["train"]["call"] == 120 and kinds["train"]["none"] >= 120
    assert kinds["test"] == {"call": 180, "none": 60}
    called = Counter(row.notes["skill"] for row in splits["test"] if row.notes["kind"] == "call")
    assert set(called) == {*TRAINED, *HELD_OUT}
    assert min(called[name] for name in TRAINED) >= 7 and called["quick-mail"] >= 20 <= called["tip-calculator"]


def test_training_never_mentions_a_held_out_skill(splits: dict[Split, list[Conversation]]) -> None:
    for split in ("train", "validation"):
        for row in splits[split]:
            text = text_of(get_dialect("hermes").render(row))
            assert not any(name in text for name in (*HELD_OUT, "send_email")), row.id
            assert row.notes["held_out"] is False
    assert {row.notes["skill"] for row in splits["test"] if row.notes["held_out"]} == set(HELD_OUT)


def test_what_ends_early_is_for_training_alone(splits: dict[Split, list[Conversation]]) -> None:
    for split, rows in splits.items():
        for row in rows:
            kind, last = row.notes["kind"], row.messages[-1]
            assert split != "test" or kind in ("call", "none")
            if kind == "opening":
                assert [call.name for call in last.calls] == ["load_skill"]
            if kind == "run":
                assert last.calls[0].name in ("run_js", "run_intent")


def test_ten_conversations_share_a_prompt_that_lists_three_to_fifteen_skills(
    splits: dict[Split, list[Conversation]],
) -> None:
    sizes: Counter[int] = Counter()
    for rows in (splits["train"], splits["test"]):
        for start in range(0, len(rows), 10):
            (prompt,) = {row.messages[0].content for row in rows[start : start + 10]}
            listed = re.findall(r'- Skill name: "(.*)"', str(prompt))
            assert len(set(listed)) == len(listed)
            sizes[len(listed)] += 1
    assert set(sizes) == set(range(3, 16))


def test_a_called_skill_is_listed_and_a_refused_request_calls_nothing(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        prompt = str(conversation.messages[0].content)
        for message in conversation.messages:
            for call in message.calls:
                if call.name == "load_skill":
                    assert f'- Skill name: "{call.arguments["skill_name"]}"' in prompt
        if conversation.notes["kind"] == "none":
            assert conversation.messages[-1].content == NO_SKILL_ANSWER
            assert not any(message.calls for message in conversation.messages)


def test_calls_use_the_names_of_the_instructions_that_were_loaded(conversations: list[Conversation]) -> None:
    checked = 0
    for conversation in conversations:
        body = name = ""
        for message in conversation.messages:
            if message.role == "tool" and message.name == "load_skill":
                body, name = str(message.content["skill_instructions"]), str(message.content["skill_name"])
                assert f"name: {name}\n" in body
            for call in message.calls:
                if call.name == "load_skill":
                    continue
                checked += 1
                text = call.arguments["data" if call.name == "run_js" else "parameters"]
                fields = json.loads(str(text))
                assert isinstance(text, str) and dumps(fields) == text
                assert all(re.search(rf"\b{key}\b", body) for key in fields), (conversation.id, fields)
                if call.name == "run_js":
                    assert list(call.arguments) == ["skill_name", "script_name", "data"]
                    assert call.arguments["skill_name"] == name
                    assert call.arguments["script_name"] == "index.html" or call.arguments["script_name"] in body
                else:
                    assert call.arguments["intent"] in body
    assert checked > 300


def test_results_are_what_the_phone_answers(conversations: list[Conversation]) -> None:
    seen: Counter[str] = Counter()
    for conversation in conversations:
        for before, message in pairwise(conversation.messages):
            if message.role != "tool" or message.name == "load_skill":
                continue
            (call,) = before.calls
            assert message.name == call.name
            if message.content.get("status") == "failed":
                assert list(message.content) == ["error", "status"]
                seen["failed"] += 1
            elif call.name == "run_js":
                assert list(message.content) == ["result", "status"] and message.content["status"] == "succeeded"
                seen["error" if message.content["result"].startswith('{"error"') else "run_js"] += 1
            else:
                assert list(message.content) == ["action", "parameters", "result"]
                assert message.content["action"] == call.arguments["intent"]
                assert message.content["parameters"] == call.arguments["parameters"]
                seen["run_intent"] += 1
    assert seen.keys() == {"failed", "error", "run_js", "run_intent"}


def test_the_answer_holds_the_facts(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        facts = conversation.notes["facts"]
        assert bool(facts) == (conversation.notes["kind"] in ("call", "none"))
        answers = [str(each.content) for each in conversation.messages if each.role == "assistant" and not each.calls]
        assert all(fact in answers[-1] for fact in facts)


def test_shapes_of_conversations(splits: dict[Split, list[Conversation]]) -> None:
    def calls(row: Conversation) -> int:
        return sum(len(message.calls) for message in row.messages)

    for split in ("train", "test"):
        whole = [row for row in splits[split] if row.notes["kind"] == "call"]
        assert any(calls(row) == 1 for row in whole), "a skill of text alone"
        assert any(calls(row) == 3 for row in whole), "two calls in turn"
        assert all(len(message.calls) <= 1 for row in whole for message in row.messages)
        several = [row for row in splits[split] if len(_user_texts(row)) > 1]
        assert any(row.messages[2].content == NO_SKILL_ANSWER for row in several), "a request without a skill first"
        assert any(row.messages[-1].calls for row in several if row.notes["kind"] == "call"), "another request after"


def test_conversations_stay_short(conversations: list[Conversation]) -> None:
    longest = max(len(text_of(get_dialect("hermes").render(conversation))) for conversation in conversations)
    assert longest < 7000, f"{longest} characters are more than 2048 tokens"


def test_shared_values_are_refused(splits: dict[Split, list[Conversation]]) -> None:
    leaked = {**splits, "test": [*splits["test"], splits["train"][3]]}
    with pytest.raises(UserError) as caught:
        check_disjoint(leaked)
    message = str(caught.value)
    assert "template(s) in train and test" in message and "user text(s) in train and test" in message
    assert splits["train"][3].notes["templates"][0] in message
