"""Terms: log odds of priors and of relations' probabilities as linear functions of columns.

A prior that is free is a column of ones; a probability for each class of relations is a column for
each class, 1 where a relation is of it; a temperature is the column of the log odds that relations
state, whose weight is learned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from calibration.scores.logistic import sigmoid
from calibration.validation import Floats
from factormodels.claims import Relation
from factormodels.encodings import DEFAULT_ENCODING, get_encoding
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.published.stances import DEFAULT_STANCES, StanceMapping
from factormodels.validation import validated_probability

Columns = Callable[[FactGraph], Sequence[Mapping[str, float]]]
"""The columns of each item of a response by name, in order: of its claims, its contexts, or its
relations. An item without any stays as stated."""

Group = Callable[[FactGraph], str]
"""Names the group (topic, dataset, ...) of a response, which has values of its own."""

RelationClass = Callable[[FactGraph, Relation], str]
"""Names the class of a relation, which has a value of its own."""

KindOrClass = RelationClass | Literal["kind"]
"""The kind of a relation, or a function that names its class."""

MOST_LOGIT = 12.0
"""The search ends at probabilities 6e-6 away from 0 and 1; beyond, data say no more."""

_LEAST_WEIGHT, _MOST_SCALED_LOGIT = math.exp(-4.0), 20.0
"""A temperature takes the most certain relation to this logit at most, where 1 - p has 8 digits."""


@dataclass(frozen=True)
class Term:
    """Log odds that are linear in columns.

    Attributes:
        columns: what is known of each item.
        name: what its parameters are called, the column in brackets.
        levels: columns that are 1 where they apply and whose weight begins at the log odds of the
            mean of what is stated there, and is told as a probability; None: all of them.
        start: where other weights begin.
        positive: whether weights are held above 0.
    """

    columns: Columns
    name: str
    levels: Collection[str] | None = ()
    start: float = 0.0
    positive: bool = False

    def is_level(self, column: str) -> bool:
        """Whether a column is one of levels."""
        return self.levels is None or column in self.levels


@dataclass(frozen=True)
class Potentials:
    """Which numbers of the model are learned, which are set, and which stay as stated.

    Attributes:
        claims: a term for the priors of claims, a number to set them, None to leave what each
            states.
        contexts: the same for contexts.
        relations: a term for the probabilities of relations, None to leave what each states.
            Relations without a factor, as neutral ones are but under *mixture*, have no part.
        encoding: name of the encoding of relations, to which the learned numbers belong.
    """

    claims: Term | float | None = field(default_factory=lambda: level("atom_prior", "claims"))
    contexts: Term | float | None = None
    relations: Term | None = field(default_factory=lambda: temperature())
    encoding: str = DEFAULT_ENCODING

    def __post_init__(self) -> None:
        get_encoding(self.encoding)
        for prior, what in ((self.claims, "the prior of claims"), (self.contexts, "of contexts")):
            if prior is not None and not isinstance(prior, Term):
                validated_probability(prior, what)

    @property
    def terms(self) -> tuple[Term | None, Term | None, Term | None]:
        """The terms of claims, contexts and relations; None where nothing is learned."""
        return (
            self.claims if isinstance(self.claims, Term) else None,
            self.contexts if isinstance(self.contexts, Term) else None,
            self.relations,
        )


def level(
    name: str, of: Literal["claims", "contexts"] = "claims", *, per: Group | None = None
) -> Term:
    """One log odds for all claims or contexts of a response, or of a group of responses.

    Args:
        name: what it is called.
        of: whose it is.
        per: names the group of a response; groups have values of their own.
    """

    def columns(graph: FactGraph) -> list[dict[str, float]]:
        group = "" if per is None else _text(per(graph), graph, "group")
        return [{group: 1.0}] * len(graph.atoms if of == "claims" else graph.contexts)

    return Term(columns, name, None)


def temperature(by: KindOrClass | None = None) -> Term:
    """Relations are trusted more or less than stated: p' = sigmoid(b logit p), b > 0 learned.

    With b = 1 a relation keeps its probability; below 1 it moves towards 1/2.

    Args:
        by: "kind" (each kind of relation has its own b), a function that names a relation's
            class, or None for one b.
    """
    _check_class(by)

    def columns(graph: FactGraph) -> list[dict[str, float]]:
        return [
            {class_of(by, graph, relation): stated_logit(graph, relation)}
            for relation in graph.relations
        ]

    return Term(columns, "temperature", (), 1.0, positive=True)


def probability(by: KindOrClass = "kind") -> Term:
    """Relations of one class have one probability, learned in place of what is stated.

    Args:
        by: "kind", or a function that names a relation's class, such as `stance_class`.
    """
    _check_class(by)

    def columns(graph: FactGraph) -> list[dict[str, float]]:
        return [{class_of(by, graph, relation): 1.0} for relation in graph.relations]

    return Term(columns, "probability", None)


@dataclass(frozen=True)
class Parameter:
    """One weight.

    Attributes:
        term: 0 for claims, 1 for contexts, 2 for relations.
        column: its column.
        name: what tables call it: "atom_prior", "probability[refute]".
        is_level: whether it is told as a probability.
        start: where the search starts.
        lower: least value of the search.
        upper: largest value of the search.
    """

    term: int
    column: str
    name: str
    is_level: bool
    start: float
    lower: float
    upper: float

    def natural(self, value: float) -> float:
        """A value as tables tell it."""
        return float(sigmoid(np.array([value]))[0]) if self.is_level else value


Parameters = tuple[Parameter, ...]
"""The weights of potentials over given graphs, in order."""


def resolve(potentials: Potentials, graphs: Sequence[FactGraph]) -> Parameters:
    """Weights that potentials have over some graphs; no label decides them.

    Raises:
        InputError: if there are none, or a relation of probability 0 or 1 has a temperature.
    """
    stated: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for graph in graphs:
        for place, term in enumerate(potentials.terms):
            for row, p in items_of(potentials, graph, place) if term is not None else ():
                for column, value in row.items():
                    stated.setdefault((place, column), []).append((value, p))
    if not stated:
        raise InputError("the graphs hold nothing that the potentials make free; check both")
    found = []
    for (place, column), values in sorted(stated.items(), key=lambda each: each[0]):
        term = potentials.terms[place]
        if term is not None:
            found.append(_parameter(term, place, column, np.array(values)))
    return tuple(found)


def items_of(
    potentials: Potentials, graph: FactGraph, place: int
) -> list[tuple[Mapping[str, float], float]]:
    """Columns of each item of a response, and what it states: claims, contexts or relations.

    Args:
        potentials: the potentials.
        graph: the response.
        place: 0, 1 or 2; of relations those that have a factor.
    """
    term = potentials.terms[place]
    if place < 2:
        stated = [item.prior for item in (graph.atoms, graph.contexts)[place]]
        rows = [{}] * len(stated) if term is None else term.columns(graph)
        return list(zip(rows, stated, strict=True))
    numbers = graph.compiled_for(potentials.encoding).relation_numbers.tolist()
    own = [graph.relations[number] for number in numbers]
    if term is None or not own:
        return [({}, relation.probability) for relation in own]
    kept = replace(graph, relations=tuple(own)) if len(own) < len(graph.relations) else graph
    return [
        (row, relation.probability) for row, relation in zip(term.columns(kept), own, strict=True)
    ]


def _parameter(term: Term, place: int, column: str, values: Floats) -> Parameter:
    name = f"{term.name}[{column}]" if column else term.name
    if term.is_level(column):
        edge = float(sigmoid(np.array([-MOST_LOGIT]))[0])
        p = min(max(math.fsum(values[:, 1]) / len(values), edge), 1.0 - edge)
        start = math.log(p) - math.log1p(-p)
        return Parameter(place, column, name, True, start, -MOST_LOGIT, MOST_LOGIT)
    lower, upper = -MOST_LOGIT, MOST_LOGIT
    if term.positive:
        farthest = max(float(np.abs(values[:, 0]).max()), 1.0)
        lower, upper = _LEAST_WEIGHT, max(_MOST_SCALED_LOGIT / farthest, math.exp(2.0))
    return Parameter(place, column, name, False, term.start, lower, upper)


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


def stance_class(mapping: StanceMapping = DEFAULT_STANCES) -> RelationClass:
    """Function that names the stance that a relation of Factcheck-Bench was made from.

    Args:
        mapping: the relation of every stance that the graphs were made with; no two alike.

    Raises:
        InputError: if two stances have the same relation, so that it does not tell them apart.
    """
    names: dict[tuple[str, float], str] = {}
    for stance, relation in mapping.items():
        if relation is None:
            continue
        key = str(relation[0]), float(relation[1])
        if key in names:
            raise InputError(
                f"the stances {names[key]!r} and {stance!r} are both the relation {key}; "
                "load the data with a probability of its own for each"
            )
        names[key] = stance

    def name(graph: FactGraph, relation: Relation) -> str:
        try:
            return names[relation.kind.value, relation.probability]
        except KeyError:
            raise InputError(
                f"fact graph {graph.id!r}: the relation {relation.source!r} -> "
                f"{relation.target!r} ({relation.kind}, {relation.probability}) comes from no "
                "stance; give the mapping that the graphs were made with"
            ) from None

    return name


def class_of(by: KindOrClass | None, graph: FactGraph, relation: Relation) -> str:
    """Class of a relation, "" where there is one for all."""
    if by is None:
        return ""
    if isinstance(by, str):
        return relation.kind.value
    return _text(by(graph, relation), graph, "class")


def _text(name: object, graph: FactGraph, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(
            f"fact graph {graph.id!r}: {name!r} is not a name of a {what}; return non-empty text"
        )
    return name


def _check_class(by: object) -> None:
    if not (by is None or by == "kind" or callable(by)):
        raise InputError(f"the class {by!r} of relations is unknown; use 'kind' or a function")
