"""Judges that the labels taught: intervals hold by folds, and not by judges that saw the labels."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibration.estimation import (
    FoldJudges,
    auroc,
    brier,
    cross_predicted,
    ece,
    estimate,
    quantity_by_judges,
    share,
)
from calibration.estimation.cross_prediction import training_variance
from calibration.learned_potentials.columns import ClaimTable
from calibration.learned_potentials.methods import Predict, fold_judges, labeled_folds, of_each
from notebooks.questions.labels_once import normal_interval
from tests.chance import least_held

N_RESPONSES, SIZE, N_COLUMNS, N_LABELED, N_FOLDS = 157, 6, 8, 12, 4
RESPONSES = np.repeat(np.arange(N_RESPONSES), SIZE)


@of_each
def ridge(table: ClaimTable, part: Any) -> Predict:
    """Logistic regression with a penalty of 1, by six steps of Newton: a field is slower."""

    def with_ones(values: Any) -> Any:
        return np.column_stack([values, np.ones(len(values))])

    columns, labels = with_ones(table.values[part]), table.labels[part]
    weights, penalty = np.zeros(columns.shape[1]), np.eye(columns.shape[1])
    for _ in range(6):
        p = 1 / (1 + np.exp(-columns @ weights))
        curvature = (columns * (p * (1 - p))[:, None]).T @ columns + penalty
        weights += np.linalg.solve(curvature, columns.T @ (labels - p) - weights)
    return lambda asked: 1 / (1 + np.exp(-with_ones(asked.values) @ weights))


def drawn(seed: int) -> tuple[ClaimTable, Any]:
    """Claims whose truth the columns tell in part, labels of some responses, and all labels."""
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(RESPONSES.size, N_COLUMNS))
    level = generator.normal(0.5, 0.7, N_RESPONSES)[RESPONSES]
    truth = generator.random(RESPONSES.size) < 1 / (1 + np.exp(-level - values[:, 0]))
    labeled = generator.choice(N_RESPONSES, N_LABELED, replace=False)
    labels = np.where(np.isin(RESPONSES, labeled), truth, np.nan)
    ids = tuple((str(response), "c") for response in RESPONSES)
    table = ClaimTable(
        tuple(f"x{column}" for column in range(N_COLUMNS)), values, labels, RESPONSES, {}, ids,
        N_RESPONSES,
    )  # fmt: skip
    return table, truth


@pytest.mark.parametrize("draws", [120, pytest.param(600, marks=pytest.mark.nightly)])
def test_intervals_hold_by_folds_and_not_by_a_judge_that_saw_the_labels(draws: int) -> None:
    covered: Counter[tuple[str, str]] = Counter()
    errors: dict[str, list[float]] = {}
    for seed in range(draws):
        table, truth = drawn(seed)
        ways = {
            f"{n_folds} folds": fold_judges(ridge, table, labeled_folds(table, n_folds, seed))
            for n_folds in (5, N_LABELED)
        }
        seen = ridge(table, [table.labeled])[0](table)
        for name, quantity in (("share", share), ("brier", brier)):

            def hidden(p: Any, quantity: Any = quantity, labels: Any = table.labels) -> Any:
                return quantity(p, labels, RESPONSES)

            each = {
                way: (judges.unseen(), cross_predicted(hidden, judges, RESPONSES))
                for way, judges in ways.items()
            }
            alone = {
                f"{way}, residuals alone": (p, replace(made, training_variance=0.0))
                for way, (p, made) in each.items()
            }
            for way, (p, made) in (each | alone | {"seen": (seen, hidden(seen))}).items():
                losses = (p - truth) ** 2 if name == "brier" else truth
                estimated = estimate(made)
                covered[way, name] += estimated.lower <= losses.mean() <= estimated.upper
                if name == "brier":
                    errors.setdefault(way, []).append(estimated.value - losses.mean())
                if way == "seen":
                    lower, upper = normal_interval(made, estimated.power)
                    covered["seen, normal", name] += lower <= losses.mean() <= upper

    def most_held(share: float) -> float:
        # The bound of 600 draws; of fewer, wider by as much as 2.8 standard errors are.
        errors = [math.sqrt(share * (1 - share) / number) for number in (draws, 600)]
        return draws * (share + 2.8 * (errors[0] - errors[1]))

    # Shares hold in .955 of these draws, by a judge that saw the labels too, but not with normal
    # intervals from its residuals, which cover in .89.
    for way in ("5 folds", "12 folds", "seen"):
        assert least_held(draws) <= covered[way, "share"] <= most_held(0.97)
    assert covered["seen, normal", "share"] <= most_held(0.92)
    # Brier scores hold in .97 by folds, and in .89 and .93 without the variance from the training
    # of judges on labels of each other's folds. A judge that saw the labels is too sure of them.
    for way in ("5 folds", "12 folds"):
        assert least_held(draws) <= covered[way, "brier"] <= most_held(0.985)
        assert covered[f"{way}, residuals alone", "brier"] <= most_held(0.94)
    assert covered["seen", "brier"] <= most_held(0.62)
    assert covered["seen, normal", "brier"] <= most_held(0.42)
    # The mean of the judges is better than each, and the estimate knows by how much.
    for way in ("5 folds", "12 folds"):
        assert abs(np.mean(errors[way])) <= 0.003 * math.sqrt(600 / draws)


def test_the_variance_from_training_is_the_covariance_of_effects_of_two_folds_on_each_other() -> (
    None
):
    generator = np.random.default_rng(0)
    for n in (4, 5, 9):
        draws = []
        for _ in range(2000):
            common, single = generator.normal(size=(2, n, n))
            # The covariance of two entries across the diagonal is 1, besides effects of folds.
            effects = 3 * generator.normal(size=n)[:, None] + generator.normal(size=n) - 2
            changes = (common + common.T) / math.sqrt(2) + single / 2 + effects
            draws.append(training_variance(changes))
        # Each of n (n - 1) entries counts, by judges that are 1 - 1/n of the way from their mean.
        # Values below 0 count as 0; the standard error is .02.
        assert np.mean(draws) == pytest.approx(n**3 / (n - 1), rel=0.06)
        # Effects that are not mutual are in the residuals already.
        assert training_variance(effects) == pytest.approx(0.0, abs=1e-9)


def test_the_mean_of_judges_is_scored_by_its_own_losses() -> None:
    table, truth = drawn(5)
    judges = fold_judges(ridge, table, labeled_folds(table, N_FOLDS, 5))
    mean = judges.p.mean(axis=0)
    others = judges.fold < 0
    of_judges = [((p - truth)[others] ** 2).mean() for p in judges.p]
    less = np.mean(of_judges) - ((mean - truth)[others] ** 2).mean()
    plain = brier(judges.unseen(), table.labels, RESPONSES)
    crossed = cross_predicted(lambda p: brier(p, table.labels, RESPONSES), judges, RESPONSES)
    shift = estimate(plain, power=0.0).value - estimate(crossed, power=0.0).value
    assert less > 0.001
    assert shift == pytest.approx(less * others.mean(), abs=1e-12)


def test_scores_of_judges_have_the_variance_from_training_and_shares_have_none() -> None:
    table, _ = drawn(3)
    judges = fold_judges(ridge, table, labeled_folds(table, N_FOLDS, 3))
    for name, more in (("brier", True), ("accuracy", True), ("auroc", True), ("share", False)):
        quantity: Any = quantity_by_judges(name, judges, table.labels, RESPONSES)
        assert (quantity.training_variance > 0) == more
        wide, narrow = (
            estimate(each, power=0.0) for each in (quantity, replace(quantity, training_variance=0))
        )
        assert wide.error**2 == pytest.approx(narrow.error**2 + quantity.training_variance)
        assert wide.value == narrow.value


@of_each
def base_rate(table: ClaimTable, part: Any) -> Predict:
    """The share of true claims among the labels, whose error is one of the level alone."""
    return lambda asked: np.full(len(asked.values), table.labels[part].mean())


@pytest.mark.parametrize("draws", [80, pytest.param(150, marks=pytest.mark.nightly)])
def test_the_interval_of_an_ece_allows_for_the_level_that_the_labels_taught(draws: int) -> None:
    covered, plain = 0, 0
    for seed in range(draws):
        table, truth = drawn(seed)
        judges = fold_judges(base_rate, table, labeled_folds(table, N_FOLDS, seed))
        p = judges.unseen()
        value = abs((truth - p).mean())
        by_judges = estimate(quantity_by_judges("ece", judges, table.labels, RESPONSES, n_bins=1))
        given = estimate(ece(p, table.labels, RESPONSES, n_bins=1))
        assert (by_judges.value, by_judges.lower) == (given.value, given.lower)
        assert math.isnan(by_judges.labels_saved)
        covered += by_judges.lower <= value <= by_judges.upper
        plain += given.lower <= value <= given.upper
    # Labels that are true too often raise every judge, so that their residuals sum to 0.
    assert plain < 0.5 * draws
    assert covered >= least_held(draws)


def test_levels_of_judges_change_no_estimate() -> None:
    table, _ = drawn(0)
    fold = labeled_folds(table, 4, 0)
    p = 0.3 + 0.4 * np.random.default_rng(1).random(RESPONSES.size)
    levels = np.array([-0.1, 0.0, 0.05, 0.1])[:, None]
    alike, apart = FoldJudges(fold, p + 0 * levels), FoldJudges(fold, p + levels)

    def hidden(given: Any) -> Any:
        return share(given, table.labels, RESPONSES)

    plain, by_alike, by_apart = (
        estimate(each, power=0.7)
        for each in (
            hidden(p),
            cross_predicted(hidden, alike, RESPONSES),
            cross_predicted(hidden, apart, RESPONSES),
        )
    )
    assert by_apart.value == pytest.approx(by_alike.value, abs=1e-12)
    assert by_apart.error == pytest.approx(by_alike.error, abs=1e-12)
    # Of one judge, the labeled stand for themselves among all no more than in the plain estimate.
    assert by_alike.value == pytest.approx(plain.value, abs=0.02)
    # The levels would count otherwise.
    assert estimate(hidden(apart.unseen()), power=0.7).error > 1.02 * by_apart.error


def test_claims_have_the_judge_of_their_fold_and_its_ranks() -> None:
    fold = np.array([0, 0, 1, 1, -1, -1])
    p = np.array([0.1, 0.6, 0.2, 0.9, 0.4, 0.3])
    judges = FoldJudges(fold, np.array([p, p**2]))
    expected = [0.1, 0.6, 0.04, 0.81, (0.4 + 0.16) / 2, (0.3 + 0.09) / 2]
    np.testing.assert_allclose(judges.unseen(), expected, atol=1e-15)
    # Both judges rank alike, so that on one scale there is no telling them apart.
    np.testing.assert_allclose(judges.on_one_scale(), (p + p**2) / 2, atol=1e-15)
    labels = np.array([0, 1, 0, 1, 1, 0])
    areas = [estimate(auroc(each, labels, fold)).value for each in (judges.on_one_scale(), p)]
    assert areas[0] == pytest.approx(areas[1])
    some = judges.of([4, 2])
    assert some.fold.tolist() == [-1, 1]
    np.testing.assert_array_equal(some.p[1], p[[4, 2]] ** 2)


def test_no_label_reaches_the_probabilities_of_its_response() -> None:
    table, truth = drawn(3)
    fold = labeled_folds(table, N_FOLDS, 0)
    assert sorted(np.unique(fold)) == [-1, *range(N_FOLDS)]
    judges = fold_judges(ridge, table, fold)
    first = table.labeled[0]
    other = table.labels.copy()
    changes = RESPONSES[first] == RESPONSES
    other[changes] = 1 - truth[changes]
    changed = fold_judges(ridge, replace(table, labels=other), fold)
    in_fold = fold == fold[first]
    np.testing.assert_array_equal(changed.unseen()[in_fold], judges.unseen()[in_fold])
    assert not np.allclose(changed.unseen()[~in_fold], judges.unseen()[~in_fold])
