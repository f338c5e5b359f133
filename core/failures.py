"""Failures of converters and runtimes: what their messages mean, and what to do.

Each was met with the versions that `docs/check.md` names, or says so itself.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A message of someone else's program."""

    pattern: re.Pattern[str]
    meaning: str
    mend: str


def _known(pattern: str, meaning: str, mend: str) -> Known:
    return Known(re.compile(pattern, re.IGNORECASE), meaning, mend)


_OTHER_VERSION = "`hermes-edge doctor` shows the tested ranges, `make setup` installs the tried versions"

KNOWN: tuple[Known, ...] = (
    _known(
        r"No module named 'tensorflow|bonsai_flux2",
        "litert-torch 0.10.0 imports tensorflow, which it does not declare",
        f"install litert-torch 0.9.4; {_OTHER_VERSION}",
    ),
    _known(
        r"get_max_cache_shape",
        "this transformers is newer than this litert-torch knows (seen with 5.24 and Gemma 3)",
        f"install transformers 5.16; {_OTHER_VERSION}",
    ),
    _known(
        r"does not recognize this architecture|Unrecognized configuration class|Unrecognized model in",
        "this transformers does not know the checkpoint's architecture (`model_type` in its config.json)",
        "choose a Llama, Qwen 2.5, Qwen 3 or Gemma 3 checkpoint",
    ),
    _known(
        r"Unsupported model type|unknown model type|model_type.{0,20}not (?:set|supported)",
        "the bundle's llm_model_type is none that this LiteRT-LM knows",
        "export again with another type, or take a newer LiteRT-LM; `hermes-edge export --check FILE` names the type",
    ),
    _known(
        r"libvulkan\.so",
        "this LiteRT-LM (0.11.0) loads the system's Vulkan library even where it computes on the processor",
        "install it; on Debian: apt-get install libvulkan1",
    ),
    _known(
        r"Failed to commit token|forced bytes: got",
        "the constraint is not in this tokenizer's alphabet: a byte-level tokenizer spells a space `Ġ`",
        "write it with `hermes.grammar.compile(…).regex('byte_level')` or `('sentencepiece')`",
    ),
    _known(
        r"Sampler type: \d+ not implemented",
        "the bundle's sampler does not exist on this processor (3 is GREEDY)",
        "export again with top-p and k = 1, which is greedy too",
    ),
    _known(
        r"tried to use \+ operator on unsupported types string and sequence",
        "the chat template adds text to a message's content, which LiteRT-LM hands over as a list of parts",
        "take a template that reads both, such as that of the `hermes` dialect",
    ),
    _known(
        r"unknown (?:method|filter|test|function|statement)",
        "the chat template uses what this template engine does not have",
        "`hermes-edge export --check FILE` lists every such place with what to write instead",
    ),
    _known(
        r"is quantized with .{0,40}not serializable|quantized with gguf",
        "the weights were dequantised, but the model still carries its quantiser",
        "name the .gguf file as model.source; it is then dequantised for good",
    ),
    _known(
        r"std::bad_alloc|Cannot allocate memory|can't allocate memory|not enough memory|MemoryError|out of memory",
        "the memory is used up",
        "close other programs, or shorten export.cache_length and export.prefill_lengths; 135M parameters take 4 GB",
    ),
    _known(
        r"Invalid magic number|Failed to create (?:engine settings|LiteRT-LM engine)",
        "LiteRT-LM takes the file for no bundle: it is cut short, damaged, of another kind, or not named .litertlm",
        "`hermes-edge export --check FILE` says which; copy or export it again",
    ),
    _known(r"No module named '", "a package is missing", _OTHER_VERSION),
)

_SIGNALS = {
    signal.SIGKILL: ("it was killed from outside, mostly since the memory was used up", "close other programs"),
    signal.SIGABRT: ("it gave up by itself", "its last words may say why"),
    signal.SIGSEGV: ("it crashed", "`hermes-edge export --check FILE` may say what is odd in the bundle"),
    signal.SIGILL: ("this processor lacks an instruction that the package was built with", "use another machine"),
}


def meaning_of(error: BaseException | str) -> str | None:
    """What a converter's or a runtime's error means and what to do, in one sentence; None if it is not known."""
    words = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    for known in KNOWN:
        if known.pattern.search(words):
            return f"{known.meaning}; {known.mend}"
    return None


def with_meaning(error: BaseException | str) -> str:
    """The error's own words, and on a line of its own what they mean where that is known."""
    words = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    meaning = meaning_of(error)
    return words if meaning is None else f"{words}\n  that is: {meaning}"


def meaning_of_exit(code: int) -> str:
    """How a process ended, from its exit status as `subprocess` gives it (negative: a signal)."""
    # A shell gives 128 + the signal's number.
    number = -code if code < 0 else code - 128
    try:
        ended = signal.Signals(number)
    except ValueError:
        return f"exit status {code}"
    meaning, mend = _SIGNALS.get(ended, ("it was ended by a signal", "run it again"))
    return f"{ended.name}: {meaning}; {mend}"
