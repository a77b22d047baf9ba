"""Libraries by other hands behind the contract: right where they answer, refused elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import jax
import numpy as np
import pytest
from pgmax import fgraph

from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import (
    InferenceError,
    Posterior,
    Status,
    infer,
    infer_batch,
    infer_settings,
)
from inference.backend import TooLargeError
from inference.messages.reduction import reduced
from inference.peers import jax_elimination
from inference.peers.jax_elimination import JaxElimination, _answers
from inference.peers.jax_propagation import _laid_out
from tests.inference.answers import assert_agree, assert_near, given
from tests.inference.exactness import errors
from tests.inference.graphs import chain_reference, long_chain, moderate, odd_graph
from tests.processes import run_python

pytestmark = pytest.mark.slow


def square(side: int, seed: int) -> FactorGraph:
    return grid(side, side, coupling=1.0, field=1.0, cardinality=3, seed=seed)


def test_pgmpy_counts_each_of_equal_factors() -> None:
    # pgmpy compares factors by value, so two of one scope have to be merged before.
    twice = [([0], [0.2, 0.8]), ([0], [0.2, 0.8])]
    graph = FactorGraph.from_factors([2, 2], [*twice, ([0, 1], [[1.0, 2.0], [3.0, 4.0]])])
    assert infer(graph, "pgmpy").marginals["0"] == pytest.approx([0.12 / 4.6, 4.48 / 4.6])


def test_pgmpy_sums_components_apart() -> None:
    pair = [([v, v + 1], np.ones((2, 2))) for v in range(0, 400, 2)]
    many = infer(FactorGraph.from_factors([2] * 400, pair), "pgmpy")
    assert many.stats["components"] == 200
    # Two hundred logarithms of 4, to their rounding.
    assert many.log_z == pytest.approx(400.0 * math.log(2.0), rel=1e-11)


@pytest.mark.parametrize("most", [40, pytest.param(150, marks=pytest.mark.nightly)])
def test_pgmpy_refuses_a_large_graph_before_it_builds_a_network(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if most < 150:
        monkeypatch.setattr("inference.peers.pgmpy_elimination._MOST_VARIABLES", most)
    assert infer(long_chain(most, seed=0), "pgmpy").status is Status.EXACT
    monkeypatch.setattr("inference.peers.pgmpy_elimination.to_pgmpy", None)
    refusal = f"at most {most} connected variables; this graph has {most + 1}"
    with pytest.raises(TooLargeError, match=refusal):
        infer(long_chain(most + 1, seed=0), "pgmpy")


def test_pgmpy_refuses_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    import pgmpy

    monkeypatch.setattr(pgmpy.config, "DTYPE", "float32")
    with pytest.raises(InferenceError, match="float32"):
        infer(square(2, seed=10), "pgmpy")


def test_pgmpy_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    infer(square(4, seed=11), "pgmpy")
    assert capfd.readouterr() == ("", "")


@pytest.mark.nightly
def test_pgmpy_rounds_alike_in_every_process() -> None:
    """In one process `the_same_twice` of the conformance tests holds it."""
    # Without care pgmpy multiplies in the order of memory addresses, and last digits change.
    program = (
        "from factormodels.synthetic import grid\n"
        "from inference import infer\n"
        "graph = grid(6, 6, coupling=1.0, field=1.0, cardinality=3, seed=12)\n"
        "posterior = infer(graph, 'pgmpy')\n"
        "print(posterior.log_z.hex(), posterior.marginals.flat.tobytes().hex())\n"
    )
    here = infer(square(6, seed=12), "pgmpy")
    there, _ = run_python(program)
    assert there.split() == [given(here).hex(), here.marginals.flat.tobytes().hex()]


ROUNDING = 1e-10
"""pgmpy and pyAgrum multiply and add in doubles; some hundred operations on each number."""


@pytest.mark.parametrize(
    ("backend", "seeds"),
    [
        ("pgmpy", 12),
        ("pyagrum", 40),
        pytest.param("pgmpy", 60, marks=pytest.mark.nightly),
        pytest.param("pyagrum", 200, marks=pytest.mark.nightly),
    ],
)
def test_a_library_of_doubles_answers_odd_graphs_or_refuses_them(backend: str, seeds: int) -> None:
    answered = 0
    for seed in range(seeds):
        graph = odd_graph(seed)
        ours = infer(graph, "exact")
        try:
            posterior = infer(graph, backend)
        except InferenceError:
            # Only tables that span hundreds of orders of magnitude are beyond it.
            assert np.ptp(graph.log_values[graph.log_values > -np.inf]) > 300.0, f"seed {seed}"
            with pytest.raises(InferenceError, match="use backend 'exact'"):
                infer(graph, backend)
            continue
        answered += 1
        assert_agree(posterior, ours, ROUNDING, rel=ROUNDING, where=f"seed {seed}")
    assert answered >= 0.85 * seeds


def test_pyagrum_takes_products_far_below_the_range_of_doubles() -> None:
    graph = long_chain(1500, seed=2)
    expected, log_z = chain_reference(graph)
    # Potentials as they are multiply to less than the smallest double: pyAgrum alone finds zeros.
    assert log_z < -2000.0
    assert_near(infer(graph, "pyagrum"), expected.ravel(), log_z, ROUNDING, rel=ROUNDING)


def test_pyagrum_loads_and_runs_where_warnings_are_errors() -> None:
    # Its import and its first inference end the process there, unless they are contained.
    code = (
        "from factormodels import FactorGraph\n"
        "from inference import infer\n"
        "table = [[0.9, 0.1], [0.2, 0.8]]\n"
        "graph = FactorGraph.from_factors([2, 2], [([0], [0.5, 0.5]), ([0, 1], table)])\n"
        "print(infer(graph, 'pyagrum').marginals['1'].round(6).tolist())\n"
    )
    assert run_python(code, "-W", "error")[0] == "[0.55, 0.45]\n"


SETTLED = 1e-7
"""Both stop where no message changes by more than 1e-9; what is left adds up around cycles."""


def assert_agrees(graph: FactorGraph, where: str = "") -> None:
    ours = infer(graph, "lbp", schedule="flooding")
    posterior = infer(graph, "pgmax")
    assert posterior.status is Status.CONVERGED, where
    assert_agree(posterior, ours, SETTLED, rel=SETTLED, where=where)


@pytest.mark.parametrize("seeds", [3, pytest.param(14, marks=pytest.mark.nightly)])
def test_pgmax_finds_the_fixed_points_of_lbp_on_odd_graphs(seeds: int) -> None:
    # Zeros, four states, four variables to a factor, repeated scopes, evidence, tables that span
    # hundreds of orders of magnitude.
    compared = 0
    for seed in range(seeds):
        graph = odd_graph(seed)
        if infer(graph, "lbp", schedule="flooding").status is Status.CONVERGED:
            assert_agrees(graph, f"seed {seed}")
            compared += 1
    assert compared >= seeds - 2


def test_pgmax_finds_the_fixed_point_of_lbp_on_a_response() -> None:
    graph = fr2(12, 3, density=0.1, seed=0)
    assert_agrees(graph)
    assert_agrees(graph.with_evidence({0: 1, 20: 0}))


def test_tables_that_pgmax_would_clip_are_refused() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[0.0, -2e6], [0.0, 1.0]])], log=True)
    with pytest.raises(InferenceError, match=r"PGMax clips at .*; use backend 'lbp'"):
        infer(graph, "pgmax")


def test_pgmax_leaves_nothing_behind() -> None:
    infer(fr2(2, 1, density=0.1, seed=0), "pgmax")
    assert not hasattr(jax.lib, "xla_bridge")
    getters: list[Any] = [
        value.fget for value in vars(fgraph.FactorGraph).values() if isinstance(value, property)
    ]
    kept = [get.cache_info().currsize for get in getters if hasattr(get, "cache_info")]
    assert kept
    assert not any(kept)


def test_an_absent_pgmax_gives_the_command_that_installs_it() -> None:
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


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, 4))]
)
def test_marginals_of_numpyro_are_within_their_standard_errors(seed: int) -> None:
    graph = moderate(seed)
    posterior = infer(graph, "numpyro")
    off, reported = errors(graph, posterior)
    # 100 batch means make a standard error; a state that no draw hits is rarer than 2e-3.
    assert (off <= 6.0 * reported + 2e-3).all()


@pytest.mark.parametrize("claims", [3, pytest.param(8, marks=pytest.mark.nightly)])
def test_gibbs_and_numpyro_agree_on_a_response(claims: int) -> None:
    graph = fr2(claims, 3, density=0.1, seed=0)
    ours, other = infer(graph, "gibbs"), infer(graph, "numpyro")
    assert ours.status is other.status is Status.CONVERGED
    for name in graph.names:
        scale = np.hypot(ours.stats["standard_errors"][name], other.stats["standard_errors"][name])
        assert (np.abs(ours.marginals[name] - other.marginals[name]) <= 6.0 * scale + 2e-3).all()


def test_numpyro_keeps_differences_of_potentials_far_from_one() -> None:
    # In single precision, logarithms near 1e5 are 0.008 apart.
    graph = FactorGraph.from_factors(
        [2, 2], [([0, 1], [[1e5, 1e5 + 0.5], [1e5 + 0.25, 1e5]])], log=True
    )
    posterior = infer(graph, "numpyro", draws=4000)
    truth = infer(graph, "exact")
    # 16,000 draws, hardly correlated: a standard error of 0.004.
    np.testing.assert_allclose(posterior.marginals.flat, truth.marginals.flat, atol=0.024)


def test_numpyro_has_not_converged_where_zeros_are_between_variables() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], np.eye(2))])
    posterior = infer(graph, "numpyro", draws=50)
    assert not posterior.stats["connected"]
    assert posterior.status is Status.NOT_CONVERGED


def test_one_chain_of_numpyro_is_enough_to_run() -> None:
    graph = grid(2, 2, coupling=1.0, field=1.0, seed=0)
    posterior = infer(graph, "numpyro", chains=1, draws=100)
    assert posterior.stats["r_hat_max"] > 0.0


SAME_TERMS = 1e-10
"""The same terms, summed in doubles in another order."""


def compiled() -> int:
    """Number of structures and sizes of settings compiled so far."""
    size: int = cast("Any", _answers)._cache_size()
    return size


def test_parts_and_padding_leave_every_setting_its_own_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = fr2(2, 2, density=0.2, seed=3)
    rng = np.random.default_rng(1)
    rows = graph.log_values + rng.normal(size=(11, len(graph.log_values)))
    whole = JaxElimination().answers(graph, rows)
    needed = JaxElimination().predict(graph).bytes
    # Four at a time (each holds four copies of its tables), and the last three padded.
    monkeypatch.setattr(jax_elimination, "_MOST_BYTES_AT_A_TIME", 4 * 5 * needed)
    before = compiled()
    parts = JaxElimination().answers(graph, rows)
    assert compiled() == before + 1
    np.testing.assert_allclose(parts[0], whole[0], rtol=SAME_TERMS)
    np.testing.assert_allclose(parts[1], whole[1], atol=SAME_TERMS)


def test_graphs_too_large_for_exact_jax_are_refused_before_compilation() -> None:
    wide = grid(12, 12, coupling=1.0, field=0.5, seed=0)
    before = compiled()
    with pytest.raises(TooLargeError, match=r"one graph would take .* allowed \(by memory_limit"):
        infer(wide, "exact_jax", memory_limit=100_000)
    assert compiled() == before


SAME_STEPS = 1e-10
"""Both take the same steps in doubles; after a hundred of them roundings differ by less."""


def assert_same(
    first: Posterior, other: Posterior, where: str, allowed: float = SAME_STEPS
) -> None:
    assert_agree(first, other, allowed, rel=allowed, where=where)
    assert first.status is other.status, where


@pytest.mark.parametrize("seeds", [4, pytest.param(20, marks=pytest.mark.nightly)])
def test_on_odd_graphs_lbp_jax_takes_the_steps_of_lbp(seeds: int) -> None:
    # Each shape is compiled; twenty have evidence, zeros, cycles and scopes of every size.
    graphs = [odd_graph(seed) for seed in range(seeds)]
    ours = infer_batch(graphs, "lbp", schedule="flooding")
    for seed, (posterior, other) in enumerate(
        zip(infer_batch(graphs, "lbp_jax"), ours, strict=True)
    ):
        assert_same(posterior, other, f"seed {seed}")
        assert posterior.stats["iterations"] == other.stats["iterations"], f"seed {seed}"


@pytest.mark.parametrize("damping", ["adaptive", 0.4])
def test_on_responses_lbp_jax_takes_the_steps_of_lbp(damping: Any) -> None:
    graphs = [fr2(12, 3, density=0.15, seed=seed) for seed in range(8)]
    settings = {"damping": damping, "max_iterations": 300}
    ours = infer_batch(graphs, "lbp", schedule="flooding", **settings)
    others = infer_batch(graphs, "lbp_jax", **settings)
    assert sum(posterior.status is Status.CONVERGED for posterior in ours) >= 6
    for seed, (answer, other) in enumerate(zip(others, ours, strict=True)):
        if other.status is Status.CONVERGED:
            # Roundings that the first steps amplify are small again once messages settle to 1e-9.
            assert_same(answer, other, f"seed {seed}", 1e-8)


def test_graphs_of_about_one_size_share_compiled_code_of_lbp_jax() -> None:
    graphs = [fr2(31, 3, density=0.05, always_related=False, seed=seed) for seed in range(40)]
    assert len({tuple(map(np.shape, _laid_out(graph, reduced(graph))[0])) for graph in graphs}) <= 4


def test_the_constant_of_each_setting_is_its_own() -> None:
    # Every variable is fixed in one part of the graph, and constants stand in an empty scope.
    graph = FactorGraph.from_factors(
        [2, 2, 2], [([], 3.0), ([0], [0.0, 2.0]), ([0, 1], np.ones((2, 2))), ([1, 2], np.eye(2))]
    )
    rng = np.random.default_rng(0)
    rows = graph.log_values + rng.normal(size=(3, len(graph.log_values)))
    for row, posterior in zip(rows, infer_settings(graph, rows, "lbp_jax"), strict=True):
        assert_same(
            posterior, infer(replace(graph, log_values=row), "lbp", schedule="flooding"), ""
        )
