"""Dask clusters, and assessing responses there: models are asked from here.

There is one limit on calls under way and one cache, so that nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from factormodels.errors import FactormodelsError, InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from inference import Backend
from inference.warm_up import warm_up

if TYPE_CHECKING:
    from experiments.evaluators.batch import Elsewhere
    from experiments.evaluators.response import AssessmentView
    from factormodels.extraction.pipeline import Stage

_WORKERS_SECONDS = 60.0


class WorkerError(FactormodelsError):
    """The processes that run tasks cannot do so: the message says why."""


def import_distributed() -> Any:
    """The library of Dask's clusters.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingDependencyError(
            "--dask needs dask and distributed, which are not installed; "
            "run: pip install 'factorfacts[dask]'"
        ) from None


@contextmanager
def dask_client(address: str, prepare: Callable[[], None], go_on: str) -> Iterator[Any]:
    """A client of a Dask cluster that has workers, which are prepared.

    Args:
        address: of the cluster's scheduler.
        prepare: what every worker does first.
        go_on: how a run is gone on with, as an error says it.

    Raises:
        MissingDependencyError: if Dask is not installed.
        InputError: if no scheduler answers at the address.
        WorkerError: if the cluster has no worker.
    """
    distributed = import_distributed()
    try:
        # Not the default client: a notebook's own Dask computations must not end up on this
        # cluster.
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"--dask {address}: no Dask scheduler answers there ({error}); check the address"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except TimeoutError:
            raise WorkerError(
                f"the Dask cluster at {address} has no worker; start one, then {go_on}"
            ) from None
        # On every worker that has joined so far; one that joins later prepares in its first task.
        client.run(prepare)
        yield client


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
    # Not where a study's units are computed alone.
    from experiments.evaluators.batch import Elsewhere
    from experiments.evaluators.response import assess_graph
    from factormodels.extraction.pipeline import run_stages

    killed = import_distributed().scheduler.KilledWorker
    with dask_client(address, partial(warm_up, backend), "repeat the command") as client:

        def there(function: Any, *arguments: Any) -> Any:
            try:
                # An impure call gets a key of its own; hashing a graph to make one would take long.
                return client.submit(function, *arguments, pure=False).result()
            except killed as error:
                raise WorkerError(
                    f"the Dask cluster at {address} lost the workers of a response ({error}); what "
                    "is finished is kept, repeat the command"
                ) from None

        # Sent to every worker once, since they may hold a model or an index of documents.
        sent = client.scatter([tuple(stages)], broadcast=True, hash=False)[0] if local else None

        def compute(graph: FactGraph, views: Sequence[AssessmentView]) -> dict[str, Any]:
            assessment: dict[str, Any] = there(assess_graph, graph, tuple(views))
            return assessment

        def run(graph: FactGraph, _: Sequence[Stage]) -> FactGraph:
            made: FactGraph = there(run_stages, graph, sent)
            return made

        places = 2 * max(1, sum(client.nthreads().values()))
        yield Elsewhere(places, compute, run if local else None)
