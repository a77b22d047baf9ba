"""Compile the kernels of the core's backends ahead of their first use.

    python -m inference.compile_kernels [-j PROCESSES] [BACKEND]...

`make run` begins so with the backends that it compares, of which it compiles what small graphs
need; `make install` ends so with everything.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from itertools import combinations
from multiprocessing import get_context

from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import fr2
from inference.exact.backend import Exact
from inference.messages.frustration import frustration
from inference.registry import backend_class, entries, get_backend
from inference.tasks import (
    count_distribution,
    map_assignment,
    marginal_map,
    pairwise_joints,
    sample,
    without_variables,
)
from inference.warm_up import small_graph, unannounced, warm_up, warm_up_batches

_COMPOSITE = ("auto",)
"""Backends that run the kernels of others, which are compiled already."""


def compile_kernels(
    backends: Sequence[str] = (),
    processes: int | None = None,
    report: Callable[[int, int, str], None] | None = None,
) -> float:
    """Compile what backends run, in several processes; return the seconds it took.

    The machine code stays on disk beside the kernels and serves every later process.

    Args:
        backends: their names, of which what small graphs need is compiled; none: everything
            of every one that needs no optional library, and of the tasks.
        processes: how many work side by side; by default one for each processor that this process
            may use.
        report: receives, after each group of backends that share kernels, how many groups are
            compiled, how many there are, and the names of the group.

    Raises:
        ValueError: if `processes` is not positive.
    """
    if processes is None:
        processes = _processors()
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
    return time.perf_counter() - start


def _core_backends() -> list[str]:
    """Names of the backends that need no optional library."""
    return [name for name, entry in entries().items() if not entry.requires]


def _processors() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _relatives(names: Sequence[str]) -> list[list[str]]:
    """Backends by the room that they stand in, whose kernels they share: two processes that began
    with two of one room would compile the same at the same time."""
    rooms: dict[str, list[str]] = {}
    for name in names:
        rooms.setdefault(backend_class(name).__module__.rpartition(".")[0], []).append(name)
    return list(rooms.values())


def _compile_each(names: Sequence[str], everything: bool) -> None:
    for name in names:
        (_compile_all if everything else _compile)(name)
        if everything and name == "exact":
            # After it: the tasks share its kernels, which another process would compile again.
            _compile_tasks()


def _compile(name: str) -> None:
    """Compile what a backend runs on small graphs, one by one and in batches."""
    backend = get_backend(name)
    with unannounced():
        warm_up(backend)
        warm_up_batches(backend)
        if isinstance(backend, Exact):
            # What a study asks before its units and for its report: what they will cost, and what
            # passages change.
            backend.predict(fr2(12, 30, density=1.0, seed=0))
            without_variables(fr2(2, 5, density=1.0, seed=0), [0])


def _compile_all(name: str) -> None:
    """Compile what a backend runs on any graph."""
    _compile(name)
    backend = get_backend(name)
    with unannounced():
        if name == "exact":
            # Few atoms with much evidence: what it conditions on instead of eliminating.
            backend.infer(fr2(12, 30, density=1.0, seed=0))
            # Each with each: tables large enough for chunks, which have kernels of their own.
            agree = [[0.6, 0.4], [0.4, 0.6]]
            pairs = [(pair, agree) for pair in combinations(range(20), 2)]
            backend.infer(FactorGraph.from_factors([2] * 20, pairs))
        if name == "lbp":
            # What is left without the factor of three variables is pairs, as `diagnostics` wants.
            frustration(small_graph().with_evidence({4: 0}))


def _compile_tasks() -> None:
    """Compile what is asked beyond marginals: two processes of tests would both compile it."""
    graph = small_graph()
    with unannounced():
        map_assignment(graph)
        marginal_map(graph, [0, 3])
        count_distribution(graph, [0, 1, 3])
        pairwise_joints(graph, [0, 3])
        sample(graph, 2, 0)


def _report(done: int, total: int, names: str) -> None:
    sys.stderr.write(f"compiled kernels {done} of {total}: {names}\n")


def main(arguments: Sequence[str]) -> None:
    """Compile the kernels that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m inference.compile_kernels",
        description="Compile the kernels of backends ahead of their first use.",
    )
    known = sorted(_core_backends())
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=", ".join(known))
    parser.add_argument("-j", "--processes", type=int, help="processes side by side")
    options = parser.parse_args(arguments)
    for name in options.backends:
        if name not in known:
            parser.error(f"backend {name!r} has no kernels here: name any of {', '.join(known)}")
    if options.processes is not None and options.processes < 1:
        parser.error(f"-j must be 1 or more, not {options.processes}")
    took = compile_kernels(options.backends, options.processes, _report)
    sys.stdout.write(
        f"compiled kernels in {took:.0f} s: they are kept, and later runs start at once\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
