"""Assessing responses on a Dask cluster: what is computed goes there, models are asked from here.

There is one limit on calls under way and one cache, so that nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from experiments.evaluators.batch import Elsewhere
from experiments.evaluators.dask_cluster import WorkerError, dask_client, import_distributed
from experiments.evaluators.response import AssessmentView, assess_graph
from factormodels.extraction.pipeline import Stage, run_stages
from factormodels.fact_graph import FactGraph
from inference import Backend
from inference.warm_up import warm_up


@contextmanager
def on_cluster(
    address: str, backend: Backend, stages: Sequence[Stage], *, local: bool
) -> Iterator[Elsewhere]:
    """A Dask cluster as a place where responses are computed.

    Args:
        address: of its scheduler.
        backend: the backend that its workers warm up.
        stages: what makes the graphs of responses.
        local: whether the stages ask nobody, so that they can run there too.

    Raises:
        MissingDependencyError: if Dask is not installed.
        InputError: if no scheduler answers at the address.
        WorkerError: if the cluster has no worker, or cannot run a task.
    """
    killed = import_distributed().scheduler.KilledWorker
    with dask_client(address, partial(warm_up, backend), "repeat the command") as client:

        def there(function: Any, *given: Any) -> Any:
            try:
                # An impure call gets a key of its own; hashing a graph to make one would take long.
                return client.submit(function, *given, pure=False).result()
            except killed as error:
                raise WorkerError(
                    f"the Dask cluster at {address} lost the workers of a response ({error}); what "
                    "is finished is kept, repeat the command"
                ) from None

        # Sent to every worker once, since they may hold a model or an index of documents.
        sent = client.scatter([tuple(stages)], broadcast=True, hash=False)[0] if local else None

        def compute(graph: FactGraph, views: Sequence[AssessmentView]) -> dict[str, Any]:
            found: dict[str, Any] = there(assess_graph, graph, tuple(views))
            return found

        def run(graph: FactGraph, _: Sequence[Stage]) -> FactGraph:
            made: FactGraph = there(run_stages, graph, sent)
            return made

        places = 2 * max(1, sum(client.nthreads().values()))
        yield Elsewhere(places, compute, run if local else None)
