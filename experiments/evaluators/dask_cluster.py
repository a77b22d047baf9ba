"""A Dask cluster as a place to compute: its client, and what is said where it cannot be reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from factormodels.errors import FactormodelsError, InputError, MissingDependencyError

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
