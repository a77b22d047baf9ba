"""A study whose data are networks: run, resumed, refused, and read again."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from experiments import load_study, run
from experiments.networks import output, runner
from experiments.networks.runner import measure_network
from experiments.study.parts import NETWORKS
from factormodels.factor_graph import FactorGraph
from factormodels.io import write
from factormodels.io.store.results import STORE, read_store
from factormodels.synthetic import grid
from inference import Backend, Entry, Posterior, infer, register, unregister
from tests.experiments.conftest import invoke, study_file
from tests.inference.answers import given, uniform
from tests.refusals import refused

pytestmark = pytest.mark.slow

STUDY = """study: mine
datasets: [{path: 'networks/*.uai'}]
backends: [exact, lbp, {backend: wmb, grid: {i_bound: [1, 2]}}]
rounds: 2
budget: 0.001
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of two small networks, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "networks").mkdir()
    for seed in (1, 2):
        graph = grid(3, 3, coupling=1.0, field=0.5, seed=seed)
        write(graph, tmp_path / "networks" / f"grid_{seed}.uai")
    return study_file(tmp_path, STUDY)


@pytest.fixture
def without_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing: a figure takes as long as all the rest of such a run."""
    monkeypatch.setattr(output, "frontier_figure", lambda _: Figure())


def rows() -> dict[tuple[str, str], dict[Hashable, Any]]:
    """Rows of the results, by network and backend."""
    frame = pd.read_csv("results/mine/rows.csv")
    return {(row["network"], row["backend"]): row for row in frame.to_dict("records")}


def test_networks_are_data_of_a_study(study: Path) -> None:
    result = invoke("run", study)
    folder = Path("results/mine")
    manifest = json.loads((folder / "manifest.json").read_text())
    written = {path.name for path in folder.iterdir()} - {"manifest.json", "store.sqlite"}
    assert set(manifest["files"]) == written
    assert {"report.html", "rows.parquet", "accuracy.tex", "costs.md", "frontier.pdf"} <= written
    assert manifest["data"]["grid"] | {"sha256": ""} == {
        **{"sha256": "", "networks": 2, "variables": 18},
    }
    assert sum(manifest["units"].values()) == 8
    assert manifest["units"]["exact"] >= 2
    assert "8 of 8 measurements answered" in result.stdout
    made = rows()
    assert len(made) == 8
    for seed in (1, 2):
        truth = infer(grid(3, 3, coupling=1.0, field=0.5, seed=seed), "enumeration")
        row = made[f"grid_{seed}.uai", "lbp"]
        lbp = infer(grid(3, 3, coupling=1.0, field=0.5, seed=seed), "lbp")
        error = np.abs(lbp.marginals.flat - truth.marginals.flat)
        # UAI files have every digit of the potentials.
        assert row["max_error"] == pytest.approx(error.max(), abs=1e-9)
        assert row["log_z_error"] == pytest.approx(given(lbp) - given(truth), abs=1e-9)
        wmb = made[f"grid_{seed}.uai", "wmb i_bound=1"]
        assert wmb["lower"] <= given(truth) <= wmb["upper"]
    # Each reads what it can make something of, and says so where it cannot.
    assert "no responses; its page is" in invoke("report", folder, code=2).stderr
    invoke("diff", folder, folder)
    refused("its datasets are networks", load_study, str(study))


@pytest.mark.usefixtures("without_figure")
def test_answers_beside_a_network_are_what_errors_are_measured_against(study: Path) -> None:
    graph = grid(3, 3, coupling=1.0, field=0.5, seed=1)
    answer = infer(graph, "enumeration")
    shifted = answer.marginals.flat.reshape(-1, 2) + np.array([0.125, -0.125])
    text = " ".join(f"2 {p!r} {q!r}" for p, q in shifted.tolist())
    Path("networks/grid_1.uai.MAR").write_text(f"MAR\n1\n9 {text}\n")
    log10 = float((given(answer) + 1.0) / np.log(10.0))
    Path("networks/grid_1.uai.PR").write_text(f"PR\n{log10!r}\n")
    findings = run(str(study), ["backends=[exact, cavi]", "datasets[0].path=networks/grid_1.uai"])
    exact = rows()["grid_1.uai", "exact"]
    (of_frame,) = findings.frame[findings.frame["backend"] == "exact"].to_dict("records")
    assert of_frame.items() <= exact.items()
    assert len(of_frame) == 13
    assert exact["reference"] == "grid_1.uai.MAR and grid_1.uai.PR"
    # Twelve digits of eighteen probabilities, all of them off by an eighth.
    assert exact["max_error"] == pytest.approx(0.125, abs=1e-9)
    assert exact["total_error"] == pytest.approx(18 * 0.125, abs=1e-9)
    assert exact["log_z_error"] == pytest.approx(-1.0, abs=1e-9)
    # An exact answer is a bracket without room, which this reference is outside of.
    assert any(
        "1 certified bound does not contain the reference" in each for each in findings.sentences
    )
    Path("networks/grid_1.uai.MAR").write_text("MAR\n1\n1 2 0.5 0.5\n")
    message = invoke("run", study, "--overwrite", code=2).stderr
    assert "study.yaml: datasets[0]: " in message
    assert "use the answers of this network" in message


@pytest.mark.usefixtures("without_figure")
def test_searches_are_counted_beside_backends(study: Path) -> None:
    findings = run(str(study), ["backends=[exact]", "maxima=[exact]"])
    counts = "2 networks, 1 backend and 1 search for the best states: 4 of 4 measurements answered"
    assert any(counts in each for each in findings.sentences)


@pytest.mark.usefixtures("without_figure")
def test_a_run_goes_on_with_what_is_measured(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    whole = measure_network

    def interrupted(task: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(task)

    monkeypatch.setattr(runner, "measure_network", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(str(study))
    monkeypatch.setattr(runner, "measure_network", whole)
    message = invoke("run", study, code=2).stderr
    assert "the folder has 4 of 8 measurements of this study; continue with --resume" in message
    assert "datasets" in invoke("run", study, "datasets[0].limit=1", "--resume", code=2).stderr
    before = rows_kept()
    invoke("run", study, "--resume")
    assert len(rows()) == 8
    # What was measured before is as it was, to the times of its calls.
    assert len(before) == 4
    assert before.items() <= rows_kept().items()


def rows_kept() -> dict[str, str]:
    """The measurements in the folder of the results, by key, as text."""
    with read_store(Path("results/mine") / STORE, "") as store:
        return {key: json.dumps(row) for key, row in store.items(NETWORKS)}


@pytest.mark.usefixtures("without_figure")
def test_some_backends_alone_and_the_others_later(study: Path) -> None:
    first = invoke("run", study, "--backend", "lbp")
    assert "6 measurements not made yet" in first.stdout
    assert {backend for _, backend in rows()} == {"lbp"}
    invoke("run", study, "--resume")
    assert len(rows()) == 8
    # Times of two runs have no round in common.
    costs = pd.read_csv("results/mine/costs.csv").set_index("backend")
    assert np.isnan(costs["ratio"]["lbp"])
    assert np.isfinite(costs["ratio"]["wmb i_bound=1"])


@dataclass(frozen=True)
class Uniform(Backend):
    """Answers 1/k for every state."""

    name: ClassVar[str] = "plugged-in"

    def solve(self, graph: FactorGraph) -> Posterior:
        return uniform(graph)


@pytest.fixture
def plugged_in() -> Iterator[None]:
    """A backend of another package."""
    register(Entry("plugged-in", Uniform, summary="one over k", log_z_kind="none"))
    yield
    unregister("plugged-in")


@pytest.mark.usefixtures("plugged_in", "without_figure")
def test_a_plugged_in_backend_takes_part_by_its_name(study: Path) -> None:
    findings = run(str(study), ["backends=[exact, plugged-in]"])
    errors = findings["accuracy"].set_index("backend")["mean_error"]
    assert errors["exact"] == 0.0
    assert errors["plugged-in"] > 0.01
    assert (findings["rows"].set_index("backend")["algorithm"]["plugged-in"] == "plugged-in").all()


@pytest.mark.usefixtures("without_figure")
def test_an_algorithm_has_a_row_for_each_seed(study: Path) -> None:
    sampling = "{backend: ais, label: ais, settings: {seconds: 0.01}}"
    changes = [f"backends=[exact, {sampling}]", "seeds=[1, 2]", "datasets[0].limit=1"]
    costs = run(str(study), changes)["costs"].set_index("backend")
    assert costs.index.tolist() == ["exact seed 1", "exact seed 2", "ais seed 1", "ais seed 2"]
    # Times are divided by those of the first seed.
    assert np.isfinite(costs["ratio"]).tolist() == [False, True, True, True]


@pytest.mark.usefixtures("without_figure")
def test_a_program_that_is_absent_is_said_and_has_no_row_of_dashes(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    findings = run(str(study), ["backends=[exact]", "programs=[merlin]", "datasets[0].limit=1"])
    assert findings["rows"].set_index("backend")["status"].to_dict() == {
        "exact": "exact",
        "merlin": "absent",
    }
    assert any("merlin is absent: the program merlin is not" in each for each in findings.sentences)
    assert findings.sentences[0].startswith("1 network, 1 backend: 1 of 1 measurement answered")
    for name in ("accuracy", "costs", "networks"):
        table = findings.tables[name]
        assert set(table.frame["backend"]) == {"exact"}
        assert "Left out, because they are not installed: merlin." in table.notes


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("budgets=1", "did you mean 'budget'?"),
        ("backends=[exact, {backend: lbp, grid: {dampin: [0.1]}}]", "backends[1].grid.dampin: "),
        ("backends=[exact, exact]", "two have the label 'exact'; give each its own label"),
        ("against=lpb", "'lpb' is not among the backends"),
        ("variants=[FR1]", "variants"),
        ("backends=[{backend: lbp, only: {variants: [FR1]}}]", "networks have no variants"),
        ("backends=[{backend: lbp, only: {datasets: [grids]}}]", "'grids' is unknown"),
        ("datasets=[demonstration, {path: networks/grid_1.uai}]", "so split it into two studies"),
        ("reference={backend: exact, settings: {memory: 1}}", "reference.settings.memory: "),
    ],
)
def test_errors_are_one_sentence_and_leave_nothing(
    study: Path, override: str, message: str
) -> None:
    assert message in invoke("run", study, override, code=2).stderr
    assert not Path("results").exists()


def test_options_of_claims_are_refused_and_a_dry_run_counts(study: Path) -> None:
    assert (
        "--variant applies to studies of claims"
        in invoke("run", study, "--variant", "FR1", code=2).stderr
    )
    Path("more.uai").write_text(Path("networks/grid_1.uai").read_text())
    result = invoke("run", study, "--dry-run", "--data", "more.uai")
    assert "12 measurements of 3 networks" in result.stdout
    assert not Path("results").exists()
