"""`score`: any table of probabilities, held to scikit-learn, and what has no finite value."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.recalibration import RECALIBRATORS
from experiments import assess, score
from experiments.findings.findings import Findings
from experiments.findings.table import blocks
from factormodels import read_many
from factormodels.errors import InputError
from tests.experiments.conftest import invoke

QUICK: dict[str, Any] = {"n_bootstrap": 20, "resamples": 19}


def drawn(seed: int = 0, models: tuple[str, ...] = ("a", "b")) -> Any:
    """Claims of twelve responses, judged better by the first model."""
    generator = np.random.default_rng(seed)
    rows = []
    for response in range(12):
        for claim in range(5):
            label = generator.random() < 0.6
            for position, model in enumerate(models):
                shift = 0.3 if label else -0.3
                p = 0.5 + shift / (1 + position) + generator.normal(0, 0.15)
                rows.append((model, f"r{response}", f"c{claim}", np.clip(p, 0.01, 0.99), label))
    return pd.DataFrame(rows, columns=["model", "response", "claim", "p", "label"])


def row_of(findings: Findings, model: str, data: str | None = None) -> Any:
    frame: Any = findings["scores"]
    named = frame["model"] == model
    return frame[named if data is None else named & (frame["data"] == data)].iloc[0]


def check_scores(row: Any, part: Any) -> None:
    from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

    y, p = part["label"].astype(bool), part["p"]
    # Means of sixty terms, to rounding.
    assert row["brier"] == pytest.approx(brier_score_loss(y, p), abs=1e-12)
    assert row["log_loss"] == pytest.approx(log_loss(y, p), abs=1e-12)
    assert row["auroc"] == pytest.approx(roc_auc_score(y, p), abs=1e-12)
    assert row["accuracy"] == pytest.approx(accuracy_score(y, p > 0.5), abs=1e-12)
    parts = [row[f"corp_brier_{name}"] for name in ("miscalibration", "discrimination")]
    assert row["brier"] == pytest.approx(
        parts[0] - parts[1] + row["corp_brier_uncertainty"], abs=1e-12
    )


def test_scores_are_those_of_another_library_from_any_file(tmp_path: Path) -> None:
    table = drawn()
    table.to_csv(tmp_path / "t.csv", index=False, encoding="utf-8-sig")
    table.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "t.parquet")
    table.to_json(tmp_path / "t.jsonl", orient="records", lines=True, double_precision=15)
    for data in (table, *sorted(tmp_path.iterdir())):
        scores = score(data, **QUICK)
        for model, part in table.groupby("model"):
            check_scores(row_of(scores, str(model)), part)
    assert any("model 'model'" in each for each in scores.sentences)


def test_models_may_be_columns_and_are_tested_on_every_score() -> None:
    table = drawn()
    wide = table.pivot(index=["response", "claim", "label"], columns="model", values="p")
    wide = wide.reset_index()
    by_column = score(wide, p=["a", "b"], **QUICK)
    by_row = score(table, **QUICK)
    names = ["model", "n_claims", "brier", "log_loss", "auroc", "ece", "aurc", "calibration_slope"]
    pd.testing.assert_frame_equal(by_column["scores"][names], by_row["scores"][names])
    tests: Any = by_row["tests"]
    assert set(tests["of"]) == {"b minus a"}
    assert set(tests["measure"]) >= {"brier", "log_loss", "auroc", "ece", "aurc", "accuracy"}
    first = row_of(by_row, "a")
    second = row_of(by_row, "b")
    for _, test in tests.iterrows():
        expected = second[test["measure"]] - first[test["measure"]]
        assert test["difference"] == pytest.approx(expected, abs=1e-12)
        assert test["corrected"] >= test["p_value"]
    other = score(table, reference="b", **QUICK)
    assert set(other["tests"]["of"]) == {"a minus b"}


def test_the_best_is_reported_in_a_sentence_that_names_each_model_once() -> None:
    settings: dict[str, Any] = {"n_bootstrap": 20, "resamples": 199, "scores": ["brier"]}
    sentence = score(drawn(), **settings).sentences[0]
    assert sentence.startswith("a has the lowest Brier score, ")
    assert sentence.endswith("; b is significantly worse.")
    sentence = score(drawn(), reference="b", **settings).sentences[0]
    assert sentence.endswith("; a is significantly better than b.")
    alike = drawn().assign(p=lambda rows: np.where(rows["model"] == "b", 0.5, rows["p"] / 9 + 0.45))
    sentence = score(alike[alike["response"].isin(["r0", "r1"])], **settings).sentences[0]
    assert sentence.endswith("; no other is significantly better or worse.")


def test_columns_of_a_row_are_paired_also_where_one_is_missing() -> None:
    wide = drawn().pivot(index=["response", "claim", "label"], columns="model", values="p")
    wide = wide.reset_index().drop(columns="claim")
    # Another claim in each: neither the ids nor the order in a response pair what is left.
    wide.loc[3, "a"] = None
    wide.loc[8, "b"] = None
    scores = score(wide, p=["a", "b"], **QUICK)
    shared = len(wide) - 2
    assert any(f"tested on the {shared:,} claims that all" in each for each in scores.sentences)
    both: Any = wide.dropna()
    tests: Any = scores["tests"].set_index("measure")
    loss = {name: ((both[name] - both["label"]) ** 2).mean() for name in ("a", "b")}
    # The Brier score's difference, over the rows that have both.
    assert tests.loc["brier", "difference"] == pytest.approx(loss["b"] - loss["a"], abs=1e-12)
    assert row_of(scores, "a")["n_claims"] == row_of(scores, "b")["n_claims"] == len(wide) - 1


def test_a_column_without_any_value_is_reported() -> None:
    wide = pd.DataFrame({"p": [0.9, 0.2, 0.7, None], "q": [None] * 4, "label": [1, 0, 1, 0]})
    scores = score(wide, p=["p", "q"], **QUICK)
    assert "Column 'q' has no values and is left out." in scores.sentences
    # The row without either is counted once.
    assert "1 row without a probability is left out." in scores.sentences
    assert scores["scores"]["n_claims"].tolist() == [3]


def test_an_output_of_another_tool_is_scored_by_its_posteriors(tmp_path: Path) -> None:
    atoms = [
        {"id": f"a{n}", "text": f"It is {n}.", "label": "S" if n % 3 else "NS", "contexts": ["c"]}
        for n in range(6)
    ]
    p = [0.1, 0.8, 0.7, 0.6, 0.9, 0.4]
    results = {
        "predictions": {f"a{n}": "S" if value > 0.5 else "NS" for n, value in enumerate(p)},
        "marginals": [
            {"variable": f"a{n}", "probabilities": [1 - value, value]} for n, value in enumerate(p)
        ],
    }
    path = tmp_path / "factreasoner_output.json"
    record: dict[str, Any] = {"input": "q", "output": "r", "atoms": atoms, "results": results}
    record["contexts"] = [{"id": "c", "text": "It is 1 and 4."}]
    path.write_text(json.dumps(record), encoding="utf-8")
    scores = score(path, **QUICK)
    row = row_of(scores, "factreasoner")
    truth = [n % 3 > 0 for n in range(6)]
    expected = sum((value - y) ** 2 for value, y in zip(p, truth, strict=True)) / 6
    assert row["brier"] == pytest.approx(expected, abs=1e-12)
    # Beside what we make of the same claims.
    assess(path).save(tmp_path / "ours")
    both = score(tmp_path / "ours" / "graphs.jsonl", **QUICK)
    in_memory = score(read_many(tmp_path / "ours" / "graphs.jsonl"), **QUICK)
    assert in_memory["scores"].equals(both["scores"])
    assert list(both["scores"]["model"]) == ["factreasoner", "FR2"]
    assert row_of(both, "factreasoner")["brier"] == row["brier"]
    assert set(both["tests"]["of"]) == {"FR2 minus factreasoner"}


def test_data_are_scored_apart_and_never_against_each_other() -> None:
    first, other = drawn(0), drawn(1)
    both = pd.concat([first.assign(dataset="x"), other.assign(dataset="y")])
    scores = score(both, by=["dataset", "model"], **QUICK)
    check_scores(row_of(scores, "b", "y"), other[other["model"] == "b"])
    assert set(scores["tests"]["of"]) == {"x: b minus a", "y: b minus a"}
    assert {"reliability-1", "risk-coverage-2"} <= set(scores.draw())


def test_models_with_the_same_probabilities_are_named_together() -> None:
    table = drawn(models=("a", "b", "c"))
    copies = [table[table.model == "a"].assign(model=f"a{n}") for n in range(5)]
    copies[0]["p"] += 0.004 * (copies[0]["p"] < 0.9)
    scores = score(pd.concat([table, *copies]), scores=["brier"], **QUICK)
    sentences = [each for each in scores.sentences if "never differ" in each]
    assert sentences == [
        "a = a0 = a1 = a2 = 2 more: their probabilities never differ by more than 0.005."
    ]
    assert not any(
        "never differ" in each for each in score(table, scores=["brier"], **QUICK).sentences
    )


def test_data_without_labels_are_reported_and_lose_nothing() -> None:
    labeled, other = drawn(0), drawn(1).assign(label=None)
    both = pd.concat([labeled.assign(dataset="x"), other.assign(dataset="y")])
    scores = score(both, by=["dataset", "model"], **QUICK)
    assert "y: no claim has a label, so nothing is scored." in scores.sentences
    check_scores(row_of(scores, "a"), labeled[labeled["model"] == "a"])


def test_frames_to_work_with_are_narrow_and_files_have_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Figures are not the point, and take longer than the rest.
    monkeypatch.setattr("experiments.methods.score._figures", lambda _: {})
    scores = score(drawn(), scores=("brier", "auroc", "ece"), **QUICK)
    tidy = scores.frame
    assert list(tidy) == [
        *("data", "model", "score", "value", "lower", "upper", "standard_error"),
        *("n_claims", "n_responses", "reason"),
    ]
    assert list(scores["scores"]) == [
        *("model", "n_claims", "n_responses", "brier", "auroc", "ece"),
    ]
    by_model = tidy.pivot(index="model", columns="score", values="value")
    wide = scores["scores"].set_index("model")
    scores.save(tmp_path / "kept")
    written = pd.read_csv(tmp_path / "kept" / "scores.csv").set_index("model")
    assert list(written)[:6] == ["data", "n_claims", "n_responses", "brier", "auroc", "ece"]
    # One file is the tidy frame.
    for name, read in (("t.csv", pd.read_csv), ("t.parquet", pd.read_parquet)):
        scores.save(tmp_path / name)
        alone = read(tmp_path / name)
        assert list(alone) == list(tidy)
        np.testing.assert_allclose(alone["value"], tidy["value"], rtol=1e-12)
    for model in wide.index:
        for name in ("brier", "auroc", "ece"):
            assert wide.loc[model, name] == by_model.loc[model, name]
            assert written.loc[model, name] == pytest.approx(wide.loc[model, name], rel=1e-12)
        ends = tidy[(tidy["model"] == model) & (tidy["score"] == "ece")]["upper"]
        assert written.loc[model, "ece_upper"] == pytest.approx(ends.item(), rel=1e-12)


def test_an_infinite_log_loss_is_a_cell_with_a_reason() -> None:
    table = drawn(models=("a",))
    table.loc[table.index[table["label"]][0], "p"] = 0.0
    scores = score(table, **QUICK)
    row = row_of(scores, "p")
    assert math.isinf(row["log_loss"])
    written = scores.tables["scores"].frame.iloc[0]
    assert written["log_loss_text"] == "∞ (p is 0 or 1)"
    # The table shows the sign alone, and the sentence says why.
    (_, rows), *_ = blocks(scores.tables["scores"])
    assert "∞" in [cell.text for cell in rows[0]]
    assert math.isfinite(row["brier"])
    assert any("Log loss has no finite value" in each for each in scores.sentences)
    same = score(table.assign(label=True, p=0.7), **QUICK)
    assert "all labels agree" in same.tables["scores"].frame["auroc_text"][0]
    assert "(CORP)" in scores.tables["scores"].notes
    assert "(CORP)" not in scores.presented({}, ["accuracy"]).tables["scores"].notes
    assert json.loads(same.as_json())["tables"]["scores"][0]["auroc"] is None


def test_recalibration_is_learned_on_other_responses() -> None:
    from calibration.recalibration import PlattRecalibrator, cross_fit

    table = drawn(models=("a",))
    scores = score(table, recalibrate=["platt", "best"], folds=3, **QUICK)
    rows: Any = scores["recalibrated"].set_index("model")
    assert list(rows.index) == ["as given", "platt", "best"]
    fitted = cross_fit(PlattRecalibrator(), table["p"], table["label"], table["response"], 3, 0)
    brier = float(((fitted.p - table["label"].astype(float)) ** 2).mean())
    assert rows.loc["platt", "brier"] == pytest.approx(brier, abs=1e-12)
    assert rows.loc["as given", "brier"] == pytest.approx(row_of(scores, "p")["brier"], abs=1e-12)
    # Two responses leave nothing to choose from, which loses no other table.
    few = score(table[table["response"].isin(["r0", "r1"])], recalibrate="best", **QUICK)
    assert any("best cannot be learned" in each for each in few.sentences)


def test_claims_without_a_response_or_a_label_are_reported() -> None:
    table = drawn(models=("a",)).drop(columns=["response", "model"])
    labels = [None if position == 0 else label for position, label in enumerate(table["label"])]
    scores = score(table.assign(label=labels), **QUICK)
    text = " ".join(scores.sentences)
    assert "claims are treated as independent" in text
    assert row_of(scores, "p")["n_claims"] == len(table) - 1
    assert "without a label" in text


def test_columns_are_known_by_the_names_that_people_give_them() -> None:
    scores = score(drawn().rename(columns={"p": "conf", "label": "human"}), **QUICK)
    text = " ".join(scores.sentences)
    assert "probability 'conf'" in text
    assert "label 'human'" in text


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"p": 1.5}, {}, "row 1, column 'p': 1.5 is not a probability"),
        ({"p": "high"}, {}, "'high' is not a probability"),
        ({"label": "perhaps"}, {}, "which no spelling covers"),
        ({}, {"p": "q"}, "there is no such column"),
        ({}, {"reference": "z"}, "this model is unknown; use one of 'a', 'b'"),
        ({}, {"recalibrate": "plat"}, "recalibrate` plat: this method is unknown"),
        ({"p": None}, {}, "holds no probability"),
    ],
)
def test_a_mistake_is_one_sentence(change: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        score(drawn().assign(**change), **options)
    assert message in str(caught.value)


def test_perfectly_separated_claims_have_no_interval_and_the_table_says_why(
    folder: Path,
) -> None:
    rows = [f"r{r},c{c},{0.9 if c < 3 else 0.1},{int(c < 3)}" for r in range(4) for c in range(6)]
    path = folder / "separated.csv"
    path.write_text("\n".join(["response,claim,p,label", *rows]) + "\n", encoding="utf-8")
    shown = invoke("score", path).stdout
    (note,) = [line for line in shown.splitlines() if "In brackets" in line]
    before, _, why = note.partition(": no interval, since ")
    assert why.startswith("its method finds no variation among these responses.")
    for title in ("Brier", "Discrimination (Brier)", "ECE", "AUROC", "AURC"):
        line = next(line for line in shown.splitlines() if line.startswith(f"{title}   "))
        assert "[" not in line, title
        assert title in before.rpartition(". ")[2].split(", "), title
    assert "Accuracy                1.000 [0.510, 1.000]" in shown
    assert "p has a Brier score of 0.010 on 24 claims" in shown


def test_notes_on_intervals_are_below_their_table_alone() -> None:
    generator = np.random.default_rng(2)
    p = generator.random(150)
    rows = {"response": np.arange(150) // 6, "p": p, "label": generator.random(150) < p}
    scores = score(pd.DataFrame(rows), resamples=19, n_bootstrap=20)
    assert (
        "Covers: coverage in simulations with the same number of responses"
        in scores.tables["intervals"].notes
    )
    assert not any("simulations" in each for each in scores.sentences)


def test_the_command_writes_what_it_prints(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    drawn().to_csv(path, index=False)
    page = tmp_path / "scores.html"
    result = invoke("score", str(path), "--resamples", "19", "--out",
                    str(tmp_path / "out"), "--report", str(page))  # fmt: skip
    brier = f"{row_of(score(drawn(), **QUICK), 'a')['brier']:.3f}"
    assert brier in result.stdout
    assert brier in page.read_text("utf-8")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"scores.tex", "tests.csv", "reliability.pdf", "risk-coverage.csv"} <= names
    assert "did you mean 'model'" in invoke("score", str(path), "--by", "modle", code=2).stderr


def test_the_help_names_every_recalibration() -> None:
    shown = invoke("score", "--help").stdout
    assert [name for name in RECALIBRATORS if name.replace("_", "-") not in shown] == []


def test_a_command_writes_for_a_venue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"0.{i % 9 + 1},0.{i % 7 + 1},{i % 2 == 0},{i // 4}" for i in range(24)]
    Path("c.csv").write_text("\n".join(["p,q,label,answer", *lines]))
    asked = ["--p", "p", "--p", "q", "--bootstrap", "20", "--resamples", "20"]
    invoke("score", "c.csv", *asked, "--out", "wide.tex", "--venue", "219x455")
    invoke("score", "c.csv", *asked, "--out", "page.tex", "--venue", "600")
    # A column holds a row per score, the page a row per model.
    wide, page = (Path(f"{each}.tex").read_text() for each in ("wide", "page"))
    assert r"\begin{table}" in wide
    assert "\n & p & q \\\\\n" in wide
    assert r"\begin{table}" in page
    assert "\nmodel & claims & Brier" in page


def test_a_table_for_a_paper_has_intervals_beside_its_stars_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"0.{i % 2 * 7 + 2},0.{9 - i % 2 * 7},{i % 2 == 1},{i // 2}" for i in range(60)]
    Path("c.csv").write_text("\n".join(["p,q,label,answer", *lines]))
    asked = ["--p", "p,q", "--scores", "brier", "--bootstrap", "50", "--venue", "acl"]
    for folder, more in (("plain", []), ("full", ["--intervals"])):
        invoke("score", "c.csv", *asked, *more, "--out", f"{folder}.tex")
    plain, full = (Path(f"{each}.tex").read_text() for each in ("plain", "full"))
    assert "scriptsize" not in plain
    findings = score("c.csv", p=["p", "q"], scores="brier", n_bootstrap=50)
    scored = findings.tables["scores"].frame.iloc[1]
    ends = f"[{scored['brier_lower']:.3f}, {scored['brier_upper']:.3f}]"
    stars = r"\textsuperscript{***}"
    assert rf"{scored['brier']:.3f} & {stars} & {{\scriptsize {ends}}}" in full
    assert r"In brackets: 95\% intervals over responses." in full


def test_the_scores_that_are_named_are_computed_and_tested(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    rows = [f"r{i // 2},0.{i},0.{9 - i},{i % 3 % 2}" for i in range(1, 9)]
    path.write_text("\n".join(["response,p,q,label", *rows]))
    asked = ("--p", "p", "--p", "q", "--resamples", "20", "--bootstrap", "20")
    content = json.loads(
        invoke("score", str(path), *asked, "--scores", "auroc,ece", "--json").stdout
    )
    (first, _) = content["tables"]["scores"]
    assert "auroc" in first
    assert "brier" not in first
    assert {row["measure"] for row in content["tables"]["tests"]} == {"auroc", "ece"}
    assert not any("Brier" in sentence for sentence in content["findings"])
    unknown = invoke("score", str(path), "--scores", "briar", code=2).stderr
    assert "--scores" in unknown
    assert "did you mean 'brier'" in unknown


def test_models_of_one_name_are_refused_rather_than_pooled() -> None:
    rows = [
        {"a": a, "b": b, "response": f"{a}{n}", "claim": 0, "p": 0.2, "label": n}
        for a, b in (("x, y", "z"), ("x", "y, z"))
        for n in (0, 1)
    ]
    with pytest.raises(InputError, match="have the same name, 'x, y, z'"):
        score(pd.DataFrame(rows), by=["a", "b"], scores="brier")


def test_a_result_is_saved_with_the_names_and_columns_of_the_reader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = score(drawn(), by="model", resamples=20)
    models = list(result["scores"]["model"])
    renamed = {models[0]: "GPT-4o", "nobody": "x"}
    result.save(tmp_path / "t.md", rename=renamed, show="auroc, brier")
    written = (tmp_path / "t.md").read_text(encoding="utf-8")
    head, rows = written.split("\n|", 1)[1].split("\n", 1)
    assert [each.strip() for each in head.split("|")][:3] == ["model", "AUROC", "Brier"]
    assert "| GPT-4o |" in rows
    assert f"| {models[0]} |" not in rows
    assert "no name is 'nobody'" in caplog.text
    page = result.report(tmp_path / "p.html", rename=renamed, show=["brier"])
    assert "GPT-4o" in page.read_text(encoding="utf-8")
    # A score that was not computed is no unknown column.
    with pytest.raises(InputError, match=r"not computed; add ece_equal_mass to `scores`"):
        result.save(tmp_path / "u", show=["ece_equal_mass"])
    assert not (tmp_path / "u").exists()


def test_several_probabilities_are_a_list_with_commas_unless_a_column_has_its_name(
    tmp_path: Path,
) -> None:
    claims = drawn(models=("a",)).drop(columns="model").assign(votes=0.5)
    repeated = score(claims, p=["p", "votes"], scores="brier", **QUICK)
    listed = score(claims, p="p, votes", scores="brier", **QUICK)
    assert list(listed["scores"]["model"]) == ["p", "votes"]
    pd.testing.assert_frame_equal(listed["scores"], repeated["scores"])
    claims.to_csv(tmp_path / "t.csv", index=False)
    printed = invoke("score", str(tmp_path / "t.csv"), "--p", "p,votes", "--scores", "brier")
    assert "votes minus p" in printed.stdout
    wide = claims.rename(columns={"votes": "p, votes"})
    alone = score(wide, p="p, votes", scores="brier", **QUICK)
    assert "tests" not in alone.tables
    refused = invoke("score", str(tmp_path / "t.csv"), "--p", "p,vote", code=2)
    assert "--p vote: there is no such column (did you mean 'votes'?)" in refused.stderr


def test_an_object_in_place_of_a_file_is_named_by_its_type() -> None:
    result = score(drawn(), by="model", scores="brier", resamples=20)
    with pytest.raises(InputError) as refusal:
        score("demonstration", beside=[result])  # type: ignore[list-item]
    assert str(refusal.value).startswith("`beside` (Findings object): give a path of a file")
