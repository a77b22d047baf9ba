"""`estimate --judge learn` and `fit --estimate`: the same labels teach a judge and correct it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.estimation import cross_predicted, share
from calibration.estimation import estimate as estimated
from calibration.learned_potentials import RESPONSE, ClaimTable, FieldSettings
from calibration.learned_potentials.columns import log_odds_of
from calibration.learned_potentials.methods import field, fold_judges, labeled_folds
from experiments import estimate, fit
from factormodels import datasets
from factormodels.variants import variant
from tests.experiments.conftest import invoke
from tests.experiments.methods.test_estimate import drawn, row_of
from tests.refusals import refused

pytest.importorskip("torch")

LABELED = [f"r{number}" for number in range(0, 40, 4)]


def few() -> Any:
    """Forty responses of which ten are labeled, with a number beside the probabilities."""
    table = drawn()
    table["length"] = np.random.default_rng(1).normal(size=len(table))
    return table.assign(label=table["label"].where(table["response"].isin(LABELED)))


def test_the_estimate_is_that_of_a_field_in_folds() -> None:
    table = few()
    estimation = estimate(table, judge="learn", numbers="length", folds=4, quantities="share,brier")
    rows = estimation["estimates"]
    assert rows["of"].tolist() == ["p", "p", "learned judge", "learned judge"]
    assert estimation["differences"]["of"].tolist() == ["learned judge minus p"]
    labels = table["label"].to_numpy(object)
    numbers = np.array([[log_odds_of(p) for p in table["p"]], table["length"]]).T
    responses = np.repeat(np.arange(40), 6)
    known = np.array([np.nan if value is None else float(value) for value in labels])
    names = ("log odds of p", "length")
    claims = ClaimTable(
        names, numbers, known, responses, {RESPONSE: responses}, (("", ""),) * 240, 40
    )
    judges = fold_judges(field(FieldSettings()), claims, labeled_folds(claims, 4, 0))
    direct = estimated(cross_predicted(lambda p: share(p, known, responses), judges, responses))
    row = rows[(rows["of"] == "learned judge") & (rows["quantity"] == "share")].iloc[0]
    assert row["value"] == pytest.approx(direct.value, abs=1e-9)
    assert row["value_lower"] == pytest.approx(direct.lower, abs=1e-9)
    (sentence,) = (each for each in estimation.sentences if "learned judge reads" in each)
    assert (
        "reads log odds of p, length. 60 labels of 10 responses trained judges in 4 folds"
        in sentence
    )


def test_the_ece_of_a_learned_judge_comes_with_a_caution() -> None:
    estimated = estimate(few(), judge="learn", folds=2, quantities="ece", bins=2)
    cautions = [
        each for each in estimated.sentences if "its own training labels do not reveal" in each
    ]
    (caution,) = cautions
    assert caution.startswith("learned judge: ")
    # Labels of other responses bound the level of the judge; its own leave it open.
    row = estimated["estimates"].set_index("of").loc["learned judge"]
    assert row["value"] < row["value_upper"]
    assert pd.isna(row["worth"])


def test_labels_of_a_sheet_teach_as_those_of_the_table_do(tmp_path: Path) -> None:
    table = few()
    known = table["label"].notna()
    table[known].drop(columns=["p", "length"]).to_csv(tmp_path / "sheet.csv", index=False)
    table.drop(columns="label").to_csv(tmp_path / "claims.csv", index=False)
    arguments = (str(tmp_path / "claims.csv"), "--labels", str(tmp_path / "sheet.csv"))
    result = invoke("estimate", *arguments, "--judge", "learn", "--numbers", "length", "--json")
    by_sheet = pd.DataFrame(json.loads(result.stdout)["tables"]["estimates"])
    by_table = estimate(table, judge="learn", numbers="length")["estimates"]
    np.testing.assert_allclose(by_sheet["value"], by_table["value"], atol=1e-12)
    np.testing.assert_allclose(by_sheet["value_upper"], by_table["value_upper"], atol=1e-12)


def test_models_have_a_judge_each_and_what_is_chosen_is_chosen_by_it() -> None:
    table = few()
    both = pd.concat([table.assign(model="a"), table.assign(model="b", p=1 - table["p"])])
    estimated = estimate(both, judge="learn", quantities="brier")
    by_model = estimated["estimates"].set_index("of")["value"]
    assert by_model.index.tolist() == ["a, p", "b, p", "a, learned judge", "b, learned judge"]
    # What is the wrong way round is turned by the labels: both judges say the same.
    assert by_model["b, p"] > by_model["a, p"] + 0.05
    assert by_model["b, learned judge"] == pytest.approx(by_model["a, learned judge"], abs=1e-6)
    unsure = table.assign(p=0.5, score=table["p"])
    sheets = [
        estimate(unsure, numbers="score", choose=8, unit="claim", judge=judge)["sheet"]
        for judge in ("given", "learn")
    ]
    assert sheets[0]["probability"].nunique() == 1 < sheets[1]["probability"].nunique()


def test_labels_that_cannot_fill_the_folds_are_refused() -> None:
    table = few()
    learned = partial(estimate, judge="learn")
    words = ["10 responses with labels that count", "fill `folds` 11", "or give `folds` 10"]
    refused(words, learned, table, folds=11)
    one_sided = table.assign(label=table["label"].where(table["response"] == "r0"))
    said_of_one = refused("1 response with labels that count", learned, one_sided)
    assert said_of_one.endswith("label more responses")
    # Of two folds, one alone has a false claim.
    alike = table.assign(label=table["label"].notna().where(table["label"].notna()))
    alike.loc[0, "label"] = False
    refused("all 3. labels are true, and learning needs both kinds", learned, alike,
            folds=2)  # fmt: skip
    refused("--?|`folds`", learned, table, folds=1)
    gap = table.assign(length=["x", *[1.0] * 239])
    refused(
        "'x' is not a finite number; a column of `numbers` needs one",
        learned,
        gap,
        numbers="length",
    )
    other = table.assign(q=[None, *[0.5] * 239])
    refused(["no probability", "leave the column out with `p`"], learned, other, p=["p", "q"])
    # Before the first label there is nothing to learn, and claims are chosen as they are.
    assert "sheet" in learned(table.drop(columns="label"), choose=2).tables


@pytest.mark.usefixtures("without_rivals")
def test_fit_estimates_by_the_folds_that_it_scores() -> None:
    graphs = list(datasets.load("factscore").graphs[:24])
    hidden = [
        replace(graph, atoms=tuple(replace(atom, label=None) for atom in graph.atoms))
        for graph in graphs[12:]
    ]
    some = [*graphs[:12], *hidden]
    how: dict[str, Any] = {"penalty": 30.0, "folds": 3, "columns": "evidence"}
    fitted = fit(some, estimate="brier,share", **how)
    rows = fitted["estimates"].set_index(["of", "quantity"])
    assert [*rows.index] == [
        (of, name) for of in ("field", "FR1 as given") for name in ("brier", "share")
    ]
    # All labeled claims are judged by folds, as in the scores beside it. The mean of the judges,
    # which judges the other claims, is better than each.
    scored: Any = fitted["scores"].set_index("model").loc["field", "brier"]
    by_labels: Any = rows.loc[("field", "brier"), "labels"]
    assert 1e-4 < scored - by_labels < 5e-3
    share: Any = rows.loc[("field", "share")]
    assert share["n_items"] > share["n_labeled"]
    assert fitted["differences"]["of"].tolist() == ["FR1 as given minus field"]
    # `estimate` reads all relations of the graphs, and `fit` those of a view.
    (in_view,), (given,) = (
        estimate(part, quantities="brier")["estimates"]["predictions"]
        for part in ([variant(graph, "FR1") for graph in some], some)
    )
    by_view: Any = rows.loc[("FR1 as given", "brier")]
    assert by_view["predictions"] == pytest.approx(in_view, abs=1e-9)
    assert abs(in_view - given) > 1e-3
    of_all = fit(some, estimate="brier", variant="given", **how)["estimates"].set_index("of")
    assert of_all.loc["as given", "predictions"] == pytest.approx(given, abs=1e-9)
    # The file of the folds says the same of the labeled, and nearly so of all.
    by_file = row_of(estimate(list(fitted.graphs), quantities="brier"), "brier")
    assert by_file["labels"] == pytest.approx(scored, abs=1e-9)
    refused("`estimate` needs posteriors of folds", fit, some, estimate="share", folds=0)
    refused("did you mean 'brier'", fit, some, estimate="brierr")
