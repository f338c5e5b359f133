"""How fast and how large a bundle is in LiteRT-LM: `python -m export.measure BUNDLE PROMPT.txt RESULT.json`.

`export/sweep.py` starts it once for each bundle, so that the peak of memory is that bundle's own.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from core.files import atomic_write_json
from core.memory import peak_memory_gb
from runtime.litert_backend import LiteRTBackend

REPEATS = 5
DECODED = 128
"""Most tokens of a reply; one that ends earlier is measured as far as it goes."""


def measure(bundle: Path, prompt: str) -> dict[str, Any]:
    """Figures of `bundle` on this machine, medians of `REPEATS` replies to `prompt`, all of its processors at work.

    Loading is timed to the first token after a prompt of one word, since the runtime prepares weights only when they
    are used; it keeps none on the disk. Memory is the process's peak with everything in it.
    """
    import litert_lm  # noqa: F401 - loading a library is not loading a bundle

    threads = os.cpu_count()
    started = time.perf_counter()
    with LiteRTBackend(bundle, max_new_tokens=1, threads=threads) as backend:
        backend.complete_prompt("Hello")
        load = time.perf_counter() - started
        room = backend.context_tokens - len(backend.engine.tokenize(prompt)) - 1
        backend.max_new_tokens = min(DECODED, room)
        rounds = [_reply(backend, prompt) for _ in range(REPEATS)]
    medians = {name: round(statistics.median(each[name] for each in rounds), 3) for name in rounds[0]}
    return {
        "bytes": bundle.stat().st_size,
        "load_seconds": round(load, 3),
        **medians,
        "peak_memory_gb": peak_memory_gb(),
        "threads": threads,
        "repeats": REPEATS,
    }


def _reply(backend: LiteRTBackend, prompt: str) -> dict[str, float]:
    """One reply in a session of its own; the time to the first token begins with the prompt's prefill."""
    import litert_lm

    session = backend.engine.create_session(
        apply_prompt_template=False,
        sampler_config=litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=0.0),
        max_output_tokens=backend.max_new_tokens,
    )
    try:
        started, first = time.perf_counter(), None
        session.run_prefill([prompt])
        for _ in session.run_decode_async():
            first = first or time.perf_counter() - started
        info = session.get_benchmark_info()
    finally:
        session.close()
    return {
        "prompt_tokens": info.last_prefill_token_count,
        "prefill_tokens_per_second": info.last_prefill_tokens_per_second,
        # A model that ends at once says nothing; its end is the first token.
        "first_token_seconds": first or time.perf_counter() - started,
        "new_tokens": info.last_decode_token_count,
        "decode_tokens_per_second": info.last_decode_tokens_per_second,
    }


if __name__ == "__main__":
    asked, prompt_file, result = (Path(argument) for argument in sys.argv[1:])
    atomic_write_json(result, measure(asked, prompt_file.read_text(encoding="utf-8")))
