"""Runs, reports and fits: killed and grown."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, suppress
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil
import pyarrow.parquet as pq

from experiments.study.parts import PARTS
from experiments.study.rows import read_rows
from factormodels import write_many
from factormodels.io.store.results import STORE
from factormodels.synthetic import labeled_responses
from tests.endurance import Row
from tests.endurance.assessments import write_batch
from tests.experiments.conftest import begin, call, cluster_here

_STUDY = """
study: s
datasets: [{name: made, synthetic: {n_responses: RESPONSES, n_atoms: [1, 4],
  contexts_per_atom: 2, density: 0.2}}]
backends: [exact, {backend: gibbs, settings: {draws: 2000}}]
variants: [FR1, FR2]
priors: [{}, {learned: {folds: 3}}]
significance: {pairs: [[exact, gibbs draws=2000]], measures: [brier], resamples: 2000}
outputs: [csv, latex, markdown]
"""
_RUN = ("run", "s.yaml", "--out", "made")
TRIALS: dict[str, tuple[tuple[str, ...], tuple[str, ...], float]] = {
    "run with one worker": ((*_RUN, "--workers", "1"), ("--resume",), 0.2),
    "run with two workers": ((*_RUN, "--workers", "2"), ("--resume",), 0.2),
    "run with Dask": ((*_RUN, "--dask", "ADDRESS"), ("--resume",), 0.2),
    "assess": (("assess", "batch.jsonl", "--documents", "notes", "--out", "made"), (), 0.15),
    "report": (("report", "made"), (), 0.1),
    "fit": (("fit", "graphs.jsonl", "--folds", "0", "--save", "made/judge.json"), (), 0.15),
}
"""Commands that are killed, what is added to go on, and the part of all kills that each gets."""

_MOST_SECONDS = 12.0
"""Kills come between the start of a process and so many seconds, or half as long as a calm run."""

_DIFFERENT_ANYWAY = ("manifest.json", STORE, "times.csv", "rows.csv", "rows.parquet")
"""Files that tell of the run itself, or hold times."""

_EARLIER = re.compile(rb',\s*"[^"]* finished by an earlier run[^"]*"')
"""The finding that says what a resumed command did not do again."""


def kills(
    number: int = 100, seed: int = 0, only: tuple[str, ...] = tuple(TRIALS), responses: int = 400
) -> Iterator[Row]:
    """Kill -9 at random moments, over and over: the files at the end are those of a calm run."""
    generator = random.Random(seed)
    graphs = labeled_responses(60, n_atoms=(1, 4), contexts_per_atom=2, density=0.2, seed=0)
    for name in only:
        arguments, again, share = TRIALS[name]
        with TemporaryDirectory() as first, TemporaryDirectory() as other:
            calm, killed = Path(first), Path(other)
            for folder in (calm, killed):
                (folder / "s.yaml").write_text(_STUDY.replace("RESPONSES", str(responses)))
                write_many(graphs, folder / "graphs.jsonl")
                write_batch(folder, responses)
                (folder / "made").mkdir()
                if name == "report":
                    done(folder, *_RUN, "--workers", "2", "--overwrite")
            begun = time.monotonic()
            here = {"--dask": "--workers", "ADDRESS": "2"}
            done(calm, *(here.get(word, word) for word in arguments))
            longest = min(max((time.monotonic() - begun) / 2, 2.0), _MOST_SECONDS)
            count, left = round(number * share), 0
            clustered = cluster_here(2, processes=True) if "Dask" in name else nullcontext("")
            with clustered as address:
                words = [word.replace("ADDRESS", address) for word in arguments]
                for attempt in range(count):
                    process = begin(killed, *words, *(again if attempt else ()))
                    time.sleep(generator.uniform(0.3, longest))
                    with suppress(psutil.NoSuchProcess):
                        children = psutil.Process(process.pid).children(recursive=True)
                    if workers := set(psutil.Process().children()) - {psutil.Process(process.pid)}:
                        # The cluster replaces a worker that dies.
                        generator.choice(sorted(workers, key=lambda process: process.pid)).kill()
                    process.kill()
                    process.wait()
                    alive = psutil.wait_procs(children, timeout=1.0)[1]
                    left += len(alive)
                    for child in alive:
                        child.kill()
                done(killed, *words, *(again if count else ()))
            files, different = _compared(calm / "made", killed / "made")
            yield {
                **{"command": name, "kills": count, "files": files, "left behind": left},
                **{"different": ", ".join(different), "right": not different and not left},
            }


def done(folder: Path, *arguments: str) -> None:
    """Run a command that must succeed."""
    finished = call(*arguments, cwd=folder)
    if finished.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed: {finished.stdout}{finished.stderr}")


def _compared(first: Path, second: Path) -> tuple[int, list[str]]:
    """Number of files in a folder, and names of files that another folder lacks or has changed."""
    paths = [path for path in first.rglob("*") if path.is_file()]
    different = []
    for path in paths:
        other = second / path.relative_to(first)
        if path.name in _DIFFERENT_ANYWAY or path.suffix in (".pdf", ".png"):
            continue
        if PARTS in path.parts:
            continue
        if not other.is_file() or _content(path) != _content(other):
            different.append(str(path.relative_to(first)))
    if (first / "rows.parquet").exists():
        rows = [read_rows(folder).drop(columns="seconds") for folder in (first, second)]
        different += [] if rows[0].equals(rows[1]) else ["rows without their times"]
    return len(paths), different


def _content(path: Path) -> bytes:
    """Bytes of a file; of findings without the sentence that an earlier run finished some."""
    content = path.read_bytes()
    return _EARLIER.sub(b"", content) if path.name == "findings.json" else content


def _report(folder: Path, size: int) -> tuple[str, ...]:
    made = f"{{name: made, synthetic: {{n_responses: {size}, n_atoms: 3, contexts_per_atom: 1}}}}"
    rest = "backends: [exact]\noutputs: [csv]\n"
    (folder / "s.yaml").write_text(f"study: s\ndatasets: [{made}]\n{rest}")
    done(folder, "run", "s.yaml", "--out", "made")
    return ("report", "made", "--first", str(size))


def _contexts(folder: Path, size: int) -> tuple[str, ...]:
    names = [f"c{number}" for number in range(size)]
    nodes = [{"id": "a", "type": "atom", "probability": 0.5}]
    nodes += [{"id": name, "type": "context", "probability": 0.9} for name in names]
    relation = {"to": "a", "relation": "entailment", "probability": 0.6}
    edges = [{"from": name, **relation} for name in names]
    (folder / "graph.json").write_text(json.dumps({"id": "r", "nodes": nodes, "edges": edges}))
    return ("--max-size", "1G", "infer", "graph.json")


def _lines(folder: Path, size: int) -> tuple[str, ...]:
    atom = {"id": "a", "type": "atom", "probability": 0.5}
    record = {"response": "x" * 900, "nodes": [atom], "edges": []}
    with (folder / "many.jsonl").open("w") as file:
        for number in range(size):
            file.write(json.dumps({"id": f"r{number}", **record}) + "\n")
    return ("infer", "many.jsonl", "--response", "r0")


SERIES: dict[str, tuple[tuple[int, ...], Callable[[Path, int], tuple[str, ...]]]] = {
    "report of responses": ((500, 1_000, 2_000, 5_000), _report),
    "infer of contexts": ((10_000, 100_000, 300_000, 1_000_000), _contexts),
    "infer of kilobytes of JSON Lines": ((100_000, 300_000, 1_000_000), _lines),
}
"""Sizes, and what fills a folder for one and returns the command that is measured."""

_MOST_OFF = 0.5
"""How far the largest of a series may lie above the line through the smaller ones."""


def sizes(only: tuple[str, ...] = tuple(SERIES), share: float = 1.0) -> Iterator[Row]:
    """Time and memory beside size, of what grows; `off`: the largest above the others' line."""
    for name in only:
        sizes_of_parts = [max(int(size * share), 1) for size in SERIES[name][0]]
        # Whatever is compiled once is not counted.
        _taken(name, sizes_of_parts[0])
        taken = []
        for size in sizes_of_parts:
            taken.append(_taken(name, size))
            yield {"what": name, "size": size, "seconds": taken[-1][0], "MiB": taken[-1][1]}
        off = []
        for values in zip(*taken, strict=True):
            slope, start = np.polyfit(sizes_of_parts[:-1], values[:-1], 1)
            off.append(float(values[-1] / (max(slope, 0.0) * sizes_of_parts[-1] + start) - 1.0))
        shown = {"seconds": f"{off[0]:+.0%}", "MiB": f"{off[1]:+.0%}"}
        yield {"what": name, "size": "off", **shown, "right": max(off) <= _MOST_OFF}


def _taken(name: str, size: int) -> tuple[float, float]:
    """Seconds of processor time and MiB at most of a command and its processes."""
    with TemporaryDirectory() as folder:
        # Elsewhere, since what a process measures of another one includes the room that it had when
        # it started that one.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            arguments = pool.submit(SERIES[name][1], Path(folder), size).result()
        process = begin(Path(folder), *arguments)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{name}, {size}: {' '.join(arguments)} failed")
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


_SCALE = """
study: scale
datasets:
  - name: synthetic
    synthetic: {{n_responses: {size}, n_atoms: [3, 6], contexts_per_atom: 2, density: 0.1}}
backends: [exact]
"""
STAGES = ("data", "units", "files")


def many_responses(
    responses: tuple[int, ...] = (100_000, 1_000_000), workers: int = 2, dask: bool = False
) -> Iterator[Row]:
    """Cost of a study of many responses, by part; the last column is the slope between sizes."""
    measured = [measure(size, workers, dask=dask) for size in responses]
    for what in dict.fromkeys(name for parts in measured for name in parts):
        values = [parts.get(what, 0.0) for parts in measured]
        slope = (values[-1] - values[0]) / max(responses[-1] - responses[0], 1)
        yield {"": what, **dict(zip(map(str, responses), values, strict=True))} | {
            "a million more": 1e6 * slope
        }


def measure(responses: int, workers: int, *, dask: bool = False) -> dict[str, float]:
    """Run the study of some responses; seconds and MiB by what they are of, and rows."""
    taken: dict[str, float] = defaultdict(float)
    clustered = cluster_here(workers, processes=True) if dask else nullcontext("")
    with TemporaryDirectory() as temporary, clustered as address:
        folder, began = Path(temporary), time.process_time()
        (folder / "scale.yaml").write_text(_SCALE.format(size=responses))
        where = ("--dask", address) if dask else ("--workers", str(workers))
        process = begin(folder, "run", "scale.yaml", *where, "--out", "out")
        first = psutil.Process(process.pid)
        elder = psutil.Process() if dask else first
        # What workers of a cluster took before the study is not the study's.
        earlier = {child.pid: _seconds(child) for child in elder.children(recursive=True)}
        seconds_of: dict[int, float] = {}
        last, spent = time.monotonic(), 0.0
        while process.poll() is None:
            part = _part(folder)
            with suppress(psutil.NoSuchProcess):
                memory, so_far = first.memory_info(), _seconds(first)
                now = time.monotonic()
                taken[f"by the clock, {part}, s"] += now - last
                taken[f"first process, {part}, s"] += so_far - spent
                last, spent = now, so_far
                name = f"first process, {part}, MiB"
                taken[name] = max(taken[name], memory.rss / 2**20)
                for worker in set(elder.children(recursive=True)) - {first}:
                    seconds = _seconds(worker) - earlier.get(worker.pid, 0.0)
                    seconds_of[worker.pid] = max(seconds, seconds_of.get(worker.pid, 0.0))
                    largest = max(taken["a worker, MiB"], worker.memory_info().rss / 2**20)
                    taken["a worker, MiB"] = largest
            time.sleep(0.1)
        if process.returncode:
            raise RuntimeError("the study failed")
        taken["workers, s"] = sum(seconds_of.values())
        taken["this process (with Dask: the scheduler), s"] = time.process_time() - began
        for name in (f"{PARTS}/*/*", "rows.parquet", "rows.csv"):
            sizes = (path.stat().st_size for path in (folder / "out").glob(name))
            taken[f"{name}, MiB"] = sum(sizes) / 2**20
        taken["rows"] = pq.ParquetFile(folder / "out" / "rows.parquet").metadata.num_rows
        clock = sum(taken[f"by the clock, {part}, s"] for part in STAGES)
        taken["rows a second by the clock"] = taken["rows"] / clock
    return taken


def _part(folder: Path) -> str:
    """Current part of the study, from its folder."""
    if any(folder.glob(".out.*")) or (folder / "out" / "manifest.json").exists():
        return "files"
    return "units" if (folder / "out" / STORE).exists() else "data"


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
