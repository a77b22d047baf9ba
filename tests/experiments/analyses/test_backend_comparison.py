"""Accuracy against time of backends: errors against references, and times by a test's clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.analyses import measured_backends
from experiments.analyses.context import AnalysisContext
from experiments.analyses.graph_shapes import GraphShape, draw_graph
from experiments.analyses.measured_backends import summarise
from experiments.analyses.measuring import backend_comparison
from experiments.study.config import BackendChoice
from factormodels import datasets, write_many
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.networks.uai import write_uai
from factormodels.synthetic import grid
from inference import Posterior, infer
from inference.messages.frustration import frustration
from inference.posterior import Status
from tests.experiments.conftest import invoke
from tests.inference.answers import given

pytestmark = pytest.mark.slow


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


def test_backends_of_one_label_are_refused(tmp_path: Path) -> None:
    twice = (BackendChoice("exact"), BackendChoice("exact"))
    with pytest.raises(InputError, match=r"settings\.backends: two backends have the same label"):
        compared(tmp_path, grids={"g": 2}, backends=twice)


def test_propagation_is_exact_on_trees_and_exact_inference_everywhere(tmp_path: Path) -> None:
    base = GraphShape(atoms=6)
    shapes = {"tree": replace(base, density=0.0), "strong": replace(base, strength=2.0)}
    backends = tuple(map(BackendChoice, ("exact", "lbp", "cavi")))
    frame = compared(tmp_path, shapes=shapes, backends=backends, graphs=2)
    assert (frame.groupby(["graphs", "backend"]).size() == 2).all()
    assert (frame[frame["backend"] == "exact"]["max_error"] == 0.0).all()
    trees = frame[frame["graphs"] == "tree"]
    # Sums of a few exponentials: far below what a wrong message would change.
    assert trees[trees["backend"] == "lbp"]["max_error"].max() < 1e-12
    assert trees[trees["backend"] == "cavi"]["max_error"].min() > 1e-6


@pytest.mark.parametrize("study", ["frontier", "bench"])
def test_an_unknown_setting_of_a_backend_has_its_place(study: str) -> None:
    wrong = "settings.backends=[exact, {backend: lbp, grid: {dampin: [0.1]}}]"
    result = invoke("run", study, wrong, "--out", "out", code=2)
    message = "settings.backends[1].grid.dampin: the backend 'lbp' has no such setting"
    assert f"{message}; did you mean 'damping'?" in result.stderr


def compared(folder: Path, **settings: Any) -> pd.DataFrame:
    """Every measurement of a comparison of backends, one round each."""
    chosen = backend_comparison.Settings(**{"rounds": 2, "budget": 0.01, **settings})
    context = AnalysisContext("comparison", 0, folder, "study")
    return backend_comparison.run(chosen, context).tables["graphs"].frame


def test_answers_beside_a_network_are_what_errors_are_measured_against(tmp_path: Path) -> None:
    graph = grid(3, 3, coupling=1.0, field=0.5, seed=1)
    answer = infer(graph, "enumeration")
    write_uai(graph, tmp_path / "grid_1.uai")
    shifted = answer.marginals.flat.reshape(-1, 2) + np.array([0.125, -0.125])
    text = " ".join(f"2 {p!r} {q!r}" for p, q in shifted.tolist())
    (tmp_path / "grid_1.uai.MAR").write_text(f"MAR\n1\n9 {text}\n")
    log10 = float((given(answer) + 1.0) / np.log(10.0))
    (tmp_path / "grid_1.uai.PR").write_text(f"PR\n{log10!r}\n")
    frame = compared(tmp_path, networks=(".",)).set_index("backend")
    assert (frame["graphs"] == "grid").all()
    assert frame["reference"]["exact"] == "grid_1.uai.MAR and grid_1.uai.PR"
    # Twelve digits of eighteen probabilities, all of them off by an eighth.
    assert frame["max_error"]["exact"] == pytest.approx(0.125, abs=1e-9)
    assert frame["total_error"]["exact"] == pytest.approx(18 * 0.125, abs=1e-9)
    assert frame["log_z_error"]["exact"] == pytest.approx(-1.0, abs=1e-9)
    (tmp_path / "grid_1.uai.MAR").write_text("MAR\n1\n1 2 0.5 0.5\n")
    with pytest.raises(InputError, match="put the answers of this network beside it"):
        compared(tmp_path, networks=("grid_1.uai",))


def test_networks_in_bif_are_measured_beside_those_in_uai(tmp_path: Path) -> None:
    write_uai(grid(2, 2, coupling=1.0, field=1.0, seed=0), tmp_path / "grid.uai")
    (tmp_path / "rain.bif").write_text(
        "network unknown {}\nvariable Rain { type discrete [ 2 ] { yes, no }; }\n"
        "probability ( Rain ) { table 0.2, 0.8; }\n"
    )
    frame = compared(tmp_path, networks=(".",))
    assert set(frame["graph"]) == {"grid.uai", "rain.bif"}
    write_many(datasets.load("worked-examples").graphs[:1], tmp_path / "claims.jsonl")
    with pytest.raises(InputError, match="it is a fact graph; name a network in UAI or BIF"):
        compared(tmp_path, networks=("claims.jsonl",))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no \.uai or \.bif file in this folder"):
        compared(tmp_path, networks=("empty",))


def test_a_ratio_of_times_is_within_rounds(tmp_path: Path) -> None:
    frame = compared(tmp_path, shapes={"small": GraphShape(atoms=3)}, rounds=3)
    frame["round_seconds"] = [(1.0, 2.0, 4.0), (3.0, 6.0, 12.0)]
    overall = summarise(frame, "exact", 0).set_index("backend")
    # Three times as long in every round, however slow the machine was in each.
    for name in ("ratio", "ratio_lower", "ratio_upper"):
        assert overall[name]["lbp"] == pytest.approx(3.0, rel=1e-12)
        assert np.isnan(overall[name]["exact"])


class CompilesFirst:
    """A backend whose first call takes long, by a clock of its own."""

    name = "enumeration"

    def __init__(self) -> None:
        self.now, self.calls = 0.0, 0

    def infer(self, graph: FactorGraph) -> Posterior:
        self.calls += 1
        self.now += 14.5 if self.calls == 1 else 0.25
        return infer(graph, "enumeration")

    def perf_counter(self) -> float:
        return self.now


def test_a_slow_first_call_is_not_shown_as_a_repeated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = CompilesFirst()
    clock = SimpleNamespace(perf_counter=backend.perf_counter)
    monkeypatch.setattr(measured_backends, "time", clock)
    graph = grid(2, 2, coupling=1.0, field=0.5, seed=1)
    slow: list[tuple[str, Any]] = [("slow", backend)]
    (row,) = measured_backends.measure([graph], slow, None, rounds=3, budget=1.0, seed=0)
    assert row["first_seconds"] == 14.5
    assert row["seconds"] == 0.25
    assert set(row["round_seconds"]) == {0.25}


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
    monkeypatch.setattr(measured_backends, "infer_batch", lambda *_: answers)
    named: list[tuple[str, Any]] = [("any", None)]
    (row,) = measured_backends.measure(
        [graph] * len(answers), named, None, rounds=1, budget=0.0, seed=0
    )
    assert row["status"] == worst


def test_what_is_refused_is_a_row_and_a_batch_is_one_call(tmp_path: Path) -> None:
    small = BackendChoice("exact", label="small", settings={"memory_limit": 100})
    choices = (BackendChoice("lbp"), small)
    frame = compared(tmp_path, grids={"g": 6}, batch=3, backends=choices).set_index("backend")
    assert frame["variables"]["lbp"] == 3 * 36
    assert frame["status"]["small"] == "refused"
    assert "memory_limit" in frame["remark"]["small"]
    assert np.isnan(frame["seconds"]["small"])
    with pytest.raises(InputError, match="name shapes, grids or networks"):
        compared(tmp_path)
    with pytest.raises(InputError, match="'wmb' is not measured; use one of exact, lbp"):
        compared(tmp_path, grids={"g": 2}, against="wmb")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("settings.budgets=[0]", "did you mean 'budget'?"),
        ("settings.base.atoms=0", "settings.base.atoms"),
        ("settings.shapes.base.atoms=0", "settings.shapes.base.atoms"),
    ],
)
def test_a_wrong_setting_is_one_sentence(override: str, message: str, folder: Path) -> None:
    assert message in invoke("run", "frontier", override, code=2).stderr
    assert not (folder / "results").exists()
