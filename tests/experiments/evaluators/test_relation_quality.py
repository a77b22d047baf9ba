"""A relation model against pairs whose relation is known, or of which people gave probabilities."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from calibration import auroc, score
from experiments.evaluators.relation_quality import (
    factcheck_bench_passages,
    fit_lexical,
    graded_forecasts,
    graded_scores,
    labeled_from_judged,
    labeled_pairs,
    relation_forecasts,
    relation_scores,
)
from factormodels import Atom, Context, FactGraph, InputError, Relation, RelationKind, datasets
from factormodels.claims import JUDGED_KINDS
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.relation_models.lexical import (
    COEFFICIENTS,
    INTERCEPTS,
    LexicalRelations,
)
from factormodels.extraction.relation_models.lexical_features import FEATURES
from factormodels.extraction.relation_models.recorded import recorded_in_graphs
from factormodels.io.fact_graph_json import write_fact_graphs
from factormodels.io.formats.factcheck_bench import passage_key, read_factcheck_bench
from factormodels.io.formats.items import JudgedPair
from notebooks.questions.relation_transfer import DATA, IN_SAMPLE, RESPONSES, transfer_rows
from tests.experiments.conftest import invoke
from tests.refusals import refused

E, C, N = JUDGED_KINDS


class Scripted:
    """Answers by the premise."""

    name = "scripted"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        answers: dict[str, Judgment | Missing] = {
            "One.": Judgment(E, 0.8, "verbalized"),
            "Two.": Judgment(C, 0.6, "nli", (0.1, 0.6, 0.3)),
            "Three.": Missing("lost"),
        }
        return [answers[pair.premise] for pair in pairs]


def graph() -> FactGraph:
    return FactGraph(
        "g",
        (Atom("a1", "Claim."), Atom("a2", "")),
        (Context("c1", "One."), Context("c2", "Two."), Context("c3", "Three.")),
        (
            Relation("c1", "a1", RelationKind.EQUIVALENCE, 0.9),
            Relation("c2", "a1", N, 0.9),
            Relation("c3", "a1", C, 0.9),
            Relation("c1", "a2", E, 0.9),
            Relation("c1", "c2", E, 0.9),
        ),
    )


def test_forecasts_are_the_shares_of_each_relation() -> None:
    labeled = labeled_pairs([graph()])
    assert [item.kind for item in labeled] == [E, N, C]
    forecasts = relation_forecasts(Scripted(), labeled)
    assert forecasts[E].p == pytest.approx([0.8, 0.1])
    assert forecasts[C].p == pytest.approx([0.1, 0.6])
    assert forecasts[N].p == pytest.approx([0.1, 0.3])
    assert forecasts[E].y.tolist() == [True, False]
    assert {forecasts[kind].missing for kind in JUDGED_KINDS} == {1}
    assert forecasts[E].responses.tolist() == ["g", "g"]


def test_graphs_without_texts_are_refused() -> None:
    refused("texts", labeled_pairs, datasets.load("factcheck-bench").graphs)


def test_a_model_that_knows_scores_perfectly() -> None:
    graphs = datasets.load("demonstration").graphs
    labeled = labeled_pairs(graphs, complete=True)
    model = recorded_in_graphs(graphs, unrecorded=0.99)
    rows = relation_scores(model, labeled, scores=("auroc", "brier"), n_bootstrap=20)
    for kind in JUDGED_KINDS:
        assert rows[kind]["auroc"].value == 1.0
        # The corpus's probabilities are mostly 0.8 and more.
        assert rows[kind]["brier"].value < 0.03


def test_scores_are_those_of_calibration_with_intervals_over_responses() -> None:
    labeled = labeled_pairs(datasets.load("demonstration").graphs, complete=True)
    forecasts = relation_forecasts(LexicalRelations(), labeled)
    rows = relation_scores(LexicalRelations(), labeled, scores=("auroc",), n_bootstrap=50)
    for kind in JUDGED_KINDS:
        interval = rows[kind]["auroc"]
        assert interval.value == auroc(forecasts[kind].p, forecasts[kind].y)
        assert interval.n == len({item.response for item in labeled})
        assert interval.lower < interval.value < interval.upper
    # It is a baseline: far from chance on entailment, and far from good on contradiction.
    assert rows[E]["auroc"].value > 0.9
    assert 0.6 < rows[C]["auroc"].value < 0.9


def test_the_published_coefficients_are_the_fitted_ones(shared_data: Path) -> None:
    path = shared_data / "factcheck_bench" / "factcheck-GPT-benchmark.jsonl"
    labeled = labeled_pairs(read_factcheck_bench(path, {"irrelevant": (N, 0.9)}))
    assert len(labeled) == 3098
    fit = fit_lexical(labeled)
    # Printed to two decimals; half a unit of the last and a little for the solver's own end.
    tolerance = 0.005 + 1e-3
    for row, kind in enumerate((E, C)):
        printed = [COEFFICIENTS[kind][name] for name in FEATURES]
        np.testing.assert_allclose(printed, fit.coefficients[row], atol=tolerance)
        assert INTERCEPTS[kind] == pytest.approx(fit.intercepts[row], abs=tolerance)
        holds = [item.kind is kind for item in labeled]
        area = auroc(fit.cross_validated[:, row], holds, folds=fit.folds)
        # Pooled over folds it is 0.70 and 0.71.
        assert area == pytest.approx({E: 0.704, C: 0.721}[kind], abs=tolerance)


def test_a_fit_needs_all_relations_and_enough_responses() -> None:
    labeled = labeled_pairs(datasets.load("demonstration").graphs)
    refused("15 folds", fit_lexical, labeled, folds=15)
    refused("neutral", fit_lexical, [item for item in labeled if item.kind is not N])


def test_training_data_of_a_fit_are_reported_and_matter() -> None:
    pairs = labeled_pairs(datasets.load("demonstration").graphs, complete=True)
    halves = {
        "odd": [item for item in pairs if int(item.response.split("-")[1]) % 2],
        "even": [item for item in pairs if not int(item.response.split("-")[1]) % 2],
    }
    rows = {(r["used"], r["fitted"], r["seen"]): r for r in transfer_rows(halves, 3, 0)}
    assert len(rows) == 8
    for name, other in (("odd", "even"), ("even", "odd")):
        # Fitted by penalized likelihood, which nothing that was fitted elsewhere can beat by much.
        log_loss = rows[name, name, IN_SAMPLE]["log_loss"]
        assert log_loss < rows[name, name, RESPONSES]["log_loss"]
        assert log_loss < rows[name, other, DATA]["log_loss"] + 0.01
    # AUROC of cross-fitted shares compares pairs of one fold.
    crossed = fit_lexical(halves["odd"], folds=3)
    responses = [item.response for item in halves["odd"]]
    assert len({*zip(responses, crossed.folds.tolist(), strict=True)}) == len(set(responses))
    p, y = crossed.cross_validated[:, 0], np.array([item.kind is E for item in halves["odd"]])
    auroc = score(p, y, responses, folds=crossed.folds, scores=["auroc"])["auroc"]
    row = rows["odd", "odd", RESPONSES]
    ends = [row[f"{E}{end}"] for end in ("", "_lower", "_upper")]
    assert ends == pytest.approx([auroc.value, auroc.lower, auroc.upper], rel=1e-12)
    assert 0 < ends[1] < ends[0] < ends[2] < 1
    log_loss = crossed.distributions(halves["even"])
    codes = [JUDGED_KINDS.index(item.kind) for item in halves["even"]]
    right = log_loss[np.arange(len(codes)), codes]
    assert rows["even", "odd", DATA]["log_loss"] == pytest.approx(-np.log(right).mean())


def test_pairs_that_the_lexical_model_was_fitted_to_are_known(shared_data: Path) -> None:
    path = shared_data / "factcheck_bench" / "factcheck-GPT-benchmark.jsonl"
    known = factcheck_bench_passages()
    bench = labeled_pairs(read_factcheck_bench(path))
    assert {passage_key(item.pair.premise) for item in bench} <= known
    fitted_pairs = labeled_pairs(datasets.load("demonstration").graphs)
    assert not {passage_key(item.pair.premise) for item in fitted_pairs} & known


def test_the_passages_of_the_fit_are_read_once() -> None:
    assert len(factcheck_bench_passages()) > 0
    assert factcheck_bench_passages() is factcheck_bench_passages()


def test_a_table_says_that_the_lexical_model_was_fitted_to_what_it_measures(
    shared_data: Path, tmp_path: Path
) -> None:
    bench = read_factcheck_bench(shared_data / "factcheck_bench" / "factcheck-GPT-benchmark.jsonl")
    first = next(graph for graph in bench if any(a.label is not None for a in graph.atoms))
    path = tmp_path / "first.jsonl"
    write_fact_graphs([first], path)
    printed = invoke("assess", str(path), "--relations", "lexical")
    match = re.search(r"in-sample: the lexical model was fitted to (\d+) passages", printed.stdout)
    assert match is not None
    keys = {context.key for context in first.contexts}
    assert int(match[1]) == len(keys)
    study = tmp_path / "study.yaml"
    study.write_text(
        "study: s\ndatasets: [{path: first.jsonl}]\nvariants: [FR1]\nrelation_models: [recorded, "
        "lexical]\nbackends: [exact]\nmeasures: [brier]\noutputs: [csv, report]\n"
    )
    ran = invoke("run", str(study), "--out", str(tmp_path / "out"))
    remark = f"in-sample: the lexical model was fitted to {match[1]} passages"
    assert ran.stdout.count(remark) == 1
    assert (tmp_path / "out" / "report.html").read_text().count(remark) == 1
    printed_again = invoke("assess", "demonstration", "--retriever", "local")
    assert "labeled" in printed_again.stdout
    assert "in-sample" not in printed_again.stdout


class Graded:
    """Answers by the last word of the hypothesis: three probabilities, or one of entailment."""

    name = "scripted"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        return [self.answer(pair.hypothesis.split()[-1]) for pair in pairs]

    def answer(self, word: str) -> Judgment | Missing:
        if word == "lost":
            return Missing("lost")
        shares = [float(part) for part in word.split("/")]
        if len(shares) == 1:
            return Judgment(E, shares[0], "nli")
        first, second, third = shares
        return Judgment(E, first, "nli", (first, second, third))


def judged(number: int, hypothesis: str, probability: float, premise: str = "A man.") -> JudgedPair:
    return JudgedPair(f"p{number}", premise, hypothesis, probability)


PAIRS = [
    judged(1, "He is 0.8/0.1/0.1", 0.95),
    judged(2, "He is 0.1/0.7/0.2", 0.05),
    judged(3, "He is lost", 0.4),
    judged(4, "He is 0.6", 0.5, "A woman."),
]


def test_probabilities_come_to_relations() -> None:
    labeled = labeled_from_judged(PAIRS)
    assert [item.kind for item in labeled] == [E, C, N, N]
    assert [item.response for item in labeled] == ["premise-0"] * 3 + ["premise-1"]
    # The bounds belong to the outer relations.
    edges = labeled_from_judged(
        [judged(1, "x", 0.2), judged(2, "y", 0.7)], contradicted=0.2, entailed=0.7
    )
    assert [item.kind for item in edges] == [C, E]
    forecasts = relation_forecasts(Graded(), labeled)
    assert forecasts[E].y.tolist() == [True, False, False]
    assert forecasts[E].missing == 1


def test_forecasts_share_the_neutral_part() -> None:
    forecasts = graded_forecasts(Graded(), PAIRS)
    # 0.8 + 0.1/2; 0.1 + 0.2/2; of 0.6 alone the rest 0.4 is shared: 0.6 + 0.2/2.
    assert forecasts.p == pytest.approx([0.85, 0.2, 0.7])
    assert forecasts.y.tolist() == [0.95, 0.05, 0.5]
    assert forecasts.responses.tolist() == [0, 0, 1]
    assert forecasts.missing == 1
    certain = graded_forecasts(Graded(), PAIRS, neutral=0.0)
    assert certain.p == pytest.approx([0.8, 0.1, 0.6])


def test_scores_are_those_of_scipy_and_by_hand() -> None:
    rng = np.random.default_rng(0)
    pairs = [
        judged(i, f"He is {rng.uniform():.3f}", float(rng.uniform()), f"Premise {i % 40}.")
        for i in range(200)
    ]
    forecasts = graded_forecasts(Graded(), pairs)
    scored = graded_scores(forecasts, n_bootstrap=200)
    errors = forecasts.p - forecasts.y
    expected = {
        "bias": errors.mean(),
        "mae": np.abs(errors).mean(),
        "rmse": np.sqrt((errors**2).mean()),
        "pearson": pearsonr(forecasts.p, forecasts.y).statistic,
        "spearman": spearmanr(forecasts.p, forecasts.y).statistic,
    }
    for name, interval in scored.items():
        # Sums of 200 doubles in two orders.
        assert interval.value == pytest.approx(expected[name], abs=1e-12)
        assert interval.lower < interval.value < interval.upper
        assert interval.n == 40
    assert graded_scores(forecasts, n_bootstrap=200) == scored
    narrow = graded_scores(forecasts, n_bootstrap=200, level=0.5)["mae"]
    wide = scored["mae"]
    assert wide.lower < narrow.lower < narrow.upper < wide.upper


def test_pairs_of_one_premise_stay_together() -> None:
    # One premise: every replicate is the sample, and its interval a point.
    pairs = [judged(i, f"He is {i / 10}", i / 10) for i in range(10)]
    scored = graded_scores(graded_forecasts(Graded(), pairs), n_bootstrap=20)
    for interval in scored.values():
        assert interval.interval == pytest.approx((interval.value, interval.value))


def test_a_perfect_model_has_no_error() -> None:
    pairs = [judged(i, f"He is {i / 4}/{1 - i / 4}/0", i / 4, f"P{i}") for i in range(5)]
    scores = graded_scores(graded_forecasts(Graded(), pairs), n_bootstrap=50)
    assert [scores[name].value for name in ("bias", "mae", "rmse")] == [0.0, 0.0, 0.0]
    assert scores["spearman"].value == pytest.approx(1.0)


def test_a_constant_has_no_correlation() -> None:
    pairs = [judged(i, "He is 0.5", i / 4, f"P{i}") for i in range(5)]
    scores = graded_scores(graded_forecasts(Graded(), pairs), n_bootstrap=20)
    assert np.isnan(scores["pearson"].value)
    assert scores["mae"].value > 0


def test_bad_arguments_are_reported() -> None:
    with pytest.raises(InputError, match=r"contradicted 0\.9 is not below entailed 0\.9"):
        labeled_from_judged(PAIRS, contradicted=0.9)
    refused("there are no judged pairs", labeled_from_judged, [])
    refused("neutral: the probability 2", graded_forecasts, Graded(), PAIRS, neutral=2)
    lost = graded_forecasts(Graded(), [PAIRS[2]])
    refused("none of the 1 pair was answered", graded_scores, lost)
    refused("n_bootstrap", graded_scores, graded_forecasts(Graded(), PAIRS), n_bootstrap=0)
