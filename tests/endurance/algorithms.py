"""How often what sampling says of its own errors holds, measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from factormodels import FactorGraph
from factormodels.synthetic import fr2, random_graph
from inference import LogZKind, Posterior, infer
from tests.endurance import Row
from tests.inference.answers import given
from tests.inference.exactness import standard_errors
from tests.inference.graphs import frustrated


def held(graph: FactorGraph, truth: Posterior, posterior: Posterior) -> dict[str, list[bool]]:
    """Return by promise whether it holds."""
    log_z, stats = given(truth), posterior.stats
    found: dict[str, list[bool]] = {}
    if posterior.log_z_kind is not LogZKind.ESTIMATE:
        return found
    if (error := stats["log_z_standard_error"]) is not None:
        found["log Z within two standard errors"] = [abs(given(posterior) - log_z) <= 2 * error]
    if (interval := stats.get("log_z_interval")) is not None:
        found["log Z in the interval of 95 %"] = [interval[0] <= log_z <= interval[1]]
    if "upper" in stats:
        slack = 1e-9 * max(1.0, abs(log_z))
        inside = stats["lower"] - slack <= log_z <= stats["upper"] + slack
        found["log Z in the bounds of 95 %"] = [inside]
    off = np.abs(posterior.marginals.flat - truth.marginals.flat)
    wide = standard_errors(graph, posterior)
    found["marginals within two standard errors"] = (off <= 2 * wide + 1e-9).tolist()
    return found


def covered(seeds: Iterable[int]) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Return the share that holds and of how many, by backend, status and promise.

    Grids of strong couplings of both signs with factors of three variables (every third with
    zeros), FR2 graphs and random graphs, in turn.
    """
    counts: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for seed in seeds:
        graph = (
            frustrated(seed // 3),
            fr2(6, 3, density=0.4, seed=seed),
            random_graph(
                *(10, 16), max_arity=3, max_cardinality=3, zero_probability=seed % 2 / 20, seed=seed
            ),
        )[seed % 3]
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


def coverage(graphs: int = 500) -> Iterator[Row]:
    """How often the stated errors and bounds of `ais` and `wmb_is` hold where exact is known."""
    for key, (share, number) in sorted(covered(range(graphs)).items()):
        yield dict(zip(("algorithm", "status", "statement"), key, strict=True)) | {
            **{"holds": share, "of": number}
        }
