"""Time and memory beside size, of what grows: reports, contexts, units, lines.

    python -m tests.endurance.sizes [--only NAME ...]

Each measurement is a process of its own. A line is put through the sizes of each series; `off` is
how far the largest lies above the line through the others, as a share of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from tests.experiments.conftest import environment

MOST_OFF = 0.5
"""How far the largest of a series may lie above the line through the smaller ones."""

_RUN = (
    "study: s\ndatasets:\n  - name: made\n    synthetic: {{n_responses: {size}, n_atoms: 3, "
    "contexts_per_atom: 1}}\nbackends: [{backends}]\noutputs: [csv]\n"
)


@dataclass(frozen=True)
class Series:
    """Something measured at several sizes.

    Attributes:
        name: what the table calls it.
        sizes: the sizes, increasing.
        prepare: fills a folder for a size, and returns the command that is measured.
    """

    name: str
    sizes: tuple[int, ...]
    prepare: Callable[[Path, int], Sequence[str]]


def main() -> int:
    """Measure, print the table, and return 1 if something grows faster than a line."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.sizes")
    parser.add_argument("--only", nargs="*", default=(), help="names of series")
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes, to try it out")
    given = parser.parse_args()
    sys.stdout.write("| what | size | seconds | MiB | seconds off | MiB off |\n")
    sys.stdout.write("| --- | ---: | ---: | ---: | ---: | ---: |\n")
    failed = False
    for series in SERIES:
        if given.only and series.name not in given.only:
            continue
        sizes = [max(int(size * given.share), 1) for size in series.sizes]
        # Whatever is compiled once is not counted.
        _measured(series, sizes[0])
        found = []
        for size in sizes:
            found.append(_measured(series, size))
            offs = ("", "")
            if size == sizes[-1]:
                times, memory = (_off(sizes, [one[place] for one in found]) for place in (0, 1))
                failed |= max(times, memory) > MOST_OFF
                offs = (f"{times:+.0%}", f"{memory:+.0%}")
            seconds, mebibytes = found[-1]
            sys.stdout.write(
                f"| {series.name} | {size:,} | {seconds:.1f} | {mebibytes:,.0f} | "
                f"{' | '.join(offs)} |\n"
            )
            sys.stdout.flush()
    return 1 if failed else 0


def _measured(series: Series, size: int) -> tuple[float, float]:
    """Seconds of processor time and MiB at most of a command and its processes."""
    with tempfile.TemporaryDirectory() as folder:
        # Elsewhere, since what a process measures of another one includes the room that it had when
        # it started that one.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            arguments = pool.submit(series.prepare, Path(folder), size).result()
        process = subprocess.Popen(
            [sys.executable, "-m", "experiments", *arguments],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        told = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{series.name}, {size}: {told.decode()}")
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _off(sizes: Sequence[int], values: Sequence[float]) -> float:
    """How far the last value lies above the line through the others, as a share of the line."""
    if len(sizes) < 3:
        return 0.0
    slope, start = np.polyfit(sizes[:-1], values[:-1], 1)
    expected = max(slope, 0.0) * sizes[-1] + start
    return float(values[-1] / expected - 1.0)


def _finished_run(folder: Path, size: int) -> Sequence[str]:
    text = _RUN.format(size=size, backends="exact")
    (folder / "s.yaml").write_text(text)
    subprocess.run(
        [sys.executable, "-m", "experiments", "run", "s.yaml", "--out", "made"],
        cwd=folder,
        env=environment(),
        check=True,
        capture_output=True,
    )
    return ("report", "made", "--pages", str(size))


def _units(folder: Path, size: int) -> Sequence[str]:
    (folder / "s.yaml").write_text(_RUN.format(size=size // 2, backends="exact, lbp"))
    return ("run", "s.yaml", "--out", "made")


def _contexts(folder: Path, size: int) -> Sequence[str]:
    with (folder / "graph.json").open("w") as file:
        nodes = [{"id": "a", "type": "atom", "probability": 0.5}]
        nodes += [
            {"id": f"c{number}", "type": "context", "probability": 0.9} for number in range(size)
        ]
        edges = [
            {"from": f"c{number}", "to": "a", "relation": "entailment", "probability": 0.6}
            for number in range(size)
        ]
        json.dump({"id": "r", "nodes": nodes, "edges": edges}, file)
    return ("--max-size", "1G", "infer", "graph.json", "--rows", "1")


def _lines(folder: Path, size: int) -> Sequence[str]:
    line = (
        '{"id": "r%d", "response": "' + "x" * 900 + '", "nodes": [{"id": "a", "type": "atom", '
        '"probability": 0.5}], "edges": []}\n'
    )
    with (folder / "many.jsonl").open("w") as file:
        for number in range(size):
            file.write(line % number)
    return ("infer", "many.jsonl", "--response", "r0")


SERIES = (
    Series("report, responses", (500, 1_000, 2_000, 5_000), _finished_run),
    Series("infer, contexts of one claim", (10_000, 100_000, 300_000, 1_000_000), _contexts),
    Series("run, units", (10_000, 30_000, 100_000), _units),
    Series("infer of a JSON Lines file, kilobytes", (100_000, 300_000, 1_000_000), _lines),
)


if __name__ == "__main__":
    sys.exit(main())
