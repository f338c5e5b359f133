"""A terminal chat with a bundle: text as it comes, calls as they are parsed, results from skills or from you.

hermes-edge run BUNDLE
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from core.console import printable
from core.errors import UserError
from core.user_files import skill_key
from hermes import Conversation, Message, Skill, Tool, ToolCall
from runtime.litert_messages import as_message, merge, text_of_content

if TYPE_CHECKING:
    from rich.console import Console

MAX_CALLS = 25
"""Calls in one user turn, as in the app."""
_NOT_UTF8 = "the input is not UTF-8; convert it (iconv), or set the terminal to UTF-8"
HELP = "/prompt shows what the model reads, /reset starts anew, /quit leaves; Ctrl-C stops an answer"


class Streamer(Protocol):
    """What the chat needs of a backend; `LiteRTBackend` is one."""

    cut: bool

    def stream(self, conversation: Conversation) -> Iterator[dict[str, Any]]:
        """Parts of the next assistant turn."""
        ...

    def rendered_prompt(self, conversation: Conversation) -> str:
        """The prompt of the next assistant turn."""
        ...

    def cancel(self) -> None:
        """End the running `stream`."""
        ...


Read = Callable[[str], str]
"""Shows a prompt and returns a line; raises EOFError at the end."""


class _NobodyToAskError(Exception):
    """A call has no result, and there is nobody to ask."""


@dataclass
class Chat:
    """One conversation in a terminal."""

    backend: Streamer
    console: Console
    tools: tuple[Tool, ...] = ()
    system: str | None = None
    skills: Mapping[str, Skill] = field(default_factory=dict)
    read: Read | None = None
    """Where results of tools come from; None: nobody can be asked, and such a call ends the turn."""

    def __post_init__(self) -> None:
        self._skills = {skill_key(skill.name): skill for skill in self.skills.values()}
        self._asked: Conversation | None = None
        self.reset()

    def reset(self) -> None:
        """Forget everything but the system turn."""
        first = () if self.system is None else (Message("system", self.system),)
        self.conversation = Conversation(first, self.tools)

    def loop(self) -> None:
        """Read and answer lines until /quit or the end of the input."""
        assert self.read is not None
        self._note(HELP)
        while True:
            try:
                line = self.read("you> ").strip()
                if line == "/quit":
                    return
                if line:
                    self.handle(line)
            except EOFError:
                return
            except KeyboardInterrupt:
                self._note("\n" + HELP)

    def handle(self, line: str) -> None:
        """Obey one command or answer one message; a turn that fails is reported and forgotten."""
        if line == "/reset":
            self.reset()
            self._note("a new conversation")
        elif line == "/prompt":
            self._show_prompt()
        elif line.startswith("/"):
            self._note(HELP)
        else:
            before = self.conversation
            try:
                self.answer(line)
            except UserError as error:
                self.conversation = before
                self._note(f"\nthis turn failed and is forgotten: {error}")
            except KeyboardInterrupt:
                self.conversation = before
                self._note("\nstopped; this turn is forgotten")

    def answer(self, line: str) -> None:
        """Answer one user message: reply, calls and their results, until the reply has no calls.

        Raises:
            UserError: the runtime refused the turn, or there were too many calls.
            KeyboardInterrupt: the user stopped it.
        """
        self._add(Message("user", line))
        calls = 0
        while (reply := self._reply()).calls:
            for call in reply.calls:
                calls += 1
                if calls > MAX_CALLS:
                    raise UserError(f"more than {MAX_CALLS} calls in one turn")
                self._show_call(call)
                try:
                    result = self._result(call)
                except _NobodyToAskError:
                    return
                self._add(Message("tool", result, name=call.name))

    def _add(self, message: Message) -> None:
        self.conversation = Conversation((*self.conversation.messages, message), self.tools)

    def _reply(self) -> Message:
        """Stream one assistant turn to the terminal and add it."""
        parts: list[dict[str, Any]] = []
        self._asked = self.conversation
        with _interrupting(self.backend.cancel) as interrupted:
            for part in self.backend.stream(self.conversation):
                parts.append(part)
                self._write(text_of_content(part.get("content")))
        if any(part.get("content") for part in parts):
            self._write("\n")
        if interrupted:
            raise KeyboardInterrupt
        if not parts:
            self._note("(the model said nothing)")
        elif self.backend.cut:
            self._note("(cut: the limit of a reply, or the context, is reached)")
        reply = as_message(merge(parts))
        self._add(reply)
        return reply

    def _result(self, call: ToolCall) -> Any:
        """What `call` answers: a skill's text, or what the user types."""
        if call.name == "load_skill" and self._skills:
            name = str(call.arguments.get("skill_name", ""))
            skill = self._skills.get(skill_key(name))
            if skill is None:
                self._note(f"no skill {printable(name)!r}")
                return {"skill_name": name, "skill_instructions": "Skill not found"}
            self._note(f"skill {skill.name!r} loaded")
            return skill.load_result()
        if self.read is None:
            raise _NobodyToAskError
        text = self.read(f"result of {printable(call.name)}, text or JSON> ").strip()
        try:
            return json.loads(text)
        except ValueError:
            return text

    def _show_call(self, call: ToolCall) -> None:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False, indent=2)
        self._write(f"→ {call.name} {arguments}\n", "cyan")

    def _show_prompt(self) -> None:
        if self._asked is None:
            self._note("nothing has been asked yet")
        else:
            self._write(self.backend.rendered_prompt(self._asked) + "\n")

    def _note(self, text: str) -> None:
        self._write(text + "\n", "dim")

    def _write(self, text: str, style: str = "") -> None:
        """Print text as it is: no markup, no control characters; without a style tabs stay tabs."""
        if style:
            self.console.out(printable(text), end="", style=style, highlight=False)
        else:
            self.console.file.write(printable(text))
            self.console.file.flush()


@contextmanager
def _interrupting(cancel: Callable[[], None]) -> Iterator[list[int]]:
    """Within the block Ctrl-C calls `cancel` instead of raising; the list is filled if that happened."""
    happened: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield happened
        return

    def handler(number: int, _: Any) -> None:
        happened.append(number)
        cancel()

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield happened
    finally:
        signal.signal(signal.SIGINT, before)


def read_line(prompt: str) -> str:
    """A line from the terminal, or from piped input, which gets no prompt.

    Raises:
        EOFError: there is no more.
        UserError: the input is not UTF-8.
    """
    try:
        return _checked_text(input(prompt if sys.stdin.isatty() else ""))
    except UnicodeDecodeError:
        raise UserError(_NOT_UTF8) from None


def _checked_text(text: str) -> str:
    """`text`, unless it holds what Python puts in place of bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(_NOT_UTF8) from None
    return text


def chat(
    bundle: Path,
    tools: Sequence[Tool] = (),
    system: str | None = None,
    skills: Mapping[str, Skill] | None = None,
    *,
    max_new_tokens: int = 512,
    threads: int | None = None,
    constrained: bool = False,
    read: Read = read_line,
    console: Console | None = None,
) -> None:
    """Chat with `bundle` until the user leaves; if `constrained`, it can write only valid calls.

    Raises:
        UserError: the bundle cannot be loaded.
    """
    from rich.console import Console

    from runtime.litert_backend import LiteRTBackend

    with LiteRTBackend(bundle, max_new_tokens=max_new_tokens, threads=threads, constrained=constrained) as backend:
        Chat(backend, console or Console(), tuple(tools), system, skills or {}, read).loop()


def ask(
    bundle: Path,
    prompt: str,
    tools: Sequence[Tool] = (),
    system: str | None = None,
    skills: Mapping[str, Skill] | None = None,
    *,
    max_new_tokens: int = 512,
    threads: int | None = None,
    constrained: bool = False,
    console: Console | None = None,
) -> Conversation:
    """Answer one message; skills are loaded, any other call is shown and ends the turn.

    If `constrained`, the model can write only valid calls.

    Returns:
        the conversation, its last message the model's.

    Raises:
        UserError: the bundle cannot be loaded, or the runtime refused the turn.
        KeyboardInterrupt: the user stopped it.
    """
    from rich.console import Console

    from runtime.litert_backend import LiteRTBackend

    with LiteRTBackend(bundle, max_new_tokens=max_new_tokens, threads=threads, constrained=constrained) as backend:
        session = Chat(backend, console or Console(), tuple(tools), system, skills or {})
        session.answer(_checked_text(prompt))
        return session.conversation
