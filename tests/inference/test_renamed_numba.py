"""A Numba whose private names are others: kernels do without them, and answers are the same."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from inference import infer
from inference.kernels.interaction import interaction_graph
from inference.warm_up import small_graph
from tests.processes import ROOT, run_python

pytestmark = pytest.mark.slow

STORED = (
    "_cache", "_cache_file", "_source_stamp", "_load_index", "_load_data", "_load_overload",
    "rtsys", "no_cfunc_wrapper", "no_cpython_wrapper",
)  # fmt: skip
"""What Numba keeps machine code by, and options of its decorator that it declares nowhere."""

LINKED = (
    "_final_module", "get_call_template", "get_defined_functions",
    "insert_user_function", "remove_user_function", "set_env",
)  # fmt: skip
"""What Numba compiles and links by."""

TOLD = ("Listener", "install_listener")
"""What Numba tells of its compilations by."""

MENDED = ("_numba_unpickle", "JITCPUCodegen", "_engine", "CPUTargetOptions", "_impl", "unliteral")
"""What guards interrupts, keeps kernels by symbol, and makes a type of a literal one."""

BORROWED = ("create_struct_proxy", "get_null_value", "_getvalue")
"""What an array without its owner is made by."""

EVERY = (*STORED, *LINKED, *TOLD, *MENDED, *BORROWED)

WITHOUT_UNPICKLING = tuple(name for name in EVERY if name != "_numba_unpickle")
"""Numba's own C code looks that name up as well, when it raises or returns an array."""

RENAMING = """
import re, sys
from importlib.machinery import PathFinder, SourceFileLoader

NAMES = re.compile(r"\\b({})\\b")

class Renaming(SourceFileLoader):
    def get_code(self, name):
        source = self.get_data(self.path).decode()
        if not NAMES.search(source):
            # Most files: Python has compiled them before.
            return super().get_code(name)
        return self.source_to_code(NAMES.sub(r"\\1_elsewhere", source), self.path)

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target) if name.split(".")[0] == "numba" else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Renaming(name, spec.loader.path)
        return spec

sys.meta_path.insert(0, Finder)
"""

INFERRING = """
import json
from inference import infer
from inference.warm_up import small_graph
posterior = infer(small_graph(), "cavi")
print(json.dumps([posterior.log_z, posterior.marginals.flat.tolist()]))
"""


def _run(code: str, *names: str, folder: Path = ROOT) -> tuple[str, str]:
    return run_python(RENAMING.format("|".join(names)) + code, folder=folder)


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of three kernels, two of which call the first."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "both.py").write_text(
        "from inference.kernels.compiled import kernel\n"
        "from inference.kernels.views import lent\n"
        "@kernel\ndef long(values):\n    values = lent(values)\n    total = 0\n"
        + "    total += values[0] * values[1]\n"
        * 40
        + "    return total\n"
        "@kernel\ndef caller(values):\n    return long(values) + 1\n"
        "@kernel\ndef other(values):\n    return long(values) + 2\n"
    )
    return tmp_path


CALLING = (
    "import numpy as np\nfrom kernels.both import caller, long, other\n"
    "print({}(np.arange(2, 4)), sum(long.stats.cache_hits.values()))"
)

JOINING = """
import json
from inference.kernels.interaction import interaction_graph
from inference.warm_up import small_graph
graph = small_graph()
joined = interaction_graph(graph.cardinalities, graph.scope_starts, graph.scope_variables)
print(json.dumps([each.tolist() for each in joined]))
"""


def test_a_kernel_answers_without_numbas_private_names(kernels: Path) -> None:
    output, warned = _run(CALLING.format("caller"), *EVERY, folder=kernels)
    assert output == "241 0\n"
    assert warned.count("compiled kernels cannot be kept on disk") == 1


@pytest.mark.nightly
def test_a_kernel_of_the_library_answers_without_numbas_private_names() -> None:
    """A kernel that calls another one, and one that is written out; the suite has the one above."""
    output, warned = _run(JOINING, *WITHOUT_UNPICKLING)
    graph = small_graph()
    joined = interaction_graph(graph.cardinalities, graph.scope_starts, graph.scope_variables)
    assert json.loads(output) == [each.tolist() for each in joined]
    assert warned.count("compiled kernels cannot be kept on disk") == 1


@pytest.mark.nightly
def test_infer_answers_without_numbas_private_names() -> None:
    """Every kernel of a backend is compiled, which takes longest."""
    output, warned = _run(INFERRING, *WITHOUT_UNPICKLING)
    expected = infer(small_graph(), "cavi")
    assert json.loads(output) == [expected.log_z, expected.marginals.flat.tolist()]
    assert warned.count("compiled kernels cannot be kept on disk") == 1


def test_nothing_is_announced_where_numba_has_no_events() -> None:
    output, warned = _run(INFERRING, *TOLD)
    assert json.loads(output)[0] == infer(small_graph(), "cavi").log_z
    assert warned == ""


def test_kernels_are_linked_where_they_cannot_be_called_by_symbol(kernels: Path) -> None:
    # The second caller is linked with what is read from disk.
    for called, answer in (("caller", "241 0\n"), ("other", "242 1\n")):
        output, _ = _run(CALLING.format(called), "insert_user_function", folder=kernels)
        assert output == answer


# Each process compiles for two seconds; the suite tries the names together, and one by itself.
@pytest.mark.parametrize(
    "name",
    [
        MENDED[0],
        *(pytest.param(name, marks=pytest.mark.nightly) for name in (*MENDED[1:], *BORROWED)),
    ],
)
def test_a_kernel_answers_without_any_one_of_the_names(kernels: Path, name: str) -> None:
    output, warned = _run(CALLING.format("caller"), name, folder=kernels)
    assert output == "241 0\n"
    # On a slow machine the compilation is announced, and nothing else is.
    assert re.sub("compiling kernels: .*\n", "", warned) == ""


def test_every_private_name_of_numba_that_is_used_is_renamed_here() -> None:
    """Names imported from `numba.core`, and attributes that begin with an underscore."""
    sources = [ROOT / "inference" / "kernels" / f"{each}.py" for each in
               ("compiling", "interrupts", "rules", "storage", "symbols")]  # fmt: skip
    used: set[str] = set()
    for node in (node for each in sources for node in ast.walk(ast.parse(each.read_text()))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba.core"):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and not ast.unparse(node).startswith("self."):
            used |= {node.attr} if re.match("_[a-z]", node.attr) else set()
    # `serialize` and `cgutils` are modules of Numba, of which names are used.
    assert used - {"serialize", "cgutils"} <= {*EVERY}
