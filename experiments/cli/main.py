"""The command line `factormodels`: its commands are the functions of the front door.

Errors for the user are printed as one line on standard error, with exit code 2; reaching a limit on
calls or costs has exit code 3, an interrupt 130, and termination by the system (SIGTERM) 143.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Group, Parameter
from rich.console import Console

import factormodels
from experiments.cli.console import (
    LIMIT_REACHED,
    open_standard_streams,
    say,
    spell_what_has_no_form,
    warnings_on_stderr,
)
from experiments.cli.front import command_of, run_command, seeing_help
from experiments.cli.help import show_panel, unwrapped
from experiments.evaluators.batches.threads import AT_WORK
from factormodels.errors import FactormodelsError, InputError, LimitReachedError, unknown_name
from factormodels.io.source.opening import (
    MOST_HELD,
    parse_size,
    size_limit,
    size_text,
    system_advice,
)

if TYPE_CHECKING:
    from experiments.findings.findings import Findings

_COLLECTIONS = (50_000, 20, 100)
"""Thresholds of Python's garbage collection by generation: new objects before the youngest is
collected, and collections of each generation before the next.
"""

_SEND_AGAIN_AFTER = 0.02
"""Seconds until a lost signal is sent again, long enough for the callback that lost it to end."""

_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS)

READER_GONE = 1
USAGE_ERROR = 2
INTERRUPTED = 130
TERMINATED = 143

COMMANDS = (
    *("infer", "assess", "fastfact", "probe", "self-knowledge", "score", "fit", "apply"),
    *("estimate", "keep", "select", "draw", "explore", "coherence", "omissions", "revise", "run"),
    *("report", "diff", "datasets", "convert", "list"),
)
"""Names of the commands in the order of the help, each a function of the front door."""
BRIEF = """Compute the probability that each claim of a text is true, and validate it.

If you have

  a text            factormodels assess answer.txt --documents notes
  probabilities     factormodels score table.csv
  a graph           factormodels infer graph.json
  a study           factormodels run study.yaml
  nothing yet       factormodels explore demonstration

  factormodels COMMAND --help             a command, with examples
  factormodels --help-all                 the idea, first steps, exit codes
"""

HELP = f"""{BRIEF}
A language model's response is split into atoms (claims); contexts (passages of evidence) entail or
contradict them. Inference over this factor graph gives each claim a probability of being true;
calibration compares these probabilities with human labels.

  passages                                 claims               P(true)

  Biographical dictionary  ---supports-->  Born in Warsaw.         1.00
  Letters from Stockholm   ---denies---->  Her second Nobel        0.02
                                           Prize was in physics.

First steps

  factormodels datasets                   the embedded datasets
  factormodels infer demonstration --response demo-01-marie-curie
  factormodels explore demonstration      edit a graph, see the probabilities
  factormodels run compare                compare the algorithms

Options

  --backend lbp --damping 0.5             a backend, and a setting of it
  --config paper.yaml                     options from a file (YAML)
  --max-size 1GB, before the command      largest unpacked size of a file; 16
                                          times that if it is read line by line;
                                          each value counts at least 16 bytes;
                                          or set FACTORMODELS_MAX_SIZE

Exit codes

  0     done
  1     some results are missing: assess, coherence, datasets, fastfact,
        omissions, probe, revise, run, self-knowledge
  2     refused, with the reason
  3     a limit on calls or costs is reached; repeat the command to continue
  130   interrupted
  143   stopped by the system (SIGTERM); --cache keeps the answers so far

  A command that queries models or searches exits with 1 if every call of a
  stage failed; assess and probe also if the model's answers are not evidence.
"""


def function_named(name: str) -> Callable[..., Findings]:
    """The function of the front door whose command has a name."""
    attribute = name.replace("-", "_")
    modules = import_module("experiments").MODULES
    # If Python already uses the name, the function's ends in an underscore.
    attribute = attribute if attribute in modules else f"{attribute}_"
    function: Callable[..., Findings] = getattr(import_module(modules[attribute]), attribute)
    return function


def command_line(arguments: Sequence[str]) -> int:
    """Run a command, report errors, and return the exit code.

    Args:
        arguments: global options, the name of a command, and its arguments.
    """
    try:
        with warnings_on_stderr(), _stopped_in_order():
            return _called(list(arguments))
    except LimitReachedError as error:
        say(f"factormodels: {error}")
        return LIMIT_REACHED
    except FactormodelsError as error:
        say(f"factormodels: {' '.join(str(error).split())}")
        return USAGE_ERROR
    except BrokenPipeError:
        return READER_GONE
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
        # A stream without a name is the terminal or a replacement.
        where = error.filename or "the output"
        written = error.errno in _NO_ROOM or not error.filename
        how = "written" if written else "read or written"
        mend = system_advice(error, "") if error.filename else ""
        say(f"factormodels: {where} cannot be {how} ({reason}){mend and f'; {mend}'}")
        return USAGE_ERROR
    except MemoryError:
        say("factormodels: not enough memory; use smaller data or settings, or another --backend")
        return USAGE_ERROR
    except KeyboardInterrupt as stopped:
        say(_with_notes("factormodels: interrupted", stopped))
        return INTERRUPTED
    except SystemExit as end:
        if end.code != TERMINATED:
            raise
        say(_with_notes("factormodels: stopped by the system (SIGTERM)", end))
        return TERMINATED


def _with_notes(text: str, stopped: BaseException) -> str:
    """Append the kept results and the way to continue to a text."""
    return "; ".join((text, *getattr(stopped, "__notes__", ())))


def _called(arguments: list[str]) -> int:
    size = os.environ.get("FACTORMODELS_MAX_SIZE") or size_text(MOST_HELD)
    while arguments and arguments[0].startswith("-"):
        option, _, value = arguments.pop(0).partition("=")
        if option == "--version":
            sys.stdout.write(f"factormodels {factormodels.__version__}\n")
            return 0
        if option in ("--help", "-h", "--help-all", "--install-completion"):
            asked = option.removesuffix("-all")
            _whole(every=option != "--help")([asked], result_action="return_value")
            return 0
        if option != "--max-size":
            raise InputError(f"there is no option {option} (see factormodels --help)")
        if not value and not arguments:
            raise InputError("--max-size: give a size, such as 1GB")
        size = value or arguments.pop(0)
    if not arguments:
        _whole(every=False)(["--help"], result_action="return_value")
        return 0
    name, *rest = arguments
    with size_limit(parse_size(size)):
        if name not in COMMANDS:
            subject = f"the command {name!r}"
            unknown = unknown_name(subject, name, COMMANDS, "name a command")
            raise InputError(seeing_help(unknown, "factormodels"))
        return run_command(function_named(name), rest)


def _whole(*, every: bool) -> App:
    """The app of all commands, for the overall help and shell completion.

    Args:
        every: True for the complete help; False for a help that fits a screen.
    """

    def options(
        *,
        version: Annotated[
            bool, Parameter(help="Show the version and exit.", negative=(), show_default=False)
        ] = False,
        max_size: Annotated[
            str,
            Parameter(
                name="--max-size",
                help="Largest size of a file, unpacked.",
            ),
        ] = size_text(MOST_HELD),
    ) -> None:
        del version, max_size

    others = Group("Options", sort_key=1)
    app = App(
        name="factormodels",
        help=unwrapped(HELP if every else BRIEF),
        usage="Usage: factormodels COMMAND [OPTIONS]",
        help_format="plaintext",
        help_formatter=show_panel,
        version_flags=[],
        group_parameters=others,
        group_commands=Group("Commands", sort_key=0),
        console=Console(markup=False, highlight=False, emoji=False),
    )
    app.default(options)
    for at, name in enumerate(COMMANDS):
        command = command_of(function_named(name))
        command.sort_key = at
        if not every:
            command.help = f"{re.split('[:,] ', command.help.partition('.')[0])[0]}."
        app.command(command, name=name)
    app.register_install_completion_command(help="Install completion for the current shell.")
    for option in ("--help", "--install-completion"):
        app[option].group = others
    return app


@contextmanager
def _stopped_in_order() -> Iterator[None]:
    """Handle SIGTERM like an error, so that kept answers are saved, and lose no signal.

    Python cannot pass on an exception that is raised in ``__del__`` or in the callback of a weak
    reference, such as those of imports. The signal is then sent again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler, hook = signal.signal(signal.SIGTERM, _terminated), sys.unraisablehook

    def send_again(unraisable: sys.UnraisableHookArgs) -> None:
        number = _signal_behind(unraisable.exc_value)
        if number is None:
            hook(unraisable)
        else:
            timer = threading.Timer(_SEND_AGAIN_AFTER, _signal_main_thread, (number,))
            timer.daemon = True
            timer.start()

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, handler)


def _terminated(*_: object) -> None:
    raise SystemExit(TERMINATED)


def _signal_behind(error: BaseException | None) -> signal.Signals | None:
    """Return the signal whose handler raised an exception, or None."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    if isinstance(error, SystemExit) and error.code == TERMINATED:
        return signal.SIGTERM
    return None


def _signal_main_thread(number: signal.Signals) -> None:
    """Send a signal to the main thread, which also interrupts its waiting."""
    main_thread = threading.main_thread().ident
    if main_thread is not None:
        signal.pthread_kill(main_thread, number)


def main() -> None:
    """Run the command line and exit with its code."""
    # A short process that makes many small objects and few circles of them: at Python's own
    # threshold, looking for circles takes an eighth of a small study's time.
    gc.set_threshold(*_COLLECTIONS)
    open_standard_streams()
    spell_what_has_no_form()
    # Registered first, so called last at exit.
    atexit.register(_ignore_interrupts)
    try:
        sys.exit(command_line(sys.argv[1:]))
    except SystemExit as end:
        if end.code in (INTERRUPTED, TERMINATED):
            _leave_at_next_interrupt()
        else:
            _ignore_interrupts()
        _end_beside_threads(end.code)
        raise
    finally:
        _flush_quietly()
        # The process ends: circles of objects need not be looked for first, among the hundreds of
        # thousands that libraries have made. That would take seconds.
        gc.freeze()


def _ignore_interrupts() -> None:
    """Ignore further interrupts while the command ends.

    At shutdown Python restores the system's handlers, and an interrupt would then end the process
    by the signal. An ignored interrupt stays ignored.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave_at_next_interrupt() -> None:
    """Make another interrupt end the process at once, without a traceback.

    Received answers are on disk, at least in the cache's log.
    """
    _flush_quietly()
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))


def _end_beside_threads(code: str | int | None) -> None:
    """End the process at once if threads still work on abandoned responses.

    After an interrupt such a thread may be in the middle of an import. It freezes when the
    interpreter shuts down, and any later import, such as litellm's, waits for it forever. Exit
    handlers therefore run first.
    """
    if not any(thread.name == AT_WORK for thread in threading.enumerate()):
        return
    # No public function of Python runs them. Without this one, libraries leave temporary folders.
    getattr(atexit, "_run_exitfuncs", _flush_quietly)()
    _flush_quietly()
    os._exit(1 if isinstance(code, str) else code or 0)


def _flush_quietly() -> None:
    """Flush the output; ignore a reader that has closed the pipe (`| head`)."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # Python flushes once more at exit; into /dev/null that no longer fails.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    main()
