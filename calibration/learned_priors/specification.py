"""What is learned and what stays: priors of atoms and contexts, reliability of relations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from factormodels.claims import Relation
from factormodels.encodings import DEFAULT_ENCODING, get_encoding
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.published.stances import DEFAULT_STANCES, StanceMapping
from factormodels.validation import validated_probability

Group = Callable[[FactGraph], str]
"""Names the group (topic, dataset, ...) of a response, which has values of its own."""

RelationClass = Callable[[FactGraph, Relation], str]
"""Names the class of a relation, which has a value of its own."""

KindOrClass = RelationClass | Literal["kind"]
"""The kind of a relation, or a function that names its class."""


@dataclass(frozen=True)
class Free:
    """A prior that is learned.

    Attributes:
        start: where the search starts, in (0, 1); None: the mean of the priors that the graphs
            state.
        per: names the group of a response; groups have values of their own. None: one value.
    """

    start: float | None = None
    per: Group | None = None

    def __post_init__(self) -> None:
        if self.start is not None:
            _inside(self.start, "the start of a free prior")


@dataclass(frozen=True)
class Temperature:
    """Relations are trusted more or less than stated: p' = sigmoid(b logit p), b > 0 learned.

    With b = 1 a relation keeps its probability; below 1 it moves towards 1/2.

    Attributes:
        by: "kind" (each kind of relation has its own b), a function that names a relation's
            class, or None for one b.
        per: names the group of a response, as in `Free`.
        fixed: b of classes that are not learned, by class ("" where `by` is None).
        start: where the search starts.
    """

    by: KindOrClass | None = None
    per: Group | None = None
    fixed: Mapping[str, float] = field(default_factory=dict)
    start: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed", MappingProxyType(dict(self.fixed)))
        _check_class(self.by)
        for value, what in ((self.start, "the start"), *_named(self.fixed)):
            if not 0.0 < value < math.inf:
                raise InputError(f"{what} of a temperature is {value!r}; give a number above 0")


@dataclass(frozen=True)
class ClassProbability:
    """Relations of one class have one probability, learned in place of what is stated.

    Attributes:
        by: "kind", or a function that names a relation's class, such as `stance_class`.
        per: names the group of a response, as in `Free`.
        fixed: probabilities of classes that are not learned, by class.
        start: where the search starts, by class; else the mean of the stated probabilities.
    """

    by: KindOrClass = "kind"
    per: Group | None = None
    fixed: Mapping[str, float] = field(default_factory=dict)
    start: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed", MappingProxyType(dict(self.fixed)))
        object.__setattr__(self, "start", MappingProxyType(dict(self.start)))
        _check_class(self.by)
        for value, what in _named(self.fixed):
            validated_probability(value, what)
        for value, what in _named(self.start):
            _inside(value, what)


@dataclass(frozen=True)
class Specification:
    """Which numbers of the model are learned, which are set, and which stay as stated.

    Attributes:
        atom_prior: `Free` to learn it, a number to set it, None to leave what each atom states.
        context_prior: the same for contexts.
        relations: `Temperature` or `ClassProbability` to learn how far relations are trusted, None
            to leave what each relation states. Relations without a factor, as neutral ones are but
            under *mixture*, have no part.
        encoding: name of the encoding of relations, to which the learned numbers belong.
    """

    atom_prior: Free | float | None = field(default_factory=Free)
    context_prior: Free | float | None = None
    relations: Temperature | ClassProbability | None = field(default_factory=Temperature)
    encoding: str = DEFAULT_ENCODING

    def __post_init__(self) -> None:
        get_encoding(self.encoding)
        for prior, what in ((self.atom_prior, "atom_prior"), (self.context_prior, "context_prior")):
            if prior is not None and not isinstance(prior, Free):
                validated_probability(prior, what)


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


def group_of(per: Group | None, graph: FactGraph) -> str:
    """Group of a response, "" where there is one for all."""
    return "" if per is None else _text(per(graph), graph, "group")


def _text(name: object, graph: FactGraph, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(
            f"fact graph {graph.id!r}: {name!r} is not a name of a {what}; return non-empty text"
        )
    return name


def _check_class(by: object) -> None:
    if not (by is None or by == "kind" or callable(by)):
        raise InputError(f"the class {by!r} of relations is unknown; use 'kind' or a function")


def _named(values: Mapping[str, float]) -> list[tuple[float, str]]:
    return [(value, f"class {name!r}") for name, value in values.items()]


def _inside(value: float, what: str) -> None:
    if not 0.0 < validated_probability(value, what) < 1.0:
        raise InputError(f"{what} is {value}; give a probability strictly between 0 and 1")
