"""A run that is killed and begun again: kill -9 at random moments, then one that may finish.

Called as `python -m tests.experiments.killed_run STUDY OUT KILLS SEED`. Every attempt is a process
of its own, forked from one that has imported everything, so that little time goes into imports.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from experiments.study.parts import PARTS
from experiments.study.reading import load_study
from experiments.study.runner import StudyDesign, design, run_study
from experiments.study.units import encode
from inference import get_backend
from inference.warm_up import warm_up
from tests.experiments import strange
from tests.experiments.conftest import environment


def attempt(planned: StudyDesign, out: Path) -> int:
    """Begin or go on with a run in a process of its own, and return that process."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            run_study(planned, out, workers=1, resume=True)
            code = 0
        finally:
            os._exit(code)
    return process


def kept(out: Path) -> int:
    """Return how many units the parts of a run hold."""
    parts = (out / PARTS).glob("*/*.parquet")
    return sum(pq.read_metadata(part).num_rows for part in parts)


def main(study: Path, out: Path, kills: int, seed: int) -> list[int]:
    """Kill a run some times, then let it finish; return the units that were kept at each death.

    A third of the deaths come at any moment of an attempt's start, the others at any moment after
    it has finished something more; the last one while the files are written, if it is not too late.
    """
    generator = random.Random(seed)
    planned = design(load_study(str(study)))
    counts: list[int] = []
    while len(counts) < kills:
        process = attempt(planned, out)
        last = len(counts) == kills - 1
        if last:
            wait(process, lambda: kept(out) == sum(planned.sizes))
        elif generator.random() > 1 / 3:
            wait(process, grown(out))
        time.sleep(generator.uniform(0.0, 0.2))
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        if not last and not os.WIFSIGNALED(status):
            raise SystemExit(f"the run was over before kill {len(counts) + 1}; give it more work")
        counts.append(kept(out))
    _, status = os.waitpid(attempt(planned, out), 0)
    if status:
        raise SystemExit(f"the last attempt failed with {status}")
    return counts


def grown(out: Path) -> Callable[[], bool]:
    """Return what tells whether a run has finished something since now."""
    before = kept(out)
    return lambda: kept(out) > before


def wait(process: int, until: Callable[[], bool]) -> None:
    """Wait until something has come about, or a process has ended."""
    while (
        not until() and os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    ):
        time.sleep(0.01)


def deaths(study: Path, out: Path, kills: int, seed: int) -> list[int]:
    """Return what `main` returns, run in a process of its own: what it forks holds no thread."""
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.experiments.killed_run",
            str(study),
            str(out),
            str(kills),
            str(seed),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
        cwd=Path(__file__).resolve().parents[2],
    )
    assert result.returncode == 0, result.stderr
    return [int(text) for text in result.stdout.split()]


if __name__ == "__main__":
    # Whatever is loaded at its first use is loaded before the first fork.
    pd.DataFrame({"a": [1]}).to_csv()
    encode([])
    strange.register_all()
    import_module("scipy.optimize")
    if any(prior.learned for prior in load_study(sys.argv[1]).study.prior_settings):
        import_module("torch")
    for name in ("slow", "lbp"):
        warm_up(get_backend(name))
    records = main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(" ".join(map(str, records)) + "\n")
