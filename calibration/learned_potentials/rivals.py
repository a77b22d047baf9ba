"""Rivals of a field, which learn from the same columns without a graph, cross-fitted alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.learned_potentials.columns import ClaimTable
from calibration.validation import Floats, Integers

_INNER_FOLDS = 3


def base_rate(table: ClaimTable, fold: Integers) -> Floats:
    """Share of true claims in the other folds, (n,)."""
    rates = [np.nanmean(table.labels[fold != one]) for one in range(int(fold.max()) + 1)]
    return np.asarray(np.array(rates)[fold])


def logistic(table: ClaimTable, fold: Integers) -> Floats:
    """Logistic regression on the standardised columns, its penalty chosen by inner folds, (n,)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return _searched(estimator, {"logisticregression__C": [0.003, 0.03, 0.3]}, table, fold)


def boosted_trees(table: ClaimTable, fold: Integers) -> Floats:
    """Boosted trees on the columns, depth and number chosen by inner folds, (n,)."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    estimator = HistGradientBoostingClassifier(
        learning_rate=0.05, min_samples_leaf=40, random_state=0
    )
    return _searched(estimator, {"max_depth": [2, 3], "max_iter": [60, 120]}, table, fold)


def _searched(
    estimator: Any, grid: dict[str, list[Any]], table: ClaimTable, fold: Integers
) -> Floats:
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from threadpoolctl import threadpool_limits

    labelled, p = ~np.isnan(table.labels), np.empty(len(fold))
    for one in range(int(fold.max()) + 1):
        taught = labelled & (fold != one)
        responses = table.responses[taught]
        n_folds = min(_INNER_FOLDS, len(np.unique(responses)))
        search = GridSearchCV(
            estimator, grid, scoring="neg_brier_score", cv=GroupKFold(n_folds), n_jobs=1
        )
        # So few rows lose more by being shared among threads than they win.
        with threadpool_limits(1):
            search.fit(table.values[taught], table.labels[taught], groups=responses)
        p[fold == one] = search.predict_proba(table.values[fold == one])[:, 1]
    return p
