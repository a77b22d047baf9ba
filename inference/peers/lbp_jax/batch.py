"""Batches in JAX: graphs of about one size, and settings of one graph, run as one."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import ZeroPartitionError, with_observed
from inference.batch_parts import Result, absorbed_columns, columns_of
from inference.messages.lbp import Damping
from inference.peers.lbp_jax.flooding import Options, solve_each, solve_settings
from inference.peers.lbp_jax.structure import Model, Structure
from inference.posterior import LogZKind, Marginals, Posterior, Status

if TYPE_CHECKING:
    from inference.peers.lbp_jax.backend import JaxBeliefPropagation

_MOST_PADDED_NUMBERS = 2**25
"""A quarter of a gibibyte of doubles; larger batches are run in parts."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What JAX found for one model: marginals of its possible states, padded, and the Bethe log Z.

    `log_z` is without what is fixed in the model.
    """

    marginals: NDArray[np.float64]
    log_z: float
    residual: float
    iterations: int

    def posterior(
        self, graph: FactorGraph, model: Model, damping: Damping, tolerance: float
    ) -> Posterior:
        """Return the posterior of a graph without evidence."""
        flat = model.known()
        flat[model.entries.states] = self.marginals[: len(model.entries.states)]
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, flat, graph.index),
            log_z=model.constant + self.log_z,
            log_z_kind=LogZKind.BETHE,
            status=Status.CONVERGED if self.residual <= tolerance else Status.NOT_CONVERGED,
            stats={
                "iterations": self.iterations,
                "residual": self.residual,
                "schedule": "flooding",
                "damping": damping,
                "device": jax.default_backend(),
                "jax": jax.__version__,
            },
        )


def jax_batch(graphs: Sequence[FactorGraph], backend: JaxBeliefPropagation) -> list[Result]:
    """Return the posteriors of many graphs, those of a size at a time, or the errors."""
    start = time.perf_counter()
    absorbed = [graph.absorb_evidence() for graph in graphs]
    results: dict[int, Result] = {}
    models: dict[int, Model] = {}
    by_sizes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, graph in enumerate(absorbed):
        try:
            models[number] = Model.of(graph)
        except ZeroPartitionError as error:
            results[number] = error
        else:
            by_sizes[models[number].sizes].append(number)
    for numbers in by_sizes.values():
        answers = run_models([models[number] for number in numbers], backend.options)
        for number, answer in zip(numbers, answers, strict=True):
            results[number] = answer.posterior(
                absorbed[number], models[number], backend.damping, backend.tolerance
            )
    return _finished(graphs, results, backend.name, start)


def jax_settings(
    graph: FactorGraph, rows: NDArray[np.float64], backend: JaxBeliefPropagation
) -> list[Result]:
    """Return the posteriors of a graph under many settings of its log tables, or the errors.

    Settings with zeros in the same places run as one.

    Args:
        rows: float64 (n_settings, n_entries), laid out as `graph.log_values`.
    """
    start = time.perf_counter()
    absorbed, columns = absorbed_columns(graph)
    tables = columns_of(rows, columns)
    by_zeros: dict[bytes, list[int]] = defaultdict(list)
    for number, zeros in enumerate(np.packbits(tables == -np.inf, axis=1)):
        by_zeros[zeros.tobytes()].append(number)
    results: dict[int, Result] = {}
    for numbers in by_zeros.values():
        one = replace(absorbed, log_values=tables[numbers[0]])
        try:
            model = Model.of(one)
        except ZeroPartitionError as error:
            results.update(dict.fromkeys(numbers, error))
            continue
        sums = model.sums_of(one, tables[numbers])
        n_entries, n_states = model.sizes[2], model.sizes[0]
        values, unary = sums[:, :n_entries], sums[:, n_entries : n_entries + n_states]
        run = partial(_run_settings, values, unary, model.structure(), backend.options)
        answers = _run(run, len(numbers), sum(model.sizes))
        for number, answer, constant in zip(numbers, answers, sums[:, -1].tolist(), strict=True):
            # The model's constant is that of the first of its settings.
            found = replace(answer, log_z=answer.log_z + constant - model.constant)
            results[number] = found.posterior(one, model, backend.damping, backend.tolerance)
    return _finished([graph] * len(rows), results, backend.name, start)


def run_models(models: Sequence[Model], options: Options) -> list[Answer]:
    """Return the answers for models whose padded sizes are the same."""

    def run(first: int, last: int) -> Any:
        part = models[first:last]
        numbers = [model.numbers() for model in part]
        structures = [model.structure() for model in part]
        return solve_each(
            _filled([values for values, _ in numbers]),
            _filled([unary for _, unary in numbers]),
            jax.tree.map(lambda *arrays: _filled(arrays), *structures),
            options,
        )

    return _run(run, len(models), sum(models[0].sizes))


def _run_settings(
    values: NDArray[np.float64],
    unary: NDArray[np.float64],
    structure: Structure,
    options: Options,
    first: int,
    last: int,
) -> Any:
    tables = (_filled(values[first:last]), _filled(unary[first:last]))
    return solve_settings(*tables, structure, options)


def _run(run: Callable[[int, int], Any], count: int, size: int) -> list[Answer]:
    """Return the answers of a compiled function that takes ranges of models of a size."""
    at_a_time = max(1, _MOST_PADDED_NUMBERS // size)
    answers: list[Answer] = []
    for first in range(0, count, at_a_time):
        last = min(first + at_a_time, count)
        with jax.enable_x64(True):
            marginals, *numbers = (np.asarray(found) for found in run(first, last))
        columns = zip(*(values[: last - first].tolist() for values in numbers), strict=True)
        answers += [Answer(row, *rest) for row, rest in zip(marginals, columns, strict=False)]
    return answers


def _filled(rows: Sequence[NDArray[Any]] | NDArray[Any]) -> NDArray[Any]:
    """Return rows as one array, their number rounded up to a power of two by repeating the last.

    So few different numbers of graphs are compiled for.
    """
    places = np.minimum(np.arange(1 << (len(rows) - 1).bit_length()), len(rows) - 1)
    result: NDArray[Any] = np.asarray(rows)[places]
    return result


def _finished(
    graphs: Sequence[FactorGraph], results: dict[int, Result], name: str, start: float
) -> list[Result]:
    """Return results in order, with what `Backend.infer` adds to each."""
    seconds = (time.perf_counter() - start) / max(1, len(graphs))
    finished: list[Result] = []
    for number, graph in enumerate(graphs):
        result = results[number]
        if isinstance(result, Posterior):
            marginals = with_observed(graph, result.marginals)
            stats = {**result.stats, "seconds": seconds}
            result = replace(result, marginals=marginals, stats=stats, backend=name)
        finished.append(result)
    return finished
