"""The command line `factormodels`: a thin layer of commands over the packages.

Every error that is written for the user ends as one line on standard error and exit code 2; an
interrupt ends with exit code 130.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Annotated, Any

import typer

from experiments.cli.commands import (
    assess,
    backends,
    bench,
    convert,
    costs,
    datasets,
    diff,
    draw,
    fit,
    help_text,
    infer,
    positions,
    references,
    report,
    robustness,
    run,
    schema,
    select,
)
from experiments.cli.console import warnings_on_stderr
from factormodels.errors import FactormodelsError

_OBJECTS_BEFORE_COLLECTION = 50_000

USAGE_ERROR = 2
INTERRUPTED = 130


class _Commands(help_text.Group):
    """The group of commands, which turns the project's errors into a sentence and a code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings_on_stderr():
                return super().invoke(ctx)
        except FactormodelsError as error:
            typer.echo(f"factormodels: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(USAGE_ERROR) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            where = error.filename or "the output"
            typer.echo(f"factormodels: {where} cannot be written ({error.strerror})", err=True)
            raise typer.Exit(USAGE_ERROR) from None
        except KeyboardInterrupt:
            typer.echo("factormodels: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=_Commands,
    name="factormodels",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from experiments.results.manifest import code_version

        typer.echo(f"factormodels {code_version()}")
        raise typer.Exit


@app.callback()
def _factormodels(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Judge the claims of a text with factor graphs, and measure how good the judgement is.

    A response of a language model is taken apart into atoms (claims); contexts (passages of
    evidence) entail or contradict them. Inference over the factor graph gives each claim a
    probability of being true; calibration compares these with human labels.

    [b]First steps[/b]

      factormodels datasets                   what is on board
      factormodels run compare                a comparison: tables and a plot
      factormodels infer graph.json           the posterior of one graph
      factormodels infer graph.json --backend lbp --set damping=0.5 --json
      factormodels assess answer.txt --documents notes   from text on
      factormodels COMMAND --help             each command, with examples
    """


_COMMANDS = (
    *(infer, assess, run, report, fit, diff, positions, select, robustness, costs),
    *(draw, convert, backends, schema, bench, references),
)

for _command in _COMMANDS:
    # The module's name is the command's.
    app.command(_command.__name__.rpartition(".")[2], cls=help_text.Command)(_command.command)
app.add_typer(datasets.app, name="datasets")


def main() -> None:
    """Run the command line and exit with its code."""
    # A short process that makes many small objects and few circles of them: at Python's own
    # threshold, looking for circles takes an eighth of a small study's time.
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    try:
        app(prog_name="factormodels")
    finally:
        _flush_quietly()


def _flush_quietly() -> None:
    """Flush the output; a reader that has gone away (`| head`) is told nothing more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # Python flushes once more at exit; into /dev/null that no longer fails.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    main()
