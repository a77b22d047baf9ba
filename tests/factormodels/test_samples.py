"""Sampled answers as contexts: what is merged, searched, related and given a prior."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.claims import SAMPLE_PRIOR, ContextKind
from factormodels.conventions import GraphConventions
from factormodels.extraction.retrieval.base import Passage, Retrieved
from factormodels.extraction.retrieval.documents import documents_of_graphs
from factormodels.extraction.stages.relations import relation_pairs
from factormodels.extraction.stages.retrieval import with_contexts
from factormodels.io.fact_graph_json import fact_graph_object, parse_fact_graph
from factormodels.samples import (
    sample_contexts,
    samples_alone,
    with_samples,
    without_samples,
)
from factormodels.variants import has_default_prior, merge_duplicate_contexts, variant
from inference import infer
from tests.refusals import refused

P = 0.9


def sampled(*texts: str) -> FactGraph:
    """A claim and a passage that entails it, with sampled answers."""
    graph = FactGraph(
        "r",
        (Atom("a1", "Basalt is a rock."),),
        (Context("c1", "Basalt is igneous.", retrieved_for=("a1",)),),
        (Relation("c1", "a1", RelationKind.ENTAILMENT, P),),
    )
    return with_samples(graph, texts)


def test_equal_samples_each_count_and_equal_passages_do_not() -> None:
    graph = sampled("Yes.", "Yes.", "Basalt is igneous.")
    again = Context("c2", "Basalt is igneous.", retrieved_for=("a1",))
    doubled = FactGraph("r", graph.atoms, (*graph.contexts, again), graph.relations)
    merged = merge_duplicate_contexts(doubled)
    assert merged.context_ids == ("c1", "s1", "s2", "s3")
    assert merged.sample_ids == {"s1", "s2", "s3"}


def test_names_of_samples_are_free() -> None:
    graph = FactGraph("r", (Atom("s1", "x"),), (Context("s3", "y"),))
    assert with_samples(graph, ["a", "b"]).context_ids == ("s3", "s2", "s4")
    assert [c.id for c in sample_contexts(["a", "  ", "b"])] == ["s1", "s2"]


@pytest.mark.parametrize("kind", list(RelationKind)[:2])
def test_the_prior_of_a_sample_is_its_strength(kind: RelationKind) -> None:
    """P by hand: each context multiplies the odds by p over prior (1 - p) + (1 - prior) p."""
    graph = without_samples(sampled())
    graph = with_samples(FactGraph("r", graph.atoms), ["One.", "Two."])
    graph = FactGraph(
        "r", graph.atoms, graph.contexts,
        tuple(Relation(context, "a1", kind, P) for context in graph.context_ids),
    )  # fmt: skip
    for prior in (SAMPLE_PRIOR, 0.8):
        conventions = GraphConventions(prior=f"sample={prior}", prior_by="kind")
        seen = variant(graph, "FR1", conventions)
        odds = (P / (prior * (1 - P) + (1 - prior) * P)) ** 2
        wanted = odds / (1 + odds) if kind is RelationKind.ENTAILMENT else 1 / (1 + odds)
        p = infer(seen.to_factor_graph(), "exact").marginals["a1"][1]
        assert math.isclose(p, wanted, rel_tol=1e-9)


def test_priors_of_passages_leave_samples_alone() -> None:
    graph = sampled("Yes.")
    assert all(map(has_default_prior, graph.contexts))

    def priors(**stated: object) -> list[float]:
        seen = variant(graph, "FR2", GraphConventions(**stated))  # type: ignore[arg-type]
        return [context.prior for context in seen.contexts]

    assert priors(context_prior=0.8) == [0.8, SAMPLE_PRIOR]
    assert priors(prior="passage=0.7", prior_by="kind") == [0.7, SAMPLE_PRIOR]
    for by in ("domain", "source", "kind"):
        assert priors(prior="sample=0.6", prior_by=by) == [0.99, 0.6]


def test_samples_are_not_searched_and_stay_when_passages_are_replaced() -> None:
    class Finding:
        name = "finding"

        def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
            return [Retrieved((Passage("", "", "", "Basalt sinks."),)) for _ in queries]

    graph = sampled("Yes.")
    assert [document.text for document in documents_of_graphs([graph])] == ["Basalt is igneous."]
    clash = FactGraph(
        "r", graph.atoms, (Context("c1", "No.", kind=ContextKind.SAMPLE), *graph.contexts[1:])
    )
    merged = with_contexts(clash, Finding(), ["basalt"])
    assert [(c.id, c.text) for c in merged.contexts] == [
        ("c2", "Basalt sinks."), ("c1", "No."), ("s1", "Yes."),
    ]  # fmt: skip
    assert merged.metadata["retrieval"]["contexts"] == 1


def test_samples_are_compared_with_claims_and_not_with_each_other() -> None:
    graph = with_samples(
        FactGraph(
            "r", (Atom("a1", "x"), Atom("a2", "y")), (Context("c1", "z"), Context("c2", "w"))
        ),
        ["s", "t"],
    )
    pairs = {(pair.source, pair.target) for pair in relation_pairs(graph, "FR3")}
    claims = {(c, a) for c in graph.context_ids for a in graph.atom_ids}
    assert pairs == claims | {("c1", "c2"), ("c2", "c1")}
    assert {p.source for p in relation_pairs(graph, "FR1")} == {"s1", "s2"}


def test_graphs_are_split_by_the_kind_of_contexts() -> None:
    graph = sampled("Yes.")
    graph = FactGraph(
        "r", graph.atoms, graph.contexts,
        (*graph.relations, Relation("s1", "a1", RelationKind.CONTRADICTION, P)),
    )  # fmt: skip
    assert without_samples(graph).relations == graph.relations[:1]
    assert samples_alone(graph).relations == graph.relations[1:]
    assert samples_alone(graph).context_ids == ("s1",)


def test_the_kind_of_a_context_is_written_and_read() -> None:
    graph = sampled("Yes.")
    written = fact_graph_object(graph)
    assert ["kind" in node for node in written["nodes"]] == [False, False, True]
    assert parse_fact_graph(written, "r.json") == graph
    written["nodes"][2]["kind"] = "sampel"
    refused("nodes.2.: key 'kind': 'sampel' is unknown.*'sample'", parse_fact_graph, written, "r")
    refused("context 'c': the kind 'web' is unknown", Context, "c", kind="web")
