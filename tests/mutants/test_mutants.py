"""The list of mutants fits the tree, and the runner names the survivors."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from time import time

import pytest

from tests.mutants import trying
from tests.mutants.__main__ import main
from tests.mutants.trying import (
    BROKEN,
    KILLED,
    LATE,
    SURVIVED,
    Mutant,
    Outcome,
    attempt,
    faults,
    listed,
)


def test_every_mutant_of_the_list_changes_something_that_its_tests_are_there_for() -> None:
    mutants = listed()
    assert len(mutants) >= 60
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in mutants}) == len(mutants)
    assert [fault for mutant in mutants for fault in faults(mutant)] == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a checkout with a sum and its tests."""
    root = tmp_path / "tree"
    (root / "tests").mkdir(parents=True)
    (root / "sums.py").write_text("def added(a, b):\n    return a + b\n")
    (root / "tests" / "test_sums.py").write_text(
        "from time import sleep\n"
        "from sums import added\n"
        "def test_a_sum():\n    assert added(2, 3) == 5\n"
        "def test_nothing():\n    assert added(0, 0) == 0\n"
        "def test_long():\n    sleep(100 * added(1, -1))\n"
        "def test_busy():\n    while added(1, -1):\n        pass\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


SUM = "    return a + b\n"


@pytest.mark.parametrize(
    ("new", "test", "word"),
    [
        ("    return a - b\n", "test_a_sum", KILLED),
        ("    return a - b\n", "test_nothing", SURVIVED),
        ("    return a +\n", "test_a_sum", BROKEN),
        ("    return a - b\n", "test_long", LATE),
        # The case above is late too; a test that computes costs its second.
        pytest.param("    return a - b\n", "test_busy", LATE, marks=pytest.mark.nightly),
    ],
)
def test_a_mutant_is_killed_by_a_test_that_fails_and_by_nothing_else(
    tree: Path, new: str, test: str, word: str
) -> None:
    mutant = Mutant("sums", "sums.py", SUM, new, (f"tests/test_sums.py::{test}",))
    assert list(faults(mutant, tree)) == []
    # What is late sleeps for minutes, or computes: on any machine it is still at it, or not yet.
    seconds = {"test_long": 0.2, "test_busy": 1.0}.get(test, 60.0)
    assert attempt(mutant, tree, seconds).word == word
    assert (tree / "sums.py").read_text().endswith(SUM)


def test_code_compiled_in_the_second_of_the_change_is_not_run(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed_sum(_tests: Iterable[str], tree: Path, _seconds: float) -> Outcome:
        command = [sys.executable, "-c", "from sums import added; print(added(2, 3))"]
        return Outcome(subprocess.check_output(command, cwd=tree, text=True), "")

    # What Python runs in the copy is the question; pytest would take longer to start than to ask.
    monkeypatch.setattr(trying, "run_tests", printed_sum)
    mutant = Mutant(
        "sums", "sums.py", SUM, "    return a - b\n", ("tests/test_sums.py::test_a_sum",)
    )
    source = tree / "sums.py"
    # The source's time is what it will be when the mutant is written: now and for a while.
    for ahead in range(5):
        at = time() + ahead
        os.utime(source, (at, at))
        py_compile.compile(str(source), doraise=True)
        assert attempt(mutant, tree).word == "-1\n"


def test_mutants_that_no_longer_fit_the_tree_are_reported(tree: Path) -> None:
    gone = ("tests/test_sums.py::test_gone", "tests/none.py::test_a_sum")
    sentences = list(faults(Mutant("sums", "sums.py", "return a * b", "", gone), tree))
    assert [fault.rpartition("; ")[2] for fault in sentences] == [
        "sums.py: the text 'return a * b' is there 0 times, not once",
        "tests/test_sums.py::test_gone: there is no such test",
        "tests/none.py::test_a_sum: there is no such test",
    ]


def test_the_table_names_what_lives(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    listed = tree / "mutants.toml"
    change = "file = 'sums.py'\nold = 'a + b'\nnew = 'a - b'\n"
    mutant = f"[[mutant]]\nbreaks = '{{}}'\n{change}tests = ['{{}}']\n"
    noticed = mutant.format("a difference", "tests/test_sums.py::test_a_sum")
    missed = mutant.format("not noticed", "tests/test_sums.py::test_nothing")
    options = ["--root", str(tree), "--list", str(listed)]
    listed.write_text(noticed)
    assert main(options) == 0
    assert "1 of 1 mutants are killed, none lives." in capfd.readouterr().out
    listed.write_text(noticed + missed)
    assert main(options) == 1
    assert "sums.py: not noticed: survived" in capfd.readouterr().out
    listed.write_text(noticed.replace("a + b", "a * b"))
    assert main(options) == 2
    assert "'a * b' is there 0 times" in capfd.readouterr().err
    (tree / "sums.py").write_text("def added(a, b):\n    return (a + b) * 2\n")
    listed.write_text(noticed)
    assert main(options) == 2
    assert "the tests must pass where nothing is changed" in capfd.readouterr().err
