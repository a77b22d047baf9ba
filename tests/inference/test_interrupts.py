"""An interrupt of the main thread amid compiled code is a `KeyboardInterrupt`, and nothing else."""

from __future__ import annotations

import gc
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from random import Random
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core import serialize, types
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import fr2
from inference import Status, entries, infer, infer_anytime
from inference.exact.small import end_interpretation
from inference.kernels.compiled import kernel
from inference.tasks import (
    count_distribution,
    map_assignment,
    marginal_map,
    pairwise_joints,
    sample,
    without_variables,
)
from tests.inference.forked_python import run_with_numba

Run = Callable[[int], object]


class Pair(NamedTuple):
    """Two arrays."""

    ones: NDArray[np.float64]
    flags: NDArray[np.bool_]


def arrays_of(n: int) -> tuple[NDArray[np.float64], NDArray[np.bool_], int]:
    """Arrays, after a while if they are long."""
    ones = np.ones(n)
    for k in range(n):
        ones[k] = np.sin(ones[k])
    return ones[:3].copy(), ones[:3] > 0.0, n


def named_arrays_of(n: int) -> Pair:
    """Return the same under names."""
    return Pair(np.ones(n), np.ones(n) > 0.0)


def length_of(pair: Pair) -> int:
    """Take named arrays."""
    return len(pair.ones) + len(pair.flags)


def ends(run: Run, rounds: int = 25, longest: float = 0.1) -> dict[str, int]:
    """Ends of runs that are interrupted at random times, after an uninterrupted one.

    Args:
        run: is called with a number again and again, until it is interrupted.
        rounds: interrupts.
        longest: seconds until one comes, at most.
    """
    run(0)
    # Once more: the first may have loaded machine code, and left much to clear up.
    gc.collect()
    start = time.perf_counter()
    run(1)
    longest = min(longest, time.perf_counter() - start)
    random = Random(0)
    endings: Counter[str] = Counter()
    came = False

    def interrupt(*_: object) -> None:
        nonlocal came
        came = True
        raise KeyboardInterrupt

    def ignored(*_: object) -> None:
        # Python itself tells of an interrupt amid the callback of a weak reference, and goes on.
        nonlocal came
        came = False
        endings["KeyboardInterrupt"] += 1

    sys.unraisablehook = ignored
    signal.signal(signal.SIGALRM, interrupt)
    for _ in range(rounds):
        came = False
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, longest))
            before = endings.total()
            for number in count(2):
                result = run(number)
                if came:
                    endings["told" if result is Status.INTERRUPTED else "lost"] += 1
                if endings.total() > before:
                    break
        except BaseException as error:
            endings[type(error).__name__] += 1
    return endings


def ends_of_small_results() -> dict[str, dict[str, int]]:
    """Ends of kernels that do little more than return a result."""
    arrays, named, length = kernel(arrays_of), kernel(named_arrays_of), kernel(length_of)
    pair = Pair(np.ones(3), np.ones(3) > 0.0)
    arrays.compile((types.int64,))
    # The first result that the process makes comes too late.
    first = ends(lambda number: arrays(10**7 if number == 2 else 3), rounds=1, longest=0.01)
    kernels: list[Callable[[], object]] = [lambda: arrays(3), lambda: named(3)]
    kernels.append(lambda: length(pair))
    endings = [
        ends(lambda _, kernel=kernel: [kernel() for _ in range(50)], 200, 0.001)  # type: ignore[misc]
        for kernel in kernels
    ]
    return dict(zip(("first", "arrays", "named", "length"), [first, *endings], strict=True))


def _graph(number: int) -> FactorGraph:
    return fr2(24, 4, density=0.05, seed=number)


def _enumerated(number: int) -> object:
    return infer(fr2(4, 3, density=0.1, seed=number), "enumeration")


def _anytime(number: int) -> Status:
    graph = fr2(70, 6, density=0.05, seed=number)
    *_, last = infer_anytime(graph, seconds=0.3)
    return last.status


TASKS: dict[str, Run] = {
    "map_assignment": lambda number: map_assignment(_graph(number)),
    "marginal_map": lambda number: marginal_map(_graph(number), range(3)),
    "sample": lambda number: sample(_graph(number), 200, seed=0),
    "count_distribution": lambda number: count_distribution(_graph(number), range(24)),
    "pairwise_joints": lambda number: pairwise_joints(_graph(number), range(12)),
    "without_variables": lambda number: without_variables(_graph(number), range(24, 30)),
    "infer_anytime": _anytime,
    "enumeration": _enumerated,
}

BACKENDS: dict[str, dict[str, Any]] = {
    name: {"draws": 100} if name == "gibbs" else {}
    for name, entry in entries().items()
    if not entry.requires and name != "enumeration"
}


def ends_of(names: Iterable[str], rounds: int) -> dict[str, dict[str, int]]:
    """Ends of interrupted runs of backends and tasks, `rounds` of each."""

    # Numba is loaded before, and not amid a run that is interrupted.
    end_interpretation()

    def infers(name: str) -> Run:
        return lambda number: infer(_graph(number), name, **BACKENDS[name])

    return {name: ends(TASKS.get(name) or infers(name), rounds) for name in names}


def returned_types() -> Iterator[tuple[str, Any]]:
    """Types that the kernels named in the library's Python code returned, if they have run."""
    for path, module in list(sys.modules.items()):
        room, *below = path.split(".")
        if room not in ("inference", "calibration") or "kernels" in below:
            continue
        for name, value in vars(module).items():
            for signature in getattr(value, "nopython_signatures", ()):
                yield name, signature.return_type


def _parts(kind: Any) -> list[Any]:
    parts: Any = kind if isinstance(kind, types.BaseTuple) else ()
    return list(parts)


def _holds_names(kind: Any) -> bool:
    return isinstance(kind, types.BaseNamedTuple) or any(map(_holds_names, _parts(kind)))


def test_numba_calls_no_python_function_within_a_result() -> None:
    kernel(length_of)(Pair(np.ones(1), np.ones(1) > 0.0))
    # Where Numba calls something else, or nothing, `inference.kernels.interrupts` has to follow.
    assert callable(serialize._numba_unpickle)
    unwrapped = getattr(serialize._numba_unpickle, "__wrapped__", None)
    assert unwrapped is not None
    assert not isinstance(unwrapped, FunctionType)


def _result_of_fresh_process(call: str) -> Any:
    code = f"import json\nfrom tests.inference.test_interrupts import *\nprint(json.dumps({call}))"
    return json.loads(run_with_numba(code)[0])


def test_small_results_are_interrupted_as_python_code_is() -> None:
    for name, endings in _result_of_fresh_process("ends_of_small_results()").items():
        assert set(endings) == {"KeyboardInterrupt"}, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "rounds"),
    [
        ("BACKENDS", 4),
        pytest.param("BACKENDS", 25, marks=pytest.mark.nightly),
        pytest.param("TASKS", 25, marks=pytest.mark.nightly),
    ],
)
def test_whatever_runs_is_interrupted_as_python_code_is(names: str, rounds: int) -> None:
    for name, endings in _result_of_fresh_process(f"ends_of({names}, {rounds})").items():
        if name in ("auto", "infer_anytime"):
            endings["KeyboardInterrupt"] = endings.get("KeyboardInterrupt", 0) + endings.pop(
                "told", 0
            )
        assert endings == {"KeyboardInterrupt": rounds}, name


@pytest.mark.slow
def test_kernels_called_from_python_return_no_nested_named_tuple() -> None:
    """Numba calls its class, which is Python code, and takes for granted that it returns."""
    for run in TASKS.values():
        run(0)
    for name, settings in BACKENDS.items():
        infer(_graph(0), name, **settings)
    seen = dict(returned_types())
    assert {"buckets_of", "plant_program", "tighten", "reduce_graph", "run_chain"} <= set(seen)
    for name, kind in returned_types():
        assert not any(map(_holds_names, _parts(kind))), name
