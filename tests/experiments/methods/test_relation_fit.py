"""`factormodels fit --relations`: a correction learned from relations that people judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from calibration.label_bias import smoothed_mean, without_bias
from experiments import assess, fit
from experiments.asking.relation_correction import read_correction
from experiments.evaluators.assess import AssessSettings
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.claims import JUDGED_KINDS
from factormodels.io import write_many
from factormodels.io.formats.factcheck_bench import read_factcheck_bench
from factormodels.metadata.learned_from import identity_of
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.probe.scripted import fenced, related
from tests.refusals import refused

HEADER = "response,claim,passage,p_entailment,p_contradiction,p_neutral,human relation\n"
BIAS = (0.0, 3.0, 0.0)


def table(folder: Path, n: int = 90) -> Path:
    """Pairs whose probabilities are the labels' laws but for a bias toward contradiction."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(n, 3)) * 2.0
    labels = [rng.choice(3, p=row) for row in softmax(logits, axis=1)]
    rows = [
        f"r{index // 3},claim {index},p{index},{','.join(f'{x:.6f}' for x in shares)},"
        f"{JUDGED_KINDS[label]}\n"
        for index, (shares, label) in enumerate(
            zip(softmax(logits + np.array(BIAS), axis=1), labels, strict=True)
        )
    ]
    (folder / "pairs.csv").write_text(HEADER + "".join(rows), encoding="utf-8")
    return folder / "pairs.csv"


def test_a_bias_of_a_table_is_learned_and_scored_on_other_responses(tmp_path: Path) -> None:
    findings = fit(table(tmp_path), relations="given", save=tmp_path / "c.json")
    rows = findings["corrections"].set_index("correction")
    assert list(rows.index) == ["none", "batch", "learned"]
    # The bias costs its worth; a scaling of 60 responses' labels takes nearly all of it away.
    assert rows["log_loss"]["learned"] < rows["log_loss"]["none"] - 0.5
    assert rows["difference_upper"]["learned"] < 0
    assert rows["accuracy"]["learned"] > rows["accuracy"]["none"]
    assert rows["ece"]["learned"] < rows["ece"]["none"]
    for name in ("accuracy", "log_loss", "ece", "brier"):
        assert (rows[f"{name}_lower"] < rows[f"{name}_upper"]).all()
    learned = read_correction(tmp_path / "c.json")
    assert learned.scaling is not None
    assert learned.lesson is not None
    # Less the mean, the constants are those that undo the bias: 1, -2, 1; three standard errors.
    assert learned.scaling.constants == pytest.approx((1.0, -2.0, 1.0), abs=0.9)
    assert learned.lesson.pairs == 90
    assert len(learned.lesson.taught) == 30
    assert learned.lesson.corrected_log_loss == pytest.approx(rows["log_loss"]["learned"])


def test_scores_are_those_of_the_arrays(tmp_path: Path) -> None:
    pairs = table(tmp_path, 30)
    cells = [line.split(",") for line in pairs.read_text(encoding="utf-8").splitlines()[1:]]
    p = np.array([[float(x) for x in row[3:6]] for row in cells])
    y = np.array([[*map(str, JUDGED_KINDS)].index(row[6]) for row in cells])
    rows = fit(pairs, relations="given", folds=0)["corrections"].set_index("correction")
    assert list(rows.index) == ["none", "batch"]
    of_frame = fit(pd.read_csv(pairs), relations="given", folds=0)["corrections"]
    pd.testing.assert_frame_equal(of_frame.set_index("correction"), rows)
    for name, q in {"none": p, "batch": without_bias(p, smoothed_mean(p))}.items():
        loss = -np.log(q[np.arange(30), y]).mean()
        assert rows["log_loss"][name] == pytest.approx(loss, rel=1e-5)
        assert rows["accuracy"][name] == (q.argmax(axis=1) == y).mean()
        # One bin for a tenth of the width, the ECE of the likeliest label.
        right, top = q.argmax(axis=1) == y, q.max(axis=1)
        bins = np.minimum((top * 10).astype(int), 9)
        gaps = np.bincount(bins, weights=top) - np.bincount(bins, weights=right)
        assert rows["ece"][name] == pytest.approx(np.abs(gaps).sum() / 30, abs=1e-6)


def labeled() -> tuple[FactGraph, ...]:
    """Six responses with a passage each, of two claims and the relations that people found."""
    kinds = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL)
    return tuple(
        FactGraph(
            f"r{number}",
            (Atom("a1", f"{kinds[number % 3]} {number}."), Atom("a2", f"neutral {number}!")),
            (Context("c1", f"Passage {number}.", retrieved_for=("a1", "a2")),),
            (
                Relation("c1", "a1", kinds[number % 3], 1.0),
                Relation("c1", "a2", RelationKind.NEUTRAL, 1.0),
            ),
        )
        for number in range(6)
    )


def test_a_language_model_is_asked_and_its_correction_applied(tmp_path: Path) -> None:
    model = AnsweringModel(
        related(2.0, (0.0, 5.0, 0.0), lambda question: fenced(question, "hypothesis").split()[0])
    )
    findings = fit(
        labeled(), relations="model", model=model, folds=3, save=tmp_path / "learned.json"
    )
    rows = findings["corrections"].set_index("correction")
    assert rows["accuracy"]["none"] == pytest.approx(1 / 6)
    assert rows["accuracy"]["learned"] > 0.5
    assert findings["cost"]["calls"].tolist() == [12]
    learned = read_correction(tmp_path / "learned.json")
    assert learned.lesson is not None
    assert learned.lesson.relations == model.name
    assert set(learned.lesson.taught) == set(map(identity_of, labeled()))
    judged = assess(
        labeled()[:2],
        model=model,
        atoms="given",
        relation_correction=str(tmp_path / "learned.json"),
    )
    assert any("Labels of 2 responses here trained" in line for line in judged.sentences)
    # What a model said is no label.
    refused("its relations are answers of answering", fit, judged.graphs, relations="lexical")


def test_probabilities_are_learned_from_as_they_were_before_a_correction(tmp_path: Path) -> None:
    model = AnsweringModel(
        related(2.0, (0.0, 5.0, 0.0), lambda question: fenced(question, "hypothesis").split()[0])
    )
    for correction in ("none", "probe"):
        asked = AssessSettings(
            model=model, atoms="given", probe=True, relation_correction=correction
        )
        graphs = assess(labeled(), settings=asked).graphs
        write_many(graphs, tmp_path / f"{correction}.jsonl")
    first, second = (
        fit(labeled(), relations=f"recorded:{tmp_path / name}.jsonl")["corrections"]
        for name in ("none", "probe")
    )
    assert first.equals(second)


RECORD = {
    "prompt": "What is it?",
    "response": "It is red. It is old.",
    "sentences": {
        "s1": {
            "claims": ["It is red.", "It is old."],
            "claims_factuality_label": [True, False],
            "auto_evidence": [["It is red, they say."], ["It is new.", "Of something else."]],
            "stance_claim_autoEvid": [["completely-support"], ["refute", "irrelevant"]],
        }
    },
}


def test_stances_of_factcheck_bench_are_labels_the_irrelevant_among_them(tmp_path: Path) -> None:
    file = tmp_path / "bench.jsonl"
    file.write_text(f"{json.dumps(RECORD)}\n" * 2, encoding="utf-8")
    assert [len(graph.relations) for graph in read_factcheck_bench(file)] == [2, 2]
    findings = fit(file, relations="lexical", folds=2)
    assert findings.sentences[0] == (
        "6 labeled pairs of 2 responses: 2 entailment, 2 contradiction, 2 neutral."
    )


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("r1,A,p1,.5,.4,.3,entailment", "line 2: the probabilities of the distribution sum to 1.2"),
        ("r1,A,p1,.5,,.3,entailment", "the probability of contradiction is missing"),
        ("r1,A,p1,.5,.4,.1,true", "'true' is not a relation of a passage to a claim"),
        ("r1,A,p1,.5,.4,.1,", "no row has both a human relation and probabilities"),
        (
            "r1,A,p1,.5,.4,.1,neutral\nr1,A,p1,.5,.4,.1,neutral",
            "row 1 has the same response, claim and passage",
        ),
        ("r1,A,p1,.5,.4,.1,neutral", "`folds` 5 does not fit 1 response"),
    ],
)
def test_rows_that_could_be_misread_are_refused(tmp_path: Path, cells: str, message: str) -> None:
    (tmp_path / "pairs.csv").write_text(f"{HEADER}{cells}\n", encoding="utf-8")
    refused(message, fit, tmp_path / "pairs.csv", relations="given")


def test_a_table_without_responses_and_neutral_is_read_and_reported(tmp_path: Path) -> None:
    rows = "claim,passage,entailment,contradiction,label\nA,p1,.5,.4,supports\nB,p1,.1,.2,nei\n"
    (tmp_path / "pairs.csv").write_text(rows, encoding="utf-8")
    findings = fit(tmp_path / "pairs.csv", relations="given", folds=2)
    sentences = " ".join(findings.sentences)
    assert (
        "No column is recognized as the response: pairs of a claim stay in the same fold"
        in sentences
    )
    assert "neutral: its probability is 1 minus entailment and contradiction" in sentences
    assert findings["relations"].set_index("relation")["p_none"]["neutral"] == pytest.approx(0.4)
    advice = "not JSON.*read a table of labeled pairs.*give `relations` given"
    refused(advice, fit, tmp_path / "pairs.csv", relations="lexical")


def test_options_of_a_judge_and_of_a_correction_are_not_mixed(tmp_path: Path) -> None:
    pairs = table(tmp_path, 9)
    refused("`penalty` applies to a judge", fit, pairs, relations="given", penalty=1.0)
    refused(
        "`model` applies to relations from a model; give `relations` too",
        fit,
        "demonstration",
        model="x/y",
    )
    result = invoke("fit", str(pairs), "--relations", "given", "--folds", "3")
    assert "Effect of corrections on the relations of " in result.stdout
