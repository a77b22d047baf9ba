"""PGMax behind the contract: the fixed points of `lbp`, on graphs that plain PGMax cannot take."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from pgmax import fgraph

from factormodels import FactorGraph
from factormodels.synthetic import fr2
from inference import InferenceError, Status, infer
from tests.inference.answers import assert_agree
from tests.inference.graphs import odd_graph
from tests.processes import run_python

pytestmark = pytest.mark.slow

SETTLED = 1e-7
"""Both stop where no message changes by more than 1e-9; what is left adds up around cycles."""


def assert_agrees(graph: FactorGraph, where: str = "") -> None:
    ours = infer(graph, "lbp", schedule="flooding")
    theirs = infer(graph, "pgmax")
    assert theirs.status is Status.CONVERGED, where
    assert_agree(theirs, ours, SETTLED, rel=SETTLED, where=where)


def test_it_finds_the_fixed_points_of_lbp_on_odd_graphs() -> None:
    # Zeros, four states, four variables to a factor, repeated scopes, evidence, tables that span
    # hundreds of orders of magnitude.
    compared = 0
    for seed in range(14):
        graph = odd_graph(seed)
        if infer(graph, "lbp", schedule="flooding").status is Status.CONVERGED:
            assert_agrees(graph, f"seed {seed}")
            compared += 1
    assert compared >= 12


def test_it_finds_the_fixed_point_of_lbp_on_a_response() -> None:
    graph = fr2(12, 3, density=0.1, seed=0)
    assert_agrees(graph)
    assert_agrees(graph.with_evidence({0: 1, 20: 0}))


def test_what_pgmax_would_clip_is_refused() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[0.0, -2e6], [0.0, 1.0]])], log=True)
    with pytest.raises(InferenceError, match=r"PGMax clips at .*; use backend 'lbp'"):
        infer(graph, "pgmax")


def test_nothing_is_left_behind() -> None:
    infer(fr2(2, 1, density=0.1, seed=0), "pgmax")
    assert not hasattr(jax.lib, "xla_bridge")
    getters: list[Any] = [
        value.fget for value in vars(fgraph.FactorGraph).values() if isinstance(value, property)
    ]
    kept = [get.cache_info().currsize for get in getters if hasattr(get, "cache_info")]
    assert kept
    assert not any(kept)


def test_absent_it_gives_the_command_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['pgmax'] = None\n"
        "from importlib.util import find_spec\n"
        "import importlib.util, inference.registry as registry\n"
        "registry.find_spec = lambda name: None if name == 'pgmax' else find_spec(name)\n"
        "from factormodels import FactorGraph\n"
        "from inference import infer\n"
        "try:\n"
        "    infer(FactorGraph.from_factors([2], []), 'pgmax')\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    assert (
        "pip install 'factorfacts[jax]' && pip install --no-deps pgmax==0.6.1"
        in run_python(code)[0]
    )
