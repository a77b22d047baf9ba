"""`python -m tests.mutants`: make every change of the list in a copy, and run its tests there."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from experiments.cli.console import messages, output
from experiments.cli.progress import TerminalWatcher
from experiments.findings.table import Table, text_columns
from experiments.findings.terminal import show
from tests.mutants.trying import (
    KILLED,
    LISTED,
    ROOT,
    SURVIVED,
    Mutant,
    Outcome,
    attempt,
    copied,
    distinct_tests,
    faults,
    listed,
    run_tests,
)

_MOST_SECONDS_UNCHANGED = 3600.0
"""Of all tests of the list together, where nothing is changed."""


def main(arguments: list[str] | None = None) -> int:
    """Try the mutants and show what became of each; 1 if one lives, 2 if the list is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--workers", type=int, default=2, help="how many are tried at a time")
    parser.add_argument("--only", default="", help="part of the path of what is changed")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    parser.add_argument("--list", type=Path, default=LISTED, help="the list of mutants")
    given = parser.parse_args(arguments)
    mutants = [mutant for mutant in listed(given.list) if given.only in mutant.file]
    wrong = [fault for mutant in mutants for fault in faults(mutant, given.root)]
    if wrong:
        sys.stderr.write("\n".join(wrong) + "\n")
        return 2
    with copied(given.root) as tree:
        # What fails as it is notices nothing; and what is compiled here, copies of the copy have.
        unchanged = run_tests(distinct_tests(mutants), tree, _MOST_SECONDS_UNCHANGED)
        if unchanged.word != SURVIVED:
            sys.stderr.write(f"{unchanged.output}\nthe tests must pass where nothing is changed\n")
            return 2
        outcomes = _tried(mutants, tree, given.workers)
    return _shown(mutants, outcomes)


def _tried(mutants: list[Mutant], tree: Path, workers: int) -> list[Outcome]:
    """Outcome of each mutant, with a progress bar."""
    console = messages()
    with (
        TerminalWatcher(console).steps("mutants", len(mutants)) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):

        def tried(mutant: Mutant) -> Outcome:
            outcome = attempt(mutant, tree)
            if outcome.word != KILLED:
                console.print(f"{mutant.file}: {mutant.breaks}: {outcome.word}", markup=False)
            advance()
            return outcome

        return list(pool.map(tried, mutants))


def _shown(mutants: list[Mutant], outcomes: list[Outcome]) -> int:
    """Print the table, and what the tests of those said that live; 1 if there are any."""
    console = output()
    rows = [
        {"place": mutant.file, "what is wrong then": mutant.breaks, "outcome": outcome.word}
        for mutant, outcome in zip(mutants, outcomes, strict=True)
    ]
    show(console, Table(rows, text_columns("place", "what is wrong then", "outcome")))
    living = [pair for pair in zip(mutants, outcomes, strict=True) if pair[1].word != KILLED]
    for mutant, outcome in living:
        tests = " ".join(mutant.tests)
        sys.stdout.write(f"\n{mutant.file}: {mutant.breaks}: {outcome.word}\n{tests}\n")
        sys.stdout.write(outcome.output)
    sys.stdout.write(
        f"\n{len(mutants) - len(living)} of {len(mutants)} mutants are killed"
        f"{f', {len(living)} live' if living else ', none lives'}.\n"
    )
    return 1 if living else 0


if __name__ == "__main__":
    sys.exit(main())
