"""Generated conversations: the same every time, disjoint between splits, and as the phone would have them."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import UserError
from core.recipe import DataSettings, ModelSettings, Recipe
from core.stages import Run
from data.agent_skills import SKILL_NAMES, generate
from data.build import CLOSED_VALUES, build, check_disjoint, read_conversations
from data.phrases import CORES
from data.phrases_none import NONE_CORES
from data.skill_results import run_js_result
from data.stage import build_data
from data.stage import stage as data_stage
from data.values import SPLITS, Split, split_of
from hermes import Conversation, ToolCall, dumps, get_dialect, text_of, validate_conversation
from hermes.gallery_tools import GALLERY_TOOLS, NO_SKILL_ANSWER

COUNTS: dict[Split, int] = {"train": 360, "validation": 72, "test": 192}


@pytest.fixture(scope="module")
def splits() -> dict[Split, list[Conversation]]:
    return {split: generate(split, count, seed=0) for split, count in COUNTS.items()}


@pytest.fixture(scope="module")
def conversations(splits: dict[Split, list[Conversation]]) -> list[Conversation]:
    return [conversation for rows in splits.values() for conversation in rows]


@pytest.fixture(scope="module")
def calls(conversations: list[Conversation]) -> list[Conversation]:
    return [conversation for conversation in conversations if conversation.notes["kind"] == "call"]


def _rows(conversations: list[Conversation]) -> list[str]:
    return [dumps(conversation.to_json()) for conversation in conversations]


def _recipe(**counts: int) -> Recipe:
    return Recipe(name="small", model=ModelSettings(source="none"), data=DataSettings(**counts))


def test_same_seed_gives_same_bytes_and_a_larger_count_appends() -> None:
    assert _rows(generate("test", 50, 7)) == _rows(generate("test", 90, 7))[:50]


def test_another_seed_gives_other_conversations() -> None:
    assert not set(_rows(generate("test", 30, 7))) & set(_rows(generate("test", 30, 8)))


@pytest.mark.parametrize("seed", range(3))
def test_splits_of_different_seeds_share_nothing(seed: int) -> None:
    check_disjoint({split: generate(split, 90, seed + number) for number, split in enumerate(SPLITS)})


def test_cores_are_disjoint_and_many() -> None:
    for by_split in (*CORES.values(), *NONE_CORES.values()):
        cores = [core for split in SPLITS for core in by_split[split]]
        assert len(cores) == len(set(cores)) >= 25
        assert all(len(by_split[split]) >= 4 for split in SPLITS)


def test_every_open_value_lies_in_its_split(splits: dict[Split, list[Conversation]]) -> None:
    for split, rows in splits.items():
        for conversation in rows:
            for key, value in conversation.notes["values"].items():
                digits = re.sub("[^0-9]", "", value) if key in ("phone", "phone_number") else str(value)
                assert key in CLOSED_VALUES or split_of(digits) == split, (key, value)


def test_ids_and_user_texts_are_unique(conversations: list[Conversation]) -> None:
    assert len({conversation.id for conversation in conversations}) == len(conversations)
    assert len({conversation.messages[1].content for conversation in conversations}) == len(conversations)
    assert conversations[7].id == "agent_skills/train/0007"


def test_conversations_are_valid_and_survive_the_disk(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        assert validate_conversation(conversation) == []
        assert Conversation.from_json(json.loads(dumps(conversation.to_json()))) == conversation
        assert conversation.tools == GALLERY_TOOLS
        assert (conversation.source, conversation.license) == ("hermes-edge", "Apache-2.0")


def test_no_slot_is_left_unfilled(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        assert not re.search(r"[{}]", conversation.messages[1].content)


def test_kinds_and_skills_are_balanced(splits: dict[Split, list[Conversation]]) -> None:
    for split, rows in splits.items():
        skills = Counter(conversation.notes["skill"] for conversation in rows)
        none, each = (9, 5) if split == "train" else (6, 6)
        assert skills.pop(None) == COUNTS[split] * none // 24
        assert skills == dict.fromkeys(SKILL_NAMES, COUNTS[split] * each // 24)


def test_openings_are_for_training_alone_and_end_with_the_first_call(splits: dict[Split, list[Conversation]]) -> None:
    for split, rows in splits.items():
        openings = [row for row in rows if row.notes["kind"] == "opening"]
        assert len(openings) == (COUNTS[split] * 9 // 24 if split == "train" else 0)
        for row in openings:
            assert [message.role for message in row.messages] == ["system", "user", "assistant"]
            assert row.messages[-1].calls == (ToolCall("load_skill", {"skill_name": row.notes["skill"]}),)


def test_few_prompts_serve_many_conversations(conversations: list[Conversation]) -> None:
    assert len({conversation.messages[0].content for conversation in conversations}) <= 10


def test_a_called_skill_is_listed_and_a_refused_one_is_not(conversations: list[Conversation]) -> None:
    refused = Counter[str]()
    for conversation in conversations:
        asked = conversation.notes["template"].split("/")[0]
        listed = f'Skill name: "{asked}"' in conversation.messages[0].content
        assert listed == (conversation.notes["kind"] != "none")
        if not listed:
            refused[asked] += 1
            assert [message.role for message in conversation.messages] == ["system", "user", "assistant"]
            assert conversation.messages[2].content == NO_SKILL_ANSWER
    assert set(refused) == {"none", *SKILL_NAMES}


def test_calls_carry_json_text_in_the_skills_order(calls: list[Conversation]) -> None:
    order = {
        "unit-converter": ["value", "from", "to"],
        "word-counter": ["text"],
        "text-message": ["phone_number", "sms_body"],
    }
    for conversation in calls:
        skill = conversation.notes["skill"]
        load, call = conversation.messages[2].calls[0], conversation.messages[4].calls[0]
        assert (load.name, load.arguments) == ("load_skill", {"skill_name": skill})
        text = call.arguments["parameters" if skill == "text-message" else "data"]
        fields = json.loads(text)
        assert isinstance(text, str) and dumps(fields) == text
        assert list(fields) == order[skill]
        assert fields.items() <= conversation.notes["values"].items()


def test_open_values_stand_in_the_request_as_in_the_call(calls: list[Conversation]) -> None:
    for conversation in calls:
        request = conversation.messages[1].content
        for key, value in conversation.notes["values"].items():
            assert str(value) in request, (request, key)


def test_results_are_what_the_phone_answers(calls: list[Conversation]) -> None:
    for conversation in calls:
        skill = conversation.notes["skill"]
        loaded, call, result = conversation.messages[3], conversation.messages[4].calls[0], conversation.messages[5]
        assert (loaded.name, loaded.content["skill_name"]) == ("load_skill", skill)
        assert loaded.content["skill_instructions"].startswith(f"---\nname: {skill}\ndescription: ")
        assert result.name == call.name
        if skill == "text-message":
            parameters = call.arguments["parameters"]
            assert call.arguments["intent"] == "send_sms"
            assert result.content == {"action": "send_sms", "parameters": parameters, "result": "succeeded"}
        else:
            assert list(call.arguments) == ["skill_name", "script_name", "data"]
            assert result.content == run_js_result(skill, call.arguments["data"])
            assert "error" not in result.content["result"]


def test_the_answer_holds_the_facts(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        facts = conversation.notes["facts"]
        assert bool(facts) == (conversation.notes["kind"] != "opening")
        assert all(fact in conversation.messages[-1].content for fact in facts)


def test_conversations_stay_short(conversations: list[Conversation]) -> None:
    longest = max(len(text_of(get_dialect("hermes").render(conversation))) for conversation in conversations)
    assert longest < 3700, f"{longest} characters are more than 1000 tokens"


def test_build_writes_what_it_reports(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    summary = build(_recipe(train=36, validation=5, test=18), tmp_path, lambda *step: seen.append(step))
    assert summary == json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert summary["conversations"] == {"train": 36, "validation": 5, "test": 18}
    assert summary["rejected"] == 0 and (tmp_path / "rejected.jsonl").read_text() == ""
    assert seen[-1] == ("test", 18, 18)
    assert read_conversations(tmp_path / "train.jsonl") == generate("train", 36, 0)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"train.jsonl", "validation.jsonl", "test.jsonl", "rejected.jsonl", "summary.json"}
    first = (tmp_path / "test.jsonl").read_bytes()
    build(_recipe(train=36, validation=5, test=18), tmp_path)
    assert (tmp_path / "test.jsonl").read_bytes() == first


def test_build_sets_invalid_conversations_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_a_broken_one(split: Split, count: int, seed: int) -> list[Conversation]:
        good = generate(split, count, seed)
        return [replace(good[0], messages=good[0].messages[:2]), *good[1:]] if split == "train" else good

    monkeypatch.setattr("data.build.generate_each", with_a_broken_one)
    assert build(_recipe(train=4, validation=2, test=2), tmp_path)["rejected"] == 1
    (row,) = map(json.loads, (tmp_path / "rejected.jsonl").read_text(encoding="utf-8").splitlines())
    assert row["id"] == "agent_skills/train/0000"
    assert row["reasons"] == ["messages: no assistant turn to learn from"]


def test_shared_values_are_refused(splits: dict[Split, list[Conversation]]) -> None:
    leaked = {**splits, "test": [*splits["test"], splits["train"][3]]}
    with pytest.raises(UserError) as caught:
        check_disjoint(leaked)
    message = str(caught.value)
    assert "template(s) in train and test" in message and "user text(s) in train and test" in message
    assert splits["train"][3].notes["template"] in message


def test_read_errors_name_line_and_field_all_at_once(tmp_path: Path) -> None:
    good = generate("train", 4, 0)
    row = next(conversation for conversation in good if conversation.notes["kind"] == "call").to_json()
    no_content = {**row, "messages": [{"role": "user"}]}
    object_arguments = json.loads(dumps(row))
    object_arguments["messages"][2]["calls"][0]["arguments"] = {"skill_name": "x"}
    unknown_tool = json.loads(dumps(row))
    unknown_tool["messages"][2]["calls"][0]["name"] = "open_skill"
    bad_role = {**row, "messages": [{"role": "robot", "content": "x"}]}
    lines = [dumps(row), "{", "", "7", dumps({"id": "x"}), dumps(no_content), dumps(object_arguments)]
    lines += [dumps(unknown_tool), dumps(bad_role), dumps({**row, "notes": []})]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_conversations(path)
    message = str(caught.value)
    for part in (
        "8 problem(s)", "line 2: not JSON", "line 4: a row must be a JSON object", "line 5: messages: must be a list",
        "line 6: messages[0].content: missing", "line 7: messages[2].calls[0].arguments: must be JSON text",
        "line 8: messages[2].calls[0] $: unknown tool 'open_skill'", "line 9: message role 'robot'",
        "line 10: notes: must be JSON text of an object", str(path),
    ):  # fmt: skip
        assert part in message, (part, message)


def test_read_lists_at_most_twenty_problems(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("{\n" * 25, encoding="utf-8")
    with pytest.raises(UserError, match=r"25 problem\(s\)(.|\n)*line 20(.|\n)*and 5 more"):
        read_conversations(path)


def test_a_missing_file_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_conversations(tmp_path / "train.jsonl")


def test_progress_moves_while_conversations_are_made(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    build(_recipe(train=250, validation=1, test=1), tmp_path, lambda *each: told.append(each))
    assert [row for row in told if row[0] == "train"] == [("train", done, 250) for done in (0, 100, 200, 250)]


def test_a_users_own_file_is_no_output(tmp_path: Path) -> None:
    recipe, run = _recipe(train=1, validation=1, test=1), Run(tmp_path)
    run.data.mkdir()
    (run.data / "mine.json").write_text("{}")
    build_data(recipe, run)
    (run.data / "mine.json").unlink()
    assert data_stage(recipe, run).why_stale() is None
