"""The runner: every cell of a study over every response, one unit at a time."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from experiments.config import BackendChoice, Study, takes_part
from experiments.rows import FAILED
from experiments.settings import build_backend, setting_types
from experiments.study_data import StudyData
from experiments.warm_up import warm_up
from factormodels.errors import FactormodelsError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.variants import variant as variant_of
from inference import Backend, Posterior
from inference.registry import backend_class

logger = logging.getLogger(__name__)

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One combination of a study, asked over all responses of its dataset.

    Attributes:
        study: name of the study.
        dataset: name of the dataset.
        variant: view of the fact graphs.
        encoding: encoding of relations.
        backend: name of the algorithm in the registry.
        backend_label: what tables call it.
        seed: seed of the study.
    """

    study: str
    dataset: str
    variant: str
    encoding: str
    backend: str
    backend_label: str
    seed: int


@dataclass(frozen=True)
class Algorithm:
    """A backend of a study, ready to run, or the reason why it is not.

    Attributes:
        choice: what the study says.
        setting: all its settings as JSON with sorted keys (those given, if it is not installed).
        backend: the backend; None if a library that it needs is absent.
        error: the sentence that says so.
    """

    choice: BackendChoice
    setting: str
    backend: Backend | None
    error: str = ""

    def infer(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph.

        Raises:
            MissingDependencyError: if a library that the backend needs is absent.
            InferenceError: if the backend cannot answer for this graph.
        """
        if self.backend is None:
            raise MissingDependencyError(self.error)
        return self.backend.infer(graph)


@dataclass(frozen=True)
class UnitResult:
    """What became of one unit: one response in one cell.

    Attributes:
        cell: position of its cell in `cells(study)`.
        rows: its rows, one per atom.
        status: how it ended, `FAILED` if its backend raised.
    """

    cell: int
    rows: tuple[Row, ...]
    status: str


def cells(study: Study) -> tuple[Cell, ...]:
    """Return the cells of a study: dataset by variant by encoding by backend, in its order."""
    return tuple(
        Cell(
            study=study.study,
            dataset=dataset.title,
            variant=variant,
            encoding=encoding,
            backend=choice.backend,
            backend_label=choice.title,
            seed=study.seed,
        )
        for dataset in study.datasets
        for variant in study.variants
        for encoding in study.encodings
        for choice in study.backends
        if takes_part(choice, dataset.title, variant, encoding)
    )


def algorithms(study: Study, where: str) -> dict[str, Algorithm]:
    """Return the backends of a study by label, built and not yet warm.

    Args:
        study: the study.
        where: what errors call its configuration.

    Raises:
        InputError: for a setting that a backend does not have or take.
    """
    return {
        choice.title: _algorithm(choice, study.seed, f"{where}: backends[{position}].settings.")
        for position, choice in enumerate(study.backends)
    }


def warm_up_all(backends: Mapping[str, Algorithm]) -> None:
    """Have each backend answer a small graph.

    After that no unit's seconds hold the loading of a library or the compilation of a kernel.
    """
    for algorithm in backends.values():
        if algorithm.backend is not None:
            warm_up(algorithm.backend)


def run_units(
    study: Study, data: Sequence[StudyData], backends: Mapping[str, Algorithm]
) -> Iterator[UnitResult]:
    """Run every unit of a study and yield what became of it.

    A unit that fails is yielded like any other, with its error in its rows. Views and factor
    graphs are built once per response and shared by the backends.
    """
    of_data: dict[str, dict[str, dict[str, list[tuple[int, Cell]]]]] = {}
    for position, cell in enumerate(cells(study)):
        of_variant = of_data.setdefault(cell.dataset, {}).setdefault(cell.variant, {})
        of_variant.setdefault(cell.encoding, []).append((position, cell))
    for dataset in data:
        for graph in dataset.graphs:
            for variant, encodings in of_data.get(dataset.name, {}).items():
                view = variant_of(graph, variant)
                for encoding, members in encodings.items():
                    factor_graph = view.to_factor_graph(encoding)
                    for position, cell in members:
                        algorithm = backends[cell.backend_label]
                        yield run_unit(position, cell, algorithm, view, factor_graph)


def run_unit(
    position: int, cell: Cell, algorithm: Algorithm, view: FactGraph, graph: FactorGraph
) -> UnitResult:
    """Run one unit: ask one backend about one response.

    Whatever the backend raises is recorded and ends this unit alone: a night of work must not be
    lost to one graph.
    """
    try:
        posterior = algorithm.infer(graph)
        p = posterior.marginals.of_state(1, view.atom_ids)
        if not np.isfinite(p).all():
            raise ArithmeticError("a marginal is not a finite number")
    except Exception as error:
        logger.debug("response %r failed", view.id, exc_info=True)
        outcome = _failure(error)
        status, probabilities = FAILED, [None] * len(view.atoms)
    else:
        status, probabilities = str(posterior.status), p.tolist()
        outcome = {
            "seconds": posterior.stats.get("seconds"),
            "log_z": posterior.log_z,
            "log_z_kind": str(posterior.log_z_kind),
            "error": None,
        }
    shared = {
        **asdict(cell),
        "response": view.id,
        "setting": algorithm.setting,
        "status": status,
        **outcome,
    }
    rows = tuple(
        {**shared, "atom": atom.id, "p": value, "label": atom.label, "annotation": atom.annotation}
        for atom, value in zip(view.atoms, probabilities, strict=True)
    )
    nothing = {"atom": None, "p": None, "label": None, "annotation": None}
    return UnitResult(position, rows or ({**shared, **nothing},), status)


def run_study(
    study: Study,
    data: Sequence[StudyData],
    backends: Mapping[str, Algorithm],
    report: Callable[[UnitResult], None] | None = None,
) -> list[Row]:
    """Return the rows of a study in its order: by cell, then response, then atom.

    Args:
        study: the study.
        data: its datasets.
        backends: its backends by label.
        report: called with every finished unit, for progress.
    """
    results = []
    for result in run_units(study, data, backends):
        if report is not None:
            report(result)
        results.append(result)
    results.sort(key=lambda result: result.cell)
    return [row for result in results for row in result.rows]


def count_units(study: Study, data: Sequence[StudyData]) -> int:
    """Return the number of units of a study."""
    sizes = {dataset.name: len(dataset.graphs) for dataset in data}
    return sum(sizes[cell.dataset] for cell in cells(study))


def _algorithm(choice: BackendChoice, seed: int, where: str) -> Algorithm:
    try:
        types = setting_types(backend_class(choice.backend))
    except MissingDependencyError as error:
        return Algorithm(choice, _as_setting(choice.settings), None, str(error))
    settings = dict(choice.settings)
    if "seed" in types:
        settings.setdefault("seed", seed)
    backend = build_backend(choice.backend, settings, where)
    values = {field.name: getattr(backend, field.name) for field in fields(backend)}
    return Algorithm(choice, _as_setting(values), backend)


def _as_setting(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True, default=str)


def _failure(error: Exception) -> dict[str, Any]:
    text = " ".join(str(error).split())
    if not isinstance(error, FactormodelsError):
        text = f"{type(error).__name__}: {text}"
    return {"seconds": None, "log_z": None, "log_z_kind": None, "error": text}
