"""How fast the posterior of every atom moves with the probability of every relation."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from factormodels.fact_graph import FactGraph
from inference.backend import InferenceError
from inference.exact.backend import Exact
from inference.tasks.components import connected_components, turns
from inference.tasks.gradients import log_partition
from inference.tasks.uncertain_relations.relation_factors import RelationFactors, relation_factors

_NEAR_CERTAIN = 1e-8
"""Relations closer than this to 0 or 1 have potentials that are zero, or too small to divide by."""


def sensitivity(
    fact_graph: FactGraph, *, encoding: str, exact: Exact | None = None
) -> NDArray[np.float64]:
    """Return dP(atom is true) / dp for every atom and the probability p of every relation.

    Exact. With f the table of a relation and d its derivative (d log f / dp = d / f),
    ``dP(a)/dp = P(a) (E[d/f | a] - E[d/f])``: one propagation for every atom, with the atom at its
    less probable state, gives the derivatives with respect to all relations. Where f holds zeros
    (p is 0 or 1), the relation is taken out instead: with q(s) the joint probability of its two
    ends without it, ``dP(a)/dp = sum_s d(s) q(s) (P(a|s) - P(a)) / sum_s f(s) q(s)``, from one
    propagation for every state s; there the derivative is towards the inside of [0, 1].
    Components of the graph share propagations, so a forest of many responses costs few.

    Args:
        fact_graph: the fact graph.
        encoding: name of the encoding of relations.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        float64 (n_atoms, n_relations), atoms and relations in the order of the fact graph; 0 for
        neutral relations, which have no factor, and for relations of other components.

    Raises:
        InputError: if the encoding is unknown.
        TooLargeError: if the tables would not fit the memory limit.
        ZeroPartitionError: if no assignment has positive potential.
        InferenceError: if a relation of probability 0 or 1 is contradicted so strongly that the
            derivative is beyond floating point.

    Source: derivatives of the network polynomial, Darwiche 2003, "A differential approach to
    inference in Bayesian networks"; the case of zeros as there, by potentials, not logarithms.
    """
    exact = exact or Exact()
    factors = relation_factors(fact_graph, encoding)
    result = np.zeros((factors.n_atoms, len(fact_graph.relations)))
    if not len(factors.columns) or not factors.n_atoms:
        return result
    p = factors.probabilities
    # Tables are affine in p, so that their derivative is the difference between its ends.
    slopes = np.exp(factors.log_tables(np.ones(len(p)))) - np.exp(
        factors.log_tables(np.zeros(len(p)))
    )
    components = connected_components(factors.graph.n_variables, factors.pairs)
    certain = np.minimum(p, 1.0 - p) < _NEAR_CERTAIN
    derivatives = _by_atoms(factors, slopes, np.flatnonzero(~certain), components, exact)
    derivatives += _by_pairs(factors, slopes, np.flatnonzero(certain), components, exact)
    result[:, factors.columns] = derivatives
    return result


def _by_atoms(
    factors: RelationFactors,
    slopes: NDArray[np.float64],
    relations: NDArray[np.int64],
    components: NDArray[np.int64],
    exact: Exact,
) -> NDArray[np.float64]:
    """Return (n_atoms, m) derivatives, 0 but for the relations given, by clamping each atom."""
    result = np.zeros((factors.n_atoms, len(slopes)))
    calibrated = exact.calibrate(factors.graph)
    beliefs = factors.of_relations(calibrated.factor_beliefs())[relations]
    tables = np.exp(factors.of_relations(factors.graph.log_values)[relations])
    # Entries that do not depend on p, such as a prior of 0, have slope 0 and may be 0.
    ratios = np.divide(
        slopes[relations], tables, out=np.zeros(tables.shape), where=slopes[relations] != 0.0
    )
    owners = components[factors.pairs[relations, 0]]
    marginals = calibrated.marginals[: 2 * factors.n_atoms].reshape(-1, 2)
    # The less probable state has the larger change, and loses least to rounding.
    states = np.argmin(marginals, axis=1)
    probabilities = marginals.min(axis=1)
    # A state that is impossible now is impossible for every p inside (0, 1).
    asked = np.flatnonzero((probabilities > 0.0) & np.isin(components[: factors.n_atoms], owners))
    for turn in turns(components[asked]):
        atoms = asked[turn]
        evidence = dict(zip(atoms.tolist(), states[atoms].tolist(), strict=True))
        clamped = log_partition(factors.graph.with_evidence(evidence), exact).gradient
        moved = factors.of_relations(clamped)[relations] - beliefs
        changes = np.einsum("rij,rij->r", ratios, moved)
        atom_of = np.full(components.max() + 1, -1)
        atom_of[components[atoms]] = atoms
        found = atom_of[owners]
        at = np.flatnonzero(found >= 0)
        signs = 2.0 * states[found[at]] - 1.0
        result[found[at], relations[at]] = signs * probabilities[found[at]] * changes[at]
    return result


def _by_pairs(
    factors: RelationFactors,
    slopes: NDArray[np.float64],
    relations: NDArray[np.int64],
    components: NDArray[np.int64],
    exact: Exact,
) -> NDArray[np.float64]:
    """Return (n_atoms, m) derivatives, 0 but for the relations given, by clamping their ends."""
    result = np.zeros((factors.n_atoms, len(slopes)))
    owners = components[factors.pairs[relations, 0]]
    known = factors.of_relations(factors.graph.log_values)
    for turn in turns(owners):
        taken = relations[turn]
        log_tables = known.copy()
        log_tables[taken] = 0.0
        graph = factors.with_log_tables(log_tables)
        ends = factors.of_relations(exact.calibrate(graph).factor_beliefs())[taken]
        weighted = np.exp(known[taken]) * ends
        totals = weighted.sum(axis=(1, 2))
        _check_totals(factors, taken, totals)
        given = np.zeros((2, 2, factors.n_atoms))
        for s, t in product(range(2), repeat=2):
            possible = taken[ends[:, s, t] > 0.0]
            states = np.tile([s, t], len(possible)).tolist()
            evidence = dict(zip(factors.pairs[possible].ravel().tolist(), states, strict=True))
            posterior = exact.infer(graph.with_evidence(evidence))
            given[s, t] = posterior.marginals.of_state(1)[: factors.n_atoms]
        place_of = np.full(components.max() + 1, -1)
        place_of[owners[turn]] = np.arange(len(taken))
        places = place_of[components[: factors.n_atoms]]
        atoms = np.flatnonzero(places >= 0)
        at = places[atoms]
        conditional = given[:, :, atoms].transpose(2, 0, 1)
        present = (weighted[at] * conditional).sum(axis=(1, 2)) / totals[at]
        differences = conditional - present[:, None, None]
        changes = (slopes[taken] * ends)[at] * differences
        result[atoms, taken[at]] = changes.sum(axis=(1, 2)) / totals[at]
    return result


def _check_totals(
    factors: RelationFactors, taken: NDArray[np.int64], totals: NDArray[np.float64]
) -> None:
    lost = np.flatnonzero(totals <= 0.0)
    if lost.size:
        source, target = factors.pairs[taken[lost[0]]]
        names = factors.graph.names
        raise InferenceError(
            f"the relation {names[source]!r} -> {names[target]!r} of probability "
            f"{factors.probabilities[taken[lost[0]]]} leaves less than the least floating-point "
            "number of what the rest of the graph allows, and has no derivative; move its "
            "probability inside (0, 1)"
        )
