"""How often the stated errors and bounds of `ais` and `wmb_is` hold, on graphs that exact solves.

    python -m tests.endurance.estimate_coverage [GRAPHS]

Some minutes for 500 graphs: grids of strong couplings of both signs with factors of three variables
(every third with zeros), FR2 graphs and random graphs. A small version is in the suite.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from factormodels import FactorGraph
from factormodels.synthetic import fr2, random_graph
from inference import LogZKind, Posterior, infer
from inference.conformance.exactness import in_order
from tests.inference.graphs import frustrated


def graph_of(seed: int) -> FactorGraph:
    """Return a graph of one of three kinds, in turn."""
    if seed % 3 == 0:
        return frustrated(seed // 3)
    if seed % 3 == 1:
        return fr2(6, 3, density=0.4, seed=seed)
    return random_graph(
        10, 16, max_arity=3, max_cardinality=3, zero_probability=0.05 * (seed % 2), seed=seed
    )


def held(graph: FactorGraph, truth: Posterior, posterior: Posterior) -> dict[str, list[bool]]:
    """Return by promise whether it holds."""
    log_z = truth.log_z or 0.0
    found: dict[str, list[bool]] = {}
    if posterior.log_z_kind is not LogZKind.ESTIMATE:
        return found
    error = posterior.stats["log_z_standard_error"]
    if error is not None:
        found["log Z within two standard errors"] = [
            abs((posterior.log_z or 0.0) - log_z) <= 2 * error
        ]
    interval = posterior.stats.get("log_z_interval")
    if interval is not None:
        found["log Z in the interval of 95 %"] = [interval[0] <= log_z <= interval[1]]
    if "upper" in posterior.stats:
        slack = 1e-9 * max(1.0, abs(log_z))
        low, high = posterior.stats["lower"], posterior.stats["upper"]
        found["log Z in the bounds of 95 %"] = [low - slack <= log_z <= high + slack]
    certain = {name: np.zeros(len(values)) for name, values in posterior.marginals.items()}
    errors = in_order(graph, certain | posterior.stats["standard_errors"])
    off = np.abs(posterior.marginals.flat - truth.marginals.flat)
    found["marginals within two standard errors"] = (off <= 2 * errors + 1e-9).tolist()
    return found


def coverage(seeds: Iterable[int]) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Return the share that holds and of how many, by backend, status and promise."""
    counts: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for seed in seeds:
        graph = graph_of(seed)
        truth = infer(graph)
        for name, backend, settings in (
            ("ais", "ais", {}),
            ("ais, not resampled", "ais", {"resample": 0.0}),
            ("wmb_is", "wmb_is", {"i_bound": 2}),
        ):
            posterior = infer(graph, backend, seed=seed, **settings)
            for promise, answers in held(graph, truth, posterior).items():
                counts[name, str(posterior.status), promise] += answers
    return {key: (float(np.mean(answers)), len(answers)) for key, answers in counts.items()}


if __name__ == "__main__":
    for (name, status, promise), (share, number) in sorted(
        coverage(range(int(sys.argv[1]) if len(sys.argv) > 1 else 500)).items()
    ):
        sys.stdout.write(f"{name:20} {status:14} {promise:38} {share:.3f} of {number}\n")
