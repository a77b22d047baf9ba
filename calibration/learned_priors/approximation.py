"""The bias of approximate inference: the same data fitted with other backends than exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibration.learned_priors.fitting import fit
from calibration.learned_priors.learned import FitStatus, LearnedPriors, ValueStatus
from calibration.learned_priors.objectives import Objective
from calibration.learned_priors.specification import Specification
from factormodels.fact_graph import FactGraph
from inference.backend import Backend


@dataclass(frozen=True)
class BackendBias:
    """One parameter as learned with a backend in place of exact inference.

    Attributes:
        backend: the backend.
        name: the parameter.
        exact: its value with exact inference, a probability or temperature.
        estimate: its value with the backend.
        difference: estimate less exact.
        standard_errors: the difference on the scale without bounds, in clustered standard errors
            of the exact fit; nan where that has none.
        status: how the search with the backend ended.
    """

    backend: str
    name: str
    exact: float
    estimate: float
    difference: float
    standard_errors: float
    status: FitStatus


@dataclass(frozen=True, eq=False)
class ApproximationBias:
    """Fits of the same data with exact and with approximate inference.

    Attributes:
        exact: the fit with exact inference.
        fits: the fit with each other backend, in the order that was given.
        rows: one row for each backend and parameter.
    """

    exact: LearnedPriors
    fits: tuple[LearnedPriors, ...]
    rows: tuple[BackendBias, ...]


def approximation_bias(
    graphs: Sequence[FactGraph],
    specification: Specification | None = None,
    *,
    backends: Sequence[str | Backend] = ("lbp", "wmb"),
    objective: str = Objective.LIKELIHOOD,
    penalty: float | None = None,
) -> ApproximationBias:
    """How far parameters learned with approximate inference are from the exact ones.

    Args:
        graphs: the responses, with labels on atoms, small enough for exact inference.
        specification: what is learned; None: one atom prior and one temperature.
        backends: the backends that are compared with ``exact``, by name or built.
        objective, penalty: as in `fit`.

    Raises:
        InputError: as `fit` does.
        InferenceError: if a backend cannot answer for these responses.
    """
    exact = fit(graphs, specification, objective=objective, penalty=penalty)
    fits = tuple(
        fit(graphs, specification, objective=objective, penalty=penalty, backend=backend)
        for backend in backends
    )
    rows = [
        BackendBias(
            backend=other.backend,
            name=known.name,
            exact=known.estimate,
            estimate=found.estimate,
            difference=found.estimate - known.estimate,
            standard_errors=(found.unbounded - known.unbounded) / known.unbounded_error
            if known.status is ValueStatus.OK
            else float("nan"),
            status=other.status,
        )
        for other in fits
        for known, found in zip(exact.table(), other.table(), strict=True)
    ]
    return ApproximationBias(exact, fits, tuple(rows))
