"""Estimates from few labels: held to other libraries, to what is known exactly, and to coverage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibration.estimation import (
    QUANTITIES,
    brier,
    difference,
    ece,
    estimate,
    f1_at_k,
    mean_share,
    minus,
    share,
)
from calibration.scores.measures import f1_of_counts
from factormodels.errors import InputError
from tests.chance import least_held


def drawn(seed: int, n_responses: int = 60, size: int = 8) -> tuple[Any, Any, Any]:
    """Calibrated probabilities of clustered claims, their labels and responses."""
    generator = np.random.default_rng(seed)
    level = np.repeat(generator.normal(0.7, 1.0, n_responses), size)
    p = 1 / (1 + np.exp(-level - generator.normal(0, 1.0, level.size)))
    y = (generator.random(p.size) < p).astype(float)
    return p, y, np.repeat(np.arange(n_responses), size)


def hidden(y: Any, responses: Any, chosen: Any) -> Any:
    """Labels of the chosen responses alone."""
    return np.where(np.isin(responses, chosen), y, np.nan)


def test_it_is_prediction_powered_inference_as_two_libraries_have_it() -> None:
    # Numbers of ppi-python 0.2.3 (ppi_mean_pointestimate) and of truescore 0.7.4 (ppi_estimate with
    # its standard error, gold_only_estimate), on these draws.
    generator = np.random.default_rng(5)
    f = generator.random(200)
    y = (generator.random(200) < f).astype(float)
    chosen = np.sort(generator.choice(200, 30, replace=False))
    labels = np.full(200, np.nan)
    labels[chosen] = y[chosen]
    for weight, value, error in (
        (0.3, 0.41758402232201597, 0.08744930484707056),
        (0.8, 0.3913351706364869, 0.08458578755361407),
    ):
        # They weigh the mean of what is not labeled, here it is the mean of all.
        estimated = estimate(share(f, labels, np.arange(200)), power=weight * 200 / 170)
        assert estimated.value == pytest.approx(value, abs=1e-12)
        # They take the means of labeled and of other claims as independent; here what a draw
        # has of correlation counts, which among thirty is a tenth at most.
        assert estimated.error == pytest.approx(error, rel=0.1)
    clusters = np.repeat(np.arange(40), 5)
    labels = hidden(y, clusters, np.arange(0, 40, 4))
    estimated = estimate(share(f, labels, clusters), power=0.6 * 200 / 150)
    assert estimated.value == pytest.approx(0.5822214017057888, abs=1e-12)
    assert estimated.error == pytest.approx(0.062416431801073494, rel=0.1)
    # Labels alone are the same mean, with the same error: half the width by t of 9.
    half = (0.7348889917814625 - 0.46511100821853746) / 2 / 2.2621571628
    alone = estimate(share(f, labels, clusters), power=0.0)
    assert alone.value == pytest.approx(0.6, abs=1e-12)
    assert alone.error == pytest.approx(half, rel=1e-9)


def test_with_all_labels_it_is_the_score_itself() -> None:
    p, y, responses = drawn(1)
    by_response = y.reshape(60, 8)
    for quantity, value in (
        (share(p, y, responses), y.mean()),
        (mean_share(p, y, responses), by_response.mean(axis=1).mean()),
        (brier(p, y, responses), ((p - y) ** 2).mean()),
        (
            f1_at_k(p, y, responses, k=6),
            f1_of_counts(by_response.sum(axis=1), np.full(60, 8), np.full(60, 6.0)).mean(),
        ),
    ):
        estimated = estimate(quantity)
        assert estimated.value == pytest.approx(value, abs=1e-12)
        assert estimated.labels_value == pytest.approx(value, abs=1e-12)
        # Nothing is left to be drawn from these responses.
        assert estimate(quantity, finite=True).error == pytest.approx(0.0, abs=1e-12)


def test_residuals_are_those_of_responses_left_out_where_a_weight_is_fitted() -> None:
    """The errors of regressions of labels on predictions, each without the response it is of."""
    p, y, responses = drawn(6)
    labeled = np.arange(0, 60, 5)
    estimated = estimate(share(p, hidden(y, responses, labeled), responses), finite=True)
    shares, expected = (each.reshape(60, 8).mean(axis=1)[labeled] for each in (y, p))
    columns = np.column_stack([np.ones(12), expected])
    for number, response in enumerate(labeled):
        others = np.arange(12) != number
        fit = np.linalg.lstsq(columns[others], shares[others], rcond=None)[0]
        error = shares[number] - columns[number] @ fit
        assert estimated.interval.influences[response] == pytest.approx(error / 12, rel=1e-9)


def test_degrees_of_freedom_are_those_of_the_regression_of_labels_on_predictions() -> None:
    """A mean takes one of the labeled responses, and a fitted weight another (statsmodels)."""
    from scipy.stats import t
    from statsmodels.regression.linear_model import OLS

    p, y, responses = drawn(6)
    labeled = np.arange(0, 60, 5)
    quantity = share(p, hidden(y, responses, labeled), responses)
    labeled, expected = (each.reshape(60, 8).mean(axis=1)[labeled] for each in (y, p))
    fit = OLS(labeled, np.column_stack([np.ones(12), expected])).fit()
    estimated = estimate(quantity)
    assert estimated.power == pytest.approx(fit.params[1], rel=1e-9)
    assert fit.df_resid == 10
    assert estimated.freedom == pytest.approx(10, rel=1e-12)
    assert estimate(quantity, power=estimated.power).freedom == pytest.approx(11, rel=1e-12)
    assert estimate(quantity, power=0.0).freedom == pytest.approx(11, rel=1e-12)
    # The interval is Student's t in the logit, by these degrees.
    slope = estimated.value * (1 - estimated.value)
    for level in (0.5, 0.95):
        estimated = estimate(quantity, level=level)
        ends = [math.log(end / (1 - end)) for end in (estimated.lower, estimated.upper)]
        reach = t.ppf((1 + level) / 2, 10) * estimated.error / slope
        assert (ends[1] - ends[0]) / 2 == pytest.approx(reach, rel=1e-9)


def test_errors_of_labels_alone_are_the_corrections_of_bell_and_mccaffrey() -> None:
    """Their CR2 of a share and CR3 of losses, by the matrices of their definition."""
    generator = np.random.default_rng(9)
    sizes = np.array([1, 2, 9, 3, 5, 1, 20])
    responses = np.repeat(np.arange(7), sizes)
    p = generator.random(responses.size)
    y = (generator.random(responses.size) < p).astype(float)
    for make, values, power in ((share, y, -0.5), (brier, (p - y) ** 2, -1.0)):
        residuals, total = values - values.mean(), 0.0
        for number, size in enumerate(sizes):
            centering = np.eye(size) - np.full((size, size), 1 / responses.size)
            roots, directions = np.linalg.eigh(centering)
            freed = (
                directions @ np.diag(roots**power) @ directions.T @ residuals[responses == number]
            )
            total += float(freed.sum()) ** 2
        estimated = estimate(make(p, y, responses), power=0.0)
        assert estimated.error == pytest.approx(math.sqrt(total) / responses.size, rel=1e-9)


def test_an_error_is_no_less_than_what_predictions_leave_open() -> None:
    # Labels that are alike, of claims that are predicted alike, leave no residual.
    labels = np.where(np.arange(50) < 20, 1.0, np.nan)
    quantity = share(np.full(50, 0.8), labels, np.arange(50))
    for finite, left in ((False, 1.0), (True, 1 - 20 / 50)):
        # The variance of 20 independent labels, true with 0.8, or of those that are not drawn.
        estimated = estimate(quantity, power=1.0, finite=finite)
        assert estimated.error == pytest.approx(math.sqrt(0.16 / 20 * left), rel=1e-9)
    assert estimate(quantity, power=0.0).error == pytest.approx(0.0, abs=1e-12)


def test_unequal_influences_leave_fewer_degrees_of_freedom() -> None:
    """The number of equally informative responses, minus one: by size, and by residual."""
    generator = np.random.default_rng(2)
    sizes = np.arange(20) % 5 + 1
    responses = np.repeat(np.arange(20), sizes)
    p, y = generator.random(responses.size), generator.integers(0, 2, responses.size).astype(float)
    each = generator.uniform(1.0, 9.0, 20)
    known = np.where(responses < 12, y, np.nan)
    estimated = estimate(share(p, known, responses, weights=each[responses]), power=0.0)
    counts, true = (each * np.bincount(responses, of) for of in (np.ones_like(y), y))
    counts, true = counts[:12], true[:12]
    # Kish 1965: a long response, and one of a large weight, is a large part of the estimate.
    by_design = counts.sum() ** 2 / (counts**2).sum() - 1
    residuals = true - estimated.value * counts
    # Satterthwaite's, of normal residuals: 2 V²/Var V.
    by_residuals = 3 * (residuals**2).sum() ** 2 / (residuals**4).sum() - 2
    assert by_design < 11
    assert estimated.freedom == pytest.approx(min(by_design, by_residuals), rel=1e-12)
    # Of labels alone nothing is known of what they lack: sizes decide, those of all on average.
    every = np.bincount(responses).astype(float)
    evenness = every.sum() ** 2 / (20 * (every**2).sum())
    assert estimated.effective == pytest.approx(min(by_design + 1, 12 * evenness), rel=1e-12)


def test_one_response_that_holds_all_of_the_variance_leaves_one_degree() -> None:
    # Of thirty responses all but one have the same share.
    responses = np.repeat(np.arange(60), 4)
    y = np.tile([1.0, 1.0, 1.0, 0.0], 60)
    y[:4] = 0.0
    labels = hidden(y, responses, np.arange(30))
    estimated = estimate(share(np.full(y.size, 0.5), labels, responses))
    assert estimated.freedom < 1.3


@pytest.mark.parametrize(
    ("n", "level", "lacks"), [(58, 0.95, True), (59, 0.95, False), (80, 0.99, True)]
)
def test_labels_may_lack_a_kind_that_as_many_draws_may_miss(
    n: int, level: float, lacks: bool
) -> None:
    y = np.where(np.arange(100) < n, np.arange(100) % 2, np.nan)
    estimated = estimate(share(np.full(100, 0.5), y, np.arange(100)), level=level)
    assert (1 - estimated.unseen_share) ** n == pytest.approx(1 - level, rel=0.02)
    assert estimated.may_lack_kinds is lacks


@pytest.mark.parametrize(("n", "lacks"), [(238, True), (239, False)])
def test_a_calibration_error_needs_more_responses(n: int, lacks: bool) -> None:
    y = np.where(np.arange(300) < n, np.arange(300) % 2, np.nan)
    error = estimate(ece(np.full(300, 0.4), y, np.arange(300), n_bins=2))
    assert error.may_lack_kinds is lacks
    assert not estimate(share(np.full(300, 0.4), y, np.arange(300))).may_lack_kinds


def test_predictions_of_losses_count_only_where_they_are_well_worth_it() -> None:
    p, y, responses = drawn(2)
    generator = np.random.default_rng(3)
    ratios, powers = [], []
    for _ in range(60):
        labels = hidden(y, responses, generator.choice(60, 12, replace=False))
        estimated = estimate(brier(p, labels, responses))
        ratios.append(
            (estimated.upper - estimated.lower) / (estimated.labels_upper - estimated.labels_lower)
        )
        powers.append(estimated.power)
    used = np.array(powers) > 0
    assert 0 < used.sum() < 60
    assert max(np.array(ratios)[used]) < 0.95
    assert set(np.array(ratios)[~used]) == {1.0}


def test_predictions_narrow_it_if_they_tell_something_and_never_widen_it() -> None:
    p, y, responses = drawn(2)
    generator = np.random.default_rng(2)
    widths = []
    for _ in range(10):
        labels = hidden(y, responses, generator.choice(60, 12, replace=False))
        useless = generator.random(p.size)
        for name, make in QUANTITIES.items():
            for forecast in (p, useless, np.full(p.size, 0.5)):
                estimated = estimate(make(forecast, labels, responses))
                ratio = (estimated.upper - estimated.lower) / (
                    estimated.labels_upper - estimated.labels_lower
                )
                # The bins of labeled claims are taken for those of all where labels stand alone.
                assert ratio <= 1 or name == "ece"
                if name == "share" and forecast is p:
                    widths.append(ratio)
                if name == "share" and forecast is not p and forecast is not useless:
                    assert estimated.power == 0.0
    # Labels of a third more responses, at the least, are what it is worth here, in the mean.
    assert np.mean(widths) < 0.87


@pytest.mark.parametrize("n_draws", [80, pytest.param(400, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", ["share", "mean-share", "brier"])
def test_intervals_of_ten_labels_cover_new_populations(
    whole: bool, name: str, n_draws: int
) -> None:
    # The truth is that of the law, from a large draw; biased predictions beside good ones.
    make: Any = QUANTITIES[name]
    p, y, responses = drawn(0, 20_000)
    covered = {"good": 0, "biased": 0}
    for shift, factor in (("good", 1.0), ("biased", 0.6)):
        everything = make(factor * p, y, responses)
        truth = everything.observed.sum() / everything.size.sum()
        for seed in range(1, n_draws + 1):
            few, labels, ids = drawn(seed, 50)
            generator = np.random.default_rng(seed)
            if whole:
                labels = hidden(labels, ids, generator.choice(50, 10, replace=False))
            else:
                kept = generator.choice(few.size, 10, replace=False)
                labels = np.where(np.isin(np.arange(few.size), kept), labels, np.nan)
            estimated = estimate(make(factor * few, labels, ids))
            covered[shift] += estimated.lower <= truth <= estimated.upper
    assert min(covered.values()) >= least_held(n_draws)


def test_claims_that_do_not_count_are_left_out_of_both_sums() -> None:
    p, y, responses = drawn(3, 6, 4)
    labels = hidden(y, responses, [0, 1, 2])
    dropped = np.zeros(p.size, dtype=bool)
    dropped[[0, 5]] = True
    known = ~np.isnan(labels) & ~dropped
    estimated = estimate(share(p, labels, responses, irrelevant=dropped), power=0.0)
    assert estimated.value == pytest.approx(y[known].mean(), abs=1e-12)
    shares = [y[known & (responses == number)].mean() for number in range(3)]
    estimated = estimate(mean_share(p, labels, responses, irrelevant=dropped), power=0.0)
    assert estimated.value == pytest.approx(np.mean(shares), abs=1e-12)


@pytest.mark.parametrize("name", ["share", "mean-share", "brier"])
def test_prediction_has_the_mean_and_variance_of_the_unknown_labels(name: str) -> None:
    p, _, responses = drawn(3, 6, 4)
    uneven = responses[np.arange(p.size) % 5 > 0]
    p = p[np.arange(p.size) % 5 > 0]
    make: Any = QUANTITIES[name]
    unlabeled, if_true, if_false = (
        make(p, np.full(p.size, label), uneven) for label in (np.nan, 1.0, 0.0)
    )
    first, other = if_true.observed, if_false.observed
    assert unlabeled.predicted == pytest.approx(p * first + (1 - p) * other, rel=1e-12)
    mean = p * first + (1 - p) * other
    variance = p * (first - mean) ** 2 + (1 - p) * (other - mean) ** 2
    assert unlabeled.variance == pytest.approx(variance, rel=1e-9)
    assert not unlabeled.labeled.any()
    assert if_true.labeled.all()


def test_a_response_without_a_claim_that_counts_has_no_f1() -> None:
    p, y = np.array([0.9, 0.2, 0.6, 0.4, 0.8, 0.3]), np.array([1.0, 0.0, 1.0, 1.0, 0.0, np.nan])
    responses = [0, 0, 1, 1, 2, 3]
    dropped = np.array([False, True, False, False, True, False])
    estimated = estimate(f1_at_k(p, y, responses, k=2, irrelevant=dropped), power=0.0)
    # Of response 0 one claim counts and is true: 2 (1) (1/2) / (3/2); both of 1 are true; 2 has
    # none that counts, and 3 no label.
    assert estimated.value == pytest.approx((2 / 3 + 1.0) / 2, rel=1e-12)
    assert estimated.n_labeled == 3
    # Both of a response's claims are to be labeled.
    half = np.array([1.0, np.nan, 1.0, 1.0, 0.0, np.nan])
    estimated = estimate(f1_at_k(p, half, responses, k=3), power=0.0)
    assert estimated.n_labeled == 2
    # 2 (1) (2/3) / (5/3) of response 1, and 0.
    assert estimated.value == pytest.approx(0.8 / 2, rel=1e-12)


def test_differences_are_paired_where_responses_are_shared() -> None:
    p, y, responses = drawn(4)
    labels = hidden(y, responses, np.arange(20))
    same = estimate(share(p, labels, responses))
    nothing = difference(same, same)
    # The root of what rounding leaves of a difference of equal variances.
    assert nothing.value == 0.0
    assert nothing.error == pytest.approx(0.0, abs=1e-7)
    other = estimate(share(p, labels, [f"other {number}" for number in responses]))
    apart = difference(same, other)
    assert apart.error == pytest.approx(math.sqrt(2) * same.error, rel=1e-12)
    # Welch's degrees of freedom of two equal variances are both's together.
    assert apart.freedom == pytest.approx(same.freedom + other.freedom, rel=1e-12)


def test_difference_of_unequal_errors_has_welch_degrees_of_freedom() -> None:
    generator = np.random.default_rng(8)
    few, many = (
        estimate(
            share(
                generator.random(n),
                generator.integers(0, 2, n).astype(float),
                [f"{n} {number}" for number in range(n)],
            ),
            power=0.0,
        )
        for n in (8, 40)
    )
    gap = difference(few, many)
    # Satterthwaite's formula, of variances over their degrees of freedom.
    first, other = few.interval.left_out_error**2, many.interval.left_out_error**2
    assert first > 2 * other
    assert gap.error == pytest.approx(math.sqrt(first + other), rel=1e-12)
    expected = (first + other) ** 2 / (first**2 / few.freedom + other**2 / many.freedom)
    assert gap.freedom == pytest.approx(expected, rel=1e-12)
    assert few.freedom == 7 < gap.freedom < 7 + 39
    assert gap.value == few.value - many.value
    assert gap.predictions_value == few.predictions_value - many.predictions_value
    assert (gap.n_items, gap.n_labeled, gap.n_responses) == (48, 48, 48)
    assert difference(many, few).value == -gap.value


def test_difference_by_labels_alone_is_paired_like_the_estimate() -> None:
    """Brier scores of two judges of the same labels: the mean difference by response."""
    p, y, responses = drawn(4)
    worse = np.clip(p + 0.2, 0, 1)
    labels = hidden(y, responses, np.arange(20))
    first, other = (estimate(brier(each, labels, responses), power=0.0) for each in (p, worse))
    gap = difference(first, other)
    by_response = ((p - y) ** 2 - (worse - y) ** 2).reshape(60, 8).mean(axis=1)[:20]
    # The jackknife's error of a mean, by t of 19.
    half = 2.0930240544 * by_response.std(ddof=1) / math.sqrt(20) * math.sqrt(20 / 19)
    assert gap.labels_value == pytest.approx(by_response.mean(), abs=1e-12)
    assert gap.labels_upper - gap.labels_value == pytest.approx(half, rel=1e-9)
    # It is the same claim by claim; what pairs claims pairs responses.
    claims = estimate(minus(brier(p, labels, responses), brier(worse, labels, responses)), power=0)
    assert gap.lower == pytest.approx(claims.lower, rel=1e-9)
    free = difference(*(estimate(brier(each, labels, responses)) for each in (p, worse)))
    assert free.upper - free.lower <= free.labels_upper - free.labels_lower + 1e-12


def test_a_difference_about_these_responses_alone_pairs_what_is_left_to_be_drawn() -> None:
    p, y, responses = drawn(4)
    labels = hidden(y, responses, np.arange(0, 60, 2))
    first, other = (
        estimate(brier(each, labels, responses), finite=finite, power=0.0)
        for each, finite in ((p, True), (np.clip(p + 0.2, 0, 1), True))
    )
    here = difference(first, other)
    like = difference(*(estimate(brier(each, labels, responses), power=0.0)
                        for each in (p, np.clip(p + 0.2, 0, 1))))  # fmt: skip
    # Half of the responses are labeled: half of the variance is gone.
    assert here.error == pytest.approx(like.error / math.sqrt(2), rel=1e-9)


def test_a_difference_of_labels_that_are_all_alike_is_no_point() -> None:
    p, _, responses = drawn(4, 12, 3)
    labels = hidden(np.ones(p.size), responses, np.arange(5))
    gap = difference(*(estimate(share(p, labels, ids)) for ids in (responses, responses + 100)))
    assert gap.value == 0.0
    assert gap.upper - gap.lower > 0.3


def test_a_difference_of_shares_lies_between_its_least_and_largest() -> None:
    responses = [0, 0, 1, 2]
    gap = difference(
        estimate(share([0.5] * 4, [0, 0, 1, 0], responses)),
        estimate(share([0.5] * 4, [1, 0, 1, 1], responses)),
    )
    assert gap.lower == -1.0 < gap.value < gap.upper <= 1.0
    assert -1.0 <= gap.labels_lower < gap.labels_upper <= 1.0


def test_judges_of_the_same_claims_are_compared_claim_by_claim() -> None:
    p, y, responses = drawn(5)
    labels = hidden(y, responses, np.arange(15))
    worse = np.clip(p + 0.2, 0, 1)
    estimated = estimate(
        minus(brier(p, labels, responses), brier(worse, labels, responses)), power=0.0
    )
    known = responses < 15
    losses = (p - y)[known] ** 2 - (worse - y)[known] ** 2
    assert estimated.value == pytest.approx(losses.mean(), abs=1e-12)
    # Between -1 and 1 the interval is Student's as it is, by t of 14.
    reach = 2.1447866879 * estimated.error
    assert (estimated.lower, estimated.upper) == pytest.approx(
        (estimated.value - reach, estimated.value + reach), rel=1e-9
    )
    with pytest.raises(InputError, match="have different claims"):
        minus(brier(p, labels, responses), brier(p, y, responses))


def test_labels_that_are_all_alike_leave_more_than_a_point() -> None:
    p, _, responses = drawn(6)
    labels = hidden(np.ones(p.size), responses, np.arange(10))
    estimated = estimate(share(p, labels, responses))
    # Wilson's interval of ten of ten.
    assert (estimated.lower, estimated.upper) == pytest.approx((0.7224672, 1.0), abs=1e-6)


def test_too_few_labels_have_no_interval_and_none_are_refused() -> None:
    p, y, responses = drawn(7)
    estimated = estimate(share(p, hidden(y, responses, [0]), responses))
    assert math.isnan(estimated.lower)
    assert estimated.value == pytest.approx(y[:8].mean())
    with pytest.raises(InputError, match="no claim is labeled"):
        estimate(share(p, np.full(p.size, np.nan), responses))
    with pytest.raises(InputError, match="every labeled claim is irrelevant"):
        estimate(share(p, np.full(p.size, np.nan), responses, irrelevant=responses == 0))
    with pytest.raises(InputError, match="power is -1"):
        estimate(share(p, y, responses), power=-1)
    with pytest.raises(InputError, match="level"):
        estimate(share(p, y, responses), level=1.0)
    few = share(p, hidden(y, responses, np.arange(9)), responses)
    narrow = estimate(few, level=0.9)
    with pytest.raises(InputError, match="different levels"):
        difference(estimate(few), narrow)
