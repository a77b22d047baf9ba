"""Views: what a kernel is lent is as it was, and nobody is given what nobody holds."""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from inference import infer
from inference.kernels.compiled import Kernel, kernel
from inference.kernels.views import lent, read_only
from tests.inference.test_interrupts import BACKENDS, TASKS, _graph
from tests.processes import ROOT

Numbers = NDArray[Any]


class Inner(NamedTuple):
    """Inner value of `Outer`."""

    numbers: Numbers
    factor: float


class Outer(NamedTuple):
    """A tuple within a tuple."""

    first: Numbers
    inner: Inner


@kernel
def add_up(whole, count):  # type: ignore[no-untyped-def] # as all kernels
    """Sum what lies within a tuple, and write to it."""
    whole = lent(whole)
    total = 0.0
    for _ in range(count):
        for i in range(len(whole.first)):
            total += whole.first[i] * whole.inner.numbers[i] * whole.inner.factor
    whole.first[0] = -1.0
    return total, whole.first[1:].copy()


@kernel
def without_first(values):  # type: ignore[no-untyped-def]
    """A part of an array that cannot be written to."""
    return read_only(values)[1:]


def test_borrowed_views_share_the_given_arrays() -> None:
    whole = Outer(np.arange(4.0), Inner(np.ones(4), 0.5))
    counts = [sys.getrefcount(each) for each in (whole.first, whole.inner.numbers)]
    total, rest = add_up(whole, 3)
    assert total == 9.0
    assert whole.first.tolist() == [-1.0, 1.0, 2.0, 3.0]
    assert rest.tolist() == [1.0, 2.0, 3.0]
    assert [sys.getrefcount(each) for each in (whole.first, whole.inner.numbers)] == counts


def test_a_part_that_cannot_be_written_to_holds_its_array() -> None:
    part = without_first(np.arange(3.0))
    gc.collect()
    np.full(3, 77.0)
    assert part.tolist() == [1.0, 2.0]
    assert not part.flags.writeable


def _roots(value: ast.expr | None) -> Iterator[str]:
    """Names of what is returned as it is, or whose part is."""
    if isinstance(value, ast.Tuple):
        for each in value.elts:
            yield from _roots(each)
    elif isinstance(value, ast.Attribute) or (
        isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)
    ):
        yield from _roots(value.value)
    elif isinstance(value, ast.Name):
        yield value.id


def _lenders() -> Iterator[tuple[str, ast.FunctionDef, set[str]]]:
    for path in sorted((ROOT / "inference").rglob("kernels/**/*.py")):
        for function in ast.parse(path.read_text()).body:
            if isinstance(function, ast.FunctionDef):
                lending = [
                    {each.id for each in ast.walk(call.args[0]) if isinstance(each, ast.Name)}
                    for call in ast.walk(function)
                    if isinstance(call, ast.Call) and ast.unparse(call.func) == "lent"
                ]
                if lending:
                    yield f"{path}:{function.lineno}", function, set().union(*lending)


def test_kernels_lend_what_they_are_given_and_return_nothing_of_it() -> None:
    lenders = list(_lenders())
    assert len(lenders) > 20
    for lender, function, names in lenders:
        assert "inlined_kernel" not in map(ast.unparse, function.decorator_list), lender
        assert names <= {each.arg for each in function.args.args}, lender
        returned = [each.value for each in ast.walk(function) if isinstance(each, ast.Return)]
        assert not names & {name for value in returned for name in _roots(value)}, lender


def _arrays(result: Any) -> list[Numbers]:
    if isinstance(result, tuple):
        return [array for each in result for array in _arrays(each)]
    return [result] if isinstance(result, np.ndarray) else []


@pytest.mark.slow
def test_whatever_a_kernel_returns_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that returned what it is lent would give an array without an owner."""
    seen = set()

    def checked(name: str, compiled: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            result = compiled(*arguments)
            for array in _arrays(result):
                seen.add(name)
                assert array.flags.owndata or array.base is not None or array.size == 0, name
            return result

        return call

    def run() -> None:
        for task in TASKS.values():
            task(0)
        for name, settings in BACKENDS.items():
            infer(_graph(0), name, **settings)

    # Modules are loaded when they are first needed.
    run()
    for path, module in list(sys.modules.items()):
        room, *below = path.split(".")
        if room in ("inference", "calibration") and "kernels" not in below:
            for name, value in list(vars(module).items()):
                if isinstance(value, Kernel):
                    monkeypatch.setattr(module, name, checked(name, value))
    run()
    assert {"buckets_of", "plant_program", "reduce_graph", "tighten"} <= seen
