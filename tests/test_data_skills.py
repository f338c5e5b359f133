"""The shipped skills: read as the app reads them, and their scripts against the Python that stands for them."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from core.errors import UserError
from data.agent_skills import SKILL_NAMES, generate
from data.skill_library import SKILLS_FOLDER, read_skill, read_skills, shipped_skills, system_prompt
from data.skill_results import run_js_result, script_output
from data.units import SPELLINGS, UNITS
from hermes import dumps


def test_shipped_skills_are_as_the_app_needs_them() -> None:
    skills = shipped_skills()
    assert tuple(skill.name for skill in skills) == SKILL_NAMES
    for skill in skills:
        assert len(skill.body.split()) < 120
        assert f"- Description: {skill.description}" in system_prompt(skills)
        script = (SKILLS_FOLDER / skill.name / "scripts" / "index.html").read_text(encoding="utf-8")
        assert "window['ai_edge_gallery_get_result'] = async (data, secret) =>" in script


def _cases() -> list[tuple[str, str]]:
    """Inputs for the scripts: every pair of units, what conversations hold, and what a model may get wrong."""
    values = (0, 1, -40, 12.5, 0.125, 2.675, 1.005, 98.6, 1234567.891)
    cases = [
        ("unit-converter", dumps({"value": values[number % len(values)], "from": one, "to": other}))
        for number, (one, other) in enumerate((one, other) for one in UNITS for other in UNITS)
    ]
    cases += [("unit-converter", dumps({"value": value, "from": "m", "to": "m"})) for value in values]
    spellings = [(unit, other) for unit, others in SPELLINGS.items() for other in (*others, unit.upper())]
    cases += [("unit-converter", dumps({"value": 2, "from": one, "to": other})) for one, other in spellings]
    bad = ("", "no json", "[1]", "null", '"text"', "{}", '{"value": NaN}', '{"value": 1}', '{"text": 5}', "{'a': 1}")
    cases += [(skill, data) for skill in SKILL_NAMES for data in bad]
    units = {"from": "km", "to": "miles"}
    odd_values: tuple[object, ...] = ("12.5", "-3", "twelve", "1e3", True, None, [1], 1e13, 1e-9, -0.0, 10**30)
    cases += [("unit-converter", dumps({"value": value, **units})) for value in odd_values]
    cases += [("unit-converter", dumps({"value": 1, "from": unit, "to": "m"})) for unit in ("constructor", "KM", 3)]
    texts = ("", " ", "one", "two words", "tab\tand\nline", "naïve café", "no\u00a0break", "flag 🇫🇷 ok", "a \u2003 b")
    cases += [("word-counter", dumps({"text": text})) for text in texts]
    messages = (("555-0100", "Hi"), ("+44 (0)7700/900.1", "é 🙂"), ("12", "Hi"), ("Anna", "Hi"), ("555-0100", " \n"))
    cases += [("text-message", dumps({"phone_number": number, "sms_body": body})) for number, body in messages]
    for conversation in generate("test", 90, 3):
        if conversation.notes["kind"] == "call":
            arguments = conversation.messages[4].calls[0].arguments
            cases.append((conversation.notes["skill"], arguments.get("data") or arguments["parameters"]))
    return cases


_HARNESS = """
const fs = require('fs');
const cases = JSON.parse(fs.readFileSync(0, 'utf8'));
const functions = {};
for (const [skill, script] of Object.entries(cases.scripts)) {
  const window = {};
  new Function('window', script)(window);
  functions[skill] = window['ai_edge_gallery_get_result'];
}
Promise.all(cases.inputs.map(([skill, data]) => functions[skill](data, '')))
  .then((outputs) => process.stdout.write(JSON.stringify(outputs)));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed, so the skills' scripts cannot run")
def test_scripts_and_python_agree() -> None:
    scripts = {}
    for skill in SKILL_NAMES:
        page = (SKILLS_FOLDER / skill / "scripts" / "index.html").read_text(encoding="utf-8")
        (scripts[skill],) = re.findall(r"<script>(.*)</script>", page, flags=re.DOTALL)
    cases = _cases()
    assert len(cases) > 100
    answer = subprocess.run(
        ["node", "-e", _HARNESS],
        input=json.dumps({"scripts": scripts, "inputs": cases}),
        capture_output=True, text=True, encoding="utf-8", check=True, timeout=60,
    )  # fmt: skip
    for (skill, data), output in zip(cases, json.loads(answer.stdout), strict=True):
        assert json.loads(output) == script_output(skill, data), (skill, data)


@pytest.mark.parametrize(
    ("skill", "fields", "result"),
    [
        ("unit-converter", {"value": 12.5, "from": "km", "to": "miles"}, "12.5 km = 7.77 miles"),
        ("unit-converter", {"value": 100, "from": "celsius", "to": "fahrenheit"}, "100 celsius = 212 fahrenheit"),
        ("word-counter", {"text": "one two"}, "2 words, 7 characters"),
        ("word-counter", {"text": "naïve"}, "1 word, 5 characters"),
    ],
)
def test_results_of_known_inputs(skill: str, fields: dict[str, object], result: str) -> None:
    assert run_js_result(skill, dumps(fields)) == {"result": result, "status": "succeeded"}


def test_a_scripts_error_arrives_as_a_result() -> None:
    result = run_js_result("unit-converter", '{"value": 1, "from": "parsecs", "to": "m"}')
    assert result == {"result": '{"error": "unknown unit: parsecs"}', "status": "succeeded"}


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
