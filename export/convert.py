"""From a merged model to a quantised graph, by litert-torch."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from core.errors import UserError
from core.failures import meaning_of_exit, with_meaning
from core.process import run_module
from core.recipe import ExportSettings, Quantization
from export.converter import FAILURE
from export.quantise import QuantizationRefusedError, quantise


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
    """The first half of `convert`: the float32 graph, from which every quantisation is made.

    The same model, settings and versions give the same bytes, whatever this process did before.
    """
    work.mkdir(parents=True, exist_ok=True)
    chosen = json.dumps({"prefill_lengths": settings.prefill_lengths, "cache_length": settings.cache_length})
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        done = run_module("export.converter", model, work, chosen, stdout=file, stderr=file)
    if done.returncode:
        told = work / FAILURE
        reason = told.read_text(encoding="utf-8") if told.is_file() else meaning_of_exit(done.returncode)
        raise UserError(f"{model}: litert-torch could not convert it: {with_meaning(reason)}\n  its log: {log}")
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
        with output_to(log):
            quantise(converted.graph, target, quantization)
    except UserError:
        raise
    except (OSError, MemoryError) as error:
        raise UserError(f"{target}: cannot be written: {error}") from error
    except Exception as error:
        raise QuantizationRefusedError(
            f"export.quantization: {quantization}: the quantizer refuses this model: {with_meaning(error)}\n"
            f"  choose wi8 or float32; its log: {log}"
        ) from error
    return replace(converted, graph=target)


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
