"""Fact graphs go to data frames and networkx and come back as they were."""

from __future__ import annotations

import sys

import networkx as nx
import pandas as pd
import pytest

from factormodels import Atom, Context, FactGraph, MissingDependencyError, Relation
from factormodels.claims import ContextKind, RelationKind
from factormodels.datasets import load
from factormodels.interchange import from_frames, from_networkx, to_frames, to_networkx
from tests.refusals import refused

GRAPH = FactGraph(
    "r1",
    atoms=(
        Atom("a1", "One.", label=True, sentence=1),
        Atom("a10", prior=0.3),
        Atom("a2", label=False),
    ),
    contexts=(
        Context("c1", "Passage", retrieved_for=("a1", "a10"), key="k"),
        Context("c2", kind=ContextKind.SAMPLE),
    ),
    relations=(
        Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),
        Relation("c2", "a1", RelationKind.CONTRADICTION, 1.0),
        Relation("a1", "a2", RelationKind.NEUTRAL, 0.6),
    ),
    query="Who?",
    topic="people",
    metadata={"model": "m", "seed": 1},
)


def test_every_embedded_graph_comes_back() -> None:
    embedded = (*load("demonstration").graphs, *load("worked-examples").graphs)
    for graph in (GRAPH, FactGraph("empty", atoms=()), *embedded):
        texts = {name: getattr(graph, name) for name in ("query", "response", "topic", "metadata")}
        assert from_frames(graph.id, *to_frames(graph), **texts) == graph
        assert from_networkx(to_networkx(graph)) == graph
    kinds = {type(kind) for _, kind in to_networkx(GRAPH).nodes(data="kind", default="")}
    assert kinds == {str}


def test_frames_have_a_row_for_each_and_types_that_calculate() -> None:
    frames = to_frames(GRAPH)
    assert frames.atoms["id"].tolist() == ["a1", "a10", "a2"]
    assert frames.atoms["prior"].mean() == pytest.approx(1.3 / 3)
    assert frames.atoms["sentence"].isna().tolist() == [False, True, True]
    assert frames.relations.groupby("kind")["probability"].max().to_dict() == {
        "entailment": 0.9,
        "contradiction": 1.0,
        "neutral": 0.6,
    }


def test_a_frame_from_a_spreadsheet_needs_few_columns() -> None:
    atoms = pd.DataFrame({"id": ["a", "b"], "label": [1.0, float("nan")]}).astype(
        {"label": "boolean"}
    )
    contexts = pd.DataFrame({"id": ["c"]})
    relations = pd.DataFrame(
        {"source": ["c"], "target": ["a"], "kind": ["entailment"], "probability": [1]}
    )
    graph = from_frames("mine", atoms, contexts, relations)
    assert graph.atoms == (Atom("a", label=True), Atom("b"))
    assert graph.relations == (Relation("c", "a", RelationKind.ENTAILMENT, 1.0),)


@pytest.mark.parametrize(
    ("atoms", "message"),
    [
        ({"id": ["a"], "belief": [0.1]}, "atoms, row 0: there is no field 'belief'; use anno"),
        ({"text": ["a"]}, "atoms, row 0: 'id' is missing; add it"),
        ({"id": ["a", "b"], "prior": [0.5, 1.2]}, "atoms, row 1: prior of atom 'b': the prob"),
        ({"id": ["a", "a"]}, "the id 'a' is given twice"),
    ],
)
def test_wrong_frames_are_refused(atoms: dict[str, list[object]], message: str) -> None:
    refused(message, from_frames, "mine", pd.DataFrame(atoms))


def test_wrong_networkx_graphs_are_refused() -> None:
    refused("give a networkx DiGraph", from_networkx, nx.Graph(id="g"))
    refused("no attribute 'id'", from_networkx, nx.DiGraph())
    graph = nx.DiGraph(id="g")
    graph.add_node("a", type="claim")
    refused("node 'a' has the type 'claim'; use 'atom' or 'context'", from_networkx, graph)
    graph = nx.DiGraph(id="g")
    graph.add_node("a", type="atom")
    graph.add_node("c", type="context")
    graph.add_edge("c", "a", kind="entailment")
    refused("edge 'c' -> 'a': 'probability' is missing; add it", from_networkx, graph)


def test_networkx_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match="pip install networkx"):
        to_networkx(GRAPH)
