"""Versions: which of them work together, and which are installed.

There is one source each: the ranges of `pyproject.toml` are what is tested, `constraints.txt` is one tried set.
"""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from core.errors import UserError
from core.stages import PROJECT

if TYPE_CHECKING:
    from packaging.requirements import Requirement

EXPORT = (
    "torch",
    "transformers",
    "litert-torch",
    "litert-converter",
    "ai-edge-quantizer",
    "ai-edge-litert",
    "litert-lm-builder",
    "litert-lm-api",
)
"""What an export passes through, in that order."""


@cache
def version_ranges() -> dict[str, Requirement]:
    """Package → requirement, from the dependencies and extras of `pyproject.toml`; empty where that file is not."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    path = PROJECT / "pyproject.toml"
    if not path.is_file():
        return {}
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    return {canonicalize_name(requirement.name): requirement for requirement in map(Requirement, lines)}


def tried_versions() -> dict[str, str]:
    """Package → version from `constraints.txt`."""
    path = PROJECT / "constraints.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    pairs = (line.partition("==") for line in lines if "==" in line and not line.startswith("#"))
    return {name.strip(): version.strip() for name, _, version in pairs}


def installed_version(package: str) -> str | None:
    """The version that is installed, None without one."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def version_problem(package: str) -> str | None:
    """What is wrong with the installed version of `package`, with the tested range; None if nothing is."""
    requirement = version_ranges().get(package)
    version = installed_version(package)
    tried = tried_versions().get(package)
    words = f"tested: {requirement.specifier}" if requirement is not None and requirement.specifier else "tested: any"
    if tried:
        words += f", tried: {tried}"
    if version is None:
        return f"{package} is missing ({words})"
    if requirement is not None and not requirement.specifier.contains(version, prereleases=True):
        return f"{package} {version} ({words})"
    return None


def need_versions(packages: Iterable[str], what: str) -> None:
    """Refuse versions that nobody tested, before anything is computed with them.

    Args:
        packages: names, such as `EXPORT`.
        what: what they are needed for, to begin the message with.

    Raises:
        UserError: a package is missing or outside its tested range; all of them are listed.
    """
    problems = [problem for problem in map(version_problem, packages) if problem is not None]
    if problems:
        raise UserError(
            "\n  ".join([f"{what}: these versions are not known to work together:", *problems])
            + "\n  `make setup` in a fresh checkout (or after `make distclean`) installs the tried ones"
        )
