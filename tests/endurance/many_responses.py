"""What a study of many responses takes: processor time by part, memory of every process, storage.

    python -m tests.endurance.many_responses --responses 100000 1000000 [--workers 2 | --dask]

The study is that of `docs/guide/scale.md`. Its command runs in a process of its own; this one looks
at it and at its workers ten times a second. With `--dask` the workers are two processes of a
cluster that this process starts, so that the scheduler's time is this process's own. Of two sizes
or more the last column is the slope between the first and the last: what one more response takes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from factormodels.io.result_store import STORE
from tests.experiments.conftest import environment

STUDY = """
study: scale
datasets:
  - name: synthetic
    synthetic: {{n_responses: {size}, n_atoms: [3, 6], contexts_per_atom: 2, density: 0.1}}
backends: [exact]
"""

DATA, UNITS, FILES = "data", "units", "files"
PARTS = (DATA, UNITS, FILES)

_EVERY = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 2**20


@dataclass
class Taken:
    """What a study took.

    Attributes:
        seconds: by the clock, by part.
        first: processor time of the first process in seconds, by part.
        workers: processor time of each worker in seconds.
        scheduler: processor time of this process meanwhile, which with Dask schedules.
        first_peak: peak resident memory of the first process in bytes, by part.
        anonymous_peak: of that what is no page of a file, which the system could take back.
        worker_peak: the largest peak memory of a worker, in bytes.
        sizes: bytes of the files, by name; `data` is the temporary file of the responses.
        rows: rows that the study wrote.
    """

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    first: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    workers: list[float] = field(default_factory=list)
    scheduler: float = 0.0
    first_peak: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    anonymous_peak: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    worker_peak: float = 0.0
    sizes: dict[str, float] = field(default_factory=dict)
    rows: int = 0


def measure(responses: int, workers: int, *, dask: bool) -> Taken:
    """Run the study of some responses, and return what it took.

    Args:
        responses: number of responses.
        workers: processes that run its units.
        dask: whether they are those of a Dask cluster on this machine.

    Raises:
        RuntimeError: if the command fails.
    """
    with tempfile.TemporaryDirectory() as place, _cluster(workers if dask else 0) as address:
        folder = Path(place)
        (folder / "scale.yaml").write_text(STUDY.format(size=responses), encoding="utf-8")
        where = ("--dask", address) if dask else ("--workers", str(workers))
        before = time.process_time()
        command = (sys.executable, "-m", "factormodels", "run", "scale.yaml", *where)
        with (folder / "told").open("w", encoding="utf-8") as told:
            process = subprocess.Popen(
                [*command, "--out", "out"], cwd=folder, env=environment(), stdout=told, stderr=told
            )
        taken = _watched(process, folder, cluster=os.getpid() if dask else None)
        taken.scheduler = time.process_time() - before
        if process.returncode:
            raise RuntimeError((folder / "told").read_text(encoding="utf-8"))
        taken.sizes[STORE] = (folder / "out" / STORE).stat().st_size
        for name in ("rows.parquet", "rows.csv"):
            taken.sizes[name] = (folder / "out" / name).stat().st_size
        parquet: Any = import_module("pyarrow.parquet")
        taken.rows = parquet.ParquetFile(folder / "out" / "rows.parquet").metadata.num_rows
        return taken


@contextmanager
def _cluster(workers: int) -> Iterator[str]:
    """The address of a Dask cluster of so many processes; of none if 0."""
    if not workers:
        yield ""
        return
    distributed: Any = import_module("distributed")
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield str(cluster.scheduler_address)


def _watched(process: subprocess.Popen[bytes], folder: Path, cluster: int | None) -> Taken:
    """Look at a study until it ends.

    Args:
        process: its first process.
        folder: where it writes `out`.
        cluster: the process whose children are its workers; None: the first one.
    """
    taken = Taken()
    elder = set() if cluster is None else _children(cluster) - {process.pid}
    # What workers of a cluster took before the study is not the study's.
    earlier = {one: _processor(one) for one in elder}
    found: dict[int, float] = {}
    last, spent = time.monotonic(), 0.0
    while process.poll() is None:
        part = _part(folder)
        now, total = time.monotonic(), _processor(process.pid)
        taken.seconds[part] += now - last
        taken.first[part] += max(total - spent, 0.0)
        last, spent = now, max(total, spent)
        for name, peak in (("VmRSS", taken.first_peak), ("RssAnon", taken.anonymous_peak)):
            peak[part] = max(peak[part], _memory(process.pid, name))
        taken.sizes["data"] = max(taken.sizes.get("data", 0.0), _deleted_bytes(process.pid))
        for worker in _children(process.pid) if cluster is None else elder:
            found[worker] = max(_processor(worker) - earlier.get(worker, 0.0), found.get(worker, 0))
            taken.worker_peak = max(taken.worker_peak, _memory(worker, "VmHWM"))
        time.sleep(_EVERY)
    # A process that only watches over the others takes next to nothing.
    taken.workers = sorted(seconds for seconds in found.values() if seconds >= 0.5)
    return taken


def _part(folder: Path) -> str:
    """What the study is at, as its folder tells."""
    if any(folder.glob(".out.*")) or (folder / "out" / "manifest.json").exists():
        return FILES
    return UNITS if (folder / "out" / STORE).exists() else DATA


def _children(process: int) -> set[int]:
    """A process's children and theirs."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                found |= {int(one) for one in (thread / "children").read_text().split()}
    return found.union(*(_children(one) for one in found))


def _processor(process: int) -> float:
    """Seconds of processor time that a process has taken; 0 if it is gone."""
    try:
        # The name, which stands in brackets, may hold anything.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(process: int, name: str) -> float:
    """Bytes of memory of a process, by its name in the status; 0 if it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return float(line.split()[1]) * 1024
    return 0.0


def _deleted_bytes(process: int) -> float:
    """Size of the largest file that a process has open and that has no name."""
    largest = 0.0
    with suppress(OSError):
        for link in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                name = str(link.readlink())
                # Not what numerical libraries map to share.
                if name.endswith("(deleted)") and not name.startswith(("/dev/", "/memfd:")):
                    largest = max(largest, float(link.stat().st_size))
    return largest


def table(found: Mapping[int, Taken]) -> str:
    """What studies took as Markdown, by number of responses."""
    sizes = sorted(found)
    heads = [f"{size:,} responses" for size in sizes]
    lines: list[tuple[str, list[float], str]] = []

    def add(title: str, values: list[float], unit: str) -> None:
        lines.append((title, values, unit))

    taken = [found[size] for size in sizes]
    for part in PARTS:
        add(f"first process, {part}", [one.first[part] for one in taken], "s")
    add("workers together", [sum(one.workers) for one in taken], "s")
    add("this process (with Dask: the scheduler)", [one.scheduler for one in taken], "s")
    for part in PARTS:
        add(f"by the clock, {part}", [one.seconds[part] for one in taken], "s")
    for part in PARTS:
        add(
            f"anonymous memory of the first process, {part}",
            [x.anonymous_peak[part] for x in taken],
            "B",
        )
    for part in PARTS:
        add(f"the same with pages of files, {part}", [x.first_peak[part] for x in taken], "B")
    add("peak memory of a worker", [one.worker_peak for one in taken], "B")
    for name in ("data", STORE, "rows.parquet", "rows.csv"):
        title = "temporary file of the responses" if name == "data" else name
        add(title, [one.sizes.get(name, 0.0) for one in taken], "B")
    slope = len(sizes) > 1
    text = [
        f"| | {' | '.join([*heads, *(['one more response'] if slope else [])])} |",
        f"| --- |{' ---: |' * (len(sizes) + slope)}",
    ]
    for title, values, unit in lines:
        shown = [f"{v:,.1f} s" if unit == "s" else f"{v / _MIB:,.0f} MiB" for v in values]
        if slope:
            each = (values[-1] - values[0]) / (sizes[-1] - sizes[0])
            shown.append(f"{1e6 * each:,.1f} µs" if unit == "s" else f"{each:,.0f} B")
        text.append(f"| {title} | {' | '.join(shown)} |")
    rates = []
    for one in taken:
        rates.append(f"{one.rows / sum(one.seconds.values()):,.0f}")
    text.append(f"| rows a second by the clock | {' | '.join(rates + [''] * slope)} |")
    return "\n".join(text)


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.many_responses")
    parser.add_argument("--responses", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dask", action="store_true", help="on a Dask cluster of this machine")
    given = parser.parse_args()
    found = {}
    for size in given.responses:
        found[size] = measure(size, given.workers, dask=given.dask)
        # Each as soon as it is known: a million take long.
        sys.stderr.write(f"{table({size: found[size]})}\n")
    sys.stdout.write(f"{table(found)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
