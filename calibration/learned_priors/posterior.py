"""The posterior of the parameters: draws under weak normal priors, and the density they come from.

The prior of each parameter is normal on its scale without bounds (logit of a probability, logarithm
of a temperature), with the value that the graphs state as its mean. With the standard deviation of
2 that is the default, 95 percent of a prior stated as 0.5 lie between 0.02 and 0.98, and of a
temperature between 0.02 and 50.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.learned_priors.fitting import checked_scale, fit_parameters
from calibration.learned_priors.learned import apply
from calibration.learned_priors.objectives import LearningProblem, Objective, problem
from calibration.learned_priors.parameters import Parameters, resolve
from calibration.learned_priors.specification import Specification
from calibration.learned_priors.uncertainty import hessian
from calibration.tabular import TableOf
from calibration.validation import Floats, open_interval
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from inference.backend import Backend
from inference.registry import as_backend

PRIOR_SCALE = 2.0


@dataclass(frozen=True)
class PosteriorValue:
    """What the posterior says of one parameter, as a probability or a temperature.

    Attributes:
        name: what it is.
        mean: posterior mean.
        standard_deviation: posterior standard deviation.
        lower: lower end of the central interval.
        upper: its upper end.
        unbounded_mean: mean on the scale without bounds.
        unbounded_deviation: standard deviation there.
        r_hat: split R-hat on that scale; nan where there are no chains.
        effective_draws: effective sample size there.
    """

    name: str
    mean: float
    standard_deviation: float
    lower: float
    upper: float
    unbounded_mean: float
    unbounded_deviation: float
    r_hat: float
    effective_draws: float


class PosteriorValues(TableOf[PosteriorValue]):
    """What is known of each parameter, a tuple of `PosteriorValue`."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class ParameterPosterior:
    """Draws of the parameters given the labels.

    Attributes:
        specification: what was learned.
        parameters: the free numbers, in order.
        draws: float64 (chains, draws, k), on the scales without bounds.
        r_hat: float64 (k,), split R-hat; nan for a fitted guide, which has no chains.
        effective_draws: float64 (k,), effective sample size over all chains.
        method: ``nuts`` or ``svi``.
        prior_scale: standard deviation of the normal priors.
        divergences: transitions of NUTS that diverged; 0 for ``svi``.
        bounds: float64 (steps,), the evidence lower bound by step of ``svi``; empty for ``nuts``.
        seed: seed of the random numbers.
    """

    specification: Specification
    parameters: Parameters
    draws: Floats
    r_hat: Floats
    effective_draws: Floats
    method: str
    prior_scale: float
    divergences: int
    bounds: Floats
    seed: int

    def table(self, level: float = 0.95) -> PosteriorValues:
        """Mean, spread and central interval of each parameter.

        Args:
            level: probability of the interval.
        """
        level = open_interval(level, "level", 0, 1)
        flat = self.draws.reshape(-1, self.draws.shape[-1])
        natural = self.parameters.natural(flat)
        ends = np.quantile(natural, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return PosteriorValues(
            PosteriorValue(
                name=name,
                mean=float(natural[:, at].mean()),
                standard_deviation=float(natural[:, at].std(ddof=1)),
                lower=float(ends[0, at]),
                upper=float(ends[1, at]),
                unbounded_mean=float(flat[:, at].mean()),
                unbounded_deviation=float(flat[:, at].std(ddof=1)),
                r_hat=float(self.r_hat[at]),
                effective_draws=float(self.effective_draws[at]),
            )
            for at, name in enumerate(self.parameters.names)
        )

    def apply(self, graph: FactGraph) -> FactGraph:
        """Response with priors and probabilities at the posterior mean, unbounded scale.

        Raises:
            InputError: if it holds a class of relations or a group for which nothing was learned.
        """
        mean = self.draws.reshape(-1, self.draws.shape[-1]).mean(axis=0)
        return apply(graph, self.specification, self.parameters, mean)


@dataclass(frozen=True, eq=False)
class Target:
    """The log density of the posterior, and coordinates in which it is about standard normal.

    Attributes:
        specification: what is learned.
        parameters: the free numbers.
        problem: minus the log likelihood.
        prior_scale: standard deviation of the normal priors.
        mode: float64 (k,), the parameters of largest density.
        root: float64 (k, k), lower triangular; theta = mode + root z, z about standard normal.
    """

    specification: Specification
    parameters: Parameters
    problem: LearningProblem
    prior_scale: float
    mode: Floats
    root: Floats

    def log_likelihood(self, theta: Floats) -> tuple[float, Floats]:
        """Log likelihood and its derivatives, (k,).

        Outside the range of the search it is what it is at its end: the prior alone goes on.
        """
        bounds = self.parameters.bounds
        inside = np.clip(theta, bounds[:, 0], bounds[:, 1])
        value, gradient = self.problem.value_and_gradient(inside)
        return -value, np.where(inside == theta, -gradient, 0.0)

    def log_density(self, z: Floats) -> tuple[float, Floats]:
        """Log density at standardised coordinates (k,), less a constant, and slopes."""
        theta = self.mode + self.root @ z
        value, gradient = self.log_likelihood(theta)
        away = (theta - self.parameters.start) / self.prior_scale
        value -= 0.5 * float(away @ away)
        return value, self.root.T @ (gradient - away / self.prior_scale)


def target(
    graphs: Sequence[FactGraph],
    specification: Specification | None,
    prior_scale: Any,
    backend: str | Backend,
) -> Target:
    """Posterior of the parameters given the labels.

    Raises:
        InputError: as `fit` does, or for a backend whose log Z has no gradient.
    """
    chosen = Specification() if specification is None else specification
    scale = checked_scale(prior_scale, "prior_scale")
    if scale is None:
        raise InputError("prior_scale is None; give the standard deviation of the priors")
    parameters, source = resolve(chosen, graphs), as_backend(backend)
    task = problem(graphs, chosen, parameters, source, Objective.LIKELIHOOD)
    if not task.exact_gradient:
        raise InputError(
            f"the backend {source.name!r} gives no gradient of its log Z, which every step "
            "towards the posterior needs; use 'exact' or 'lbp'"
        )
    learned = fit_parameters(
        graphs,
        chosen,
        parameters,
        backend=source,
        objective=Objective.LIKELIHOOD,
        penalty=scale,
        max_iterations=500,
        quiet=True,
    )
    # The penalty is the prior, so that the curvature is positive even where labels say nothing.
    values, vectors = np.linalg.eigh(hessian(task, learned.theta))
    precision = np.maximum(values, 0.0) + scale**-2.0
    covariance = (vectors / precision) @ vectors.T
    root = np.linalg.cholesky(covariance)
    return Target(chosen, parameters, task, scale, learned.theta, root)
