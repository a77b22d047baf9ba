"""`estimate`: from a table, through a sheet that is chosen and filled in, to intervals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.estimation import QUANTITIES, REGRESSIONS, ols, quantile, share
from calibration.estimation import estimate as estimated
from experiments import estimate
from experiments.columns.assessed_metadata import METADATA_KEY
from factormodels import Atom, FactGraph, datasets, write_many
from factormodels.errors import InputError
from tests.experiments.conftest import invoke
from tests.refusals import refused


def drawn(seed: int = 0, n_responses: int = 40, size: int = 6) -> Any:
    """Calibrated claims, with ids that repeat from response to response."""
    generator = np.random.default_rng(seed)
    level = np.repeat(generator.normal(0.5, 1.0, n_responses), size)
    p = 1 / (1 + np.exp(-level - generator.normal(0, 1.0, level.size)))
    return pd.DataFrame(
        {
            "response": np.repeat([f"r{number}" for number in range(n_responses)], size),
            "claim": np.tile([f"c{number}" for number in range(size)], n_responses),
            "text": [f"Claim {number}." for number in range(level.size)],
            "p": p,
            "label": generator.random(p.size) < p,
        }
    )


def filled(sheet: Path, truth: Any) -> None:
    """Fill in a sheet as a person would."""
    known = truth.set_index(["response", "claim"])["label"]
    rows = pd.read_csv(sheet)
    rows["label"] = ["yes" if known[key] else "no" for key in zip(*(rows[c] for c in
                     ("response", "claim")), strict=True)]  # fmt: skip
    rows.to_csv(sheet, index=False)


def row_of(findings: Any, name: str) -> Any:
    frame = findings["estimates"]
    return frame[frame["quantity"] == name].iloc[0]


def test_k_is_reported_as_in_a_study() -> None:
    by_k = {
        str(k): row_of(estimate(drawn(), quantities="f1-at-k", k=k), "f1-at-k")["value"]
        for k in (3, "3", "fixed:3", "half", "median")
    }
    # Six claims a response: half of them are 3.
    assert by_k["3"] == by_k["fixed:3"] == by_k["half"] != by_k["median"]
    refused("use median, half, half-down, or a whole number above 0", estimate, drawn(), k="low")


def test_every_quantity_is_that_of_the_arrays() -> None:
    table = drawn()
    table["position"] = np.tile(np.arange(6), 40)
    labels = table["label"].where(table["response"].isin([f"r{number}" for number in range(20)]))
    few = table.assign(label=labels)
    asked = ("accuracy", "auroc", "ece", "kept-precision", "quantile", "ols", "logistic")
    how: dict[str, Any] = {"bins": 4, "threshold": 0.6, "q": 0.25, "on": "position"}
    estimation = estimate(few, quantities=asked, **how)
    given = few["p"].to_numpy(), labels.to_numpy(object), few["response"].to_numpy()
    more: dict[str, dict[str, Any]] = {
        "ece": {"n_bins": 4},
        "kept-precision": {"threshold": 0.6},
        "quantile": {"q": 0.25},
    }
    direct = {name: QUANTITIES[name](*given, **more.get(name, {})) for name in asked[:5]}
    for name in asked[5:]:
        direct |= {each.title: each for each in REGRESSIONS[name](few[["position"]], *given)}
    assert estimation["estimates"]["quantity"].tolist() == list(direct)
    for name, quantity in direct.items():
        expected, row = estimated(quantity), row_of(estimation, name)
        assert row["value"] == pytest.approx(expected.value, abs=1e-9), name
        assert row["value_upper"] == pytest.approx(expected.upper, abs=1e-9), name
    # A judge of the same claims differs where probabilities count.
    few["other"] = 1 - few["p"]
    both = estimate(few, p=["p", "other"], quantities=("share", "auroc", "accuracy"))
    apart = both["differences"].set_index("quantity")
    assert apart.index.tolist() == ["auroc", "accuracy"]
    areas = both["estimates"].query("quantity == 'auroc'")["value"].tolist()
    assert apart.loc["auroc", "value"] == pytest.approx(areas[1] - areas[0])


def rated(seed: int = 0, n: int = 200, n_labeled: int = 40) -> Any:
    """Ratings by people of some claims and by a judge of all, in responses of one claim."""
    generator = np.random.default_rng(seed)
    length = generator.normal(size=n)
    rating = 3 + length + generator.normal(size=n)
    judge = rating + 0.5 * generator.normal(size=n)
    seen = np.where(np.arange(n) < n_labeled, rating, np.nan)
    responses = [f"r{number}" for number in range(n)]
    return pd.DataFrame({"response": responses, "judge": judge, "rating": seen, "length": length})


def test_labels_may_be_numbers_of_any_size_for_quantiles_and_linear_regression(
    tmp_path: Path,
) -> None:
    table = rated()
    how: dict[str, Any] = {"p": "judge", "label": "rating", "on": "length"}
    estimation = estimate(table, quantities="quantile,ols", q=0.25, **how)
    given = table["judge"], table["rating"], table["response"]
    direct: dict[str, Any] = {"quantile": quantile(*given, q=0.25)}
    direct |= {each.title: each for each in ols(table[["length"]], *given)}
    for name, quantity in direct.items():
        row, interval = row_of(estimation, name), estimated(quantity)
        assert (row["value"], row["value_lower"]) == (interval.value, interval.lower)

    # PPI++ by hand: three least-squares fits, at the weight that each coefficient chose.
    design = np.column_stack([np.ones(200), table["length"]])

    def fitted(numbers: Any, n: int) -> Any:
        return np.linalg.lstsq(design[:n], np.asarray(numbers)[:n], rcond=None)[0]

    seen, judge = table["rating"], table["judge"]
    of_judge = fitted(judge, 40) - fitted(judge, 200)
    for number, name in enumerate(("linear: intercept", "linear: length")):
        row = row_of(estimation, name)
        by_hand = fitted(seen, 40)[number] - row["weight"] * of_judge[number]
        assert row["value"] == pytest.approx(by_hand)
        assert row["weight"] > 0.5

    # The mean likewise: labels minus the weighted difference of predictions here and everywhere.
    row = row_of(estimate(table, quantities="mean", p="judge", label="rating"), "mean")
    by_hand = seen.mean() - row["weight"] * (judge[:40].mean() - judge.mean())
    assert row["value"] == pytest.approx(by_hand)
    assert row["value_lower"] < row["value"] < row["value_upper"]

    path = tmp_path / "ratings.csv"
    table.to_csv(path, index=False)
    done = invoke("estimate", str(path), "--p", "judge", "--label", "rating", "--quantities",
                  "quantile,ols", "--on", "length", "--q", "0.25", "--json")  # fmt: skip
    rows = json.loads(done.stdout)["tables"]["estimates"]
    assert [row["value"] for row in rows] == pytest.approx(
        estimation["estimates"]["value"].tolist()
    )


def test_numbers_as_labels_come_in_sheets_too(tmp_path: Path) -> None:
    table = rated().assign(claim="c1")
    how: dict[str, Any] = {"p": "judge", "quantities": "quantile,ols", "on": "length"}
    sheet = tmp_path / "sheet.csv"
    labeled = table[table["rating"].notna()].rename(columns={"rating": "label"})
    labeled[["response", "claim", "label"]].to_csv(sheet, index=False)
    of_sheet = estimate(table.drop(columns="rating"), labels=sheet, **how)
    of_table = estimate(table, label="rating", **how)
    pd.testing.assert_series_equal(of_sheet["estimates"]["value"], of_table["estimates"]["value"])


def test_numbers_are_refused_where_labels_are_true_or_false() -> None:
    table, how = rated(), {"p": "judge", "label": "rating"}
    # The advice works as it stands: `ols` alone wants the columns that it is on.
    refused("share is for true-or-false labels; write `quantities='mean,quantile'`", estimate,
            table, quantities="share,quantile", **how)  # fmt: skip
    refused("logistic is for true-or-false labels; write `quantities='mean,quantile,ols'`",
            estimate, table, quantities="logistic", on="length", **how)  # fmt: skip
    refused("leave out `choose`", estimate, table, quantities="quantile", choose=3, **how)
    refused("leave out `judge` learn", estimate, table, quantities="quantile", judge="learn", **how)
    refused("row 1, column 'judge': 'high' is not a prediction; give a finite number", estimate,
            table.astype(object).replace({"judge": {table["judge"][0]: "high"}}),
            quantities="quantile", **how)  # fmt: skip
    refused("labels are true or false", estimate, drawn(), quantities="mean")
    # Labels of 0 and 1 say true and false, whatever is estimated.
    binary = drawn().assign(label=lambda t: t["label"].astype(int))
    by_words = row_of(estimate(drawn(), quantities="quantile"), "quantile")
    assert row_of(estimate(binary, quantities="quantile"), "quantile")["value"] == by_words["value"]


def test_scores_undefined_by_labels_are_left_out_and_reported() -> None:
    few = drawn(n_responses=6)
    few["label"] = [True, True, *[None] * 34]
    estimated = estimate(few, quantities=("share", "auroc", "quantile", "ece"))
    assert estimated["estimates"]["quantity"].tolist() == ["share", "ece"]
    sentences = " ".join(estimated.sentences)
    for part in ("all labels that count are the same", "The quantile is left out", "in bins with"):
        assert part in sentences
    refused("name columns with `on`", estimate, drawn(), quantities="ols")
    few["on"] = ["x", *range(35)]
    refused("'x' is not a finite number", estimate, few, quantities="ols", on="on")
    refused("did you mean 'auroc'", estimate, few, quantities="auroq")


def test_labels_of_some_responses_are_a_random_sample() -> None:
    table = drawn()
    few = table.assign(
        label=table["label"].where(table["response"].isin(["r1", "r5", "r9", "r13"]))
    )
    estimation = estimate(few)
    direct = estimated(share(table["p"], few["label"].to_numpy(object), table["response"]))
    row = row_of(estimation, "share")
    # To rounding: rows may be summed in another order.
    assert row["value"] == pytest.approx(direct.value, abs=1e-12)
    assert row["value_lower"] == pytest.approx(direct.lower, abs=1e-12)
    assert set(estimation["estimates"]["quantity"]) == {"share", "mean-share", "brier", "f1-at-k"}
    assert row["n_labeled"] == 24


def test_a_sheet_is_chosen_filled_in_and_read_back_with_its_weights(tmp_path: Path) -> None:
    truth = drawn()
    data = tmp_path / "claims.csv"
    truth.drop(columns="label").to_csv(data, index=False)
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    result = invoke("estimate", str(data), "--choose", "8", "--sheet", str(first))
    rows = pd.read_csv(first)
    assert list(rows) == ["response", "claim", "text", "label", "probability", "batch"]
    assert rows["response"].nunique() == 8
    filled(first, truth)
    sheets = ["--labels", str(first)]
    more = ("--choose", "20", "--unit", "claim", "--sheet", str(second))
    invoke("estimate", str(data), *sheets, *more)
    rows = pd.read_csv(second)
    assert (len(rows), set(rows["batch"])) == (20, {2})
    filled(second, truth)
    result = invoke("estimate", str(data), *sheets, "--labels", str(second), "--json")
    content = json.loads(result.stdout)
    row = content["tables"]["estimates"][0]
    assert row["n_labeled"] == 8 * 6 + 20
    assert row["value_lower"] <= truth["label"].mean() <= row["value_upper"]
    # Twice as many looks: each at half of the chance of error.
    both = estimate(str(data), labels=[str(first), str(second)], looks=2)
    wide = row_of(both, "share")
    assert wide["level"] == pytest.approx(0.975)
    assert wide["value_lower"] < row["value_lower"]


def test_intervals_that_may_not_hold_are_named_with_what_labels_may_lack() -> None:
    table = drawn(n_responses=100)
    for n, lacks in ((12, True), (80, False)):
        rows = table.copy()
        rows["label"] = rows["label"].where(rows["response"].isin([f"r{k}" for k in range(n)]))
        estimated = estimate(rows, quantities="share,brier")
        (shown,) = [
            column for column in estimated.tables["estimates"].columns if column.title == "df"
        ]
        assert 2 < row_of(estimated, "share")[shown.name] <= n - 1
        cautions = [each for each in estimated.sentences if "may be missing" in each]
        assert len(cautions) == lacks
        if lacks:
            # The least of the effective numbers is told, with 1 - 0.05^(1/n) of it.
            least = min(row_of(estimated, name)["effective"] for name in ("share", "brier"))
            shown_size = f"{least:.1f}".removesuffix(".0")
            assert f"worth {shown_size} responses" in cautions[0]
            assert f"share of up to {1 - 0.05 ** (1 / least):.0%} may" in cautions[0]
            assert "the labels, which are worth" in cautions[0]
    # A threshold keeps claims of some responses alone, so that its precision rests on fewer.
    rows["label"] = table["label"].where(rows["response"].isin([f"r{k}" for k in range(12)]))
    high = float(rows.groupby("response")["p"].max().sort_values().iloc[-60])
    both = estimate(rows, quantities="share,kept-precision", threshold=high)
    (caution,) = [each for each in both.sentences if "may be missing" in each]
    assert "the labels, which for the precision" in caution


def test_labeled_responses_that_are_not_like_all_are_reported(tmp_path: Path) -> None:
    table = drawn(n_responses=60)
    by_p = table.groupby("response")["p"].mean().sort_values(ascending=False)
    likeliest = table["label"].where(table["response"].isin(by_p.index[:15]))
    estimated = estimate(table.assign(label=likeliest), quantities="share")
    (sentence,) = (each for each in estimated.sentences if "differ from all" in each)
    assert "mean probability" in sentence
    at_random = table["label"].where(table["response"].isin([f"r{k}" for k in range(15)]))
    estimated = estimate(table.assign(label=at_random), quantities="share")
    assert not any("differ from all" in each for each in estimated.sentences)
    # A stratified sample is chosen like any other, with the same probabilities.
    sheets = [tmp_path / name for name in ("random.csv", "stratified.csv")]
    for sheet, stratified in zip(sheets, (False, True), strict=True):
        estimate(table.assign(label=None), choose=15, sheet=sheet, stratified=stratified)
    chosen = [pd.read_csv(sheet).drop_duplicates("response") for sheet in sheets]
    assert set(chosen[0]["response"]) != set(chosen[1]["response"])
    both = chosen[0].merge(chosen[1], on="response")
    assert both["probability_x"].tolist() == pytest.approx(both["probability_y"].tolist())
    off = [abs(by_p[each["response"]].mean() - by_p.mean()) for each in chosen]
    assert off[1] < 0.05


def test_sheets_are_batches_by_what_they_say_in_any_order_and_in_one_file(tmp_path: Path) -> None:
    truth = drawn()
    bare = truth.drop(columns="label")
    paths = [str(tmp_path / f"{name}.csv") for name in ("first", "second", "both")]
    for number, path in enumerate(paths[:2]):
        estimate(bare, labels=paths[:number], choose=10, unit="claim", sheet=path)
        filled(Path(path), truth)
    pd.concat([pd.read_csv(path) for path in paths[1::-1]]).to_csv(paths[2], index=False)
    intervals = [
        row_of(estimate(bare, labels=each), "share")[["value", "value_lower", "labels"]].tolist()
        for each in (paths[:2], paths[1::-1], paths[2:])
    ]
    assert intervals[1] == pytest.approx(intervals[0], abs=1e-12)
    assert intervals[2] == pytest.approx(intervals[0], abs=1e-12)
    # A sheet that is not filled in to its end is no such sample, unless by chance.
    rows = pd.read_csv(paths[0])
    rows.assign(label=rows["label"].where(rows.index < 7)).to_csv(paths[0], index=False)
    assert any(
        "3 of 10 rows have no" in each for each in estimate(bare, labels=paths[:1]).sentences
    )
    rows.assign(batch="last").to_csv(paths[0], index=False)
    with pytest.raises(InputError, match="line 2, column 'batch': 'last' is not the number of a"):
        estimate(bare, labels=paths[:1])


def test_the_tidy_frame_has_a_row_for_each_quantity() -> None:
    estimation = estimate(drawn(), quantities="share,brier")
    frame, wide = estimation.frame, estimation["estimates"]
    assert frame["quantity"].tolist() == ["share", "brier"]
    assert frame["lower"].tolist() == wide["value_lower"].tolist()
    assert len(frame.columns) == 12


def test_a_sheet_is_reported_with_the_options_that_read_it(tmp_path: Path) -> None:
    bare, path = drawn().drop(columns="label"), tmp_path / "next sheet.csv"
    unwritten = estimate(bare, choose=3, unit="claim").sentences[0]
    assert unwritten.startswith("3 claims to label: about ")
    assert "write it to a file with `sheet` FILE" in unwritten
    written = estimate(bare, choose=1, sheet=path).sentences[0]
    assert written.startswith(f"1 response with 6 claims to label, in {path}: about ")
    assert f"pass it with `labels='{path}'`" in written
    filled(path, drawn())
    with pytest.raises(InputError, match="this sheet has 6 labels, which would be lost"):
        estimate(bare, choose=1, sheet=path)
    again = estimate(bare, labels=path, choose=1, sheet=tmp_path / "b.csv").sentences
    assert any("pass it with `labels=" in each and "together with the earlier sheets" in each
               for each in again)  # fmt: skip


@pytest.mark.parametrize(
    ("n_choices", "least"), [(24, 20), pytest.param(60, 52, marks=pytest.mark.nightly)]
)
def test_chosen_claims_keep_the_estimate_unbiased(n_choices: int, least: int) -> None:
    # Choice after choice, by the command's own probabilities, of claims whose p is too low.
    truth = drawn(3, 60)
    biased = truth.assign(p=truth["p"] * 0.7)
    covered = 0
    for seed in range(n_choices):
        sheet = estimate(biased.drop(columns="label"), choose=40, unit="claim", seed=seed)["sheet"]
        keys = set(zip(sheet["response"], sheet["claim"], strict=True))
        known = [key in keys for key in zip(truth["response"], truth["claim"], strict=True)]
        chances = sheet["probability"].to_numpy()
        weights = np.ones(len(truth))
        weights[known] = 1 / chances
        labels = truth["label"].where(known).to_numpy(object)
        expected = estimated(share(biased["p"], labels, truth["response"], weights=weights))
        covered += expected.lower <= truth["label"].mean() <= expected.upper
    # Nominal .95 of 60: fewer than 52 have a chance of 1 in 300; of 24, fewer than 20 one of 1 in
    # 200.
    assert covered >= least


def test_models_of_the_same_claims_differ_in_brier_and_others_in_all() -> None:
    table = drawn()
    few = table.assign(label=table["label"].where(table["response"] < "r3"), worse=0.5)
    estimated = estimate(few, p=["p", "worse"])
    assert list(estimated["differences"]["quantity"]) == ["brier"]
    assert list(estimated["differences"]["of"]) == ["worse minus p"]
    other = drawn(1).assign(model="b")
    other["label"] = other["label"].where(other["response"] < "r3")
    both = pd.concat([few.drop(columns="worse").assign(model="a"), other])
    estimated = estimate(both)
    assert set(estimated["differences"]["quantity"]) == {"share", "mean-share", "brier", "f1-at-k"}
    rows = estimated["estimates"].set_index(["of", "quantity"])["value"]
    shown = estimated["differences"].set_index("quantity")["value"]
    assert shown["share"] == pytest.approx(rows["b", "share"] - rows["a", "share"])


def test_judged_responses_are_read_as_they_are(tmp_path: Path) -> None:
    view = {"FR1": {"atoms": {f"a{n}": {"p": 0.2 * n} for n in range(4)}}}
    path = tmp_path / "judged.jsonl"
    for labeled in (True, False):
        truth = {n: n > 1 if labeled else None for n in range(4)}
        atoms = tuple(Atom(f"a{n}", f"T{n}.", label=truth[n]) for n in range(4))
        graphs = [FactGraph(f"g{n}", atoms, metadata={METADATA_KEY: view}) for n in range(5)]
        write_many(graphs, path)
        if labeled:
            assert row_of(estimate(str(path)), "share")["value"] == pytest.approx(0.5)
    # A claim without a posterior would be left out without a word.
    lacking = replace(graphs[0], atoms=(*graphs[0].atoms, Atom("a9", "T9.")))
    write_many([lacking, *graphs[1:]], tmp_path / "lacking.jsonl")
    refused("lack assessment.FR1.atoms.a9", estimate, str(tmp_path / "lacking.jsonl"))
    # Texts are in the sheet, for whoever labels.
    assert list(estimate(str(path), choose=1)["sheet"]["text"]) == ["T0.", "T1.", "T2.", "T3."]


def test_irrelevant_claims_are_labeled_only_with_their_response() -> None:
    graphs = list(datasets.load("factscore").graphs[:24])
    clearings: tuple[dict[str, Any], ...] = ({"label": None, "annotation": None}, {"label": None})
    labels, annotations = (
        [
            replace(graph, atoms=tuple(replace(atom, **cleared) for atom in graph.atoms))
            for graph in graphs[12:]
        ]
        for cleared in clearings
    )
    wholly, in_part = (
        estimate([*graphs[:12], *unlabeled], quantities="share")
        for unlabeled in (labels, annotations)
    )
    pd.testing.assert_frame_equal(in_part["estimates"], wholly["estimates"])
    assert in_part.sentences == wholly.sentences
    # In labeled responses, irrelevant claims count as labeled and not as true or false.
    of_labeled = [atom for graph in graphs[:12] for atom in graph.atoms]
    irrelevant = [atom for atom in of_labeled if atom.annotation == "IR"]
    assert irrelevant
    assert not any("differ from all" in each for each in in_part.sentences)
    row = row_of(in_part, "share")
    assert row["n_labeled"] == len(of_labeled)


def test_the_plan_adds_to_the_labels_at_hand() -> None:
    table = drawn()
    some = table.assign(label=table["label"].where(table["response"].isin(["r0", "r1", "r2"])))
    bare = table.drop(columns="label")
    plans = [estimate(each, choose=5).tables["plan"] for each in (bare, some)]
    alone, added = (plan.frame.set_index(["unit", "n"])["half_width"] for plan in plans)
    assert "at hand" not in plans[0].caption
    assert "added to the labels of" in plans[1].caption
    assert "3 responses at hand" in plans[1].caption
    shared = added.index.intersection(alone.index)
    assert len(shared) > 2
    assert (added[shared] < alone[shared]).all()


def test_few_claims_give_a_sheet_and_no_plan() -> None:
    few = pd.DataFrame({"claim": list("abcd"), "p": [0.9, 0.2, 0.4, 0.5], "label": [1, None, 0, 1]})
    assert set(estimate(few, choose=1).tables) == {"estimates", "sheet"}


def test_impossible_values_are_reported(tmp_path: Path) -> None:
    table = drawn()
    bare = table.drop(columns="label")
    refused("no claim has a label; choose claims", estimate, bare)
    with pytest.raises(InputError, match="no claim has a label that counts; choose claims"):
        estimate(table.assign(label="irrelevant"))
    refused(r"choose` 400: .* has 40 responses without a label", estimate, bare, choose=400)
    with pytest.raises(InputError, match=r"choose` 1: .* has a label of every claim"):
        estimate(table.assign(label=1), choose=1, unit="claim")
    refused("mean-shares", estimate, table, quantities="mean-shares")
    refused("minutes` 1: give two numbers", estimate, bare, choose=3, minutes=[1.0])
    sheet = tmp_path / "sheet.csv"
    refused("sheet.csv: there is no such file", estimate, bare, labels=sheet)
    sheet.write_text("response,claim,label\nr0,c0,yes\n")
    with pytest.raises(InputError, match="row 2: claim 'c1' of response 'r0' has the text"):
        estimate(bare.assign(claim="c1"), labels=[str(sheet)])
    rows = {"response": ["r1"], "claim": ["c9"], "label": ["yes"], "probability": [0.5]}
    pd.DataFrame(rows).to_csv(sheet, index=False)
    with pytest.raises(InputError, match="line 2: the table has no claim 'c9' of response 'r1'"):
        estimate(bare, labels=[str(sheet)])
    pd.DataFrame({**rows, "claim": ["c1"]}).to_csv(sheet, index=False)
    refused("claim 'c1' of response 'r1' already has a label", estimate, table, labels=[str(sheet)])
    pd.DataFrame({**rows, "claim": ["c1"], "probability": [0.0]}).to_csv(sheet, index=False)
    refused("sampling probability is 0", estimate, bare, labels=[str(sheet)])
    pd.DataFrame({**rows, "claim": ["c1"], "label": [""]}).to_csv(sheet, index=False)
    estimated = estimate(bare, labels=[str(sheet)], choose=2)
    assert any("no row has a label yet" in each for each in estimated.sentences)


def test_why_there_is_no_interval_is_reported() -> None:
    table = drawn(n_responses=10).assign(p=0.7, x=np.arange(60) % 6)
    table["label"] = [True if number < 24 else None for number in range(60)]
    estimated = estimate(table, quantities="share,ece,ols", on="x")
    for name in ("ECE 0.300", "linear: x 0.000"):
        (sentence,) = (each for each in estimated.sentences if each.startswith(name))
        assert "there is no interval, because labels of 4 responses are alike" in sentence
    (sentence,) = estimate(table[table["response"] == "r0"]).sentences[:1]
    assert "there is no interval, because labels are of 1 response:" in sentence


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"quantities": "auroc"}, "AUROC: all labels that count are the same; label more"),
        ({"quantities": "f1-at-k"}, "F1@K is left out: it needs responses all of whose claims"),
        (
            {"quantities": "kept-precision", "threshold": 1.0},
            "threshold is 1, but no claim has a probability that high; give a lower one",
        ),
    ],
)
def test_estimate_of_nothing_is_an_error_with_the_reason(asked: Any, message: str) -> None:
    table = drawn(n_responses=10)
    table["label"] = [True if number % 6 < 5 else None for number in range(60)]
    with pytest.raises(InputError) as caught:
        estimate(table, **asked)
    assert message in str(caught.value)
    # Others are estimated all the same, and what is to be labeled next is chosen.
    both = estimate(table, **{**asked, "quantities": f"share,{asked['quantities']}"})
    assert list(both["estimates"]["quantity"]) == ["share"]
    assert any(message in each for each in both.sentences)
    assert "estimates" not in estimate(table, choose=2, unit="claim", **asked).tables
