"""Predicted seconds of exact inference beside the time of the processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from factormodels import FactorGraph
from factormodels.io.networks.uai_results import read_evidence
from factormodels.synthetic import chain, fr2, grid
from inference import InferenceError
from inference.exact.backend import Exact
from inference.exact.speed import speed_for
from tests.endurance import Row
from tests.factormodels.graphs import read_network

_MOST_SECONDS = 30.0
"""Predicted seconds up to which a network is measured."""


def _square(side: int, cardinality: int = 2, scale: float = 1.0) -> FactorGraph:
    return grid(side, side, coupling=scale, field=scale, cardinality=cardinality, seed=0)


DRAWN: Mapping[str, Callable[[], FactorGraph]] = {
    "chain of 500,000 variables": lambda: chain(500_000, coupling=1.0, field=1.0, seed=0),
    "chain of 2,000 variables of 200 states": lambda: chain(
        2000, coupling=1.0, field=1.0, cardinality=200, seed=0
    ),
    "grid of 16 by 16": lambda: _square(16),
    "grid of 9 by 9, four states": lambda: _square(9, 4),
    "grid of 5 by 5, sixteen states": lambda: _square(5, 16),
    "grid of 13 by 13, log potentials of thousands": lambda: _square(13, scale=1000.0),
    "grid of 7 by 7, five states, log potentials of thousands": lambda: _square(7, 5, 1000.0),
    "FR2, 25 claims, 100 contexts": lambda: fr2(25, 4, density=0.15, seed=0),
    "FR2, 28 claims, 112 contexts": lambda: fr2(28, 4, density=0.1, seed=0),
    "FR2, 18 claims, 720 contexts": lambda: fr2(18, 40, density=0.9, seed=0),
    "FR2, 22 claims, 880 contexts": lambda: fr2(22, 40, density=0.9, seed=0),
}


def predictions(data: str = "", memory_limit: int = 10**9) -> Iterator[Row]:
    """Prediction, and the time of a run in memory that an earlier one used, for drawn networks.

    Args:
        data: a folder of networks in UAI, with evidence in `NAME.uai.evid`; measured as well.
        memory_limit: bytes that tables may take.
    """
    networks = dict(DRAWN)
    for path in sorted(Path(data).glob("*.uai")) if data else ():
        networks[path.stem] = lambda path=path: read_network(path).with_evidence(  # type: ignore[misc]
            read_evidence(f"{path}.evid")
        )
    for name, make in networks.items():
        graph = make().absorb_evidence()
        try:
            way = Exact(memory_limit=memory_limit).ready(graph)
        except InferenceError:
            continue
        cost = way.cost_of(graph)
        predicted = speed_for(cost.work).seconds(cost.work._replace(fresh=0.0))
        if predicted > _MOST_SECONDS:
            continue
        seconds = float("inf")
        for _ in range(3 if predicted < 1.0 else 2):
            start = time.process_time()
            _, run = way.solve(graph, lambda: 1)
            seconds = min(seconds, time.process_time() - start)
        yield {
            "network": name,
            "method": cost.method,
            "arithmetic": "scaled" if run.scaled else "log",
            "predicted seconds": predicted,
            "processor seconds": seconds,
            "ratio": predicted / seconds,
        }
