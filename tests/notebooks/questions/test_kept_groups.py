"""Groups of kept claims: outcomes by hand, thresholds by group in small, and the rival's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factormodels import datasets
from notebooks.questions.kept_groups import (
    METHODS,
    SATURATED,
    LabeledClaims,
    answered_claims,
    by_length,
    embedded_claims,
    filtered,
    halves_of,
    kept_groups,
    outcomes_of,
    own_rows,
    saturated_claims,
    steps,
)
from tests.refusals import refused

SMALL = LabeledClaims(
    np.array([[0.9], [0.2], [0.8], [0.7], [0.6], [0.1]]),
    np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0]),
    np.array([0, 0, 1, 1, 2, 2]),
    ("x", "y", "y"),
    ("p",),
)


def test_outcomes_by_hand() -> None:
    # Responses 1 and 2 are tried in the first split, 0 and 2 in the second.
    masks = [[[True, False], [False, False]], [[True, True], [True, False]]]
    outcomes = outcomes_of(SMALL, [[0], [1]], masks)
    assert outcomes == {
        "faultless": 2 / 4,
        # Response 0 is the only one of its group, and was kept with its false claim.
        "worst": 0.0,
        "empty": 1 / 4,
        "kept": 4 / 8,
        "kept_true": 2 / 3,
        "splits": 2,
    }
    refused("made with other --splits", outcomes_of, SMALL, [[0]], masks)
    refused("made of other claims", outcomes_of, SMALL, [[0]], [[[True], [False]]])


def test_groups_by_length_and_steps() -> None:
    assert by_length(np.array([1, 2, 3, 4, 5, 6])) == (
        *["short"] * 2,
        *["middle"] * 2,
        *["long"] * 2,
    )
    edges = steps(np.array([2, 1, 3]))
    assert edges.claims.tolist() == [1, 4, 5]
    assert edges.on.tolist() == [0, 3, 4]


def test_by_group_the_promise_holds_in_the_kind_that_one_threshold_fails() -> None:
    claims = saturated_claims(400, 0)
    rows = own_rows(claims, halves_of(claims, 10, 0), 0.8, 0).set_index("method")
    # Means over ten halves of the same 400 responses: three hundredths are chance.
    assert rows["faultless"].min() > 0.8 - 0.03
    assert rows["worst"]["one threshold"] == 0.0
    # Twenty responses of the kind calibrate, and forty are tried in each half or not at all.
    assert rows["worst"]["by length"] > 0.8 - 0.08


def test_dependencies_of_biographies_are_kept() -> None:
    claims = embedded_claims("selfcheck")
    assert claims.n_responses == sum(
        any(atom.label is not None for atom in graph.atoms)
        for graph in datasets.load("selfcheck").graphs
    )
    (first,) = halves_of(claims, 1, 0)
    with_others = next(method for method in METHODS if method.depends)
    kept = np.concatenate(filtered(claims, first, with_others, 0.8, 0))
    tried = np.flatnonzero(~np.isin(claims.responses, first))
    whole = np.zeros(claims.y.size, dtype=bool)
    whole[tried] = kept
    dependencies = claims.dependencies
    assert dependencies is not None
    assert dependencies.claims.size == 12
    assert (whole[dependencies.on] | ~whole[dependencies.claims]).all()
    assert kept.any()


def test_a_rival_on_the_same_splits_and_finished_parts(tmp_path: Path) -> None:
    small: dict[str, Any] = {"data": ("selfcheck", SATURATED), "splits": 3}
    export, rival, parts = tmp_path / "claims.json", tmp_path / "kept.json", tmp_path / "parts"
    kept_groups(export=export, **small)
    content = json.loads(export.read_text("utf-8"))
    # The rival takes two scores.
    assert list(content["data"]) == ["selfcheck"]
    data = content["data"]["selfcheck"]
    n = len(data["responses"])
    masks = [
        [[False] * len(data["responses"][r]["y"]) for r in range(n) if r not in first]
        for first in data["splits"]
    ]
    rival.write_text(json.dumps({"selfcheck": {"keeps none": masks}}), "utf-8")
    table = kept_groups(parts=parts, rival=rival, **small).tables["promises"].frame
    row = table[table["method"] == "keeps none"].iloc[0]
    assert (row["faultless"], row["empty"], row["kept"]) == (1.0, 1.0, 0.0)
    again = kept_groups(parts=parts, rival=rival, **small).tables["promises"].frame
    np.testing.assert_allclose(again["kept"], table["kept"], atol=1e-12)
    refused("made with other --splits", kept_groups, parts=parts, data=("selfcheck",), splits=4)
    refused("--data nowhere", kept_groups, data=("nowhere",))


@pytest.mark.parametrize("name", ["nq", "MATH"])
def test_files_of_a_language_model_with_two_scores(shared_data: Path, name: str) -> None:
    path = shared_data / "self_judged" / f"{name}_subclaims_with_scores.jsonl"
    claims = answered_claims(path, in_steps=name == "MATH")
    assert claims.n_responses == 50
    assert claims.values.shape == ({"nq": 294, "MATH": 293}[name], 2)
    assert claims.values.min() >= 0
    assert claims.values.max() == 1
    assert (claims.dependencies is None) == (name == "nq")
