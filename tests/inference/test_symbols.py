"""Kernels that call each other by symbol: what is called is there whatever is left on disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import inference.kernels.compiling
from tests.inference.forked_python import run_with_numba
from tests.memory import writing_at_most
from tests.processes import run_python

LONG = (
    "import numpy as np\n"
    "from inference.kernels.compiled import inlined_kernel, kernel\n"
    "@kernel\n"
    "def long(values, most):\n"
    "    total = 0\n"
    "    for i in range(len(values)):\n"
    + "        if values[i] > most:\n            raise ValueError('too large')\n"
    + "        total += values[i]\n" * 30
    + "    return total // 30 + {}\n"
    "@kernel\n"
    "def short(values, most):\n"
    "    return long(values, most)\n"
    "@inlined_kernel\n"
    "def inlined(values, most):\n"
    "    return long(values, most)\n"
)
"""A kernel that is called by symbol, one that is linked and calls it, and one written out."""

CALLERS = (
    "import numpy as np\n"
    "from inference.kernels.compiled import kernel\n"
    "from kernels.called import inlined, long, short\n"
    "@kernel\n"
    "def caller(values, most):\n"
    "    return {}(values, most) * 2\n"
)

RUN = (
    "import json\n"
    "import numpy as np\n"
    "from kernels.called import long\n"
    "from kernels.calling import caller\n"
    "def kept(kernel):\n"
    "    return sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())\n"
    "answer = caller(np.arange(4), 9)\n"
    "print(json.dumps([int(answer), *kept(caller), *kept(long)]))\n"
)

COMPILED, LOADED = [0, 1], [1, 0]


pytestmark = pytest.mark.slow


@pytest.fixture
def called(request: pytest.FixtureRequest) -> str:
    """Callee of the caller: the long kernel, or one that calls it."""
    return getattr(request, "param", "long")


by_name = pytest.mark.parametrize("called", ["short", "inlined"], indirect=True)


@pytest.fixture
def folder(called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a package of kernels of which one calls a long one."""
    # Beside the kernels, where a test deletes files.
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return _with_kernels(tmp_path, called)


def _with_kernels(folder: Path, called: str) -> Path:
    (package := folder / "kernels").mkdir()
    (package / "called.py").write_text(LONG.format(0))
    (package / "calling.py").write_text(CALLERS.format(called))
    return folder


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `folder`, after a process that compiled its kernels."""
    folder = _with_kernels(tmp_path_factory.mktemp("compiled"), "long")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NUMBA_CACHE_DIR", raising=False)
        assert _run(folder) == {"answer": 12, "caller": COMPILED, "long": COMPILED}
    return folder


@pytest.fixture
def compiled(compiled_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder with the times of its files, by which code is known to be of today."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    copied: Path = shutil.copytree(compiled_once, tmp_path / "copied")
    return copied


def _run(folder: Path) -> Mapping[str, object]:
    """Answer of `caller`, and whether it and `long` were read from disk or compiled."""
    answer, *kept = json.loads(run_with_numba(RUN, folder=folder)[0])
    return {"answer": answer, "caller": kept[:2], "long": kept[2:]}


def _forget(folder: Path, kernel: str, ending: str = "*") -> None:
    files = list((folder / "kernels" / "__pycache__").glob(f"*.{kernel}-*.{ending}"))
    assert files
    for file in files:
        file.unlink()


def test_callees_are_read_before_their_caller(compiled: Path) -> None:
    assert _run(compiled) == {"answer": 12, "caller": LOADED, "long": LOADED}


def test_what_is_read_from_disk_needs_no_rules_of_compiling(compiled: Path) -> None:
    looking = "import sys\nprint({'numba.np.linalg', 'scipy.linalg'} & {*sys.modules})"
    read, rules = run_python(RUN + looking, folder=compiled)[0].splitlines()
    assert json.loads(read) == [12, *LOADED, *LOADED]
    assert rules == "set()"


CALLED_WITHIN = (
    "import faulthandler\n"
    "faulthandler.dump_traceback_later(120.0, exit=True)\n"
    "import numpy as np\n"
    "from numba import njit\n"
    "from kernels.called import short\n"
    "compiled = njit(lambda values: short(values, 9) + 1)\n"
    "print(compiled(np.arange(4)))\n"
)
"""A function of a user that Numba compiles, and that calls the first kernel of the process."""


def test_a_function_that_numba_compiles_may_call_kernels(folder: Path) -> None:
    # Numba compiles under a lock, for which a thread that loads what kernels need would wait.
    for _ in ("compiled", "read from disk"):
        assert run_with_numba(CALLED_WITHIN, folder=folder)[0] == "7\n"


@pytest.mark.nightly
@by_name
def test_callees_of_another_kernel_are_read_before_their_caller(folder: Path) -> None:
    assert _run(folder) == {"answer": 12, "caller": COMPILED, "long": COMPILED}
    assert _run(folder) == {"answer": 12, "caller": LOADED, "long": LOADED}


def test_a_changed_kernel_is_called_by_callers_compiled_again(compiled: Path) -> None:
    _changed(compiled)


@pytest.mark.nightly
@by_name
def test_a_kernel_changed_behind_another_is_called_by_callers_compiled_again(folder: Path) -> None:
    _run(folder)
    _changed(folder)


def _changed(folder: Path) -> None:
    """Change the long kernel of a folder with compiled ones, and hold that callers have the new."""
    # Of another length: by it and by the second Python knows whether what it compiled is of today.
    (folder / "kernels" / "called.py").write_text(LONG.format(10))
    assert _run(folder) == {"answer": 32, "caller": COMPILED, "long": COMPILED}


@pytest.mark.parametrize(
    "ending", ["*", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("nbi", "nbc"))]
)
def test_callees_are_compiled_if_their_file_is_gone(compiled: Path, ending: str) -> None:
    _forget(compiled, "long", ending)
    assert _run(compiled) == {"answer": 12, "caller": LOADED, "long": COMPILED}
    assert _run(compiled) == {"answer": 12, "caller": LOADED, "long": LOADED}


def test_damaged_code_is_compiled_again(compiled: Path) -> None:
    for ending, left in (("nbi", 40), ("nbc", 0)):
        for file in (compiled / "kernels" / "__pycache__").glob(f"*.{ending}"):
            file.write_bytes(file.read_bytes()[:left])
        assert _run(compiled) == {"answer": 12, "caller": COMPILED, "long": COMPILED}, ending
    assert _run(compiled) == {"answer": 12, "caller": LOADED, "long": LOADED}


def test_a_compilation_that_was_cut_off_goes_on_from_what_is_kept(compiled: Path) -> None:
    _forget(compiled, "caller")
    assert _run(compiled) == {"answer": 12, "caller": COMPILED, "long": LOADED}
    # A file that they do not import changes nothing.
    (compiled / "kernels" / "apart.py").write_text(LONG.format(3))
    assert _run(compiled) == {"answer": 12, "caller": LOADED, "long": LOADED}


def test_code_that_cannot_be_kept_is_called_all_the_same(folder: Path) -> None:
    code = f"from tests.memory import {writing_at_most.__name__}\nwith writing_at_most(16):\n"
    output, _ = run_with_numba(code + "    " + RUN.replace("\n", "\n    "), folder=folder)
    assert json.loads(output)[0] == 12
    assert _run(folder) == {"answer": 12, "caller": COMPILED, "long": COMPILED}


def test_processes_that_compile_at_once_serve_later_ones(folder: Path) -> None:
    code = (
        f"import os\nother = os.fork()\n{RUN}if other:\n    assert os.waitpid(other, 0)[1] == 0\n"
    )
    both = run_with_numba(code, folder=folder)[0].splitlines()
    assert [json.loads(answer)[0] for answer in both] == [12, 12]
    assert _run(folder) == {"answer": 12, "caller": LOADED, "long": LOADED}


def test_an_error_comes_through_the_call_and_threads_share_the_code(folder: Path) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import numpy as np\n"
        "from kernels.calling import caller\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    asked = [pool.submit(caller, np.arange(k), 9) for k in range(8)]\n"
        "    print([int(each.result()) for each in asked])\n"
        "try:\n"
        "    caller(np.arange(40), 9)\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    expected = "[0, 0, 2, 6, 12, 20, 30, 42]\ntoo large\n"
    assert run_with_numba(code, folder=folder)[0] == expected
    assert run_with_numba(code, folder=folder)[0] == expected


def test_only_what_is_long_is_called_by_symbol(folder: Path) -> None:
    code = (
        "from kernels.called import long, short\n"
        "print(*('add_overload' in vars(kernel.dispatcher) for kernel in (long, short)))\n"
        "print(*(len(kernel.py_func.__code__.co_code) for kernel in (long, short)))"
    )
    symbols, sizes = run_with_numba(code, folder=folder)[0].splitlines()
    assert symbols == "True False"
    long, short = map(int, sizes.split())
    assert long > inference.kernels.compiling._SHORT >= short
