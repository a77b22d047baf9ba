"""Inputs that validation refuses, with messages that repeat the given value."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest

from calibration import (
    apply_policy,
    auroc,
    brier,
    calibration_error,
    corp_curve,
    corp_decomposition,
    f1_at_k,
    factual_precision,
    log_loss,
    reliability_bins,
    score,
)
from calibration.curves import group_calibration, risk_curve
from calibration.grouping import group_by_response
from calibration.labels import labeled_atoms
from calibration.scores import (
    auprc,
    calibration_line,
    entropy_measure,
    expected_precision,
    mean_surprisal,
    measure_responses,
    smooth_ece,
)
from calibration.scoring import ScoreTable
from calibration.validation import label_array, probability_array
from factormodels.errors import InputError
from tests.refusals import refused


def rows_of(table: ScoreTable) -> list[dict[str, Any]]:
    """Return the rows of a table, but for how many atoms had no label."""
    return [{**row, "n_unlabeled": 0} for row in table.rows()]


PAIR_FUNCTIONS: list[Callable[..., Any]] = [
    brier,
    log_loss,
    reliability_bins,
    corp_decomposition,
    calibration_error,
    smooth_ece,
    calibration_line,
    auroc,
    auprc,
    lambda p, y, weights=None, **how: rows_of(score(p, y, weights=weights, **how)),
    corp_curve,
    risk_curve,
    lambda p, y, **how: group_calibration(p, y, ["g"] * len(p), **how),
    lambda p, y, **how: rows_of(score({"one": p, "half": [each / 2 for each in p]}, y, **how)),
]
WEIGHTED_FUNCTIONS: list[Callable[..., Any]] = [
    function for function in PAIR_FUNCTIONS if "weights" in inspect.signature(function).parameters
]
RESPONSE_FUNCTIONS: list[Callable[..., Any]] = [
    factual_precision,
    entropy_measure,
    mean_surprisal,
    expected_precision,
    lambda p: f1_at_k(p, 2),
    lambda p: measure_responses(p, ["r"] * len(p)),
    lambda p: score(p, None, ["r"] * len(p), scores=["precision"]),
]

BAD_PROBABILITIES = [
    ([0.2, 1.2], r"p\[1\] is 1\.2, outside \[0, 1\]"),
    ([-1e-12, 0.5], r"p\[0\] is -1e-12, outside \[0, 1\]"),
    ([0.2, math.inf], r"p\[1\] is inf, outside"),
    ([0.2, math.nan], r"p\[1\] is missing"),
    ([0.2, None], r"p\[1\] is missing"),
    ([], "p is empty"),
    ([[0.2, 0.3]], r"p has shape \(1, 2\)"),
    ([[0.2], [0.3, 0.4]], "p is ragged"),
    (["0.2", "0.3"], r"p\[0\] is '0\.2', not a real number"),
    ([0.2 + 1j, 0.3], "not a real number"),
    (np.array([0.2, "0.3"], dtype=object), r"p\[1\] is '0\.3', not a number"),
    (np.ma.masked_array([0.2, 0.3], mask=[False, True]), r"p\[1\] is missing"),
]


@pytest.mark.parametrize(("p", "message"), BAD_PROBABILITIES)
def test_bad_probabilities_are_named(p: Any, message: str) -> None:
    refused(message, probability_array, p)


@pytest.mark.parametrize("function", RESPONSE_FUNCTIONS)
@pytest.mark.parametrize("p", [[0.2, 1.2], [0.2, math.nan], []])
def test_measures_refuse_bad_probabilities(function: Callable[..., Any], p: list[float]) -> None:
    refused(r"^p", function, p)


@pytest.mark.parametrize("function", PAIR_FUNCTIONS)
@pytest.mark.parametrize(
    ("p", "y", "message"),
    [
        ([0.2, 1.2], [True, False], r"p\[1\] is 1\.2"),
        ([0.2, math.nan], [True, False], r"p\[1\] is missing"),
        ([0.2, 0.3], [True], "p has 2, y has 1"),
        ([0.2, 0.3], [True, "S"], r"y\[1\] is 'S', which is not a label"),
        ([0.2, 0.3], [1, 2], r"y\[1\] is 2, which is not a label"),
        ([0.2, 0.3], [None, None], "none of the 2 atoms has a label; label some"),
        ([], [], "p is empty"),
    ],
)
def test_scores_refuse_bad_pairs(
    function: Callable[..., Any], p: list[Any], y: list[Any], message: str
) -> None:
    refused(message, function, p, y)


UNLABELED = ([0.2, 0.9, 0.4, 0.7, 0.3], [False, True, None, True, True])
LABELED = ([0.2, 0.9, 0.7, 0.3], [False, True, True, True])


def values_of(result: Any) -> Any:
    """Return what a result holds, but for how many atoms had no label."""
    if isinstance(result, tuple) and not hasattr(result, "_fields"):
        return [values_of(each) for each in result]
    if is_dataclass(result):
        fields = vars(result).items()
        return {name: values_of(value) for name, value in fields if name != "n_unlabeled"}
    return result


@pytest.mark.parametrize("function", PAIR_FUNCTIONS)
def test_unlabeled_atoms_are_left_out_and_reported(
    function: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="calibration.labels"):
        result = function(*UNLABELED)
    assert caplog.messages == ["1 of 5 atoms have no label and are left out"]
    np.testing.assert_equal(values_of(result), values_of(function(*LABELED)))


@pytest.mark.parametrize("function", PAIR_FUNCTIONS)
def test_unlabeled_atoms_are_refused_or_counted_where_that_is_asked_for(
    function: Callable[..., Any],
) -> None:
    refused(r"y\[2\] is unlabeled, as are 1 of 5 atoms", function, *UNLABELED, unlabeled="error")
    refused("label policy is 'drop'", function, *UNLABELED, unlabeled="drop")
    p, y = UNLABELED
    filled = [bool(label) for label in y]
    np.testing.assert_equal(
        values_of(function(p, y, unlabeled="false")), values_of(function(p, filled))
    )


@pytest.mark.parametrize(
    "result",
    [
        score(*UNLABELED).models[0],
        reliability_bins(*UNLABELED),
        corp_curve(*UNLABELED),
        risk_curve(*UNLABELED),
        group_calibration(*UNLABELED, list("vvwww")),
    ],
    ids=lambda result: type(result).__name__,
)
def test_results_count_the_unlabeled_atoms(result: Any) -> None:
    assert result.n_unlabeled == 1


def test_weights_and_responses_of_unlabeled_atoms_are_left_out_too() -> None:
    weights, responses = [1, 2, 100, 1, 3], ["b", "a", "c", "b", "a"]
    scored = score(*UNLABELED, responses, weights=weights)
    wanted = score(*LABELED, ["b", "a", "b", "a"], weights=[1, 2, 1, 3])
    assert repr(scored.models[0].scores) == repr(wanted.models[0].scores)
    assert scored.models[0].n_responses == 2
    with pytest.raises(InputError, match="weights of all labeled atoms are zero"):
        brier([0.2, 0.3], [True, None], weights=[0, 2])


@pytest.mark.parametrize("function", WEIGHTED_FUNCTIONS)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1], "lengths differ: p has 2, weights has 1"),
        ([1, -0.5], r"weights\[1\] is -0.5; give finite weights of at least 0"),
        ([1, math.nan], r"weights\[1\] is nan"),
        ([math.inf, 1], r"weights\[0\] is inf"),
        ([0, 0], "weights are all zero"),
        ([0.25, 0.75], "weights sum to 1 over 2 atoms; .*multiply shares by the number of atoms"),
        (["1", "2"], r"weights\[0\] is '1', not a real number"),
        ([[1, 2]], r"weights has shape \(1, 2\)"),
    ],
)
def test_weights_are_checked(function: Callable[..., Any], weights: Any, message: str) -> None:
    refused(message, function, [0.2, 0.7], [0, 1], weights=weights)


def test_every_weighted_score_is_checked() -> None:
    # Two scores and the reliability diagram take no weights, nor do those of responses and the
    # histogram.
    assert len(WEIGHTED_FUNCTIONS) == 11


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([], "y is empty"),
        ("TF", "y is the text 'TF'"),
        (3, "y is 3; give a sequence"),
        ([True, [False]], r"y\[1\] is \[False\], which is not a label"),
        (np.array([0.0, 0.7]), r"y\[1\] is 0\.7, .*\(probabilities come first, labels second\)"),
        ([0.7, True], r"y\[0\] is 0\.7, .*\(probabilities come first"),
        (np.array(["S", "NS"]), r"y\[0\] is 'S'"),
        (np.array([-1, 1]), r"y\[0\] is -1"),
        (np.array([[True]]), r"y has shape \(1, 1\)"),
    ],
)
def test_bad_labels_are_named(y: Any, message: str) -> None:
    refused(message, label_array, y)


def test_every_spelling_of_a_label_is_read() -> None:
    import pandas

    expected = np.array([1.0, 0.0, np.nan])
    for spelling in (
        [True, False, None],
        (1, 0, math.nan),
        np.array([1.0, 0.0, np.nan]),
        np.array([True, False, None], dtype=object),
        [np.True_, np.int64(0), np.float32("nan")],
        pandas.Series([True, False, None], dtype="boolean"),
        np.ma.masked_array([1, 0, 1], mask=[False, False, True]),
        iter([True, False, None]),
    ):
        np.testing.assert_array_equal(label_array(spelling), expected)
    np.testing.assert_array_equal(label_array(np.array([True, False])), [1.0, 0.0])


def test_arrays_given_are_not_changed() -> None:
    p, y = np.array([0.2, 0.7]), np.array([0.0, np.nan])
    apply_policy(p, y, policy="true")
    score(p, y, ["a", "b"], unlabeled="false")
    np.testing.assert_array_equal(p, [0.2, 0.7])
    np.testing.assert_array_equal(y, [0.0, np.nan])


def test_labeled_atoms_are_float_arrays_of_one_length() -> None:
    atoms = labeled_atoms([0, 1, 0.25], [False, True, None])
    assert atoms.p.dtype == atoms.y.dtype == np.float64
    assert atoms.p.tolist() == [0.0, 1.0]
    assert atoms.y.tolist() == [0.0, 1.0]
    assert atoms.kept.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        (None, "responses is None; give one response id per atom"),
        ("ab", "responses is 'ab'"),
        (7, "responses is 7"),
        ([], "responses is empty"),
        (["a", None], r"responses\[1\] is missing"),
        (np.array([1.0, np.nan]), r"responses\[1\] is missing"),
        ([["a"], ["b"]], "responses holds a list"),
    ],
)
def test_bad_response_ids_are_named(responses: Any, message: str) -> None:
    refused(message, group_by_response, responses)


def test_one_response_id_per_atom() -> None:
    for call in (
        lambda: score([0.2, 0.3], [1, 0], ["a"]),
        lambda: measure_responses([0.2, 0.3], ["a"]),
        lambda: reliability_bins([0.2, 0.3], [1, 0], responses=["a"]),
        lambda: labeled_atoms([0.2, 0.3], [1, 0]).grouping(["a"]),
    ):
        refused(r"lengths differ: .*responses has 1", call)


def test_responses_are_grouped_in_order_of_appearance() -> None:
    grouping = group_by_response(["b", 1, "b", "1", 1])
    assert grouping.responses == ("b", 1, "1")
    assert grouping.index.tolist() == [0, 1, 0, 2, 1]
    assert grouping.sizes.tolist() == [2, 2, 1]
    assert grouping.sums([1.0, 2.0, 3.0, 4.0, 5.0]).tolist() == [4.0, 7.0, 4.0]
    assert grouping.means([1.0, 2.0, 3.0, 4.0, 5.0]).tolist() == [2.0, 3.5, 4.0]


@pytest.mark.parametrize(
    "ids",
    [
        [0, 0, 1, 2, 2, 2],
        [0, 1, 0, 2, 1],
        [1, 1, 2],
        [5, 3, 5, -1],
        [0, 2, 3],
        [2, 1, 0],
        [0],
    ],
)
def test_numbers_in_an_array_are_grouped_as_those_in_a_list(ids: list[int]) -> None:
    expected = group_by_response(ids)
    for dtype in (np.int64, np.int32, np.uint8 if min(ids) >= 0 else np.int8):
        grouping = group_by_response(np.array(ids, dtype=dtype))
        assert tuple(grouping.responses) == expected.responses
        assert {type(response) for response in grouping.responses} == {int}
        assert grouping.index.tolist() == expected.index.tolist()
        assert grouping.index.dtype == grouping.sizes.dtype == np.int64
        assert grouping.sizes.tolist() == expected.sizes.tolist()


def test_immutable_values_are_not_copied() -> None:
    p, y = np.array([0.2, 0.7]), np.array([0.0, 1.0])
    copied = apply_policy(p, y)
    assert not np.shares_memory(copied.p, p)
    assert not np.shares_memory(copied.y, y)
    for array in (p, y):
        array.flags.writeable = False
    cleaned = apply_policy(p, y)
    assert cleaned.p is p
    assert cleaned.y is y
    y = np.array([0.0, np.nan])
    y.flags.writeable = False
    assert apply_policy(p, y, policy="true").y.tolist() == [0.0, 1.0]
    assert apply_policy(p, y).y.tolist() == [0.0]
    assert np.isnan(y[1])
