"""The options of `hermes-edge eval`. Imports no stage, so that `--help` answers at once."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_OPTIONS = (
    click.option(
        "--model",
        "models",
        type=click.Choice(["base", "tuned", "bundle", "constrained"]),
        multiple=True,
        help="What to evaluate, which must be there; may be given again. `constrained` is the bundle where only valid "
        "calls can be written. [default: the other three, if they are there]",
    ),
    click.option(
        "--full",
        is_flag=True,
        help="Ask the whole test split, not its first evaluation.quick conversations; results go to evaluation-full.",
    ),
    click.option(
        "--cases",
        type=_FILE,
        help="A YAML list of requests with the calls they need (see eval/gallery_cases.yaml) to ask in place of the "
        "test split; results go to evaluation-cases.",
    ),
    click.option("--skills", type=_FOLDER, help="With --cases: the folder of skills to offer."),
    click.option(
        "--system",
        type=_FILE,
        help="With --cases: a file with the system text; ___SKILLS___ in it is replaced by the list of skills.",
    ),
)


@dataclass(frozen=True)
class Asked:
    """What is to be evaluated, and on what; refused if two options do not go together."""

    models: tuple[str, ...]
    full: bool
    cases: Path | None
    skills: Path | None
    system: Path | None

    def __post_init__(self) -> None:
        if self.cases is None and (self.skills or self.system):
            raise click.UsageError("--skills and --system go with --cases")
        if self.cases is not None and self.skills is None:
            raise click.UsageError("--cases needs --skills, the folder of skills that the requests are for")
        if self.cases is not None and self.full:
            raise click.UsageError("--full is about the test split; of --cases all are asked anyway")


def eval_options(command: Any) -> Any:
    """Add the options to `command`, which gets them as `asked`."""

    @functools.wraps(command)
    def with_asked(
        *,
        models: tuple[str, ...],
        full: bool,
        cases: Path | None,
        skills: Path | None,
        system: Path | None,
        **rest: Any,
    ) -> None:
        command(asked=Asked(models, full, cases, skills, system), **rest)

    for option in reversed(_OPTIONS):
        with_asked = option(with_asked)
    return with_asked
