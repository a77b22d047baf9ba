"""Learners of tables of claims: the field and rivals without a graph, cross-fitted alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
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


def base_rate(table: ClaimTable, parts: Sequence[Integers]) -> list[Predict]:
    """Share of true claims."""
    rates = [float(table.labels[part].mean()) for part in parts]
    return [partial(_constant, rate) for rate in rates]


def _constant(rate: float, asked: ClaimTable) -> Floats:
    return np.full(len(asked.labels), rate)


def as_given(table: ClaimTable, parts: Sequence[Integers]) -> list[Predict]:  # noqa: ARG001
    """The table's only column as it is."""
    return [lambda asked: asked.values[:, 0]] * len(parts)


def recalibrated(name: str) -> Learner:
    """A recalibrator of `calibration.recalibration` of the table's only column."""

    def learner(table: ClaimTable, parts: Sequence[Integers]) -> list[Predict]:
        from calibration.recalibration import RECALIBRATORS

        found = [
            RECALIBRATORS[name]().fit(table.values[part, 0], table.labels[part]) for part in parts
        ]
        return [partial(_recalibrated, one) for one in found]

    return learner


def _recalibrated(recalibrator: Any, asked: ClaimTable) -> Floats:
    return np.asarray(recalibrator.predict(asked.values[:, 0]))


def of_posteriors(table: ClaimTable, p: Floats) -> ClaimTable:
    """The table with given posteriors as its only column."""
    return replace(table, names=("given",), values=p[:, np.newaxis], groups={})


def logistic(table: ClaimTable, parts: Sequence[Integers]) -> list[Predict]:
    """Logistic regression on the standardised columns, its penalty chosen by inner folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return _searched(estimator, {"logisticregression__C": [0.003, 0.03, 0.3]}, table, parts)


def boosted_trees(table: ClaimTable, parts: Sequence[Integers]) -> list[Predict]:
    """Boosted trees on the columns, depth and number chosen by inner folds."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    estimator = HistGradientBoostingClassifier(
        learning_rate=0.05, min_samples_leaf=40, random_state=0
    )
    return _searched(estimator, {"max_depth": [2, 3], "max_iter": [60, 120]}, table, parts)


def _searched(
    estimator: Any, grid: dict[str, list[Any]], table: ClaimTable, parts: Sequence[Integers]
) -> list[Predict]:
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from threadpoolctl import threadpool_limits

    found: list[Predict] = []
    for part in parts:
        responses = table.responses[part]
        n_folds = min(_INNER_FOLDS, len(np.unique(responses)))
        search = GridSearchCV(
            estimator, grid, scoring="neg_brier_score", cv=GroupKFold(n_folds), n_jobs=1
        )
        # So few rows lose more by being shared among threads than they win.
        with threadpool_limits(1):
            search.fit(table.values[part], table.labels[part], groups=responses)
        found.append(partial(_classified, search))
    return found


def _classified(model: Any, asked: ClaimTable) -> Floats:
    return np.asarray(model.predict_proba(asked.values)[:, 1])
