"""The registry: lookup, refusal, lazy loading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from factormodels import FactorGraph, InputError, MissingDependencyError
from inference import (
    Backend,
    Entry,
    LogZKind,
    Marginals,
    Posterior,
    Status,
    entries,
    get_backend,
    infer,
    register,
    unregister,
)


@dataclass(frozen=True)
class Uniform(Backend):
    """Answers 1/k for every state."""

    name: ClassVar[str] = "uniform"
    weight: float = 1.0

    def solve(self, graph: FactorGraph) -> Posterior:
        values = np.repeat(1.0 / graph.cardinalities, graph.cardinalities)
        return Posterior(
            Marginals(graph.names, graph.cardinalities, values),
            None,
            LogZKind.NONE,
            Status.CONVERGED,
        )


@pytest.fixture
def uniform() -> Iterator[None]:
    register(Entry("uniform", Uniform, "answers 1/k", "none"))
    yield
    unregister("uniform")


@pytest.mark.usefixtures("uniform")
def test_a_registered_backend_is_found_by_name() -> None:
    graph = FactorGraph.from_factors([4, 2], []).with_evidence({1: 1})
    posterior = infer(graph, "uniform", weight=2.0)
    assert posterior.marginals["0"].tolist() == [0.25] * 4
    assert posterior.marginals["1"].tolist() == [0.0, 1.0]


@pytest.mark.usefixtures("uniform")
def test_a_name_is_taken_once() -> None:
    with pytest.raises(InputError, match="'uniform' is registered already"):
        register(Entry("uniform", Uniform, "again", "none"))


def test_unknown_names_list_the_valid_ones() -> None:
    with pytest.raises(
        InputError, match=r"'exakt' is unknown \(did you mean 'exact'\?\); use one of .*exact, lbp"
    ):
        get_backend("exakt")


def test_unknown_settings_name_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no setting 'dampening'; did you mean 'damping'\?"):
        get_backend("lbp", dampening=0.5)


def test_an_absent_library_names_the_command_that_installs_it() -> None:
    register(Entry("absent", "no.such:Thing", "", "none", requires=("no_such_lib",), extra="jax"))
    try:
        with pytest.raises(MissingDependencyError, match=r"pip install 'factormodels\[jax\]'"):
            get_backend("absent")
    finally:
        unregister("absent")


def test_builtin_entries_say_what_their_backends_do() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[1, 2], [3, 4]])])
    for name, entry in entries().items():
        assert entry.summary
        assert entry.limits
        # A bound that nothing had to be split for is exact, and says so.
        assert infer(graph, name).log_z_kind in {entry.log_z_kind, "exact"}
