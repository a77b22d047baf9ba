"""Curves and their bands over responses."""

from __future__ import annotations

import numpy as np
import pytest

from calibration import corp_curve, corp_decomposition, reliability_bins
from calibration.curves import group_calibration, risk_curve
from calibration.curves.label_draws import calibrated, shared_share
from calibration.forecasts import forecasts, pooled
from calibration.scores.families.selective import risk_areas
from calibration.scores.logistic import sigmoid
from calibration.validation import Floats, Integers
from tests.calibration.coverage_simulation import alike_labels
from tests.calibration.scipy_bootstrap import scipy_bootstrap
from tests.refusals import refused


def calibrated_clusters(
    generator: np.random.Generator, n_responses: int, size: int, correlation: float
) -> tuple[Floats, Floats, Integers]:
    """Return calibrated forecasts whose labels have correlated normal numbers in a response."""
    responses = np.repeat(np.arange(n_responses), size)
    p = sigmoid(generator.normal(0, 1.3, responses.size))
    return p, alike_labels(generator, p, responses, correlation), responses


def test_hand_values_of_corp() -> None:
    curve = corp_curve([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], band="none")
    assert curve.p.tolist() == [0.1, 0.1, 0.4, 0.6, 0.9, 0.9]
    assert curve.recalibrated.tolist() == [0, 0, 0.5, 0.5, 1, 1]
    assert curve.decomposition == corp_decomposition([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    assert curve.histogram.sum() == curve.n_atoms == 4
    assert curve.lower.size == curve.upper.size == 0
    assert curve.n_responses is None


@pytest.mark.parametrize("seed", range(3))
def test_the_curve_is_scikit_learns_isotonic_regression(seed: int) -> None:
    from sklearn.isotonic import IsotonicRegression

    generator = np.random.default_rng(seed)
    p = np.round(generator.random(300), 2 + seed)
    y, weights = generator.random(300) < p, generator.integers(1, 4, 300)
    curve = corp_curve(p, y, weights=weights, band="none")
    fitted = IsotonicRegression().fit(p, y, sample_weight=weights)
    # The same least squares by other code.
    np.testing.assert_allclose(curve.recalibrated, fitted.predict(curve.p), rtol=0, atol=1e-12)
    bins = reliability_bins(p, y)
    assert curve.histogram.tolist() == bins.histogram.tolist()


def test_a_confidence_band_is_of_redrawn_responses() -> None:
    # Every response holds both probabilities, one true atom at the higher: nothing can change.
    p = [0.2, 0.8] * 10
    fixed = corp_curve(p, [0, 1] * 10, responses=np.repeat(np.arange(10), 2), n_bootstrap=20)
    assert fixed.lower.tolist() == fixed.upper.tolist()
    np.testing.assert_allclose(fixed.lower, (fixed.at - 0.2) / 0.6, atol=1e-12)
    assert fixed.at[[0, -1]].tolist() == [0.2, 0.8]
    generator = np.random.default_rng(1)
    responses = np.repeat(np.arange(100), 10)
    of_response = generator.random(100)
    # Atoms of a response have one p and one label: ten of them tell no more than one.
    alike, labels = of_response[responses], (generator.random(100) < of_response)[responses]
    clustered = corp_curve(alike, labels, responses=responses, n_bootstrap=100, seed=2)
    again = corp_curve(alike, labels, responses=responses, n_bootstrap=100, seed=2)
    assert clustered.lower.tolist() == again.lower.tolist()
    assert clustered.n_responses == 100
    assert (clustered.lower <= clustered.upper).all()
    naive = corp_curve(alike, labels, n_bootstrap=100)
    middle = slice(60, 140)
    widths = [float((c.upper - c.lower)[middle].mean()) for c in (clustered, naive)]
    assert widths[0] > 1.5 * widths[1]


@pytest.mark.parametrize("n_runs", [24, pytest.param(60, marks=pytest.mark.nightly)])
def test_a_consistency_band_holds_the_curve_of_calibrated_forecasts(n_runs: int) -> None:
    generator = np.random.default_rng(3)
    inside = {"responses": 0.0, "atoms": 0.0}
    for _ in range(n_runs):
        p, y, responses = calibrated_clusters(generator, 60, 12, 0.5)
        for name, ids in (("responses", responses), ("atoms", None)):
            band = corp_curve(p, y, responses=ids, band="consistency", n_bootstrap=60)
            middle = (band.at > 0.2) & (band.at < 0.8)
            curve = np.interp(band.at, band.p, band.recalibrated)
            in_band = (curve >= band.lower) & (curve <= band.upper)
            inside[name] += float(in_band[middle].mean())
    # Nominal 95%, less what quantiles of 60 draws and the estimated likeness lose. Independent
    # labels vary by less than half as much: their band holds the curve about 80% of the time.
    assert inside["responses"] / n_runs > 0.88
    assert inside["atoms"] / n_runs < 0.87


def test_the_band_is_around_the_diagonal_whatever_the_labels() -> None:
    generator = np.random.default_rng(4)
    p = generator.random(1500)
    band = corp_curve(p, generator.random(1500) < 0.5, band="consistency", n_bootstrap=100)
    inner = (band.at > 0.1) & (band.at < 0.9)
    assert ((band.lower < band.at) & (band.at < band.upper))[inner].all()
    # The curve, flat near 1/2, leaves it at both ends.
    curve = np.interp(band.at, band.p, band.recalibrated)
    assert curve[20] > band.upper[20]
    assert curve[180] < band.lower[180]


def test_drawn_labels_are_calibrated_and_alike_as_the_data() -> None:
    generator = np.random.default_rng(5)
    p, y, responses = calibrated_clusters(generator, 800, 8, 0.6)
    points = forecasts(p, y, None, responses)
    share = shared_share(points, np.random.default_rng(0))

    def likeness(labels: Floats) -> float:
        """Return the mean product of Pearson residuals over pairs of a response."""
        residual = (labels - p) / np.sqrt(p * (1 - p))
        sums = np.bincount(responses, weights=residual)
        return float((sums**2).sum() - (residual**2).sum()) / (800 * 8 * 7)

    truth = likeness(y)
    drawn, trues = [], []
    position = np.searchsorted(points.p, p)
    for sample in calibrated(points, 40, seed=1):
        # All probabilities differ, so that each point is one atom.
        drawn.append(likeness(sample.true[position]))
        trues.append(sample.total_true)
    # Residuals from the isotonic fit are a little smaller than those from p; 40 draws of 800
    # responses have a standard error of about 0.01 / sqrt(40).
    assert np.mean(drawn) == pytest.approx(truth, abs=0.04)
    assert 0.2 < truth < 0.6
    assert 0 < share < 1
    # Responses are 800: the number of true atoms has a standard deviation of about 100.
    assert np.mean(trues) == pytest.approx(p.sum(), abs=100)


def test_atoms_alone_share_nothing() -> None:
    p, y, _ = calibrated_clusters(np.random.default_rng(6), 50, 4, 0.5)
    generator = np.random.default_rng(0)
    assert shared_share(forecasts(p, y, None, np.arange(p.size)), generator) == 0.0
    # Labels against each other within responses cannot be drawn so; they share nothing.
    opposed = forecasts([0.5] * 40, [0, 1] * 20, None, np.repeat(np.arange(20), 2))
    assert shared_share(opposed, generator) == 0.0


def test_risk_curves() -> None:
    generator = np.random.default_rng(7)
    p, y, responses = calibrated_clusters(generator, 80, 10, 0.3)
    for rule in ("verdict", "claim"):
        curve = risk_curve(p, y, responses=responses, rule=rule, n_bootstrap=100)
        assert (curve.area, curve.excess) == risk_areas(pooled(p, y), rule)
        assert curve.coverage[[0, -1]].tolist() == [0.01, 1.0]
        # The coverages are whole numbers of atoms, of which the surest are kept.
        supported = p > 0.5
        sure = np.where(supported, p, 1 - p) if rule == "verdict" else p
        wrong = ((y == 1) != supported if rule == "verdict" else y == 0)[np.argsort(-sure)]
        at = (np.cumsum(wrong) / np.arange(1, 801))[7::8]
        np.testing.assert_allclose(curve.risk, at, rtol=0, atol=1e-12)
        assert ((curve.lower <= curve.risk) & (curve.risk <= curve.upper))[5:].all()
        assert (curve.rule, curve.n_atoms, curve.n_responses) == (rule, 800, 80)


def test_hand_values_by_group() -> None:
    p, y = [0.2, 0.4, 0.9, 0.7], [0, 1, 1, 0]
    groups = ["early", "early", "late", "late"]
    order = ["early", "middle", "late"]
    by_group = group_calibration(
        p, y, groups, order=order, responses=["a", "b", "a", "a"], n_bootstrap=50
    )
    assert by_group.groups == ("early", "middle", "late")
    assert by_group.n_atoms.tolist() == [2, 0, 2]
    np.testing.assert_allclose(by_group.mean_predicted, [0.3, np.nan, 0.8], atol=1e-15)
    np.testing.assert_allclose(by_group.observed, [0.5, np.nan, 0.5], atol=1e-15)
    np.testing.assert_allclose(by_group.gap, [0.2, np.nan, -0.3], atol=1e-15)
    # The early gaps of responses a and b are -0.2 and 0.6; late atoms are of one response.
    assert by_group.lower[0] == pytest.approx(-0.2, abs=1e-12)
    assert by_group.upper[0] == pytest.approx(0.6, abs=1e-12)
    assert np.isnan(by_group.lower[1:]).all()
    weighted = group_calibration(p, y, groups, weights=[3, 1, 1, 1])
    assert weighted.observed.tolist() == [0.25, 0.5]
    # A weight is a number of atoms.
    counts = [1, 3, 2, 5]
    weighted = group_calibration(p, y, groups, weights=counts)
    repeated = group_calibration(*(np.repeat(each, counts) for each in (p, y, groups)))
    for name in ("mean_predicted", "observed", "gap"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-15)
    assert weighted.groups == ("early", "late")
    assert weighted.n_responses is None


def test_intervals_by_group_are_the_bootstrap_of_scipy() -> None:
    p, y, responses = calibrated_clusters(np.random.default_rng(8), 50, 6, 0.4)
    groups = np.where(np.arange(p.size) % 3 == 0, "x", "z")
    ours = group_calibration(p, y, groups, responses=responses, n_bootstrap=20_000, level=0.9)
    column = ours.groups.index("x")
    gaps = np.bincount(responses, weights=(y - p) * (groups == "x"))
    sizes = np.bincount(responses, weights=groups == "x")
    scipy_interval = scipy_bootstrap(gaps, sizes).confidence_interval
    # The replicates' standard deviation is about 0.05; a 5% quantile of 20,000 errs by 0.0007.
    assert ours.lower[column] == pytest.approx(scipy_interval.low, abs=0.005)
    assert ours.upper[column] == pytest.approx(scipy_interval.high, abs=0.005)


def test_probabilities_are_counted_in_21_equal_parts() -> None:
    generator = np.random.default_rng(9)
    p = np.concatenate([generator.random(300), [0.0, 0.5, 1.0]])
    expected = np.histogram(p, bins=21, range=(0, 1))[0]
    assert reliability_bins(p, generator.random(303) < p).histogram.tolist() == expected.tolist()


def test_bad_input_is_named() -> None:
    refused("band is 'wide'; choose one of confidence", corp_curve, [0.2], [1], band="wide")
    refused("n_bootstrap is 0", corp_curve, [0.2], [1], n_bootstrap=0)
    refused("level is 2", corp_curve, [0.2], [1], level=2)
    refused("rule is 'x'", risk_curve, [0.2], [1], rule="x")
    refused("seed is -1", risk_curve, [0.2], [1], seed=-1)
    refused("groups is None", group_calibration, [0.2], [1], None)
    refused("groups has 2", group_calibration, [0.2], [1], ["a", "b"])
    refused(r"groups\[0\] is missing", group_calibration, [0.2], [1], [None])
    refused("order lacks the group 'a'", group_calibration, [0.2], [1], ["a"], order=["b"])
    refused("order names a group twice", group_calibration, [0.2], [1], ["a"], order=["a", "a"])


def test_one_probability_is_a_curve_of_one_point() -> None:
    for band in ("confidence", "consistency"):
        curve = corp_curve([0.4] * 6, [1, 0, 1, 0, 0, 0], band=band, n_bootstrap=30)
        assert curve.at.tolist() == [0.4]
        assert curve.lower[0] <= 1 / 3 <= curve.upper[0]
