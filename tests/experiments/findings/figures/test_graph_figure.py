"""A drawn fact graph shows every node and relation, and what it is given for the claims."""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO

import pytest
from matplotlib.patches import FancyArrowPatch

from experiments.findings.figures.graph_figure import (
    MOST_RELATIONS,
    MOST_ROWS,
    RELATION_DASHES,
    draw_fact_graph,
    in_words,
    legible,
    to_dot,
)
from factormodels import Atom, Context, FactGraph, InputError, Relation, variant
from factormodels.claims import RelationKind
from factormodels.datasets import load
from tests.refusals import refused

GRAPH = FactGraph(
    "r",
    atoms=(Atom("a1", 'She said "x" and paid $5 or $6.', label=True), Atom("a2", prior=0.25)),
    contexts=(Context("c1", "A passage"), Context("c2", title="A title"), Context("c3")),
    relations=(
        Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),
        Relation("c2", "a2", RelationKind.CONTRADICTION, 0.8),
        Relation("c1", "c2", RelationKind.EQUIVALENCE, 0.7),
        Relation("a1", "a2", RelationKind.NEUTRAL, 0.6),
    ),
)


def arrows(graph: FactGraph, neutral: bool = False) -> list[FancyArrowPatch]:
    axes = draw_fact_graph(graph, neutral=neutral).axes[0]
    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def texts(graph: FactGraph, posteriors: dict[str, float] | None = None) -> list[str]:
    return [text.get_text() for text in draw_fact_graph(graph, posteriors).axes[0].texts]


def test_every_relation_is_an_arrow_as_thick_as_it_is_probable() -> None:
    drawn = arrows(GRAPH)
    assert len(drawn) == 3
    assert [round(arrow.get_linewidth(), 6) for arrow in drawn] == [1.38, 1.26, 1.14]
    assert len({arrow.get_edgecolor() for arrow in drawn}) == 3
    assert len(arrows(GRAPH, neutral=True)) == 4


def test_every_kind_is_drawn_in_a_way_of_its_own() -> None:
    kinds = [kind for kind in RelationKind if kind is not RelationKind.NEUTRAL]
    claims = tuple(Atom(f"a{at}") for at in range(len(kinds) + 1))
    relations = tuple(
        Relation(claims[at].id, claims[at + 1].id, kind, 0.9) for at, kind in enumerate(kinds)
    )
    graph = FactGraph("r", claims, relations=relations)
    drawn = arrows(graph)
    # Either tells them apart: the color on a screen, the dashes in a print.
    assert len(drawn) == len({str(arrow.get_edgecolor()) for arrow in drawn}) == 5
    assert len({str(RELATION_DASHES[kind]) for kind in kinds}) == 5
    dot = to_dot(graph).splitlines()
    ways = {tuple(sorted(re.findall(r'(?:color|style)="[^"]*"', line))) for line in dot}
    assert len(ways - {()}) == 5


def test_kinds_are_named_in_words_and_the_legend_is_whole() -> None:
    figure = draw_fact_graph(load("at-odds").graphs[0])
    (legend,) = figure.legends
    named = {text.get_text() for text in legend.get_texts()}
    assert {"exclusive: exactly one", "co-necessity: at least one", "equivalence"} <= named
    figure.canvas.draw()
    box, page = legend.get_window_extent(), figure.bbox
    assert page.x0 <= box.x0 < box.x1 <= page.x1
    assert [in_words(relation) for relation in load("at-odds").graphs[0].relations[:6]] == [
        "a1 entails a2",
        "a3 says the same as a4",
        "exactly one of a3 and a5 holds",
        "a4 contradicts a5",
        "a6 contradicts a7",
        "at least one of a8 and a9 holds",
    ]


def test_the_legend_names_human_labels_only_where_there_are_some() -> None:
    graph = load("demonstration").graphs[0]
    bare = replace(graph, atoms=tuple(replace(atom, label=None) for atom in graph.atoms))
    for drawn, has_labels in ((graph, True), (bare, False)):
        (legend,) = draw_fact_graph(drawn).legends
        named = [text.get_text() for text in legend.get_texts()]
        assert any("human label" in each for each in named) == has_labels
        assert len(named) > 1


def test_nodes_have_their_texts_and_claims_their_probabilities() -> None:
    shown = texts(GRAPH, {"a1": 0.875, "a2": 0.0})
    assert set(shown) == {
        'a1: She said "x" and paid $5 or $6.', "a2", "c1: A passage", "c2: A title", "c3", "0.88",
        "0.00",
    }  # fmt: skip
    assert {"0.50", "0.25"} <= set(texts(GRAPH))


def test_every_embedded_graph_is_drawn_without_a_warning() -> None:
    for graph in load("demonstration").graphs[:3]:
        figure = draw_fact_graph(variant(graph, "FR3"), title=graph.topic)
        figure.savefig(BytesIO(), format="png")


def test_wrong_posteriors_are_refused() -> None:
    refused("atom 'a2' has no posterior", draw_fact_graph, GRAPH, {"a1": 0.5})
    with pytest.raises(InputError, match=r"the posterior 1.5 of atom 'a1' is not between 0 and 1"):
        to_dot(GRAPH, {"a1": 1.5, "a2": 0.5})
    refused("has no atoms; there is nothing to draw", draw_fact_graph, FactGraph("empty", atoms=()))


def test_graphviz_reads_quotes_and_line_ends_as_text() -> None:
    dot = to_dot(GRAPH, {"a1": 0.9, "a2": 0.1})
    assert dot.startswith('digraph "r" {\n')
    assert '[shape=ellipse, label="a1: She said \\"x\\" and paid $5 or $6.\\nP = 0.90"];' in dot
    assert '"c1" -> "c2" [color="#009E73", style="dashed", label="0.70", dir="both"];' in dot
    assert '"a1" -> "a2" [color="gray70", style="dotted", label="0.60", dir="forward"];' in dot
    assert dot.count("->") == 4
    assert dot.endswith("}\n")


def large(n_claims: int, n_passages: int) -> FactGraph:
    """Passages that bear on every claim, the later ones more decidedly."""
    return FactGraph(
        "large",
        atoms=tuple(Atom(f"a{i}") for i in range(n_claims)),
        contexts=tuple(Context(f"c{i}") for i in range(n_passages)),
        relations=tuple(
            Relation(f"c{i}", f"a{j}", RelationKind.ENTAILMENT, 0.5 + (i + 1) / (4 * n_passages))
            for i in range(n_passages)
            for j in range(n_claims)
        ),
    )


def test_large_graph_draws_its_most_decided_part_and_counts_the_rest() -> None:
    figure = draw_fact_graph(large(1, 20_000))
    axes = figure.axes[0]
    arrow = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrow) == MOST_ROWS
    shown = {text.get_text() for text in axes.texts}
    assert {f"c{i}" for i in range(20_000 - MOST_ROWS, 20_000)} | {"a0"} <= shown
    note = "Not drawn: 19,880 of 20,000 passages, 19,880 of 20,000 relations."
    assert figure.get_supxlabel() == note


def test_parts_left_out_follow_the_claims_that_are_drawn() -> None:
    graph = large(MOST_ROWS + 30, 20)
    # The most decided of all relations is to a claim that is not drawn.
    contexts = (replace(graph.contexts[0], retrieved_for=("a0", "a149")), *graph.contexts[1:])
    relations = [
        relation
        for relation in graph.relations
        if (relation.source, relation.target) != ("c0", "a149")
    ]
    relations.append(Relation("c0", "a149", RelationKind.CONTRADICTION, 0.99))
    drawn, note = legible(replace(graph, contexts=contexts, relations=tuple(relations)))
    assert drawn.contexts[0].retrieved_for == ("a0",)
    assert drawn.atoms == graph.atoms[:MOST_ROWS]
    assert len(drawn.contexts) == 20
    assert len(drawn.relations) == MOST_RELATIONS
    assert note == "Not drawn: 30 of 150 claims, 2,000 of 3,000 relations."
    # Those nearest to one half are what is missing.
    assert min(relation.probability for relation in drawn.relations) > 0.5 + 10 / 80
    assert legible(GRAPH) == (GRAPH, "")
