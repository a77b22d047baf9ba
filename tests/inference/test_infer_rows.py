"""Rows of evidence: what `infer` and enumeration give for each, impossible ones, odd spellings."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factormodels import FactorGraph
from factormodels.factor_graph import UNOBSERVED
from inference import (
    Backend,
    InferenceError,
    Posterior,
    ZeroPartitionError,
    get_backend,
    infer,
    infer_rows,
    stream_rows,
)
from inference.backend import Result
from tests.inference.graphs import odd_graph
from tests.oracle import oracle
from tests.refusals import refused

NAMES = (("no", "yes"), ("1", "2", "4"), ("low", "high"))


def network() -> FactorGraph:
    """Return three variables in a chain; state "4" of the second excludes "yes" of the first."""
    draw = np.random.default_rng(0).random
    first = draw((2, 3))
    first[1, 2] = 0.0
    return FactorGraph.from_factors(
        [2, 3, 2],
        [([0, 1], first), ([1, 2], draw((3, 2))), ([2], draw(2))],
        names=["rain", "grade", "level"],
        state_names=NAMES,
    )


def evidence_of(row: Any) -> dict[str, str]:
    return {str(name): value for name, value in row.items() if isinstance(value, str)}


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_those_of_infer_and_of_enumeration(seed: int) -> None:
    graph = odd_graph(seed)
    draw = np.random.default_rng(seed)
    chosen = draw.permutation(np.flatnonzero(graph.evidence == UNOBSERVED))[:4]
    states = draw.integers(0, graph.cardinalities[chosen], (9, len(chosen))).astype(float)
    states[draw.random(states.shape) < 0.4] = np.nan
    frame = pd.DataFrame(states, columns=[graph.names[v] for v in chosen], index=list("abcdefghi"))
    frame_of_rows = infer_rows(graph, frame, "exact")
    assert list(frame_of_rows["row"].unique()) == list(frame.index)
    for label, row in frame.iterrows():
        of_row = frame_of_rows[frame_of_rows["row"] == label]
        seen = graph.with_evidence({str(n): int(v) for n, v in row.items() if not np.isnan(v)})
        truth = oracle(seen)
        if truth.log_z == -np.inf:
            assert (of_row["status"] == "impossible").all()
            assert of_row["p"].isna().all()
            continue
        alone = infer(seen, "exact")
        # The same tables go through the same plan: not a bit differs.
        np.testing.assert_array_equal(of_row["p"], alone.marginals.flat)
        assert (of_row["log_z"] == alone.log_z).all()
        # Rounding of sums of some thousand products.
        expected = np.concatenate([truth.marginals[name] for name in graph.names])
        np.testing.assert_allclose(of_row["p"], expected, atol=1e-12)
        observed = of_row.drop_duplicates("variable").set_index("variable")["observed"]
        assert (observed[list(graph.names)] == (seen.evidence != UNOBSERVED)).all()


def test_every_spelling_of_a_state_means_the_same() -> None:
    graph = network()
    rows: list[dict[str, Any]] = [
        {"rain": "yes", "grade": "2"},
        {"rain": 1, "grade": 2},
        {"rain": True, "grade": 2.0},
        {"rain": " true ", "grade": " 2.0"},
        {"rain": np.True_, "grade": np.int8(2)},
    ]
    posteriors = infer_rows(graph, pd.DataFrame(rows, dtype=object), "exact")
    values = posteriors["p"].to_numpy().reshape(len(rows), -1)
    alone = infer(graph.with_evidence({"rain": "yes", "grade": "2"}), "exact")
    np.testing.assert_array_equal(values, np.tile(alone.marginals.flat, (len(rows), 1)))
    assert list(posteriors["state"][:7]) == [name for names in NAMES for name in names]
    # A column of numbers with gaps holds 2.0 for 2.
    gaps = infer_rows(graph, pd.DataFrame({"grade": [2, None]}), "exact")
    assert gaps["observed"].groupby(gaps["row"]).sum().tolist() == [3, 0]


def test_missing_cells_are_not_observed() -> None:
    graph = network()
    missing = [None, np.nan, pd.NA, pd.NaT, "", " ", "NA", "nan", "?"]
    posteriors = infer_rows(graph, pd.DataFrame({"rain": missing}, dtype=object), "exact")
    prior = infer(graph, "exact").marginals.flat
    np.testing.assert_array_equal(posteriors["p"], np.tile(prior, len(missing)))
    assert not posteriors["observed"].any()
    # A state of such a name is that state.
    named = FactorGraph.from_factors(
        [2], [([0], [0.3, 0.7])], names=["x"], state_names=[("NA", "a")]
    )
    assert infer_rows(named, [{"x": "NA"}])["p"].tolist() == [1.0, 0.0]


def test_impossible_rows_are_reported_and_have_no_number() -> None:
    graph = network()
    rows = [{"rain": "yes", "grade": "1"}, {"rain": "yes", "grade": "4"}, {"grade": "4"}]
    posteriors = infer_rows(graph, rows, "exact", variables=["level", "rain"])
    assert list(posteriors["variable"].unique()) == ["level", "rain"]
    by_row = posteriors.groupby("row")
    assert by_row["status"].first().tolist() == ["exact", "impossible", "exact"]
    assert by_row["p"].count().tolist() == [4, 0, 4]
    assert by_row["log_z"].first()[1] == -np.inf


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"rian": "yes"}], r"the column 'rian' is unknown \(did you mean 'rain'\?\)"),
        ([{"rain": "no"}, {"rain": "yse"}], "row 1, column 'rain': the state 'yse' is unknown"),
        ([{"grade": 3}], "row 0, column 'grade': the state '3' is unknown"),
        ([{"level": True}], "row 0, column 'level': the state 'True' is unknown"),
        ([{}], "the table of evidence has no column"),
        (pd.DataFrame([["no", "no"]], columns=["rain", "rain"]), "two columns have the name"),
        ([["no"]], "row 0 of the evidence is a list"),
    ],
)
def test_evidence_that_fits_no_variable_is_refused(rows: Any, message: str) -> None:
    refused(message, infer_rows, network(), rows)


def test_three_nearest_of_many_names_are_reported() -> None:
    graph = FactorGraph.from_factors(
        [12], [([0], np.ones(12))], names=["month"], state_names=[[f"month {n}" for n in range(12)]]
    )
    refused("did you mean 'month ", infer_rows, graph, [{"month": "mnth 1"}])
    unnamed = FactorGraph.from_factors([2], [([0], [1.0, 1.0])])
    refused("there is no state 2; its states are 0 to 1", infer_rows, unnamed, [{"0": 2}])
    seen = network().with_evidence({"rain": "yes"})
    refused("it contradicts the state 'yes'", infer_rows, seen, [{"rain": "no"}])
    refused("the variable 'rian' is unknown", infer_rows, seen, [{}], variables=["rian"])


def test_evidence_of_the_graph_holds_in_every_row() -> None:
    graph = network().with_evidence({"level": "high"})
    posteriors = infer_rows(graph, [{"rain": "yes"}, {"rain": None}], "exact")
    alone = [infer(graph.with_evidence({"rain": "yes"}), "exact"), infer(graph, "exact")]
    np.testing.assert_array_equal(
        posteriors["p"], np.concatenate([a.marginals.flat for a in alone])
    )


class Refusing(Backend):
    """Refuses graphs in which a table has one entry."""

    name = "refusing"

    def solve(self, graph: FactorGraph) -> Posterior:
        if (np.diff(graph.table_starts) == 1).any():
            raise InferenceError("a table has one entry")
        return get_backend("exact").infer(graph)

    def solve_batch(self, graphs: Any, threads: int = 1) -> list[Result]:  # noqa: ARG002
        return [self.attempt(graph) for graph in graphs]


def test_a_row_without_an_answer_is_named() -> None:
    rows = pd.DataFrame({"level": [None, "high"]}, index=["first", "second"])
    with pytest.raises(InferenceError, match="row second: a table has one entry"):
        infer_rows(network(), rows, Refusing())


def test_hundred_thousand_rows_take_bounded_memory() -> None:
    draw = np.random.default_rng(0)
    tables: list[tuple[list[int], Any]] = [([0, 1], draw.random((3, 60))), ([0], draw.random(3))]
    graph = FactorGraph.from_factors([3, 60], tables)
    frame = pd.DataFrame({"0": draw.choice([0.0, 1.0, 2.0, np.nan], 100_000)})
    infer_rows(graph, frame.head(10), "exact")
    tracemalloc.start()
    try:
        parts = stream_rows(graph, frame, "exact")
        first = next(parts)
        count = len(first) + sum(map(len, parts))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 63 * len(frame)
    # The whole takes 180 MB. A part takes 60 MB, twice while the next is made, and some to make it.
    assert peak < 170e6
    whole = infer_rows(graph, frame.head(40_000), "exact")
    # As many bytes a line as the docstring says.
    assert whole.memory_usage(deep=True).sum() < 32 * len(whole)
    # pandas' assert_frame_equal takes half a minute for two million rows with categories.
    assert first.equals(whole.iloc[: len(first)])
    assert (first.dtypes == whole.dtypes).all()


def test_impossible_is_the_error_of_infer() -> None:
    seen = network().with_evidence({"rain": "yes", "grade": "4"})
    with pytest.raises(ZeroPartitionError):
        infer(seen, "exact")
