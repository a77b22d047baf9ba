"""Kernels: logged compilations, interrupts, and code on disk."""

from __future__ import annotations

import ast
import gc
import io
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
from rich.console import Console

import inference.kernels.compiling
from experiments.cli.progress import announced
from inference.kernels.compiled import inner_kernel, kernel
from inference.warm_up import unannounced
from tests.inference.forked_python import run_with_numba
from tests.processes import ROOT, run_python


def _depth(node: ast.AST, depth: int = 0) -> int:
    """Number of loops and conditions around the innermost statement; an `elif` adds none."""
    deepest = depth
    for child in ast.iter_child_nodes(node):
        inside = depth
        if isinstance(child, ast.For | ast.While | ast.If | ast.With | ast.Try):
            is_chained = isinstance(node, ast.If) and node.orelse == [child]
            inside += not (is_chained and isinstance(child, ast.If))
        deepest = max(deepest, _depth(child, inside))
    return deepest


def test_kernels_nest_loops_and_conditions_four_deep_at_most() -> None:
    files = [
        path for folder in ("inference", "calibration") for path in (ROOT / folder).rglob("*.py")
    ]
    kernels = [path for path in files if "kernels" in path.parts]
    assert len(kernels) > 50
    deep = {
        function.name
        for path in kernels
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and _depth(function) > 4
    }
    assert not deep


@pytest.mark.slow
def test_machine_code_for_a_type_that_is_gone_is_compiled_again(tmp_path: Path) -> None:
    source = (
        "from typing import NamedTuple\nfrom inference.kernels.compiled import kernel\n"
        "class {0}(NamedTuple):\n    x: int\n"
        "@kernel\ndef double(pair):\n    return 2 * pair.x\n"
        "def run():\n    return double({0}(2))\n"
    )
    for name in ("Before", "After"):
        (tmp_path / "pairs.py").write_text(source.format(name))
        assert run_with_numba("from pairs import run\nprint(run())", folder=tmp_path)[0] == "4\n"


@pytest.mark.slow
def test_a_full_disk_costs_what_is_kept_and_no_answer(tmp_path: Path) -> None:
    code = (
        "import logging\nfrom inference.kernels.compiled import kernel\n"
        "from tests.memory import writing_at_most\nimport slow_sum\n"
        "logging.basicConfig(format='%(message)s')\n"
        "with writing_at_most(16):\n    print(slow_sum.total(3))\n"
    )
    (tmp_path / "slow_sum.py").write_text(
        "from inference.kernels.compiled import kernel\n"
        "@kernel\ndef total(n):\n    return n * (n + 1) // 2\n"
    )
    output, warned = run_with_numba(code, folder=tmp_path)
    assert output == "6\n"
    assert warned.count("cannot be kept on disk (File too large)") == 1


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_after_a_compilation_as_before(collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        kernel(increase)(1)
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()


def increase(x: int) -> int:
    """Return one more."""
    return x + 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have every compilation last longer than anybody waits, in a process that knows of none."""
    # What an earlier run compiled would be loaded, and not announced.
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    inference.kernels.compiling._announce.cache_clear()
    monkeypatch.setattr(inference.kernels.compiling, "PATIENCE", 0.0)
    # A thread of its own would race with a compilation as short as this one.
    monkeypatch.setattr(inference.kernels.compiling, "Timer", _AtOnce)


class _AtOnce:
    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        self.seconds, self.function = seconds, function

    def start(self) -> None:
        if self.seconds <= 0.0:
            self.function()

    def cancel(self) -> None:
        self.seconds = 1.0


@pytest.mark.usefixtures("impatient")
def test_a_long_compilation_is_announced_once(caplog: pytest.LogCaptureFixture) -> None:
    compiled = kernel(increase)
    assert (compiled(1), compiled(1.5), compiled(2)) == (2, 2.5, 3)
    (record,) = caplog.records
    # Python shows warnings on standard error where nobody has set logging up.
    assert record.levelno == logging.WARNING
    assert "compiling kernels: once" in record.getMessage()
    # How long one may have to wait, before the waiting.
    assert "10 to 60 seconds of processor time" in record.getMessage()


@pytest.mark.slow
def test_machine_code_from_disk_is_not_announced_however_long_it_takes(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "from inference.kernels import compiled, compiling\n"
        "compiling.PATIENCE = 0.0\n"
        "@compiled.kernel\ndef half(n):\n    return n / 2\n"
        "load = half._cache.load_overload\n"
        "def slowly(*keys):\n    compiling.time.sleep(0.5)\n    return load(*keys)\n"
        "half._cache.load_overload = slowly\n"
    )
    code = "from steps import half\nprint(half(3))"
    compiling, loading = (run_with_numba(code, folder=tmp_path) for _ in range(2))
    assert "compiling kernels" in compiling[1]
    assert loading == ("1.5\n", "")


@pytest.mark.usefixtures("impatient")
def test_the_command_line_speaks_for_the_library(caplog: pytest.LogCaptureFixture) -> None:
    with unannounced():
        assert kernel(increase)(1) == 2
    assert not caplog.records


def test_a_short_compilation_is_not_announced(caplog: pytest.LogCaptureFixture) -> None:
    inference.kernels.compiling._announce.cache_clear()
    assert kernel(increase)(1 + 1j) == 2 + 1j
    assert not caplog.records


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_amid_a_callback_of_llvm_is_raised(
    raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    compiled = kernel(increase)

    def interrupt(frame: Any, *_: object) -> None:
        if frame.f_code.co_name.startswith("_raw_object_cache"):
            sys.setprofile(None)
            raise raised

    before = sys.getprofile()
    sys.setprofile(interrupt)
    try:
        with pytest.raises(raised):
            compiled(1)
    finally:
        sys.setprofile(before)
    assert printed == []
    assert compiled(1) == 2


READ_AND_INTERRUPTED = """
import sys
from steps import half, third

def interrupt(frame, *_):
    if frame.f_code.co_name.startswith("_raw_object_cache"):
        sys.setprofile(None)
        raise KeyboardInterrupt

third(3)
sys.setprofile(interrupt)
try:
    half(3)
except KeyboardInterrupt:
    print("interrupted")
print(half(3))
"""


@pytest.mark.slow
def test_code_is_read_again_after_an_interrupt_amid_its_reading(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "from inference.kernels.compiled import kernel\n"
        "@kernel\ndef half(n):\n    return n / 2\n"
        "@kernel\ndef third(n):\n    return n / 3\n"
    )
    for _ in range(2):
        assert run_with_numba(READ_AND_INTERRUPTED, folder=tmp_path)[0] == "interrupted\n1.5\n"


def test_other_errors_in_a_callback_are_still_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)

    class Failing:
        def __del__(self) -> None:
            raise ValueError("a finalizer")

    with inference.kernels.compiling._interrupts_raised():
        Failing()
    (line,) = printed
    assert str(line.exc_value) == "a finalizer"


@pytest.mark.slow
def test_numbers_that_are_written_out_have_no_kernels_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "from inference.kernels.compiled import kernel\n"
        "from inference.kernels.views import read_only\n"
        "@kernel\ndef plus(values, place, more):\n    return values[place] + (1 if more else 0)\n"
        "@kernel\ndef twice(values, place):\n"
        "    total = plus(read_only(values), 0, False) + plus(values, 1, True)\n"
        "    return total + plus(read_only(values), place, True)\n"
    )
    code = (
        "import numpy as np\nfrom steps import plus, twice\n"
        "print(twice(np.arange(3), 2), *(array.mutable for array, *_ in plus.signatures))"
    )
    assert run_with_numba(code, folder=tmp_path)[0] == "5 False True\n"


KERNELS_CALLED_IN_TURN = """
import sys
import numpy as np
from inference.kernels.compiled import Kernel
from factormodels import datasets
from inference import get_backend, infer_batch
from inference.tasks import (
    count_distribution, map_assignment, marginal_map, pairwise_joints, sample, without_variables,
)

graphs = [graph.to_factor_graph() for graph in datasets.load("demonstration").graphs]
for name in ("exact", "lbp", "trw", "wmb", "ijgp", "cavi", "gibbs", "ais"):
    infer_batch(graphs[:2], get_backend(name))
    for graph in graphs[:2]:
        get_backend(name).infer(graph)
        get_backend(name).infer(graph.with_evidence({0: 1}))
for graph in graphs[:2]:
    map_assignment(graph)
    marginal_map(graph, [0])
    count_distribution(graph, [0, 1])
    pairwise_joints(graph, [0, 1])
    sample(graph, 2, 0)
    without_variables(graph, [0])
for module in list(sys.modules.values()):
    if ".kernels." in getattr(module, "__name__", ""):
        for name, kernel in sorted(vars(module).items()):
            if isinstance(kernel, Kernel) and kernel.__module__ == module.__name__:
                if len(kernel.signatures) > 1:
                    print(name)
"""


@pytest.mark.slow
def test_callees_are_compiled_for_one_kind_of_arguments() -> None:
    # These know numbers that are written out in a call; of a short one that kernels alone call, the
    # kinds are seen where it is not on disk yet.
    assert set(run_with_numba(KERNELS_CALLED_IN_TURN)[0].split()) <= {"_add_up", "exponentials"}


@inner_kernel
def double(value):  # type: ignore[no-untyped-def] # as all kernels
    return 2 * value


@kernel
def _quadruple(value):  # type: ignore[no-untyped-def]
    return double(double(value))


@kernel
def quadruple(value):  # type: ignore[no-untyped-def]
    return _quadruple(value)


@pytest.mark.parametrize("inner", [double, _quadruple])
def test_an_inner_kernel_is_called_by_kernels_alone(inner: Callable[[int], int]) -> None:
    assert quadruple(3) == 12
    with pytest.raises(TypeError, match="is an inner one"):
        inner(3)


NUMBA_BEFORE_AND_AFTER = """
import importlib, pkgutil, sys
import numba
from llvmlite.binding import ffi
from numba.core.event import install_recorder

def numbas():
    modules = [(n, m) for n, m in sys.modules.items() if n.split(".")[0] in ("numba", "llvmlite")]
    holders = [((name, ""), module) for name, module in modules]
    for name, module in modules:
        holders += [((name, n), v) for n, v in vars(module).items() if isinstance(v, type)]
    return {(*whose, n): v for whose, each in holders for n, v in vars(each).items()}

before, heard = numbas(), list(ffi.lib._lock._cblist)
import inference, calibration.scores.kernels
for package in (inference, calibration.scores.kernels):
    for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".kernels" in each.name:
            importlib.import_module(each.name)
after = numbas()
print(*(key for key in before if after.get(key) is not before[key]), file=sys.stderr)
print(ffi.lib._lock._cblist == heard, len(before) > 1000, len(sys.modules))
with install_recorder("numba:llvm_lock") as recorder:
    numba.njit(lambda value: value + 1)(1)
print(len(recorder.buffer) > 0)
"""


@pytest.mark.slow
def test_importing_kernels_leaves_numba_and_its_events_as_they_were() -> None:
    output, changed = run_python(NUMBA_BEFORE_AND_AFTER)
    assert changed.split() == []
    unheard, looked_at, _, failure = output.split()
    assert (unheard, looked_at, failure) == ("True", "True", "True")


@pytest.mark.parametrize("terminal", [True, False])
def test_time_of_compilations_is_reported_once(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.cli.progress._WORTH_SAYING", 0.0)
    monkeypatch.setattr(inference.kernels.compiling, "PATIENCE", 0.0)
    inference.kernels.compiling._announce.cache_clear()
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=100)
    kernels = logging.getLogger(inference.kernels.compiling.__name__)
    before = (kernels.level, kernels.propagate, list(kernels.handlers))
    with announced(console):
        compiled = kernel(increase)
        assert (compiled(1), compiled(1.5)) == (2, 2.5)
    assert (kernels.level, kernels.propagate, kernels.handlers) == before
    text = stream.getvalue()
    assert text.count("compiled kernels in ") == terminal
    assert ("later runs start at once" in text) == terminal
    # The first line comes from a timer of no seconds, which may lose against a quick compiler.
    assert ("compiling kernels: once" in text) <= terminal


def test_callees_of_a_kernel_count_in_its_time() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    logger = logging.getLogger("inference.kernels.compiling")
    with announced(console):
        (heard,) = logger.handlers
        for created, seconds in ((10.0, 2.0), (15.0, 8.0), (30.0, 1.5)):
            record = logger.makeRecord(logger.name, logging.INFO, "", 0, "compiled", (), None)
            record.created, record.seconds = created, seconds
            heard.handle(record)
    assert "9.50" in stream.getvalue()


def test_steps_of_a_compilation_are_shown_once_it_was_announced() -> None:
    logger = logging.getLogger("inference.kernels.compiling")
    steps: list[str] = []
    with announced(Console(file=io.StringIO(), force_terminal=True), steps.append):
        (heard,) = logger.handlers
        for created, seconds in ((10.0, 2.0), (16.0, 4.0)):
            record = logger.makeRecord(logger.name, logging.INFO, "", 0, "compiled", (), None)
            record.created, record.seconds = created, seconds
            heard.handle(record)
            logger.warning("compiling kernels: once")
    assert steps == ["compiled 2 kernels in 6.00 s so far"]


def test_expected_wait_is_reported_before_it_and_only_then() -> None:
    stream = io.StringIO()
    kernels = logging.getLogger(inference.kernels.compiling.__name__)
    inference.kernels.compiling._announce.cache_clear()
    with announced(Console(file=stream, force_terminal=True, color_system=None, width=200)):
        inference.kernels.compiling._announce()
        kernels.warning("compiled kernels cannot be kept on disk")
    first, second = stream.getvalue().splitlines()
    assert "compiling kernels: once, for they are kept on disk; a backend took 10 to 60" in first
    assert "10 to 60" not in second


def test_nothing_is_reported_without_compilation() -> None:
    stream = io.StringIO()
    with announced(Console(file=stream, force_terminal=True)):
        pass
    assert not stream.getvalue()
