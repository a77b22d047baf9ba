"""Fitting: the parameters under which the labels cost least, and how far they are known."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.learned_potentials.learned import FitStatus, LearnedPotentials
from calibration.learned_potentials.objectives import LearningProblem, Objective, problem
from calibration.learned_potentials.terms import Parameters, Potentials, resolve
from calibration.validation import Floats, is_number, member_named, whole_number
from factormodels.errors import InputError
from factormodels.evidence_source import evidence_sources
from factormodels.fact_graph import FactGraph
from inference.backend import Backend
from inference.registry import as_backend

logger = logging.getLogger(__name__)

_AT_BOUND = 1e-6
_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.02)
"""Lengths of a step that are tried, the first that helps is taken."""

_GAIN = 1e-9
"""Where a step wins less per label, scoring ends."""

_SMALL_GRADIENT = {True: 1e-5, False: 2e-3}
"""Gradient per labelled atom at convergence, of exact inference and of approximations: it leaves
less than a thousandth, or a fifth, of a standard error, whose gradient is about 0.5 by the root of
the number of labels."""

CONFOUNDED = 10.0
"""Labels that leave a standard error as large in some direction, of weights, do not
determine it: a 95 percent interval of a probability then runs from 1e-8 to 1 - 1e-8."""

_TAKES_PART = 0.2
"""A parameter takes part in a direction of length 1 if it makes up as much of it."""

_UNTOUCHED = 1e-6
"""Curvatures by weights are about 0.1 for every label that bears on a parameter."""


def fit_potentials(
    graphs: Sequence[FactGraph],
    potentials: Potentials | None = None,
    *,
    parameters: Parameters | None = None,
    objective: str = Objective.LIKELIHOOD,
    backend: str | Backend = "auto",
    penalty: float | None = None,
    max_iterations: int = 500,
    quiet: bool = False,
    with_errors: bool = True,
) -> LearnedPotentials:
    """Priors and reliabilities that suit the labels best.

    L-BFGS-B of SciPy on weights of columns, which of levels are logits of probabilities, from what
    the graphs state. Responses may be labelled in part; those without labels play no part.

    Args:
        graphs: the responses, with labels on atoms.
        potentials: what is learned; None: one atom prior and one temperature.
        parameters: its free numbers, which may be those of more responses than these: what these do
            not hold stays at its start. None: those of these responses.
        objective: ``likelihood`` (of all labels of a response together), ``log_loss`` or ``brier``
            (of each atom's posterior by itself).
        backend: the inference backend, by name or built. ``auto`` is ``exact`` where one pass over
            all responses is predicted to take 2 s at most, and ``lbp`` beyond. With another than
            ``exact`` its log Z stands in for the model's.
        penalty: None, or the standard deviation s of the penalty
            (theta - start)^2 / (2 s^2) that is added for each parameter: a normal prior.
        max_iterations: after this many, the search ends as not converged.
        quiet: whether to leave warnings out.
        with_errors: whether the covariance is computed, which takes two gradients for each
            parameter.

    Raises:
        InputError: for responses without labels or with labels that the model forbids, a relation
            of probability 0 or 1 under a temperature, nothing to learn, or bad settings.
        MissingDependencyError: if a library that the backend needs is not installed.
        InferenceError: if the backend cannot answer for these responses.
    """
    potentials = Potentials() if potentials is None else potentials
    parameters = resolve(potentials, graphs) if parameters is None else parameters
    built, chosen = as_backend(backend), member_named(Objective, objective, "objective")
    checked_scale(penalty, "penalty")
    whole_number(max_iterations, "max_iterations", 1)
    task = problem(graphs, potentials, parameters, built, chosen)
    weight = 0.0 if penalty is None else 1.0 / penalty**2
    start = np.array([item.start for item in parameters], dtype=np.float64)
    ends = [(item.lower, item.upper) for item in parameters]
    bounds = np.array(ends, dtype=np.float64).reshape(-1, 2)
    theta, gradient, iterations = _search(task, start, bounds, weight, max_iterations)
    held = np.minimum(theta - bounds[:, 0], bounds[:, 1] - theta) <= _AT_BOUND
    nothing = np.full((len(theta),) * 2, np.nan)
    known: tuple[Floats, list[int], list[list[int]]] = nothing, [], []
    if with_errors:
        known = uncertainty(task, theta, held, np.full(len(theta), weight))
    covariance, untouched, confounded = known
    names = tuple(item.name for item in parameters)
    labels = task.design.labels
    small = gradient <= _SMALL_GRADIENT[task.exact]
    if labels.min() == labels.max():
        status = FitStatus.ONE_LABEL
    elif not small or (task.exact and not task.settled(theta)):
        status = FitStatus.NOT_CONVERGED
    else:
        status = FitStatus.BOUNDARY if held.any() else FitStatus.CONVERGED
    result = LearnedPotentials(
        potentials=potentials,
        parameters=parameters,
        theta=theta,
        covariance=covariance,
        objective=chosen,
        backend=task.algorithm,
        value=task.value(theta),
        n_responses=len(task.design.graphs),
        n_labelled=len(task.design.labelled),
        iterations=iterations,
        gradient=gradient,
        status=status,
        boundary=tuple(names[at] for at in np.flatnonzero(held)),
        untouched=tuple(names[at] for at in untouched),
        confounded=tuple(tuple(names[at] for at in part) for part in confounded),
        penalty=penalty,
        sources=evidence_sources(graphs),
    )
    if not quiet:
        _warn(result)
    return result


def checked_scale(scale: float | None, name: str) -> float | None:
    """Standard deviation, or None.

    Raises:
        InputError: if it is not a finite number above 0.
    """
    if scale is not None and not (is_number(scale) and 0.0 < scale < math.inf):
        raise InputError(f"{name} is {scale!r}; give a standard deviation above 0, or None")
    return scale


def _search(
    task: LearningProblem, start: Floats, bounds: Floats, weight: float, max_iterations: int
) -> tuple[Floats, float, int]:
    """Optimum, its largest projected gradient per label, and the iterations."""
    from scipy.optimize import minimize

    n_labelled = len(task.design.labelled)

    def at(theta: Floats) -> tuple[float, Floats, Floats]:
        """Cost with its penalty, gradient and outer product of scores, per label."""
        value, scores = task.value_and_scores(theta)
        away = theta - start
        gradient = scores.sum(axis=0) + weight * away
        value += 0.5 * weight * float(away @ away)
        return value / n_labelled, gradient / n_labelled, scores.T @ scores / n_labelled

    theta, iterations = start, 0
    if task.has_beliefs:
        ridge = (weight / n_labelled + 1e-6) * np.eye(len(start))
        theta, iterations = _scored(at, start, bounds, ridge, max_iterations)
    # Beliefs of an approximation are as good as its tolerance, and no further search is.
    if task.exact or not task.has_beliefs:
        left = max(max_iterations - iterations, 1)
        found = minimize(
            lambda theta: at(theta)[:2],
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": left, "ftol": 1e-14, "gtol": 1e-9, "maxls": 40},
        )
        theta = np.clip(np.asarray(found.x, dtype=np.float64), bounds[:, 0], bounds[:, 1])
        iterations += int(found.nit)
    projected = theta - np.clip(theta - at(theta)[1], bounds[:, 0], bounds[:, 1])
    return theta, float(np.abs(projected).max()), iterations


def _scored(
    at: Callable[[Floats], tuple[float, Floats, Floats]],
    theta: Floats,
    bounds: Floats,
    ridge: Floats,
    max_iterations: int,
) -> tuple[Floats, int]:
    """Where steps by the outer product of the responses' scores lead (Berndt and others 1974).

    It is about the curvature, and costs no more than a gradient: correlated columns, which searches
    by gradients alone take a hundred runs of inference for, take a dozen.
    """
    value, gradient, product = at(theta)
    for iteration in range(max_iterations):
        step = np.linalg.solve(product + ridge, gradient)
        for length in _LENGTHS:
            moved = np.clip(theta - length * step, bounds[:, 0], bounds[:, 1])
            found = at(moved)
            if found[0] < value:
                break
        else:
            return theta, iteration
        gain, theta = value - found[0], moved
        value, gradient, product = found
        if gain < _GAIN:
            return theta, iteration + 1
    return theta, max_iterations


def _warn(learned: LearnedPotentials) -> None:
    told = (
        ("no label bears on %s: it stays at its start; fix it or drop it", learned.untouched),
        (
            "the labels cannot tell %s apart: other values suit them as well; fix one of them, "
            "share it, or give a penalty",
            [" and ".join(names) for names in learned.confounded],
        ),
        (
            "%s stands at the end of its range: the labels have no optimum inside; fix it or give "
            "a penalty",
            learned.boundary,
        ),
    )
    for message, names in told:
        for name in names:
            logger.warning(message, name)
    if learned.status is FitStatus.ONE_LABEL:
        logger.warning("all labels are alike, so that priors and reliabilities have no optimum")
    elif learned.status is FitStatus.NOT_CONVERGED:
        logger.warning(
            "the search did not converge: the largest gradient per label is %.1e after %d "
            "iterations",
            learned.gradient,
            learned.iterations,
        )


def sandwich(bread: NDArray[Any], scores: Floats) -> Floats:
    """H^-1 (sum of s s^T) H^-1 R/(R - 1) of the inverse curvature (k, k) and R scores (R, k).

    H is the curvature of the objective with its penalty, s the derivative of what each of R
    responses adds to it (Liang & Zeger 1986, "Longitudinal data analysis using generalized linear
    models", equation 6; the factor for few clusters as in Cameron & Miller 2015, equation 12).
    """
    n_responses = len(scores)
    return np.asarray(n_responses / max(n_responses - 1, 1) * bread @ (scores.T @ scores) @ bread)


def uncertainty(
    problem: LearningProblem, theta: Floats, held: NDArray[np.bool_], penalty: Floats
) -> tuple[Floats, list[int], list[list[int]]]:
    """Covariance (k, k) by `sandwich` clustered by response, and what it cannot give.

    It is nan in rows and columns of parameters at a bound, of those on which no label bears, whose
    positions come second, and of those that move together without the objective noticing, whose
    positions come third, group by group.

    Args:
        problem: the objective.
        theta: the optimum, (k,).
        held: bool (k,), parameters at a bound, where there is no curvature to go by.
        penalty: (k,), curvature of the penalty.
    """
    k, n_responses = len(theta), len(problem.design.graphs)
    covariance = np.full((k, k), np.nan)
    curvature = problem.hessian(theta)
    scale = np.abs(curvature).max(axis=1)
    untouched = np.flatnonzero(~held & (scale <= _UNTOUCHED))
    inside = np.flatnonzero(~held & (scale > _UNTOUCHED))
    values, vectors = np.linalg.eigh(curvature[np.ix_(inside, inside)])
    flat = values < 1.0 / CONFOUNDED**2
    parts = [np.flatnonzero(np.abs(vectors[:, at]) >= _TAKES_PART) for at in np.flatnonzero(flat)]
    confounded = [inside[part].tolist() for part in parts]
    if n_responses > 1 and len(inside):
        scores = problem.value_and_scores(theta)[1][:, inside]
        if penalty.any():
            bread = np.linalg.inv(curvature[np.ix_(inside, inside)] + np.diag(penalty[inside]))
        else:
            bread = (vectors[:, ~flat] / values[~flat]) @ vectors[:, ~flat].T
        covariance[np.ix_(inside, inside)] = sandwich(bread, scores)
        if not penalty.any():
            unknown = sorted({place for part in confounded for place in part})
            covariance[unknown, :] = covariance[:, unknown] = np.nan
    return covariance, untouched.tolist(), confounded
