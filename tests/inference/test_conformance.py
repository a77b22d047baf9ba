"""Every registered backend keeps the contract; a backend that breaks a part of it is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from factormodels import FactorGraph
from inference import (
    Entry,
    LogZKind,
    Marginals,
    Posterior,
    Status,
    entries,
    get_backend,
    register,
    unregister,
)
from inference.backend import Backend, InferenceError, zero_partition
from inference.conformance import CHECKS, ConformanceError
from inference.conformance.checks import Check, exact_or_refused_in_wide_ranges
from inference.enumeration import Enumeration
from tests.inference.answers import given, uniform
from tests.inference.exactness import EXACTNESS, Exactness

pytestmark = pytest.mark.slow

BACKENDS = tuple(entries())

SETTINGS: dict[str, dict[str, int]] = {"mean_field": {"restarts": 1}}
"""Where defaults take long; the contract holds with any settings."""

BY_NAME = {check.__name__: check for check in CHECKS}


SLOW = {
    *(("log_z_is_of_its_kind", name) for name in ("numpyro", "exact_jax", "mean_field", "pgmax")),
    *(("exact_or_refused_in_wide_ranges", name) for name in ("numpyro", "exact_jax", "pgmax")),
    *(("order_does_not_matter", name) for name in ("numpyro", "pgmax", "exact_jax")),
    *(("exact_where_it_says_so", name) for name in ("numpyro", "pgmax", "exact_jax", "lbp_jax")),
    ("a_batch_gives_the_answers_of_single_graphs", "exact_jax"),
    *(("degenerate_graphs_are_answered", name) for name in ("numpyro", "exact_jax")),
    ("a_constant_moves_log_z_alone", "numpyro"),
}
"""Checks of many graphs, each of which JAX compiles or Pyro fits anew: they run at night.

`test_agreement` holds these backends to the enumeration of fewer graphs, which have zeros,
constants, single states and wide ranges; `test_peers` has tables that PGMax would clip, and
constants that NumPyro leaves out.
"""


@pytest.mark.parametrize(
    ("check", "backend"),
    [
        pytest.param(
            check,
            backend,
            id=f"{check.__name__}-{backend}",
            marks=[pytest.mark.nightly] if (check.__name__, backend) in SLOW else [],
        )
        for check in CHECKS
        # Of a backend without a row one test below fails, and says so.
        for backend in BACKENDS
        if backend in EXACTNESS
    ],
)
def test_a_backend_keeps_the_contract(check: Check, backend: str) -> None:
    check(get_backend(backend, **SETTINGS.get(backend, {})), EXACTNESS[backend])


def test_slow_checks_are_checks_of_a_backend() -> None:
    assert {name for name, _ in SLOW} <= set(BY_NAME)
    assert {backend for _, backend in SLOW} <= set(BACKENDS)


def test_every_backend_says_where_it_is_exact() -> None:
    unlike = ", ".join(sorted(EXACTNESS.keys() ^ set(BACKENDS)))
    assert not unlike, f"a backend has one row in tests/inference/exactness.py, unlike {unlike}"


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


def unnormalized(graph: FactorGraph, posterior: Posterior) -> Posterior:
    """Return marginals that do not add up to 1."""
    values = 1.001 * posterior.marginals.flat
    return replace(posterior, marginals=Marginals(graph.names, graph.cardinalities, values))


def moved(posterior: Posterior, by: float) -> Posterior:
    """Return a posterior whose log Z is off by some nats."""
    return replace(posterior, log_z=given(posterior) + by)


def uniform_of_many_states(graph: FactorGraph, posterior: Posterior) -> Posterior:
    """Return marginals that are uniform where a variable has more than three states."""
    many = np.repeat(graph.cardinalities > 3, graph.cardinalities)
    values = np.where(many, uniform(graph).marginals.flat, posterior.marginals.flat)
    return replace(posterior, marginals=Marginals(graph.names, graph.cardinalities, values))


def underflowing(graph: FactorGraph, _: Posterior) -> Posterior:
    """Return a graph whose potentials below e^-700 are zero."""
    left = np.where(graph.log_values < -700.0, -np.inf, graph.log_values)
    return Enumeration().solve(replace(graph, log_values=left))


def overflowing(graph: FactorGraph, _: Posterior) -> Posterior:
    """Return a graph whose potentials are capped at e^700."""
    return Enumeration().solve(replace(graph, log_values=np.minimum(graph.log_values, 700.0)))


FAULTS: dict[str, Fault] = {
    "biased": biased,
    "uniform of many states": uniform_of_many_states,
    "underflowing": underflowing,
    "overflowing": overflowing,
    "unnormalized": unnormalized,
    "silent about log Z": lambda _, p: replace(p, log_z_kind=LogZKind.NONE),
    "never converged": lambda _, p: replace(p, status=Status.NOT_CONVERGED),
    "no upper bound": lambda _, p: replace(moved(p, -1e-9), log_z_kind=LogZKind.UPPER),
    "no lower bound": lambda _, p: replace(moved(p, 1e-9), log_z_kind=LogZKind.ELBO),
    "the first variable counts": lambda g, p: moved(p, 1e-3 * float(g.cardinalities[:1].sum())),
    "rough": lambda _, p: moved(p, 1e-4),
    "another number each time": lambda _, p: moved(p, 1e-10 * np.random.default_rng().random()),
}


@dataclass(frozen=True)
class Careless(Enumeration):
    """Answers 1/k where nothing is possible."""

    name: ClassVar[str] = "careless"

    def solve(self, graph: FactorGraph) -> Posterior:
        return uniform(graph)


@dataclass(frozen=True)
class Refusing(Enumeration):
    """Answers nothing."""

    name: ClassVar[str] = "refusing"

    error: InferenceError | None = None

    def solve(self, graph: FactorGraph) -> Posterior:  # noqa: ARG002
        assert self.error is not None
        raise self.error


@dataclass(frozen=True)
class Misdeclared(Enumeration):
    """Gives an upper bound, which the registry calls an estimate of Bethe."""

    name: ClassVar[str] = "misdeclared"

    def solve(self, graph: FactorGraph) -> Posterior:
        return replace(super().solve(graph), log_z_kind=LogZKind.UPPER)


@dataclass
class Thawed:
    """Is a dataclass that is not frozen, as a subclass of Backend cannot be."""

    name: ClassVar[str] = "thawed"
    damping: float = 0.5


def broken(backend: Backend, check: str, message: str) -> None:
    exactness = Exactness("forests", 1e-9, "the same terms are summed")
    with pytest.raises(ConformanceError, match=message):
        BY_NAME[check](backend, exactness)


def test_log_z_of_another_kind_than_the_registry_declares_is_caught() -> None:
    check, message = "log_z_is_of_its_kind", "log Z is of the kind upper, and the registry declares"
    # Without an entry nothing is declared.
    BY_NAME[check](Misdeclared(), Exactness("forests", 1e-9, "the same terms are summed"))
    register(Entry("misdeclared", f"{__name__}:Misdeclared", "a fault", "bethe"))
    try:
        broken(Misdeclared(), check, f"{message} bethe")
    finally:
        unregister("misdeclared")


@pytest.mark.parametrize(
    ("fault", "check", "message"),
    [
        ("unnormalized", "posterior_keeps_the_contract", "the sum of the marginal"),
        ("silent about log Z", "posterior_keeps_the_contract", "its kind none"),
        ("biased", "exact_where_it_says_so", "a marginal is off by"),
        ("uniform of many states", "exact_where_it_says_so", "of many states: a marginal is off"),
        ("underflowing", "exact_or_refused_in_wide_ranges", "wide ranges 1: "),
        ("overflowing", "exact_or_refused_in_wide_ranges", "wide ranges 1: a marginal is off by"),
        ("underflowing", "log_z_is_of_its_kind", "grid 0 in wide ranges: "),
        ("never converged", "exact_where_it_says_so", "the status is not_converged"),
        ("no upper bound", "log_z_is_of_its_kind", "upper bound is .* below log Z"),
        ("no lower bound", "log_z_is_of_its_kind", "lower bound is .* above log Z"),
        ("biased", "log_z_is_of_its_kind", "a marginal is off by"),
        ("the first variable counts", "order_does_not_matter", "in another order: log Z"),
        ("another number each time", "the_same_twice", "other numbers"),
        ("biased", "degenerate_graphs_are_answered", "a marginal is off by"),
    ],
)
def test_a_fault_is_caught(fault: str, check: str, message: str) -> None:
    broken(Spoiled(fault=FAULTS[fault]), check, message)


def test_failures_name_the_graph_and_the_limit() -> None:
    message = (
        r"graph 1: a marginal is off by 0\.0\d+, and 1e-09 is allowed; that of '\d' is .*, not "
    )
    broken(Spoiled(fault=biased), "exact_where_it_says_so", message)
    off = Spoiled(fault=FAULTS["the first variable counts"])
    message = r"degenerate graph 2: log Z is .*, not .* within 1e-09"
    broken(off, "degenerate_graphs_are_answered", message)


# That settings are frozen concerns no value, and wants a backend that can be pickled.
OF_VALUES = [check for check in CHECKS if check.__name__ != "settings_are_frozen"]


@pytest.mark.parametrize("check", OF_VALUES, ids=lambda check: check.__name__)
def test_values_are_held_to_the_tolerance_that_was_declared(check: Check) -> None:
    # Marginals are moved by 0.001 at most, and log Z by no more than 0.009.
    rough = Exactness("forests", 0.01, "made so")
    check(Spoiled(fault=biased), rough)
    check(Spoiled(fault=FAULTS["rough"]), rough)


def test_a_refusal_is_no_fault_in_wide_ranges_and_a_false_zero_is() -> None:
    check, rounding = exact_or_refused_in_wide_ranges, Exactness("forests", 1e-9, "sums")
    check(Refusing(error=InferenceError("the tables span too much; use backend 'exact'")), rounding)
    with pytest.raises(ConformanceError, match="wide ranges 0: an assignment is possible, and"):
        check(Refusing(error=zero_partition()), rounding)


def test_a_made_up_answer_is_caught() -> None:
    broken(Careless(), "contradictions_are_named", "raises no ZeroPartitionError")


def test_settings_that_can_be_assigned_are_caught() -> None:
    thawed: Any = Thawed()
    broken(thawed, "settings_are_frozen", "'damping' can be assigned")
