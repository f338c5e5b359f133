"""The `native` dialect: prompts from the checkpoint's own chat template, calls between `<tool_call>` tags.

The template is not ours, so what it does is proven: what is trained is found by rendering, and a template that drops
tools or results, or writes the past differently once the conversation goes on, is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from hermes.control import IM_END, JSON_ESCAPES, MARKERS, TOOL_CALL_END, TOOL_CALL_START
from hermes.dialects.base import CallSyntax, text_of
from hermes.dialects.chatml import result_text
from hermes.dialects.native_template import render_template
from hermes.dialects.tagged_stream import TaggedReading
from hermes.record import JSON, Conversation, Message, Segment, Tool, ToolCall, ToolCalls, dumps

ChatTemplate: TypeAlias = str | Sequence[Mapping[str, str]] | Mapping[str, str]
"""A Jinja template, or several by name: `tool_use` is for conversations with tools, `default` for those without."""
_WHO = "the checkpoint's chat template"
_CONTROL = tuple(marker for marker in MARKERS if "|" in marker)
_PROBE = Conversation(
    (
        Message("user", "Please look."),
        Message("assistant", calls=(ToolCall("probe_tool", {"probe_key": "probe value"}),)),
        Message("tool", "probe result", name="probe_tool"),
        Message("assistant", "Done."),
    ),
    (Tool("probe_tool", "Looks.", {"type": "object", "properties": {"probe_key": {"type": "string"}}}),),
)


class NativeDialect(TaggedReading):
    """Renders with the checkpoint's template; reads replies as the `hermes` dialect does."""

    name = "native"
    syntax = CallSyntax(TOOL_CALL_START, TOOL_CALL_END, padding="\n")
    sentinels = (TOOL_CALL_START, TOOL_CALL_END)

    def __init__(self, chat_template: ChatTemplate, bos_token: str = "", eos_token: str = IM_END) -> None:
        """Make one.

        Args:
            chat_template: the checkpoint's, in any form in which a tokenizer holds it.
            bos_token: what the template may write at the beginning.
            eos_token: what ends an assistant turn.

        Raises:
            ValueError: there is no template in it that can be used.
        """
        self._templates = _by_name(chat_template)
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        self._extra = tuple(token for token in (bos_token, eos_token) if token and token not in MARKERS)
        self._is_proven = False
        self.stop = eos_token

    def render(self, conversation: Conversation, add_generation_prompt: bool = False) -> list[Segment]:
        """Segments of the whole conversation; what follows the generation prompt, up to the stop token, is trained.

        Raises:
            ValueError: the template does not carry the conversation; says what is lost or rewritten.
        """
        calls = any(each.role == "tool" or each.calls for each in conversation.messages)
        if not self._is_proven and (calls or conversation.tools):
            self._prove()
        given = _Given(self, conversation)
        whole = given.text(len(given.messages))
        given.check(whole)
        segments, position = [], 0
        for index, message in enumerate(conversation.messages):
            if message.role == "assistant":
                start, end = given.span(index, whole)
                segments += [Segment(whole[position:start], False), Segment(whole[start:end], True)]
                position = end
        prompted = given.text(len(given.messages), True) if add_generation_prompt else whole
        if not prompted.startswith(whole):
            raise ValueError(f"{_WHO} rewrites the conversation where an answer is asked for")
        segments.append(Segment(prompted[position:], False))
        return [Segment(given.restore(each.text), each.trained) for each in segments if each.text]

    def format_reply(self, message: Message) -> str:
        """An assistant turn's own text as the template writes it, without its stop token."""
        rendered = self.render(Conversation((Message("user", "…"), message)))
        return text_of(each for each in rendered if each.trained).removesuffix(self.stop)

    def chat_template(self) -> str:
        """The checkpoint's template; of several, the one for tools."""
        return self._template(with_tools=True)

    def neutralise(self, text: str, markers: Sequence[str] = MARKERS) -> str:
        """`text` with markers, and the checkpoint's own first and last token, written harmlessly."""
        for marker in (*markers, *self._extra):
            text = text.replace(marker, f"{marker[0]} {marker[1:]}")
        return text

    def escapes(self) -> list[tuple[str, str]]:
        """What may not stand in a call, each with the same in JSON."""
        return [*JSON_ESCAPES, *((token, f"\\u{ord(token[0]):04x}{token[1:]}") for token in self._extra)]

    def text(self, messages: Sequence[JSON], tools: Sequence[JSON], add_generation_prompt: bool) -> str:
        """What the template makes of messages and tools in the shapes that templates take."""
        template = self._template(bool(tools))
        try:
            return render_template(
                template,
                messages=list(messages),
                tools=list(tools) or None,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._tokens,
            )
        except ValueError as error:
            raise ValueError(f"{_WHO} refuses the conversation: {error}") from error

    def _template(self, with_tools: bool) -> str:
        names = ("tool_use", "default") if with_tools else ("default", "tool_use")
        return next(self._templates[name] for name in names if name in self._templates)

    def _prove(self) -> None:
        """Refuse a template in which tools, calls or results do not survive."""
        given = _Given(self, _PROBE)
        asked = given.text(1, True)
        if "probe_tool" not in asked or "probe_key" not in asked:
            raise ValueError(f"{_WHO} leaves out the tools, so that a model would not see them: take another dialect")
        whole = given.text(len(_PROBE.messages))
        if "probe result" not in whole:
            raise ValueError(f"{_WHO} leaves out the results of tools: take another dialect")
        given.span(1, whole)
        self._is_proven = True


class _Given:
    """A conversation in the shapes that templates take, with nothing in it that could act as control text."""

    def __init__(self, dialect: NativeDialect, conversation: Conversation) -> None:
        self.dialect, self.conversation = dialect, conversation
        written = dumps([[dict(call.arguments), call.name] for each in conversation.messages for call in each.calls])
        found = [(marker, escape) for marker, escape in dialect.escapes() if marker in written]
        stem = "control-text"
        while found and stem in dumps([written, [each.content for each in conversation.messages]]):
            stem += "-"
        # A template would write a marker in a call as it is. It is given a name instead, and the escape put in after.
        self._names = [(f"{stem}{number}.", *pair) for number, pair in enumerate(found)]
        self.messages = [self._chat(message) for message in conversation.messages]
        self.tools = [_with_strings(tool.to_openai(), dialect.neutralise) for tool in conversation.tools]

    def _chat(self, message: Message) -> dict[str, JSON]:
        neutralise = self.dialect.neutralise
        chat = message.to_chat()
        if message.role == "tool":
            chat["content"] = neutralise(result_text(message.content))
        elif message.role == "assistant":
            # Tags of calls may stand: text that holds some is a reply that could not be read.
            chat["content"] = neutralise(message.content, _CONTROL)
        else:
            chat["content"] = neutralise(message.content)
        if message.calls:
            chat["tool_calls"] = _with_strings(chat["tool_calls"], self._named)
        return chat

    def _named(self, text: str) -> str:
        for name, marker, _ in self._names:
            text = text.replace(marker, name)
        return text

    def restore(self, text: str) -> str:
        """Rendered text with what stood for markers escaped as in JSON."""
        for name, _, escape in self._names:
            text = text.replace(name, escape)
        return text

    def text(self, end: int, add_generation_prompt: bool = False) -> str:
        """The rendering of the first `end` messages."""
        return self.dialect.text(self.messages[:end], self.tools, add_generation_prompt)

    def check(self, whole: str) -> None:
        """Refuse a rendering in which a tool's name or a result is missing."""
        for tool in self.tools:
            if not _occurs(tool["function"]["name"], whole):
                raise ValueError(f"{_WHO} leaves out the tool {tool['function']['name']!r}")
        for index, message in enumerate(self.messages):
            if message["role"] == "tool" and not _occurs(message["content"], whole):
                raise ValueError(f"messages[{index}]: {_WHO} leaves out this result")

    def span(self, index: int, whole: str) -> tuple[int, int]:
        """From where to where the assistant turn `index` is in `whole`, without what the template adds."""
        where, stop = f"messages[{index}]: {_WHO}", self.dialect.stop
        prompt, turn = self.text(index, True), self.text(index + 1)
        if prompt == self.text(index):
            raise ValueError(f"{where} opens no assistant turn where an answer is asked for")
        if not turn.startswith(prompt):
            raise ValueError(f"{where} begins this turn differently from where an answer is asked for")
        if not whole.startswith(prompt):
            raise ValueError(f"{where} writes what comes before this turn differently once the conversation goes on")
        start = len(prompt)
        end, turn_end = whole.find(stop, start), turn.find(stop, start)
        if -1 in (end, turn_end):
            raise ValueError(f"{where} does not end this turn with {stop!r}")
        self._check_turn(index, whole[start:end], f"{where} does not write this turn as it is")
        self._check_turn(index, turn[start:turn_end], f"{where} writes this turn differently where it is the last")
        return start, end + len(stop)

    def _check_turn(self, index: int, said: str, problem: str) -> None:
        message = self.conversation.messages[index]
        if self.messages[index]["content"].strip() not in said:
            raise ValueError(f"{problem}: its text is changed")
        if message.calls:
            reply = self.dialect.parse(self.restore(said))
            if not isinstance(reply, ToolCalls) or reply.calls != message.calls or reply.malformed:
                problem += f"; calls must stand between {TOOL_CALL_START} and {TOOL_CALL_END}"
                raise ValueError(f"{problem}: read back, it is {said!r}")


def _by_name(chat_template: ChatTemplate) -> dict[str, str]:
    """Templates by name."""
    if isinstance(chat_template, str):
        templates = {"default": chat_template}
    elif isinstance(chat_template, Mapping):
        templates = dict(chat_template)
    else:
        templates = {each["name"]: each["template"] for each in chat_template}
    if not any(templates.get(name) for name in ("default", "tool_use")):
        raise ValueError(f"{_WHO}: needs one named default or tool_use; it has: {', '.join(templates) or 'none'}")
    return templates


def _with_strings(value: JSON, change: Callable[[str], str]) -> JSON:
    """A JSON value with every string in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): _with_strings(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_strings(each, change) for each in value]
    return value


def _occurs(text: str, rendered: str) -> bool:
    """Whether `text` stands in a rendering, as it is or inside JSON."""
    return text.strip() in rendered or dumps(text)[1:-1] in rendered
