"""What LiteRT-LM does with a bundle, step by step. Runs by itself: an odd bundle can crash the process, or hang it.

    python -m runtime.probe BUNDLE PROBES.json

`PROBES.json` holds `texts` to tokenise, `cases` (`{"name", "messages", "tools"}` in the runtime's shapes; the last
message is sent), and `call`: null, or a case with `regex`, which the reply is held to. Prints one JSON line a step:
`{"step": …}` with what came of it, or with `error`.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

import litert_lm

from runtime.compat import declare, load

REPLY_TOKENS = 4
"""Enough to see that a turn works; what it says does not matter."""


def say(step: str, **what: Any) -> None:
    """One line of the report, at once: the next step may be the last."""
    print(json.dumps({"step": step, **what}, ensure_ascii=False), flush=True)


def open_case(engine: Any, case: dict[str, Any], limit: int, **options: Any) -> Any:
    """A conversation with a case's history."""
    return engine.create_conversation(
        messages=case["messages"][:-1],
        tools=[declare(tool) for tool in case["tools"]],
        automatic_tool_calling=False,
        sampler_config=litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=0.0),
        max_output_tokens=limit,
        **options,
    )


def run_case(engine: Any, case: dict[str, Any]) -> None:
    """The prompt of a case, and whether its turn works."""
    try:
        with open_case(engine, case, REPLY_TOKENS) as conversation:
            say("prompt", name=case["name"], prompt=conversation.render_message_to_string(case["messages"][-1]))
        with open_case(engine, case, REPLY_TOKENS) as conversation:
            conversation.send_message(case["messages"][-1])
        say("reply", name=case["name"])
    except RuntimeError as error:
        say("reply", name=case["name"], error=str(error))


def run_call(engine: Any, case: dict[str, Any]) -> None:
    """What the runtime's parser makes of a call that the model is made to write."""
    constraint = litert_lm.ConstrainedDecodingConfig(
        enable=True, provider=litert_lm.LiteRtLmConstraintProviderType.LL_GUIDANCE
    )
    try:
        with open_case(engine, case, case["limit"], constrained_decoding_config=constraint) as conversation:
            format_ = litert_lm.ResponseFormat.regex(case["regex"])
            reply = conversation.send_message(case["messages"][-1], response_format=format_)
        say("call", tool_calls=reply.get("tool_calls") or [], content=reply.get("content"))
    except RuntimeError as error:
        say("call", error=str(error))


def main(arguments: list[str]) -> int:
    """The script; returns the exit code."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    probes = json.loads(Path(arguments[1]).read_text(encoding="utf-8"))
    version = importlib.metadata.version("litert-lm-api")
    try:
        engine = load(arguments[0])
    except (OSError, ValueError, RuntimeError) as error:
        say("load", version=version, error=str(error))
        return 1
    say("load", version=version)
    say("tokens", ids=[engine.tokenize(text) for text in probes["texts"]])
    for case in probes["cases"]:
        run_case(engine, case)
    if probes["call"] is not None:
        run_call(engine, probes["call"])
    say("end")
    engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
