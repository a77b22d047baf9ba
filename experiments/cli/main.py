"""The command line `factormodels`: a thin layer of commands over the packages.

Every error that is written for the user ends as one line on standard error and exit code 2, a limit
on calls or costs that is reached with exit code 3; an interrupt ends with exit code 130, and the
system's wish that a command which keeps answers should end with 143.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli import help_text
from experiments.cli.commands import assess, diff, fit, report, run
from experiments.cli.console import say, spell_what_has_no_form, warnings_on_stderr
from experiments.evaluators.threads import AT_WORK
from factormodels.errors import FactormodelsError, LimitReachedError
from factormodels.io.guarded_opening import MOST_HELD, parse_size, size_limit, size_text

if TYPE_CHECKING:
    from experiments.findings.findings import Findings

_COLLECTIONS = (50_000, 20, 100)
"""How many more objects there are before young ones are looked through for circles; how many times
that is done before older ones are; and how many times again before all are."""

_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS)

USAGE_ERROR = 2
LIMIT_REACHED = 3
INTERRUPTED = 130
TERMINATED = 143


class _Commands(help_text.Group):
    """The group of commands, which turns the project's errors into a sentence and a code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings_on_stderr():
                return super().invoke(ctx)
        except LimitReachedError as error:
            typer.echo(f"factormodels: {error}", err=True)
            raise typer.Exit(LIMIT_REACHED) from None
        except FactormodelsError as error:
            say(f"factormodels: {' '.join(str(error).split())}")
            raise typer.Exit(USAGE_ERROR) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
            # Without a name it is the terminal, or what stands in its place.
            where = error.filename or "the output"
            written = error.errno in _NO_ROOM or not error.filename
            how = "written" if written else "read or written"
            say(f"factormodels: {where} cannot be {how} ({reason})")
            raise typer.Exit(USAGE_ERROR) from None
        except MemoryError:
            say(
                "factormodels: it needs more memory than there is; give smaller data or settings, "
                "or another --backend"
            )
            raise typer.Exit(USAGE_ERROR) from None
        except KeyboardInterrupt:
            say("factormodels: interrupted")
            raise typer.Exit(INTERRUPTED) from None


class _Command(help_text.Command):
    """A command that ends in order when the system asks it to, if it keeps answers in a file."""

    def invoke(self, ctx: Any) -> Any:
        keeps_answers = "cache" in ctx.params or ctx.allow_extra_args
        if not keeps_answers or threading.current_thread() is not threading.main_thread():
            return super().invoke(ctx)
        before = signal.signal(signal.SIGTERM, _terminated)
        try:
            return super().invoke(ctx)
        finally:
            signal.signal(signal.SIGTERM, before)


def _terminated(*_: object) -> None:
    raise SystemExit(TERMINATED)


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
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    max_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            envvar="FACTORMODELS_MAX_SIZE",
            help="Largest size of a file, unpacked; 16 times as much if it is read line by line.",
        ),
    ] = size_text(MOST_HELD),
) -> None:
    """Judge the claims of a text with factor graphs, and measure how good the judgement is.

    A language model's response is split into atoms (claims); contexts (passages of evidence)
    entail or contradict them. Inference over this factor graph gives each claim a probability
    of being true; calibration compares these probabilities with human labels.

      passages                                 claims               P(true)

      Biographical dictionary  ---supports-->  Born in Warsaw.         1.00
      Letters from Stockholm   ---denies---->  Her second Nobel        0.02
                                               Prize was in physics.

    [b]First steps[/b]

      factormodels datasets                   the data that come with it
      factormodels infer demonstration --response demo-01-marie-curie
      factormodels explore demonstration      change a graph and watch the answer
      factormodels run compare                compare the algorithms

    [b]If you have[/b]

      a text            factormodels assess answer.txt --documents notes
      a table of p      factormodels score table.csv
      a graph           factormodels infer graph.json
      a question        factormodels run study.yaml

      factormodels COMMAND --help             each command, with examples

    [b]Exit codes[/b]

      0     done
      1     something is missing: assess, datasets, fastfact, run, self-knowledge
      2     refused, with the reason
      3     a limit on calls or costs is reached; the same command goes on
      130   interrupted
      143   stopped by the system (SIGTERM); --cache keeps the answers so far
    """
    context.with_resource(size_limit(parse_size(max_size)))


_COMMANDS = (assess, run, report, fit, diff)

for _command in _COMMANDS:
    # The module's name is the command's.
    app.command(_command.__name__.rpartition(".")[2].replace("_", "-"), cls=_Command)(
        _command.command
    )

FRONT_DOOR = (
    *("align", "convert", "datasets", "draw", "explore", "fastfact", "infer", "list", "score"),
    *("select", "self-knowledge"),
)
"""Commands that are functions of the front door, by name."""


def function_named(name: str) -> Callable[..., Findings]:
    """The function of the front door whose command has a name."""
    attribute = name.replace("-", "_")
    door = import_module("experiments")
    # Where Python has the name already, the function's ends in an underscore.
    function: Callable[..., Findings] = getattr(
        door, attribute if attribute in door.__all__ else f"{attribute}_"
    )
    return function


def _forwarded(name: str) -> None:
    """Add the command of a function of the front door, which reads its own arguments."""

    def forward(context: typer.Context) -> None:
        from experiments.cli.front import run_command

        code = run_command(function_named(name), context.args)
        if code:
            raise typer.Exit(code)

    everything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(name, cls=_Command, context_settings=everything)(forward)


for _name in FRONT_DOOR:
    _forwarded(_name)


def main() -> None:
    """Run the command line and exit with its code."""
    # A short process that makes many small objects and few circles of them: at Python's own
    # threshold, looking for circles takes an eighth of a small study's time.
    gc.set_threshold(*_COLLECTIONS)
    spell_what_has_no_form()
    try:
        app(prog_name="factormodels")
    except SystemExit as end:
        _end_beside_threads(end.code)
        raise
    finally:
        _flush_quietly()
        # The process ends: circles of objects need not be looked for first, among the hundreds of
        # thousands that libraries have made. That would take seconds.
        gc.freeze()


def _end_beside_threads(code: str | int | None) -> None:
    """End the process at once if responses are still worked on that nobody waits for.

    After an interrupt such a thread may be amid an import. It stops where it is when the
    interpreter takes itself apart, and whatever imports then, as litellm does, waits for it for
    ever. What is to be done at exit is done before.
    """
    if not any(thread.name == AT_WORK for thread in threading.enumerate()):
        return
    atexit._run_exitfuncs()
    _flush_quietly()
    os._exit(1 if isinstance(code, str) else code or 0)


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
