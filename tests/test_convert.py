"""Ctrl-C during a conversion, with a converter that swallows it."""

from __future__ import annotations

import os
import signal
import sys
import time
import types
from pathlib import Path

import pytest

from core.errors import UserError
from core.recipe import ExportSettings
from export.convert import convert


class Swallows:
    """What is raised in here, Python prints and drops."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)


def fake_converter(monkeypatch: pytest.MonkeyPatch, export) -> None:
    module = types.ModuleType("litert_torch.generative.export_hf")
    module.export = types.SimpleNamespace(export=export)  # type: ignore[attr-defined]
    for name in ("litert_torch", "litert_torch.generative"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("wraps", [False, True])
def test_ctrl_c_stops_a_conversion_even_where_it_is_swallowed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wraps: bool
) -> None:
    def export(**_: object) -> None:
        Swallows()
        try:
            for _ in range(1000):
                time.sleep(0.01)
        except KeyboardInterrupt:
            if wraps:
                raise RuntimeError("the graph is not valid") from None
            raise

    fake_converter(monkeypatch, export)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path, tmp_path / "work", ExportSettings(), tmp_path / "log")
    assert time.monotonic() - started < 5
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_another_error_is_told_with_the_log_and_the_recursion_limit_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limit = sys.getrecursionlimit()

    def export(**_: object) -> None:
        sys.setrecursionlimit(100_000)
        raise RuntimeError("no such operation")

    fake_converter(monkeypatch, export)
    with pytest.raises(UserError, match="RuntimeError: no such operation\\n.*log"):
        convert(tmp_path, tmp_path / "work", ExportSettings(), tmp_path / "log")
    assert sys.getrecursionlimit() == limit
