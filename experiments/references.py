"""Backends against reference answers: UAI networks with the answers that came with them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.console import duration, heading, plain_table, small
from experiments.manifest import environment
from experiments.text_input import jsonable
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.files import write_text
from factormodels.io.uai import read_evidence, read_uai
from factormodels.io.uai_results import read_log10_partition, read_marginals
from inference import Backend, InferenceError, Posterior

if TYPE_CHECKING:
    from rich.console import Console

REFUSED = "refused"


@dataclass(frozen=True)
class Comparison:
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
    remark: str = ""


def find_networks(folder: Path) -> list[Path]:
    """Return the networks below a folder that have a reference answer beside them, in order.

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


def compare(path: Path, backend: Backend) -> list[Comparison]:
    """Return how a backend's answer to one network differs from the reference answers.

    Raises:
        InputError: if a file is damaged.
    """
    graph = read_uai(path)
    evidence = Path(f"{path}.evid")
    if evidence.exists():
        graph = graph.with_evidence(read_evidence(evidence))
    measures: dict[str, Callable[[Posterior, Path], float]] = {
        "MAR": _marginal_error,
        "PR": _partition_error,
    }
    tasks = [task for task in measures if Path(f"{path}.{task}").exists()]
    try:
        posterior = backend.infer(graph)
    except InferenceError as error:
        return [_refused(path, task, backend, graph, str(error)) for task in tasks]
    return [
        Comparison(
            network=path.name,
            task=task,
            backend=backend.name,
            variables=graph.n_variables,
            status=posterior.status,
            seconds=posterior.stats["seconds"],
            induced_width=posterior.stats.get("induced_width"),
            error=measures[task](posterior, Path(f"{path}.{task}")),
        )
        for task in tasks
    ]


def show(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Print the comparisons, and for each task and backend how many were answered."""
    table = plain_table()
    table.add_column("network", no_wrap=True)
    for title in ("task", "backend", "status"):
        table.add_column(title, no_wrap=True)
    for title in ("variables", "width", "time", "error"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in comparisons:
        table.add_row(
            one.network,
            one.task,
            one.backend,
            one.status,
            str(one.variables),
            "--" if one.induced_width is None else str(one.induced_width),
            duration(one.seconds),
            small(one.error),
        )
    heading(console, "reference answers")
    console.print(table)
    for task, backend in dict.fromkeys((one.task, one.backend) for one in comparisons):
        group = [one for one in comparisons if (one.task, one.backend) == (task, backend)]
        errors = [one.error for one in group if one.status != REFUSED and math.isfinite(one.error)]
        answered = sum(one.status != REFUSED for one in group)
        console.print(
            f"{task}: {backend} answered {answered} of {len(group)}"
            + (f"; largest error {small(max(errors))}" if errors else ""),
            soft_wrap=True,
        )


def write(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write the comparisons and what they depend on as JSON.

    Raises:
        InputError: if the file cannot be written.
    """
    document = {
        "format": "factormodels/references",
        "version": 1,
        **environment(),
        "comparisons": [asdict(one) for one in comparisons],
    }
    write_text(path, json.dumps(jsonable(document), indent=2) + "\n")


def _marginal_error(posterior: Posterior, path: Path) -> float:
    reference = np.concatenate(read_marginals(path))
    return float(np.abs(posterior.marginals.flat - reference).max())


def _partition_error(posterior: Posterior, path: Path) -> float:
    reference = read_log10_partition(path)
    if posterior.log_z is None:
        return math.nan
    return abs(posterior.log_z / math.log(10.0) - reference) / max(abs(reference), 1e-300)


def _refused(
    path: Path, task: str, backend: Backend, graph: FactorGraph, remark: str
) -> Comparison:
    return Comparison(
        network=path.name,
        task=task,
        backend=backend.name,
        variables=graph.n_variables,
        status=REFUSED,
        seconds=math.nan,
        induced_width=None,
        error=math.nan,
        remark=remark,
    )
