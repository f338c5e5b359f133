"""Made results: replies that pass so many stages of the funnel, conversations of them, models that a page shows."""

from __future__ import annotations

from dataclasses import replace

from eval.results import NO_CALL, CaseResult, ModelResult, StepKind, StepResult, StepScore
from hermes import ToolCall

WORDS = {"load": "load_skill", "run": "run_js"}


def step(kind: StepKind, passed: int = 6, raw: str = "", expected: str = "", seconds: float = 1.0) -> StepResult:
    """A reply that passes the first `passed` stages; a text with none is a call where none was due."""
    right = passed == 6
    text = kind in ("answer", "abstain")
    facts = kind == "answer" and right
    stages = [passed > stage for stage in range(6)]
    score = StepScore(kind, *stages, abstained=text and passed > 0, facts=facts)
    due = WORDS.get(kind, NO_CALL)
    called = due if (passed > 0 if text else passed > 2) else "malformed"
    calls = (ToolCall(due, {"data": raw or "right"}),) if not text and passed > 0 else ()
    return StepResult(score, expected or kind, due, raw or f"{kind} {passed}", called, calls, "stop", seconds)


def call(identity: str, load: int = 6, run: int = 6, answer: int = 6, skill: str = "a") -> CaseResult:
    return CaseResult(identity, "call", skill, (step("load", load), step("run", run), step("answer", answer)))


def unseen(identity: str, load: int = 6, run: int = 6, skill: str = "z") -> CaseResult:
    """A call of a skill that training never saw."""
    return replace(call(identity, load, run, skill=skill), held_out=True)


def none(identity: str, passed: int = 6) -> CaseResult:
    return CaseResult(identity, "none", "", (step("abstain", passed),))


HOSTILE = "</pre><script>alert(1)</script>\n````\n# Title\n<img src=x onerror=alert(2)> {{ 7 * 7 }} &amp; | \x1b"


def results() -> dict[str, ModelResult]:
    base = [call(f"c{i}", load=0, run=i, answer=1) for i in range(6)] + [none("n0"), none("n1", 0)]
    hostile = CaseResult(
        HOSTILE, "call", f"{HOSTILE} $x^$", (step("load"), step("run", 0, raw=HOSTILE), step("answer"))
    )
    tuned = [call(f"c{i}") for i in range(6)] + [none("n0"), none("n1")]
    return {
        "base": ModelResult("base", "Base", [*base, hostile], {"weights": HOSTILE}),
        "tuned": ModelResult("tuned", "Tuned $\\frac{$", [*tuned, hostile]),
        "bundle": ModelResult("bundle", f"Bundle {HOSTILE}", [*tuned[:5], call("c5", run=4), *tuned[6:]]),
    }


def with_held_out() -> dict[str, ModelResult]:
    """As `results`, with two skills that training never saw; the tuned model gets 5 of 6 of their runs right."""
    hostile = replace(unseen("h9", skill=HOSTILE), steps=(step("load"), step("run", 0, raw=HOSTILE), step("answer")))
    cases = {
        "base": [unseen(f"h{i}", 0, 0, "yz"[i % 2]) for i in range(6)],
        "tuned": [unseen(f"h{i}", 6, 5 if i == 3 else 6, "yz"[i % 2]) for i in range(6)],
        "bundle": [unseen(f"h{i}", 6, 6, "yz"[i % 2]) for i in range(6)],
    }
    return {name: replace(model, cases=[*cases[name], hostile, *model.cases]) for name, model in results().items()}
