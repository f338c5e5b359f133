"""The console script. A stage is imported only when its verb is called, so `--help` answers at once."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.errors import UserError
from eval.options import Asked, eval_options

if TYPE_CHECKING:
    from core.recipe import Recipe
    from core.stages import Run

DEFAULT_RECIPE = Path(__file__).resolve().parent / "configs" / "smollm2-135m.yaml"


_PLACE_ERRORS = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EEXIST,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ENOTEMPTY,
    errno.ENAMETOOLONG,
    errno.ELOOP,
}
"""What a folder of results that is not as it should be gives; anything else is a fault of this program."""

_AFTER_CTRL_C = {
    "data": "The same command starts anew.",
    "train": "The same command goes on from the last checkpoint; an earlier result is kept.",
    "export": "The same command starts anew; an earlier bundle is kept. A sweep goes on where it stopped.",
    "eval": "The same command goes on from the replies so far.",
}


class _Commands(click.Group):
    """Prints what a user can mend as one message, and lists verbs in the order of the pipeline."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            from core.console import printable

            # A runtime's error may hold what a model wrote.
            raise click.ClickException(printable(str(error))) from None
        except KeyboardInterrupt:
            click.echo(f"\nInterrupted. {_AFTER_CTRL_C.get(ctx.invoked_subcommand or '', '')}".rstrip(), err=True)
            ctx.exit(130)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] in {
                "cli",
                "core",
                "data",
                "eval",
                "export",
                "hermes",
                "runtime",
                "training",
            }:
                raise
            raise click.ClickException(f"the package {error.name!r} is missing; run `make setup`") from None
        except Exception as error:
            words = _about_disk(error)
            if words is None:
                raise
            raise click.ClickException(words) from None


def _about_disk(error: Exception) -> str | None:
    """What to tell a user whose disk is full or whose folder is not as it should be; None for any other error."""
    # Some libraries wrap the operating system's error in one of their own; its words remain.
    if any(words in str(error) for words in ("No space left on device", "os error 28")):
        return f"no space left on the disk; a run needs about 4 GB: {error}"
    if isinstance(error, OSError) and error.filename is not None and error.errno in _PLACE_ERRORS:
        return f"{error.filename}: {error.strerror}; mend that place, or name another one with --runs"
    return None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hermes-edge")
def main() -> None:
    """From your tools to a small model on a phone that calls them.

    \b
    The pipeline, in order (`make` runs all of it):
      hermes-edge data      conversations to learn from and to be measured on (data show prints them)
      hermes-edge train     a LoRA adapter, merged into the model
      hermes-edge export    one .litertlm bundle for LiteRT-LM and AI Edge Gallery
      hermes-edge eval      base, tuned model and bundle on held-out conversations; the report
      hermes-edge run FILE  talk to a bundle
      hermes-edge doctor    what is installed, and what this machine has

    Every stage skips what is up to date and goes on where an interrupted run stopped. Results are in
    runs/NAME, where NAME is the recipe's.
    """


def _recipe_options(command: Any) -> Any:
    options = (
        click.option(
            "--recipe",
            "recipe_path",
            type=click.Path(path_type=Path),
            default=DEFAULT_RECIPE,
            help="The recipe, a YAML file. [default: configs/smollm2-135m.yaml]",
        ),
        click.option(
            "--set",
            "overrides",
            metavar="KEY=VALUE",
            multiple=True,
            help="Override one key of the recipe, e.g. --set training.rank=8. May be given again.",
        ),
        click.option(
            "--runs",
            "runs_folder",
            type=click.Path(path_type=Path, file_okay=False),
            default=Path("runs"),
            show_default=True,
            help="Where results go.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _load(recipe_path: Path, overrides: tuple[str, ...], runs_folder: Path) -> tuple[Recipe, Run]:
    from core.recipe import load_recipe
    from core.stages import Run

    pairs: dict[str, str] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--set {text}: must be KEY=VALUE")
        pairs[key] = value
    recipe = load_recipe(recipe_path, pairs)
    return recipe, Run(runs_folder / recipe.name)


@main.group(invoke_without_command=True)
@_recipe_options
@click.pass_context
def data(ctx: click.Context, recipe_path: Path, overrides: tuple[str, ...], runs_folder: Path) -> None:
    """Build the conversations: train, validation and test, disjoint in phrasings and values."""
    if ctx.invoked_subcommand is not None:
        ctx.obj = (recipe_path, overrides, runs_folder)
        return
    recipe, run = _load(recipe_path, overrides, runs_folder)
    from data.stage import build_data

    with run.locked():
        build_data(recipe, run)


@data.command("show")
@click.option("--split", type=click.Choice(["train", "validation", "test"]), default="train", show_default=True)
@click.option("--count", type=click.IntRange(min=1), default=3, show_default=True, help="How many conversations.")
@click.option("--id", "identity", help="Only the conversation with this id.")
@click.pass_obj
def data_show(given: tuple[Path, tuple[str, ...], Path], split: str, count: int, identity: str | None) -> None:
    """Print conversations as the model sees them, with what is trained in colour (between ⟦ ⟧ in a pipe).

    The recipe's options stand before `show`: hermes-edge data --recipe configs/mine.yaml show
    """
    recipe, run = _load(*given)
    from data.show import show

    show(recipe, run, split, count, identity)


@main.command()
@_recipe_options
def train(recipe_path: Path, overrides: tuple[str, ...], runs_folder: Path) -> None:
    """Tune the model with LoRA and merge the adapter. Interrupted? The same command goes on."""
    recipe, run = _load(recipe_path, overrides, runs_folder)
    from training.stage import train as train_stage

    with run.locked():
        train_stage(recipe, run)


@main.command()
@_recipe_options
@click.option(
    "--sweep", is_flag=True, help="Compare sizes (the recipe's export.sweep) instead; write a table and a plot."
)
@click.option(
    "--gguf",
    type=click.Choice(["f32", "f16", "bf16", "q8_0"]),
    help="Write the model for llama.cpp instead, with weights of this kind.",
)
@click.option(
    "--gguf-converter",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder with llama.cpp's convert_hf_to_gguf.py, such as a checkout of it. [default: what `make gguf` made]",
)
@click.option("--hub", is_flag=True, help="Write a folder for a model hub instead, from a finished export.")
@click.option(
    "--check",
    "checked",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Export nothing: say whether this .litertlm, made here or not, is fit for AI Edge Gallery.",
)
@click.pass_context
def export(
    ctx: click.Context,
    recipe_path: Path,
    overrides: tuple[str, ...],
    runs_folder: Path,
    sweep: bool,
    gguf: str | None,
    gguf_converter: Path | None,
    hub: bool,
    checked: Path | None,
) -> None:
    """Write the .litertlm bundle, check it in LiteRT-LM, and write its card."""
    if sum((sweep, gguf is not None, hub, checked is not None)) > 1:
        raise click.UsageError("--sweep, --gguf, --hub and --check are asked for one at a time")
    if gguf_converter is not None and gguf is None:
        raise click.UsageError("--gguf-converter belongs to --gguf")
    if checked is not None:
        from export.check import check

        ctx.exit(0 if check(checked) else 1)
    recipe, run = _load(recipe_path, overrides, runs_folder)
    with run.locked():
        if sweep:
            from export.sweep import sweep as compare

            compare(recipe, run)
        elif gguf is not None:
            from export.gguf import CONVERTER, export_gguf

            export_gguf(recipe, run, gguf, gguf_converter or CONVERTER)
        elif hub:
            from export.hub import export_hub

            export_hub(recipe, run)
        else:
            from export.stage import export as export_stage

            export_stage(recipe, run)


@main.command("eval")
@_recipe_options
@eval_options
def evaluate(recipe_path: Path, overrides: tuple[str, ...], runs_folder: Path, asked: Asked) -> None:
    """Measure tool calling on the test split, or on cases of your own, and write the report."""
    recipe, run = _load(recipe_path, overrides, runs_folder)
    from eval.stage import evaluate_cases, evaluate_models

    with run.locked():
        if asked.cases and asked.skills:
            evaluate_cases(recipe, run, asked.models, asked.cases, asked.skills, asked.system)
        else:
            evaluate_models(recipe, run, asked.models, full=asked.full)
            from export.card import renew_card

            renew_card(recipe, run)


@main.command()
@_recipe_options
@click.option(
    "--python",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    required=True,
    help="The interpreter of an environment with the other litert-lm-api.",
)
def compat(recipe_path: Path, overrides: tuple[str, ...], runs_folder: Path, python: Path) -> None:
    """Check the bundle in another version of LiteRT-LM, such as the phone app's (`make compat`)."""
    recipe, run = _load(recipe_path, overrides, runs_folder)
    from export.compat import check_compat

    check_compat(recipe, run, python)


@main.command()
@click.argument("bundle", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--prompt", metavar="TEXT", help="Ask once, print the answer and its calls, and leave.")
@click.option(
    "--tools",
    "tools_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A JSON list of tools to offer. [default: the four that AI Edge Gallery declares]",
)
@click.option(
    "--skills",
    "skills_folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder of skills, each a folder with a SKILL.md. [default: those that ship]",
)
@click.option(
    "--system",
    "system_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file with the system text; ___SKILLS___ in it is replaced by the list of skills.",
)
@click.option(
    "--max-new-tokens", type=click.IntRange(min=1), default=512, show_default=True, help="Limit of one reply."
)
@click.option("--constrained", is_flag=True, help="Let only valid calls of these tools be written; text stays free.")
def run(
    bundle: Path,
    prompt: str | None,
    tools_file: Path | None,
    skills_folder: Path | None,
    system_file: Path | None,
    max_new_tokens: int,
    constrained: bool,
) -> None:
    """Talk to a .litertlm bundle in LiteRT-LM: calls are shown as they are parsed.

    Skills are loaded by themselves; for any other call you type the result.
    """
    from core.user_files import read_system, read_tools
    from data.skill_library import SKILLS_FOLDER, read_skills, system_prompt
    from hermes.gallery_tools import GALLERY_TOOLS
    from runtime.chat import ask, chat

    skills = read_skills(skills_folder or SKILLS_FOLDER)
    tools = read_tools(tools_file) if tools_file else GALLERY_TOOLS
    system = read_system(system_file, skills) if system_file else system_prompt(skills)
    by_name = {skill.name: skill for skill in skills}
    if prompt is None:
        chat(bundle, tools, system, by_name, max_new_tokens=max_new_tokens, constrained=constrained)
    else:
        ask(bundle, prompt, tools, system, by_name, max_new_tokens=max_new_tokens, constrained=constrained)


@main.command()
@click.option("--export", "with_export", is_flag=True, help="Export a tiny model too, and check it (about 20 s).")
@click.pass_context
def doctor(ctx: click.Context, with_export: bool) -> None:
    """Print what is installed, what works together, and what this machine has."""
    from core.doctor import report

    for line in report():
        click.echo(line)
    if with_export:
        from export.trial import trial

        lines = list(trial())
        click.echo("\n".join(lines))
        ctx.exit(1 if any(line.startswith("!") for line in lines) else 0)


if __name__ == "__main__":
    sys.exit(main())
