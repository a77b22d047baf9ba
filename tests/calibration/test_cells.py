"""Cells of a long frame: reading from a table, agreeing cells, pairs, the best."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration import brier, score
from calibration.cells import (
    agreeing,
    cells_of,
    claims_of_each,
    largest_difference,
    paired_claims,
    significantly_best,
)
from factormodels.errors import InputError


def frame(**methods: Sequence[float | None]) -> pd.DataFrame:
    """A row per claim and method, two claims a response; every fourth claim has no label."""
    n = len(next(iter(methods.values())))
    return pd.concat(
        pd.DataFrame(
            {
                "method": name,
                "response": [f"r{at // 2}" for at in range(n)],
                "claim": [f"c{at % 2}" for at in range(n)],
                "p": p,
                "label": [None if at % 4 == 3 else at % 3 == 0 for at in range(n)],
            }
        )
        for name, p in methods.items()
    )


P: list[float | None] = [0.9, 0.2, 0.4, 0.8, 0.1, 0.7]


def test_cells_are_read_in_their_order_with_what_is_missing() -> None:
    first, second = cells_of(frame(a=P, b=[None, *P[1:]]), "method")
    assert [cell.named for cell in (first, second)] == [{"method": "a"}, {"method": "b"}]
    np.testing.assert_array_equal(first.p, P)
    assert first.responses == ("r0", "r1", "r2")
    assert np.isnan(first.label).tolist() == [False] * 3 + [True] + [False] * 2
    assert second.judged.tolist() == [False] + [True] * 5
    p, label, index = second.claims
    assert (len(p), index.tolist()) == (5, [0, 1, 1, 2, 2])
    assert label[1] == 0.0
    assert largest_difference(first, second) == 0.0


def test_cells_that_agree_are_together_whatever_the_order_of_their_claims() -> None:
    near = [value + 0.004 for value in P if value is not None]
    table = frame(a=P, near=near, far=[0.5] * 6, lacking=[None, *P[1:]], none=[None] * 6)
    shuffled = table.sample(frac=1.0, random_state=3)
    for rows in (table, shuffled):
        cells = cells_of(rows, ["method"])
        agreement = agreeing(cells)
        names = [
            [cells[at].named["method"] for at in group.positions] for group in agreement.groups
        ]
        assert sorted(map(sorted, names)) == [["a", "near"], ["far"], ["lacking"], ["none"]]
        (together,) = (group for group in agreement.groups if len(group.positions) == 2)
        assert together.apart == pytest.approx(0.004, abs=1e-12)
        assert [group.answered for group, members in zip(agreement.groups, names, strict=True)] == [
            members != ["none"] for members in names
        ]
    assert agreeing(cells_of(table, "method")).spread == pytest.approx(0.404, abs=1e-12)
    assert len(agreeing(cells_of(table, "method"), within=0.003).groups) == 5


def test_a_third_cell_joins_only_a_group_that_stays_narrow() -> None:
    steps = {name: [0.5 + shift] * 6 for name, shift in (("a", 0.0), ("b", 0.004), ("c", 0.008))}
    groups = agreeing(cells_of(frame(**steps), "method")).groups
    assert [group.positions for group in groups] == [(0, 1), (2,)]


def test_pairs_are_the_labeled_claims_that_both_judged() -> None:
    first, second = cells_of(frame(a=P, b=[0.5, None, *[0.5] * 4]), "method")
    sides = paired_claims(first, second)
    assert sides is not None
    assert [side.p.tolist() for side in sides] == [[0.9, 0.4, 0.1, 0.7], [0.5] * 4]
    assert sides[0].y.tolist() == sides[1].y.tolist() == [1, 0, 0, 0]
    assert paired_claims(first, second, unlabeled="false")[0].p.size == 5  # type: ignore[index]
    each = claims_of_each(first, second)
    assert each is not None
    assert [side.p.size for side in each] == [5, 4]
    nothing = cells_of(frame(a=P, b=[None] * 6), "method")
    assert paired_claims(*nothing) is None
    assert claims_of_each(*nothing) is None


def test_the_best_is_reported_only_where_every_other_differs() -> None:
    generator = np.random.default_rng(0)
    n = 120
    labels = np.array([at % 3 == 0 for at in range(n)], dtype=float)
    good = list(np.clip(labels * 0.6 + 0.2 + generator.normal(0, 0.05, n), 0.01, 0.99))
    methods: dict[str, Any] = {"good": good, "again": good, "poor": [0.5] * n}

    def best(**given: list[float | None]) -> list[str]:
        cells = cells_of(frame(**given), "method")
        values = [brier(*cell.claims[:2]) for cell in cells]
        readers = [partial(lambda cell: cell, cell) for cell in cells]
        best_cells = significantly_best(readers, values, "brier", n_resamples=500)
        return [cells[at].named["method"] for at in best_cells]

    assert best(**methods) == ["good", "again"]
    assert best(good=good, again=list(good)) == []
    slightly = [value + 0.02 * (-1) ** at for at, value in enumerate(good)]
    assert best(**methods, slightly=slightly) == []


def test_the_scores_of_a_cell_are_those_of_its_arrays() -> None:
    cell, other = cells_of(frame(a=P, b=[None, *P[1:]]), "method")
    assert score(*other.claims)["brier"].value == brier(*other.claims[:2])
    assert score(*cell.claims).models[0].n_responses == 3


@pytest.mark.parametrize(
    ("changed", "by", "message"),
    [
        ({}, "backend", "no column 'backend'; set by to one of method, response"),
        ({}, [], "by names no column"),
        ({"p": 1.2}, "method", "method a: p[0] is 1.2, outside"),
        ({"label": 0.3}, "method", "method a: label[0] is 0.3, which is not a label"),
        ({"claim": "c"}, "method", "method a: it has a claim twice"),
        ({"response": None}, "method", "method a: response[0] is missing"),
    ],
)
def test_a_bad_frame_is_refused(changed: dict[str, Any], by: Any, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("[", r"\[").replace("]", r"\]")):
        cells_of(frame(a=P).assign(**changed), by)


def long_frame() -> pd.DataFrame:
    """Two data sets with the same ids, two methods on each, of which one lacks a probability."""
    parts = []
    for dataset, shift in (("one", 1.0), ("other", 0.9)):
        part = frame(a=P, b=[None, *P[:0:-1]]).assign(dataset=dataset)
        part["p"] *= shift
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def test_every_cell_of_a_long_frame_is_scored_as_its_arrays_are() -> None:
    table = long_frame()
    scores = score(table, by=["dataset", "method"], scores=["brier", "precision"])
    cells = cells_of(table, ["dataset", "method"])
    rows = scores.to_frame()
    assert list(rows.columns[:3]) == ["dataset", "method", "score"]
    assert len(rows) == 2 * len(cells) == 8
    for cell, model in zip(cells, scores.models, strict=True):
        assert model.cell == cell.named
        of_cell = score(*cell.claims, scores=["brier", "precision"])
        for name in ("brier", "precision"):
            assert scores[", ".join(cell.named.values()), name] == of_cell[name]
    assert scores.tested == ()
    assert "Claims without a probability, left out: 1 of one, b, 1 of other, b." in scores.remarks


def test_cells_are_tested_against_the_one_that_is_named_but_never_across_data() -> None:
    table = long_frame()
    of_one = table[table.dataset == "one"]
    scores = score(of_one, by="method", scores=["brier"], reference="a", n_resamples=50)
    by_model = score("p", "label", "response", data=of_one.dropna(subset=["p"]), model="method",
                     claim="claim", scores=["brier"], n_resamples=50)  # fmt: skip
    assert scores.difference("b", "brier") == by_model.difference("b", "brier")
    across = score(table, by=["dataset", "method"], scores=["brier"], reference="one, a",
                   n_resamples=50)  # fmt: skip
    assert across.difference("one, b", "brier") == scores.difference("b", "brier")
    assert across.n_comparisons == 1
    apart = table[(table.dataset == "one") == (table.method == "a")]
    across = score(apart, by=["dataset", "method"], scores=["brier"], reference="one, a")
    assert across.tested == ()
    assert any("no claim in common" in remark for remark in across.remarks)


def test_a_cell_without_labels_is_named_and_the_others_are_scored() -> None:
    table = long_frame()
    table.loc[table.dataset == "other", "label"] = None
    scores = score(table, by=["dataset", "method"], scores=["brier"])
    assert [model.name for model in scores.models] == ["one, a", "one, b"]
    assert "other, a: no claim has a label, so nothing is scored." in scores.remarks
    with pytest.raises(InputError, match="no cell has a claim with a probability and a label"):
        score(table.assign(label=None), by=["dataset", "method"], scores=["brier"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": "method"}, "model 'a' has a claim twice; name in by every column"),
        ({}, "model 'p' has a claim twice; name in by every column"),
        ({"by": ["dataset", "backend"]}, "no column 'backend'; set by to some of method"),
        ({"by": []}, "by names no column"),
        ({"by": "dataset", "y": np.zeros(12)}, "so that y names a column of it"),
        ({"by": "dataset", "model": "method"}, "by names the columns of cells and model another"),
    ],
)
def test_cells_that_are_not_distinguished_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score(long_frame(), **given)
    if "by" in given:
        with pytest.raises(InputError, match="by, model and claim name columns of a table"):
            score([0.5], [True], by=given["by"])
