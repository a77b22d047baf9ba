"""Kill -9 at random moments, over and over: the files at the end are those of a calm run.

    python -m tests.endurance.kills [--kills 100]

`run` with one and with two workers and on a Dask cluster (whose workers and scheduler are killed as
well), `fit` and `report`. `tests.endurance.hostile_day` does the same to `assess`.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from experiments.study.rows import read_rows
from factormodels.io.result_store import STORE
from tests.experiments.conftest import environment

STUDY = """
study: s
datasets:
  - name: made
    synthetic: {n_responses: 400, n_atoms: [1, 4], contexts_per_atom: 2, density: 0.2}
variants: [FR1, FR2]
priors: [{}, {learned: {folds: 3}}]
backends: [exact, {backend: gibbs, settings: {draws: 2000}}, lbp]
significance: {pairs: [[exact, lbp]], measures: [brier], resamples: 2000}
outputs: [csv, latex, markdown]
"""
PATIENCE = 900.0
_MOST_SECONDS = 12.0
"""Kills come between the start of a process and so many seconds, or half as long as a calm run."""

_UNTOUCHED = ("manifest.json", STORE)
"""Files that tell of the run itself: their times and counts of attempts may differ."""


@dataclass(frozen=True)
class Trial:
    """A command that is killed and begun again.

    Attributes:
        name: what the table calls it.
        arguments: the command.
        again: what is added to go on.
        made: the file or folder that it makes.
        share: part of all kills that it gets.
    """

    name: str
    arguments: tuple[str, ...]
    again: tuple[str, ...]
    made: str
    share: float


_FIT = ("fit", "graphs.jsonl", "--folds", "0", "--save", "made/judge.json")
TRIALS = (
    Trial("run, 1 worker", ("run", "s.yaml", "--workers", "1"), ("--resume",), "made", 0.25),
    Trial("run, 2 workers", ("run", "s.yaml", "--workers", "2"), ("--resume",), "made", 0.25),
    Trial("run, Dask", ("run", "s.yaml", "--dask", "ADDRESS"), ("--resume",), "made", 0.2),
    Trial("report", ("report", "calm"), (), "calm/report", 0.15),
    Trial("fit", _FIT, (), "made", 0.15),
)


def main() -> int:
    """Kill, compare, print the table, and return 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.kills")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=(), help="names of trials")
    given = parser.parse_args()
    generator = random.Random(given.seed)
    sys.stdout.write("| command | kills | files | different | left behind |\n")
    sys.stdout.write("| --- | ---: | ---: | ---: | ---: |\n")
    wrong = 0
    for trial in TRIALS:
        if given.only and trial.name not in given.only:
            continue
        kills = round(given.kills * trial.share)
        with tempfile.TemporaryDirectory() as folder:
            files, different, left = tried(trial, Path(folder), kills, generator)
        wrong += len(different) + left
        sys.stdout.write(
            f"| {trial.name} | {kills} | {files} | "
            f"{len(different)} {' '.join(different)} | {left} |\n"
        )
        sys.stdout.flush()
    return 1 if wrong else 0


def tried(
    trial: Trial, folder: Path, kills: int, generator: random.Random
) -> tuple[int, list[str], int]:
    """Number of files compared, those that differ, and processes that outlived their parents."""
    (folder / "s.yaml").write_text(STUDY)
    _write_graphs(folder / "graphs.jsonl")
    calm = ["run", "s.yaml", "--out", "calm"]
    if trial.name == "fit":
        calm = [*trial.arguments[:-1], "calm/judge.json"]
        for name in ("calm", "made"):
            (folder / name).mkdir()
    begun = time.monotonic()
    _finished(_start(folder, calm))
    if trial.name == "report":
        begun = time.monotonic()
        _finished(_start(folder, trial.arguments))
        shutil.copytree(folder / "calm" / "report", folder / "undisturbed")
    longest = min(max((time.monotonic() - begun) / 2, 2.0), _MOST_SECONDS)
    left = 0
    with _cluster(trial.name == "run, Dask") as cluster:
        own = [cluster.address if word == "ADDRESS" else word for word in trial.arguments]
        own += ["--out", "made"] if own[0] == "run" else []
        for number in range(kills):
            process = _start(folder, [*own, *(trial.again if number else ())])
            # More often early than late, as what a run has kept lies behind it.
            time.sleep(generator.uniform(0.3, longest))
            children = _children(process.pid)
            cluster.disturb(generator)
            process.kill()
            process.communicate()
            left += _alive_after(children, 1.0)
        _finished(_start(folder, [*own, *(trial.again if kills else ())]))
    first, second = (
        (folder / "undisturbed", folder / trial.made)
        if trial.name == "report"
        else (folder / "calm", folder / trial.made)
    )
    names = sorted(
        str(path.relative_to(first))
        for path in first.rglob("*")
        if path.is_file() and path.name not in _UNTOUCHED
    )
    different = [
        name
        for name in names
        if not _timed(name)
        and (
            not (second / name).is_file()
            or (first / name).read_bytes() != (second / name).read_bytes()
        )
    ]
    if (first / "rows.parquet").exists():
        rows = [read_rows(place).drop(columns="seconds") for place in (first, second)]
        different += [] if rows[0].equals(rows[1]) else ["rows without their times"]
    return len(names), different, left


class Cluster:
    """A Dask scheduler with two workers, any of which may be killed and is replaced."""

    def __init__(self) -> None:
        from socket import socket

        with socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self._replace()

    def disturb(self, generator: random.Random) -> None:
        """Kill a worker or the scheduler, or neither, and start it anew."""
        place = generator.randrange(4)
        if place < len(self.processes):
            self.processes[place].kill()
            self.processes[place].wait()
            self._replace()

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            process.kill()
            process.wait()

    def _replace(self) -> None:
        port = self.address.rpartition(":")[2]
        scheduler = ["distributed.cli.dask_scheduler", "--port", port, "--dashboard-address", ":0"]
        worker = ["distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-dashboard"]
        for place, arguments in enumerate((scheduler, worker, worker)):
            if place < len(self.processes) and self.processes[place].poll() is None:
                continue
            started = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                env=environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self.processes[place : place + 1] = [started]


class NoCluster(Cluster):
    """In its place where there is none."""

    def __init__(self) -> None:
        self.address, self.processes = "", []

    def disturb(self, generator: random.Random) -> None:
        """Do nothing."""


@contextmanager
def _cluster(wanted: bool) -> Iterator[Cluster]:
    cluster = Cluster() if wanted else NoCluster()
    try:
        yield cluster
    finally:
        cluster.close()


def _write_graphs(path: Path) -> None:
    from factormodels import write_many
    from factormodels.synthetic import labelled_responses

    graphs = labelled_responses(60, n_atoms=(1, 4), contexts_per_atom=2, density=0.2, seed=0)
    write_many(graphs, path)


def _start(folder: Path, arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "experiments", *arguments],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finished(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=PATIENCE)
    if process.returncode:
        raise SystemExit(f"it ended with {process.returncode}: {errors}")


def _children(process: int) -> list[int]:
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    own = [int(word) for word in text.split()]
    return own + [grandchild for child in own for grandchild in _children(child)]


def _alive_after(processes: Sequence[int], seconds: float) -> int:
    """How many processes live on so many seconds later; these are ended."""
    end = time.monotonic() + seconds
    alive = [process for process in processes if _lives(process)]
    while alive and time.monotonic() < end:
        time.sleep(0.02)
        alive = [process for process in alive if _lives(process)]
    for process in alive:
        os.kill(process, signal.SIGKILL)
    return len(alive)


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _timed(name: str) -> bool:
    """Whether a file holds times, which differ from run to run."""
    return Path(name).name in ("times.csv", "rows.csv", "rows.parquet") or Path(name).suffix in (
        *(".pdf", ".png"),
    )


if __name__ == "__main__":
    sys.exit(main())
