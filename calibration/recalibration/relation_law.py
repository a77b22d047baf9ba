"""What the votes of several answers are worth, learned from labels of relations or of claims.

Both fits have the coefficients of `ConsensusLaw`, and are pulled to those that take the votes as
they are: half a squared distance from them, times the penalty, stands beside the log loss. So few
labels change little, and labels that agree with the votes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.extraction.relation_models.consensus import relation_probabilities
from factormodels.nouns import counted

PENALTY = 1.0
_HIGHEST = 1.0 - 1e-9
"""A passage's pull on a claim stays below this: a sure one has infinite log odds."""


@dataclass(frozen=True, eq=False)
class RelationLaw:
    """Coefficients that were learned.

    Attributes:
        coefficients: (2 + k,) intercepts of entailment and contradiction, then weights of columns.
        log_loss: mean log loss of the labels that they were learned from.
        converged: whether the search ended at a minimum.
    """

    coefficients: Floats
    log_loss: float
    converged: bool


def fit_relations(columns: Floats, kinds: Integers, *, penalty: float = PENALTY) -> RelationLaw:
    """The law of relations that are known: a conditional logit, which has one minimum.

    Args:
        columns: (n, 3, k) columns of each relation, as `ConsensusLaw.columns` has them.
        kinds: (n,) the relation of each pair: 0 entailment, 1 contradiction, 2 neutral.
        penalty: weight of half the squared distance from the votes as they are.

    Raises:
        InputError: if there is no pair, or a kind or the penalty is out of range.
    """
    known = np.asarray(kinds)
    if columns.ndim != 3 or len(known) != len(columns) or not len(known):
        raise InputError(
            f"{len(known)} labels do not fit {counted(len(columns), 'pair')}; give one for each"
        )
    if known.min() < 0 or known.max() > 2:
        raise InputError(f"a relation is {known.min()} to {known.max()}; give 0, 1 or 2")
    right = np.eye(3)[known]

    def loss(p: Floats) -> tuple[float, Floats]:
        # Of softmax the derivative by a relation's score is its probability less its label.
        return float(-np.log((p * right).sum(axis=1)).sum()), p - right

    return _fit(columns, loss, len(known), penalty)


def fit_claims(
    columns: Floats,
    claims: Integers,
    labels: Floats,
    prior_log_odds: Floats,
    trust: Floats,
    *,
    penalty: float = PENALTY,
) -> RelationLaw:
    """The law of relations of which only is known whether the claims that they bear on are true.

    Under *mixture* a passage of trust t pulls a claim by u = t (P(entailment) - P(contradiction)),
    and the log odds of a claim of FR1 are those of its prior plus log (1 + u) / (1 - u) for each
    passage. The log loss of the claims by that is what is made small.

    Args:
        columns: (n, 3, k) columns of the relations of each pair of passage and claim.
        claims: (n,) number of each pair's claim.
        labels: (m,) whether each claim is true, 1 or 0.
        prior_log_odds: (m,) of each claim.
        trust: (n,) prior of each pair's passage.
        penalty: as in `fit_relations`.

    Raises:
        InputError: if there is no claim, or a number or the penalty is out of range.
    """
    truth = np.asarray(labels, np.float64)
    if columns.ndim != 3 or not len(truth) or not len(columns) == len(claims) == len(trust):
        raise InputError(
            f"{counted(len(claims), 'number')} of claims and {len(trust)} priors do not fit "
            f"{len(columns)} "
            "pairs; give one for each"
        )
    if len(claims) and (claims.min() < 0 or claims.max() >= len(truth)):
        raise InputError(f"the claims are numbered to {claims.max()}, and there are {len(truth)}")
    if not np.isin(truth, (0.0, 1.0)).all():
        raise InputError("a label of a claim is neither 0 nor 1; leave out claims without a label")

    def loss(p: Floats) -> tuple[float, Floats]:
        pull = np.clip(trust * (p[:, 0] - p[:, 1]), -_HIGHEST, _HIGHEST)
        log_odds = prior_log_odds + np.bincount(claims, 2.0 * np.arctanh(pull), len(truth))
        excess = 0.5 * (1.0 + np.tanh(0.5 * log_odds)) - truth
        by_pull = excess[claims] * 2.0 / (1.0 - pull * pull) * trust
        by_p = by_pull[:, None] * np.array([1.0, -1.0, 0.0])
        through = p * (by_p - (p * by_p).sum(axis=1, keepdims=True))
        return float((np.logaddexp(0.0, log_odds) - truth * log_odds).sum()), through

    return _fit(columns, loss, len(truth), penalty)


def _fit(
    columns: Floats, loss: Callable[[Floats], tuple[float, Floats]], n: int, penalty: float
) -> RelationLaw:
    """Make a loss of probabilities small, which has its derivative by the scores of relations."""
    from scipy.optimize import minimize

    if not 0.0 <= penalty < np.inf:
        raise InputError(f"the penalty is {penalty}; give a finite number from 0")
    start = np.zeros(2 + columns.shape[2])
    start[2] = 1.0

    def value(coefficients: Floats) -> tuple[float, Floats]:
        total, by_score = loss(relation_probabilities(columns, coefficients))
        away = coefficients - start
        slope = np.concatenate(
            [by_score[:, :2].sum(axis=0), np.einsum("nr,nrk->k", by_score, columns)]
        )
        return total + 0.5 * penalty * float(away @ away), slope + penalty * away

    found = minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-6 * max(n, 1)})
    total, _ = loss(relation_probabilities(columns, found.x))
    return RelationLaw(found.x, total / n, bool(found.success))
