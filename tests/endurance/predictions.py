"""Predicted seconds of exact inference beside the time of the processor, and what `auto` makes of
them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from factormodels import FactorGraph
from factormodels.factor_graph import UNOBSERVED
from factormodels.io.networks.uai_results import read_evidence
from factormodels.synthetic import chain, fr2, grid
from inference import InferenceError, Status, infer
from inference.exact.backend import Exact
from inference.exact.speed import speed_for
from inference.kernels.preparation import PREPARATION
from inference.possible_states import possible_states
from tests.endurance import Row
from tests.endurance.marginals import Tables, pedigree
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


def detections(seed: int, *, variables: int, width: int, states: int) -> FactorGraph:
    """Random pairs of variables with many states, as in object detection, of known width.

    Each variable joins a clique of `width` earlier ones, and nine in ten of these pairs have a
    table.
    """
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for j in range(width + 1) for i in range(j)]
    cliques = [list(range(width + 1))]
    for new in range(width + 1, variables):
        clique = cliques[int(rng.integers(len(cliques)))]
        kept = sorted(rng.choice(clique, width, replace=False).tolist())
        pairs += [(old, new) for old in kept]
        cliques.append([*kept, new])
    factors: Tables = [((v,), rng.uniform(-5.0, 0.0, states)) for v in range(variables)]
    factors += [
        (pair, rng.uniform(-5.0, 0.0, (states, states))) for pair in pairs if rng.random() < 0.9
    ]
    return FactorGraph.from_factors([states] * variables, factors, log=True)


NEAR_MISSES: Mapping[str, Callable[[], FactorGraph]] = {
    "object detection, 60 variables of 11 states, width 5": lambda: detections(
        0, variables=60, width=5, states=11
    ),
    "object detection, 60 variables of 16 states, width 4": lambda: detections(
        0, variables=60, width=4, states=16
    ),
    "object detection, 60 variables of 16 states, width 5": lambda: detections(
        0, variables=60, width=5, states=16
    ),
    "object detection, 60 variables of 21 states, width 5": lambda: detections(
        0, variables=60, width=5, states=21
    ),
    "object detection, 60 variables of 11 states, width 7": lambda: detections(
        0, variables=60, width=7, states=11
    ),
    "pedigree of 60 at 2 loci, parents among 5": lambda: pedigree(
        0, people=60, loci=2, rare=0.01, near=5
    ),
    "pedigree of 60 at 2 loci, parents among 5, another draw": lambda: pedigree(
        1, people=60, loci=2, rare=0.01, near=5
    ),
    "pedigree of 100 at 1 locus, parents among 16": lambda: pedigree(
        0, people=100, loci=1, rare=0.01, near=16
    ),
    "pedigree of 60 at 2 loci, parents among 6": lambda: pedigree(
        0, people=60, loci=2, rare=0.01, near=6
    ),
    "pedigree of 60 at 3 loci, parents among 4": lambda: pedigree(
        0, people=60, loci=3, rare=0.01, near=4
    ),
}
"""Networks like those of linkage analysis and object detection, on both sides of what fits."""


def predictions(data: str = "", memory_limit: int = 10**9) -> Iterator[Row]:
    """Prediction, and the time of a run in memory that an earlier one used, for drawn networks.

    Args:
        data: a folder of networks in UAI, with evidence in `NAME.uai.evid`; measured as well.
        memory_limit: bytes that tables may take.
    """
    for name, make in {**DRAWN, **NEAR_MISSES, **_files(data)}.items():
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


def near_misses(
    data: str = "",
    seconds: float = 60.0,
    memory_limit: int = 2 * 10**9,
    observed: Sequence[int] = (),
    seed: int = 0,
    drawn: bool = True,
    processors: int = 0,
) -> Iterator[Row]:
    """Answers of `auto` for networks that nearly take too much: exact wherever the prediction fits.

    A row is right if exact inference answered, or the reason names a method that does not fit the
    memory or is predicted to take too long.

    Args:
        data: a folder of networks, as of `predictions`.
        seconds: limit of time.
        memory_limit: bytes that tables may take.
        observed: numbers of variables to observe in a network of the folder, each of which makes
            another network; without any, the networks are as they are.
        seed: seed of the choice of these variables.
        drawn: whether networks are drawn.
        processors: number of idle processors as whose time the limit is counted; 0: the limit is
            of wall time.
    """
    networks: dict[str, Callable[[], FactorGraph]] = dict(NEAR_MISSES) if drawn else {}
    for name, make in _files(data).items():
        if not observed:
            networks[name] = make
        for count in observed:
            networks[f"{name}, {count} observed"] = partial(_partly_observed, make, count, seed)
    for name, make in networks.items():
        graph = make()
        begun, start = time.perf_counter() - PREPARATION.seconds, PREPARATION.process_clock()
        with _counted(processors):
            posterior = infer(graph, "auto", seconds=seconds, memory_limit=memory_limit)
        took = time.perf_counter() - PREPARATION.seconds - begun
        spent = PREPARATION.process_clock() - start
        stats = posterior.stats
        exact, reason = posterior.status is Status.EXACT, stats["reason"]
        yield {
            "network": name,
            "status": str(posterior.status),
            "reason": reason,
            "gap": stats["gap"],
            "processor seconds": spent,
            "wall seconds": took,
            "right": exact or "is predicted to take" in reason or "are allowed" in reason,
        }


def _counted(processors: int) -> AbstractContextManager[object]:
    """Return a context in which limits are of the time of some idle processors, unless 0."""
    if not processors:
        return nullcontext()
    return patch("inference.stop._clock", lambda: PREPARATION.process_clock() / processors)


def _partly_observed(make: Callable[[], FactorGraph], count: int, seed: int) -> FactorGraph:
    """Return a network with some of its variables observed in a mode of mean field."""
    graph = make().absorb_evidence()
    support = possible_states(graph)
    fit = infer(support.graph, "cavi", seed=0, restarts=4)
    starts = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    likely = np.split(support.expand(fit.marginals.flat), starts[1:])
    mode = np.array([np.argmax(vector) for vector in likely])
    variables = np.random.default_rng(seed).permutation(graph.n_variables)[:count]
    evidence = np.full(graph.n_variables, UNOBSERVED)
    evidence[variables] = mode[variables]
    return replace(graph, evidence=evidence)


def _files(data: str) -> dict[str, Callable[[], FactorGraph]]:
    """Return the networks of a folder by name, each with its evidence."""
    return {
        path.stem: lambda path=path: read_network(path).with_evidence(  # type: ignore[misc]
            read_evidence(f"{path}.evid")
        )
        for path in (sorted(Path(data).glob("*.uai")) if data else ())
    }
