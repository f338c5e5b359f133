"""A bundle in LiteRT-LM against llama.cpp: prefill and decode speed, and time to the first token.

    python -m benchmarks.decode --bundle FILE.litertlm --gguf FILE-Q8_0.gguf --llama FOLDER

Both sides get the same prompt, threads and number of tokens, and take turns; weights should be of as many bits on both
sides (`wi8` and Q8_0). llama.cpp comes prebuilt, with kernels for each processor, in a folder made with Node 20 by

    npm install --omit=optional --ignore-scripts node-llama-cpp@3.21.1 @node-llama-cpp/linux-x64@3.21.1

`--requantize FILE` writes the `--gguf` file first, from any GGUF file, with all matrices as Q8_0.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.paired import ratio
from core.doctor import processor
from core.errors import UserError
from data.skill_library import SKILLS_FOLDER, read_skills, system_prompt
from hermes import Conversation, Message, get_dialect, text_of
from hermes.gallery_tools import GALLERY_TOOLS
from runtime.litert_backend import LiteRTBackend

_SCRIPT = Path(__file__).with_name("llama_cpp.mjs")
_INSTALL = "npm install --omit=optional --ignore-scripts node-llama-cpp@3.21.1 @node-llama-cpp/linux-x64@3.21.1"
_REQUEST = "Count from 1 to 500."
_BEGUN = ", ".join(str(number) for number in range(1, 31)) + ","
"""The answer is begun, so that a model that is tuned for short ones goes on."""


@dataclass(frozen=True)
class Turn:
    """One reply."""

    prompt_tokens: int
    first_seconds: float
    """Time to the first token."""
    tokens: int
    """After the first one."""
    decode_seconds: float
    """Of those."""
    prefill_seconds: float


class LlamaCpp:
    """llama.cpp in a process of its own, loaded once."""

    def __init__(self, folder: Path, model: Path, threads: int, context: int) -> None:
        """Start it.

        Raises:
            UserError: something that it needs is missing; the message says how to get it.
        """
        node = shutil.which("node")
        if node is None:
            raise UserError("llama.cpp is run by Node, and there is no `node`: install Node 20 or later")
        if not (folder / "node_modules" / "node-llama-cpp").is_dir():
            raise UserError(f"{folder}: node-llama-cpp is not installed there; in that folder run\n  {_INSTALL}")
        if not model.is_file():
            raise UserError(f"{model}: no such file; make one with --requantize, from any GGUF file of the model")
        command = [node, str(_SCRIPT), str(folder), str(model), str(threads), str(context)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.system = str(self._read()["system"])
        """The instruction sets that it uses, in its own words."""

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()

    def turn(self, prompt: str, tokens: int) -> Turn:
        """A greedy reply of `tokens` tokens after the first one, fewer if it ends by itself."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"prompt": prompt, "tokens": tokens}) + "\n")
        self._process.stdin.flush()
        row = self._read()
        first = row["first_seconds"]
        return Turn(row["prompt_tokens"], first, row["tokens"], row["decode_seconds"], first)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise UserError("llama.cpp stopped; what it said stands above")
        row: dict[str, Any] = json.loads(line)
        return row


def litert_turn(backend: LiteRTBackend, prompt: str, tokens: int) -> Turn:
    """The same in LiteRT-LM, by the runtime's own measurements."""
    backend.max_new_tokens = tokens
    backend.complete_prompt(prompt)
    speed = backend.speed
    assert speed is not None
    prefill = speed.prompt_tokens / speed.prompt_tokens_per_second
    decode = speed.new_tokens / speed.new_tokens_per_second
    return Turn(speed.prompt_tokens, speed.first_token_seconds, speed.new_tokens, decode, prefill)


def phone_prompt() -> str:
    """The phone's system text, skills and tools, a request, and the beginning of an answer."""
    messages = (Message("system", system_prompt(read_skills(SKILLS_FOLDER))), Message("user", _REQUEST))
    return text_of(get_dialect("hermes").render(Conversation(messages, GALLERY_TOOLS), True)) + _BEGUN


def table(ours: list[Turn], theirs: list[Turn]) -> Iterator[str]:
    """Medians, and the paired ratio with its 95% interval; above 1 LiteRT-LM is faster."""
    yield "| | LiteRT-LM | llama.cpp | LiteRT-LM is faster by | 95% interval |"
    yield "| --- | --- | --- | --- | --- |"
    for title, seconds, count in (
        ("prefill, tokens/s", [[each.prefill_seconds for each in side] for side in (ours, theirs)], "prompt_tokens"),
        ("decode, tokens/s", [[each.decode_seconds for each in side] for side in (ours, theirs)], "tokens"),
    ):
        tokens = [[getattr(each, count) for each in side] for side in (ours, theirs)]
        spent = [
            [time / max(n, 1) for time, n in zip(*side, strict=True)] for side in zip(seconds, tokens, strict=True)
        ]
        found = ratio(spent[1], spent[0])
        medians = " | ".join(f"{1 / statistics.median(side):.1f}" for side in spent)
        yield f"| {title} | {medians} | {found.mean:.2f} | {found.low:.2f} to {found.high:.2f} |"
    first = [[each.first_seconds for each in side] for side in (ours, theirs)]
    found = ratio(first[1], first[0])
    medians = " | ".join(f"{statistics.median(side):.3f}" for side in first)
    yield f"| first token, s | {medians} | {found.mean:.2f} | {found.low:.2f} to {found.high:.2f} |"
    for title, side in (("LiteRT-LM", ours), ("llama.cpp", theirs)):
        counts = f"{side[0].prompt_tokens} of the prompt, {min(each.tokens for each in side)} at least decoded"
        yield f"\n{title}: tokens: {counts}"


def requantize(source: Path, target: Path) -> None:
    """Write the GGUF file `source` with every matrix as Q8_0, the rest as float32."""
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, quants

    q8 = GGMLQuantizationType.Q8_0
    reader = GGUFReader(source)
    writer = GGUFWriter(target, reader.get_field("general.architecture").contents())
    written = ("general.architecture", "general.file_type", "general.quantization_version")
    for each in reader.fields.values():
        if not each.name.startswith("GGUF.") and each.name not in written:
            kind = each.types[0]
            inner = each.types[-1] if kind == GGUFValueType.ARRAY else None
            writer.add_key_value(each.name, each.contents(), kind, sub_type=inner)
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(2)
    for tensor in reader.tensors:
        values = quants.dequantize(tensor.data, tensor.tensor_type)
        if values.ndim > 1 and values.shape[-1] % 32 == 0:
            writer.add_tensor(tensor.name, quants.quantize(values, q8), raw_dtype=q8)
        else:
            writer.add_tensor(tensor.name, values.astype("float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--gguf", type=Path, required=True, help="the same model as Q8_0, or one of the same size")
    parser.add_argument("--llama", type=Path, required=True, help="the folder that node-llama-cpp is installed in")
    parser.add_argument("--requantize", type=Path, help="a GGUF file to write --gguf from")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64, help="to decode")
    parser.add_argument("--turns", type=int, default=10, help="of each side, one more to warm up")
    parser.add_argument("--context", type=int, default=4096, help="llama.cpp's; the bundle has its own")
    given = parser.parse_args()
    prompt = phone_prompt()
    try:
        if given.requantize:
            requantize(given.requantize, given.gguf)
        with (
            LlamaCpp(given.llama, given.gguf, given.threads, given.context) as llama,
            LiteRTBackend(given.bundle, threads=given.threads) as backend,
        ):
            print(f"{processor()}, {given.threads} threads, {given.bundle.name} against {given.gguf.name}")
            print(f"llama.cpp: {llama.system}\n")
            ours, theirs = [], []
            for _ in range(given.turns + 1):
                ours.append(litert_turn(backend, prompt, given.tokens))
                theirs.append(llama.turn(prompt, given.tokens))
    except UserError as error:
        sys.exit(str(error))
    for line in table(ours[1:], theirs[1:]):
        print(line)


if __name__ == "__main__":
    main()
