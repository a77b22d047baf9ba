"""Memory limits of tables: every backend refuses larger ones before it starts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import inference.exact.planner
from factormodels import FactorGraph
from factormodels.synthetic import grid
from inference import TooLargeError, get_backend, infer
from inference.auto import Auto
from inference.exact.backend import Exact
from inference.exact.plans import forget_plans
from inference.memory import SHARE, MemoryAllowance, _left_in_groups, allowance, memory_size
from tests.inference.graphs import long_chain
from tests.limited_process import Child, limit_memory


def groups(folder: Path, control_group: str, files: dict[str, str]) -> list[int]:
    """Memory that groups with these files leave to a process of the group `control_group`."""
    for name, text in files.items():
        path = folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "own").write_text(control_group)
    return list(_left_in_groups(folder / "own", folder / "cgroup"))


def test_a_limit_is_what_is_allowed() -> None:
    assert allowance(123).bytes == 123
    assert str(allowance(2**30)) == "1 GiB are allowed (by memory_limit)"


def test_without_a_limit_caches_count_as_available() -> None:
    available = allowance(None)
    # Other processes take and give back memory between the two looks.
    assert available.bytes <= 1.3 * SHARE * psutil.virtual_memory().available
    if "machine" in available.reason:
        assert available.bytes >= 0.7 * SHARE * psutil.virtual_memory().available


def test_every_group_above_a_process_counts(tmp_path: Path) -> None:
    files = {
        "a/memory.max": "1000\n",
        "a/memory.current": "600\n",
        "a/memory.stat": "anon 500\ninactive_file 100\n",
        "a/b/memory.max": "max\n",
        "a/b/memory.current": "10\n",
        "a/b/memory.stat": "inactive_file 0\n",
    }
    assert groups(tmp_path, "0::/a/b\n", files) == [500]
    # In a container the path is the host's: the limit stands at the root.
    at_root = {"memory.max": "70", "memory.current": "90", "memory.stat": "inactive_file 0"}
    assert groups(tmp_path, "0::/host/only\n", at_root) == [0]


def test_groups_of_the_first_version(tmp_path: Path) -> None:
    files = {
        "memory/a/memory.limit_in_bytes": "1000",
        "memory/a/memory.usage_in_bytes": "300",
        "memory/a/memory.stat": "total_inactive_file 50\n",
    }
    assert groups(tmp_path, "7:cpu,cpuacct:/a\n4:memory:/a\n", files) == [750]


def test_no_groups_no_limits(tmp_path: Path) -> None:
    assert list(_left_in_groups(tmp_path / "none", tmp_path)) == []
    assert groups(tmp_path, "0::/\n", {"memory.max": "much"}) == []


def test_sizes_in_words() -> None:
    assert memory_size(3 * 2**29) == "1.5 GiB"
    assert memory_size(2.0**19) == "0.5 MiB"
    assert memory_size(2.0**130) == "2^100 GiB"


def square(side: int) -> FactorGraph:
    return grid(side, side, coupling=1.0, field=1.0, seed=0)


def clique(size: int) -> FactorGraph:
    """Every pair of binary variables in a factor of its own."""
    numbers = np.random.default_rng(0)
    return FactorGraph.from_factors(
        [2] * size,
        [(pair, np.exp(numbers.normal(size=(2, 2)))) for pair in combinations(range(size), 2)],
    )


def path(size: int) -> FactorGraph:
    return long_chain(size, seed=0)


TOO_LARGE: tuple[tuple[str, Callable[[int], FactorGraph], int, dict[str, Any], str], ...] = (
    ("exact", square, 60, {"search_seconds": 0.1}, r"GiB are allowed \(three quarters of"),
    ("exact", square, 60, {"search_seconds": 0.1}, r"induced width .*'lbp'.*memory_limit"),
    ("exact", square, 12, {"memory_limit": 2**12}, r"width 1\d.* 0.00391 MiB .*memory_limit"),
    ("wmb", square, 12, {"memory_limit": 50_000}, r"mini-buckets .*by memory_limit.*'lbp'.*'cavi'"),
    ("wmb_is", square, 10, {"memory_limit": 1000}, "'wmb_is' may use; raise memory_limit"),
    ("ijgp", square, 10, {"memory_limit": 1000}, "'ijgp' may use; raise memory_limit"),
    ("ais", square, 15, {"memory_limit": 1000}, r"take 0[.].* MiB, but 0[.].* MiB are allowed"),
    ("pgmpy", clique, 40, {}, r"40 variables, would take .* GiB.*'exact'.*'lbp'"),
    ("pgmpy", square, 4, {"memory_limit": 100}, "memory_limit"),
    ("pgmpy", path, 151, {}, "150 connected variables; this graph has 151; use"),
    ("pyagrum", square, 8, {"memory_limit": 1000}, "are allowed .*; use backend 'exact', 'wmb'"),
    # The tables fit; the cliques that it makes of them do not.
    ("pyagrum", square, 8, {"memory_limit": 60_000}, "over up to 10 variables, would take 0.138"),
    ("pyagrum", path, 5001, {}, "at most 5000 variables"),
    ("numpyro", square, 30, {"max_evaluations": 1e8}, "'numpyro' is .* 'gibbs'.*max_evaluations"),
)
"""A backend, a graph that it cannot hold and its size, settings, and what it says."""


@pytest.mark.parametrize(("backend", "made", "size", "settings", "message"), TOO_LARGE)
def test_tables_too_large_for_a_backend_are_refused(
    backend: str,
    made: Callable[[int], FactorGraph],
    size: int,
    settings: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(TooLargeError, match=message):
        infer(made(size), backend, **settings)


@pytest.mark.parametrize(("backend", "limit"), [("ijgp", 100_000), ("wmb_is", 200_000)])
def test_less_memory_is_a_smaller_i_bound(backend: str, limit: int) -> None:
    widest: Any = get_backend(backend)
    assert 1 <= infer(square(10), backend, memory_limit=limit).stats["i_bound"] < widest.i_bound


def refusal(_: dict[str, object], backend: str, size: int) -> str:
    """The sentence with which a backend refuses a clique."""
    try:
        get_backend(backend).infer(clique(size))
    except TooLargeError as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.kill
@pytest.mark.parametrize(
    "backends",
    [
        ("exact", "enumeration", "pyagrum"),
        # Its import takes seconds; the table above holds it to the refusal of a clique of 40.
        pytest.param(("exact", "enumeration", "pgmpy", "pyagrum"), marks=pytest.mark.nightly),
    ],
)
def test_a_clique_of_45_is_refused_without_its_tables(backends: tuple[str, ...]) -> None:
    for library in {"pgmpy", "pyagrum"} & set(backends):
        pytest.importorskip(library)
    with Child() as child:
        # Libraries are loaded by a small graph; a table over 45 variables has 2^45 entries.
        for backend in backends:
            child.call(refusal, backend, 4)
        child.call(limit_memory, 2**28)
        for backend in backends:
            message = child.call(refusal, backend, 45)
            assert message, backend
            assert "\n" not in message
            assert "use backend" in message


def test_auto_bounds_a_clique_within_its_time_and_memory() -> None:
    graph = clique(60)
    posterior = Auto(seconds=0.5, memory_limit=2**24).infer(graph)
    assert posterior.stats["lower"] <= posterior.stats["upper"]
    assert np.isfinite([posterior.stats["lower"], posterior.stats["upper"]]).all()
    assert Auto(seconds=0.5).predict(graph).seconds == 0.5


def test_memory_that_is_released_after_the_planning_is_no_limit_of_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = grid(14, 14, coupling=1.0, field=1.0, seed=0)
    # A plan that another test has left is not planned again.
    forget_plans()
    prediction = Exact().predict(graph)
    plan = Exact.cluster_plan

    def as_planned(self: Exact, graph: FactorGraph, **_: bool) -> Any:
        small = MemoryAllowance(1_000, "by a test")
        monkeypatch.setattr(inference.exact.planner, "allowance", lambda _: small)
        try:
            return plan(self, graph, refuse=False)
        finally:
            monkeypatch.setattr(inference.exact.planner, "allowance", allowance)

    monkeypatch.setattr(Exact, "cluster_plan", as_planned)
    released = "less was available when it was planned"
    with pytest.raises(TooLargeError, match=f"{released}.* or raise memory_limit"):
        Exact(search_seconds=0.9).infer(graph)
    reason = infer(graph, seconds=1.0).stats["reason"]
    assert reason.endswith(f"needs {memory_size(prediction.bytes)}, but {released}")
