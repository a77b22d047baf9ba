"""Which relation, not looked at yet, would change what is believed of an atom most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import RelationKind
from factormodels.encodings import encode_many
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.validation import validated_probability
from inference.exact.backend import Exact
from inference.tasks.pairs import pairwise_joints

_SUM_SLACK = 1e-9
"""How far the probabilities of the kinds may sum from 1: decimals rounded when written down."""

_TIE = 1e-12
"""Posteriors that close to 1/2 are ties up to rounding, on whatever side they fall."""


@dataclass(frozen=True)
class OutcomeLaw:
    """What a relation model would say of a pair that it has not seen.

    The outcome is independent of the graph: of the kinds, one is drawn; an entailment or a
    contradiction is then recorded with probability `strength`, and a neutral pair has no factor.

    Attributes:
        entailment: probability that the context entails the atom.
        contradiction: probability that it contradicts the atom.
        neutral: probability that it does neither; the three sum to 1.
        strength: recorded probability of an entailment or contradiction, inside (0, 1).

    Raises:
        InputError: for a number that is not a probability, a sum other than 1, or a strength of 0
            or 1, with which an outcome could be impossible in the graph.
    """

    entailment: float
    contradiction: float
    neutral: float
    strength: float

    def __post_init__(self) -> None:
        for name in ("entailment", "contradiction", "neutral", "strength"):
            value = validated_probability(getattr(self, name), f"{name} of the outcome law")
            object.__setattr__(self, name, value)
        total = self.entailment + self.contradiction + self.neutral
        if abs(total - 1.0) > _SUM_SLACK:
            raise InputError(
                f"the outcome law gives entailment, contradiction and neutral {total} in all; "
                "give probabilities that sum to 1"
            )
        if not 0.0 < self.strength < 1.0:
            raise InputError(
                f"the strength {self.strength} of the outcome law makes a relation certain, which "
                "the graph may rule out; give a number inside (0, 1)"
            )


@dataclass(frozen=True)
class RelationValue:
    """What knowing the relation from a context to an atom is worth.

    Attributes:
        context: id of the context.
        atom: id of the atom.
        probability: posterior probability that the atom is true, as things stand.
        if_entailed: the same once the context is known to entail the atom.
        if_contradicted: the same once it is known to contradict the atom.
        flip_probability: probability that the decision on the atom changes; an atom is held true
            if it is more probable than not (a tie, up to rounding, is not).
        expected_change: expected absolute change of the atom's probability.
        expected_gain: expected change of max(P, 1 - P), the probability that the decision is
            right. Below 0 where evidence is expected to conflict, as it may be: outcomes follow
            the law given and not the graph's own prediction.
    """

    context: str
    atom: str
    probability: float
    if_entailed: float
    if_contradicted: float
    flip_probability: float
    expected_change: float
    expected_gain: float


def unseen_pairs(fact_graph: FactGraph) -> tuple[tuple[str, str], ...]:
    """(context, atom) pairs with no recorded relation, in either direction.

    A pair recorded as neutral has been seen.
    """
    seen = _seen(fact_graph)
    return tuple(
        (context, atom)
        for context in fact_graph.context_ids
        for atom in fact_graph.atom_ids
        if (context, atom) not in seen
    )


def value_of_information(
    fact_graph: FactGraph,
    candidates: Sequence[tuple[str, str]] | None = None,
    *,
    encoding: str,
    outcome_law: OutcomeLaw,
    exact: Exact | None = None,
) -> tuple[RelationValue, ...]:
    """What each unseen relation from a context to an atom would be worth, best first.

    Exact, without running anything anew: with J the joint posterior of context and atom and f the
    table of an outcome, the atom's posterior becomes sum_c f(c, 1) J(c, 1) / sum f J.

    Args:
        fact_graph: the fact graph.
        candidates: (context, atom) pairs of ids with no recorded relation; all there are by
            default, see `unseen_pairs`.
        encoding: name of the encoding of relations.
        outcome_law: what the relation model would say.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        One row per candidate, by falling `flip_probability`, then `expected_change`, then in the
        order of the candidates.

    Raises:
        InputError: if the encoding is unknown, or a candidate is unknown, repeated or seen.
        TooLargeError: if the tables, or the joints of all pairs, would not fit the memory limit.
        ZeroPartitionError: if no assignment has positive potential.

    Source: the value of an observation in decision theory, Howard 1966, "Information value
    theory".
    """
    graph = fact_graph.to_factor_graph(encoding)
    pairs = (
        unseen_pairs(fact_graph) if candidates is None else _checked_pairs(fact_graph, candidates)
    )
    if not pairs:
        return ()
    joints, present = _joints(graph, pairs, exact)
    priors = {atom.id: atom.prior for atom in fact_graph.atoms}
    targets = np.array([priors[atom] for _, atom in pairs], dtype=np.float64)
    kinds = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)
    after = np.stack(
        [_after(joints, kind, outcome_law.strength, targets, encoding) for kind in kinds]
    )
    # A neutral outcome leaves the graph as it is: it changes nothing.
    chances = np.array([outcome_law.entailment, outcome_law.contradiction])
    flips = chances @ (_held_true(after) != _held_true(present))
    changes = chances @ np.abs(after - present)
    gains = chances @ (_confidence(after) - _confidence(present))
    rows = [
        RelationValue(*pair, *map(float, numbers))
        for pair, *numbers in zip(pairs, present, *after, flips, changes, gains, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.flip_probability, -row.expected_change)))


def _joints(
    graph: FactorGraph, pairs: Sequence[tuple[str, str]], exact: Exact | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(k, 2, 2) joints [context, atom] of pairs, and the atoms' probabilities."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    place = {name: number for number, name in enumerate(names)}
    contexts = np.array([place[context] for context, _ in pairs])
    atoms = np.array([place[atom] for _, atom in pairs])
    joints = pairwise_joints(graph, names, exact)
    return joints[contexts, atoms], joints[atoms, atoms, 1, 1]


def _after(
    joints: NDArray[np.float64],
    kind: RelationKind,
    strength: float,
    priors: NDArray[np.float64],
    encoding: str,
) -> NDArray[np.float64]:
    """(k,) probabilities of the atoms once a relation of that kind is recorded."""
    count = len(joints)
    tables = np.exp(encode_many([kind] * count, np.full(count, strength), priors, encoding))
    states = (tables * joints).sum(axis=1)
    result: NDArray[np.float64] = states[:, 1] / states.sum(axis=1)
    return result


def _held_true(probabilities: NDArray[np.float64]) -> NDArray[np.bool_]:
    return probabilities - 0.5 > _TIE


def _confidence(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(probabilities, 1.0 - probabilities)


def _seen(fact_graph: FactGraph) -> set[tuple[str, str]]:
    """Recorded ordered pairs, and their reverses."""
    recorded = {(relation.source, relation.target) for relation in fact_graph.relations}
    return recorded | {(target, source) for source, target in recorded}


def _checked_pairs(
    fact_graph: FactGraph, candidates: Sequence[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    contexts, atoms = set(fact_graph.context_ids), set(fact_graph.atom_ids)
    seen = _seen(fact_graph)
    found: dict[tuple[str, str], None] = {}
    for number, candidate in enumerate(candidates):
        where = f"candidate {number} of fact graph {fact_graph.id!r}"
        if isinstance(candidate, str) or len(candidate) != 2:
            raise InputError(f"{where} is {candidate!r}; give a pair (context, atom) of ids")
        context, atom = candidate
        if context not in contexts:
            raise InputError(f"{where}: {context!r} is not a context; name a context first")
        if atom not in atoms:
            raise InputError(f"{where}: {atom!r} is not an atom; name an atom second")
        if (context, atom) in seen:
            raise InputError(
                f"{where}: a relation of {context!r} and {atom!r} is recorded; leave the pair out"
            )
        if (context, atom) in found:
            raise InputError(f"{where}: the pair {context!r}, {atom!r} is given twice; keep one")
        found[context, atom] = None
    return tuple(found)
