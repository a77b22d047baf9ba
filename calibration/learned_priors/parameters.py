"""Parameters: the free numbers of a specification, each on a scale without bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from calibration.learned_priors.specification import (
    ClassProbability,
    Free,
    Specification,
    Temperature,
    class_of,
    group_of,
)
from calibration.scores.logistic import sigmoid
from calibration.validation import Floats
from factormodels.claims import Relation
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph

MOST_LOGIT = 12.0
"""The search ends at probabilities 6e-6 away from 0 and 1; beyond, data say no more."""

_LEAST_LOG_TEMPERATURE = -4.0
_MOST_SCALED_LOGIT = 20.0
"""A temperature takes the most certain relation to this logit at most, where 1 - p has 8 digits."""


class ParameterScale(StrEnum):
    """The scale without bounds on which a parameter is searched."""

    LOGIT = "logit"
    LOG = "log"


Key = tuple[str, str, str]
"""(what it is of, class of relations, group of responses); the last two may be empty."""


@dataclass(frozen=True)
class Parameter:
    """One free number.

    Attributes:
        key: which number of which graphs it is.
        scale: logit for probabilities, log for temperatures.
        start: where the search starts, on that scale.
        lower: least value of the search, on that scale.
        upper: largest value of the search, on that scale.
    """

    key: Key
    scale: ParameterScale
    start: float
    lower: float
    upper: float

    @property
    def name(self) -> str:
        """What tables call it: "atom_prior", "probability[refute]", "temperature[, physics]"."""
        what, kind, group = self.key
        inside = ", ".join(part for part in (kind, group) if part)
        return f"{what}[{inside}]" if inside else what


@dataclass(frozen=True)
class Parameters:
    """The free numbers of a specification over given graphs, in order.

    Attributes:
        items: the parameters.
    """

    items: tuple[Parameter, ...]

    @cached_property
    def index(self) -> Mapping[Key, int]:
        """Position of each parameter by key."""
        return {item.key: position for position, item in enumerate(self.items)}

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(item.name for item in self.items)

    @property
    def start(self) -> Floats:
        """Where the search starts, (k,)."""
        return np.array([item.start for item in self.items], dtype=np.float64)

    @property
    def bounds(self) -> Floats:
        """Least and largest values of the search, (k, 2)."""
        return np.array([(item.lower, item.upper) for item in self.items], dtype=np.float64)

    @cached_property
    def logit(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether each is searched on the logit scale, (k,)."""
        return np.array([item.scale is ParameterScale.LOGIT for item in self.items], dtype=np.bool_)

    def natural(self, theta: Floats) -> Floats:
        """Probabilities and temperatures, of the shape (..., k) of `theta`."""
        # Values of the other scale must not overflow on their way to being dropped.
        return np.where(
            self.logit,
            sigmoid(np.where(self.logit, theta, 0.0)),
            np.exp(np.where(self.logit, 0.0, theta)),
        )

    def slopes(self, theta: Floats) -> Floats:
        """Derivative of `natural`, of the shape (..., k) of `theta`."""
        value = self.natural(theta)
        return np.where(self.logit, value * (1.0 - value), value)


def resolve(specification: Specification, graphs: Sequence[FactGraph]) -> Parameters:
    """Free numbers that a specification has over some graphs.

    Raises:
        InputError: if there are none, or a relation of probability 0 or 1 has a temperature.
    """
    stated: dict[Key, list[float]] = {}
    for graph in graphs:
        for key, value in _uses(specification, graph):
            stated.setdefault(key, []).append(value)
    if not stated:
        raise InputError("the graphs hold nothing that the specification makes free; check both")
    items = [_parameter(specification, key, values) for key, values in stated.items()]
    order = {"atom_prior": 0, "context_prior": 1}
    return Parameters(
        tuple(sorted(items, key=lambda item: (order.get(item.key[0], 2), item.key[1:])))
    )


def prior_key(prior: Free, what: str, graph: FactGraph) -> Key:
    """Key of a response's learned prior; `what` is atom_prior or context_prior."""
    return what, "", group_of(prior.per, graph)


def relation_key(
    relations: Temperature | ClassProbability, graph: FactGraph, relation: Relation
) -> Key:
    """Key of a relation's temperature or probability."""
    what = "temperature" if isinstance(relations, Temperature) else "probability"
    return what, class_of(relations.by, graph, relation), group_of(relations.per, graph)


def stated_logit(graph: FactGraph, relation: Relation) -> float:
    """Logit of a relation's stated probability.

    Raises:
        InputError: if it is 0 or 1.
    """
    p = relation.probability
    if not 0.0 < p < 1.0:
        raise InputError(
            f"fact graph {graph.id!r}: the relation {relation.source!r} -> {relation.target!r} has "
            f"probability {p}, which no temperature moves; state one strictly between 0 and 1, "
            "or learn a probability for each class in place of those that are stated"
        )
    return math.log(p) - math.log1p(-p)


def _uses(specification: Specification, graph: FactGraph) -> Iterator[tuple[Key, float]]:
    """Yield the key of every free number in a graph, with what is stated in its place."""
    for prior, items, what in (
        (specification.atom_prior, graph.atoms, "atom_prior"),
        (specification.context_prior, graph.contexts, "context_prior"),
    ):
        if isinstance(prior, Free):
            key = prior_key(prior, what, graph)
            yield from ((key, item.prior) for item in items)
    relations = specification.relations
    if relations is None:
        return
    facts = graph.compiled_for(specification.encoding)
    for relation in (graph.relations[number] for number in facts.relation_numbers.tolist()):
        key = relation_key(relations, graph, relation)
        if key[1] not in relations.fixed:
            temperature = isinstance(relations, Temperature)
            yield key, stated_logit(graph, relation) if temperature else relation.probability


def _parameter(specification: Specification, key: Key, values: list[float]) -> Parameter:
    what = key[0]
    if what == "temperature":
        farthest = max(abs(value) for value in values)
        upper = math.log(max(_MOST_SCALED_LOGIT / max(farthest, 1.0), 2.0))
        relations = specification.relations
        start = math.log(relations.start) if isinstance(relations, Temperature) else 0.0
        start = min(max(start, _LEAST_LOG_TEMPERATURE), upper)
        return Parameter(key, ParameterScale.LOG, start, _LEAST_LOG_TEMPERATURE, upper)
    mean = math.fsum(values) / len(values)
    given: float | None = None
    if what == "probability" and isinstance(specification.relations, ClassProbability):
        given = specification.relations.start.get(key[1])
    else:
        prior = specification.atom_prior if what == "atom_prior" else specification.context_prior
        given = prior.start if isinstance(prior, Free) else None
    p = mean if given is None else given
    edge = 1.0 / (1.0 + math.exp(MOST_LOGIT))
    p = min(max(p, edge), 1.0 - edge)
    return Parameter(
        key, ParameterScale.LOGIT, math.log(p) - math.log1p(-p), -MOST_LOGIT, MOST_LOGIT
    )
