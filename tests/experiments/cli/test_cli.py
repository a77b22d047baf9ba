"""The command line as a whole: help, version, exit codes, lazy imports, signals, pipes."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import IO

import pytest

import factormodels
from experiments.cli.front import command_of
from experiments.cli.help import unwrapped
from experiments.cli.main import COMMANDS, HELP, function_named
from experiments.settings.backend_settings import setting_names
from tests.experiments.conftest import call, environment, invoke, study_file
from tests.processes import run_python

pytestmark = pytest.mark.slow

HEAVY = ("numba", "pandas", "matplotlib", "scipy", "pyarrow", "pydantic", "torch", "pgmpy")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_examples_of_the_command(command: str) -> None:
    lines = [line.strip() for line in invoke(command, "--help").stdout.splitlines()]
    examples = lines[lines.index("Examples") :]
    assert any(line.startswith(f"factormodels {command}") for line in examples)


def test_help_of_the_whole_names_every_command() -> None:
    result = invoke("--help")
    assert all(f" {command} " in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_screen(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = invoke(command, "--help").stdout.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    assert lines.index("Examples") < lines.index("Output:")
    assert lines[-2].split() == ["--help-all", "Show", "every", "option."]


@pytest.mark.parametrize("command", ["run", "score"])
def test_help_shows_what_tables_of_a_paper_need(command: str) -> None:
    lines = invoke(command, "--help").stdout.splitlines()
    assert {"--rename", "--venue"} <= {line.split()[0] for line in lines if line.strip()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["scor"],
            r"the command 'scor' is unknown \(did you mean 'score'.*\?\); see factormodels --help",
        ),
        (["score"], r"DATA is missing; .* \(see factormodels score --help\)"),
    ],
)
def test_a_wrong_command_line_names_the_help(words: list[str], message: str) -> None:
    assert re.fullmatch(f"factormodels: {message}\n", invoke(*words, code=2).stderr)


def test_help_of_the_whole_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = invoke("--help").stdout.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    assert "Exit codes" not in lines
    assert "Exit codes" in invoke("--help-all").stdout.splitlines()
    commands, options = ("\n".join(lines).partition(f"\n{heading}:\n")[2].split("\n\n")[0]
                         for heading in ("Commands", "Options"))  # fmt: skip
    assert tuple(re.findall(r"^  (\S+)", commands, re.M)) == COMMANDS
    assert re.findall(r"^  (--[a-z-]+)", options, re.M) == [
        *("--version", "--max-size", "--help", "--install-completion")
    ]


OTHERS = {
    *("fast", "sync", "to", "output", "wheel-dir", "max-size", "version", "install-completion"),
    *("help", "error-unmatch", "no-deps", "no-optional-locks", "porcelain", "verify", "surface"),
    *("nworkers", "nthreads", "use-priors", "enable-prompt-tokens-details", "logprobs-mode"),
    *("processes", "tasks", "shortstat", "least-words"),
    *("headless", "no-sandbox", "allow-file-access-from-files", "dump-dom"),
}
"""Options of the whole, of other programs, of a style sheet, and of a trial in a record."""


PACKAGES = ("experiments", "calibration", "inference", "factormodels")
"""Where messages name options."""


def _parameters(script: Path) -> Iterator[str]:
    """Yield the options of a script in notebooks/questions, which are keyword parameters."""
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == script.stem:
            yield from (argument.arg.replace("_", "-") for argument in node.args.kwonlyargs)


def test_every_option_that_is_named_exists() -> None:
    known = set(OTHERS)
    for command in COMMANDS:
        app = command_of(function_named(command))
        for argument in app.assemble_argument_collection():
            known |= {name.lstrip("-") for name in argument.names}
    for backend in ("exact", "auto", "lbp", "wmb"):
        known |= {name.replace("_", "-") for name in setting_names(backend)}
    root = Path(__file__).parents[3]
    for script in (root / "notebooks" / "questions").glob("*.py"):
        for name in _parameters(script):
            known |= {name, f"no-{name}"}
    for script in (root / "tests" / "real_model").glob("*.py"):
        known |= set(re.findall(r'add_argument\("--([a-z-]+)"', script.read_text("utf-8")))
    pages = [
        root / "README.md",
        # The pages that a build makes also name options of other tools.
        *(page for page in (root / "docs").rglob("*.md") if "generated" not in page.parts),
        *(page for name in PACKAGES for page in (root / name).rglob("*.py")),
    ]
    named = {
        (option, page.relative_to(root))
        for page in pages
        for option in re.findall(
            r"(?<![\w-])--([a-z](?:[a-z-]*[a-z])?)(?![\w-])", page.read_text("utf-8")
        )
    }
    assert [each for each in named if each[0] not in known] == []


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_keeps_its_lines_at_80_columns(command: str) -> None:
    text = command_of(function_named(command)).help if command else unwrapped(HELP)
    asked = [*filter(None, [command]), "--help-all"]
    shown = [line.strip() for line in invoke(*asked).stdout.splitlines()]
    for paragraph in text.split("\n\n"):
        examples = paragraph.startswith("  ")
        lines = paragraph.splitlines() if examples else wrap(paragraph, 80, break_on_hyphens=False)
        assert [line for line in lines if line.strip() not in shown] == []


def test_help_shows_flags_without_a_value() -> None:
    assert "<bool>" not in "".join(invoke(name, "--help-all").stdout for name in COMMANDS)


def test_examples_in_help_keep_their_brackets() -> None:
    # Rich takes [FR1] for a style unless it is escaped.
    shown = invoke("run", "--help-all").stdout
    assert "'variants=[FR1]'" in shown
    assert "backends[1].settings.damping=0.3" in shown


def test_version() -> None:
    assert invoke("--version").stdout == f"factormodels {factormodels.__version__}\n"
    with pytest.raises(AttributeError, match="no attribute 'versions'"):
        factormodels.versions  # noqa: B018


def loaded(arguments: list[str], names: tuple[str, ...]) -> list[str]:
    """Return which modules of `names` a process has loaded after a command."""
    code = (
        "import sys\n"
        "from tests.commands import called\n"
        f"assert called(*{arguments!r}).exit_code == 0\n"
        f"print(*[name for name in {names!r} if name in sys.modules])"
    )
    return run_python(code)[0].split()


def test_help_loads_nothing_heavy() -> None:
    # The functions whose commands these are say what they are for; settings are pydantic's.
    assert loaded(["--help"], tuple(name for name in HEAVY if name != "pydantic")) == []


def test_the_posterior_of_one_graph_loads_no_study() -> None:
    arguments = ["infer", "worked-examples", "--response", "factreasoner-example-1"]
    assert loaded(arguments, ("pandas", "pyarrow", "calibration", "experiments.study")) == []


@pytest.mark.parametrize("arguments", ["infer", "nonsense", "infer x.json --nonsense"])
def test_misuse_is_exit_code_2(arguments: str) -> None:
    assert "--help" in invoke(*arguments.split(), code=2).stderr


def test_a_process_ends_with_the_sentence_and_the_code(folder: Path) -> None:
    result = call("infer", "absent.json", "--json", cwd=folder)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == "factormodels: absent.json: there is no such file; check the path\n"


LOST_IN_A_CALLBACK = """
import os, sys, signal, time, weakref
from experiments.cli import main

class Target:
    pass

def waiting(arguments):
    # The interpreter cannot pass on what a weak reference's callback raises.
    target = Target()
    reference = weakref.ref(target, lambda _: os.kill(os.getpid(), int(arguments[0])))
    del target
    time.sleep(60)
    return 0

signal.signal(signal.SIGINT, signal.default_int_handler)
main._called = waiting
sys.argv[1:] = [sys.argv[1]]
main.main()
"""


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_that_comes_during_a_callback_still_stops(
    sent: signal.Signals, code: int, folder: Path
) -> None:
    result = subprocess.run(
        [sys.executable, "-c", LOST_IN_A_CALLBACK, str(int(sent))],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(),
        timeout=50,
    )
    assert result.returncode == code
    assert "Traceback" not in result.stderr


INTERRUPTIBLE = """
import signal
from tests.experiments import strange
from experiments.cli.main import main
strange.register_all()
# A test run in the background of a shell ignores interrupts, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


@pytest.mark.kill
@pytest.mark.parametrize(
    ("sent", "code", "sentence"),
    [
        # test_runner.py interrupts a run in the middle, and the test above at any moment.
        pytest.param(signal.SIGINT, 130, "factormodels: interrupted", marks=pytest.mark.nightly),
        (signal.SIGTERM, 143, "factormodels: stopped by the system (SIGTERM)"),
    ],
)
def test_an_interrupt_before_the_first_unit_leaves_no_file(
    sent: signal.Signals, code: int, sentence: str, folder: Path
) -> None:
    # Warming up its backend takes a minute, so that it is interrupted there.
    path = study_file(
        folder,
        "study: s\ndatasets: [worked-examples]\n"
        "backends: [{backend: slow, settings: {seconds_each: 60.0}}]\n",
    )
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "run", str(path), "--out", "results"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(),
    )
    assert process.stderr is not None
    assert "units" in process.stderr.readline()
    process.send_signal(sent)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert errors.splitlines()[-1] == sentence
    assert list(folder.iterdir()) == [path]


def listed_to(stdout: int | IO[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A process that lists what there is to a place."""
    return subprocess.run(
        [sys.executable, "-m", "experiments", "list"],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(),
        timeout=300,
    )


def test_a_reader_that_goes_away_is_no_traceback(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = listed_to(writing, folder)
    os.close(writing)
    assert process.stderr == ""
    assert process.returncode != 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_one_sentence(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        process = listed_to(full, folder)
    assert process.returncode == 2
    assert process.stderr.startswith("factormodels: the output cannot be written (")
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("closed", "code", "message"),
    [
        (">&-", 2, "factormodels: the output cannot be written (Bad file descriptor)\n"),
        ("2>&-", 0, ""),
        ("<&- >&- 2>&-", 2, ""),
        ("> /dev/full 2> /dev/full", 2, ""),
    ],
)
def test_streams_that_are_closed_are_no_traceback(
    closed: str, code: int, message: str, folder: Path
) -> None:
    # As a shell closes them: what is opened next would have their numbers.
    process = subprocess.run(
        ["sh", "-c", f'"$0" -m factormodels list {closed}', sys.executable],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(),
        timeout=300,
        check=False,
    )
    assert (process.returncode, process.stderr) == (code, message)
