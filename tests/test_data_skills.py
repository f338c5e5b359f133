"""The shipped skills, read as the app reads them, and a user's own folder of skills."""

import json
import random
import re
from datetime import datetime
from pathlib import Path

import pytest

from core.errors import UserError
from data.forms import shipped
from data.skill_library import SKILLS_FOLDER, read_skill, read_skills, shipped_skill, shipped_skills, system_prompt
from data.skill_scripts import (
    SCRIPTED_SKILLS,
    Notes,
    current_date_result,
    run_intent_result,
    run_js_result,
    script_output,
)
from data.tasks import TASKS
from hermes import Skill, dumps

FOLDERS = tuple(sorted(path.name for path in SKILLS_FOLDER.iterdir() if path.is_dir()))
INTENTS = {
    "daily-reminder": "schedule_notification",
    "days-until": "get_current_date_and_time",
    "quick-mail": "send_email",
    "text-message": "send_sms",
}
WORDS = {"note-keeper": range(150, 221), "plant-care": range(160)}


def test_every_folder_holds_a_skill_that_the_app_can_read() -> None:
    skills = shipped_skills()
    assert tuple(skill.name for skill in skills) == FOLDERS
    for skill in skills:
        assert Skill.parse(skill.to_text()) == skill
        assert len(skill.description.split()) <= 15
        assert len(skill.body.split()) in WORDS.get(skill.name, range(61)), skill.name
        assert f"- Description: {skill.description}" in system_prompt(skills)


def test_skills_call_their_script_or_intent_or_nothing() -> None:
    for skill in shipped_skills():
        page = SKILLS_FOLDER / skill.name / "scripts" / "index.html"
        assert page.is_file() == (skill.name in SCRIPTED_SKILLS)
        assert ("run_js" in skill.body) == (skill.name in SCRIPTED_SKILLS)
        assert ("run_intent" in skill.body) == (skill.name in INTENTS)
        assert INTENTS.get(skill.name, "") in skill.body
        if page.is_file():
            script = page.read_text(encoding="utf-8")
            assert "window['ai_edge_gallery_get_result'] = async (data, secret) =>" in script
            assert re.search(f"skill_name:? {skill.name}", skill.body) and "index.html" in skill.body


def test_the_examples_of_the_skills_work() -> None:
    notes = Notes(next_id=3)
    for skill in shipped_skills():
        examples = [json.loads(text) for text in re.findall(r"\{[^{}]+\}", skill.body)]
        assert len(examples) == {"note-keeper": 4, "plant-care": 0}.get(skill.name, 1)
        for example in examples if skill.name in SCRIPTED_SKILLS else []:
            output = script_output(skill.name, dumps(example), notes=notes)
            assert list(output) == ["result"], (skill.name, example, output)


@pytest.mark.parametrize(
    ("skill", "fields", "result"),
    [
        ("calculator", {"expression": "12.5 * (3 + 4)"}, "12.5 * (3 + 4) = 87.5"),
        ("calculator", {"expression": "0.1 + 0.2"}, "0.1 + 0.2 = 0.3"),
        ("color-converter", {"hex": "#1e90ff"}, "rgb(30, 144, 255)"),
        ("color-converter", {"hex": "FA0"}, "rgb(255, 170, 0)"),
        ("days-until", {"today": "2026-08-07", "date": "24 December"}, "139 days"),
        ("days-until", {"today": "2026-08-07T10:00:00 Friday", "date": "Aug 8th"}, "1 day"),
        ("days-until", {"today": "2026-08-07", "date": "2026-07-26"}, "12 days ago"),
        ("days-until", {"today": "2026-08-07", "date": "29 Feb"}, "571 days"),
        ("tip-calculator", {"bill": 64.5, "percent": 15, "people": 3}, "tip 9.68, total 74.18, each 24.73"),
        ("tip-calculator", {"bill": 80, "percent": 10}, "tip 8.00, total 88.00"),
        ("unit-converter", {"value": 12.5, "from": "km", "to": "miles"}, "12.5 km = 7.77 miles"),
        ("unit-converter", {"value": 100, "from": "celsius", "to": "fahrenheit"}, "100 celsius = 212 fahrenheit"),
        ("word-counter", {"text": "one two"}, "2 words, 7 characters"),
        ("word-counter", {"text": "naïve"}, "1 word, 5 characters"),
    ],
)
def test_results_of_known_inputs(skill: str, fields: dict[str, object], result: str) -> None:
    assert run_js_result(script_output(skill, dumps(fields))) == {"result": result, "status": "succeeded"}


def test_a_scripts_error_arrives_as_a_result() -> None:
    output = script_output("unit-converter", '{"value": 1, "from": "parsecs", "to": "m"}')
    assert output == {"error": "unknown unit: parsecs"}
    assert run_js_result(output) == {"result": '{"error": "unknown unit: parsecs"}', "status": "succeeded"}
    with pytest.raises(KeyError):
        script_output("plant-care", "{}")


def test_notes_stay_between_calls_and_no_id_comes_twice() -> None:
    notes = Notes({3: "the wifi password is tulip", 5: "Buy WIFI stick"}, next_id=7)

    def answer(**fields: object) -> dict[str, str]:
        return script_output("note-keeper", dumps(fields), notes=notes)

    assert answer(action="find", text="wifi") == {
        "result": "Note 3: the wifi password is tulip\nNote 5: Buy WIFI stick"
    }
    assert answer(action="find", text="password wifi") == {"result": "Note 3: the wifi password is tulip"}
    assert answer(action="add", text="call Zoë") == {"result": "Note 7 saved."}
    assert answer(action="delete", id=7) == {"result": "Note 7 deleted."}
    assert answer(action="find", text="Zoë") == {"error": "no note has: Zoë"}
    assert answer(action="add", text="ask Zoë") == {"result": "Note 8 saved."}
    assert answer(action="list") == {"result": "3 notes: 3: the wifi password is tulip; 5: Buy WIFI stick; 8: ask Zoë"}
    assert script_output("note-keeper", '{"action": "list"}') == {"result": "0 notes"}


def test_the_phones_answers_to_intents() -> None:
    assert current_date_result(datetime(2026, 8, 7, 10)) == {
        "action": "get_current_date_and_time",
        "parameters": "{}",
        "result": "2026-08-07T10:00:00 Friday",
    }
    assert run_intent_result("send_sms", "{}") == {"action": "send_sms", "parameters": "{}", "result": "succeeded"}


def test_each_plant_of_the_skill_has_an_answer_of_its_own() -> None:
    skill = shipped_skill("plant-care")
    plants = re.findall("^- (.+):", skill.body, flags=re.MULTILINE)
    form, rng = shipped(skill), random.Random(0)
    episodes = {plant: TASKS["plant-care"].play(form, "", {"plant": plant}, rng) for plant in plants}
    assert len({episode.answer.partition(": ")[2] for episode in episodes.values()}) == len(plants) == 14
    for plant, episode in episodes.items():
        answer = rf"{plant.capitalize()}: water every [1-9]\d? (days|weeks|months), [a-z ]+\."
        assert re.fullmatch(answer, episode.answer) and episode.facts[0] in episode.answer
    assert episodes["cactus"].answer == "Cactus: water every 3 weeks, full sun."
    assert (episodes["cactus"].exchanges, episodes["cactus"].facts) == ((), ("every 3 weeks",))


def test_a_bad_skill_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"SKILL\.md"):
        read_skill(tmp_path)
    (tmp_path / "SKILL.md").write_text("---\nname: other\ndescription: x\n---\n\nBody", encoding="utf-8")
    with pytest.raises(UserError, match="must equal the folder's name"):
        read_skill(tmp_path)


def write_skill(folder: Path, name: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: x\n---\n\nBody", encoding="utf-8")


def test_a_folder_of_skills(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="none: no such folder"):
        read_skills(tmp_path / "none")
    with pytest.raises(UserError, match="no skill here"):
        read_skills(tmp_path)
    write_skill(tmp_path, "mood-music")
    (tmp_path / "draft").mkdir()
    (tmp_path / ".git").mkdir()
    assert [skill.name for skill in read_skills(tmp_path)] == ["mood-music"]
    told = capfd.readouterr().err
    assert "draft: no skill, since it has no SKILL.md" in told and ".git" not in told
    write_skill(tmp_path, "Mood_Music")
    with pytest.raises(UserError, match="'Mood_Music' and 'mood-music' are one name to the app"):
        read_skills(tmp_path)
