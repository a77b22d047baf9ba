"""Loopy belief propagation for batches: many graphs in one call of compiled code."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import zero_partition
from inference.batch_parts import Result, Stacked, Team, absorbed_columns, columns_of
from inference.kernels.settings import pass_messages_for_each
from inference.messages.kernels.schedules import CONVERGED, ZERO
from inference.messages.lbp import LoopyBeliefPropagation
from inference.posterior import LogZKind, Posterior, Status

_ENTRIES_PER_PART = 2**14
"""Entries of factors that a thread takes at a time: 2 ms where messages settle soon, and half a
second where they go on for a thousand iterations."""


def lbp_batch(
    graphs: Sequence[FactorGraph], lbp: LoopyBeliefPropagation, team: Team
) -> list[Result]:
    """Return the posteriors of many graphs by loopy belief propagation, or the errors."""
    absorbed = [graph.absorb_evidence() for graph in graphs]
    return _pass_messages(graphs, Stacked.of(absorbed), lbp, team)


def lbp_settings(
    graph: FactorGraph, rows: NDArray[np.float64], lbp: LoopyBeliefPropagation, team: Team
) -> list[Result]:
    """Return the posteriors of a graph under many settings of its log tables, or the errors.

    Args:
        rows: float64 (n_settings, n_entries), laid out as `graph.log_values`.
    """
    absorbed, columns = absorbed_columns(graph)
    stacked = Stacked.of_settings(absorbed, columns_of(rows, columns))
    return _pass_messages([graph] * len(rows), stacked, lbp, team)


def _pass_messages(
    graphs: Sequence[FactorGraph], stacked: Stacked, lbp: LoopyBeliefPropagation, team: Team
) -> list[Result]:
    count = len(graphs)
    codes = np.empty(count, dtype=np.int64)
    log_zs = np.empty(count)
    marginals = np.empty(stacked.state_starts[-1])
    iterations = np.empty(count, dtype=np.int64)
    residuals = np.empty(count)
    settings = lbp.kernel_settings()
    stats = {"schedule": lbp.schedule, "damping": lbp.damping}
    if lbp.schedule == "random":
        stats["seed"] = lbp.seed

    def run(first: int, last: int) -> list[Result]:
        start = time.perf_counter()
        pass_messages_for_each(
            *stacked.arrays,
            stacked.places,
            stacked.state_starts,
            *settings,
            first,
            last,
            codes,
            log_zs,
            marginals,
            iterations,
            residuals,
        )
        seconds = (time.perf_counter() - start) / (last - first)
        found = (
            codes[first:last].tolist(),
            log_zs[first:last].tolist(),
            iterations[first:last].tolist(),
            residuals[first:last].tolist(),
        )
        return [
            zero_partition()
            if code == ZERO
            else Posterior(
                marginals=stacked.marginals(k, graphs[k], marginals),
                log_z=log_z,
                log_z_kind=LogZKind.BETHE,
                status=Status.CONVERGED if code == CONVERGED else Status.NOT_CONVERGED,
                stats={"iterations": passes, "residual": residual, **stats, "seconds": seconds},
                backend=lbp.name,
            )
            for k, (code, log_z, passes, residual) in enumerate(zip(*found, strict=True), first)
        ]

    return team.share(run, stacked.entries / _ENTRIES_PER_PART)
