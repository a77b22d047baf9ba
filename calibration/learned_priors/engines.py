"""Engines: log Z and beliefs of a design by an inference backend, and what their gradient is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import Backend
from inference.posterior import LogZKind, Posterior, Status
from inference.registry import get_backend

_MOST_LOG_ODDS = 300.0
"""The square of an odds ratio stays finite; beyond, a factor forbids what it makes unlikely."""


class Gradient(StrEnum):
    """How the derivative of a backend's log Z is found."""

    BELIEFS = "beliefs"
    """The beliefs of factors are the derivative of log Z by their log tables: for exact inference,
    and for Bethe's log Z at a fixed point (Yedidia, Freeman & Weiss 2005)."""
    DIFFERENCES = "differences"
    """Central finite differences: a bound that is tightened for a number of passes, for one, moves
    with its own weights too."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What a backend says of a design.

    Attributes:
        log_z: natural logarithm of the partition function, or what stands in for it.
        true: float64 (n,), probability that each variable is true.
        entries: beliefs laid out as `graph.log_values`; None where they are no derivative.
        settled: whether the backend vouches for its answer (exact or converged).
    """

    log_z: float
    true: Floats
    entries: Floats | None
    settled: bool


Run = Callable[[Floats, Integers | None], Beliefs]
"""(log tables, state that each variable is held at or `UNOBSERVED`; None: none is) -> beliefs."""


@dataclass(frozen=True)
class Engine:
    """An inference backend as a source of likelihoods.

    Attributes:
        backend: the backend.
        gradient: how the derivative of its log Z is found.
    """

    backend: Backend
    gradient: Gradient

    @property
    def exact(self) -> bool:
        """Whether log Z and beliefs are those of the model."""
        return self.backend.name == "exact"

    def prepared(self, graph: FactorGraph) -> Run:
        """Return the function that answers at any log tables of a graph of binary variables.

        Factors are one prior for each variable, in order, then one for each pair.
        """
        return _exact(graph, self.backend) if self.exact else _by_posterior(graph, self)


def engine(backend: str | Backend) -> Engine:
    """Return the engine of a backend, by name or built.

    Raises:
        InputError: for an unknown backend, or one that gives no log Z.
        MissingDependencyError: if a library that it needs is not installed.
    """
    built = get_backend(backend) if isinstance(backend, str) else backend
    by_beliefs = built.name in ("exact", "lbp")
    return Engine(built, Gradient.BELIEFS if by_beliefs else Gradient.DIFFERENCES)


def pair_beliefs(first: Floats, second: Floats, log_tables: Floats) -> Floats:
    """Return the joint beliefs of pairs of binary variables from their marginals, (m, 2, 2).

    At a fixed point of belief propagation the belief of a factor is its table with each row and
    each column multiplied by a message, and sums to the marginals: the one such table has the odds
    ratio of the factor (Plackett 1965, "A class of bivariate distributions", equation 3).

    Args:
        first: (m,) probability that the first variable of each pair is true.
        second: (m,) the same of the second.
        log_tables: (m, 2, 2) the factors' natural logarithms.
    """
    zero = np.isneginf(log_tables)
    finite = np.where(zero, 0.0, log_tables)
    log_odds = finite[:, 0, 0] + finite[:, 1, 1] - finite[:, 0, 1] - finite[:, 1, 0]
    odds = np.exp(np.clip(log_odds, -_MOST_LOG_ODDS, _MOST_LOG_ODDS))
    total = 1.0 + (first + second) * (odds - 1.0)
    root = np.sqrt(np.maximum(total**2 - 4.0 * odds * (odds - 1.0) * first * second, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Of the two forms of the root, each is used where nothing cancels.
        both = np.where(
            total > 0.0,
            2.0 * odds * first * second / (total + root),
            (total - root) / (2.0 * (odds - 1.0)),
        )
    both = np.select(
        [zero[:, 1, 1], zero[:, 1, 0], zero[:, 0, 1], zero[:, 0, 0]],
        [np.zeros_like(both), first, second, first + second - 1.0],
        both,
    )
    table = np.array([[1.0 - first - second + both, second - both], [first - both, both]])
    joint: Floats = np.maximum(table, 0.0).transpose(2, 0, 1)
    return joint


def united_pairs(pairs: Integers) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """Return the different pairs of variables, which of them each pair is, and whether reversed.

    Belief propagation multiplies factors over the same variables before it starts, so that they
    share a belief.

    Args:
        pairs: (m, 2) variables of each factor.
    """
    reversed_ = pairs[:, 0] > pairs[:, 1]
    different, which = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)
    return different.reshape(-1, 2), which.ravel(), reversed_


def _exact(graph: FactorGraph, backend: Backend) -> Run:
    from inference.exact.backend import Exact
    from inference.exact.planned import PlannedExact

    planned = PlannedExact(graph, backend if isinstance(backend, Exact) else Exact())

    def run(log_values: Floats, clamps: Integers | None) -> Beliefs:
        if clamps is not None:
            # Zeros in the priors leave the structure, and so the plan, as it is.
            held = np.flatnonzero(clamps >= 0)
            log_values = log_values.copy()
            log_values[2 * held + 1 - clamps[held]] = -np.inf
            log_values.flags.writeable = False
        calibrated = planned.calibrate(log_values)
        entries = calibrated.factor_beliefs()
        return Beliefs(calibrated.log_z, calibrated.marginals[1::2], entries, True)

    return run


def _by_posterior(graph: FactorGraph, chosen: Engine) -> Run:
    n = graph.n_variables
    pairs, which, reversed_ = united_pairs(graph.scope_variables[n:].reshape(-1, 2))

    def run(log_values: Floats, clamps: Integers | None) -> Beliefs:
        evidence = np.full(n, UNOBSERVED) if clamps is None else clamps
        asked = replace(graph, log_values=log_values, evidence=evidence)
        posterior = chosen.backend.infer(asked)
        true = posterior.marginals.of_state(1)
        entries = None
        if chosen.gradient is Gradient.BELIEFS:
            tables = log_values[2 * n :].reshape(-1, 2, 2).copy()
            tables[reversed_] = tables[reversed_].transpose(0, 2, 1)
            products = np.zeros((len(pairs), 2, 2))
            np.add.at(products, which, tables)
            joint = pair_beliefs(true[pairs[:, 0]], true[pairs[:, 1]], products)[which]
            joint[reversed_] = joint[reversed_].transpose(0, 2, 1)
            entries = np.concatenate([np.stack([1.0 - true, true], axis=1).ravel(), joint.ravel()])
        return Beliefs(_log_z(posterior), true, entries, _settled(posterior))

    return run


def _log_z(posterior: Posterior) -> float:
    if posterior.log_z is None or posterior.log_z_kind is LogZKind.NONE:
        raise InputError(
            f"the backend {posterior.backend!r} gives no log Z, hence no likelihood; use one that "
            "does, such as 'exact', 'lbp' or 'wmb'"
        )
    return posterior.log_z


def _settled(posterior: Posterior) -> bool:
    return posterior.status in (Status.EXACT, Status.CONVERGED)
