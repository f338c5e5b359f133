"""From a merged model to a quantised graph, by litert-torch."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from core.errors import UserError
from core.failures import with_meaning
from core.recipe import ExportSettings, Quantization
from export.quantise import quantise


@dataclass(frozen=True)
class ConvertedModel:
    """What a bundle is packed from."""

    graph: Path
    """The `.tflite` with a decode signature and a prefill signature a length."""
    executor_metadata: Path
    """Names and shapes of the cache, as litert-torch describes them to the runtime."""


def convert(model: Path, work: Path, settings: ExportSettings, log: Path) -> ConvertedModel:
    """Convert the model folder `model`, and quantise it; the converter's own chatter goes to `log`.

    Raises:
        UserError: litert-torch failed; the message holds its reason and where the log lies.
    """
    return quantised(convert_float(model, work, settings, log), settings.quantization, work, log)


def convert_float(model: Path, work: Path, settings: ExportSettings, log: Path) -> ConvertedModel:
    """The first half of `convert`: the float32 graph, from which every quantisation is made."""
    work.mkdir(parents=True, exist_ok=True)
    # The template and the type come from our own metadata; the bundle that litert-torch packs is not used.
    try:
        with output_to(log), _recursion_limit_kept(), _stopped_by_ctrl_c():
            from litert_torch.generative.export_hf import export

            export.export(
                model=str(model),
                output_dir=str(work),
                keep_temporary_files=True,
                prefill_lengths=list(settings.prefill_lengths),
                cache_length=settings.cache_length,
                # Quantising its float32 graph gives the bytes that it would give; None would mean its default, 8 bits.
                quantization_recipe="none",
                bundle_litert_lm=True,
                use_jinja_template=True,
            )
    except Exception as error:
        raise UserError(
            f"{model}: litert-torch could not convert it: {with_meaning(error)}\n  its log: {log}"
        ) from error
    graph = work / "model.tflite"
    if not graph.is_file():
        raise UserError(f"{work}: litert-torch left no {graph.name} there; its log: {log}")
    return ConvertedModel(graph, work / "executor_metadata.pb")


def quantised(converted: ConvertedModel, quantization: Quantization, work: Path, log: Path) -> ConvertedModel:
    """The second half of `convert`: another graph of the float32 one, in the folder `work`.

    Raises:
        UserError: the model's layers cannot be stored in this way.
    """
    if quantization == "float32":
        return converted
    target = work / f"{quantization}-quantized.tflite"
    try:
        with output_to(log), _stopped_by_ctrl_c():
            quantise(converted.graph, target, quantization)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"export.quantization: {quantization}: the quantizer refuses this model: {with_meaning(error)}\n"
            f"  choose wi8 or float32; its log: {log}"
        ) from error
    return replace(converted, graph=target)


_CONVERTER_RECURSION = 100_000


@contextmanager
def _recursion_limit_kept() -> Iterator[None]:
    """Undo what the converter does to the whole process: under its limit, endless recursion crashes Python.

    The converter sets its limit only once, when it is imported.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _CONVERTER_RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


_ASK_AGAIN = 0.25
"""Seconds until Ctrl-C is raised once more."""


@contextmanager
def _stopped_by_ctrl_c() -> Iterator[None]:
    """Within the block, Ctrl-C always ends in a KeyboardInterrupt.

    Python drops an exception that is raised in a callback of its garbage collector, and JAX has one that runs
    often; others are caught by C++ code on the way. So it is raised again until the block is left.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    happened: list[int] = []
    leaving = (__file__, contextlib.__file__)

    def handler(number: int, frame: FrameType | None) -> None:
        happened.append(number)
        signal.setitimer(signal.ITIMER_REAL, _ASK_AGAIN)
        # On its way out the block must not be cut short; what happened is raised at its end.
        if frame is None or frame.f_code.co_filename not in leaving:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGALRM)}
    try:
        yield
    except Exception:
        if not happened:
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, action in before.items():
            signal.signal(number, action)
    if happened:
        raise KeyboardInterrupt


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Send everything that this process prints to `log`, C++ libraries included."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
            for descriptor in saved:
                os.close(descriptor)
