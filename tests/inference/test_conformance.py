"""Every registered backend keeps the contract; a backend that breaks a part of it is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from factormodels import FactorGraph
from inference import LogZKind, Marginals, Posterior, Status, entries, get_backend
from inference.backend import Backend
from inference.conformance import CHECKS, ConformanceError
from inference.conformance.checks import Check
from inference.enumeration import Enumeration
from tests.inference.answers import given, uniform
from tests.inference.exactness import EXACTNESS, Exactness

pytestmark = pytest.mark.slow

BACKENDS = tuple(entries())

BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_backend_keeps_the_contract(check: Check, backend: str) -> None:
    check(get_backend(backend), EXACTNESS[backend])


def test_every_backend_says_where_it_is_exact() -> None:
    assert EXACTNESS.keys() == set(BACKENDS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_defaults_are_one_backend(backend: str) -> None:
    assert get_backend(backend) == get_backend(backend)


Fault = Callable[[FactorGraph, Posterior], Posterior]


@dataclass(frozen=True)
class Spoiled(Enumeration):
    """Enumeration with one fault, which one of the checks must find."""

    name: ClassVar[str] = "spoiled"

    fault: Fault | None = None

    def solve(self, graph: FactorGraph) -> Posterior:
        assert self.fault is not None
        return self.fault(graph, super().solve(graph))


def biased(graph: FactorGraph, posterior: Posterior) -> Posterior:
    """Return marginals a little nearer to 1/k."""
    values = 0.999 * posterior.marginals.flat + 0.001 * uniform(graph).marginals.flat
    return replace(posterior, marginals=Marginals(graph.names, graph.cardinalities, values))


def unnormalised(graph: FactorGraph, posterior: Posterior) -> Posterior:
    """Return marginals that do not add up to 1."""
    values = 1.001 * posterior.marginals.flat
    return replace(posterior, marginals=Marginals(graph.names, graph.cardinalities, values))


def moved(posterior: Posterior, by: float) -> Posterior:
    """Return a posterior whose log Z is off by some nats."""
    return replace(posterior, log_z=given(posterior) + by)


FAULTS: dict[str, Fault] = {
    "biased": biased,
    "unnormalised": unnormalised,
    "silent about log Z": lambda _, p: replace(p, log_z_kind=LogZKind.NONE),
    "never converged": lambda _, p: replace(p, status=Status.NOT_CONVERGED),
    "no upper bound": lambda _, p: replace(moved(p, -1e-9), log_z_kind=LogZKind.UPPER),
    "no lower bound": lambda _, p: replace(moved(p, 1e-9), log_z_kind=LogZKind.ELBO),
    "the first variable counts": lambda g, p: moved(p, 1e-3 * float(g.cardinalities[:1].sum())),
    "another number each time": lambda _, p: moved(p, 1e-10 * np.random.default_rng().random()),
}


@dataclass(frozen=True)
class Careless(Enumeration):
    """Answers 1/k where nothing is possible."""

    name: ClassVar[str] = "careless"

    def solve(self, graph: FactorGraph) -> Posterior:
        return uniform(graph)


@dataclass
class Thawed:
    """Is a dataclass that is not frozen, as a subclass of Backend cannot be."""

    name: ClassVar[str] = "thawed"
    damping: float = 0.5


def broken(backend: Backend, check: str, said: str) -> None:
    exactness = Exactness("forests", 1e-9, "the same terms are summed")
    with pytest.raises(ConformanceError, match=said):
        BY_NAME[check](backend, exactness)


@pytest.mark.parametrize(
    ("fault", "check", "said"),
    [
        ("unnormalised", "posterior_keeps_the_contract", "the sum of the marginal"),
        ("silent about log Z", "posterior_keeps_the_contract", "its kind none"),
        ("biased", "exact_where_it_says_so", "a marginal is off by"),
        ("never converged", "exact_where_it_says_so", "the status is not_converged"),
        ("no upper bound", "log_z_is_of_its_kind", "upper bound is .* below log Z"),
        ("no lower bound", "log_z_is_of_its_kind", "lower bound is .* above log Z"),
        ("biased", "log_z_is_of_its_kind", "a marginal is off by"),
        ("the first variable counts", "order_does_not_matter", "log Z in another order"),
        ("another number each time", "the_same_twice", "other numbers"),
        ("biased", "degenerate_graphs_are_answered", "a marginal is off by"),
    ],
)
def test_a_fault_is_caught(fault: str, check: str, said: str) -> None:
    broken(Spoiled(fault=FAULTS[fault]), check, said)


def test_a_made_up_answer_is_caught() -> None:
    broken(Careless(), "contradictions_are_named", "raises no ZeroPartitionError")


def test_settings_that_can_be_assigned_are_caught() -> None:
    thawed: Any = Thawed()
    broken(thawed, "settings_are_frozen", "'damping' can be assigned")
