"""Does a bundle work in another LiteRT-LM? Runs by itself, in an environment that has only that version.

    python runtime/compat.py BUNDLE CASES.json

`CASES.json` is a list of cases in the runtime's shapes (see `runtime.litert_messages.compat_case`): what is rendered
and tokenised, and whether the last message is sent. Prints one JSON line a case with the version, the rendered
prompt, the reply, its calls, how it ended and what failed; exits with 1 if anything did, with 2 if the bundle or the
cases cannot be loaded.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import litert_lm

MAX_PARTS = 300
"""Parts of a streamed reply before it is stopped: 0.11.0 takes no limit of new tokens."""


def declare(description: dict[str, Any]) -> Any:
    """A tool that is only declared."""

    class Declared(litert_lm.Tool):  # type: ignore[misc]
        def get_tool_description(self) -> dict[str, Any]:
            return description

        def execute(self, param: Any) -> Any:
            raise NotImplementedError

    return Declared()


def load(bundle: str) -> Any:
    """The engine on the CPU, its prepared weights kept in memory; `Backend.CPU` is a class from some version on."""
    litert_lm.set_min_log_severity(max(litert_lm.LogSeverity))
    cpu = litert_lm.Backend.CPU
    return litert_lm.Engine(bundle, cpu() if isinstance(cpu, type) else cpu, cache_dir=":nocache")


def text_of(content: Any) -> str:
    """Text of a message's content, a string or a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.get("text", "") for part in content if part.get("type") == "text")


def open_conversation(engine: Any, case: dict[str, Any], history: list[dict[str, Any]]) -> Any:
    """A greedy conversation with the case's tools that never runs one."""
    return engine.create_conversation(
        messages=history,
        tools=[declare(tool) for tool in case.get("tools", [])],
        automatic_tool_calling=False,
        sampler_config=litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=0.0),
    )


def send(conversation: Any, message: dict[str, Any]) -> dict[str, Any]:
    """The streamed answer: its text, its calls, how many different parts it has, whether it ended by itself."""
    answer: dict[str, Any] = {"reply": "", "tool_calls": [], "different_parts": 0, "ended": True}
    seen = set()
    for number, part in enumerate(conversation.send_message_async(message)):
        text = text_of(part.get("content"))
        seen.add(text)
        answer["reply"] += text
        answer["tool_calls"] += part.get("tool_calls") or []
        if number == MAX_PARTS:
            answer["ended"] = False
            conversation.cancel_process()
    answer["different_parts"] = len(seen)
    return answer


def run_case(engine: Any, case: dict[str, Any]) -> dict[str, Any]:
    """What one case gave; `failed` lists what is wrong."""
    row: dict[str, Any] = {"name": case.get("name", ""), "sent": case.get("send", True), "prompt": "", "failed": []}
    row |= {"reply": "", "tool_calls": [], "different_parts": 0, "ended": False, "second_turn": "not asked"}
    try:
        ask(engine, case, row)
    except RuntimeError as error:
        row["failed"].append(f"runtime: {error}")
    return row


def ask(engine: Any, case: dict[str, Any], row: dict[str, Any]) -> None:
    """Fill `row` with what the runtime renders and answers."""
    *history, last = case["messages"]
    with closing(open_conversation(engine, case, history)) as conversation:
        row["prompt"] = conversation.render_message_to_string(last)
        row["failed"] += list(prompt_problems(engine, case, row["prompt"]))
        if not row["sent"]:
            return
        row |= send(conversation, last)
        row["failed"] += list(reply_problems(case, row))
        if not case.get("then"):
            return
        if not row["ended"] or not (row["reply"] or row["tool_calls"]):
            row["second_turn"] = "not checked: the first reply is cut or empty"
            return
        kept = send(conversation, case["then"])
    reply: dict[str, Any] = {"role": "assistant", "content": row["reply"]}
    if row["tool_calls"]:
        reply["tool_calls"] = row["tool_calls"]
    with closing(open_conversation(engine, case, [*case["messages"], reply])) as conversation:
        fresh = send(conversation, case["then"])
    equal = all(kept[part] == fresh[part] for part in ("reply", "tool_calls"))
    row["second_turn"] = "as in a fresh conversation" if equal else "differs"
    if not equal:
        row["failed"].append("the second turn differs from that of a fresh conversation")


def prompt_problems(engine: Any, case: dict[str, Any], prompt: str) -> Iterator[str]:
    """How the rendered prompt and its tokens differ from training's."""
    if prompt != case["prompt"]:
        yield "the rendered prompt differs"
    elif "ids" in case and list(engine.tokenize(prompt)) != case["ids"]:
        yield "the token ids differ"
    if engine.bos_token_id is not None:
        yield f"token {engine.bos_token_id} is put in front of the prompt"


def reply_problems(case: dict[str, Any], row: dict[str, Any]) -> Iterator[str]:
    """What is wrong with a reply."""
    if not row["reply"] and not row["tool_calls"]:
        yield "no reply"
    if any(mark in row["reply"] for mark in case["marks"]):
        yield "a call came as text"


def main(arguments: list[str]) -> int:
    """The script; returns the exit code."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    bundle, path = arguments
    try:
        with open(path, encoding="utf-8") as file:
            cases = json.load(file)
        engine = load(bundle)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"{error}", file=sys.stderr)
        return 2
    version = importlib.metadata.version("litert-lm-api")
    failed = False
    for case in cases:
        row = run_case(engine, case)
        failed = failed or bool(row["failed"])
        print(json.dumps({"version": version, **row}, ensure_ascii=False), flush=True)
    engine.close()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
