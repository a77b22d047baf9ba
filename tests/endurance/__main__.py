"""`python -m tests.endurance [SCENARIO [NAME=VALUE ...]]`: one, or all that check, one by one.

A scenario is a function that yields the rows of a table as it goes; its arguments are what may be
set. One whose rows say that something is not `right` has failed. Together they take hours.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator

from tests.endurance import (
    Row,
    algorithms,
    assessments,
    entered,
    kept,
    marginals,
    predictions,
    studies,
    walks,
    wide,
)

Scenario = Callable[..., Iterator[Row]]
CHECKS: tuple[Scenario, ...] = (studies.kills, studies.sizes, assessments.hostile_day)
MEASUREMENTS: tuple[Scenario, ...] = (
    studies.many_responses,
    algorithms.coverage,
    marginals.marginals,
    predictions.predictions,
    predictions.near_misses,
    wide.wide,
    walks.walks,
    entered.entered,
    kept.kept,
)
SCENARIOS = {scenario.__name__: scenario for scenario in (*CHECKS, *MEASUREMENTS)}


def main(arguments: list[str]) -> int:
    """Run scenarios, print their tables in Markdown, and return 1 if one failed."""
    if arguments and arguments[0] not in SCENARIOS:
        raise SystemExit(f"{arguments[0]!r} is no scenario; there are {', '.join(SCENARIOS)}")
    failed = set()
    for scenario in [SCENARIOS[arguments[0]]] if arguments else CHECKS:
        given = dict(pair.split("=", 1) for pair in arguments[1:])
        rows = scenario(**{name: ast.literal_eval(text) for name, text in given.items()})
        sys.stdout.write(f"## {scenario.__name__}\n\n")
        for number, row in enumerate(rows):
            if number == 0:
                sys.stdout.write(f"| {' | '.join(row)} |\n|{' --- |' * len(row)}\n")
            sys.stdout.write(f"| {' | '.join(map(shown, row.values()))} |\n")
            sys.stdout.flush()
            if not row.get("right", True):
                failed.add(scenario.__name__)
    if failed:
        sys.stderr.write(f"failed: {', '.join(sorted(failed))}\n")
    return 1 if failed else 0


def shown(value: object) -> str:
    """A cell of a table."""
    return "--" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
