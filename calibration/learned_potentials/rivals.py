"""Learners of tables of claims: the field and rivals without a graph, cross-fitted alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibration.learned_potentials.columns import ClaimTable
from calibration.learned_potentials.fitting import FieldSettings, fit_fields
from calibration.validation import Floats, Integers

Predict = Callable[[ClaimTable], Floats]
"""Probability of each claim of a table with the same columns, (n,)."""

Learner = Callable[[ClaimTable, Sequence[Integers]], list[Predict]]
"""From a table and parts of its labelled claims to what each part teaches."""

_INNER_FOLDS = 3


def cross_fitted(
    learner: Learner, table: ClaimTable, fold: Integers, parts: Sequence[Integers] | None = None
) -> Floats:
    """Probability of each claim by what the other folds teach, (n,).

    Args:
        learner: the learner.
        table: the claims.
        fold: the fold of each, (n,), from 0 on.
        parts: what is learned from where each fold is asked; None: all labels of the others.
    """
    asked = range(int(fold.max()) + 1)
    if parts is None:
        parts = [table.labelled[fold[table.labelled] != one] for one in asked]
    p = np.empty(len(fold))
    for one, predict in zip(asked, learner(table, parts), strict=True):
        p[fold == one] = predict(table)[fold == one]
    return p


def field(settings: FieldSettings | None = None) -> Learner:
    """The field of a table's columns and causes."""
    return lambda table, parts: [f.probabilities for f in fit_fields(table, parts, settings)]


def of_each(fit: Callable[[ClaimTable, Integers], Predict]) -> Learner:
    """The learner of what is fitted to one part after another."""
    return lambda table, parts: [fit(table, part) for part in parts]


@of_each
def base_rate(table: ClaimTable, part: Integers) -> Predict:
    """Share of true claims."""
    rate = float(table.labels[part].mean())
    return lambda asked: np.full(len(asked.labels), rate)


@of_each
def as_given(table: ClaimTable, part: Integers) -> Predict:  # noqa: ARG001
    """The table's only column as it is."""
    return lambda asked: asked.values[:, 0]


def recalibrated(name: str) -> Learner:
    """A recalibrator of `calibration.recalibration` of the table's only column."""

    @of_each
    def learner(table: ClaimTable, part: Integers) -> Predict:
        from calibration.recalibration import RECALIBRATORS

        found = RECALIBRATORS[name]().fit(table.values[part, 0], table.labels[part])
        return lambda asked: np.asarray(found.predict(asked.values[:, 0]))

    return learner


def of_posteriors(table: ClaimTable, p: Floats) -> ClaimTable:
    """The table with given posteriors as its only column."""
    return replace(table, names=("given",), values=p[:, np.newaxis], groups={})


@of_each
def logistic(table: ClaimTable, part: Integers) -> Predict:
    """Logistic regression on the standardised columns, its penalty chosen by inner folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return _searched(estimator, {"logisticregression__C": [0.003, 0.03, 0.3]}, table, part)


@of_each
def boosted_trees(table: ClaimTable, part: Integers) -> Predict:
    """Boosted trees on the columns, depth and number chosen by inner folds."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    estimator = HistGradientBoostingClassifier(
        learning_rate=0.05, min_samples_leaf=40, random_state=0
    )
    return _searched(estimator, {"max_depth": [2, 3], "max_iter": [60, 120]}, table, part)


def _searched(
    estimator: Any, grid: dict[str, list[Any]], table: ClaimTable, part: Integers
) -> Predict:
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from threadpoolctl import threadpool_limits

    responses = table.responses[part]
    n_folds = min(_INNER_FOLDS, len(np.unique(responses)))
    search = GridSearchCV(
        estimator, grid, scoring="neg_brier_score", cv=GroupKFold(n_folds), n_jobs=1
    )
    # So few rows lose more by being shared among threads than they win.
    with threadpool_limits(1):
        search.fit(table.values[part], table.labels[part], groups=responses)
    return lambda asked: np.asarray(search.predict_proba(asked.values)[:, 1])
