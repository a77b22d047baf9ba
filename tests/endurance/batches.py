"""Batches beside single calls, in one thread and in several: microseconds of a graph, and ratios.

    python -m tests.endurance.batches [--graphs 2000] [--rounds 9] [--threads 2]

Synthetic graphs have 31 atoms and 93 contexts. Every way begins without plans, in turn within each
round; times are the best of all rounds, since what else a machine does only ever adds to them, and
ratios are those of the best times.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from unittest.mock import patch

import numpy as np

import inference.exact.planner
from factormodels import FactorGraph, datasets, variant
from factormodels.synthetic import fr1_forest, fr2
from inference import infer, infer_batch
from inference.exact.plans import KeptPlans

_SPREAD = 0.3
"""Standard deviation of what is added to the log tables of a structure."""


def _settings(graph: FactorGraph, count: int) -> list[FactorGraph]:
    random = np.random.default_rng(0)
    noise = random.normal(scale=_SPREAD, size=(count, len(graph.log_values)))
    return [graph.with_log_values(row) for row in graph.log_values + noise]


def mixes(count: int) -> Iterator[tuple[str, list[FactorGraph]]]:
    """Yield names of mixes of about `count` graphs, and the graphs."""
    make = partial(fr2, 31, 3, 0.05, own=False)
    yield "FR2, one structure", _settings(make(seed=0), count)
    yield "FR2, every structure another", [make(seed=seed) for seed in range(count)]
    several = max(1, count // 50)
    graphs = [graph for seed in range(several) for graph in _settings(make(seed=seed), 50)]
    yield f"FR2, {several} structures with 50 settings each", graphs
    yield "forests (FR1), one structure", _settings(fr1_forest(31, 3, seed=0), count)
    responses = datasets.load("factcheck-bench").graphs[:count]
    graphs = [variant(response, "FR2").to_factor_graph() for response in responses]
    yield f"{len(graphs)} responses of Factcheck-Bench, FR2", graphs


def measured(graphs: list[FactorGraph], backend: str, threads: int, rounds: int) -> list[float]:
    """Microseconds a graph of single calls, one thread and several; then two ratios.

    The ratios are of single calls to one thread, and of one thread to several.
    """
    ways: list[Callable[[], object]] = [
        lambda: [infer(graph, backend) for graph in graphs],
        lambda: infer_batch(graphs, backend, threads=1),
        lambda: infer_batch(graphs, backend, threads=threads),
    ]
    taken = np.empty((rounds, len(ways)))
    for number in range(rounds):
        for way in np.roll(np.arange(len(ways)), number).tolist():
            gc.collect()
            with patch.object(inference.exact.planner, "KEPT", KeptPlans()):
                start = time.perf_counter()
                answers = ways[way]()
                taken[number, way] = time.perf_counter() - start
            del answers  # Letting go of them is no part of answering.
    times = taken.min(axis=0) * 1e6 / len(graphs)
    return [*times.tolist(), *(times[:2] / times[1:]).tolist()]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.batches")
    parser.add_argument("--graphs", type=int, default=2000, help="of every mix")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backend", choices=("exact", "lbp"), nargs="+", default=["exact", "lbp"])
    asked = parser.parse_args()
    sys.stdout.write(
        f"| backend | graphs | `infer`, µs | one thread, µs | {asked.threads} threads, µs "
        f"| `infer` : one thread | one thread : {asked.threads} threads |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
    )
    for name, graphs in mixes(asked.graphs):
        for backend in asked.backend:
            infer_batch(graphs[:200], backend, threads=asked.threads)
            *times, alone, shared = measured(graphs, backend, asked.threads, asked.rounds)
            numbers = " | ".join(f"{value:.0f}" for value in times)
            sys.stdout.write(f"| `{backend}` | {name} | {numbers} | {alone:.2f} | {shared:.2f} |\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
