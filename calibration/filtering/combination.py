"""Combination of several scores of the same claims, chosen or learned on separate responses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.filtering.conformal import Promise, filter_of
from calibration.folds import folds_of
from calibration.grouping import Grouping, group_by_response
from calibration.scores.logistic import combined, fit_logistic, sigmoid
from calibration.validation import Floats, Integers

_LEAST = 1e-4
"""Scores closer to 0 or 1 count as this far away, so that no log odds is infinite."""

_PRIOR = 2.0
"""Weight of the pseudo-observation, half true, that pulls each coefficient toward 0. With it the
likelihood has a maximum even if the labels are separated."""

_FOLDS = 5


@dataclass(frozen=True)
class Combination:
    """A score of claims, made from one or several given scores.

    Attributes:
        names: names of the given scores.
        weights: weight of the log odds of each; empty for one score that is used as given.
        constant: number added to the weighted sum; 0 for a score that is used as given.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...] = ()
    constant: float = 0.0

    @property
    def title(self) -> str:
        """Name for readers."""
        return " + ".join(self.names)

    def scores(self, values: Floats) -> Floats:
        """Score of each claim, (n,) in [0, 1].

        Args:
            values: scores in [0, 1], (n, k), a column for each of `names`.
        """
        if not self.weights:
            return values[:, 0]
        linear = combined(np.array(self.weights), _log_odds(values).T) + self.constant
        return np.asarray(sigmoid(linear), dtype=np.float64)


@dataclass(frozen=True)
class Candidate:
    """A score that was considered.

    Attributes:
        combination: the score.
        kept: share of claims that a filter with this score keeps.
        auroc: area under the ROC curve, which decides between equal shares; nan if all labels are
            equal.
    """

    combination: Combination
    kept: float
    auroc: float


def choose_scores(
    values: Floats,
    y: Floats,
    responses: Sequence[Hashable] | Integers,
    groups: Sequence[Hashable] | Integers,
    names: Sequence[str],
    promise: Promise,
    *,
    adjust: Callable[[Floats], Floats] | None = None,
    seed: int = 0,
) -> tuple[Candidate, ...]:
    """Candidate scores, the best first: each given score alone, and a logistic regression of all.

    The best score keeps most claims with the thresholds of the groups. The regression is judged by
    the scores of folds of responses that it did not learn from. Calibration needs other responses
    than those given here: a threshold calibrated on the same labels has no guarantee.

    Args:
        values: given scores in [0, 1], (n, k).
        y: labels (n,): 1, 0, or nan where unlabeled.
        responses: response ids (n,).
        groups: group of each claim, (n,).
        names: names of the k given scores.
        promise: the guarantee.
        adjust: function of scores (n,), such as `supported_scores` with the dependencies.
        seed: seed of the folds.
    """
    known = ~np.isnan(y)
    grouping = group_by_response(responses)
    alone = [(Combination((name,)), values[:, number]) for number, name in enumerate(names)]
    candidates = [*alone, _regression(values, y, grouping, names, seed)]
    judged = []
    for combination, scores in candidates:
        adjusted = scores if adjust is None else adjust(scores)
        kept = _share_kept(
            adjusted[known], y[known], grouping.of(known), _at(groups, known), promise
        )
        judged.append(Candidate(combination, kept, _auroc(adjusted[known], y[known])))
    # The sort is stable: among equal scores, the first name wins.
    return tuple(sorted(judged, key=lambda each: (-each.kept, -np.nan_to_num(each.auroc))))


def _regression(
    values: Floats, y: Floats, grouping: Grouping, names: Sequence[str], seed: int
) -> tuple[Combination, Floats]:
    """Logistic regression of all scores, and its scores on folds that it did not learn from."""
    scores = np.empty(len(values))
    fold = folds_of(grouping, min(_FOLDS, len(grouping.responses)), seed)
    for number in range(int(fold.max()) + 1):
        inside = fold == number
        scores[inside] = _fitted(values[~inside], y[~inside], names).scores(values[inside])
    return _fitted(values, y, names), scores


def _fitted(values: Floats, y: Floats, names: Sequence[str]) -> Combination:
    known = ~np.isnan(y)
    columns = _log_odds(values[known])
    mean, spread = columns.mean(axis=0), columns.std(axis=0)
    spread[spread == 0] = 1.0
    standard = (columns - mean) / spread
    n_columns = standard.shape[1]
    # Pseudo-observations with a single column each: the log-F(2, 2) prior.
    design = np.vstack([np.column_stack([standard, np.ones(len(standard))]), np.eye(n_columns + 1)])
    weight = np.concatenate([np.ones(len(standard)), np.full(n_columns + 1, _PRIOR)])
    true = np.concatenate([y[known], np.full(n_columns + 1, _PRIOR / 2)])
    coefficients = fit_logistic(np.ascontiguousarray(design.T), weight, true).coefficients
    weights = coefficients[:-1] / spread
    constant = float(coefficients[-1] - (weights * mean).sum())
    return Combination(tuple(names), tuple(weights.tolist()), constant)


def _share_kept(
    p: Floats, y: Floats, grouping: Grouping, groups: list[Hashable], promise: Promise
) -> float:
    by_group = group_by_response(groups)
    kept = 0.0
    for number in range(len(by_group.responses)):
        inside = by_group.index == number
        threshold = filter_of(p[inside], y[inside], grouping.of(inside), promise).threshold
        kept += float((p[inside] > threshold).sum())
    return kept / p.size


def _at(groups: Sequence[Hashable] | Integers, known: NDArray[np.bool_]) -> list[Hashable]:
    return [group for group, wanted in zip(groups, known.tolist(), strict=True) if wanted]


def _auroc(p: Floats, y: Floats) -> float:
    from scipy.stats import rankdata

    n_true = float(y.sum())
    n_false = y.size - n_true
    if not n_true or not n_false:
        return float("nan")
    ranks = float(rankdata(p)[y == 1].sum())
    return (ranks - n_true * (n_true + 1) / 2) / (n_true * n_false)


def _log_odds(values: Floats) -> Floats:
    clipped = np.clip(values, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(clipped) - np.log1p(-clipped), dtype=np.float64)
