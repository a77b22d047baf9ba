"""Studies of our own: truths that every one of them must hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from experiments.analyses.context import AnalysisContext
from experiments.analyses.ours import (
    backend_comparison,
    certified_bounds,
    encoding_choice,
    inference_error,
    misspecification,
)
from experiments.analyses.ours.shared import measured_backends
from experiments.analyses.ours.shared.graph_shapes import GraphShape, draw_graph
from experiments.analyses.ours.shared.measured_backends import summarise
from experiments.analyses.posteriors import labelled_atoms, scores_with_intervals, with_drawn_labels
from experiments.analyses.user_data import DATA_FILE, VARIABLE
from experiments.findings.interval_values import (
    difference_of_clusters,
    interval_text,
    kendall,
    tiny,
)
from experiments.settings.backend_settings import build_backend
from experiments.study.config import BackendChoice
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.networks.uai import write_uai
from factormodels.synthetic import Constant, Uniform, grid, labelled_responses
from inference import Posterior, infer
from inference.batch import claim_posteriors
from inference.messages.frustration import frustration
from inference.posterior import Status
from tests.experiments.conftest import invoke
from tests.inference.answers import given

pytestmark = pytest.mark.slow

# ------------------------------------------------------------------ accuracy against time


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


@pytest.mark.parametrize("study", ["ours/frontier", "ours/does-it-matter"])
def test_an_unknown_setting_of_a_backend_has_its_place(study: str) -> None:
    wrong = "settings.backends=[exact, {backend: lbp, grid: {dampin: [0.1]}}]"
    result = invoke("run", study, wrong, "--out", "out", code=2)
    place = "settings.backends[1].grid.dampin: the backend 'lbp' has no such setting"
    assert f"{place}; did you mean 'damping'?" in result.stderr


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
    ("statuses", "told"),
    [
        (("exact", "interrupted", "not_converged"), "interrupted"),
        (("exact", "converged"), "converged"),
        (("not_converged", "exact"), "not_converged"),
    ],
)
def test_a_batch_is_no_better_than_its_worst_answer(
    statuses: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = grid(1, 2, coupling=1.0, field=0.5, seed=1)
    answers = [replace(infer(graph), status=Status(status)) for status in statuses]
    monkeypatch.setattr(measured_backends, "infer_batch", lambda *_: answers)
    named: list[tuple[str, Any]] = [("any", None)]
    (row,) = measured_backends.measure(
        [graph] * len(answers), named, None, rounds=1, budget=0.0, seed=0
    )
    assert row["status"] == told


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


# ------------------------------------------------------------------------- certified bounds


def test_at_the_induced_width_bounds_are_exact_and_always_they_hold() -> None:
    shape = GraphShape(atoms=5, density=0.4)
    settings = certified_bounds.Settings(shapes={"small": shape}, i_bounds=(1, 2, 8), graphs=2)
    measured = certified_bounds.measurements(settings, seed=1)
    assert (measured["held"] == measured["atoms"]).all()
    wide = measured[measured["i_bound"] >= measured["induced_width"]]
    assert len(wide) >= 2
    # Rounding of log Z of about ten; intervals are widened by 1e-10 of it.
    assert wide[["upper", "lower", "total_error"]].to_numpy().max() < 1e-10
    assert wide["total_width"].max() < 1e-7
    assert (wide["decided"] == wide["atoms"]).all()
    narrow = measured[measured["i_bound"] < measured["induced_width"]]
    assert narrow["total_width"].min() > 1e-5
    errors = certified_bounds.summarise(measured, seed=0)
    assert (errors["held"] == 1.0).all()
    assert errors.sort_values("i_bound")["width"].is_monotonic_decreasing


# -------------------------------------------------------------------------- inference error


def test_exact_against_exact_moves_nothing() -> None:
    graphs = labelled_responses(6, n_atoms=(3, 6), contexts_per_atom=2, density=0.2, seed=2)
    backends = [
        ("again", build_backend("exact", {})),
        ("enumerated", build_backend("enumeration", {})),
        ("cavi", build_backend("cavi", {})),
    ]
    baseline, rows = inference_error.effects(graphs, backends, "implication", seed=0)
    assert baseline["n_responses"] == 6
    for row in rows[:2]:
        # Enumeration adds in another order.
        assert row["error"] < 1e-12
        assert row["verdicts"] == 0.0
        assert abs(row["brier"]) < 1e-12
        assert row["mae"] == 0.0
        assert row["tau"] == pytest.approx(1.0)
    assert rows[2]["error"] > 1e-4


def test_changes_of_scores_are_those_by_hand() -> None:
    graphs = labelled_responses(5, n_atoms=4, contexts_per_atom=2, density=0.3, seed=5)
    atoms = labelled_atoms(graphs, "data")
    exact, other = (claim_posteriors(graphs, "implication", name) for name in ("exact", "cavi"))
    _, (row,) = inference_error.effects(
        graphs, [("cavi", build_backend("cavi", {}))], "implication", seed=0
    )
    brier = ((other - atoms.labels) ** 2 - (exact - atoms.labels) ** 2).mean()
    assert row["brier"] == pytest.approx(brier, abs=1e-14)
    shares = [
        np.array([(p > 0.5)[atoms.responses == name].mean() for name in ("r1", "r2", "r3")])
        for p in (exact, other)
    ]
    people = np.array([atoms.labels[atoms.responses == n].mean() for n in ("r1", "r2", "r3")])
    _, (part,) = inference_error.effects(
        graphs[:3], [("cavi", build_backend("cavi", {}))], "implication", seed=0
    )
    mae = (np.abs(shares[1] - people) - np.abs(shares[0] - people)).mean()
    assert part["mae"] == pytest.approx(mae, abs=1e-14)


def test_kendall_is_scipys() -> None:
    generator = np.random.default_rng(0)
    first = generator.integers(0, 5, 30).astype(float)
    second = first + generator.integers(0, 4, 30)
    value, lower, upper = kendall(first, second, seed=0)
    # The same pairs are counted, in floating point.
    assert value == pytest.approx(kendalltau(first, second).statistic, abs=1e-12)
    assert lower < value < upper
    assert np.isnan(kendall(np.ones(4), np.arange(4.0), seed=0)[0])


def test_a_difference_of_equal_clusters_is_nothing() -> None:
    totals, sizes = np.array([1.0, 2.0, 5.0]), np.array([2.0, 2.0, 6.0])
    value, lower, upper = difference_of_clusters((totals, sizes), (totals, sizes), seed=0)
    assert value == 0.0
    assert np.isnan([lower, upper]).all()


def test_small_numbers_as_text() -> None:
    assert tiny(3e-17) == "0"
    assert tiny(0.00123) == "1.2e-03"
    assert tiny(0.00123, "+") == "+1.2e-03"
    assert tiny(float("nan")) == "--"
    row = {"x": 0.5, "x_lower": 0.25, "x_upper": 0.75}
    frame = pd.DataFrame([row, {**row, "x_lower": float("nan")}])
    assert interval_text(frame, "x") == ["5.0e-01 [2.5e-01, 7.5e-01]", "5.0e-01"]


# -------------------------------------------------------------------------------- encodings


def test_without_relations_all_encodings_agree() -> None:
    graphs = labelled_responses(4, n_atoms=3, contexts_per_atom=0, seed=0)
    rows = list(encoding_choice.comparison(graphs, seed=0))
    assert [row["encoding"] for row in rows] == list(encoding_choice.ENCODINGS)
    for row in rows:
        assert row["distance"] == row["difference"] == 0.0
        assert not row["best"]


def test_the_encoding_that_drew_the_labels_is_best() -> None:
    graphs = labelled_responses(
        100, n_atoms=8, contexts_per_atom=2, density=0.4, context_prior=Uniform(0.5, 0.9), seed=4
    )
    for encoding in encoding_choice.ENCODINGS:
        drawn = with_drawn_labels(graphs, encoding, seed=4)
        rows = {row["encoding"]: row for row in encoding_choice.comparison(drawn, seed=0)}
        assert min(rows, key=lambda name: rows[name]["brier"]) == encoding
        assert not any(row["best"] for name, row in rows.items() if name != encoding)
        for name, row in rows.items():
            change = row["brier"] - rows["implication"]["brier"]
            assert row["difference"] == pytest.approx(change, abs=1e-12), name


def test_a_claim_that_is_nearly_certain_and_wrong_costs_its_whole_log_loss() -> None:
    graphs = labelled_responses(6, n_atoms=3, contexts_per_atom=8, density=0.0, seed=1)
    sure = np.concatenate([claim_posteriors([each], "implication") for each in graphs]).max()
    assert 1.0 - 1e-6 < sure < 1.0
    flipped = [
        replace(each, atoms=tuple(replace(atom, label=not atom.label) for atom in each.atoms))
        for each in graphs
    ]
    y = np.array([atom.label for each in flipped for atom in each.atoms])
    for row in encoding_choice.comparison(flipped, seed=0):
        p = claim_posteriors(flipped, row["encoding"])
        losses = -np.log(np.where(y, p, 1.0 - p))
        assert row["log_loss"] == pytest.approx(losses.mean(), rel=1e-6), row["encoding"]


@pytest.mark.parametrize("encoding", encoding_choice.ENCODINGS)
def test_drawn_labels_are_calibrated_under_their_encoding(encoding: str) -> None:
    graphs = labelled_responses(
        150, n_atoms=6, contexts_per_atom=2, density=0.2, context_prior=Uniform(0.5, 0.9), seed=4
    )
    drawn = with_drawn_labels(graphs, encoding, seed=4)
    atoms = labelled_atoms(drawn, "drawn")
    p = claim_posteriors(drawn, encoding)
    found = scores_with_intervals(p, atoms, ("calibration_slope",), seed=0)
    assert found["slope_lower"] < 1.0 < found["slope_upper"]
    # The sum of label minus posterior over its standard deviation, responses being independent:
    # 4 standard deviations, for a fixed seed.
    sums = atoms.grouping.sums(atoms.labels - p)
    assert abs(sums.sum()) < 4.0 * np.sqrt((sums**2).sum())


def test_implication_lets_contexts_with_many_relations_fall() -> None:
    graphs = labelled_responses(
        30, n_atoms=8, contexts_per_atom=2, density=0.4, context_prior=Constant(0.8), seed=1
    )
    rows = {row["encoding"]: row for row in encoding_choice.comparison(graphs, seed=0)}
    # A false context gives p to both states of its target, twice the mass of a true one's row.
    assert rows["implication"]["contexts"] < 0.8 - 0.1
    assert rows["conditional"]["contexts"] == pytest.approx(0.8, abs=0.1)


# ------------------------------------------------------------------------- misspecification


def test_levels_hold_the_undistorted_once_per_axis() -> None:
    settings = misspecification.Settings(factors=(2.0,), noises=(), copied=(0.0, 1.0))
    assert list(misspecification.levels(settings)) == [
        ("factors", 1.0),
        ("factors", 2.0),
        ("noises", 0.0),
        ("copied", 0.0),
        ("copied", 1.0),
    ]


def test_calibrated_without_a_distortion_and_too_extreme_with_one(folder: Path) -> None:
    narrow = ("settings.factors=[3]", "settings.noises=[]", "settings.copied=[1]")
    invoke("run", "ours/misspecification", "--out", "out", *narrow)
    found = pd.read_csv(folder / "out" / "calibration.csv")
    rows: dict[Any, Any] = {(r.axis, r.level): r for r in found.itertuples()}
    plain = rows["factors", 1.0]
    assert plain.slope_lower < 1.0 < plain.slope_upper
    assert plain.cost == 0.0
    for key in (("factors", 3.0), ("copied", 1.0)):
        assert rows[key].slope_upper < 1.0
        assert rows[key].cost_lower > 0.0


# ------------------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("study", "override", "said"),
    [
        ("ours/frontier", "settings.budgets=[0]", "did you mean 'budget'?"),
        ("ours/frontier", "settings.base.atoms=0", "settings.base.atoms"),
        ("ours/i-bound", "settings.i_bounds=[0]", "settings.i_bounds[0]"),
        ("ours/encodings", "settings.drawn=[{name: nowhere}]", "settings.drawn[0]"),
        ("ours/misspecification", "settings.copied=[2]", "settings.copied[0]"),
        ("ours/misspecification", "settings.synthetic={n_atom: 3}", "synthetic.n_atom"),
        ("ours/learned-potentials", "settings.folds=1", "settings.folds"),
        ("ours/does-it-matter", "settings.backends=[{backend: lbq}]", "did you mean 'lbp', "),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    study: str, override: str, said: str, folder: Path
) -> None:
    assert said in invoke("run", study, override, code=2).stderr
    assert not (folder / "results").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("study", "brief"),
    [
        ("ours/relation-transfer", "settings.folds=2"),
        ("ours/core-on-biographies", "settings.appended=1"),
    ],
)
def test_a_study_of_texts_starts_on_embedded_ones(study: str, brief: str, monkeypatch: Any) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert DATA_FILE in invoke("run", study, brief).stdout


def test_readouts_of_coherence_are_compared_on_what_was_planted(folder: Path) -> None:
    fewer = ("settings.responses=60", "settings.timed=[8]", "settings.encodings=[conditional]")
    invoke("run", "ours/claim-coherence", "--out", "out", *fewer)
    found = pd.read_csv(folder / "out" / "readouts.csv")
    assert found["prior"].tolist() == [0.5, 0.99]
    # Only conflicts move the agreement; entailments and sizes move the others.
    for other in ("mean_marginal", "no_active_conflict", "reified", "position", "consistency"):
        assert (found["agreement"] < found[other] - 0.05).all()
    times = pd.read_csv(folder / "out" / "times.csv")
    assert times["claims"].tolist() == [8]
    assert (times["milliseconds"] > 0).all()
