"""The share of true claims without labels: a likelihood's maximum, found again when drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.learned_priors import (
    AdaptationStatus,
    AdaptedPrior,
    Specification,
    adapt_prior,
    fit,
)
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.extraction.pipeline import relation_stage, retrieval_stage
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.retrieval.bm25 import build_collection
from factormodels.extraction.retrieval.documents import Document
from factormodels.factor_graph import FactorGraph
from factormodels.io import read_many
from factormodels.io.published.factscore import with_passages
from factormodels.synthetic import Uniform, labelled_responses
from factormodels.variants import variant
from tests.calibration.learned_priors.data import small_graphs
from tests.oracle import oracle
from tests.refusals import refused


def lone(p: list[float]) -> list[FactGraph]:
    return [FactGraph(f"r{at}", (Atom("a", prior=value),)) for at, value in enumerate(p)]


def labelled_as(graphs: list[FactGraph], true: int, of: int) -> list[FactGraph]:
    """Return copies with the same evidence for true claims as for false ones, so many of them."""
    return [
        replace(
            graph,
            id=f"{graph.id} {copy}",
            atoms=tuple(replace(atom, label=copy < true) for atom in graph.atoms),
        )
        for graph in graphs
        for copy in range(of)
    ]


def log_likelihood(graphs: list[FactGraph], share: float, old: float) -> float:
    """Return the log likelihood of a share, by enumeration of every response."""
    total = 0.0
    for graph in graphs:
        plain = graph.to_factor_graph("implication")
        n = len(graph.atoms)
        tables = plain.log_values.copy()
        tables[: 2 * n] += np.tile([np.log((1 - share) / (1 - old)), np.log(share / old)], n)
        shifted = replace(plain, log_values=tables)
        assert isinstance(shifted, FactorGraph)
        total += oracle(shifted).log_z - oracle(plain).log_z
    return total


def test_the_share_maximises_the_likelihood_of_graphs_with_cycles() -> None:
    graphs = small_graphs(2, 6)
    found = adapt_prior(graphs, labelled_as(graphs, 2, 5), tolerance=1e-12)
    assert found.status is AdaptationStatus.CONVERGED
    best = log_likelihood(graphs, found.share, 0.4)
    for other in (found.share - 0.01, found.share + 0.01, 0.4):
        assert log_likelihood(graphs, other, 0.4) < best
    assert found.lower < found.share < found.upper
    # The fixed point: the mean posterior of all atoms is the share.
    means = [
        oracle(found.apply(graph).to_factor_graph("implication")).marginals[atom.id][1]
        for graph in graphs
        for atom in graph.atoms
    ]
    assert np.mean(means) == pytest.approx(found.share, abs=1e-9)


def test_of_independent_atoms_it_is_the_em_of_class_posteriors() -> None:
    p = np.random.default_rng(0).beta(2, 2, 200)
    share, old = 0.6, 0.6
    for _ in range(5000):
        odds = p / (1 - p) * share / (1 - share) * (1 - old) / old
        share = float((odds / (1 + odds)).mean())
    alone = lone(p.tolist())
    found = adapt_prior(alone, labelled_as(alone, 3, 5), n_bootstrap=50)
    assert found.share == pytest.approx(share, abs=1e-6)


def test_a_drawn_share_is_within_the_interval_and_labels_play_no_part() -> None:
    def drawn(rate: float, seed: int) -> list[FactGraph]:
        return list(
            labelled_responses(
                50,
                n_atoms=(6, 12),
                contexts_per_atom=2,
                strength=Uniform(0.6, 0.95),
                truth_rate=rate,
                reliability=0.99,
                seed=seed,
            )
        )

    known = drawn(0.5, 3)
    learned = fit(known, Specification(), penalty=3.0)
    labelled = learned.apply_all(known)
    new = learned.apply_all(drawn(0.2, 4))
    found = adapt_prior(new, labelled)
    assert found.lower < 0.2 < found.upper
    assert found.upper < 0.35
    blind = [replace(g, atoms=tuple(replace(a, label=None) for a in g.atoms)) for g in new]
    assert adapt_prior(blind, labelled) == found


def test_what_does_not_determine_a_share_is_said() -> None:
    # Evidence that says nothing leaves every share as likely.
    relation = Relation("c", "a", RelationKind.ENTAILMENT, 0.5)
    nothing = [
        FactGraph(f"r{at}", (Atom("a", prior=0.4),), (Context("c"),), (relation,))
        for at in range(4)
    ]
    found = adapt_prior(nothing, labelled_as(nothing, 2, 5))
    assert found.status is AdaptationStatus.UNIDENTIFIED
    assert np.isnan(found.lower)
    certain = lone([0.9] * 5)
    sure = adapt_prior(certain, labelled_as(certain, 3, 10))
    assert sure.status is AdaptationStatus.BOUNDARY
    assert np.isnan(sure.lower)


def drawn_evidence(n: int, truth_rate: float, seed: int, **changed: Any) -> tuple[FactGraph, ...]:
    settings: dict[str, Any] = {
        "n_atoms": (4, 12),
        "contexts_per_atom": 2,
        "strength": Uniform(0.55, 0.95),
        "reliability": 0.95,
    }
    return labelled_responses(n, **{**settings, **changed}, truth_rate=truth_rate, seed=seed)


def adapted(known: Sequence[FactGraph], new: Sequence[FactGraph]) -> AdaptedPrior:
    learned = fit(known, Specification(), penalty=3.0)
    return adapt_prior(learned.apply_all(new), learned.apply_all(known), n_bootstrap=200)


@pytest.mark.slow
@pytest.mark.parametrize(("n_known", "n_new"), [(30, 30), (60, 5)])
def test_a_share_that_alone_changed_is_refused_no_more_often_than_stated(
    n_known: int, n_new: int
) -> None:
    refusals = sum(
        adapted(
            drawn_evidence(n_known, 0.5, 2 * seed), drawn_evidence(n_new, rate, 2 * seed + 1)
        ).evidence_p
        < 0.05
        for seed in range(20)
        for rate in (0.2, 0.85)
    )
    # Of 40 tests at 5 %, seven or more fail with probability 0.003.
    assert refusals <= 6


@pytest.mark.parametrize(
    "changed",
    [
        {"contexts_per_atom": 5},
        {"reliability": 0.3},
        {"strength": Uniform(0.5, 0.6)},
        {"error_rate": 0.45},
    ],
)
def test_evidence_that_changed_otherwise_has_no_share(changed: dict[str, Any]) -> None:
    known = drawn_evidence(40, 0.5, 0)
    found = adapted(known, drawn_evidence(40, 0.8, 1, **changed))
    assert found.status is AdaptationStatus.OTHER_EVIDENCE
    assert found.evidence_p < 0.05
    assert np.isnan([found.share, found.lower, found.upper, found.standard_error]).all()
    graph = known[0]
    assert found.apply(graph) is graph, "the learned prior stays"


def test_one_response_cannot_be_compared() -> None:
    known = drawn_evidence(20, 0.5, 0)
    found = adapted(known, drawn_evidence(1, 0.8, 1))
    assert found.status is AdaptationStatus.TOO_FEW
    assert np.isnan([found.share, found.evidence_p]).all()


@pytest.mark.slow
def test_retrieval_from_all_topics_is_told_from_another_share(shared_data: Path) -> None:
    """Biographies whose passages are found among those of the others' topics."""
    known, own, others = biographies(shared_data)
    kept = adapted(known, own)
    assert kept.determined
    assert adapted(known, others).status is AdaptationStatus.OTHER_EVIDENCE


def biographies(data: Path) -> tuple[list[FactGraph], list[FactGraph], list[FactGraph]]:
    """Every other biography; the rest with passages of their topics, and with those of others."""
    source = data / "factscore_chatgpt" / "ChatGPT.jsonl"
    read = with_passages(read_many(source), data / "factscore_chatgpt" / "passages_bm25.jsonl.gz")
    labelled = [graph for graph in read if graph.metadata["annotated"]]
    judge = relation_stage(LexicalRelations(), "FR1")
    first, second = ([variant(judge(g), "FR1") for g in labelled[at::2]] for at in (0, 1))
    documents = {c.text: Document(c.title, "", c.text) for g in labelled[::2] for c in g.contexts}
    search = retrieval_stage(build_collection(documents.values(), top_k=5))
    elsewhere = [variant(judge(search(graph)), "FR1") for graph in labelled[1::2]]
    return first, second, elsewhere


def test_bad_input_is_refused() -> None:
    alone = lone([0.3, 0.5])
    known = labelled_as(alone, 1, 2)
    refused("no claim has a label", adapt_prior, alone, alone)
    refused("all 4 labels are true", adapt_prior, alone, labelled_as(alone, 2, 2))
    with pytest.raises(ValueError, match="is part of the tables of relations too"):
        adapt_prior(alone, known, encoding="conditional")
    refused("no response", adapt_prior, [], known)
