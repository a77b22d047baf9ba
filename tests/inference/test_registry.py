"""The registry: lookup, refusal, lazy loading."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from factormodels import FactorGraph, InputError, MissingDependencyError
from inference import (
    Backend,
    Entry,
    Posterior,
    entries,
    get_backend,
    infer,
    register,
    unregister,
)
from tests.inference.answers import uniform
from tests.processes import run_python
from tests.refusals import refused


@dataclass(frozen=True)
class Uniform(Backend):
    """Answers 1/k for every state."""

    name: ClassVar[str] = "uniform"
    weight: float = 1.0

    def solve(self, graph: FactorGraph) -> Posterior:
        return uniform(graph)


@pytest.fixture
def registered() -> Iterator[None]:
    register(Entry("uniform", Uniform, "answers 1/k", "none"))
    yield
    unregister("uniform")


@pytest.mark.usefixtures("registered")
def test_a_registered_backend_is_found_by_name() -> None:
    graph = FactorGraph.from_factors([4, 2], []).with_evidence({1: 1})
    posterior = infer(graph, "uniform", weight=2.0)
    assert posterior.marginals["0"].tolist() == [0.25] * 4
    assert posterior.marginals["1"].tolist() == [0.0, 1.0]


@pytest.mark.usefixtures("registered")
def test_a_name_is_taken_once() -> None:
    refused("'uniform' is registered already", register, Entry("uniform", Uniform, "again", "none"))


def test_unknown_names_list_the_valid_ones() -> None:
    with pytest.raises(InputError, match=r"'exakt' is unknown \(did you mean 'exact' or '\w+'\?\)"):
        get_backend("exakt")


def test_unknown_settings_name_the_nearest() -> None:
    refused(r"no setting 'dampening'; did you mean 'damping'\?", get_backend, "lbp", dampening=0.5)


@pytest.mark.parametrize("number", [2**63, 10**5000], ids=["64 bits", "5,000 digits"])
@pytest.mark.parametrize(
    ("name", "setting"), [("lbp", "max_iterations"), ("exact", "restarts"), ("cavi", "seed")]
)
def test_numbers_that_no_kernel_can_count_to_are_refused(
    name: str, setting: str, number: int
) -> None:
    message = rf"{setting} of '{name}' is \S+e\+\d+; give a number of at most 9,223,"
    refused(message, get_backend, name, **{setting: number})
    get_backend(name, **{setting: 10**5})


def test_an_absent_library_names_the_command_that_installs_it() -> None:
    register(Entry("absent", "no.such:Thing", "", "none", requires=("no_such_lib",), extra="jax"))
    try:
        with pytest.raises(MissingDependencyError, match=r"pip install 'factorfacts\[jax\]'"):
            get_backend("absent")
    finally:
        unregister("absent")


@pytest.mark.slow
def test_builtin_entries_say_what_their_backends_do() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[1, 2], [3, 4]])])
    for name, entry in entries().items():
        assert entry.summary
        assert entry.limits
        # A bound that nothing had to be split for is exact, and says so.
        assert infer(graph, name).log_z_kind in {entry.log_z_kind, "exact"}


PACKAGE = """
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from inference import Backend, Entry
from inference.enumeration import Enumeration

@dataclass(frozen=True)
class Mine(Enumeration):
    name: ClassVar[str] = "mine"

MINE = Entry("mine", "mine_backend:Mine", "a backend of another package", "exact")
TAKEN = Entry("exact", "mine_backend:Mine", "has the name of another", "exact")
"""

ENTRY_POINTS = """
[factormodels.backends]
mine = mine_backend:MINE
taken = mine_backend:TAKEN
broken = no_such_module:ENTRY
wrong = mine_backend:Mine
"""

ASK = """
import logging
logging.basicConfig(format="%(message)s")
from factormodels import FactorGraph
from inference import entries, infer
graph = FactorGraph.from_factors([2], [([0], [1.0, 3.0])])
print(infer(graph, "mine").marginals["0"][1], infer(graph, "exact").backend, list(entries())[-1])
"""


def test_a_backend_of_an_installed_package_is_found_and_broken_ones_are_reported(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine_backend.py").write_text(PACKAGE)
    facts = tmp_path / "mine-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)
    names, errors = run_python(ASK, path=str(tmp_path))
    assert names.split() == ["0.75", "exact", "mine"]
    lines = errors.splitlines()
    assert len(lines) == 3
    for words in (
        "the backend 'broken' of the package mine cannot be loaded",
        "the backend 'exact' of the package mine has the name of another",
        "the entry point 'wrong' of the package mine leads to no inference.Entry",
    ):
        assert any(line.startswith(words) for line in lines), errors


SLOW = """
from dataclasses import dataclass
from time import sleep
from inference import Backend
sleep(0.5)

@dataclass(frozen=True)
class Slow(Backend):
    name = "slow"

    def solve(self, graph):
        raise NotImplementedError
"""


def test_a_backend_that_another_thread_is_importing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_backend.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    register(Entry("slow", "slow_backend:Slow", "imported slowly", "none"))
    try:
        with ThreadPoolExecutor(3) as pool:
            loaded = list(pool.map(get_backend, ["slow"] * 3))
    finally:
        unregister("slow")
        sys.modules.pop("slow_backend", None)
    assert {type(backend).__name__ for backend in loaded} == {"Slow"}
