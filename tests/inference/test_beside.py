"""Kernels that a second process compiles at a first use, while this one compiles others."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from inference.kernels.beside import PARTS, KernelPart
from inference.kernels.compiled import Kernel
from tests.inference.forked_python import run_with_numba

pytestmark = pytest.mark.slow

Run = Callable[..., str]

SOLVE = "from solving import solve; solve(3)"
"""Line that compiles the part."""

RUN = """
from inference.kernels import beside
from tests.memory import writing_at_most
beside.PARTS = (beside.KernelPart(("planning", "plan"), frozenset({{"solving"}}), {statement!r}),)
beside.available_processors = lambda: 2
{before}
from planning import plan
from solving import solve
answers = plan(3), solve(3)
counts = solve.stats.cache_hits, solve.stats.cache_misses
(process,) = beside._PROCESSES._started.values() or (None,)
print(*answers, *(sum(count.values()) for count in counts), process is not None)
"""
"""Answers of two kernels, whether the second was read from disk and whether it was compiled, and
whether a second process was started."""

COMPILED_BESIDE, COMPILED_HERE = "4 6 1 0 ", "4 6 0 1 "


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of `RUN` where no machine code is on disk."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    steps = ("planning", "plan", "n + 1"), ("solving", "solve", "2 * n"), ("other", "other", "n")
    for module, kernel, step in steps:
        (tmp_path / f"{module}.py").write_text(
            "from inference.kernels.compiled import kernel\n"
            f"@kernel\ndef {kernel}(n):\n    return {step}\n"
        )

    def output(statement: str = SOLVE, before: str = "") -> str:
        code = RUN.format(statement=statement, before=before)
        return run_with_numba(code, folder=tmp_path)[0].strip()

    return output


def test_a_second_process_compiles_a_part_once_an_installation(run: Run) -> None:
    assert run() == COMPILED_BESIDE + "True"
    # With all of it on disk, no process is started.
    assert run() == COMPILED_BESIDE + "False"


@pytest.mark.parametrize(
    "statement",
    ["import os; os.kill(os.getpid(), 9)", "raise SystemExit(1)", "import nothing_of_this_name"],
)
def test_a_process_that_is_killed_or_fails_costs_no_answer(run: Run, statement: str) -> None:
    assert run(statement) == COMPILED_HERE + "True"


def test_a_process_that_kept_nothing_costs_no_answer(run: Run) -> None:
    assert run("pass") == COMPILED_HERE + "True"


@pytest.mark.parametrize(
    "before",
    [
        "beside.available_processors = lambda: 1",
        "beside.multiprocessing.parent_process = lambda: object()",
        "import sys; sys.executable = '/usr/bin/editor'",
        "import sys; sys.executable = None",
        "import sys; sys.executable = '/nowhere/python3'",
    ],
)
def test_no_process_starts_without_a_free_processor_or_an_interpreter(
    run: Run, before: str
) -> None:
    assert run(before=before) == COMPILED_HERE + "False"


def test_no_process_starts_where_machine_code_cannot_be_kept(run: Run) -> None:
    before = "from other import other\nwith writing_at_most(16):\n    other(3)\n"
    assert run(before=before) == COMPILED_HERE + "False"


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    code = (
        "from inference.kernels import beside\n"
        "part = beside.KernelPart(('a', 'b'), frozenset({'a'}), 'import time; time.sleep(600)')\n"
        "beside.available_processors = lambda: 2\n"
        "beside._PROCESSES.start(part)\n"
        "print(beside._PROCESSES._started[part].pid)\n"
    )
    pid = int(run_with_numba(code, folder=tmp_path)[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_compiled_without_the_kernels_that_begin_it(part: KernelPart) -> None:
    module, name = part.begins
    assert isinstance(getattr(import_module(module), name), Kernel)
    code = (
        f"{part.statement}\n"
        "import sys\n"
        "from inference.kernels.compiled import Kernel\n"
        "for module in list(sys.modules.values()):\n"
        "    for kernel in vars(module).values():\n"
        "        if isinstance(kernel, Kernel) and kernel.has_machine_code:\n"
        "            print(kernel.__module__)\n"
    )
    with_machine_code = set(run_with_numba(code)[0].split())
    assert part.modules <= with_machine_code
    assert module not in with_machine_code
