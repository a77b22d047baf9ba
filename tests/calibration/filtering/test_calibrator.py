"""Calibrators: by group, by several scores, and their file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from calibration.filtering import (
    Calibrator,
    ConformalStatus,
    Promise,
    ScoredClaims,
    calibrator_of,
    conformal_filter,
    exchangeability,
    filtered_precision,
    fit_calibrator,
    read_calibrator,
)
from calibration.filtering.dependencies import Dependencies
from calibration.validation import Floats
from tests.calibration.filtering.drawn_responses import Drawn, two_kinds
from tests.refusals import refused


def claims_of(drawn: Drawn, *more: Floats) -> ScoredClaims:
    groups = [("saturated" if each else "other",) for each in drawn.saturated]
    return ScoredClaims(np.column_stack([drawn.p, *more]), drawn.responses.tolist(), groups)


def in_one_group(claims: ScoredClaims) -> ScoredClaims:
    return ScoredClaims(claims.values, claims.responses, [()] * len(claims.responses))


@pytest.fixture(scope="module")
def by_group() -> Calibrator:
    old = two_kinds(400, 0)
    return fit_calibrator(
        claims_of(old), old.y, ["p"], Promise.of(0.9, 0.9), by=["kind"], n_splits=5
    )


def test_a_tenth_of_saturated_responses_leaves_one_threshold_nothing(by_group: Calibrator) -> None:
    """The example that asked for groups: 0 of 9,600 claims, or 2,456 of 8,640 by group."""
    old, new = two_kinds(400, 0), two_kinds(1200, 1)
    claims = claims_of(new)
    promise = Promise.of(0.9, 0.9)
    pooled = fit_calibrator(in_one_group(claims_of(old)), old.y, ["p"], promise, n_splits=5)
    assert pooled.groups[()].filter.threshold == 0.99
    assert new.p.size == 9600
    assert pooled.keep(in_one_group(claims)).sum() == 0
    kept = by_group.keep(claims)
    assert (~new.saturated).sum() == 8640
    # A quarter to a third of the claims: the count depends on the draw of 360 labeled responses.
    assert 2_100 < kept[~new.saturated].sum() < 2_900
    assert not kept[new.saturated].any()


def test_thresholds_of_groups_are_those_of_each_alone(by_group: Calibrator) -> None:
    old = two_kinds(400, 0)
    for group, part in (("saturated", old.saturated), ("other", ~old.saturated)):
        alone = conformal_filter(
            old.p[part], old.y[part], old.responses[part], precision=0.9, confidence=0.9
        )
        assert by_group.groups[(group,)].filter == alone


@pytest.mark.parametrize("trials", [50, pytest.param(150, marks=pytest.mark.nightly)])
def test_the_promise_holds_in_each_group(trials: int) -> None:
    confidence, n = 0.8, 40
    reached: dict[bool, list[float]] = {True: [], False: []}
    pooled_reached = []
    for trial in range(trials):
        old, new = two_kinds(10 * n, 2 * trial), two_kinds(400, 2 * trial + 1)
        calibrator = fit_calibrator(
            claims_of(old), old.y, ["p"], Promise.of(0.9, confidence), n_splits=1
        )
        pooled = fit_calibrator(
            in_one_group(claims_of(old)), old.y, ["p"], Promise.of(0.9, confidence), n_splits=1
        )
        kept = calibrator.keep(claims_of(new))
        kept_by_one = pooled.keep(in_one_group(claims_of(new)))
        for kind, shares in reached.items():
            part = new.saturated == kind
            met = filtered_precision(kept[part], new.y[part], new.responses[part]) >= 0.9
            shares.append(float(met.mean()))
        part = new.saturated
        met = filtered_precision(kept_by_one[part], new.y[part], new.responses[part]) >= 0.9
        pooled_reached.append(float(met.mean()))
    for shares in reached.values():
        # The mean of trials, each with its own threshold: four standard errors below.
        assert np.mean(shares) > confidence - 4 * np.std(shares) / math.sqrt(trials)
    # A single threshold keeps its promise overall and breaks it in the group of a tenth.
    assert np.mean(pooled_reached) < 0.1


def test_tests_of_exchangeability_are_corrected_for_groups(by_group: Calibrator) -> None:
    old, new = two_kinds(400, 0), two_kinds(100, 1)
    new = new._replace(p=new.p**1.2)
    p_values = by_group.exchangeability(claims_of(new))
    (before, after) = (each.p[~each.saturated] for each in (old, new))
    (groups, others) = (each.responses[~each.saturated] for each in (old, new))
    for name, value in exchangeability(before, groups, after, others).items():
        assert p_values[("other",), name] == min(1.0, 2 * value)
    assert 0 < p_values[("other",), "mean probability"] < 0.9


def test_a_group_with_too_few_labels_keeps_nothing() -> None:
    old, new = two_kinds(80, 0), two_kinds(100, 1)
    calibrator = fit_calibrator(claims_of(old), old.y, ["p"], Promise.of(0.9, 0.9), n_splits=2)
    group = calibrator.groups[("saturated",)].filter
    assert (group.n_responses, group.status) == (8, ConformalStatus.KEEPS_NONE)
    assert Promise.of(0.9, 0.9).fewest_responses == 9
    assert not calibrator.keep(claims_of(new))[new.saturated].any()
    # A group that no labeled response has is not calibrated.
    others = ScoredClaims(np.ones((2, 1)), ["x", "x"], [("law",)] * 2)
    assert not calibrator.keep(others).any()
    assert calibrator.exchangeability(others) == {}


@pytest.mark.parametrize("confidence", [0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("guarantee", ["probability", "mean"])
def test_fewest_responses_are_those_from_which_a_filter_can_keep(
    confidence: float, guarantee: str
) -> None:
    promise = Promise.of(confidence, confidence, guarantee)

    def keeps(n: int) -> bool:
        chosen = conformal_filter(
            np.full(n, 0.5), np.ones(n), np.arange(n),
            precision=confidence, confidence=confidence, guarantee=guarantee,
        )  # fmt: skip
        return chosen.status is not ConformalStatus.KEEPS_NONE

    assert [keeps(n) for n in range(1, 120)] == [
        n >= promise.fewest_responses for n in range(1, 120)
    ]


# --------------------------------------------------------------------------------------- scores


def three_scores(n: int, seed: int) -> tuple[ScoredClaims, Floats]:
    """Claims with two scores that each know half of the evidence, and one of chance."""
    generator = np.random.default_rng(seed)
    size = 6 * n
    first, second = generator.normal(0, 2, size), generator.normal(0, 2, size)
    y = (generator.random(size) < expit(1 + first + second)).astype(np.float64)
    values = np.column_stack([generator.random(size), expit(first), expit(second)])
    names = ("chance", "one", "other")
    return ScoredClaims(values, np.repeat(np.arange(n), 6).tolist(), [()] * size, names=names), y


@pytest.mark.parametrize("trials", [30, pytest.param(100, marks=pytest.mark.nightly)])
def test_a_combination_keeps_more_than_each_score_and_its_promise_holds(trials: int) -> None:
    confidence = 0.8
    promise = Promise.of(0.9, confidence)
    reached, kept_share = [], []
    for trial in range(trials):
        (old, y), (new, z) = three_scores(60, 2 * trial), three_scores(200, 2 * trial + 1)
        calibrator = fit_calibrator(old, y, ["chance", "one", "other"], promise, n_splits=1)
        kept = calibrator.keep(new)
        reached.append(float((filtered_precision(kept, z, new.responses) >= 0.9).mean()))
        kept_share.append(float(kept.mean()))
    # Thirty responses calibrate: coverage of a trial varies by .07, its mean over 100 by .007.
    assert np.mean(reached) > confidence - 4 * np.std(reached) / math.sqrt(trials)
    (old, y), (new, z) = three_scores(600, 1), three_scores(2000, 2)
    joint = fit_calibrator(old, y, ["chance", "one", "other"], promise, n_splits=1)
    assert joint.combination.names == ("chance", "one", "other")
    # Log odds are the sum of those of the two scores.
    assert joint.combination.weights == pytest.approx([0, 1, 1], abs=0.15)
    assert joint.combination.constant == pytest.approx(1, abs=0.3)
    for number, name in enumerate(("chance", "one", "other")):
        single = ScoredClaims(old.values[:, [number]], old.responses, old.groups)
        alone = fit_calibrator(single, y, [name], promise, n_splits=1)
        fresh = ScoredClaims(new.values[:, [number]], new.responses, new.groups)
        assert joint.keep(new).mean() > 1.3 * alone.keep(fresh).mean()


def test_no_response_both_chooses_and_calibrates() -> None:
    claims, y = three_scores(40, 0)
    calibrator = fit_calibrator(claims, y, ["chance", "one", "other"], Promise.of(0.9, 0.8))
    assert calibrator.n_choosing == 20
    assert calibrator.groups[()].filter.n_responses == 20
    assert calibrator.candidates[0].combination.title == "chance + one + other"
    assert len(calibrator.candidates) == 4


def test_one_informative_score_is_chosen_as_it_is() -> None:
    claims, y = three_scores(200, 0)
    # Beside a constant the regression ranks claims as the other score does.
    exact = np.column_stack([np.full(y.size, 0.5), np.where(y == 1, 0.9, 0.1)])
    sure = ScoredClaims(exact, claims.responses, claims.groups)
    calibrator = fit_calibrator(sure, y, ["constant", "exact"], Promise.of(1.0, 0.9), n_splits=2)
    assert calibrator.combination.names == ("exact",)
    assert calibrator.combination.weights == ()
    # Thresholds apply to this score, whatever its position among the given ones.
    for order in (["constant", "exact"], ["exact", "constant"]):
        columns = exact[:, :: 1 if order[0] == "constant" else -1]
        named = replace(sure, values=columns, names=order)
        assert (calibrator.keep(named) == (y == 1)).all()
    assert (calibrator.keep(replace(sure, values=exact[:, [1]])) == (y == 1)).all()
    refused("2 scores without names for exact", calibrator.keep, sure)
    refused("'exact'", calibrator.keep, replace(sure, names=["constant", "other"]))


def test_too_few_responses_to_choose_and_calibrate() -> None:
    claims, y = three_scores(3, 0)
    refused(
        "3 responses with labels cannot both choose between scores and calibrate",
        fit_calibrator, claims, y, ["a", "b", "c"], Promise.of(0.9, 0.9),
    )  # fmt: skip


def test_claims_without_a_label_limit_those_that_depend_on_them_and_are_not_counted() -> None:
    # Claim 1 of each response is sure and true, and depends on claim 0, which has no label.
    n = 20
    y = np.tile([np.nan, 1.0, 0.0], n)
    values = np.tile([0.3, 0.9, 0.6], n)[:, None]
    edges = Dependencies(np.arange(1, 3 * n, 3), np.arange(0, 3 * n, 3))
    claims = ScoredClaims(values, np.repeat(np.arange(n), 3).tolist(), [()] * (3 * n), edges)
    calibrator = fit_calibrator(claims, y, ["p"], Promise.of(1.0, 0.9), n_splits=2)
    assert calibrator.groups[()].filter.threshold == 0.6
    assert not calibrator.keep(claims).any()


# ----------------------------------------------------------------------------------------- file


def saved(tmp_path: Path, calibrator: Calibrator) -> dict[str, Any]:
    calibrator.save(tmp_path / "c.json")
    content: dict[str, Any] = json.loads((tmp_path / "c.json").read_text("utf-8"))
    return content


@pytest.mark.parametrize("guarantee", ["probability", "mean", "coherent"])
def test_a_calibrator_that_was_saved_keeps_the_same_claims(tmp_path: Path, guarantee: str) -> None:
    old, new = two_kinds(95, 0), two_kinds(200, 1)
    generator = np.random.default_rng(0)
    promise = Promise.of(1.0 if guarantee == "coherent" else 0.8, 0.8, guarantee)
    claims = claims_of(old, generator.random(old.p.size))
    fresh = replace(claims_of(new, generator.random(new.p.size)), names=["p", "q"])
    calibrator = fit_calibrator(claims, old.y, ["p", "q"], promise, by=["kind"], n_splits=3)
    calibrator.save(tmp_path / "c.json")
    read = read_calibrator(tmp_path / "c.json")
    assert (read.keep(fresh) == calibrator.keep(fresh)).all()
    assert read.exchangeability(fresh) == calibrator.exchangeability(fresh)
    assert str(read.promise) == str(calibrator.promise)
    assert (read.by, read.n_choosing, read.edited) == (("kind",), 47, False)
    assert read.trial == calibrator.trial
    # What was read is saved as it was.
    read.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "c.json").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="judge"), "this is not a calibrator; give the file that"),
        (lambda c: c.update(version=2), "a calibrator of version 2; this release reads version 1"),
        (lambda c: c.update(precision=0.8), "the digest does not match the content"),
        (lambda c: c.update(precision=0), "key 'precision': 0 is not above 0"),
        (lambda c: c.update(confidence=None), "key 'confidence': None is not a number between"),
        (lambda c: c.update(guarantee="coherent"), "key 'precision': 0.9 is not 1"),
        (lambda c: c.update(guarantee="surely"), "key 'guarantee': 'surely' is not one of"),
        (lambda c: c.update(groups=[]), "key 'groups': .* is not a list of one group"),
        (lambda c: c["groups"].append(c["groups"][0]), "key 'groups': .* different values"),
        (lambda c: c["groups"][0].update(threshold=1.5), "key 'threshold': 1.5 is not a number"),
        (lambda c: c["groups"][0].update(threshold=None), "key 'threshold': None is not a number"),
        (lambda c: c["groups"][0].update(labeled_responses=8), "key 'status': 'ok' is not that"),
        (lambda c: c["groups"][0].update(values=["a", "b"]), "key 'values'.* a list of 1"),
        (lambda c: c["groups"][0]["statistics"]["number of claims"].pop(), "is not a list of 40"),
        (lambda c: c["scores"].update(weights=[2.0]), "key 'weights': .* and none for one"),
        (lambda c: c["scores"].update(constant=1.0), "key 'constant': 1.0 is not 0"),
        (lambda c: c.pop("by"), "the key 'by' is missing"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(
    tmp_path: Path, by_group: Calibrator, change: Any, message: str
) -> None:
    content = saved(tmp_path, by_group)
    change(content)
    refused(message, calibrator_of, json.dumps(content), "c.json")


def test_an_edited_file_without_a_digest_is_read_and_marked(
    tmp_path: Path, by_group: Calibrator
) -> None:
    content = saved(tmp_path, by_group)
    del content["digest"]
    assert calibrator_of(json.dumps(content)).edited
