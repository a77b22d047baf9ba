"""Accuracy, AUROC, ECE, what is kept, quantiles and regressions: held to libraries and coverage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibration.estimation import (
    QUANTITIES,
    RATIOS,
    REGRESSIONS,
    accuracy,
    auroc,
    difference,
    ece,
    estimate,
    kept_precision,
    logistic,
    minus,
    ols,
    quantile,
    share,
    share_quantile,
)
from calibration.estimation.ranking import soft_auroc
from calibration.scores import auroc as area_of
from calibration.scores import calibration_error
from calibration.scores.families.ranking import clustered_auroc
from factormodels.errors import InputError
from tests.chance import least_held
from tests.refusals import refused


def drawn(seed: int, n_responses: int = 50, size: int = 8) -> tuple[Any, ...]:
    """Calibrated probabilities of clustered claims, labels, responses, position and a trait."""
    generator = np.random.default_rng(seed)
    level = np.repeat(generator.normal(0.7, 1.0, n_responses), size)
    position = np.tile(np.arange(size) / size, n_responses)
    trait = np.repeat(generator.normal(size=n_responses), size)
    odds = level + generator.normal(0, 1.0, level.size) + 0.8 * position - 0.4 + 0.4 * trait
    p = 1 / (1 + np.exp(-odds))
    y = (generator.random(p.size) < p).astype(float)
    return p, y, np.repeat(np.arange(n_responses), size), position, trait


# --- other libraries ----------------------------------------------------------------------------


def independent() -> tuple[Any, ...]:
    """Rows that are independent, of which 120 are labeled."""
    generator = np.random.default_rng(7)
    x, z = generator.normal(size=1000), (generator.random(1000) < 0.4).astype(float)
    odds = 0.3 + 0.8 * x - 0.5 * z
    f = 1 / (1 + np.exp(-0.7 * odds - 0.4 * generator.normal(size=1000)))
    y = (generator.random(1000) < 1 / (1 + np.exp(-odds))).astype(float)
    number = 2 * x - z + generator.normal(size=1000)
    guess = 1.5 * x + 0.3 * generator.normal(size=1000)
    labeled = np.zeros(1000, dtype=bool)
    labeled[generator.choice(1000, 120, replace=False)] = True
    hidden = (np.where(labeled, each, np.nan) for each in (y, number))
    return {"x": x, "z": z}, f, guess, *hidden


# Of ppi-python 0.2.3, with X = [1, x, z], Yhat_unlabeled and X_unlabeled those of all rows, and
# lam=WEIGHT: ppi_ols_pointestimate and ppi_logistic_pointestimate, and half the width of
# ppi_ols_ci and ppi_logistic_ci by 1.96.
OF_PPI_PYTHON = {
    ("ols", 0.0): (
        (-0.030776551816214914, 2.0149870657350033, -0.8608492051068083),
        (0.12066848264890793, 0.11262781688106359, 0.19438310377285692),
    ),
    ("ols", 0.5): (
        (-0.020235119484912065, 1.9966518949566732, -0.83693350799485),
        (0.12604682781607368, 0.1097235629620718, 0.20915495571700476),
    ),
    ("ols", 1.0): ((-0.009693687153609163, 1.9783167241783437, -0.8130178108828914), None),
    ("logistic", 0.0): (
        (0.5332001448894351, 0.9311204423566612, -0.08901805989812103),
        (0.2580221229866019, 0.2683241716932966, 0.40714738175883436),
    ),
    ("logistic", 0.5): (
        (0.5381574958095223, 0.9284434740752174, -0.13449247552099636),
        (0.25565953693619603, 0.23746241210093808, 0.42733865026703743),
    ),
    ("logistic", 1.0): (
        (0.5433342414763769, 0.9279562648301387, -0.1831020270021175),
        (0.2633962173425743, 0.2504784687414936, 0.44214422210291404),
    ),
}


@pytest.mark.parametrize(("name", "weight"), OF_PPI_PYTHON)
def test_regressions_are_those_of_ppi_python(name: str, weight: float) -> None:
    columns, f, guess, y, number = independent()
    given = (guess, number) if name == "ols" else (f, y)
    estimates = [
        estimate(each, power=weight) for each in REGRESSIONS[name](columns, *given, np.arange(1000))
    ]
    values, errors = OF_PPI_PYTHON[name, weight]
    # Their logistic regression stops at a gradient of 1e-8.
    assert [each.value for each in estimates] == pytest.approx(values, abs=1e-7)
    if errors is None:
        # Where the predictions count in full they leave the misfit of a line out of account.
        return
    # Theirs are of rows as they are, ours of rows left out, and of the labeled within all.
    assert [each.error for each in estimates] == pytest.approx(errors, rel=0.09)


def test_quantiles_are_those_of_ppi_python() -> None:
    # ppi_quantile_pointestimate and ppi_quantile_ci (alpha=0.05) with exact_grid=True, of
    # ppi-python 0.2.3. It takes the value whose share is nearest to q, we the next that reaches q.
    _, _, guess, _, number = independent()
    values = np.unique(np.concatenate([number[~np.isnan(number)], guess]))
    for q, value, lower, upper in (
        (0.25, -2.1703759222180405, -2.5431209036801548, -1.6765116148890091),
        (0.5, -0.3321470484488569, -1.0440025932684276, -0.08543669665156632),
        (0.8, 1.3950192337716028, 0.688399235438187, 1.6625012126290342),
    ):
        estimated = estimate(quantile(guess, number, np.arange(1000), q=q, exact=True), power=1.0)
        position = int(np.searchsorted(values, value))
        assert estimated.value in values[position : position + 2]
        # Their ends are by z and in the share itself, ours by t and in its logit: an interval of a
        # width near 1 moves by a tenth of it at most.
        assert (estimated.lower, estimated.upper) == pytest.approx((lower, upper), abs=0.1)


def test_with_all_labels_they_are_the_scores_themselves() -> None:
    import statsmodels.api as sm

    p, y, responses, position, trait = drawn(1)
    design = np.column_stack([np.ones(p.size), position, trait])
    by_response = y.reshape(50, 8).mean(axis=1)
    kept = p >= 0.7
    for quantity, value in (
        (accuracy(p, y, responses), ((p > 0.5) == y).mean()),
        (auroc(p, y, responses), area_of(p, y)),
        (ece(p, y, responses, n_bins=7), calibration_error(p, y, n_bins=7)),
        (kept_precision(p, y, responses, threshold=0.7), y[kept].mean()),
        (share_quantile(p, y, responses, q=0.3),
         np.quantile(by_response, 0.3, method="inverted_cdf")),
    ):  # fmt: skip
        estimated = estimate(quantity)
        assert estimated.value == pytest.approx(value, abs=1e-12), quantity.title
        assert estimated.labels_value == pytest.approx(value, abs=1e-12), quantity.title
        assert estimated.lower < value < estimated.upper, quantity.title
    columns = {"position": position, "trait": trait}
    groups = {"groups": responses, "use_correction": False}
    for make, model in (
        (ols, sm.OLS(y, design)),
        (logistic, sm.GLM(y, design, family=sm.families.Binomial())),
    ):
        fit = model.fit(cov_type="cluster", cov_kwds=groups)
        fitted = [estimate(each, power=0.0) for each in make(columns, p, y, responses)]
        assert [each.value for each in fitted] == pytest.approx(fit.params.tolist(), abs=1e-9)
        # Theirs are without a correction for few responses; residuals of one of fifty left out are
        # a fiftieth or so larger, of the trait of an outlying one more.
        assert [each.error for each in fitted] == pytest.approx(fit.bse.tolist(), rel=0.12)
        assert all(
            coefficient.error > error for coefficient, error in zip(fitted, fit.bse, strict=True)
        )


# --- what is known exactly ----------------------------------------------------------------------


def test_the_contribution_of_a_claim_to_an_area_is_its_derivative() -> None:
    generator = np.random.default_rng(2)
    p = np.round(generator.random(40), 1)
    for truth in (p, (generator.random(40) < p).astype(float)):
        weights = generator.uniform(1, 3, 40)
        area, added, slopes = soft_auroc(p, truth, weights)
        assert added.sum() == pytest.approx(0.0, abs=1e-12)
        for index in range(0, 40, 7):
            # Central differences of 1e-6 leave an error of some 1e-10.
            step = 1e-6 * (np.arange(40) == index)
            ends = [soft_auroc(p, truth + way * step, weights)[0] for way in (1, -1)]
            assert slopes[index] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)
            ends = [soft_auroc(p, truth, weights * (1 + way * step))[0] for way in (1, -1)]
            assert added[index] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)
        if truth is not p:
            assert area == pytest.approx(area_of(p, truth, weights=weights), abs=1e-12)


def test_the_error_of_an_area_of_labels_alone_is_obuchowskis() -> None:
    from calibration.grouping import group_by_response

    p, y, responses, *_ = drawn(3, 200)
    _, covariance = clustered_auroc([p], y, group_by_response(responses))
    estimated = estimate(auroc(p, y, responses), power=0.0)
    # Her factors R / (R - 1) of responses with true, and with false claims; ours are leverages.
    assert estimated.error == pytest.approx(math.sqrt(covariance[0, 0]), rel=0.01)


def test_a_bin_without_a_label_may_be_as_wrong_as_it_can_be() -> None:
    p = np.array([0.1, 0.2, 0.1, 0.2, 0.9, 0.9, 0.2, 0.1])
    y = np.array([0.0, 1.0, 0.0, 0.0, np.nan, np.nan, np.nan, np.nan])
    responses = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    quantity = ece(p, y, responses, n_bins=2)
    assert quantity.open_share == 0.25
    estimated = estimate(quantity, power=1.0)
    # Three quarters of the claims are in the lower bin, one in four is true at .15 in the mean.
    assert estimated.value == pytest.approx(0.75 * 0.1, abs=1e-12)
    assert estimated.labels_value == pytest.approx(0.1, abs=1e-12)
    # A quarter of the claims, of .9 each, may all be false.
    known = estimate(ece(p[p < 0.5], y[p < 0.5], responses[p < 0.5], n_bins=2), power=0.0)
    assert estimated.upper == pytest.approx(0.75 * known.upper + 0.25 * 0.9, abs=1e-9)


def test_kept_claims_reach_the_threshold() -> None:
    p, y, responses, *_ = drawn(4)
    labels = np.where(responses < 20, y, np.nan)
    estimated = estimate(kept_precision(p, labels, responses, threshold=0.8), power=0.0)
    kept = (p >= 0.8) & (responses < 20)
    assert estimated.value == pytest.approx(y[kept].mean(), abs=1e-12)
    assert estimated.n_labeled == kept.sum()
    whole = estimate(kept_precision(p, labels, responses, threshold=0.0))
    assert whole.value == estimate(share(p, labels, responses)).value


def test_judges_of_the_same_claims_are_paired_in_their_areas() -> None:
    p, y, responses, *_ = drawn(5)
    labels = np.where(responses < 20, y, np.nan)
    blurred = np.clip(p + np.random.default_rng(0).normal(0, 0.2, p.size), 0.01, 0.99)
    first, other = (estimate(auroc(each, labels, responses)) for each in (p, blurred))
    apart = difference(first, other)
    assert apart.value == pytest.approx(first.value - other.value, abs=1e-12)
    # What responses have in common they do not differ in.
    assert apart.error < 0.8 * math.hypot(first.error, other.error)


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("all labels that count are the same", lambda p, y, r: auroc(p, np.ones_like(y), r)),
        (
            "no coefficients fit best",
            lambda p, y, r: logistic({"x": y}, p, np.where(r < 20, y, np.nan), r)[1],
        ),
        (
            "labeled claims do not tell the columns apart",
            lambda p, y, r: ols({"x": r > 5}, p, np.where(r < 3, y, np.nan), r)[1],
        ),
    ],
)
def test_scores_undefined_by_labels_are_reported(message: str, call: Any) -> None:
    p, y, responses, *_ = drawn(6)
    with pytest.raises(InputError, match=message):
        estimate(call(p, y, responses))


def test_bad_settings_are_named() -> None:
    p, y, responses, position, _ = drawn(6)
    refused("one is the same for every claim", ols, {"x": np.ones(400)}, p, y, responses)
    refused("x\\[2\\] is nan; give finite numbers", ols, {"x": [1, 2, np.nan]}, p, y, responses)
    refused("q is 1", share_quantile, p, y, responses, q=1.0)
    refused("threshold is 1.5", kept_precision, p, y, responses, threshold=1.5)
    low = np.minimum(p, 0.6)
    refused("no claim has a probability that high", kept_precision, low, y, responses,
            threshold=0.9)  # fmt: skip
    refused("n_bins is 0", ece, p, y, responses, n_bins=0)
    refused("columns|lengths|has 3", logistic, {"x": position[:3]}, p, y, responses)


# --- coverage -----------------------------------------------------------------------------------

DRAWS = [80, pytest.param(400, marks=pytest.mark.nightly)]


def covered_of(name: str, factor: float, n_labeled: int, draws: int, *, whole: bool) -> list[float]:
    """Coverage of the true values by intervals, for each quantity of a name."""

    def quantities(p: Any, y: Any, responses: Any, position: Any, trait: Any) -> list[Any]:
        if name in REGRESSIONS:
            columns = {"position": position, "trait": trait}
            return list(REGRESSIONS[name](columns, factor * p, y, responses))
        return [QUANTITIES[name](factor * p, y, responses)]

    every = drawn(0, 20_000)
    if name == "ece":
        truths = [calibration_error(factor * every[0], every[1])]
    elif name == "quantile":
        shares = every[1].reshape(-1, 8).mean(axis=1)
        truths = [np.quantile(shares, 0.5, method="inverted_cdf")]
    else:
        truths = [each.linear(0.0).observed for each in quantities(*every)]
    counts = np.zeros(len(truths))
    for seed in range(1, draws + 1):
        p, y, responses, *columns = drawn(seed)
        ids = responses if whole else np.arange(p.size)
        generator = np.random.default_rng(seed)
        chosen = generator.choice(ids[-1] + 1, n_labeled, replace=False)
        labels = np.where(np.isin(ids, chosen), y, np.nan)
        estimates = [estimate(each) for each in quantities(p, labels, responses, *columns)]
        counts += [
            interval.lower <= truth <= interval.upper
            for interval, truth in zip(estimates, truths, strict=True)
        ]
    return counts.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("factor", [pytest.param(1.0, marks=pytest.mark.nightly), 0.6])
@pytest.mark.parametrize(
    ("name", "n_labeled", "whole"),
    [
        ("accuracy", 10, True),
        ("accuracy", 20, False),
        ("kept-precision", 10, True),
        ("auroc", 10, True),
        ("auroc", 20, False),
        ("ece", 15, True),
        ("ece", 30, False),
        ("quantile", 15, True),
        ("ols", 20, True),
        ("ols", 40, False),
        ("logistic", 20, True),
    ],
)
def test_intervals_of_few_labels_cover_new_populations(
    name: str, n_labeled: int, whole: bool, factor: float, draws: int
) -> None:
    # Probabilities that are right, and biased ones.
    assert min(covered_of(name, factor, n_labeled, draws, whole=whole)) >= least_held(draws)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [40, *DRAWS[1:]])
def test_intervals_of_quantiles_of_numbers_cover(draws: int) -> None:
    # Of independent numbers without ties, where they are no wider than they have to be. 40 draws
    # refuse intervals that hold .80 eight times in ten.
    counts, widths = 0, []
    for seed in range(draws):
        generator = np.random.default_rng(seed)
        number = generator.normal(size=90)
        guess = number + 0.2 * generator.normal(size=90)
        labels = np.where(np.arange(90) < 30, number, np.nan)
        estimated = estimate(quantile(guess, labels, np.arange(90), q=0.3))
        counts += estimated.lower <= -0.5244005127080407 <= estimated.upper
        widths.append(
            (estimated.upper - estimated.lower) / (estimated.labels_upper - estimated.labels_lower)
        )
    assert least_held(draws) <= counts <= 0.985 * draws
    assert np.mean(widths) < 0.95


# --- what does not vary -------------------------------------------------------------------------


@pytest.mark.parametrize("n_ones", [20, 40])
def test_auroc_of_tied_predictions_is_that_of_labels(n_ones: int) -> None:
    # Of the labeled claims all, or of all claims all, have a p of 1: there is nothing to predict.
    p = np.append(np.ones(n_ones), np.linspace(0.1, 0.9, 40 - n_ones))
    y = [number % 3 > 0 if number < 20 else None for number in range(40)]
    estimated = estimate(auroc(p, y, np.arange(40) // 4))
    assert estimated.value == 0.5
    assert 0 < estimated.lower < 0.5 < estimated.upper < 1


def test_labels_of_one_kind_have_no_auroc_whatever_their_weights() -> None:
    p, _, responses, *_ = drawn(2)
    for seed in range(5):
        weights = np.random.default_rng(seed).random(p.size)
        area = auroc(p, np.ones(p.size), responses, weights=weights)
        refused("all labels that count are the same", estimate, area)


def test_a_calibration_error_that_does_not_vary_has_no_interval() -> None:
    y = [True if number < 20 else None for number in range(40)]
    estimated = estimate(ece(np.full(40, 0.7), y, np.arange(40) // 2))
    assert estimated.value == pytest.approx(0.3)
    assert np.isnan([estimated.lower, estimated.upper, estimated.error]).all()
    assert estimated.freedom > 0


@pytest.mark.parametrize("labels", [{0: 1, 3: 0}, {0: 1, 3: 1, 7: 1, 30: 1}])
def test_a_line_through_every_label_has_no_interval(labels: dict[int, float]) -> None:
    x = np.random.default_rng(0).normal(size=40)
    y = [labels.get(number) for number in range(40)]
    for each in ols({"x": x}, np.full(40, 0.5), y, np.arange(40)):
        estimated = estimate(each)
        assert math.isfinite(estimated.value)
        assert np.isnan([estimated.lower, estimated.upper]).all()


@pytest.mark.parametrize("name", ["accuracy", "brier"])
def test_judges_that_agree_where_there_are_labels_may_differ_elsewhere(name: str) -> None:
    p, y, responses, *_ = drawn(1, n_responses=20, size=5)
    y[40:] = np.nan
    other = np.where(np.isnan(y), 0.5 * p, p)
    first, two, same = (RATIOS[name](each, y, responses) for each in (p, other, p.copy()))
    estimated = estimate(minus(first, two))
    # As far as eight responses without a difference may be from it by chance: Wilson's interval.
    assert estimated.value == 0
    assert estimated.upper == pytest.approx(0.32440756488388)
    assert estimated.lower == -estimated.upper
    known = estimate(minus(first, same))
    assert (known.lower, known.value, known.upper) == (0, 0, 0)


def test_areas_that_agree_where_there_are_labels_may_differ_elsewhere() -> None:
    p, y, responses, *_ = drawn(1, n_responses=20, size=5)
    y[40:] = np.nan
    first, two = (
        estimate(auroc(each, y, responses), power=0) for each in (p, np.where(y >= 0, p, 0.5 * p))
    )
    gap = difference(first, two)
    assert gap.value == 0
    assert gap.upper == -gap.lower > 0.2
    known = difference(first, first)
    assert (known.lower, known.upper) == pytest.approx((0, 0), abs=1e-9)
