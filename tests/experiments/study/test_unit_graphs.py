"""The factor graph of a view equals the factor graph of a fact graph with the view's numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.study.cells import GraphView, PriorSetting
from experiments.study.units import factor_graph, strengthened
from factormodels.datasets import load
from factormodels.encodings import ENCODINGS
from factormodels.synthetic import Uniform, labeled_responses
from factormodels.variants import VARIANTS, variant

GRAPHS = (
    *load("worked-examples").graphs,
    *load("demonstration").graphs[:3],
    *labeled_responses(
        4, n_atoms=(0, 4), contexts_per_atom=2, density=0.3, strength=Uniform(0, 1), seed=1
    ),
)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize(("atom", "context"), [(None, None), (0.2, None), (None, 0.0), (1.0, 0.7)])
def test_the_graphs_are_the_same_to_the_last_bit(
    name: str, encoding: str, atom: float | None, context: float | None
) -> None:
    for graph in GRAPHS:
        viewed = variant(graph, name)
        expected = viewed.with_priors(atoms=atom, contexts=context).to_factor_graph(encoding)
        view = GraphView(name, encoding, PriorSetting("", atom, context), 1.0)
        model = factor_graph(viewed.compiled, view)
        assert model.names == expected.names
        for field in ("cardinalities", "scope_starts", "scope_variables", "log_values", "evidence"):
            assert np.array_equal(getattr(model, field), getattr(expected, field)), field


def test_a_strength_replaces_the_probabilities_of_relations() -> None:
    graph = GRAPHS[-1]
    stronger = replace(
        graph,
        relations=tuple(
            replace(
                relation, probability=float(strengthened(np.array([relation.probability]), 2.5)[0])
            )
            for relation in graph.relations
        ),
    )
    view = GraphView("given", "conditional", PriorSetting("", None, None), 2.5)
    model = factor_graph(graph.compiled, view)
    assert np.array_equal(model.log_values, stronger.to_factor_graph("conditional").log_values)


def test_strengths_by_hand() -> None:
    p = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    # Odds of 1/4 and 9, squared; a rounding or two.
    assert strengthened(p, 2.0) == pytest.approx([0, 1 / 17, 0.5, 81 / 82, 1], abs=1e-15)
    assert strengthened(p, 1.0) is p
    # So strong that an exponential overflows: it is a certainty, and no warning.
    assert strengthened(np.array([0.01, 0.99]), 1e4).tolist() == [0.0, 1.0]
