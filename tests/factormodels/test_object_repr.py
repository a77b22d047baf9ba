"""Representations of graphs in a prompt and a notebook, and as data frames."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from factormodels import Atom, Context, FactGraph, FactorGraph, Relation, RelationKind
from factormodels.interchange.factor_graphs import conversion_of

BRIDGE = FactGraph(
    "bridge",
    atoms=(
        Atom("a1", text="It opened in 1890.", label=True),
        Atom("a2", text="A < B & so on, " * 10, prior=0.25),
    ),
    contexts=(Context("c1", text="Opened on 4 March 1890."), Context("c2", title="Trains")),
    relations=(Relation("c1", "a1", RelationKind.ENTAILMENT, 0.95),),
)


def test_a_fact_graph_is_shown_in_a_few_lines() -> None:
    heading, titles, *rows = repr(BRIDGE).splitlines()
    assert heading == "FactGraph 'bridge': 2 atoms (1 labeled), 2 contexts, 1 relation"
    assert titles.split() == ["id", "kind", "prior", "label", "text"]
    assert [row.split()[0] for row in rows] == ["a1", "a2", "c1", "c2"]
    assert rows[0].split(maxsplit=4) == ["a1", "atom", "0.5", "True", "It opened in 1890."]
    assert all(len(row) < 100 for row in rows)


def test_a_long_fact_graph_says_that_there_is_more() -> None:
    atoms = tuple(Atom(f"a{number}") for number in range(100))
    lines = repr(FactGraph("long", atoms)).splitlines()
    assert lines[-1] == "..."
    assert len(lines) < 12
    assert "70 more rows" in FactGraph("long", atoms)._repr_html_()


def test_html_is_escaped() -> None:
    html = BRIDGE._repr_html_()
    assert "A &lt; B &amp; so on" in html
    assert "A < B" not in html
    assert html.count("<tr>") == 5


def test_a_fact_graph_as_a_frame() -> None:
    frame = BRIDGE.to_frame()
    assert list(frame.columns) == ["id", "kind", "prior", "label", "text"]
    assert frame["kind"].tolist() == ["atom", "atom", "context", "context"]
    assert frame["prior"].tolist() == [0.5, 0.25, 0.99, 0.99]
    assert frame["label"].isna().tolist() == [False, True, True, True]
    assert frame["text"].iloc[3] == "Trains"
    assert FactGraph("empty", ()).to_frame().shape == (0, 5)


def test_equality_and_fields_are_those_of_the_dataclass() -> None:
    assert dataclasses.replace(BRIDGE, query="?") != BRIDGE
    assert dataclasses.replace(BRIDGE, query="") == BRIDGE


def test_a_factor_graph_is_shown_with_its_factors() -> None:
    graph = BRIDGE.to_factor_graph().with_evidence({"a1": 1})
    heading, _, *rows = repr(graph).splitlines()
    assert heading == "FactorGraph: 4 variables (1 observed), 5 factors, 12 numbers in their tables"
    assert rows[4].split(maxsplit=2)[:2] == ["4", "c1,"]
    assert graph._repr_html_().count("<tr>") == 6


def test_a_factor_graph_as_a_frame() -> None:
    graph = BRIDGE.to_factor_graph()
    frame = graph.to_frame()
    assert frame["scope"].tolist() == [("a1",), ("a2",), ("c1",), ("c2",), ("c1", "a1")]
    table = frame["log_table"][4]
    assert table.shape == (2, 2)
    # A logarithm of a double, to its rounding.
    assert table[1, 1] == pytest.approx(math.log(0.95), abs=1e-15)


def test_factors_of_many_numbers_and_variables_are_cut() -> None:
    wide = FactorGraph.from_factors([2] * 8, [(range(8), np.ones(256)), ((), [2.0])])
    shown = repr(wide).splitlines()
    assert "... (256 in all)" in shown[2]
    assert "... (8 in all)" in shown[2]
    assert wide.to_frame()["log_table"][1].shape == ()


def test_a_graph_without_anything_is_a_line() -> None:
    assert repr(FactorGraph.from_factors([], [])) == (
        "FactorGraph: 0 variables (0 observed), 0 factors, 0 numbers in their tables"
    )
    assert "<table>" not in FactGraph("empty", ())._repr_html_()


def test_errors_name_the_conversion_to_a_graph() -> None:
    assert "to_factor_graph" in conversion_of(BRIDGE)
    assert "factormodels.read(path)" in conversion_of("graph.json")
    assert "from_frames, then" in conversion_of(BRIDGE.to_frame())
    assert "from_factors" in conversion_of([1.0])
