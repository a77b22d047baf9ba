"""`python -m tests.endurance [SCENARIO [NAME=VALUE ...]]`: one, or all that check, one by one.

A scenario is a function that yields the rows of a table as it goes; its arguments are what may be
set. One whose rows say that something is not as it should be has failed. Together they take hours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path

from tests.endurance import algorithms, assessments, studies

Row = dict[str, object]
CHECKS: tuple[Callable[..., Iterator[Row]], ...] = (
    *(studies.kills, studies.disturbances, studies.sizes),
    *(assessments.hostile_day, assessments.calls),
)
MEASUREMENTS: tuple[Callable[..., Iterator[Row]], ...] = (
    *(studies.many_responses, algorithms.batches, algorithms.accelerator),
    *(algorithms.marginals, algorithms.coverage, algorithms.bounds, algorithms.most_probable),
)
SCENARIOS = {one.__name__: one for one in (*CHECKS, *MEASUREMENTS)}
OUT = Path("results/endurance")


def main(arguments: list[str]) -> int:
    """Run scenarios, print and keep their tables, and return 1 if one failed."""
    if arguments and arguments[0] not in SCENARIOS:
        raise SystemExit(f"{arguments[0]!r} is no scenario; there are {', '.join(SCENARIOS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    failed = []
    for scenario in [SCENARIOS[arguments[0]]] if arguments else CHECKS:
        settings = dict(pair.split("=", 1) for pair in arguments[1:])
        defaults = {name: one.default for name, one in signature(scenario).parameters.items()}
        if strange := settings.keys() - defaults.keys():
            raise SystemExit(f"{strange.pop()!r} cannot be set; there are {', '.join(defaults)}")
        rows = scenario(**{name: _value(text, defaults[name]) for name, text in settings.items()})
        sys.stdout.write(f"## {scenario.__name__}\n\n")
        with (OUT / f"{scenario.__name__}.md").open("w", encoding="utf-8") as kept:
            for number, row in enumerate(rows):
                for line in table([row])[0 if number == 0 else 2 :]:
                    kept.write(f"{line}\n")
                    sys.stdout.write(f"{line}\n")
                    sys.stdout.flush()
                failed += (
                    [scenario.__name__] if any(value is False for value in row.values()) else []
                )
    if failed:
        sys.stderr.write(f"failed: {', '.join(dict.fromkeys(failed))}\n")
    return 1 if failed else 0


def _value(text: str, default: object) -> object:
    """A setting of the type that its default has; of several values, a tuple of them."""
    if isinstance(default, tuple):
        return tuple(_value(part, default[0]) for part in text.split(","))
    kinds: dict[type, Callable[[str], object]] = {int: int, float: float, bool: "True".__eq__}
    return kinds.get(type(default), str)(text)


def table(rows: list[Row]) -> list[str]:
    """The lines of a table in Markdown."""
    lines = [f"| {' | '.join(rows[0])} |", f"|{' --- |' * len(rows[0])}"]
    for row in rows:
        lines.append(f"| {' | '.join(map(_shown, row.values()))} |")
    return lines


def _shown(value: object) -> str:
    match value:
        case None:
            return "--"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return (
                f"{value:,.{max(0, 3 - len(str(int(abs(value)))))}f}"
                if abs(value) >= 1
                else f"{value:.4g}"
            )
    return str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
