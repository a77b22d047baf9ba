"""Coherence of the claims of a response: five exact readouts of one graph.

Compute the readouts:

    from inference.tasks import coherence
    coherence(graph.compiled).agreement

Four readouts were proposed by others. They reward different properties: the mean marginal and the
reified node depend on entailments and on the number of claims, the probability that no conflict is
active increases when conflicts are certain, and log Z depends on scale
(docs/explanation/coherence.md). The fifth is ours: it depends on conflicts only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.compile import CompiledFacts
from factormodels.encodings import CONFLICT_CODES, DEFAULT_ENCODING, NEUTRAL_CODE, VIOLATED
from factormodels.validation import validated_probability
from inference.backend import ZeroPartitionError
from inference.exact.backend import Exact
from inference.tasks.gradients import ValueAndGradient, log_partition_function
from inference.tasks.maximum import map_assignment

REIFIED_PRIOR = 0.5
"""Prior of the reified node, without assumptions on the response."""


@dataclass(frozen=True, eq=False)
class Coherence:
    """Readouts of a graph on the agreement of its claims.

    A conflict is a contradiction or an exclusion between two claims. It is active if both are true,
    and violated if it does not hold: a contradiction if both are true, an exclusion also if both
    are false. The probability that a conflict is real is the probability of its relation.

    Certain conflicts may leave no possible state of the claims. Log Z is then -inf, and readouts of
    the states are NaN; the ceiling, the consistency and the costs do not use the factors of
    conflicts and still measure the disagreement of the claims.

    Attributes:
        n_claims: number of claims.
        n_relations: number of relations between two claims that have a factor.
        marginals: float64 (n_claims,), P(true) of each claim.
        no_active_conflict: probability that no conflict is active.
        reified: posterior of a node that, if true, requires every relation between claims to hold:
            each violated relation then has weight 1 minus its probability.
        log_z: log Z of the graph.
        floor: log potential of its most probable state, at most log Z.
        ceiling: log Z without the factors of conflicts.
        consistency: probability that no real conflict is violated, given all other factors: each
            conflict is real with its probability, and claims are drawn without conflicts.
        conflicts: int64 (n_conflicts,), number of each conflict among the relations of the graph.
        active: float64 (n_conflicts,), probability that each is active.
        costs: float64 (n_conflicts,), -log of the consistency with only this conflict.
    """

    n_claims: int
    n_relations: int
    marginals: NDArray[np.float64]
    no_active_conflict: float
    reified: float
    log_z: float
    floor: float
    ceiling: float
    consistency: float
    conflicts: NDArray[np.int64]
    active: NDArray[np.float64]
    costs: NDArray[np.float64]

    @property
    def mean_marginal(self) -> float:
        """Mean of P(true) over the claims; NaN if there is none."""
        return float(self.marginals.mean()) if self.n_claims else math.nan

    @property
    def position(self) -> float:
        """Position of log Z between its floor, 0, and its ceiling, 1; 1 if they are equal.

        NaN if no state is possible.
        """
        if self.floor == -math.inf:
            return math.nan
        range_ = self.ceiling - self.floor
        # If a single state has all potential, floor and ceiling differ by rounding only.
        return (self.log_z - self.floor) / range_ if range_ > 1e-12 else 1.0

    @property
    def agreement(self) -> float:
        """Consistency per claim, its root of degree `n_claims`; 1 without a conflict."""
        return self.consistency ** (1.0 / self.n_claims) if self.n_claims else math.nan


def coherence(
    facts: CompiledFacts,
    encoding: str = DEFAULT_ENCODING,
    *,
    prior: float | None = None,
    reified_prior: float = REIFIED_PRIOR,
    exact: Exact | None = None,
) -> Coherence:
    """Return all readouts of the coherence of a response's claims.

    No readout needs an additional variable: a conflict that must not be active is a zero in its
    table, and a reified node has two states, whose log Z are those of two settings of the tables.
    The computation takes five propagations of the graph, and one for the most probable state.

    Args:
        facts: claims and relations, with passages if there are any.
        encoding: encoding of the relations as factors.
        prior: prior of every claim; None keeps their own priors. A response asserts its claims,
            which a prior of 0.99 expresses.
        reified_prior: prior of the reified node.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Raises:
        InputError: for a number outside [0, 1], or an unknown encoding.
        TooLargeError: if the tables would exceed the memory limit.
        ZeroPartitionError: if no state of the claims is possible even without their conflicts.
    """
    rho = validated_probability(reified_prior, "the prior of the reified node")
    priors = None
    if prior is not None:
        priors = np.where(facts.is_atom, validated_probability(prior, "the prior"), facts.priors)
    graph = facts.to_factor_graph(priors, encoding=encoding)
    log_partition = log_partition_function(graph, exact)
    tables = _Tables(facts, graph.log_values)
    free = log_partition(tables.free())
    base = _where_possible(log_partition, tables.base)
    possible = base.value > -math.inf
    _, beliefs = facts.split(base.gradient)
    _, free_beliefs = facts.split(free.gradient)
    n, at = len(facts.names), tables.conflicts

    def beside_base(values: NDArray[np.float64]) -> float:
        """Log Z of tables minus log Z of the graph; NaN if the graph has no possible state."""
        return _log_z(log_partition, values) - base.value if possible else math.nan

    with np.errstate(divide="ignore"):
        violated = (free_beliefs[at] * VIOLATED[facts.kinds[at]]).sum(axis=(1, 2))
        costs = -np.log1p(-np.clip(facts.probabilities[at] * violated, 0.0, 1.0))
    return Coherence(
        n_claims=int(facts.is_atom.sum()),
        n_relations=int(tables.between_claims.sum()),
        marginals=base.gradient[1 : 2 * n : 2][facts.is_atom],
        no_active_conflict=_share(beside_base(tables.without_active())),
        reified=_posterior(rho, beside_base(tables.reified())),
        log_z=base.value,
        floor=map_assignment(graph, exact).log_potential if possible else -math.inf,
        ceiling=free.value,
        consistency=_share(_log_z(log_partition, tables.kept()) - free.value),
        conflicts=facts.relation_numbers[at],
        active=beliefs[at, 1, 1],
        costs=costs,
    )


class _Tables:
    """The log tables of each readout of one graph, laid out as its `log_values`."""

    def __init__(self, facts: CompiledFacts, base: NDArray[np.float64]) -> None:
        self.base = base
        self._facts = facts
        self.between_claims = facts.is_atom[facts.pairs].all(axis=1) & (facts.kinds != NEUTRAL_CODE)
        conflict = self.between_claims & np.isin(facts.kinds, CONFLICT_CODES)
        self.conflicts = np.flatnonzero(conflict)

    def free(self) -> NDArray[np.float64]:
        """Return the tables without the factors of conflicts."""
        values, tables = self._copy()
        tables[self.conflicts] = 0.0
        return values

    def without_active(self) -> NDArray[np.float64]:
        """Return the tables with zeros for active conflicts."""
        values, tables = self._copy()
        tables[self.conflicts, 1, 1] = -math.inf
        return values

    def kept(self) -> NDArray[np.float64]:
        """Return the tables with factors of conflicts replaced by the weights of unreal ones."""
        values, tables = self._copy()
        tables[self.conflicts] = self._weights(self.conflicts)
        return values

    def reified(self) -> NDArray[np.float64]:
        """Return the tables with those weights added to all relations between claims."""
        values, tables = self._copy()
        at = np.flatnonzero(self.between_claims)
        tables[at] += self._weights(at)
        return values

    def _copy(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values = self.base.copy()
        return values, self._facts.split(values)[1]

    def _weights(self, at: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the log of 1 - p for violated relations, and 0 otherwise, (k, 2, 2)."""
        with np.errstate(divide="ignore"):
            unreal = np.log1p(-self._facts.probabilities[at])[:, None, None]
        return np.where(VIOLATED[self._facts.kinds[at]], unreal, 0.0)


def _log_z(
    log_partition: Callable[[NDArray[np.float64]], ValueAndGradient], values: NDArray[np.float64]
) -> float:
    """Return log Z of tables; -inf if no state is possible, which is a valid answer here."""
    try:
        return log_partition(values).value
    except ZeroPartitionError:
        return -math.inf


def _where_possible(
    log_partition: Callable[[NDArray[np.float64]], ValueAndGradient], values: NDArray[np.float64]
) -> ValueAndGradient:
    """Return log Z of tables and its gradient; -inf and NaN if no state is possible."""
    try:
        return log_partition(values)
    except ZeroPartitionError:
        return ValueAndGradient(-math.inf, np.full(len(values), math.nan))


def _share(difference: float) -> float:
    """Return the exponential of a difference of log Z, at most 1 despite rounding; NaN for NaN."""
    return min(math.exp(difference), 1.0)


def _posterior(prior: float, log_ratio: float) -> float:
    """Return the probability from a prior and a likelihood ratio; NaN for NaN."""
    if math.isnan(log_ratio):
        return math.nan
    if prior in (0.0, 1.0) or log_ratio == -math.inf:
        return prior if prior in (0.0, 1.0) else 0.0
    return 1.0 / (1.0 + (1.0 - prior) / prior * math.exp(-log_ratio))
