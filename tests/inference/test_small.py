"""Small graphs: what is interpreted is what machine code answers, and it ends when it must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import inference.exact.batch
import inference.exact.planner
import inference.exact.plans
import inference.exact.small
from factormodels import FactorGraph
from factormodels.synthetic import chain, fr2, grid, random_graph
from inference import (
    InferenceError,
    get_backend,
    infer,
    infer_batch,
    infer_rows,
    infer_settings,
)
from inference.exact.backend import Exact
from inference.exact.plans import KeptPlans, Plan
from inference.exact.small import SECONDS_AT_ONCE, Allowance, planning_seconds
from inference.kernels import compiled
from inference.kernels.compiled import Kernel, interpreted
from inference.tasks import map_assignment
from inference.warm_up import small_graph, warm_up, warm_up_for
from tests.inference.graphs import CONTRADICTIONS, odd_graph
from tests.processes import run_python


def graphs() -> Iterator[FactorGraph]:
    """Yield graphs that are small, with everything odd about some of them."""
    odd = [odd_graph(seed) for seed in range(60)]
    wide = [
        random_graph(
            12, 20, min_arity=1, max_arity=3, max_cardinality=3, zero_probability=0.1,
            log_range=1000.0, isolated=1, seed=seed,
        )
        for seed in range(8)
    ]  # fmt: skip
    many = [
        random_graph(6, 9, min_arity=0, max_arity=1, max_cardinality=8, log_range=30.0, seed=seed)
        for seed in range(3)
    ]
    responses = [fr2(3, 8, density=0.5, seed=seed) for seed in range(3)]
    # Its tables are so large that there is more than one search for an order.
    lattices = [
        grid(5, 5, coupling=2.0, field=1.0, seed=0),
        grid(2, 3, coupling=1.0, field=1.0, cardinality=5, seed=0),
    ]
    every = [*odd, *wide, *many, *responses, *lattices, *CONTRADICTIONS.values()]
    yield from (graph for graph in every if np.isfinite(planning_seconds(graph.absorb_evidence())))


def anew(monkeypatch: pytest.MonkeyPatch, *, spent: bool = False) -> Allowance:
    """Keep no plan, and let as much be interpreted as in a process that begins, or nothing."""
    # As where no kernel was called yet.
    allowance, plans = Allowance(lambda: False, SECONDS_AT_ONCE, 0.2), KeptPlans()
    allowance.spent = spent
    monkeypatch.setattr(inference.exact.planner, "KEPT", plans)
    for module in (
        *(inference.exact.backend, inference.exact.batch, inference.exact.planner),
        *(inference.exact.plans, inference.exact.small),
    ):
        monkeypatch.setattr(module, "ALLOWANCE", allowance)
    return allowance


def answer(graph: FactorGraph) -> Any:
    """Answer of `exact`, to the last bit and with the types of all values, or its error."""
    try:
        posterior = Exact().infer(graph)
    except InferenceError as error:
        return type(error), str(error)
    stats = [
        (name, type(value), value) for name, value in posterior.stats.items() if name != "seconds"
    ]
    assert posterior.log_z is not None
    return type(posterior.log_z), posterior.log_z.hex(), posterior.marginals.flat.tobytes(), stats


def test_interpreted_kernels_give_the_answers_of_machine_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = list(graphs())
    assert len(small) > 60
    answers, assignments = [], []
    for mode in (interpreted, nullcontext):
        anew(monkeypatch, spent=True)
        with mode():
            answers.append([answer(graph) for graph in small])
            possible = [g for g, answer in zip(small, answers[0], strict=True) if len(answer) == 4]
            assignments.append([map_assignment(graph) for graph in possible])
    assert answers[0] == answers[1]
    assert {len(answer) for answer in answers[0]} == {2, 4}
    for first, other in zip(*assignments, strict=True):
        assert type(first.log_potential) is float
        assert first.log_potential == other.log_potential
        assert first.states.tolist() == other.states.tolist()
        assert first.states.dtype == other.states.dtype


def test_a_plan_that_was_interpreted_serves_machine_code() -> None:
    graph = grid(4, 4, coupling=1.0, field=1.0, seed=0)
    with interpreted():
        plan = Plan.of(graph, 0, 1000, 2e9, 1e9)
    compiled = Plan.of(graph, 0, 1000, 2e9, 1e9)
    arrays: Any = zip((*plan.tree, *plan.program), (*compiled.tree, *compiled.program), strict=True)
    for ours, other in arrays:
        assert ours.dtype == other.dtype
        assert ours.tobytes() == other.tobytes()
    assert plan.cost == compiled.cost


def test_a_process_stops_interpreting_after_its_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    allowance = anew(monkeypatch)
    graph = fr2(3, 8, density=0.5, seed=0)
    assert Exact().is_ready([graph])
    answers = [answer(graph)]
    assert not allowance.spent
    while not allowance.spent:
        answers.append(answer(graph))
    answers.append(answer(graph))
    assert len(answers) < 200
    assert answers == answers[:1] * len(answers)
    assert not Exact().is_ready([graph])


def test_an_allowance_ends_once_it_is_used() -> None:
    allowance = Allowance(lambda: False, 0.25, 0.075)
    assert [allowance.take(0.03) for _ in range(5)] == [True, True, True, False, False]
    assert allowance.spent
    # One step may take longer than all are meant to, but no other follows it.
    allowance = Allowance(lambda: False, 0.25, 0.075)
    assert [allowance.take(seconds) for seconds in (0.3, 0.2, 0.001)] == [False, True, False]


def test_settings_of_exact_are_checked_once_by_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    auto = get_backend("auto")
    made: list[Exact] = []
    monkeypatch.setattr(Exact, "__post_init__", made.append)
    for _ in range(3):
        auto.infer(small_graph())
    assert made == []


def test_graphs_that_are_not_small_are_not_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    anew(monkeypatch)
    tables = FactorGraph.from_factors([2] * 5, [(range(5), np.ones([2] * 5))])
    long = chain(300, coupling=1.0, field=1.0, seed=0)
    wide = fr2(14, 14, density=1.0, seed=0)
    for graph in (tables, long, wide):
        assert not Exact().is_ready([graph])
        assert not get_backend("auto").is_ready([graph])
    assert not get_backend("lbp").is_ready([small_graph()])
    assert not Exact().is_ready([small_graph()] * 1000)


def test_a_process_that_has_machine_code_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    allowance = anew(monkeypatch)
    assert get_backend("auto").is_ready([small_graph()])
    monkeypatch.setattr(allowance, "_is_loaded", lambda: True)
    assert not get_backend("auto").is_ready([small_graph()])
    Exact().infer(small_graph())
    assert allowance.spent


def calls_by_path(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
    """Count the calls of kernels from Python from now on, by whether they are interpreted."""
    calls: Counter[bool] = Counter()
    call = Kernel.__call__

    def counted(called: Kernel, *arguments: Any) -> Any:
        if not compiled._MODE.within:
            calls[compiled._MODE.interprets] += 1
        return call(called, *arguments)

    monkeypatch.setattr(Kernel, "__call__", counted)
    return calls


def numbers(posterior: Any) -> tuple[Any, ...]:
    """Return log Z and the marginals, to the last bit."""
    return posterior.log_z, posterior.marginals.flat.tobytes()


ENTRIES: dict[str, Callable[[FactorGraph], Any]] = {
    "exact": lambda graph: numbers(infer(graph, "exact")),
    "auto": lambda graph: numbers(infer(graph, "auto")),
    "batch": lambda graph: [*map(numbers, infer_batch([graph] * 3, "exact"))],
    "settings": lambda graph: [
        *map(numbers, infer_settings(graph, [graph.log_values, graph.log_values / 2], "exact"))
    ],
    "rows": lambda graph: infer_rows(graph, [{graph.names[0]: "1"}], "exact").to_csv(),
    "map": lambda graph: map_assignment(graph).log_potential,
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_graph_solved_before_runs_machine_code_once_that_is_loaded(
    entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve, graph = ENTRIES[entry], fr2(3, 8, density=0.5, seed=0)
    allowance = anew(monkeypatch)
    calls = calls_by_path(monkeypatch)
    first = solve(graph)
    assert calls[True]
    assert not calls[False]
    # Another algorithm has loaded Numba.
    monkeypatch.setattr(allowance, "_is_loaded", lambda: True)
    calls.clear()
    assert solve(graph) == first
    assert calls[False]
    assert not calls[True]


@pytest.mark.slow
def test_any_kernel_that_runs_as_machine_code_ends_interpretation() -> None:
    code = (
        "from inference import infer\nfrom inference.exact.small import ALLOWANCE\n"
        "from inference.kernels.compiled import machine_code_is_loaded\n"
        "from inference.warm_up import small_graph\n"
        "graph = small_graph()\n"
        "first = infer(graph, 'exact').log_z\n"
        "print(ALLOWANCE.spent, machine_code_is_loaded())\n"
        "infer(graph, 'lbp')\n"
        "print(infer(graph, 'exact').log_z == first, ALLOWANCE.spent, machine_code_is_loaded())"
    )
    assert run_python(code)[0] == "False False\nTrue True True\n"


def test_warming_up_ends_it_where_something_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    allowance = anew(monkeypatch)
    warm_up_for(get_backend("exact"), [small_graph()])
    assert not allowance.spent
    warm_up(get_backend("exact"))
    assert allowance.spent


@pytest.mark.slow
def test_small_graphs_load_no_compiler_one_by_one_and_in_batches() -> None:
    code = (
        "import sys\nfrom inference import infer, infer_batch\n"
        "from inference.tasks import map_assignment\nfrom inference.warm_up import small_graph\n"
        "graph = small_graph()\n"
        "print(len({infer(graph).log_z, *(one.log_z for one in infer_batch([graph] * 3))}))\n"
        "map_assignment(graph)\n"
        "print(*({'numba', 'llvmlite', 'scipy', 'pandas'} & {*sys.modules}))"
    )
    assert run_python(code)[0] == "1\n\n"


def test_batches_of_few_are_what_each_is(monkeypatch: pytest.MonkeyPatch) -> None:
    several = [fr2(2, 4, density=0.5, seed=seed) for seed in (0, 0, 1)]
    several.append(several[0].with_evidence({0: 1}))
    answers_of_batches = []
    for spent in (False, True):
        allowance = anew(monkeypatch, spent=spent)
        answers_of_batches.append(
            [(each.log_z, each.marginals.flat.tobytes()) for each in infer_batch(several)]
        )
        assert allowance.spent == spent
    assert answers_of_batches[0] == answers_of_batches[1]
