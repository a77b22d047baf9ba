"""How far the parameters are known: curvature, errors clustered by response, what is confounded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.learned_potentials.objectives import LearningProblem
from calibration.validation import Floats

CONFOUNDED = 10.0
"""Labels that leave a standard error as large in some direction, of weights, do not
determine it: a 95 percent interval of a probability then runs from 1e-8 to 1 - 1e-8."""

_TAKES_PART = 0.2
"""A parameter takes part in a direction of length 1 if it makes up as much of it."""

_UNTOUCHED = 1e-6
"""Curvatures by weights are about 0.1 for every label that bears on a parameter."""


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
    k, n_responses = len(theta), len(problem.design.ids)
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
