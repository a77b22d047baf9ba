"""Estimates of log Z by `auto` where exact inference is refused, beside the known answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from factormodels import FactorGraph
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition
from factormodels.synthetic import fr2, fr3, grid, random_graph
from inference import infer
from inference.anytime import improve
from inference.exact.backend import Exact
from inference.kernels.preparation import PREPARATION
from inference.stop import Stop
from tests.endurance import Row
from tests.endurance.marginals import Tables, pedigree
from tests.endurance.predictions import detections
from tests.factormodels.graphs import read_network

_PROCESSORS = 2
"""Number of lanes, each of which has a processor of a quiet machine."""

_SHARE = 4.0
"""How many times as much memory as is allowed exact inference takes at least."""

_MOST_ERRORS = 3.0

_DIGITS = 1e-6
"""Relative rounding of log Z in files."""

Make = Callable[[int], FactorGraph]


def _square(seed: int, side: int, log_range: float) -> FactorGraph:
    return grid(side, side, coupling=log_range, field=0.3 * log_range, seed=seed)


def _sparse(seed: int, variables: int, pairs: int, log_range: float) -> FactorGraph:
    rng = np.random.default_rng(seed)
    factors: Tables = [((v,), rng.uniform(-log_range, log_range, 2)) for v in range(variables)]
    factors += [
        (rng.choice(variables, 2, replace=False).tolist(), table)
        for table in rng.uniform(-log_range, log_range, (pairs, 2, 2))
    ]
    return FactorGraph.from_factors([2] * variables, factors, log=True)


def _findings(seed: int, causes: int, findings: int) -> FactorGraph:
    """Return rare causes and observed findings of four causes each, by noisy-or."""
    rng = np.random.default_rng(seed)
    factors: Tables = [((v,), np.log([0.95, 0.05])) for v in range(causes)]
    on = np.indices((2,) * 4).reshape(4, -1)
    for _ in range(findings):
        scope = sorted(rng.choice(causes, 4, replace=False).tolist())
        nothing = np.log(rng.uniform(0.05, 0.8, 4)) @ on - 0.05
        table = np.log(-np.expm1(nothing)) if rng.random() < 0.4 else nothing
        factors.append((scope, np.asarray(table, dtype=np.float64).reshape((2,) * 4)))
    return FactorGraph.from_factors([2] * causes, factors, log=True)


def _zeros(seed: int, log_range: float) -> FactorGraph:
    return random_graph(
        54, 90, min_arity=2, max_arity=3, min_cardinality=2, max_cardinality=3,
        zero_probability=0.3, log_range=log_range, seed=seed,
    )  # fmt: skip


DRAWN: Mapping[str, Make] = {
    "grid of 16 by 16, log potentials up to .5": partial(_square, side=16, log_range=0.5),
    "grid of 16 by 16, log potentials up to 3": partial(_square, side=16, log_range=3.0),
    "FR2, 25 claims, 100 contexts": lambda seed: fr2(25, 4, density=0.15, seed=seed),
    "FR3, 22 claims, 66 contexts": lambda seed: fr3(
        22, 3, density=0.1, context_density=0.02, seed=seed
    ),
    "noisy-or, 44 causes, 44 findings": partial(_findings, causes=44, findings=44),
    "120 variables, 215 pairs, log potentials up to 1": partial(
        _sparse, variables=120, pairs=215, log_range=1.0
    ),
    "120 variables, 215 pairs, log potentials up to 5": partial(
        _sparse, variables=120, pairs=215, log_range=5.0
    ),
    "54 variables, a third of the entries zero": partial(_zeros, log_range=2.0),
    "object detection, 60 variables of 11 states": partial(
        detections, variables=60, width=5, states=11
    ),
    "pedigree of 60 at 2 loci": partial(pedigree, people=60, loci=2, rare=0.01, near=4),
}
"""Networks that exact inference solves in seconds with enough memory."""


def wide(
    data: str = "",
    seconds: float = 5.0,
    seed: int = 0,
    drawn: bool = True,
    memory_limit: int = 2 * 10**9,
) -> Iterator[Row]:
    """Estimates of log Z and how many of their standard errors they are off, or why they have none.

    Exact inference is refused, whatever it would take, so that its answer is the reference. Time is
    processor time, as two idle processors would need it. A row is right if the estimate is within
    three of its standard errors, or `stats["missing"]` says why there is no error.

    Args:
        data: a folder of networks in UAI, with evidence in `NAME.uai.evid` and log10 Z in
            `NAME.uai.PR`; measured as well.
        seconds: limit of time.
        seed: seed of the drawn networks.
        drawn: whether networks are drawn.
        memory_limit: bytes that tables may take; for a drawn network a quarter of what exact
            inference takes, if that is less.
    """
    for name, make in DRAWN.items() if drawn else ():
        graph = make(seed)
        log_z = infer(graph, "exact").log_z
        assert log_z is not None
        least = Exact().predict(graph).bytes
        yield _row(name, graph, log_z, seconds, min(memory_limit, round(least / _SHARE)))
    for path in sorted(Path(data).glob("*.uai")) if data else ():
        graph = read_network(path).with_evidence(read_evidence(f"{path}.evid"))
        log_z = float(np.log(10.0)) * read_log10_partition(f"{path}.PR")
        yield _row(path.stem, graph, log_z, seconds, memory_limit)


def _row(name: str, graph: FactorGraph, log_z: float, seconds: float, memory_limit: int) -> Row:
    """Return the answer of `auto` beside log Z."""
    with patch("inference.stop._clock", lambda: PREPARATION.process_clock() / _PROCESSORS):
        *_, answer = improve(graph.absorb_evidence(), Stop(seconds), memory_limit, 0, "refused")
    stats = answer.stats
    estimate, error = stats["estimate"], stats["estimate_standard_error"]
    slack = _DIGITS * max(1.0, abs(log_z))
    off = None if error is None else abs(estimate - log_z) / max(error, slack)
    why = stats["missing"].get("estimate_standard_error")
    inside = stats["lower"] - slack <= log_z <= stats["upper"] + slack
    return {
        "network": name,
        "MB": memory_limit / 1e6,
        "log Z": log_z,
        "lower": stats["lower"],
        "upper": stats["upper"],
        "estimate": estimate,
        "by": stats["estimate_by"],
        "standard error": error,
        "standard errors off": off,
        "why no error": why,
        "right": inside and (why is not None if off is None else off <= _MOST_ERRORS),
    }
