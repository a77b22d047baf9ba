"""Mutants: the list of them, a copy of the tree, and what the tests say of one in a copy."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]

LISTED = Path(__file__).with_name("mutants.toml")

KILLED, SURVIVED, BROKEN, LATE = "killed", "survived", "broken", "late"

MOST_SECONDS = 300.0
"""Of processor time for the tests of one mutant; those of the list take a few."""

MOST_WAITING = 12.0
"""How often that may go by on the clock, for tests that wait, or have to wait for others."""


@dataclass(frozen=True)
class Mutant:
    """A change that makes something wrong.

    Attributes:
        breaks: what is wrong then.
        file: where, from the root of the checkout.
        old: text that occurs once in the file.
        new: what takes its place.
        tests: ids of the tests of which one must fail, as pytest spells them.
    """

    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """Outcome of a mutant.

    Attributes:
        word: "killed" if a test failed, "survived" if all passed or were left out, "broken" if
            none could be run, "late" if they did not end in time.
        told: what pytest printed.
    """

    word: str
    output: str


def listed(path: Path = LISTED) -> list[Mutant]:
    """The mutants of the list."""
    with path.open("rb") as file:
        rows = tomllib.load(file)["mutant"]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def faults(mutant: Mutant, root: Path = ROOT) -> Iterator[str]:
    """Yield what no longer fits the tree: a text that is not there once, a test that is gone."""
    source = root / mutant.file
    count = source.read_text(encoding="utf-8").count(mutant.old) if source.is_file() else 0
    if count != 1:
        yield f"{mutant.file}: the text {mutant.old!r} is there {count} times, not once"
    if mutant.old == mutant.new:
        yield f"{mutant.file}: the text {mutant.old!r} is not changed"
    if not mutant.tests:
        yield f"{mutant.file}: the change of {mutant.old!r} names no test"
    for test in mutant.tests:
        file, _, name = test.partition("::")
        if name.partition("[")[0] not in _tests_in(root / file):
            yield f"{test}: there is no such test"


@cache
def _tests_in(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of a checkout, without what git ignores but for compiled code; gone afterwards."""
    with TemporaryDirectory(prefix="mutant-") as folder:
        target = Path(folder) / "tree"
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, capture_output=True, text=True, check=True,
        ).stdout.split("\0")  # fmt: skip
        files = [Path(name) for name in filter(None, names) if (root / name).is_file()]
        for file in files:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / file, target / file)
        # With the times of their sources both are current there: nothing else is compiled anew.
        for subfolder in {file.parent for file in files}:
            compiled = root / subfolder / "__pycache__"
            if compiled.is_dir():
                # Where git does not ignore it, it is there already.
                shutil.copytree(compiled, target / subfolder / "__pycache__", dirs_exist_ok=True)
        # Copies are made of copies: git is asked what belongs to them.
        subprocess.run(["git", "init", "-q"], cwd=target, check=True)
        yield target


def attempt(mutant: Mutant, root: Path, seconds: float = MOST_SECONDS) -> Outcome:
    """Run the tests of a mutant in a copy of a checkout with its change."""
    with copied(root) as tree:
        source = tree / mutant.file
        text = source.read_text(encoding="utf-8")
        compiled_from = source.stat().st_mtime
        source.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        # Python tells compiled code from stale by size and whole seconds of the source's time: a
        # change of one character in the second of the copy would be run as it was.
        os.utime(source, (compiled_from + 2.0, compiled_from + 2.0))
        return run_tests(mutant.tests, tree, seconds)


def run_tests(tests: Iterable[str], tree: Path, seconds: float) -> Outcome:
    """Run tests in a copy with this interpreter until the first fails.

    Args:
        tests: ids of the tests.
        tree: the copy.
        seconds: what each of their processes may take of a processor.
    """
    command = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
    limited = f'ulimit -t {ceil(seconds)}; exec "$@"'
    # A process group of its own, so that what the tests started ends with them.
    with subprocess.Popen(
        ["sh", "-c", limited, "sh", *command, *tests],
        cwd=tree,
        # Plugins take half of the start, and the tests use none of them.
        env=os.environ | {"PYTHONPATH": str(tree), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=MOST_WAITING * seconds)
        except subprocess.TimeoutExpired:
            return Outcome(LATE, f"the tests did not end within {MOST_WAITING * seconds:g} s\n")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Outcome(LATE, f"{output}the tests took {seconds:g} s of processor time\n")
    # Of pytest: 0 all passed, 1 some failed, others that it could not run them.
    return Outcome({0: SURVIVED, 1: KILLED}.get(process.returncode, BROKEN), output)


def distinct_tests(mutants: Sequence[Mutant]) -> list[str]:
    """The tests that mutants name, each once, file by file."""
    return sorted({test for mutant in mutants for test in mutant.tests})
