"""What runs in the process of one algorithm: loading, building, the first call, warm calls."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.bench.algorithms import Algorithm
from experiments.bench.answers import Answer
from experiments.bench.batches import union
from experiments.run.child import status_bytes
from factormodels.factor_graph import FactorGraph

TURN_SECONDS = 0.05
"""A turn of a fast algorithm repeats its call until it has taken about so long."""

_MOST_CALLS = 1000


@dataclass(frozen=True)
class FirstCall:
    """The first call of an algorithm on a graph.

    Attributes:
        seconds: what it took.
        answer: what it found.
        peak_bytes: largest memory of the process since it was loaded, beyond what it took then;
            None where the system does not tell. Meaningful in a process that ran nothing before.
    """

    seconds: float
    answer: Answer
    peak_bytes: int | None


def load(kept: dict[str, Any], algorithm: Algorithm) -> float:
    """Load the libraries of an algorithm and return the seconds it took."""
    start = time.perf_counter()
    algorithm.load()
    seconds = time.perf_counter() - start
    kept["algorithm"] = algorithm
    gc.collect()
    with suppress(OSError):
        # Linux forgets the peak of a process that writes a 5 here.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    kept["resident"] = status_bytes("VmRSS")
    return seconds


def build(kept: dict[str, Any], batch: bool, graphs: Sequence[FactorGraph]) -> float:
    """Make the algorithm's model of a graph and return the seconds it took.

    Args:
        batch: whether the algorithm takes several graphs; if not, they are put side by side.
        graphs: the graphs, or the one.
    """
    # What was prepared for the graph before goes first.
    kept.pop("prepared", None)
    gc.collect()
    model = graphs if batch else union(graphs)
    start = time.perf_counter()
    kept["prepared"] = kept["algorithm"].prepare(model)
    return time.perf_counter() - start


def first_call(kept: dict[str, Any]) -> FirstCall:
    """Run the algorithm once."""
    prepared = kept["prepared"]
    seconds, result = _timed(prepared.run)
    peak, resident = status_bytes("VmHWM"), kept["resident"]
    return FirstCall(
        seconds=seconds,
        answer=prepared.read(result),
        peak_bytes=None if peak is None or resident is None else max(peak - resident, 0),
    )


def turn(kept: dict[str, Any], expected: float) -> tuple[float, int]:
    """Run the algorithm for a turn and return seconds per call and the number of calls.

    The processor's caches hold another algorithm's data at the beginning of a turn, which is no
    part of a warm call: a call that is fast enough is made once before it is timed.

    Args:
        expected: seconds that a call is known to take.
    """
    run = kept["prepared"].run
    calls = min(max(math.ceil(TURN_SECONDS / max(expected, 1e-9)), 1), _MOST_CALLS)
    if calls > 1:
        run()
    gc.collect()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls, calls


def _timed(run: Any) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result
