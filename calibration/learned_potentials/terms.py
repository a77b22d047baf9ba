"""Terms: log odds of priors and of relations' probabilities as linear functions of columns.

A prior that is free is a column of ones; a probability for each class of relations is a column for
each class, 1 where a relation is of it; a temperature is the column of the log odds that relations
state, whose weight is learned; the strength of hidden causes is a column of ones for each level.

Graphs of FR1 are forests of stars, in which claims are independent. What joins claims are contexts
that they share (FR2, FR3), or a hidden cause of each sentence and of each response.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from calibration.learned_potentials.columns import RESPONSE, SENTENCE, stated
from calibration.scores.logistic import sigmoid
from calibration.validation import Floats
from factormodels.claims import Context, Relation, RelationKind
from factormodels.encodings import DEFAULT_ENCODING, get_encoding
from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.io.published.stances import DEFAULT_STANCES, StanceMapping

Columns = Callable[[FactGraph], Sequence[Mapping[str, float]]]
"""The columns of each item of a response by name, in order: of its claims, its contexts, or its
relations. An item without any stays as stated."""

Item = tuple[Mapping[str, float], float]
"""Columns of a claim, a context or a relation, and the probability that it states."""

RelationClass = Callable[[FactGraph, Relation], str]
"""Names the class of a relation, which has a value of its own."""

KindOrClass = RelationClass | Literal["kind"]
"""The kind of a relation, or a function that names its class."""

AGREEMENT = {SENTENCE: 0.7, RESPONSE: 0.65}
"""Levels of causes, from the finest, and the probability with which a cause and what it causes
agree before anything is learned."""

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
        claims: a term for the priors of claims, None to leave what each states.
        contexts: the same for contexts.
        relations: a term for the probabilities of relations, None to leave what each states.
            Relations without a factor, as neutral ones are but under *mixture*, have no part.
        encoding: name of the encoding of relations, to which the learned numbers belong.
        support: relations of contexts are read as entailments with the probability that they are
            one, and those of a smaller probability than this not at all; None: as stated.
        causes: levels of hidden causes that join claims, from the finest, each with a strength
            that is learned.
    """

    claims: Term | None = field(default_factory=lambda: level("atom_prior", "claims"))
    contexts: Term | None = None
    relations: Term | None = field(default_factory=lambda: temperature())
    encoding: str = DEFAULT_ENCODING
    support: float | None = None
    causes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        get_encoding(self.encoding)
        for cause in self.causes:
            if cause not in AGREEMENT:
                raise InputError(unknown_name(f"the cause {cause!r}", cause, AGREEMENT))

    @property
    def terms(self) -> tuple[Term | None, ...]:
        """The terms of claims, contexts, relations and causes; None where nothing is learned."""
        causes = Term(_levels_of_causes, "cause", None) if self.causes else None
        return self.claims, self.contexts, self.relations, causes

    @property
    def learns_strengths(self) -> bool:
        """Whether labels alone decide on which side of 1/2 the probability of a relation is.

        A temperature, which is positive, leaves each on the side that was stated.
        """
        return self.relations is not None and not self.relations.positive

    def read(self, graph: FactGraph) -> FactGraph:
        """The graph that is learned on: relations as they are read, and causes.

        Strengths that labels decide are parameters: each relation has its factor.
        """
        read = graph if self.support is None else as_support(graph, self.support)
        if self.learns_strengths:
            read = read.with_parameters()
        return with_causes(read, self.causes)


def _levels_of_causes(graph: FactGraph) -> list[dict[str, float]]:
    return [{relation.source.split(" ")[0]: 1.0} for relation in graph.relations]


def level(name: str, of: Literal["claims", "contexts"] = "claims") -> Term:
    """One log odds for all claims or contexts.

    Args:
        name: what it is called.
        of: whose it is.
    """

    part: Literal["atoms", "contexts"] = "atoms" if of == "claims" else "contexts"
    return Term(lambda graph: [{"": 1.0}] * len(getattr(graph, part)), name, None)


def temperature(by: KindOrClass | None = None) -> Term:
    """Relations are trusted more or less than stated: p' = sigmoid(b logit p), b > 0 learned.

    With b = 1 a relation keeps its probability; below 1 it moves towards 1/2.

    Args:
        by: "kind" (each kind of relation has its own b), a function that names a relation's
            class, or None for one b.
    """
    return Term(_by_class(by, stated_logit), "temperature", (), 1.0, positive=True)


def probability(by: KindOrClass = "kind") -> Term:
    """Relations of one class have one probability, learned in place of what is stated.

    Args:
        by: "kind", or a function that names a relation's class, such as `stance_class`.
    """
    return Term(_by_class(by, lambda graph, relation: 1.0), "probability", None)  # noqa: ARG005


def binned(edges: Sequence[float], strongest: Sequence[float] = ()) -> Term:
    """Relations of one class of stated probability have one probability, learned in place of it.

    Relations between contexts are a class of their own.

    Args:
        edges: where classes of probability end.
        strongest: where those of the most probable relation with each claim end, which then has
            classes of its own.
    """

    def columns(graph: FactGraph) -> list[dict[str, float]]:
        best: dict[str, Relation] = {}
        for relation in graph.relations if strongest else ():
            known = best.get(relation.target)
            if known is None or relation.probability > known.probability:
                best[relation.target] = relation
        names, contexts = [], set(graph.context_ids)
        for relation in graph.relations:
            if relation.target in contexts:
                names.append("between")
            elif best.get(relation.target) is relation:
                names.append(f"first{bisect.bisect(strongest, relation.probability)}")
            else:
                names.append(f"p{bisect.bisect(edges, relation.probability)}")
        return [{name: 1.0} for name in names]

    return Term(columns, "probability", None)


@dataclass(frozen=True)
class Parameter:
    """One weight.

    Attributes:
        term: 0 for claims, 1 for contexts, 2 for relations, 3 for causes.
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
        for place, items in enumerate(items_of(potentials, graph)[1]):
            for row, p in items:
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


def items_of(potentials: Potentials, graph: FactGraph) -> tuple[FactGraph, tuple[list[Item], ...]]:
    """The graph that is learned on, and its claims, contexts, relations and relations of causes.

    Of relations those that have a factor. Causes are among the contexts, without columns.
    """
    own = replace(potentials, causes=()).read(graph)
    whole = with_causes(own, potentials.causes)
    claims, contexts, relations, causes = potentials.terms
    priors: list[list[Item]] = []
    for term, items in ((claims, own.atoms), (contexts, own.contexts)):
        rows = [{}] * len(items) if term is None else term.columns(own)
        priors.append(list(zip(rows, [item.prior for item in items], strict=True)))
    priors[1] += [({}, cause.prior) for cause in whole.contexts[len(own.contexts) :]]
    numbers = whole.compiled_for(potentials.encoding).relation_numbers.tolist()
    n_own = len(own.relations)
    kept = [own.relations[number] for number in numbers if number < n_own]
    if len(kept) < n_own:
        own = replace(own, relations=tuple(kept))
    found = []
    for term, read in (
        (relations, own),
        (causes, replace(whole, relations=whole.relations[n_own:])),
    ):
        columns = [{}] * len(read.relations) if term is None else term.columns(read)
        told = (relation.probability for relation in read.relations)
        found.append(list(zip(columns, told, strict=True)))
    return whole, (*priors, *found)


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


def _by_class(by: KindOrClass | None, value: Callable[[FactGraph, Relation], float]) -> Columns:
    """A column for each class of relations, "" where there is one for all, with their values."""
    if by not in (None, "kind") and not callable(by):
        raise InputError(f"the class {by!r} of relations is unknown; use 'kind' or a function")

    def name(graph: FactGraph, relation: Relation) -> str:
        if not callable(by):
            return "" if by is None else relation.kind.value
        found: object = by(graph, relation)
        if not isinstance(found, str) or not found:
            raise InputError(
                f"fact graph {graph.id!r}: {found!r} is not a name of a class; return non-empty "
                "text"
            )
        return found

    return lambda graph: [{name(graph, r): value(graph, r)} for r in graph.relations]


def as_support(graph: FactGraph, least: float) -> FactGraph:
    """Relations of contexts as entailments with the probability that they are one.

    Args:
        graph: the response.
        least: relations of contexts with a smaller probability are left out.
    """
    contexts, kept = set(graph.context_ids), []
    for relation in graph.relations:
        if relation.source not in contexts:
            kept.append(relation)
        elif (p := stated(relation)[0]) >= least:
            kept.append(Relation(relation.source, relation.target, RelationKind.ENTAILMENT, p))
    return replace(graph, relations=tuple(kept))


def with_causes(graph: FactGraph, levels: Sequence[str]) -> FactGraph:
    """The graph with a hidden cause of each group of claims, and of causes of the level below.

    A forest of stars stays a forest. Causes are even, and equivalent to what they cause with a
    probability that is learned: 1/2 says that what they join has nothing in common. They follow
    the graph's own contexts, and their relations its own.

    Args:
        graph: the response.
        levels: some of `AGREEMENT`, from the finest.
    """
    if not levels:
        return graph
    below = {atom.id: atom.sentence for atom in graph.atoms}
    causes: list[Context] = []
    joins: list[Relation] = []
    for level in levels:
        above = {}
        for name, sentence in below.items():
            cause = level if level == RESPONSE else f"{level} {sentence}"
            above[cause] = sentence
            joins.append(Relation(cause, name, RelationKind.EQUIVALENCE, AGREEMENT[level]))
        causes += [Context(cause, prior=0.5) for cause in above]
        below = above
    return replace(graph, contexts=(*graph.contexts, *causes), relations=(*graph.relations, *joins))
