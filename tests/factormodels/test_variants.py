"""FR1, FR2, FR3: which relations each view keeps, and that FR1 is a forest whatever comes in."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factormodels import Atom, Context, FactGraph, FactorGraph, Relation, variant
from factormodels.claims import RelationKind
from factormodels.variants import (
    VARIANTS,
    fr1,
    fr2,
    fr3,
    merge_duplicate_contexts,
    normalized_text,
)
from tests.factormodels.graphs import in_words
from tests.refusals import refused


def graph_of(atoms: int, contexts: list[Context], relations: str = "", **fields: Any) -> FactGraph:
    """Return a graph of `atoms` atoms with relations as in "c1 a1 entailment 0.9, c1 c2 ..."."""
    each = (relation.split() for relation in relations.split(",") if relation)
    return FactGraph(
        "r",
        tuple(Atom(f"a{i}") for i in range(1, atoms + 1)),
        tuple(contexts),
        tuple(Relation(x, y, RelationKind(kind), float(p)) for x, y, kind, p in each),
        **fields,
    )


@st.composite
def fact_graphs(draw: st.DrawFn) -> FactGraph:
    """Any relations between any texts, in both orders; duplicates by key and by text."""
    atoms = [f"a{i}" for i in range(1, draw(st.integers(1, 4)) + 1)]
    contexts = [
        Context(
            f"c{i}",
            text=draw(st.sampled_from(["", "One", " one ", "two"])),
            key=draw(st.sampled_from([None, None, "k"])),
            retrieved_for=tuple(draw(st.lists(st.sampled_from(atoms), max_size=3))),
        )
        for i in range(1, draw(st.integers(0, 5)) + 1)
    ]
    ids = atoms + [context.id for context in contexts]
    pairs = [(x, y) for x in ids for y in ids if x != y]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    relations = (
        Relation(*pair, draw(st.sampled_from(list(RelationKind))), draw(st.floats(0.0, 1.0)))
        for pair in chosen
    )
    return replace(graph_of(len(atoms), contexts), relations=tuple(relations))


def is_forest(graph: FactorGraph) -> bool:
    # Two factors over one pair close a cycle of the factor graph, as any longer cycle does.
    joined = nx.MultiGraph()
    joined.add_nodes_from(range(graph.n_variables))
    joined.add_edges_from(pair for scope, _ in graph.factors() for pair in pairwise(scope))
    return bool(nx.is_forest(joined))


@given(fact_graphs())
def test_fr1_is_a_forest_of_stars_around_atoms(graph: FactGraph) -> None:
    view = fr1(graph)
    assert is_forest(view.to_factor_graph())
    assert view.atoms == graph.atoms
    atoms = set(view.atom_ids)
    for context in view.contexts:
        (atom,) = context.retrieved_for
        joined = [r for r in view.relations if context.id in (r.source, r.target)]
        assert len(joined) <= 1
        assert all({r.source, r.target} == {context.id, atom} for r in joined)
    assert all((r.source in atoms) != (r.target in atoms) for r in view.relations)


@given(fact_graphs(), st.sampled_from(["FR1", "FR2", "FR3"]))
def test_views_are_idempotent(graph: FactGraph, name: str) -> None:
    view = variant(graph, name)
    assert variant(view, name) == view


@given(fact_graphs())
def test_fr2_relates_atoms_to_contexts_alone_once_a_pair(graph: FactGraph) -> None:
    view = fr2(graph)
    atoms = set(view.atom_ids)
    pairs = [frozenset((r.source, r.target)) for r in view.relations]
    assert len(pairs) == len(set(pairs))
    assert all(len(pair & atoms) == 1 for pair in pairs)


@given(fact_graphs())
def test_fr3_adds_one_relation_per_pair_of_contexts_to_fr2(graph: FactGraph) -> None:
    view = fr3(graph)
    atoms = set(view.atom_ids)
    evidence = [r for r in view.relations if r.source in atoms or r.target in atoms]
    assert tuple(evidence) == fr2(graph).relations
    assert view.contexts == fr2(graph).contexts
    pairs = [frozenset((r.source, r.target)) for r in view.relations]
    assert len(pairs) == len(set(pairs))
    recorded = {frozenset((r.source, r.target)) for r in merge_duplicate_contexts(graph).relations}
    between = {pair for pair in recorded if not pair & atoms}
    assert between == {pair for pair in pairs if not pair & atoms}


@given(fact_graphs())
def test_merging_keeps_the_first_of_each_kind_and_all_provenance(graph: FactGraph) -> None:
    merged = merge_duplicate_contexts(graph)
    identities = [context.key or normalized_text(context.text) for context in merged.contexts]
    named = [identity for identity in identities if identity]
    assert len(named) == len(set(named))
    assert set(merged.context_ids) <= set(graph.context_ids)
    order = [graph.context_ids.index(name) for name in merged.context_ids]
    assert order == sorted(order)
    before = {atom for context in graph.contexts for atom in context.retrieved_for}
    after = {atom for context in merged.contexts for atom in context.retrieved_for}
    assert after == before
    assert merge_duplicate_contexts(merged) == merged


def test_variants_by_name() -> None:
    graph = graph_of(1, [Context("c1")], "c1 a1 entailment 0.8")
    assert list(VARIANTS) == ["given", "FR1", "FR2", "FR3"]
    assert variant(graph, "given") is graph
    refused(r"'fr2' is unknown .did you mean 'FR2'.*; use one of given, FR1, FR2, FR3",
            variant, graph, "fr2")  # fmt: skip


def test_fr1_copies_a_shared_context_for_each_atom() -> None:
    graph = graph_of(
        3,
        [Context("c", text="t", prior=0.7, link="l", retrieved_for=("a2", "a1"))],
        "c a1 entailment 0.6, c a2 entailment 0.7, c a3 entailment 0.8",
    )
    view = fr1(graph)
    assert view.context_ids == ("c@a2", "c@a1")
    assert {(c.text, c.prior, c.link) for c in view.contexts} == {("t", 0.7, "l")}
    assert in_words(view.relations) == "c@a2 a2 entailment 0.7, c@a1 a1 entailment 0.6"


def test_fr1_keeps_a_context_of_one_atom_as_it_is_and_drops_other_relations() -> None:
    graph = graph_of(
        2,
        [Context("c1", retrieved_for=("a1",)), Context("c2", retrieved_for=("a2",))],
        "c1 a1 entailment 0.8, c1 a2 entailment 0.8, c1 c2 contradiction 0.9, a1 a2 equivalence .9",
    )
    view = fr1(graph)
    # c2 stays although nothing relates it: it was retrieved for a2.
    assert view.contexts == graph.contexts
    assert in_words(view.relations) == "c1 a1 entailment 0.8"


def test_fr1_takes_the_atoms_of_its_relations_where_provenance_was_not_recorded() -> None:
    graph = graph_of(
        2,
        [Context("c1"), Context("c2"), Context("c3")],
        "c1 a2 entailment 0.8, a1 c1 contradiction 0.7, c2 c1 entailment 0.9, c3 a1 neutral 0.9",
    )
    view = fr1(graph)
    assert (
        in_words(view.relations)
        == "c1@a2 a2 entailment 0.8, a1 c1@a1 contradiction 0.7, c3 a1 neutral 0.9"
    )
    assert view.context_ids == ("c1@a2", "c1@a1", "c3")


def test_fr1_gives_what_was_retrieved_for_the_question_to_no_atom() -> None:
    contexts = [Context("c1", retrieved_for=("a1",)), Context("c2")]
    graph = graph_of(2, contexts, "c1 a1 entailment 0.8, c2 a1 contradiction 0.9")
    view = fr1(graph)
    assert (view.context_ids, in_words(view.relations)) == (("c1",), "c1 a1 entailment 0.8")
    assert len(fr2(graph).relations) == 2


def test_equal_snippets_without_a_text_are_one_context() -> None:
    contexts = [
        Context("c1", snippet="It is red.", title="A", retrieved_for=("a1",)),
        Context("c2", snippet="IT is  red.", title="B", retrieved_for=("a2",)),
        Context("c3", "Text.", snippet="It is red."),
        Context("c4", title="A"),
        Context("c5", title="A"),
    ]
    merged = fr2(graph_of(2, contexts))
    assert merged.context_ids == ("c1", "c3", "c4", "c5")
    assert merged.contexts[0].retrieved_for == ("a1", "a2")


@pytest.mark.parametrize("name", ["FR1", "FR2", "FR3"])
def test_relation_from_the_context_counts_if_both_orders_are_recorded(name: str) -> None:
    contexts = [Context("c1", retrieved_for=("a1",)), Context("c2", retrieved_for=("a1",))]
    one_order = "c1 a1 contradiction 0.6, a1 c2 entailment 0.7"
    view = variant(graph_of(1, contexts, f"a1 c1 entailment 0.9, {one_order}"), name)
    assert in_words(view.relations) == one_order


def test_an_atom_and_a_context_that_entail_each_other_make_no_equivalence() -> None:
    both = "c1 a1 entailment 0.9, a1 c1 entailment 0.8"
    assert in_words(fr3(graph_of(1, [Context("c1")], both)).relations) == "c1 a1 entailment 0.9"


def test_fr2_merges_by_key_before_text() -> None:
    contexts = [
        Context("c1", text="One  passage.", retrieved_for=("a1",), prior=0.6),
        Context("c2", text="one passage.\n", retrieved_for=("a2", "a1"), prior=0.9),
        Context("c3", text="One passage.", key="p", retrieved_for=("a1",)),
        Context("c4", text="Another.", key="p", retrieved_for=("a3",)),
        Context("c5", retrieved_for=("a3",)),
        Context("c6", retrieved_for=("a3",)),
    ]
    view = fr2(graph_of(3, contexts))
    # A key and a text are different identities, and contexts without either have none.
    assert view.context_ids == ("c1", "c3", "c5", "c6")
    assert [c.retrieved_for for c in view.contexts] == [
        *(("a1", "a2"), ("a1", "a3"), ("a3",), ("a3",))
    ]
    assert view.contexts[0].prior == 0.6
    assert view.contexts[0].text == "One  passage."


def test_merged_contexts_keep_the_most_telling_relation() -> None:
    contexts = [Context(f"c{i}", key="p") for i in (1, 2, 3)] + [Context("c4")]
    relations = (
        "c1 a1 neutral 0.99, c1 a2 entailment 0.7, c2 a1 contradiction 0.6, c2 a2 contradiction "
        "0.9, c3 a2 entailment 0.9, c1 c2 equivalence 0.99, c3 c4 entailment 0.8"
    )
    merged = merge_duplicate_contexts(graph_of(2, contexts, relations))
    assert (
        in_words(merged.relations)
        == "c1 a1 contradiction 0.6, c1 a2 contradiction 0.9, c1 c4 entailment 0.8"
    )


@pytest.mark.parametrize(
    ("first", "other", "kept"),
    [
        ("entailment 0.9", "entailment 0.7", "c1 c2 equivalence 0.7"),
        ("entailment 0.7", "entailment 0.9", "c1 c2 equivalence 0.7"),
        ("entailment 0.9", "neutral 0.95", "c1 c2 entailment 0.9"),
        ("neutral 0.95", "entailment 0.9", "c2 c1 entailment 0.9"),
        ("contradiction 0.8", "contradiction 0.8", "c1 c2 contradiction 0.8"),
        ("contradiction 0.7", "contradiction 0.8", "c2 c1 contradiction 0.8"),
        ("entailment 0.9", "contradiction 0.8", "c1 c2 entailment 0.9"),
        ("entailment 0.8", "equivalence 0.9", "c2 c1 equivalence 0.9"),
        ("neutral 0.8", "neutral 0.9", "c2 c1 neutral 0.9"),
    ],
)
def test_fr3_makes_one_relation_of_both_orders_between_contexts(
    first: str, other: str, kept: str
) -> None:
    graph = graph_of(1, [Context("c1"), Context("c2")], f"c1 c2 {first}, c2 c1 {other}")
    assert in_words(fr3(graph).relations) == kept


def test_fr3_keeps_single_orders_and_the_order_of_recording() -> None:
    contexts = [Context(f"c{i}") for i in (1, 2, 10)]
    relations = (
        "c10 c2 contradiction 0.9, c10 a1 entailment 0.8, c1 c2 entailment 0.7, "
        "c2 a1 contradiction 0.6"
    )
    graph = graph_of(2, contexts, f"{relations}, a1 a2 equivalence 0.9")
    assert in_words(fr3(graph).relations) == relations
    assert in_words(fr2(graph).relations) == "c10 a1 entailment 0.8, c2 a1 contradiction 0.6"


def test_views_keep_what_they_do_not_concern() -> None:
    graph = graph_of(1, [Context("c1")], query="q", response="x", metadata={"k": 1})
    for name in VARIANTS:
        view = variant(graph, name)
        assert (view.id, view.query, view.response) == ("r", "q", "x")
        assert view.metadata == {"k": 1}


@pytest.mark.parametrize(
    ("first", "other"),
    [("A  b\tc", "a b c"), ("ﬁne", "fine"), ("STRASSE", "straße"), ("caf\u00e9", "cafe\u0301"),
     (" x ", "x"), ("a\u00a0b", "a b"), (" \n", "")],
)  # fmt: skip
def test_texts_that_differ_in_form_alone_are_the_same(first: str, other: str) -> None:
    assert normalized_text(first) == normalized_text(other)


def test_texts_that_differ_in_content_are_not_the_same() -> None:
    assert normalized_text("It is true.") != normalized_text("It is not true.")


def test_a_view_that_changes_nothing_is_the_graph_itself() -> None:
    contexts = [Context("c1", text="one", retrieved_for=("a1",)), Context("c2", text="two")]
    relations = [Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9)]
    graph = FactGraph("r", [Atom("a1")], contexts, relations, metadata={"k": 1})  # type: ignore[arg-type]
    assert variant(graph, "FR2") is graph
    assert variant(graph, "FR3") is graph
    back = Relation("a1", "c1", RelationKind.ENTAILMENT, 0.8)
    both = replace(graph, relations=(*graph.relations, back))
    view = variant(both, "FR2")
    # What is derived without validation is what validation would have let through.
    assert view == graph == replace(view)
    assert view.metadata == both.metadata
