"""Weights of whole graphs: priors, and temperatures or probabilities of relations.

    Potentials(("atom_prior", "probability"), by="kind")

A prior is a log odds shared by all claims, by all contexts or by the contexts of a class, such as
a source. A temperature b changes the probability p of a relation to sigmoid(b logit p). A
probability replaces the probabilities of a class of relations. Graphs of FR1 are forests of stars,
for which this amounts to recalibration (docs/appendix/derivations.md); only shared contexts make
claims depend on each other.

Three files learn the weights. This file determines the weights of a graph and applies them.
`graph_loss` is the loss of labels as a differentiable function of the weights, from the beliefs of
any backend. `graph_fitting` searches, cross-fits and estimates errors, for which simpler formulas
are not sufficient: with the usual standard error over responses, intervals of a source's prior
cover it in .790 of draws with 20 responses, instead of .953 (docs/results/prior-intervals).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calibration.scores.logistic import sigmoid
from factormodels.claims import (
    LEAST_PROBABILITY,
    Context,
    ContextKind,
    Relation,
    evidence_or_neutral,
)
from factormodels.encodings import DEFAULT_ENCODING, get_encoding
from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.stances import DEFAULT_STANCES, StanceMapping
from factormodels.passage_sources import OTHERS, PassageKey
from factormodels.variants import has_default_prior, passage_source

RelationClass = Callable[[FactGraph, Relation], str]
"""Function that names the class of a relation; each class has a separate weight."""

ContextClass = Callable[[FactGraph, Context], str]
"""Function that names the class of a context; each class has a separate prior. A context without a
class, "", keeps the prior that is stated."""

ATOMS, CONTEXTS, TEMPERATURE, PROBABILITY = (
    *("atom_prior", "context_prior"),
    *("temperature", "probability"),
)
OF_RELATIONS = (TEMPERATURE, PROBABILITY)
LEARNABLE = (ATOMS, CONTEXTS, *OF_RELATIONS)
"""Parameters that can be learned from labels."""

MOST_LOG_ODDS = 20.0
"""Bound on the magnitude of log odds, at which 1 - p still has 8 digits."""

_MOST_LOGIT = 12.0
"""The search is limited to probabilities at least 6e-6 from 0 and 1; data cannot distinguish more
extreme probabilities."""

_LEAST_TEMPERATURE, _MOST_TEMPERATURE = math.exp(-4.0), math.exp(2.0)


@dataclass(frozen=True)
class Potentials:
    """Specification of the numbers of graphs to learn; all others keep their stated values.

    Attributes:
        parameters: some of `LEARNABLE`, with at most one of temperature and probability.
        by: classes of relations with separate weights: "kind", or a function that names a
            relation's class, such as `stance_class`. None for a single temperature, or a
            probability per kind.
        encoding: name of the encoding of relations under which the numbers are learned. Relations
            without a factor under it are ignored.
        contexts_by: classes of contexts with separate priors, such as `source_class`. None for one
            prior of all contexts.

    Raises:
        InputError: for an unknown name, both a temperature and a probability, or classes of
            contexts whose prior is not learned.
    """

    parameters: tuple[str, ...] = (ATOMS, TEMPERATURE)
    by: RelationClass | Literal["kind"] | None = None
    encoding: str = DEFAULT_ENCODING
    contexts_by: ContextClass | None = None

    def __post_init__(self) -> None:
        get_encoding(self.encoding)
        for name in self.parameters:
            if name not in LEARNABLE:
                raise InputError(unknown_name(f"the parameter {name!r}", name, LEARNABLE))
        if {TEMPERATURE, PROBABILITY} <= {*self.parameters}:
            raise InputError("a relation has a temperature or a probability; learn one of the two")
        if self.contexts_by is not None and CONTEXTS not in self.parameters:
            raise InputError(f"classes of contexts have a prior each; learn {CONTEXTS!r} too")
        if self.by not in (None, "kind") and not callable(self.by):
            raise InputError(
                f"the class {self.by!r} of relations is unknown; use 'kind' or a function"
            )

    def read(self, graph: FactGraph) -> FactGraph:
        """Graph used for learning, in which learned strengths are parameters.

        A learned probability may be on either side of 1/2, so that every relation needs a factor.
        A temperature is positive and keeps each probability on its side.
        """
        return graph.with_parameters() if PROBABILITY in self.parameters else graph

    def name_of_context(self, graph: FactGraph, context: Context) -> str:
        """Name of the weight of a context's prior; "" if it stays as stated.

        Raises:
            InputError: if a class function does not return a text.
        """
        if CONTEXTS not in self.parameters:
            return ""
        if self.contexts_by is None:
            return CONTEXTS
        class_name: object = self.contexts_by(graph, context)
        if not isinstance(class_name, str):
            raise InputError(
                f"fact graph {graph.id!r}: {class_name!r} is not a name of a class; return text"
            )
        return f"{CONTEXTS}[{class_name}]" if class_name else ""

    def name_of(self, graph: FactGraph, relation: Relation) -> str:
        """Name of the weight of a relation; "" if its probability stays as stated.

        Raises:
            InputError: if a class function does not return a non-empty text.
        """
        kind = next((name for name in (TEMPERATURE, PROBABILITY) if name in self.parameters), "")
        if not kind or (kind == TEMPERATURE and self.by is None):
            return kind
        class_name: object = relation.kind.value
        if callable(self.by):
            class_name = self.by(graph, relation)
            if not isinstance(class_name, str) or not class_name:
                raise InputError(
                    f"fact graph {graph.id!r}: {class_name!r} is not a name of a class; return "
                    "non-empty text"
                )
        return f"{kind}[{class_name}]"


@dataclass(frozen=True)
class Item:
    """A prior or the probability of a relation.

    Attributes:
        stated: the probability in the graph.
        weight: name of the weight that determines it; "" if it stays as stated.
        factor: log odds per unit of the weight.
    """

    stated: float
    weight: str = ""
    factor: float = 1.0


def items_of(potentials: Potentials, graph: FactGraph) -> tuple[list[Item], list[Item], list[int]]:
    """Priors of atoms and contexts, relations with a factor, and the indices of these relations.

    Raises:
        InputError: for a relation of probability 0 or 1 that has a temperature.
    """
    of_atoms = ATOMS if ATOMS in potentials.parameters else ""
    variables = [Item(atom.prior, of_atoms) for atom in graph.atoms]
    variables += [
        Item(context.prior, potentials.name_of_context(graph, context))
        for context in graph.contexts
    ]
    read = potentials.read(graph)
    numbers: list[int] = read.compiled_for(potentials.encoding).relation_numbers.tolist()
    relations = []
    for relation in (read.relations[number] for number in numbers):
        name = potentials.name_of(graph, relation)
        factor = stated_logit(graph, relation) if name.startswith(TEMPERATURE) else 1.0
        relations.append(Item(relation.probability, name, factor))
    return variables, relations, numbers


@dataclass(frozen=True)
class Weight:
    """A weight to learn.

    Attributes:
        name: name in tables, such as "atom_prior" or "probability[refute]".
        is_level: whether it is the log odds of a probability; tables then show the probability.
        start: initial value: 1, or the log odds of the mean stated probability.
        lower: lower bound of the search.
        upper: upper bound of the search.
    """

    name: str
    is_level: bool
    start: float
    lower: float
    upper: float

    def natural(self, value: float) -> float:
        """Convert a value to its scale in tables."""
        return float(sigmoid(np.array([value]))[0]) if self.is_level else value


def weights_of(potentials: Potentials, graphs: Sequence[FactGraph]) -> tuple[Weight, ...]:
    """Weights of potentials over some graphs; they do not depend on labels.

    Raises:
        InputError: if there are no weights, or a relation of probability 0 or 1 has a temperature.
    """
    items: dict[str, list[Item]] = {}
    for graph in graphs:
        variables, relations, _ = items_of(potentials, graph)
        for item in (*variables, *relations):
            if item.weight:
                items.setdefault(item.weight, []).append(item)
    if not items:
        raise InputError("the graphs contain nothing that the potentials learn; check both")
    return tuple(_weight(name, items[name]) for name in sorted(items))


def _weight(name: str, items: Sequence[Item]) -> Weight:
    if name.startswith(TEMPERATURE):
        farthest = max(1.0, *(abs(item.factor) for item in items))
        upper = max(MOST_LOG_ODDS / farthest, _MOST_TEMPERATURE)
        return Weight(name, False, 1.0, _LEAST_TEMPERATURE, upper)
    edge = float(sigmoid(np.array([-_MOST_LOGIT]))[0])
    mean = math.fsum(item.stated for item in items) / len(items)
    p = min(max(mean, edge), 1.0 - edge)
    return Weight(name, True, math.log(p) - math.log1p(-p), -_MOST_LOGIT, _MOST_LOGIT)


def apply(graph: FactGraph, potentials: Potentials, values: Mapping[str, float]) -> FactGraph:
    """Response with the priors and probabilities of relations under given weights.

    Args:
        graph: the response.
        potentials: specification of the weights.
        values: values of weights by name.

    Raises:
        InputError: if the response needs a weight that `values` lacks.
    """
    variables, moved, numbers = items_of(potentials, graph)
    graph = potentials.read(graph)

    def value(item: Item) -> float:
        if not item.weight:
            return item.stated
        if item.weight not in values:
            raise InputError(nothing_learned(graph, item.weight))
        odds = np.clip(item.factor * values[item.weight], -MOST_LOG_ODDS, MOST_LOG_ODDS)
        return float(sigmoid(odds[np.newaxis])[0])

    priors = [value(item) for item in variables]
    by_number = dict(zip(numbers, map(value, moved), strict=True))
    if min(by_number.values(), default=1.0) < LEAST_PROBABILITY:
        # Learned strengths keep their factors; relations without a factor in learning get none.
        stated = tuple(
            relation if number in by_number else evidence_or_neutral(relation)
            for number, relation in enumerate(graph.relations)
        )
        graph = replace(graph, relations=stated).with_parameters()
    relations = tuple(
        replace(relation, probability=by_number[number]) if number in by_number else relation
        for number, relation in enumerate(graph.relations)
    )
    n_atoms = len(graph.atoms)
    return replace(graph, relations=relations).with_priors(
        atoms=dict(zip(graph.atom_ids, priors[:n_atoms], strict=True)),
        contexts=dict(zip(graph.context_ids, priors[n_atoms:], strict=True)),
    )


def nothing_learned(graph: FactGraph, weight: str) -> str:
    """Error sentence for a weight that was not learned."""
    return (
        f"fact graph {graph.id!r} holds {weight!r}, for which nothing was learned; learn from data "
        "that hold it"
    )


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


def source_class(by: PassageKey, named: Collection[str]) -> ContextClass:
    """Return a function that names the source of a context, or `OTHERS` for all others.

    A context with a stated prior, other than the defaults of tools, has no class.

    Args:
        by: how the source of a context is identified.
        named: sources with a separate class.
    """

    def name(graph: FactGraph, context: Context) -> str:
        if not has_default_prior(context):
            return ""
        source = passage_source(context, graph, by)
        return source if source in named else OTHERS

    return name


def kind_class(graph: FactGraph, relation: Relation) -> str:
    """Return the kind of a relation, preceded by the kind of its context: "sample entailment".

    With this function as `Potentials.by`, relations of passages and of sampled answers have
    separate strengths. For a relation between two claims, return its kind alone.
    """
    ends = {relation.source, relation.target}
    if not ends.isdisjoint(graph.sample_ids):
        return f"{ContextKind.SAMPLE} {relation.kind}"
    between_claims = ends <= set(graph.atom_ids)
    return str(relation.kind) if between_claims else f"{ContextKind.PASSAGE} {relation.kind}"


def stance_class(mapping: StanceMapping = DEFAULT_STANCES) -> RelationClass:
    """Return a function that names the stance behind a relation of Factcheck-Bench.

    Args:
        mapping: relation of every stance, as used to make the graphs; all relations must differ.

    Raises:
        InputError: if two stances have the same relation and cannot be distinguished.
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
