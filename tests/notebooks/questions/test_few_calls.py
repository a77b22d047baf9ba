"""Few calls: orders, posteriors of what was asked, and its two tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.evaluators.calls.asking_orders import (
    asking_orders,
    first_of_each,
    posteriors,
    true,
)
from experiments.evaluators.recorded_relations import read_record
from factormodels import Atom, Context, FactGraph, Relation, RelationKind, datasets, variant
from factormodels.extraction.stages.relations import relation_pairs
from inference import infer
from notebooks.questions.few_calls import compared, judged_by

GRAPH = FactGraph(
    "r",
    (Atom("a1", "Bees dance."), Atom("a2", "Wasps sing.")),
    (
        Context("c1", "Bees dance.", retrieved_for=("a1",)),
        Context("c2", "Wasps rest.", retrieved_for=("a2",)),
    ),
    (
        Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),
        Relation("c1", "a2", RelationKind.ENTAILMENT, 0.9),
        Relation("c2", "a1", RelationKind.CONTRADICTION, 0.95),
    ),
)


def pair_names(places: Any) -> list[tuple[str, str]]:
    pairs = relation_pairs(GRAPH, "FR2")
    return [(pairs[number].source, pairs[number].target) for number in places]


def test_orders_are_those_of_the_rule() -> None:
    orders = asking_orders([GRAPH], [relation_pairs(GRAPH, "FR2")], (0.5,), seed=0)
    settled = pair_names(orders["settled at 0.5"][0])
    assert settled == [("c1", "a1"), ("c2", "a2"), ("c1", "a2")]
    assert set(pair_names(orders["never settled"][0])) == set(pair_names(range(4)))
    assert sorted(orders["at random"][0]) == [0, 1, 2, 3]
    assert list(orders["in file order"][0]) == [0, 1, 2, 3]


def test_posteriors_are_those_of_the_graph_without_the_rest() -> None:
    pairs = [relation_pairs(GRAPH, "FR2")]
    places = [
        position for position, name in enumerate(pair_names(range(4))) if name != ("c2", "a1")
    ]
    p = posteriors([GRAPH], pairs, [places])
    rest = GRAPH.derived(GRAPH.contexts, GRAPH.relations[:2])
    marginals = infer(rest.to_factor_graph(), "exact").marginals
    assert p == pytest.approx([marginals["a1"][1], marginals["a2"][1]], abs=1e-12)
    assert true(np.array([0.5, 0.5 + 1e-12, 0.51])).tolist() == [False, False, True]


def test_rows_count_calls_and_the_verdicts_that_a_stop_loses() -> None:
    made = compared([GRAPH], "FR2", (0.25, 1.0), (0.5,), 0)
    rows = {row["method"]: row for row in made}
    assert [row["calls"] for row in rows["never settled"]["shares"]] == [1, 4]
    assert rows["settled at 0.5"]["asked"] == 0.75
    # The contradiction that is not asked any more would turn a1.
    assert rows["settled at 0.5"]["kept"] == 0.5
    assert rows["never settled"]["kept"] == rows["at random"]["kept"] == 1.0


def test_the_guide_has_the_numbers_of_the_demonstration() -> None:
    graphs = [variant(graph, "FR2") for graph in datasets.load("demonstration").graphs]
    pairs = [relation_pairs(graph, "FR2") for graph in graphs]
    orders = asking_orders(graphs, pairs, (0.5,), seed=0)
    every = posteriors(graphs, pairs, orders["never settled"])
    kept = [
        float(np.mean(true(posteriors(graphs, pairs, first)) == true(every)))
        for share in (0.05, 0.1, 0.15, 0.2)
        for first in [first_of_each(orders["never settled"], pairs, share)]
    ]
    # docs/results/few-calls.md says so.
    assert kept == pytest.approx([0.799, 0.896, 0.948, 0.993], abs=5e-4)


def test_the_page_has_the_numbers_of_the_relations_of_a_model() -> None:
    record = read_record("factcheck-bench.qwen2.5-coder-1.5b-instruct")
    whole = judged_by(record, datasets.load("factcheck-bench").graphs)
    graphs = [variant(graph, "FR2") for graph in whole]
    page = Path("docs/results/few-calls.md").read_text(encoding="utf-8")
    n_claims = sum(len(graph.atoms) for graph in graphs)
    assert f"{n_claims} labeled claims of {len(graphs)} whole responses" in page
    rows = [
        [float(cell) for cell in line.strip("| ").split(" | ")]
        for line in page.partition("## Relations of a model")[2].splitlines()
        if line.startswith("| 0.")
    ]
    made = {row["method"]: row for row in compared(graphs, "FR1", [r[0] for r in rows], (0.5,), 0)}
    # The embedded data have no texts; with them the command of the page gives the third column.
    for method, column in (("settled at 0.5", 3), ("in file order", 4), ("at random", 5)):
        kept = [share["kept"] for share in made[method]["shares"]]
        assert kept == pytest.approx([row[column] for row in rows], abs=5e-4)
    assert [share["calls"] for share in made["at random"]["shares"]] == [row[1] for row in rows]
