"""Kernels, for which less is written down for LLVM, do what the same functions do in Python."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import config
from numba.core.compiler import Compiler
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]
from numba.core.runtime.nrt import rtsys
from numpy.typing import NDArray

from inference.kernels.compiled import kernel

pytestmark = pytest.mark.slow

Numbers = NDArray[Any]

allocations: Callable[[], Any] = rtsys.get_allocation_stats


class Inner(NamedTuple):
    """What lies within `Outer`."""

    numbers: Numbers
    factor: float


class Outer(NamedTuple):
    """A tuple within a tuple."""

    first: Numbers
    inner: Inner
    second: Numbers


def entry(values: Numbers, i: int) -> Any:
    """One entry."""
    return values[i]


def entry_of_table(table: Numbers, i: int, j: int) -> Any:
    """One entry, and one of a row."""
    return table[i, j], table[i][j], table[-1, 0]


def changed(values: Numbers, i: int, number: float) -> Numbers:
    """Copy of values in which one is another, and the last one more."""
    result = values.copy()
    result[i] = number
    result[-1] += 1
    return result


def changed_table(table: Numbers, i: int, j: int, number: float) -> Numbers:
    """Copy of a table in which one entry is another."""
    result = table.copy()
    result[i, j] = number
    result[i, 0] += 1
    return result


def stretches(values: Numbers, start: int, stop: int) -> tuple[Numbers, Numbers, Numbers, int]:
    """Stretches of values, one of them written to."""
    copied = values.copy()
    within = copied[start:stop]
    for i in range(len(within)):
        within[i] = i
    return copied, values[start:].copy(), values[:stop].copy(), len(within)


def filled(values: Numbers, start: int, stop: int) -> Numbers:
    """Copy of values in which stretches are numbers."""
    result = values.copy()
    result[start:stop] = 7
    result[:1] = values[1]
    return result


def steps(start: int, stop: int, step: int) -> Numbers:
    """What loops go through, also from within one another and where they are left early."""
    found = np.full(200, -1000, dtype=np.int64)
    at = 0
    for i in range(start, stop, step):
        found[at] = i
        at += 1
    for i in range(start, stop):
        if i == 2:
            continue
        for j in range(i):
            if j == 3:
                break
            found[at] = i * j
            at += 1
    for i in range(stop):
        found[at] = i
        at += 1
    for _ in range(2):
        for i in range(start, stop, 2):
            found[at] = i
            at += 1
    return found[:at].copy()


def parts(whole: Outer, number: int) -> tuple[float, Numbers, Inner]:
    """What lies within a tuple, unpacked and looked up, in loops and after a change of names."""
    first, inner, second = whole
    numbers, factor = inner
    total = 0.0
    for i in range(len(first)):
        again = whole.inner
        if number > 0:
            total += again.numbers[i] * again.factor + second[i]
        else:
            total -= numbers[i] * factor
    if number > 1:
        first = second
    for value in first:
        total += value
    return total, first, inner


def replaced(values: Numbers, number: int) -> Numbers:
    """An argument whose name is given to something else."""
    for i in range(number):
        values = values[1:] if i % 2 == 0 else values.copy()
    return values


def itself(whole: Outer) -> Outer:
    """The argument."""
    return whole


def same(one: Any, other: Any) -> bool:
    """Whether two answers are equal, entry by entry."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(np.array_equal(one, other))


def references(values: Any) -> list[int]:
    """How many references there are to each array within tuples."""
    if isinstance(values, tuple):
        return [count for each in values for count in references(each)]
    return [sys.getrefcount(values)] if isinstance(values, np.ndarray) else []


VALUES = [
    np.array([3, 1, 4, 1, 5]),
    np.array([2.5, -0.0, np.inf, 1.0, 7.0]),
    np.array([True, False, True, True, False]),
    np.array([3, 1, 4, 1, 5], dtype=np.int32),
    np.arange(10.0)[::2],
    np.arange(5)[::-1],
]
WHOLE = Outer(np.arange(3.0), Inner(np.array([1.0, 5.0, 2.0]), 0.5), np.ones(3))


@pytest.mark.parametrize("values", VALUES, ids=lambda each: f"{each.dtype}-{each.strides[0]}")
def test_entries_are_found_from_both_ends(values: Numbers) -> None:
    compiled, writing = kernel(entry), kernel(changed)
    for i in range(-5, 5):
        assert compiled(values, i) == entry(values, i)
        assert np.array_equal(writing(values, i, 1), changed(values, i, 1))
        if i >= 0:
            assert compiled(values, np.uint64(i)) == entry(values, i)


@pytest.mark.parametrize("order", ["C", "F"])
def test_entries_of_tables_are_found_from_both_ends(order: Any) -> None:
    table = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
    compiled, writing = kernel(entry_of_table), kernel(changed_table)
    for i in range(-2, 2):
        for j in range(-3, 3):
            assert compiled(table, i, j) == entry_of_table(table, i, j)
            assert np.array_equal(writing(table, i, j, 9.0), changed_table(table, i, j, 9.0))


@pytest.mark.parametrize("function", [stretches, filled])
@pytest.mark.parametrize(
    "values", [VALUES[1], VALUES[4]], ids=["one after another", "every second"]
)
def test_stretches_end_where_the_array_does(function: Callable[..., Any], values: Numbers) -> None:
    compiled = kernel(function)
    for start in (-9, -5, -2, 0, 1, 4, 5, 9):
        for stop in (-9, -5, -2, 0, 1, 4, 5, 9):
            found = compiled(values, start, stop)
            assert same(found, function(values, start, stop)), (start, stop)


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_loops_take_their_steps(step: int) -> None:
    compiled = kernel(steps)
    for start in (-2, 0, 3):
        for stop in (-4, 0, 3, 6):
            found = compiled(start, stop, step)
            assert np.array_equal(found, steps(start, stop, step)), (start, stop)


def test_a_loop_without_a_step_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be zero"):
        kernel(steps)(0, 3, 0)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_parts_of_tuples_are_what_was_given(number: int) -> None:
    assert same(kernel(parts)(WHOLE, number), parts(WHOLE, number))


@pytest.fixture
def counting() -> Iterator[None]:
    """Have Numba count what it allocates and frees."""
    _nrt_python.memsys_enable_stats()
    yield
    _nrt_python.memsys_disable_stats()


@pytest.mark.usefixtures("counting")
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (parts, (WHOLE, 2)),
        (itself, (WHOLE,)),
        (replaced, (VALUES[1], 3)),
        (replaced, (VALUES[1], 0)),
    ],
)
def test_what_a_kernel_returns_is_held_and_let_go(
    function: Callable[..., Any], arguments: Sequence[Any]
) -> None:
    compiled = kernel(function)
    for _ in range(2):
        compiled(*arguments)
    gc.collect()
    before = allocations()
    held = references(arguments)
    found = [compiled(*arguments) for _ in range(10)]
    assert all(same(each, function(*arguments)) for each in found)
    del found
    gc.collect()
    after = allocations()
    assert after.alloc - before.alloc == after.free - before.free
    assert references(arguments) == held


def test_threads_share_what_they_are_lent() -> None:
    compiled = kernel(parts)
    expected = compiled(WHOLE, 2)
    gc.collect()
    held = references(WHOLE)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: compiled(WHOLE, 2), range(600)))
    assert all(same(each, expected) for each in found)
    del found
    gc.collect()
    assert references(WHOLE) == held


def test_an_array_outlives_the_argument_that_it_lay_in() -> None:
    compiled = kernel(parts)
    _, first, inner = compiled(
        Outer(np.arange(3.0), Inner(np.arange(3.0, 6.0), 2.0), np.ones(3)), 0
    )
    gc.collect()
    np.full(3, 77.0)
    assert first.tolist() == [0.0, 1.0, 2.0]
    assert inner.numbers.tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(parts, (WHOLE, 2)), (stretches, (VALUES[1], 1, -1)), (steps, (0, 6, 1))],
)
def test_a_numba_that_was_not_tried_compiles_by_itself_and_finds_the_same(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    function: Callable[..., Any],
    arguments: Sequence[Any],
) -> None:
    ours = kernel(function)
    monkeypatch.setattr("inference.kernels.compiled._TRIED", ((0, 1), (0, 2)))
    # What is kept on disk may be of either.
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    numbas = kernel(function)
    assert [each._compiler.pipeline_class is Compiler for each in (ours, numbas)] == [False, True]
    assert same(ours(*arguments), function(*arguments))
    assert same(numbas(*arguments), function(*arguments))
