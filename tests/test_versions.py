"""Versions that do not fit are refused first, and failures say what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from cli import main
from core.doctor import report
from core.errors import UserError
from core.failures import KNOWN, meaning_of, meaning_of_exit, with_meaning
from core.requirements import EXPORT, need_versions, tried_versions, version_problem, version_ranges
from export.trial import export_tiny


def pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str, version: str) -> None:
    """Another version of a package, as an installer would have recorded it."""
    record = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    record.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    (record / "METADATA").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))


def test_what_is_installed_here_fits() -> None:
    need_versions(EXPORT, "export")
    assert all(package in version_ranges() and package in tried_versions() for package in EXPORT)
    for package in EXPORT:
        assert version_ranges()[package].specifier.contains(tried_versions()[package])


def test_a_build_of_the_tried_version_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path, monkeypatch, "torch", "2.13.0+cu130")
    assert version_problem("torch") is None


def test_versions_are_looked_at_before_anything_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C97."""
    pretend(tmp_path / "torch", monkeypatch, "torch", "1.0.0")
    pretend(tmp_path / "converter", monkeypatch, "litert-torch", "0.10.0")
    with pytest.raises(UserError) as caught:
        export_tiny(tmp_path / "work")
    message = str(caught.value)
    assert "torch 1.0.0 (tested: <2.14,>=2.13, tried: 2.13.0)" in message
    assert "litert-torch 0.10.0 (tested: ==0.9.4, tried: 0.9.4)" in message
    assert "make setup" in message
    assert not (tmp_path / "work").exists()
    assert "! torch 1.0.0 (tested: <2.14,>=2.13, tried: 2.13.0); run `make setup`" in list(report())
    done = CliRunner().invoke(main, ["doctor", "--export"])
    assert done.exit_code == 1
    assert "! export: export: these versions" in done.output


def test_a_missing_package_is_a_problem_too() -> None:
    with pytest.raises(UserError, match=r"no-such-package is missing \(tested: any\)"):
        need_versions(["no-such-package"], "export")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("No module named 'tensorflow.lite'", "install litert-torch 0.9.4"),
        ("'LiteRTLMCache' object has no attribute 'get_max_cache_shape'", "install transformers 5.16"),
        ("libvulkan.so.1: cannot open shared object file: No such file or directory", "apt-get install libvulkan1"),
        ("model type `x` but Transformers does not recognize this architecture", "choose a Llama"),
        ("INVALID_ARGUMENT: Unsupported model type", "llm_model_type"),
        ("Failed to commit token 3: forced bytes: got ' '; applying 'Ä'", "regex('byte_level')"),
        ("Sampler type: 3 not implemented yet.", "top-p and k = 1"),
        ("tried to use + operator on unsupported types string and sequence", "a list of parts"),
        ("std::bad_alloc", "the memory is used up"),
        ("Invalid magic number: b'PK'", "cut short"),
    ],
)
def test_known_failures_say_what_they_mean_and_what_to_do(message: str, expected: str) -> None:
    meaning = meaning_of(RuntimeError(message))
    assert meaning is not None
    assert expected in meaning
    assert with_meaning(message) == f"{message}\n  that is: {meaning_of(message)}"


def test_other_failures_stay_as_they_are() -> None:
    assert meaning_of("something else") is None
    assert with_meaning(ValueError("something else")) == "ValueError: something else"
    assert all(known.meaning and known.mend for known in KNOWN)
    assert meaning_of(MemoryError()) is not None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (-9, "SIGKILL: it was killed"),
        (137, "SIGKILL: it was killed"),
        (-11, "SIGSEGV: it crashed"),
        (3, "exit status 3"),
    ],
)
def test_how_a_process_ended(code: int, expected: str) -> None:
    assert meaning_of_exit(code).startswith(expected)
