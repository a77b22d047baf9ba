"""Draws of claims to label: sampling probabilities, and the weights that correct them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from calibration.estimation import (
    CALIBRATED,
    ResidualLaw,
    Unit,
    balance,
    batch_weights,
    draw,
    estimate,
    inclusion_probabilities,
    observed_residuals,
    planned_error,
    planned_freedom,
    share,
    spread,
    stratified_order,
)
from calibration.grouping import group_by_response
from factormodels.errors import InputError


def test_probabilities_sum_to_what_is_chosen_and_follow_spread_and_cost() -> None:
    expected = np.array([4.0, 1.0, 1.0, 1.0, 0.0])
    minutes = np.array([1.0, 1.0, 4.0, 1.0, 1.0])
    free = np.array([True, True, True, False, True])
    probabilities = inclusion_probabilities(expected, minutes, 1, free)
    # Roots of spread by cost: 2, 1, 1/2 and, of what is not expected to vary, next to nothing.
    assert probabilities == pytest.approx(
        np.array([2.0, 1.0, 0.5, 0.0, 1e-6]) / 3.500001, abs=1e-12
    )
    assert probabilities[4] > 0
    more = inclusion_probabilities(expected, minutes, 2, free)
    assert (more[0], more.sum()) == (1.0, pytest.approx(2.0, abs=1e-12))
    with pytest.raises(InputError, match="5 are to be chosen, but only 4 have no label"):
        inclusion_probabilities(expected, minutes, 5, free)


def test_a_draw_has_the_number_and_each_its_probability() -> None:
    probabilities = inclusion_probabilities(
        np.arange(1.0, 21.0), np.ones(20), 6, np.ones(20, dtype=bool)
    )
    drawn = np.array([draw(probabilities, seed) for seed in range(4000)])
    assert set(drawn.sum(axis=1)) == {6}
    # A standard error is at most sqrt(1/4 / 4000) = .008; five of them.
    assert np.abs(drawn.mean(axis=0) - probabilities).max() < 0.04


def test_a_stratified_draw_has_its_share_of_long_and_of_improbable_responses() -> None:
    generator = np.random.default_rng(4)
    sizes, p = generator.lognormal(2.0, 1.2, 160), generator.random(160)
    chances = np.full(160, 20 / 160)
    order = stratified_order(sizes, p, 20)
    assert sorted(order) == list(range(160))
    strata = np.array_split(np.argsort(sizes), 4)
    spreads = []
    for seed in range(40):
        drawn = draw(chances, seed, order)
        assert drawn.sum() == 20
        assert [drawn[stratum].sum() for stratum in strata] == [5] * 4
        at_random = draw(chances, seed)
        spreads.append([abs(p[each].mean() - p.mean()) for each in (drawn, at_random)])
    stratified, random = np.mean(spreads, axis=0)
    assert stratified < 0.5 * random
    # Each keeps its probability: the starts of the systematic draw are uniform.
    often = np.mean([draw(chances, seed, order) for seed in range(2000)], axis=0)
    # Five standard errors of a share of 2,000 draws.
    assert np.abs(often - 0.125).max() < 5 * math.sqrt(0.125 * 0.875 / 2000)


def test_labeled_responses_are_compared_with_all() -> None:
    values = np.arange(100.0)
    first = balance(values, values < 20)
    assert (first.labeled, first.overall) == (9.5, 49.5)
    # The error of the mean of 20 of 100 without replacement, and the normal law.
    error = values.std(ddof=1) * math.sqrt(1 / 20 - 1 / 100)
    assert first.p_value == pytest.approx(math.erfc(40 / error / math.sqrt(2)), rel=1e-12)
    generator = np.random.default_rng(0)
    alarms = [
        balance(values, np.isin(values, generator.choice(100, 20, replace=False))).p_value < 0.05
        for _ in range(1000)
    ]
    # Three standard errors of 1,000 draws.
    assert np.mean(alarms) == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / 1000))
    for few in (values < 1, values >= 0):
        assert math.isnan(balance(values, few).p_value)
    assert math.isnan(balance(np.ones(9), np.arange(9) < 4).p_value)


def test_weights_of_batches_leave_no_bias_even_if_labels_decide_what_is_next() -> None:
    y = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    first = np.array([0.5, 0.2, 0.3, 0.6, 0.4])
    # All ways in which two batches can come out, each unit on its own, with their chances.
    total = weight = 0.0
    for hits in itertools.product([False, True], repeat=5):
        early = np.array(hits)
        chance = np.prod(np.where(early, first, 1 - first))
        # What is true makes the rest likelier to be asked.
        second = np.where(early, 0.0, 0.3 + 0.1 * (early @ y))
        open_places = np.flatnonzero(~early)
        for more in itertools.product([False, True], repeat=open_places.size):
            late = np.zeros(5, dtype=bool)
            late[open_places] = more
            chance_of_path = chance * np.prod(np.where(late, second, 1 - second)[open_places])
            # Sizes of batches are fixed beforehand in use; here their parts are: a half each.
            parts = np.where(early, 0.5 / first + 0.5, np.where(late, 0.5, 0.0))
            parts = np.where(late, 0.5 / np.where(late, second, 1.0), parts)
            total += chance_of_path * (parts @ y)
            weight += chance_of_path * parts.sum()
    assert (total, weight) == pytest.approx((3.0, 5.0), abs=1e-12)
    # And these are the weights: two of each batch are a half each.
    weights = batch_weights(np.array([0.5, 0.3, 0.4, 0.4]), [0, 0, 1, 1])
    assert weights == pytest.approx([1 + 0.5, 0.5 / 0.3 + 0.5, 1.25, 1.25])
    with pytest.raises(InputError, match="probability of being drawn is 0"):
        batch_weights(np.array([0.5, 0.0]), [0, 0])


@pytest.mark.parametrize("unit", list(Unit))
def test_chosen_labels_cover_and_are_worth_more_than_as_many_at_random(unit: Unit) -> None:
    generator = np.random.default_rng(8)
    sizes = generator.integers(2, 20, 200)
    responses = np.repeat(np.arange(200), sizes)
    # The claims of half of the responses are all but certain: their labels tell little.
    p = np.where(generator.random(200) < 0.5, 0.97, 0.5)[responses]
    y = (generator.random(p.size) < p).astype(float)
    grouping = group_by_response(responses)
    expected = spread(p, grouping, unit)
    minutes = np.ones(p.size) if unit is Unit.CLAIM else sizes.astype(float)
    chances = inclusion_probabilities(expected, minutes, 40, np.ones(expected.size, dtype=bool))
    covered, chosen, other = 0, 0.0, 0.0
    for seed in range(300):
        kept = draw(chances, seed)
        stands = 1 / chances
        if unit is Unit.RESPONSE:
            kept, stands = kept[grouping.index], stands[grouping.index]
        labels = np.where(kept, y, np.nan)
        estimated = estimate(share(p, labels, responses, weights=np.where(kept, stands, 1.0)))
        covered += estimated.lower <= y.mean() <= estimated.upper
        plain = generator.choice(200 if unit is Unit.RESPONSE else p.size, 40, replace=False)
        at_random = np.isin(responses if unit is Unit.RESPONSE else np.arange(p.size), plain)
        plainly = estimate(share(p, np.where(at_random, y, np.nan), responses))
        # Variance times minutes, which more labels of the same kind leave as it is.
        chosen += estimated.error**2 * kept.sum()
        other += plainly.error**2 * at_random.sum()
    # Nominal .95; three standard errors of 300 draws below what is promised.
    assert covered / 300 >= 0.93 - 3 * 0.0147
    assert chosen < other


def test_a_plan_knows_that_claims_of_a_response_resemble_each_other() -> None:
    # A correlation of .1 in each of 12 responses: 1 / (4.5 + 4.5 + 1).
    generator = np.random.default_rng(3)
    grouping = group_by_response(np.repeat(np.arange(12), 30))
    p, chances = np.full(360, 0.5), np.full(360, 1 / 6)
    errors = []
    for seed in range(2000):
        y = generator.random(360) < generator.beta(4.5, 4.5, 12)[grouping.index]
        errors.append(y[draw(chances, seed)].mean())
    planned = planned_error(spread(p, grouping, Unit.CLAIM), chances, p, grouping)
    # The standard error of such a deviation is 1 / sqrt(4000), of itself: four of them.
    assert planned == pytest.approx(np.std(errors), rel=4 / math.sqrt(4000))
    assert planned_freedom(chances, grouping) == pytest.approx(12 * (1 - (5 / 6) ** 30) - 2)


def test_a_plan_counts_the_labels_at_hand() -> None:
    """By simulation: two batches of claims that are responses of their own."""
    generator = np.random.default_rng(5)
    n_claims = 150
    grouping = group_by_response(np.arange(n_claims))
    p = generator.uniform(0.05, 0.95, n_claims)
    expected, minutes = spread(p, grouping, Unit.CLAIM), np.ones(n_claims)
    every = np.ones(n_claims, dtype=bool)
    first = inclusion_probabilities(expected, minutes, 30, every)
    planned, errors = [], []
    for seed in range(1500):
        y = (generator.random(n_claims) < p).astype(float)
        early = draw(first, seed)
        second = inclusion_probabilities(expected, minutes, 60, ~early)
        late = draw(second, seed + 10_000)
        planned.append(planned_error(expected, second, p, grouping, at_hand=early))
        chosen = np.concatenate([np.flatnonzero(early), np.flatnonzero(late)])
        batch = np.repeat([0, 1], [early.sum(), late.sum()])
        weights = batch_weights(np.concatenate([first[early], second[late]]), batch)
        errors.append((weights @ (y - p)[chosen]) / n_claims)
    # The predictions of these claims do not vary. Half of the plan's residuals are their mean.
    predictions = ((p - p.mean()) ** 2).sum() / n_claims**2
    of_labels = math.sqrt(np.mean(np.square(planned)) - predictions)
    assert of_labels == pytest.approx(np.std(errors), rel=0.1)
    # Without labels at hand 90 take as much as 30 and 60, and 60 alone leave more.
    at_once = inclusion_probabilities(expected, minutes, 90, every)
    alone = inclusion_probabilities(expected, minutes, 60, every)
    none = np.zeros(n_claims, dtype=bool)
    assert planned_error(expected, at_once, p, grouping) == pytest.approx(planned[0], rel=0.1)
    assert planned[0] < planned_error(expected, alone, p, grouping)
    assert planned_error(expected, alone, p, grouping, at_hand=none) == planned_error(
        expected, alone, p, grouping
    )


def test_a_response_varies_as_the_sum_of_alike_residuals() -> None:
    """By the covariance matrix of its claims, and of the predictions of responses like these."""
    generator = np.random.default_rng(11)
    grouping = group_by_response(np.repeat(np.arange(6), generator.integers(1, 9, 6)))
    p, alike = generator.random(grouping.index.size), 0.3
    variances = p * (1 - p)
    # Half of what is expected of a claim is what is expected of every claim.
    mixed = 0.5 * variances + 0.5 * variances.mean()
    assert spread(p, grouping, Unit.CLAIM, alike) == pytest.approx(mixed, rel=1e-12)
    together = np.zeros(6)
    for response in range(6):
        roots = np.sqrt(mixed[grouping.index == response])
        correlations = np.full((roots.size,) * 2, alike) + (1 - alike) * np.eye(roots.size)
        together[response] = roots @ correlations @ roots
    expected = spread(p, grouping, Unit.RESPONSE, alike)
    assert expected == pytest.approx(together, rel=1e-12)
    predictions = sum((p[grouping.index == each] - p.mean()).sum() ** 2 for each in range(6))
    chances = generator.uniform(0.2, 1.0, 6)
    law = ResidualLaw(alike=alike)
    planned = planned_error(expected, chances, p, grouping, law)
    assert planned == pytest.approx(
        math.sqrt((together / chances).sum() + predictions) / p.size, rel=1e-12
    )
    # Labels of all claims, drawn one by one, leave what those of all responses do.
    sure = planned_error(spread(p, grouping, Unit.CLAIM, alike), np.ones(p.size), p, grouping, law)
    assert sure == pytest.approx(math.sqrt(together.sum() + predictions) / p.size, rel=1e-12)


def test_plans_of_all_claims_and_of_all_responses_are_the_same() -> None:
    generator = np.random.default_rng(4)
    grouping = group_by_response(np.repeat(np.arange(8), generator.integers(1, 40, 8)))
    p = generator.random(grouping.index.size)
    errors, freedoms = [], []
    for unit in Unit:
        expected = spread(p, grouping, unit)
        sure = np.ones(expected.size)
        errors.append(planned_error(expected, sure, p, grouping))
        freedoms.append(planned_freedom(sure, grouping))
    assert errors[0] == pytest.approx(errors[1], rel=1e-12)
    evenness = grouping.sizes.sum() ** 2 / (8 * (grouping.sizes @ grouping.sizes))
    assert freedoms == pytest.approx([8 * evenness - 2] * 2, rel=1e-9)


@pytest.mark.parametrize("unit", Unit)
def test_a_plan_from_labels_at_hand_has_the_width_of_their_intervals(unit: Unit) -> None:
    """Over-sharp probabilities, and errors that responses have in common."""
    widths: list[float] = []
    plans: list[float] = []
    calibrated: list[float] = []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        responses = np.repeat(np.arange(120), generator.integers(3, 10, 120))
        grouping = group_by_response(responses)
        odds = generator.normal(0.5, 1.0, responses.size)
        error = generator.normal(0.0, 1.2, 120)[responses]
        y = (generator.random(responses.size) < 1 / (1 + np.exp(-odds - error))).astype(float)
        p = 1 / (1 + np.exp(-3 * odds))
        sizes = grouping.sizes if unit is Unit.RESPONSE else np.ones(p.size)
        first = generator.permutation(120)[:20]
        known = np.isin(responses, first)
        labels, weights = np.where(known, y, np.nan), np.ones(p.size)
        power = estimate(share(p, labels, responses)).power
        law = observed_residuals(p, labels, weights, grouping, power)
        at_hand = np.isin(np.arange(120), first) if unit is Unit.RESPONSE else known
        chances = inclusion_probabilities(
            spread(p, grouping, unit), np.ones(sizes.size), 40 if unit is Unit.RESPONSE else 240,
            ~at_hand,
        )  # fmt: skip
        for each, made in ((law, plans), (CALIBRATED, calibrated)):
            expected = spread(p, grouping, unit, each.alike)
            made.append(planned_error(expected, chances, p, grouping, each, at_hand=at_hand))
        drawn = draw(chances, seed)
        first_chance = 20 / 120 if unit is Unit.RESPONSE else known.mean()
        batch = np.where(at_hand, 0, np.where(drawn, 1, -1))
        chosen, of_unit = batch >= 0, np.ones(batch.size)
        of_unit[chosen] = batch_weights(
            np.where(at_hand, first_chance, chances)[chosen], batch[chosen]
        )
        if unit is Unit.RESPONSE:
            chosen, of_unit = chosen[responses], of_unit[responses]
        both = share(p, np.where(chosen, y, np.nan), responses, weights=of_unit)
        widths.append(estimate(both).error)
    assert np.median(plans) == pytest.approx(np.median(widths), rel=0.15)
    # Residuals of calibrated probabilities would be too small.
    assert np.median(calibrated) < 0.8 * np.median(widths)
