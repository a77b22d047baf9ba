"""Makes the tables of docs/measurements.md from the results of the commands above them.

    python docs/make_measurements.py          # from the results that there are
    python docs/make_measurements.py --run    # run the commands first; `make bench`

A table is made anew if the file that its command writes (`--out`) exists; the others stay as they
are. A command whose data are absent is not run.
"""

from __future__ import annotations

import json
import logging
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import numpy as np
import typer

from experiments.bench.references import ReferenceComparison, groups
from experiments.bench.report import gather, geometric, interval, ratio
from experiments.bench.store import read_run
from experiments.findings.text import ABSENT, duration
from factormodels.errors import InputError
from factormodels.io.files import read_text, write_text
from inference.posterior import Status

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measurements.md"

Table = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
"""Headings and rows."""

logger = logging.getLogger(__name__)

_BLOCK = re.compile(
    r"<!-- measured: (?P<kind>[\w-]+) -->\n\n(?:<!-- not run: [^>]* -->\n)?"
    r"```sh\n(?P<command>[^`]*)```\n\n(?P<table>(?:\|.*\n)+)"
)


@dataclass(frozen=True)
class Measured:
    """A table of the page.

    Attributes:
        kind: what makes it, a key of `KINDS`.
        command: the words of its command, without `factormodels`.
        span: where the table begins and ends in the text of the page.
    """

    kind: str
    command: tuple[str, ...]
    span: tuple[int, int]

    @property
    def results(self) -> Path:
        """The file, or folder, that the command writes."""
        return Path(self.command[self.command.index("--out") + 1])

    @property
    def data(self) -> tuple[Path, ...]:
        """The files and folders that it reads."""
        named = self.command[1 : self.command.index("--out")]
        return tuple(Path(word) for word in named if "/" in word and not word.startswith("-"))


def measured_tables(text: str) -> list[Measured]:
    """The tables of a page, in order."""
    return [
        Measured(
            found["kind"],
            tuple(shlex.split(found["command"].replace("\\\n", " ")))[1:],
            found.span("table"),
        )
        for found in _BLOCK.finditer(text)
    ]


def updated(text: str, folder: Path) -> str:
    """The page with every table made anew whose results there are.

    Args:
        text: the page.
        folder: where the paths of its commands start.

    Raises:
        InputError: if results are damaged, or of another version.
    """
    for each in reversed(measured_tables(text)):
        path = folder / each.results
        if not path.exists():
            logger.info("%s is absent: its table stays", each.results)
            continue
        heads, rows = KINDS[each.kind](path)
        lines = [heads, ("---",) * len(heads), *rows]
        table = "".join("| " + " | ".join(line) + " |\n" for line in lines)
        text = text[: each.span[0]] + table + text[each.span[1] :]
    return text


def ratios(path: Path) -> Table:
    """Warm calls of every algorithm as ratios to what it is compared with."""
    heads = ("graphs", "algorithm", "warm call", "compared with", "times as long", "interval")
    rows = []
    for result in read_run(path).families:
        for name in result.algorithms:
            compared = ratio(result, name)
            rows.append(
                (
                    result.name,
                    f"`{name}`",
                    duration(geometric(gather(result, name, lambda one: one.warm))),
                    ABSENT if compared is None else f"`{compared[0]}`",
                    ABSENT if compared is None else f"{compared[1].value:.3g}",
                    ABSENT if compared is None else interval(compared[1]),
                )
            )
    return heads, rows


def memory(path: Path) -> Table:
    """The same with the memory beyond that of the libraries."""
    heads, rows = ratios(path)
    run = read_run(path)
    peaks = [
        max(gather(result, name, lambda one: one.peak_bytes), default=None)
        for result in run.families
        for name in result.algorithms
    ]
    shown = [ABSENT if peak is None else f"{peak / 2**20:,.0f} MiB" for peak in peaks]
    return (*heads, "memory"), [(*row, each) for row, each in zip(rows, shown, strict=True)]


def runner(path: Path) -> Table:
    """What a study of many small graphs costs."""
    cost = read_run(path).runner
    if cost is None:
        raise InputError(f"{path}: it holds no measurement of the runner; measure again")
    heads = ("units", "processes", "in all", "beyond inference, per unit")
    return heads, [
        (f"{cost.n_units:,}", str(cost.workers), duration(cost.seconds), duration(cost.overhead))
    ]


def networks(path: Path) -> Table:
    """Each network of reference answers: marginals and log Z in one row."""
    heads = ("network", "variables", "induced width", "seconds", "marginal", "log10 Z")
    by_network: dict[str, dict[str, ReferenceComparison]] = {}
    for one in _comparisons(path):
        by_network.setdefault(Path(one.network).stem, {})[one.task] = one
    rows = []
    for name, tasks in sorted(by_network.items()):
        first = next(iter(tasks.values()))
        errors = [f"{tasks[task].error:.0e}" if task in tasks else ABSENT for task in ("MAR", "PR")]
        width = ABSENT if first.induced_width is None else str(first.induced_width)
        rows.append((name, str(first.variables), width, f"{first.seconds:.2g}", *errors))
    return heads, rows


def network_sets(path: Path) -> Table:
    """Errors by set of networks and backend, marginals and log Z in one row."""
    heads = (
        *("set", "networks", "backend", "settled", "mean error of a marginal"),
        *("largest, median network", "largest", "log Z", "median log Z − reference", "furthest"),
        "seconds",
    )
    by_set: dict[tuple[str, str], dict[str, list[ReferenceComparison]]] = {}
    for (name, task, backend), found in groups(_comparisons(path)).items():
        by_set.setdefault((name, backend), {})[task] = [one for one in found if one.answered]
    rows = []
    for (name, backend), tasks in by_set.items():
        marginals, partitions = tasks.get("MAR", []), tasks.get("PR", [])
        settled = sum(one.status in (Status.EXACT, Status.CONVERGED) for one in partitions)
        shifts = [one.log_z_error for one in partitions if math.isfinite(one.log_z_error)]
        rows.append(
            (
                name,
                str(max(len(marginals), len(partitions))),
                f"`{backend}`",
                str(settled),
                _shown(np.mean, (one.mean_error for one in marginals), "{:.3f}"),
                _shown(np.median, (one.error for one in marginals), "{:.2g}"),
                _shown(np.max, (one.error for one in marginals), "{:.2g}"),
                ", ".join(dict.fromkeys(str(one.log_z_kind) for one in partitions)),
                _shown(np.median, shifts, "{:+.2g}"),
                f"{max(shifts, key=abs):+.2g}" if shifts else ABSENT,
                _shown(np.median, (one.seconds for one in partitions), "{:.2g}"),
            )
        )
    return heads, rows


KINDS: Mapping[str, Callable[[Path], Table]] = MappingProxyType(
    {
        "ratios": ratios,
        "memory": memory,
        "runner": runner,
        "networks": networks,
        "network-sets": network_sets,
    }
)
"""What makes a table of the results at a path, by what the page calls it."""


def _comparisons(path: Path) -> Iterator[ReferenceComparison]:
    for one in json.loads(read_text(path))["comparisons"]:
        # JSON has no word for a number that there is none of.
        numbers = {key: math.nan for key in ("seconds", *_ERRORS) if one[key] is None}
        yield ReferenceComparison(**(one | numbers))


_ERRORS = ("error", "mean_error", "log_z_error", "gap")


def _shown(of: Callable[[Sequence[float]], float], values: Iterable[float], form: str) -> str:
    finite = [value for value in values if math.isfinite(value)]
    return form.format(of(finite)) if finite else ABSENT


def main(
    run: Annotated[bool, typer.Option("--run", help="Run the commands of the page first.")] = False,
) -> None:
    """Make the tables of docs/measurements.md anew."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    text = read_text(PAGE)
    for each in measured_tables(text) if run else ():
        absent = [str(path) for path in each.data if not path.exists()]
        if absent:
            logger.info("not run, since %s is absent: %s", absent[0], shlex.join(each.command))
            continue
        each.results.parent.mkdir(parents=True, exist_ok=True)
        logger.info("factormodels %s", shlex.join(each.command))
        subprocess.run([sys.executable, "-m", "experiments", *each.command], check=True)
    write_text(PAGE, updated(text, Path()))


if __name__ == "__main__":
    typer.run(main)
