"""Changes between two runs against numbers by hand; rows for other tools; tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from experiments import score
from experiments.columns.cell_names import CELL
from experiments.methods.compared_cells import compare_runs, grouped
from experiments.methods.diff import diff
from experiments.study.reading import load_study
from experiments.study.rows import RowsFile, read_rows
from experiments.study.runner import design, run_study
from tests.experiments.conftest import invoke, study_file

STUDY = """
study: s
datasets: [{name: demonstration, limit: 8}]
variants: [FR1, FR2]
backends: [exact, lbp]
significance:
  pairs: [[{variant: FR2}, {variant: FR1}], [lbp, exact]]
  measures: [brier, accuracy]
  resamples: 500
outputs: [latex]
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs that differ in the priors of contexts."""
    folder = tmp_path_factory.mktemp("runs")
    path = str(study_file(folder, STUDY))
    for name, overrides in (("a", []), ("b", ["priors=[{context: [0.6]}]"])):
        study = load_study(path, overrides)
        run_study(design(study), folder / name, workers=1)
    return folder / "a", folder / "b"


def test_a_run_does_not_differ_from_itself(runs: tuple[Path, Path]) -> None:
    compared = compare_runs(runs[0], runs[0])
    assert [compared.only_before, compared.only_after] == [(), ()]
    assert all(cell["same"] and not cell["measures"] for cell in compared.cells)
    assert "4 cells of 4 unchanged" in invoke("diff", runs[0], runs[0]).stdout
    assert "settings" not in diff(*[runs[0]] * 2).tables


def test_changes_are_those_of_the_rows(runs: tuple[Path, Path]) -> None:
    compared = compare_runs(*runs)
    asked = diff(*runs).tables["settings"].records()
    assert [row["setting"] for row in asked] == ["priors[0].context"]
    before, after = (read_rows(path / "rows.parquet") for path in runs)
    for cell in compared.cells:
        before_rows, its = (
            rows[(rows.variant == cell["variant"]) & (rows.backend == cell["backend_label"])]
            for rows in (before, after)
        )
        p, q = before_rows.p.to_numpy(dtype=float), its.p.to_numpy(dtype=float)
        assert cell["prior"] == "data → context=0.6"
        assert cell["n_claims"] == len(p)
        assert cell["n_changed"] == int((np.abs(q - p) > 1e-12).sum()) > 0
        assert cell["n_flipped"] == int(((p > 0.5) != (q > 0.5)).sum())
        assert cell["max_difference"] == np.abs(q - p).max()
        # A sum of some dozen numbers, in whatever order: a few roundings.
        assert cell["mean_difference"] == pytest.approx(np.abs(q - p).mean(), rel=1e-12)
        labeled = before_rows.label.notna().to_numpy()
        y = before_rows.label[labeled].to_numpy(dtype=float)
        moved = {measure["measure"]: measure for measure in cell["measures"]}
        brier = [float(((each[labeled] - y) ** 2).mean()) for each in (p, q)]
        given = moved["brier"]
        assert [given["before"], given["after"]] == pytest.approx(brier, rel=1e-12)
        for measure in cell["measures"]:
            assert measure["difference"] == pytest.approx(
                measure["after"] - measure["before"], abs=1e-12
            )
            if np.isfinite(measure["lower"]):
                assert measure["lower"] < measure["upper"]
        means = [
            pd.Series(each).groupby(before_rows.response.to_numpy()).mean().mean()
            for each in (p, q)
        ]
        expected = moved["expected_precision"]
        assert [expected["before"], expected["after"]] == pytest.approx(means, rel=1e-12)
        assert expected["lower"] < expected["upper"]


def test_frames_have_the_measures_of_their_runs_by_cell(runs: tuple[Path, Path]) -> None:
    of_runs = {(cell["variant"], cell["backend_label"]): cell for cell in compare_runs(*runs).cells}
    of_files = diff(*(run / "rows.parquet" for run in runs))
    assert set(of_files["posteriors"]["cell"]) == set(map(" ".join, of_runs))
    numbers = of_files.tables["numbers"].records()
    # Rows are matched by name; only the draws of the bootstrap depend on their order.
    shuffled = read_rows(runs[0]).sample(frac=1, random_state=0)
    of_frames = diff(shuffled, read_rows(runs[1]))
    measures_of_files, measures_of_frames = (
        findings["measures"]
        .set_index(["cell", "measure"])
        .sort_index()[["before", "after", "difference"]]
        for findings in (of_files, of_frames)
    )
    pd.testing.assert_frame_equal(measures_of_files, measures_of_frames)
    assert len(numbers) == sum(len(cell["measures"]) for cell in of_runs.values())
    for row in numbers:
        cell = of_runs[row["variant"], row["backend_label"]]
        (expected,) = (each for each in cell["measures"] if each["measure"] == row["measure"])
        for name in ("before", "after", "difference", "lower", "upper"):
            # Cells are read in the order of the file, of which sums differ in rounding.
            assert row[name] == pytest.approx(expected[name], abs=1e-12, nan_ok=True)
        assert row["n_flipped"] == cell["n_flipped"]
        assert row["prior"] == "data → context=0.6"


def test_measures_of_frames_need_neither_cells_nor_equal_claims() -> None:
    before = pd.DataFrame(
        {
            "response": ["r1", "r1", "r2", "r3"],
            "claim": ["a1", "a2", "a1", "a1"],
            "p": [0.75, 0.5, 0.25, 0.5],
            "label": ["yes", "no", "no", "yes"],
        }
    )
    after = before.assign(p=[1.0, 0.25, 0.25, 0.5]).drop(index=3)
    changes = diff(before, after)
    assert changes["posteriors"]["claims"].tolist() == ["3 (-1 +0)"]
    measures = changes["measures"].set_index("measure").to_dict("index")
    brier = [(0.25**2 + 0.5**2 + 0.25**2) / 3, (0.25**2 + 0.25**2) / 3]
    assert [measures["brier"][side] for side in ("before", "after")] == pytest.approx(brier)
    assert measures["brier"]["difference"] == pytest.approx(brier[1] - brier[0])
    assert [measures["auroc"][side] for side in ("before", "after")] == [1.0, 1.0]
    assert not any("cell" in sentence for sentence in changes.sentences)
    # Texts name the cells too if claims repeat without them.
    both = [
        pd.concat([frame.assign(rater=rater) for rater in ("x", "y")]) for frame in (before, after)
    ]
    assert set(diff(*both)["measures"]["cell"]) == {"x", "y"}
    repeated = diff(*(pd.concat([frame, frame.assign(p=0.125)]) for frame in (before, after)))
    assert repeated.sentences[0].startswith("Measures are not compared: ")
    assert "measures" not in repeated.tables
    # Tables without probabilities have no measures.
    assert "measures" not in diff(before.drop(columns="p"), after.drop(columns="p")).tables


def test_auroc_of_cross_fitted_posteriors_compares_claims_of_a_fold(folder: Path) -> None:
    text = STUDY.split("significance")[0] + "measures: [brier, auroc]\noutputs: [csv]\n"
    path = study_file(folder, text)
    one_cell = ["variants=[FR1]", "backends=[exact]"]
    for name, penalty in (("weak", 10), ("strong", 0.1)):
        learned = f"parameters: [atom_prior], folds: 4, penalty: {penalty}"
        learn = f"priors=[{{name: learned, learned: {{{learned}}}}}]"
        invoke("run", path, *one_cell, learn, "--out", name)
    (cell,) = compare_runs(Path("weak"), Path("strong")).cells
    (auroc,) = (each for each in cell["measures"] if each["measure"] == "auroc")
    of_runs = [pd.read_csv(f"{name}/summary.csv")["auroc"][0] for name in ("weak", "strong")]
    assert [auroc["before"], auroc["after"]] == pytest.approx(of_runs, abs=1e-12)
    pooled = score(read_rows("weak"), scores="auroc", n_bootstrap=20).frame["value"][0]
    assert pooled != pytest.approx(of_runs[0], abs=1e-6)


def test_claims_and_cells_of_one_run_alone_are_reported(
    runs: tuple[Path, Path], folder: Path
) -> None:
    path = study_file(folder, STUDY)
    fewer = ["datasets=[{name: demonstration, limit: 5}]", "variants=[FR1]", "significance={}"]
    invoke("run", path, "--out", "c", *fewer)
    compared = compare_runs(runs[0], folder / "c")
    assert [key["variant"] for key in compared.only_before] == ["FR2", "FR2"]
    assert compared.only_after == ()
    counts = read_rows(folder / "c" / "rows.parquet").groupby("backend").size()
    everything = read_rows(runs[0] / "rows.parquet").query("variant == 'FR1'")
    for cell in compared.cells:
        assert cell["n_claims"] == counts[cell["backend_label"]]
        assert cell["n_only_before"] == len(everything) // 2 - cell["n_claims"] > 0
        assert (cell["n_changed"], cell["n_only_after"]) == (0, 0)
    result = invoke("diff", runs[0], "c", "--out", "changes")
    sentence = "only before: 2 cells, demonstration FR2 implication data {exact, lbp}"
    assert f"- {sentence}\n" in result.stdout
    assert sentence in diff(runs[0], "c").sentences
    assert len(pd.read_csv("changes/numbers.csv")) == 2


def test_a_backend_with_other_settings_is_compared_with_what_it_was(
    runs: tuple[Path, Path], folder: Path
) -> None:
    path = study_file(folder, STUDY)
    damped = ["backends[1].settings.damping=0.5", "significance={}", "variants=[FR2]"]
    invoke("run", path, "--out", "damped", *damped)
    compared = compare_runs(runs[0], folder / "damped")
    # FR1 is gone and nothing stands in its place; of the backends one was replaced by one.
    assert [cell["backend_label"] for cell in compared.cells] == ["exact", "lbp → lbp damping=0.5"]
    assert compared.cells[0]["same"]
    assert {key["variant"] for key in compared.only_before} == {"FR1"}
    assert len(compared.only_before) == 2
    assert compared.only_after == ()


def test_cells_of_one_run_alone_are_reported_in_groups() -> None:
    common: dict[str, Any] = {"dataset": "d", "relation_model": "recorded"}
    common |= {"encoding": "implication", "prior": "data", "strength": 1.0}
    cells = [
        {**common, "variant": variant, "backend_label": backend, "seed": seed}
        for variant in ("FR1", "FR2")
        for backend in ("lbp", "gibbs")
        for seed in (range(9) if backend == "gibbs" else (0,))
    ]
    groups = grouped(cells)
    assert [group["backend_label"] for group in groups] == [("lbp",), ("gibbs",)]
    assert [group["seed"] for group in groups] == [(0,), tuple(range(9))]
    assert all(group["variant"] == ("FR1", "FR2") for group in groups)


@pytest.mark.parametrize(
    ("name", "lacks"),
    [("nothing", "there is no such folder"), ("empty", "there is no manifest.json")],
)
def test_a_folder_without_a_run_is_refused(
    runs: tuple[Path, Path], folder: Path, name: str, lacks: str
) -> None:
    (folder / "empty").mkdir()
    result = invoke("diff", runs[0], name, code=2)
    assert f"{name}: {lacks}; name the folder of a run's results" in result.stderr


def test_pairs_are_tested_wherever_all_else_is_the_same(runs: tuple[Path, Path]) -> None:
    tests = pd.read_csv(runs[0] / "significance.csv")
    shown = (runs[0] / "significance.tex").read_text()
    assert shown.count(r"\\") == len(tests) + 1 + tests["dataset"].nunique()
    assert f"{tests['difference'][0]:.4f}".replace("-", "$-$") in shown
    assert tests[["first", "second", "elsewhere", "measure"]].values.tolist() == [
        ["FR2", "FR1", f"implication data {backend}", measure]
        for backend in ("exact", "lbp")
        for measure in ("brier", "accuracy")
    ] + [
        ["lbp", "exact", f"{variant} implication data", measure]
        for variant in ("FR1", "FR2")
        for measure in ("brier", "accuracy")
    ]
    summary = pd.read_csv(runs[0] / "summary.csv").set_index(["variant", "backend_label"])
    for test in tests.to_dict("records"):
        if test["first"] == "FR2":
            backend = test["elsewhere"].split()[2]
            values = [
                summary.loc[(variant, backend), test["measure"]] for variant in ("FR2", "FR1")
            ]
            # The same sums in another order.
            assert [test["value_first"], test["value_second"]] == pytest.approx(values, rel=1e-12)
            assert test["difference"] == pytest.approx(values[0] - values[1], abs=1e-12)
    assert (tests.corrected.dropna() >= tests.p_value[tests.corrected.notna()]).all()


def test_rows_are_read_cell_by_cell(runs: tuple[Path, Path]) -> None:
    path = runs[0] / "rows.parquet"
    rows = read_rows(path)
    file = RowsFile(path)
    parts = [file.read(cell).to_pandas() for cell in file.cells()]
    assert [len(part[list(CELL)].drop_duplicates()) for part in parts] == [1] * 4
    assert pd.concat(parts).p.tolist() == rows.p.tolist()


def test_the_metadata_of_rows_explain_every_column(runs: tuple[Path, Path]) -> None:
    schema = pq.read_schema(runs[0] / "rows.parquet")
    assert all(schema.field(name).metadata[b"description"] for name in schema.names)
    manifest = json.loads((runs[0] / "manifest.json").read_text())
    assert schema.metadata[b"config_sha256"].decode() == manifest["config_sha256"]


def test_strengths_multiply_the_log_odds_of_relations(folder: Path) -> None:
    path = study_file(
        folder,
        "study: s\ndatasets: [{name: worked-examples, subset: {responses: [one-entailment]}}]\n"
        "strengths: [1, 2]\npriors: [{atom: [0.5], context: [1.0]}]\nencodings: [conditional]\n"
        "outputs: []\n",
    )
    invoke("run", path, "--out", "out")
    p = read_rows(folder / "out" / "rows.parquet").set_index("strength").p
    odds = {strength: p[strength] / (1 - p[strength]) for strength in (1.0, 2.0)}
    # A context that is certainly true: the odds of the atom are those of the relation.
    assert odds[2.0] == pytest.approx(odds[1.0] ** 2, rel=1e-12)
    assert odds[1.0] > 1
