"""Backends on one network: errors against references, and times by a test's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.networks import measure as measuring
from experiments.networks.data import Reference
from experiments.networks.maxima import maxima_table, measure_maxima
from experiments.networks.measure import Clocking, NetworkTask, measure
from experiments.networks.memory import with_peak
from experiments.networks.shapes import GraphShape, draw_graph
from experiments.networks.summary import summarize, with_brackets
from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import grid
from inference import Posterior, get_backend, infer
from inference.exact.backend import Exact
from inference.messages.frustration import frustration
from inference.posterior import Status

EXACT = get_backend("exact")


def measured(
    graphs: Sequence[FactorGraph],
    backends: Mapping[str, Any],
    *,
    judge: Any = EXACT,
    rounds: int = 1,
    budget: float = 0.001,
) -> list[dict[str, Any]]:
    clocking = Clocking(rounds, budget, 0)
    return measure(
        NetworkTask((tuple(graphs), None), tuple(backends.items()), (), judge, 1.0, clocking)
    )


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as those of a study of one network."""
    return with_brackets(pd.DataFrame([{"dataset": "d", "network": "n", **row} for row in rows]))


def test_contradictions_frustrate() -> None:
    shares = [
        np.mean(
            [
                frustration(draw_graph(GraphShape(contradictions=share, density=0.3), (s,))).share
                for s in range(5)
            ]
        )
        for share in (0.0, 0.5)
    ]
    # Of cycles with random signs half are frustrated; five graphs of about 60 cycles each.
    assert shares[0] < 0.2
    assert shares[1] == pytest.approx(0.5, abs=0.15)


def test_strength_scales_log_odds_and_nothing_else() -> None:
    plain, strong = (draw_graph(GraphShape(strength=s), (0,)) for s in (1.0, 2.0))
    assert plain.names == strong.names
    assert np.array_equal(plain.scope_variables, strong.scope_variables)
    pairs = np.flatnonzero(np.diff(plain.table_starts) == 4)
    for at in pairs[:3]:
        tables = [
            g.log_values[g.table_starts[at] : g.table_starts[at + 1]] for g in (plain, strong)
        ]
        odds = [table[3] - table[2] for table in tables]
        # Under implication the row of a true source holds p and 1 - p.
        assert odds[1] == pytest.approx(2.0 * odds[0], rel=1e-9)


def test_propagation_is_exact_on_a_tree_and_mean_field_is_not() -> None:
    tree = draw_graph(GraphShape(atoms=6, density=0.0), (0,))
    backends = {name: get_backend(name) for name in ("exact", "lbp", "cavi")}
    rows = {row["backend"]: row for row in measured([tree], backends)}
    assert rows["exact"]["max_error"] == 0.0
    # Sums of a few exponentials: far below what a wrong message would change.
    assert rows["lbp"]["max_error"] < 1e-12
    assert rows["cavi"]["max_error"] > 1e-6
    # The bound of mean field is certified from below and from nowhere else.
    assert rows["cavi"]["lower"] < rows["exact"]["log_z"]
    assert np.isnan(rows["cavi"]["upper"])
    assert rows["exact"]["lower"] == rows["exact"]["upper"] == rows["exact"]["reference_log_z"]


def test_without_an_exact_answer_the_tightest_certified_bracket_stands_in_its_place() -> None:
    graph = grid(4, 4, coupling=1.0, field=0.5, seed=0)
    refusing = get_backend("exact", memory_limit=100)
    wide, narrow = (get_backend("wmb", i_bound=bound) for bound in (1, 2))
    backends = {"wide": wide, "narrow": narrow, "lbp": get_backend("lbp")}
    frame = frame_of(measured([graph], backends, judge=refusing)).set_index("backend")
    assert frame["log_z_error"].isna().all()
    assert frame["max_error"].isna().all()
    truth = infer(graph, "enumeration").log_z
    assert truth is not None
    for name in ("least", "most"):
        assert frame[name].nunique() == 1
    assert frame["least"]["lbp"] == frame["lower"].max() < truth
    assert frame["most"]["lbp"] == frame["upper"].min() > truth
    assert not frame["violated"].any()
    # A reference file with marginals alone leaves log Z to an exact answer, if there is one.
    marginals = infer(graph, "enumeration").marginals.flat
    task = NetworkTask(
        ((graph,), Reference("n.MAR", marginals)),
        (("lbp", get_backend("lbp")), ("exact", EXACT)),
        *((), refusing, 1.0, Clocking(1, 0.001, 0)),
    )
    frame = frame_of(measure(task)).set_index("backend")
    assert frame["reference"].tolist() == ["n.MAR and exact"] * 2
    assert frame["log_z_error"]["lbp"] == pytest.approx(frame["log_z"]["lbp"] - truth, rel=1e-9)
    # Exact inference among what is measured is a reference, although the judge refuses.
    rows = measured([graph], {**backends, "exact": EXACT}, judge=refusing)
    assert {row["reference"] for row in rows} == {"exact"}


def test_a_certified_bound_that_does_not_hold_is_reported() -> None:
    row = {
        **dict.fromkeys(measuring.NUMBERS, np.nan),
        **{"backend": "wrong", "log_z_kind": "upper", "status": "converged", "remark": ""},
        **{"log_z": 1.0, "upper": 1.0, "lower": 0.0, "reference_log_z": 1.1},
        **{"reference_rounding": 1e-9, "reference": "file"},
    }
    assert frame_of([row])["violated"].tolist() == [True]
    # Reference files have six digits.
    near = {**row, "reference_log_z": 1.000005, "reference_rounding": 1e-5}
    assert frame_of([near])["violated"].tolist() == [False]
    # An estimate that no bound supports lies outside of the best bracket.
    bethe = {**row, "backend": "bethe", "log_z_kind": "bethe", "log_z": 2.0}
    bethe |= {"upper": np.nan, "lower": np.nan, "reference_log_z": np.nan}
    alone = {**row, "reference_log_z": np.nan}
    assert frame_of([alone, bethe])["outside"].tolist() == [False, True]


def test_a_ratio_of_times_is_within_rounds_of_one_measurement() -> None:
    graph = draw_graph(GraphShape(atoms=3), (0,))
    backends = {"exact": EXACT, "lbp": get_backend("lbp")}
    frame = frame_of(measured([graph], backends, rounds=3))
    frame["round_seconds"] = [(1.0, 2.0, 4.0), (3.0, 6.0, 12.0)]
    overall = summarize(frame, "exact", 0).set_index("backend")
    # Three times as long in every round, however slow the machine was in each.
    for name in ("ratio", "ratio_lower", "ratio_upper"):
        assert overall[name]["lbp"] == pytest.approx(3.0, rel=1e-12)
        assert np.isnan(overall[name]["exact"])
    # What was measured on another day has no round in common.
    frame["measurement"] = ["monday", "tuesday"]
    assert np.isnan(summarize(frame, "exact", 0).set_index("backend")["ratio"]["lbp"])


class Clocked:
    """A backend with a clock of its own, by which some calls take longer than the others."""

    name = "enumeration"

    def __init__(self, usual: float, first: float, tenth: float) -> None:
        self.usual, self.first, self.tenth = usual, first, tenth
        self.now, self.calls = 0.0, 0

    def infer(self, graph: FactorGraph) -> Posterior:
        self.calls += 1
        late = self.tenth if self.calls % 10 == 0 else self.usual
        self.now += self.first if self.calls == 1 else late
        return infer(graph, "enumeration")

    def perf_counter(self) -> float:
        return self.now


def test_a_slow_first_call_is_not_shown_as_a_repeated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Clocked(usual=0.25, first=14.5, tenth=0.25)
    clock = SimpleNamespace(perf_counter=backend.perf_counter)
    monkeypatch.setattr(measuring, "time", clock)
    graph = grid(2, 2, coupling=1.0, field=0.5, seed=1)
    (row,) = measured([graph], {"slow": backend}, rounds=3, budget=1.0)
    assert row["first_seconds"] == 14.5
    assert row["seconds"] == 0.25
    assert set(row["round_seconds"]) == {0.25}


def test_what_interrupts_short_calls_lengthens_their_time_as_that_of_a_long_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = Clocked(usual=0.25, first=0.25, tenth=2.75)
    clock = SimpleNamespace(perf_counter=backend.perf_counter)
    monkeypatch.setattr(measuring, "time", clock)
    graph = grid(2, 2, coupling=1.0, field=0.5, seed=1)
    (row,) = measured([graph], {"brief": backend}, rounds=1, budget=25.0)
    # One in ten of a hundred calls takes 2.5 longer.
    assert row["seconds"] == 0.5
    assert row["first_seconds"] == 0.25


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        (("exact", "interrupted", "not_converged"), "interrupted"),
        (("exact", "converged"), "converged"),
        (("not_converged", "exact"), "not_converged"),
    ],
)
def test_a_batch_is_no_better_than_its_worst_answer(
    statuses: tuple[str, ...], worst: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = grid(1, 2, coupling=1.0, field=0.5, seed=1)
    answers = [replace(infer(graph), status=Status(status)) for status in statuses]
    monkeypatch.setattr(measuring, "infer_batch", lambda *_: answers)
    (row,) = measured([graph] * len(answers), {"any": EXACT}, budget=1e-9)
    assert row["status"] == worst


def test_refusal_and_failure_are_rows_and_a_batch_is_one_call() -> None:
    class Broken:
        name = "broken"

        def infer(self, _: FactorGraph) -> Posterior:
            raise ZeroDivisionError("no number")

    graphs = [grid(6, 6, coupling=1.0, field=0.5, seed=seed) for seed in range(3)]
    backends = {"lbp": get_backend("lbp"), "small": get_backend("exact", memory_limit=100)}
    rows = {row["backend"]: row for row in measured(graphs, backends)}
    assert rows["lbp"]["variables"] == 3 * 36
    assert rows["small"]["status"] == "refused"
    assert "memory_limit" in rows["small"]["remark"]
    assert np.isnan(rows["small"]["seconds"])
    rows = {row["backend"]: row for row in measured(graphs[:1], {**backends, "broken": Broken()})}
    assert rows["broken"]["status"] == "failed"
    assert rows["broken"]["remark"] == "ZeroDivisionError: no number"
    assert rows["lbp"]["status"] == "converged"


def test_no_backend_has_the_plan_of_another() -> None:
    graph = grid(4, 4, coupling=1.0, field=0.5, seed=0)
    known: list[bool] = []

    class Asking:
        name = "asking"

        def infer(self, graph: FactorGraph) -> Posterior:
            known.append(Exact().kept(graph) is not None)
            return infer(graph)

    measured([graph], {"first": Asking(), "second": Asking()})
    assert known[:2] == [False, False]
    # A repeated call is one with a plan.
    assert all(known[2:])


def test_the_peak_of_memory_is_that_of_the_call_alone() -> None:
    array = np.ones(3_000_000)
    _, first = with_peak(lambda: np.ones(2_000_000).sum())
    _, second = with_peak(lambda: array[:10].sum())
    # 16 MB are asked for, in pages; what Python itself takes meanwhile is far less than 1 MB.
    assert 15.5e6 < first < 18e6
    assert second < 1e6


def test_searches_of_the_most_probable_states_are_compared() -> None:
    graph = grid(4, 4, coupling=1.0, field=0.5, seed=0)
    searchers: tuple[tuple[str, Any], ...] = (("exact", "exact"), ("toulbar2", "toulbar2"))
    task = NetworkTask(((graph,), None), (), searchers, EXACT, 5.0, Clocking(1, 0.001, 0))
    rows = measure_maxima(task)
    assert [row["status"] for row in rows] == ["exact", "exact"]
    states = np.array(list(product((0, 1), repeat=16)))
    best = max(graph.log_potential(each) for each in states[:: 2**4])
    # toulbar2 rounds log potentials to six digits, each of 40 tables by half of the last at most.
    assert rows[1]["log_potential"] == pytest.approx(rows[0]["log_potential"], abs=40e-6)
    assert rows[0]["log_potential"] >= best
    rows[1]["log_potential"] -= 0.5
    frame = pd.DataFrame([{"dataset": "d", "network": "n", **row} for row in rows])
    table = maxima_table(frame, 0).frame.set_index("backend")
    assert table["lacking"].tolist() == pytest.approx([0.0, 0.5], abs=40e-6)
    assert np.isfinite(table["ratio"]["toulbar2"])
    # A note names no search that has no row.
    assert "toulbar2" in maxima_table(frame, 0).note
    assert "toulbar2" not in maxima_table(frame[frame["backend"] == "exact"], 0).note
    # A batch has no states of its own.
    batch = task._replace(loaded=((graph, graph), None))
    assert {row["status"] for row in measure_maxima(batch)} == {"refused"}
