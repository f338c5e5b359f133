"""The converter in a process of its own: when it is interrupted, when it fails, when it dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import UserError
from core.recipe import ExportSettings
from export.convert import convert


@pytest.fixture
def converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a litert-torch in the place of the real one, whose `export` has the given body."""

    def put(body: str) -> None:
        package = tmp_path / "packages" / "litert_torch" / "generative" / "export_hf"
        package.mkdir(parents=True)
        for folder in (package, *package.parents[:2]):
            (folder / "__init__.py").touch()
        (package / "export.py").write_text(f"import os, time\ndef export(**_):\n    {body}\n", encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))

    return put


def converted(folder: Path) -> None:
    convert(folder, folder / "work", ExportSettings(), folder / "log")


def test_ctrl_c_stops_a_conversion_even_where_it_is_swallowed(converter, tmp_path: Path) -> None:
    waits = "while True:\n        try: time.sleep(1)\n        except KeyboardInterrupt: pass"
    converter(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n    {waits}")

    def interrupt() -> None:
        while not (tmp_path / "pid").is_file():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    # A shell's background jobs ignore Ctrl-C, and these tests may be one.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            converted(tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    process = int((tmp_path / "pid").read_text(encoding="utf-8"))
    # It was killed; who waits for it first, is all the same.
    until = time.monotonic() + 20
    with suppress(ChildProcessError):
        while not os.waitpid(process, os.WNOHANG)[0]:
            assert time.monotonic() < until, "the converter goes on"
            time.sleep(0.02)


def test_an_error_is_told_with_what_it_means_and_where_the_log_is(converter, tmp_path: Path) -> None:
    converter("print('at work'); raise RuntimeError('no attribute get_max_cache_shape')")
    with pytest.raises(UserError, match="RuntimeError: no attribute get_max_cache_shape\n  that is: .*\n.*log"):
        converted(tmp_path)
    assert "at work" in (tmp_path / "log").read_text(encoding="utf-8")


def test_a_converter_that_is_killed_says_so(converter, tmp_path: Path) -> None:
    converter("os.kill(os.getpid(), 9)")
    with pytest.raises(UserError, match="could not convert it: SIGKILL: .*memory"):
        converted(tmp_path)


def test_a_converter_that_leaves_nothing_is_refused(converter, tmp_path: Path) -> None:
    converter("pass")
    with pytest.raises(UserError, match="litert-torch left no model.tflite"):
        converted(tmp_path)


def test_a_folder_of_the_users_is_not_ours(converter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converter("raise RuntimeError('the real one')")
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "__init__.py").write_text("raise RuntimeError('another')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="the real one"):
        converted(tmp_path)
