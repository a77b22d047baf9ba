"""Logistic regression with a random level per response, by maximum likelihood.

statsmodels offers variational Bayes, whose standard errors are too small by half here, and a joint
posterior mode, which loses the variance between responses; so the likelihood is integrated over the
levels by adaptive Gauss-Hermite quadrature (Pinheiro and Bates 1995, Journal of Computational and
Graphical Statistics 4) and maximised with its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.grouping import Grouping
from calibration.validation import Floats

N_NODES = 15
"""Adapted to each response, these leave an error in log-likelihood far below sampling error."""

_NEWTON_STEPS = 50


@dataclass(frozen=True, eq=False)
class MixedLogistic:
    """A fit.

    Attributes:
        coefficient: float64 (n_terms,), effects within a response, in log odds.
        covariance: float64 (n_terms, n_terms), of the effects, from the observed information.
        spread: standard deviation of the levels of responses, in log odds.
        log_likelihood: at the maximum.
        converged: whether the maximum was found.
    """

    coefficient: Floats
    covariance: Floats
    spread: float
    log_likelihood: float
    converged: bool


def fit_mixed_logistic(outcome: Floats, design: Floats, grouping: Grouping) -> MixedLogistic:
    """Fit of logit P(outcome = 1) = design b + s z, z standard normal per response.

    Args:
        outcome: float64 (n_rows,), 1 and 0.
        design: float64 (n_rows, n_terms), of full column rank.
        grouping: which response each row belongs to.
    """
    from scipy.optimize import minimize
    from statsmodels.tools.numdiff import approx_fprime

    def objective(parameters: Floats) -> tuple[float, Floats]:
        value, gradient = log_likelihood(parameters, outcome, design, grouping)
        return -value, -gradient

    start = np.append(np.zeros(design.shape[1]), 0.5)
    options = {"maxiter": 500, "gtol": 1e-6 * outcome.size}
    result = minimize(objective, start, jac=True, method="BFGS", options=options)
    information = approx_fprime(result.x, lambda x: objective(x)[1], centered=True)
    covariance = np.linalg.pinv((information + information.T) / 2)
    return MixedLogistic(
        coefficient=result.x[:-1],
        covariance=covariance[:-1, :-1],
        spread=abs(float(result.x[-1])),
        log_likelihood=-float(result.fun),
        converged=bool(result.success),
    )


def log_likelihood(
    parameters: Floats, outcome: Floats, design: Floats, grouping: Grouping
) -> tuple[float, Floats]:
    """Log-likelihood in nats and its gradient, at (b, s); s may have either sign."""
    from scipy.special import expit, logsumexp

    effects, spread = parameters[:-1], float(parameters[-1])
    sign = 2 * outcome - 1
    linear = design @ effects
    centre, width = _modes(linear, spread, outcome, grouping)
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)

    # Nodes lie around each response's own mode: (n_responses, n_nodes).
    levels = centre[:, np.newaxis] + width[:, np.newaxis] * nodes
    log_weights = (
        np.log(weights) + nodes**2 / 2 + np.log(width)[:, np.newaxis] - levels**2 / 2
    ) - np.log(2 * np.pi) / 2
    logits = linear[:, np.newaxis] + spread * levels[grouping.index]
    terms = -np.logaddexp(0.0, -sign[:, np.newaxis] * logits)
    joint = log_weights + _sums(terms, grouping)
    own = logsumexp(joint, axis=1)

    posterior = np.exp(joint - own[:, np.newaxis])
    surplus = outcome[:, np.newaxis] - expit(logits)
    per_row = (posterior[grouping.index] * surplus).sum(axis=1)
    in_spread = (posterior * levels * _sums(surplus, grouping)).sum()
    return float(own.sum()), np.append(design.T @ per_row, in_spread)


def _modes(
    linear: Floats, spread: float, outcome: Floats, grouping: Grouping
) -> tuple[Floats, Floats]:
    """Mode of each response's level and the width of its law there, (n_responses,)."""
    from scipy.special import expit

    level = np.zeros(len(grouping.responses))
    width = np.ones_like(level)
    for _ in range(_NEWTON_STEPS):
        chance = expit(linear + spread * level[grouping.index])
        slope = spread * grouping.sums(outcome - chance) - level
        width = 1 / np.sqrt(1 + spread**2 * grouping.sums(chance * (1 - chance)))
        # Within one prior deviation per step, so that a flat likelihood does not overshoot.
        step = np.clip(slope * width**2, -1.0, 1.0)
        level = level + step
        if np.abs(step).max() < 1e-10:
            break
    return level, width


def _sums(values: Floats, grouping: Grouping) -> Floats:
    """Sums over each response of columns (n_rows, n_nodes)."""
    totals: Any = np.zeros((len(grouping.responses), values.shape[1]))
    for column in range(values.shape[1]):
        totals[:, column] = grouping.sums(values[:, column])
    return np.asarray(totals)
