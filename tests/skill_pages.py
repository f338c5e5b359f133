"""What tests of the shipped skills' scripts share: node runs the scripts, beside the Python that stands for them."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from data.skill_library import SKILLS_FOLDER
from data.skill_scripts import SCRIPTED_SKILLS, script_output

needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not installed, so the skills' scripts cannot run"
)

Case = tuple[str, str]

# A run starts with a storage of its own, which holds `kept`; `random` replaces what the device would draw.
_HARNESS = """
const fs = require('fs');
const { scripts, runs } = JSON.parse(fs.readFileSync(0, 'utf8'));
const functions = {};
for (const [skill, script] of Object.entries(scripts)) {
  const window = {};
  new Function('window', script)(window);
  functions[skill] = window['ai_edge_gallery_get_result'];
}
function set(name, value) {
  Object.defineProperty(globalThis, name, { configurable: true, ...value });
}
function storage(kind, text) {
  const kept = new Map(text === undefined ? [] : [['note-keeper', text]]);
  const refuse = () => { throw new Error('QuotaExceededError'); };
  return {
    getItem: kind === 'locked' ? refuse : (key) => (kept.has(key) ? kept.get(key) : null),
    setItem: kind === 'full' ? refuse : (key, value) => { kept.set(key, String(value)); },
  };
}
const device = globalThis.crypto;
async function outputs({ inputs, random, kind, kept }) {
  const drawn = [...(random || [])];
  const stub = { getRandomValues: (array) => { array[0] = drawn.shift(); return array; } };
  set('crypto', { value: random ? stub : device });
  if (kind === 'denied') set('localStorage', { get: () => { throw new Error('SecurityError'); } });
  else set('localStorage', { value: kind === 'none' ? undefined : storage(kind, kept) });
  const found = [];
  for (const [skill, data] of inputs) found.push(await functions[skill](data, ''));
  return found;
}
(async () => {
  const found = [];
  for (const run of runs) found.push(await outputs(run));
  process.stdout.write(JSON.stringify(found));
})();
"""


def page_of(skill: str) -> str:
    """The page that holds the skill's script."""
    return (SKILLS_FOLDER / skill / "scripts" / "index.html").read_text(encoding="utf-8")


def run_scripts(*runs: dict[str, Any]) -> list[list[dict[str, str]]]:
    """What the scripts return: a list a run, whose `inputs` are done in turn."""
    scripts = {}
    for skill in SCRIPTED_SKILLS:
        (scripts[skill],) = re.findall(r"<script>(.*)</script>", page_of(skill), flags=re.DOTALL)
    answer = subprocess.run(
        ["node", "-e", _HARNESS],
        input=json.dumps({"scripts": scripts, "runs": runs}),
        capture_output=True, text=True, encoding="utf-8", check=True, timeout=60,
    )  # fmt: skip
    return [[json.loads(text) for text in outputs] for outputs in json.loads(answer.stdout)]


def assert_agree(cases: list[Case]) -> None:
    (outputs,) = run_scripts({"inputs": cases})
    for (skill, data), output in zip(cases, outputs, strict=True):
        assert output == script_output(skill, data), (skill, data)


def answers(skill: str, *rows: dict[str, object]) -> list[str]:
    """The results or errors for `rows`, on which script and Python agree."""
    cases = cases_of(skill, *rows)
    assert_agree(cases)
    return [next(iter(script_output(*case).values())) for case in cases]


def cases_of(skill: str, *rows: dict[str, object]) -> list[Case]:
    return [(skill, json.dumps(row)) for row in rows]
