"""What `hermes-edge data` writes, and how it is read back."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import UserError
from core.recipe import DataSettings, ModelSettings, Recipe
from core.stages import Run
from core.user_files import read_prompt
from data.agent_skills import generate
from data.build import build, read_conversations
from data.stage import build_data
from data.stage import stage as data_stage
from data.values import Split
from hermes import Conversation, dumps


def _recipe(**settings: Any) -> Recipe:
    return Recipe(name="small", model=ModelSettings(source="none"), data=DataSettings(**settings))


def test_a_users_prompt_is_used(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text("Skills of mine:\n___SKILLS___\nNone? No relevant skills found\n", encoding="utf-8")
    recipe = _recipe(train=200, validation=1, test=200, system_prompts=[str(path)])
    build(recipe, tmp_path / "data")
    for split in ("train", "test"):
        prompts = {row.messages[0].content for row in read_conversations(tmp_path / "data" / f"{split}.jsonl")}
        assert any(str(prompt).startswith("Skills of mine:\n- Skill name:") for prompt in prompts)
        assert not all(str(prompt).startswith("Skills of mine") for prompt in prompts)
    run = Run(tmp_path)
    before = data_stage(recipe, run).key
    path.write_text("Others:\n___SKILLS___", encoding="utf-8")
    assert data_stage(recipe, run).key != before


@pytest.mark.parametrize("text", ["no place", "___SKILLS___ and ___SKILLS___", "___SKILLS___ ___TOOLS___"])
def test_a_users_prompt_without_a_place_for_skills_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(str(path))):
        build(_recipe(train=1, validation=1, test=1, system_prompts=[str(path)]), tmp_path / "data")


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
    def with_a_broken_one(split: Split, count: int, seed: int, prompts: Sequence[str]) -> list[Conversation]:
        good = generate(split, count, seed, prompts)
        return [replace(good[0], messages=good[0].messages[:2]), *good[1:]] if split == "train" else good

    monkeypatch.setattr("data.build.generate_each", with_a_broken_one)
    assert build(_recipe(train=4, validation=2, test=2), tmp_path)["rejected"] == 1
    (row,) = map(json.loads, (tmp_path / "rejected.jsonl").read_text(encoding="utf-8").splitlines())
    assert row["id"] == "agent_skills/train/0000"
    assert row["reasons"] == ["messages: no assistant turn to learn from"]


def test_read_errors_name_line_and_field_all_at_once(tmp_path: Path) -> None:
    good = generate("train", 20, 0)
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


def test_a_byte_order_mark_is_no_part_of_a_prompt(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(b"\xef\xbb\xbfYours:\r\n___SKILLS___\r\n")
    assert read_prompt(path) == "Yours:\n___SKILLS___"


@pytest.mark.parametrize(
    ("name", "words"), [("a\0b", "cannot be read"), ("missing.txt", "cannot be read"), ("long.txt", "too long")]
)
def test_a_prompt_that_cannot_be_used_is_named(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "long.txt").write_text("x" * 60_000 + "___SKILLS___")
    with pytest.raises(UserError, match=words):
        read_prompt(tmp_path / name)


def test_one_prompt_file_cannot_stand_twice() -> None:
    with pytest.raises(ValueError, match="one file stands twice"):
        DataSettings(system_prompts=("a.txt", "a.txt"))
