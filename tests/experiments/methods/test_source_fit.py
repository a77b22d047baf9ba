"""Priors of sources learned from labels: recovery of the priors that drew them, and `--prior`."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.learned_potentials.graph_potentials import Potentials, source_class
from experiments import fit, infer
from experiments.findings.findings import Findings
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.claims import SAMPLE_PRIOR, ContextKind
from factormodels.passage_sources import SOURCES_KEY
from tests.refusals import refused

pytest.importorskip("torch", reason="PyTorch, of the extra learn, is not installed")
pytestmark = pytest.mark.slow

TRUE_PRIORS = {"gazette.example": 0.95, "forum.example": 0.3}
"""Reliability of the two sources, by which labels are drawn."""

_P = 0.95


def truth_share(prior: float, kind: RelationKind) -> float:
    """Return P(claim) under one passage, by hand: odds of p to prior (1 - p) + (1 - prior) p."""
    other = prior * (1 - _P) + (1 - prior) * _P
    share = _P / (_P + other)
    return share if kind is RelationKind.ENTAILMENT else 1 - share


def drawn(n_responses: int, seed: int) -> list[FactGraph]:
    """Responses of six claims with a passage each, whose labels are drawn from the model."""
    rng = np.random.default_rng(seed)
    graphs = []
    for number in range(n_responses):
        atoms, contexts, relations = [], [], []
        for at in range(6):
            host = list(TRUE_PRIORS)[at % 2]
            kind = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)[at // 2 % 2]
            label = bool(rng.random() < truth_share(TRUE_PRIORS[host], kind))
            atoms.append(Atom(f"a{at}", label=label))
            link = f"https://{host}/{number}/{at}"
            contexts.append(Context(f"c{at}", link=link, retrieved_for=(f"a{at}",)))
            relations.append(Relation(f"c{at}", f"a{at}", kind, _P))
        graphs.append(FactGraph(f"r{number}", tuple(atoms), tuple(contexts), tuple(relations)))
    return graphs


@cache
def learned() -> Findings:
    return fit(drawn(150, 0), columns="domain", folds=3)


def table(name: str, key: str) -> dict[str, dict[Any, Any]]:
    """Return the rows of a table of the fit by one of its columns."""
    return {row[key]: row for row in learned()[name].to_dict("records")}


def test_priors_are_those_that_drew_the_labels() -> None:
    rows = table("priors", "source")
    for host, prior in TRUE_PRIORS.items():
        row = rows[host]
        assert row["prior_lower"] < prior < row["prior_upper"]
        assert row["claims"] == row["passages"] == 450
    assert rows["forum.example"]["prior_upper"] < 0.5
    sentences = " ".join(learned().sentences)
    assert "priors by source help" in sentences
    assert "Reliable with less than even odds: forum.example" in sentences


def test_intervals_from_few_responses_say_so() -> None:
    # Of 150 equal responses 59 suffice; of 40 they do not.
    assert not any("may be missing" in each for each in learned().sentences)
    few = fit(drawn(40, 1), columns="domain", folds=0)
    (sentence,) = [each for each in few.sentences if "may be missing" in each]
    row = few["priors"].set_index("source").loc["forum.example"]
    assert f"forum.example are worth {row['effective']:.1f} responses" in sentence
    assert row["effective"] < 40


def test_scores_are_of_responses_that_were_not_seen() -> None:
    rows = table("scores", "model")
    assert list(rows) == ["priors as given", "one prior", "prior by domain"]
    assert rows["prior by domain"]["difference_upper"] < 0
    assert rows["prior by domain"]["difference_shared_upper"] < 0
    assert math.isnan(rows["priors as given"]["difference"])


def test_saved_priors_give_the_learned_posteriors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graphs = drawn(40, 1)
    saved = fit(graphs, columns="domain", folds=0, save="priors.csv")
    sentences = " ".join(saved.sentences)
    assert "`prior='priors.csv'` with `prior_by='domain'`" in sentences
    assert "encoding implication" in sentences
    priors = saved["priors"].set_index("source")["prior"]
    refused("learned with the encoding implication", infer, graphs[0], variant="FR1",
            prior="priors.csv", encoding="conditional")  # fmt: skip
    posteriors = infer(graphs[0], variant="FR1", prior="priors.csv")["posteriors"]
    p = dict(zip(posteriors["variable"], posteriors["p"], strict=True))
    for at, kind in ((0, RelationKind.ENTAILMENT), (1, RelationKind.ENTAILMENT)):
        host = list(TRUE_PRIORS)[at % 2]
        assert p[f"a{at}"] == pytest.approx(truth_share(priors[host], kind), abs=1e-9)


def test_samples_are_a_kind_and_a_source_of_their_own() -> None:
    graphs = [
        replace(
            graph,
            contexts=tuple(
                replace(context, link="", prior=SAMPLE_PRIOR, kind=ContextKind.SAMPLE)
                if "forum" in context.link
                else context
                for context in graph.contexts
            ),
        )
        for graph in drawn(60, 3)
    ]
    priors = {}
    for by, other in (("kind", "passage"), ("domain", "gazette.example")):
        frame = fit(graphs, columns=by, folds=0)["priors"].set_index("source")
        assert set(frame.index) == {"sample", other}
        priors[by] = frame.loc["sample", "prior"], frame.loc[other, "prior"]
        row = frame.loc["sample"]
        assert row["prior_lower"] < TRUE_PRIORS["forum.example"] < row["prior_upper"]
    assert priors["kind"] == pytest.approx(priors["domain"], abs=1e-6)


def test_rare_sources_share_a_prior() -> None:
    graphs = drawn(10, 2)
    odd = FactGraph(
        "odd",
        (Atom("a", label=True), Atom("b", label=False)),
        (Context("c", retrieved_for=("a",)), Context("d", prior=0.7, retrieved_for=("b",))),
        (
            Relation("c", "a", RelationKind.ENTAILMENT, _P),
            Relation("d", "b", RelationKind.ENTAILMENT, _P),
        ),
        metadata={SOURCES_KEY: {"c": "diary"}},
    )
    frame = fit([*graphs, odd], columns="source", folds=0)["priors"].set_index("source")
    # The diary is among the others; a passage with a prior of its own is not.
    assert frame.loc["*", "passages"] == 1
    assert set(frame.index) == {*TRUE_PRIORS, "*"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "domain,evidence"}, "learn priors and cannot be combined"),
        ({"columns": "domain", "causes": "none"}, "learns priors of passages; leave one out"),
        ({"columns": "domain", "save": "priors.json"}, "name a file that ends in .csv"),
        ({"columns": "domain", "folds": 1}, "`folds` 1 does not fit"),
    ],
)
def test_options_of_a_judge_are_refused(options: dict[str, object], message: str) -> None:
    refused(message, fit, drawn(4, 0), **options)


def test_passages_without_a_source_are_refused() -> None:
    graph = FactGraph(
        "r",
        (Atom("a", label=True),),
        (Context("c"),),
        (Relation("c", "a", RelationKind.ENTAILMENT, 0.9),),
    )
    refused("no passage states its domain", fit, [graph], columns="domain", folds=0)
    refused("learn 'context_prior' too", Potentials, contexts_by=source_class("domain", ()))
