"""The oracle: every state of a factor graph, one after another, in plain Python.

It shares nothing with `inference` but the graph, so that agreement means something: no arrays, no
elimination, no absorbed evidence; tables are looked up entry by entry and summed with `math.fsum`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from factormodels import FactorGraph

UNOBSERVED = -1


@dataclass(frozen=True)
class Oracle:
    """Every state of a graph that its evidence allows, with its log potential.

    Attributes:
        names: names of the variables.
        cardinalities: their numbers of states.
        states: the assignments, one state per variable.
        log_potentials: log potential of each assignment; -inf where it is impossible.
    """

    names: tuple[str, ...]
    cardinalities: tuple[int, ...]
    states: tuple[tuple[int, ...], ...]
    log_potentials: tuple[float, ...]

    @cached_property
    def log_z(self) -> float:
        """The log partition function: of the evidence's unnormalized probability, if any."""
        largest = max(self.log_potentials)
        if largest == -math.inf:
            return -math.inf
        return largest + math.log(math.fsum(math.exp(x - largest) for x in self.log_potentials))

    @cached_property
    def probabilities(self) -> tuple[float, ...]:
        """The probability of each assignment."""
        if self.log_z == -math.inf:
            raise ZeroDivisionError("the partition function is zero; nothing has a probability")
        return tuple(math.exp(x - self.log_z) for x in self.log_potentials)

    @cached_property
    def marginals(self) -> dict[str, list[float]]:
        """The probability of each state of each variable."""
        sums: dict[str, list[float]] = {}
        for position, name in enumerate(self.names):
            terms: list[list[float]] = [[] for _ in range(self.cardinalities[position])]
            for states, probability in zip(self.states, self.probabilities, strict=True):
                terms[states[position]].append(probability)
            sums[name] = [math.fsum(part) for part in terms]
        return sums

    def joint(self, names: Sequence[str]) -> dict[tuple[int, ...], float]:
        """Return the probability of each assignment of a few variables."""
        counts = [self.cardinalities[self.names.index(name)] for name in names]
        return {
            states: self.probability(dict(zip(names, states, strict=True)))
            for states in product(*map(range, counts))
        }

    def probability(self, event: dict[str, int]) -> float:
        """Return the probability that each named variable is in the given state."""
        wanted = [(self.names.index(name), state) for name, state in event.items()]
        return math.fsum(
            probability
            for states, probability in zip(self.states, self.probabilities, strict=True)
            if all(states[position] == state for position, state in wanted)
        )


def oracle(graph: FactorGraph) -> Oracle:
    """Return the enumeration of a graph of a few thousand states at most."""
    cardinalities = graph.cardinalities.tolist()
    evidence = graph.evidence.tolist()
    factors = _factors(graph)
    choices = [
        range(count) if observed == UNOBSERVED else (observed,)
        for count, observed in zip(cardinalities, evidence, strict=True)
    ]
    states = tuple(product(*choices))
    return Oracle(
        names=graph.names,
        cardinalities=tuple(cardinalities),
        states=states,
        log_potentials=tuple(_log_potential(factors, cardinalities, state) for state in states),
    )


def _factors(graph: FactorGraph) -> list[tuple[list[int], list[float]]]:
    variables, scopes = graph.scope_variables.tolist(), graph.scope_starts.tolist()
    values, tables = graph.log_values.tolist(), graph.table_starts.tolist()
    return [
        (variables[scopes[f] : scopes[f + 1]], values[tables[f] : tables[f + 1]])
        for f in range(len(scopes) - 1)
    ]


def _log_potential(
    factors: list[tuple[list[int], list[float]]],
    cardinalities: list[int],
    states: tuple[int, ...],
) -> float:
    terms = []
    for scope, table in factors:
        entry = 0
        for variable in scope:
            entry = entry * cardinalities[variable] + states[variable]
        terms.append(table[entry])
    # fsum of a number and -inf is -inf, but its exactness needs finite terms to begin with.
    return -math.inf if -math.inf in terms else math.fsum(terms)
