"""Assessment of responses on a Dask cluster, with model calls from this process.

All workers share a limit on concurrent calls and a cache, so that nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from experiments.evaluators.batches.batch import Elsewhere
from experiments.evaluators.response import AssessmentView, assess_graph
from experiments.parallel_map import call_on, dask_cluster
from factormodels.extraction.pipeline import Stage, run_stages
from factormodels.fact_graph import FactGraph
from inference import Backend
from inference.warm_up import warm_up


@contextmanager
def on_cluster(
    address: str, backend: Backend, stages: Sequence[Stage], *, local: bool
) -> Iterator[Elsewhere]:
    """Open a Dask cluster as an executor of responses.

    Args:
        address: address of the scheduler.
        backend: backend for the workers to warm up.
        stages: stages that build the graphs of responses.
        local: True if the stages make no calls, so that they can run on the cluster too.

    Raises:
        MissingDependencyError: if Dask is not installed.
        InputError: if no scheduler answers at the address.
        WorkerError: if the cluster has no worker, or cannot run a task.
    """
    prepare = partial(warm_up, backend)
    with dask_cluster(address, "repeat the command") as workers:
        # Send stages to every worker once, since they may contain a model or an index of documents.
        sent = workers.shared(tuple(stages)) if local else None

        def compute(graph: FactGraph, views: Sequence[AssessmentView]) -> dict[str, Any]:
            return call_on(workers, assess_graph, graph, tuple(views), prepare=prepare)

        def run(graph: FactGraph, _: Sequence[Stage]) -> FactGraph:
            return call_on(workers, run_stages, graph, sent, prepare=prepare)

        yield Elsewhere(workers.places, compute, run if local else None)
