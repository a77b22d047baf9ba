"""How fast the posterior of every atom moves with the probability of every relation."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from factormodels.compile import CompiledFacts
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from inference.backend import InferenceError
from inference.exact.backend import Exact
from inference.tasks.components import connected_components, turns
from inference.tasks.gradients import log_partition

_NEAR_CERTAIN = 1e-8
"""Relations closer than this to 0 or 1 have potentials that are zero, or too small to divide by."""


def sensitivity(
    fact_graph: FactGraph, *, encoding: str, exact: Exact | None = None
) -> NDArray[np.float64]:
    """DP(atom is true) / dp for every atom and the probability p of every relation.

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
    facts = fact_graph.compiled_for(encoding)
    graph = facts.to_factor_graph(encoding=encoding)
    result = np.zeros((len(fact_graph.atoms), len(fact_graph.relations)))
    if not len(facts.kinds) or not len(fact_graph.atoms):
        return result
    p = facts.probabilities
    # Tables are affine in p, so that their derivative is the difference between its ends.
    ends = facts.log_values(probabilities=[np.zeros(len(p)), np.ones(len(p))], encoding=encoding)
    at_0, at_1 = (np.exp(facts.split(values)[1]) for values in ends)
    slopes = at_1 - at_0
    components = connected_components(graph.n_variables, facts.pairs)
    certain = np.minimum(p, 1.0 - p) < _NEAR_CERTAIN
    derivatives = _by_atoms(facts, graph, slopes, np.flatnonzero(~certain), components, exact)
    derivatives += _by_pairs(facts, graph, slopes, np.flatnonzero(certain), components, exact)
    result[:, facts.relation_numbers] = derivatives
    return result


def _by_atoms(
    facts: CompiledFacts,
    graph: FactorGraph,
    slopes: NDArray[np.float64],
    relations: NDArray[np.int64],
    components: NDArray[np.int64],
    exact: Exact,
) -> NDArray[np.float64]:
    """(n_atoms, m) derivatives, 0 but for the relations given, by clamping each atom."""
    n_atoms = int(facts.is_atom.sum())
    result = np.zeros((n_atoms, len(slopes)))
    calibrated = exact.calibrate(graph)
    beliefs = facts.split(calibrated.factor_beliefs())[1][relations]
    tables = np.exp(facts.split(graph.log_values)[1][relations])
    # Entries that do not depend on p, such as a prior of 0, have slope 0 and may be 0.
    ratios = np.divide(
        slopes[relations], tables, out=np.zeros(tables.shape), where=slopes[relations] != 0.0
    )
    owners = components[facts.pairs[relations, 0]]
    marginals = calibrated.marginals[: 2 * n_atoms].reshape(-1, 2)
    # The less probable state has the larger change, and loses least to rounding.
    states = np.argmin(marginals, axis=1)
    probabilities = marginals.min(axis=1)
    # A state that is impossible now is impossible for every p inside (0, 1).
    asked = np.flatnonzero((probabilities > 0.0) & np.isin(components[:n_atoms], owners))
    for turn in turns(components[asked]):
        atoms = asked[turn]
        evidence = dict(zip(atoms.tolist(), states[atoms].tolist(), strict=True))
        clamped = log_partition(graph.with_evidence(evidence), exact).gradient
        moved = facts.split(clamped)[1][relations] - beliefs
        changes = np.einsum("rij,rij->r", ratios, moved)
        atom_of = np.full(components.max() + 1, -1)
        atom_of[components[atoms]] = atoms
        found = atom_of[owners]
        at = np.flatnonzero(found >= 0)
        signs = 2.0 * states[found[at]] - 1.0
        result[found[at], relations[at]] = signs * probabilities[found[at]] * changes[at]
    return result


def _by_pairs(
    facts: CompiledFacts,
    graph: FactorGraph,
    slopes: NDArray[np.float64],
    relations: NDArray[np.int64],
    components: NDArray[np.int64],
    exact: Exact,
) -> NDArray[np.float64]:
    """(n_atoms, m) derivatives, 0 but for the relations given, by clamping their ends."""
    n_atoms = int(facts.is_atom.sum())
    result = np.zeros((n_atoms, len(slopes)))
    owners = components[facts.pairs[relations, 0]]
    known = facts.split(graph.log_values)[1]
    for turn in turns(owners):
        taken = relations[turn]
        values = graph.log_values.copy()
        facts.split(values)[1][taken] = 0.0
        # As in every graph: no copy when one takes it over.
        values.flags.writeable = False
        without = replace(graph, log_values=values)
        ends = facts.split(exact.calibrate(without).factor_beliefs())[1][taken]
        weighted = np.exp(known[taken]) * ends
        totals = weighted.sum(axis=(1, 2))
        _check_totals(facts, taken, totals)
        given = np.zeros((2, 2, n_atoms))
        for s, t in product(range(2), repeat=2):
            possible = taken[ends[:, s, t] > 0.0]
            states = np.tile([s, t], len(possible)).tolist()
            evidence = dict(zip(facts.pairs[possible].ravel().tolist(), states, strict=True))
            posterior = exact.infer(without.with_evidence(evidence))
            given[s, t] = posterior.marginals.of_state(1)[:n_atoms]
        place_of = np.full(components.max() + 1, -1)
        place_of[owners[turn]] = np.arange(len(taken))
        places = place_of[components[:n_atoms]]
        atoms = np.flatnonzero(places >= 0)
        at = places[atoms]
        conditional = given[:, :, atoms].transpose(2, 0, 1)
        present = (weighted[at] * conditional).sum(axis=(1, 2)) / totals[at]
        differences = conditional - present[:, None, None]
        changes = (slopes[taken] * ends)[at] * differences
        result[atoms, taken[at]] = changes.sum(axis=(1, 2)) / totals[at]
    return result


def _check_totals(
    facts: CompiledFacts, taken: NDArray[np.int64], totals: NDArray[np.float64]
) -> None:
    lost = np.flatnonzero(totals <= 0.0)
    if lost.size:
        source, target = facts.pairs[taken[lost[0]]]
        names = facts.names
        raise InferenceError(
            f"the relation {names[source]!r} -> {names[target]!r} of probability "
            f"{facts.probabilities[taken[lost[0]]]} leaves less than the least floating-point "
            "number of what the rest of the graph allows, and has no derivative; move its "
            "probability inside (0, 1)"
        )
