"""pyAgrum behind the contract: exact where its doubles allow, refused elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels.synthetic import fr2, grid
from inference import InferenceError, TooLargeError, infer
from tests.inference.answers import assert_agree, assert_near
from tests.inference.graphs import chain_reference, long_chain, odd_graph
from tests.processes import run_python

ROUNDING = 1e-10
"""pyAgrum multiplies and adds in doubles; some hundred operations on each number."""


def test_odd_graphs_are_answered_or_refused() -> None:
    answered = 0
    for seed in range(200):
        graph = odd_graph(seed)
        ours = infer(graph, "exact")
        try:
            theirs = infer(graph, "pyagrum")
        except InferenceError:
            # Only tables that span hundreds of orders of magnitude are beyond it.
            assert np.ptp(graph.log_values[graph.log_values > -np.inf]) > 300.0, f"seed {seed}"
            with pytest.raises(InferenceError, match="backend 'exact'"):
                infer(graph, "pyagrum")
            continue
        answered += 1
        assert_agree(theirs, ours, ROUNDING, rel=ROUNDING, where=f"seed {seed}")
    assert answered >= 180


def test_a_response_and_its_evidence() -> None:
    graph = fr2(31, 3, density=0.05, own=False, seed=0)
    for observed in (graph, graph.with_evidence({0: 1, 50: 0})):
        assert_agree(infer(observed, "pyagrum"), infer(observed, "exact"), ROUNDING, rel=ROUNDING)


def test_a_product_far_below_the_range_of_doubles() -> None:
    graph = long_chain(1500, seed=2)
    expected, log_z = chain_reference(graph)
    # Potentials as they are multiply to less than the smallest double: pyAgrum alone finds zeros.
    assert log_z < -2000.0
    assert_near(infer(graph, "pyagrum"), expected.ravel(), log_z, ROUNDING, rel=ROUNDING)


def test_what_does_not_fit_is_refused_before_it_is_allocated() -> None:
    graph = grid(8, 8, coupling=0.5, field=0.5, seed=0)
    with pytest.raises(TooLargeError, match=r"are allowed .*; use backend 'exact', 'wmb'"):
        infer(graph, "pyagrum", memory_limit=1000)
    with pytest.raises(TooLargeError, match="5000 variables at most"):
        infer(long_chain(5001, seed=0), "pyagrum")


def test_it_loads_and_runs_where_warnings_are_errors() -> None:
    # Its import and its first inference end the process there, unless they are contained.
    code = (
        "from factormodels import FactorGraph\n"
        "from inference import infer\n"
        "table = [[0.9, 0.1], [0.2, 0.8]]\n"
        "graph = FactorGraph.from_factors([2, 2], [([0], [0.5, 0.5]), ([0, 1], table)])\n"
        "print(infer(graph, 'pyagrum').marginals['1'].round(6).tolist())\n"
    )
    assert run_python(code, "-W", "error")[0] == "[0.55, 0.45]\n"
