"""The terminal chat, with a scripted model."""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from rich.console import Console

from core.console import printable
from core.errors import UserError
from hermes import Conversation, Message, Skill, Tool
from runtime.chat import MAX_CALLS, Chat, read_line, skill_key

SKILL = Skill("mood-music", "Plays music.", "Call nothing.")
TOOLS = (Tool("load_skill"), Tool("run_js"))


def text(*pieces: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": [{"type": "text", "text": piece}]} for piece in pieces]


def call(name: str, **arguments: Any) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": arguments}
    return [{"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}]


class Script:
    """Answers with the given turns, in order; an exception among the parts is raised."""

    def __init__(self, *turns: Sequence[Any]) -> None:
        self.turns = list(turns)
        self.asked: list[Conversation] = []
        self.cut = False
        self.cancelled = False

    def stream(self, conversation: Conversation) -> Iterator[dict[str, Any]]:
        self.asked.append(conversation)
        for part in self.turns.pop(0):
            if isinstance(part, Exception):
                raise part
            if part == "Ctrl-C":
                signal.raise_signal(signal.SIGINT)
                continue
            if self.cancelled:
                return
            yield part

    def rendered_prompt(self, conversation: Conversation) -> str:
        return f"prompt of {len(conversation.messages)} messages"

    def cancel(self) -> None:
        self.cancelled = True


def run(script: Script, *lines: str, **options: Any) -> tuple[Chat, str]:
    remaining = list(lines)

    def read(_: str) -> str:
        if not remaining:
            raise EOFError
        return remaining.pop(0)

    output = io.StringIO()
    skills = {SKILL.name: SKILL}
    chat = Chat(script, Console(file=output, width=200), TOOLS, "system", skills, **{"read": read, **options})
    chat.loop()
    return chat, output.getvalue()


def test_a_skill_is_loaded_and_other_results_are_typed() -> None:
    script = Script(
        call("load_skill", skill_name="Mood Music"),
        [*text("I play."), *call("run_js", data='{"a": 1}')],
        call("run_js", data=""),
        text("Do", "ne."),
    )
    chat, output = run(script, "play", '{"status": "succeeded"}', "just text", "/quit", "never read")
    assert [(each.role, each.content) for each in chat.conversation.messages] == [
        ("system", "system"),
        ("user", "play"),
        ("assistant", ""),
        ("tool", SKILL.load_result()),
        ("assistant", "I play."),
        ("tool", {"status": "succeeded"}),
        ("assistant", ""),
        ("tool", "just text"),
        ("assistant", "Done."),
    ]
    assert [len(each.messages) for each in script.asked] == [2, 4, 6, 8]
    assert '→ run_js {\n  "data": "{\\"a\\": 1}"\n}' in output
    assert "Done.\n" in output


def test_an_unknown_skill_is_answered_as_the_app_does() -> None:
    chat, output = run(Script(call("load_skill", skill_name="nope"), text("Sorry.")), "x")
    assert chat.conversation.messages[3].content["skill_instructions"] == "Skill not found"
    assert "no skill 'nope'" in output


def test_what_the_model_writes_is_neither_markup_nor_control() -> None:
    _, output = run(Script(text("[red]a[/red] \x1b[31mb\x07 :smile:\u202e c\td")), "x")
    assert "[red]a[/red] [31mb :smile: c\td\n" in output
    assert printable("\x9b1m\r\x00é\n") == "1mé\n"


def test_a_failed_turn_is_reported_and_forgotten() -> None:
    script = Script([*text("half"), UserError("cannot read the call")], text("fine"))
    chat, output = run(script, "first", "second")
    assert "cannot read the call" in output
    assert [each.content for each in chat.conversation.messages] == ["system", "second", "fine"]


def test_a_turn_has_a_limited_number_of_calls() -> None:
    script = Script(*[call("load_skill", skill_name="mood_music")] * (MAX_CALLS + 1), text("never"))
    chat, output = run(script, "go")
    assert f"more than {MAX_CALLS} calls" in output
    assert len(script.asked) == MAX_CALLS + 1
    assert len(chat.conversation.messages) == 1


def test_ctrl_c_stops_an_answer_and_not_the_chat() -> None:
    before = signal.getsignal(signal.SIGINT)
    script = Script([*text("a long "), "Ctrl-C", *text("story")], text("short"))
    chat, output = run(script, "tell", "again")
    assert script.cancelled
    assert "a long" in output and "story" not in output and "stopped" in output
    assert [each.content for each in chat.conversation.messages][1] == "again"
    assert signal.getsignal(signal.SIGINT) is before


def test_commands() -> None:
    script = Script(text("one"), text("two"))
    chat, output = run(script, "/prompt", "a", "/prompt", "/reset", "b", "/what", "")
    assert "nothing has been asked yet" in output
    assert "prompt of 2 messages" in output
    assert [each.content for each in chat.conversation.messages] == ["system", "b", "two"]
    assert output.count("/prompt shows") == 2


def test_a_cut_and_an_empty_answer_are_named() -> None:
    script = Script(text("half"), [])
    script.cut = True
    _, output = run(script, "a", "b")
    assert "(cut: " in output and "(the model said nothing)" in output


def test_without_anybody_to_ask_a_call_ends_the_turn() -> None:
    script = Script(call("load_skill", skill_name="mood-music"), call("run_js", data="x"))
    chat = Chat(script, Console(file=io.StringIO()), TOOLS, None, {SKILL.name: SKILL})
    chat.answer("go")
    assert chat.conversation.messages[0] == Message("user", "go")
    assert chat.conversation.messages[-1].calls[0].name == "run_js"


@pytest.mark.parametrize("name", ["Mood Music", "mood_music", " MOOD-MUSIC "])
def test_skill_names_are_matched_loosely(name: str) -> None:
    assert skill_key(name) == skill_key(SKILL.name)


@pytest.mark.parametrize("encoding", [("utf-8", "strict"), ("utf-8", "surrogateescape")])
def test_input_that_is_not_utf8_says_so(encoding: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"h\xe9llo\n"), *encoding))
    with pytest.raises(UserError, match="not UTF-8"):
        read_line("you> ")
