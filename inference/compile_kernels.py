"""Compile the kernels of the core's backends ahead of their first use.

    python -m inference.compile_kernels [-j PROCESSES] [BACKEND]...

`make run` first compiles the kernels that its backends need for small graphs; `make install`
compiles everything.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from itertools import combinations
from multiprocessing import get_context

from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import fr2
from inference.exact.backend import Exact
from inference.exact.speed import measure_speed
from inference.messages.frustration import frustration
from inference.registry import backend_class, entries, get_backend
from inference.sampling.annealing import AnnealedImportance
from inference.tasks import (
    count_distribution,
    map_assignment,
    marginal_map,
    pairwise_joints,
    sample,
    without_variables,
)
from inference.thread_team import available_processors
from inference.warm_up import small_graph, unannounced, warm_up, warm_up_batches

_COMPOSITE = ("auto",)
"""Backends without kernels of their own, which use those of others."""


def compile_kernels(
    backends: Sequence[str] = (),
    processes: int | None = None,
    report: Callable[[int, int, str], None] | None = None,
) -> float:
    """Compile the kernels of backends in several processes; return the elapsed seconds.

    The machine code is stored on disk beside the kernels and used by every later process. A first
    use that finds none compiles in two processes: see `inference.kernels.beside`.

    Args:
        backends: names of backends whose kernels for small graphs are compiled; if empty, all
            kernels of the tasks and of the backends without optional libraries are compiled, and
            the speed of this machine is measured for `auto`.
        processes: number of processes; by default, the number of processors available to this one.
        report: called after each group of backends that share kernels, with the number of compiled
            groups, the number of all groups, and the names of the group.

    Raises:
        ValueError: if `processes` is not positive.
    """
    if processes is None:
        processes = available_processors()
    if processes < 1:
        raise ValueError(f"processes must be 1 or more, not {processes}")
    start = time.perf_counter()
    names = backends or [name for name in _core_backends() if name not in _COMPOSITE]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        asked: dict[Future[None], str] = {
            pool.submit(_compile_each, group, not backends): ", ".join(group)
            for group in _relatives(names)
        }
        for done, each in enumerate(as_completed(asked), 1):
            each.result()
            if report is not None:
                report(done, len(asked), asked[each])
        if not backends:
            # At the end, when no other process of these shares the processors.
            pool.submit(measure_speed).result()
    return time.perf_counter() - start


def _core_backends() -> list[str]:
    """Return the names of the backends that need no optional library."""
    return [name for name, entry in entries().items() if not entry.requires]


def _relatives(names: Sequence[str]) -> list[list[str]]:
    """Return groups of backends that share a folder, and therefore kernels.

    Two processes that started with two backends of a group would compile the same kernels.
    """
    rooms: dict[str, list[str]] = {}
    for name in names:
        rooms.setdefault(backend_class(name).__module__.rpartition(".")[0], []).append(name)
    return list(rooms.values())


def _compile_each(names: Sequence[str], everything: bool) -> None:
    for name in names:
        (_compile_all if everything else _compile)(name)
        if everything and name == "exact":
            # In the same process, since the tasks use the kernels of `exact`.
            _compile_tasks()


def _compile(name: str) -> None:
    """Compile the kernels of a backend for small graphs, in single calls and in batches."""
    backend = get_backend(name)
    with unannounced():
        warm_up(backend)
        warm_up_batches(backend)
        if isinstance(backend, Exact):
            # Studies also predict costs before they run, and effects of passages for the report.
            backend.predict(fr2(12, 30, density=1.0, seed=0))
            without_variables(fr2(2, 5, density=1.0, seed=0), [0])


def _compile_all(name: str) -> None:
    """Compile all kernels of a backend."""
    _compile(name)
    backend = get_backend(name)
    with unannounced():
        if name == "exact":
            # Few atoms with much evidence, which are solved by conditioning.
            backend.infer(fr2(12, 30, density=1.0, seed=0))
            # A complete graph, with tables large enough for the kernels of chunks.
            agree = [[0.6, 0.4], [0.4, 0.6]]
            pairs = [(pair, agree) for pair in combinations(range(20), 2)]
            backend.infer(FactorGraph.from_factors([2] * 20, pairs))
            # Gradients of log Z.
            graph = small_graph()
            Exact().prepare_beliefs(graph)(graph.log_values)
            # So long a loop that the order is found without a matrix of its variables.
            loop = [((v, (v + 1) % 20_000), agree) for v in range(20_000)]
            backend.infer(FactorGraph.from_factors([2] * 20_000, loop))
        if name == "lbp":
            # Without the factor of three variables, the graph is pairwise, as `diagnostics`
            # requires.
            frustration(small_graph().with_evidence({4: 0}))
        if name == "wmb_is":
            # Draws, which an exact proposal does without.
            get_backend(name, i_bound=1).infer(small_graph())


def _compile_tasks() -> None:
    """Compile the kernels of the tasks, which parallel tests would otherwise both compile."""
    graph = small_graph()
    with unannounced():
        map_assignment(graph)
        marginal_map(graph, [0, 3])
        count_distribution(graph, [0, 1, 3])
        pairwise_joints(graph, [0, 3])
        sample(graph, 2, 0)
        without_variables(graph, [0], exact=Exact(memory_limit=1), otherwise=AnnealedImportance())


def _report(done: int, total: int, names: str) -> None:
    sys.stderr.write(f"compiled kernels {done} of {total}: {names}\n")


def main(arguments: Sequence[str]) -> None:
    """Compile the kernels of the backends named on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m inference.compile_kernels",
        description="Compile the kernels of backends ahead of their first use.",
    )
    known = sorted(_core_backends())
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=", ".join(known))
    parser.add_argument("-j", "--processes", type=int, help="number of processes")
    options = parser.parse_args(arguments)
    for name in options.backends:
        if name not in known:
            parser.error(f"backend {name!r} has no kernels here: name any of {', '.join(known)}")
    if options.processes is not None and options.processes < 1:
        parser.error(f"-j must be 1 or more, not {options.processes}")
    took = compile_kernels(options.backends, options.processes, _report)
    sys.stdout.write(f"compiled kernels in {took:.0f} s: later runs use them\n")


if __name__ == "__main__":
    main(sys.argv[1:])
