"""Does a bundle work in another LiteRT-LM? Runs by itself, in an environment that has only that version.

    python runtime/compat.py BUNDLE CASES.json

`CASES.json` is a list of `{"name", "messages", "tools", "prompt", "marks"}` in the runtime's shapes (see
`runtime.litert_messages.compat_case`); the last message is sent. Prints one JSON line a case with the version,
the rendered prompt, the reply, its calls and what failed; exits with 1 if anything did, with 2 if the bundle
or the cases cannot be loaded.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Iterator
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


def run_case(engine: Any, case: dict[str, Any]) -> dict[str, Any]:
    """What one case gave; `failed` lists what is wrong."""
    *history, last = case["messages"]
    row: dict[str, Any] = {"name": case.get("name", ""), "prompt": "", "reply": "", "tool_calls": [], "failed": []}
    conversation = engine.create_conversation(
        messages=history,
        tools=[declare(tool) for tool in case.get("tools", [])],
        automatic_tool_calling=False,
        sampler_config=litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=0.0),
    )
    try:
        row["prompt"] = conversation.render_message_to_string(last)
        for number, part in enumerate(conversation.send_message_async(last)):
            row["reply"] += text_of(part.get("content"))
            row["tool_calls"] += part.get("tool_calls") or []
            if number == MAX_PARTS:
                conversation.cancel_process()
    except RuntimeError as error:
        row["failed"].append(f"runtime: {error}")
    finally:
        conversation.close()
    row["failed"] += list(problems(case, row))
    return row


def problems(case: dict[str, Any], row: dict[str, Any]) -> Iterator[str]:
    """What differs from what the case expects."""
    if row["prompt"] != case["prompt"]:
        yield "the rendered prompt differs"
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
