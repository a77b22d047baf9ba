"""Models in JAX: those of one size, and settings of one graph, run as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.messages.lbp import Damping
from inference.peers.lbp_jax.flooding import Options, solve_each, solve_settings
from inference.peers.lbp_jax.structure import Model
from inference.posterior import LogZKind, Marginals, Posterior, Status

_MOST_PADDED_NUMBERS = 2**25
"""A quarter of a gibibyte of doubles; larger batches are run in parts."""


@dataclass(frozen=True, eq=False)
class PropagationAnswer:
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
        """Posterior of a graph without evidence."""
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


def run_models(models: Sequence[Model], options: Options) -> list[PropagationAnswer]:
    """Answers for models whose padded sizes are the same."""

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


def run_settings(
    graph: FactorGraph, model: Model, rows: NDArray[np.float64], options: Options
) -> list[PropagationAnswer]:
    """Answers for a graph under many log tables with zeros in the same places.

    Args:
        graph: a graph without evidence.
        model: its model under one of them.
        rows: float64 (n_settings, n_entries), laid out as `graph.log_values`.
        options: the settings of the algorithm.
    """
    sums = model.sums_of(graph, rows)
    n_states, _, n_entries, *_ = model.sizes
    values, unary = sums[:, :n_entries], sums[:, n_entries : n_entries + n_states]
    structure = model.structure()

    def run(first: int, last: int) -> Any:
        tables = (_filled(values[first:last]), _filled(unary[first:last]))
        return solve_settings(*tables, structure, options)

    return [
        # `PropagationAnswer.posterior` adds the constant of the model, which is that of one of its
        # settings.
        replace(answer, log_z=answer.log_z + constant - model.constant)
        for answer, constant in zip(
            _run(run, len(rows), sum(model.sizes)), sums[:, -1].tolist(), strict=True
        )
    ]


def _run(run: Callable[[int, int], Any], count: int, size: int) -> list[PropagationAnswer]:
    """Answers of a compiled function that takes ranges of models of a size."""
    at_a_time = max(1, _MOST_PADDED_NUMBERS // size)
    answers: list[PropagationAnswer] = []
    for first in range(0, count, at_a_time):
        last = min(first + at_a_time, count)
        with jax.enable_x64(True):
            marginals, *numbers = (np.asarray(found) for found in run(first, last))
        columns = zip(*(values[: last - first].tolist() for values in numbers), strict=True)
        answers += [
            PropagationAnswer(row, *rest) for row, rest in zip(marginals, columns, strict=False)
        ]
    return answers


def _filled(rows: Sequence[NDArray[Any]] | NDArray[Any]) -> NDArray[Any]:
    """Rows as one array, their number rounded up to a power of two by repeating the last.

    So few different numbers of graphs are compiled for.
    """
    places = np.minimum(np.arange(1 << (len(rows) - 1).bit_length()), len(rows) - 1)
    result: NDArray[Any] = np.asarray(rows)[places]
    return result
