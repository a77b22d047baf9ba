"""Backends against reference answers: UAI networks with the answers that came with them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench.families import set_name
from experiments.results.manifest import environment
from experiments.run.processes import REFUSED, Child, ChildError
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.files import write_text
from factormodels.io.networks.uai import read_uai
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from factormodels.io.plain_yaml import jsonable
from inference import Backend, InferenceError, Posterior
from inference.posterior import LogZKind

Infer = Callable[[Backend, FactorGraph], Posterior]
"""Runs a backend on a graph."""


@dataclass(frozen=True)
class ReferenceComparison:
    """One backend on one network.

    Attributes:
        network: file name of the network.
        task: "MAR" (marginals) or "PR" (partition function).
        backend: name of the backend.
        variables: number of variables.
        status: how the run ended, or "refused".
        seconds: duration of the run; NaN if refused.
        induced_width: of the order found, where the backend reports it.
        error: largest absolute error of a marginal (MAR), relative error of log10 Z (PR).
        mean_error: mean absolute error of the marginals' probabilities (MAR).
        log_z_error: log Z, or its bound, minus that of the reference, in nats (PR).
        log_z_kind: what log Z is.
        gap: upper minus lower bound on log Z in nats, where the backend gives both.
        remark: why it was refused.
    """

    network: str
    task: str
    backend: str
    variables: int
    status: str
    seconds: float
    induced_width: int | None
    error: float
    mean_error: float = math.nan
    log_z_error: float = math.nan
    log_z_kind: str = LogZKind.NONE
    gap: float = math.nan
    remark: str = ""

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return math.isfinite(self.seconds)


def find_networks(folder: Path) -> list[Path]:
    """The networks below a folder that have a reference answer beside them, in order.

    Raises:
        InputError: if there is none.
    """
    networks = [
        path
        for path in sorted(folder.rglob("*.uai"))
        if Path(f"{path}.MAR").exists() or Path(f"{path}.PR").exists()
    ]
    if not networks:
        raise InputError(
            f"{folder}: there is no NAME.uai with a NAME.uai.MAR or NAME.uai.PR beside it; name a "
            "folder of networks with reference answers"
        )
    return networks


def compare(path: Path, backend: Backend, infer: Infer | None = None) -> list[ReferenceComparison]:
    """How a backend's answer to one network differs from the reference answers.

    Args:
        path: the network.
        backend: the backend.
        infer: what runs it; its own method if None.

    Raises:
        InputError: if a file is damaged.
    """
    graph = read_uai(path)
    evidence = Path(f"{path}.evid")
    if evidence.exists():
        graph = graph.with_evidence(read_evidence(evidence))
    measures: dict[str, Callable[[Posterior, Path], dict[str, float]]] = {
        "MAR": _marginal_errors,
        "PR": _partition_errors,
    }
    # One run answers every task that has a reference.
    tasks = [task for task in measures if Path(f"{path}.{task}").exists()]
    try:
        posterior = backend.infer(graph) if infer is None else infer(backend, graph)
    except InferenceError as error:
        return [_unanswered(path, task, backend, graph, REFUSED, str(error)) for task in tasks]
    except ChildError as error:
        return [_unanswered(path, task, backend, graph, error.kind, error.reason) for task in tasks]
    stats = posterior.stats
    comparisons = []
    for task in tasks:
        found = measures[task](posterior, Path(f"{path}.{task}"))
        comparisons.append(
            ReferenceComparison(
                network=path.name,
                task=task,
                backend=backend.name,
                variables=graph.n_variables,
                status=posterior.status,
                seconds=stats["seconds"],
                induced_width=stats.get("induced_width"),
                error=found["error"],
                mean_error=found.get("mean_error", math.nan),
                log_z_error=found.get("log_z_error", math.nan),
                log_z_kind=posterior.log_z_kind,
                gap=stats.get("gap", math.nan),
            )
        )
    return comparisons


@contextmanager
def within(
    limit: float | None, backends: Sequence[Backend], prepare: Callable[[Backend], None]
) -> Iterator[Infer]:
    """Yield what runs backends, each in a process of its own if there is a limit.

    Args:
        limit: seconds for one network, after which the process is ended; None: no limit.
        backends: the backends.
        prepare: called with each before the block, in its process.

    Raises:
        ChildError: if a backend cannot be prepared.
    """
    if limit is None:
        for backend in backends:
            prepare(backend)
        yield lambda backend, graph: backend.infer(graph)
        return
    children: dict[Backend, Child] = {}

    def start(backend: Backend) -> None:
        # A child that was ended at its limit cannot be called again; another takes its place.
        children[backend] = Child()
        children[backend].call(_prepare, prepare, backend)

    def run(backend: Backend, graph: FactorGraph) -> Posterior:
        if not children[backend].alive:
            start(backend)
        posterior: Posterior = children[backend].call(_infer, backend, graph, limit=limit)
        return posterior

    try:
        for backend in backends:
            start(backend)
        yield run
    finally:
        for child in children.values():
            child.close()


def _prepare(kept: dict[str, Any], prepare: Callable[[Backend], None], backend: Backend) -> None:  # noqa: ARG001
    prepare(backend)


def _infer(kept: dict[str, Any], backend: Backend, graph: FactorGraph) -> Posterior:  # noqa: ARG001
    return backend.infer(graph)


def groups(
    comparisons: Iterable[ReferenceComparison],
) -> dict[tuple[str, str, str], list[ReferenceComparison]]:
    """Comparisons by (set, task, backend), in order."""
    found: dict[tuple[str, str, str], list[ReferenceComparison]] = {}
    for one in comparisons:
        key = (set_name(Path(one.network)), one.task, one.backend)
        found.setdefault(key, []).append(one)
    return dict(sorted(found.items(), key=lambda item: (item[0][1], item[0][0])))


def write(comparisons: Sequence[ReferenceComparison], path: Path) -> None:
    """Write the comparisons and what they depend on as JSON.

    Raises:
        InputError: if the file cannot be written.
    """
    document = {
        "format": "factormodels/references",
        "version": 2,
        **environment(),
        "comparisons": [asdict(one) for one in comparisons],
    }
    write_text(path, json.dumps(jsonable(document), indent=2) + "\n")


def _marginal_errors(posterior: Posterior, path: Path) -> dict[str, float]:
    reference = np.concatenate(read_marginals(path))
    difference = np.abs(posterior.marginals.flat - reference)
    return {"error": float(difference.max()), "mean_error": float(difference.mean())}


def _partition_errors(posterior: Posterior, path: Path) -> dict[str, float]:
    reference = read_log10_partition(path)
    if posterior.log_z is None:
        return {"error": math.nan}
    difference = posterior.log_z / math.log(10.0) - reference
    return {
        # The tiny floor keeps a reference of log10 Z = 0 from dividing by zero.
        "error": abs(difference) / max(abs(reference), 1e-300),
        "log_z_error": difference * math.log(10.0),
    }


def _unanswered(
    path: Path, task: str, backend: Backend, graph: FactorGraph, status: str, remark: str
) -> ReferenceComparison:
    return ReferenceComparison(
        network=path.name,
        task=task,
        backend=backend.name,
        variables=graph.n_variables,
        status=status,
        seconds=math.nan,
        induced_width=None,
        error=math.nan,
        remark=remark,
    )
