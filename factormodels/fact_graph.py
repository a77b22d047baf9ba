"""FactGraph: the atoms, contexts and relations of one response, and its factor graph."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from factormodels.claims import (
    LEAST_PROBABILITY,
    Atom,
    Context,
    Relation,
    RelationKind,
    likeliest_kind,
)
from factormodels.compile import RELATION_COLUMNS, CompiledFacts, compile_columns
from factormodels.encodings import DEFAULT_ENCODING, MIXTURE
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.nouns import counted
from factormodels.object_repr import Preview, Previewed
from factormodels.validation import validated_id

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

PARAMETERS_KEY = "relation_probabilities_are_parameters"
"""Key of `FactGraph.metadata`; True: see `FactGraph.with_parameters`."""

Item = TypeVar("Item", Atom, Context)

Columns = Mapping[str, Sequence[Any]]
"""Fields of claims or relations by name, each with a value for every one of them."""


@dataclass(frozen=True, repr=False)
class FactGraph(Previewed):
    """The typed graph of one response: atoms, contexts and relations, in a fixed order.

    Attributes:
        id: name of the response, unique in its dataset.
        atoms: the claims of the response.
        contexts: the passages of evidence.
        relations: predicted relations between any two of them.
        query: the question that was asked.
        response: the whole response text.
        topic: what it is about.
        metadata: further facts about the response, JSON values by name.

    Raises:
        InputError: if ids repeat, a relation or a provenance names what does not exist, or two
            relations join the same ordered pair.
    """

    id: str
    atoms: tuple[Atom, ...]
    contexts: tuple[Context, ...] = ()
    relations: tuple[Relation, ...] = ()
    query: str = ""
    response: str = ""
    topic: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("atoms", "contexts", "relations"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))
        _validate(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Worker processes need graphs; as columns of plain values these travel several times as
        # fast as one by one, and what was validated here is not validated there again.
        by_part: Mapping[str, Columns] = self.__dict__.get("_columns") or {
            part: {name: self.column(part, name) for name in _DEFAULTS[cls]}
            for part, cls in _PARTS.items()
        }
        columns = (_told(cls, by_part[part]) for part, cls in _PARTS.items())
        texts = (self.query, self.response, self.topic, dict(self.metadata))
        return _restored, (type(self), self.id, *columns, *texts)

    @classmethod
    def unchecked(
        cls,
        id: str,
        atoms: Columns,
        contexts: Columns,
        relations: Columns,
        query: str = "",
        response: str = "",
        topic: str = "",
        metadata: Mapping[str, Any] = MappingProxyType({}),
    ) -> FactGraph:
        """A graph of parts that are valid by construction, which nothing here checks.

        Args:
            id: name of the response.
            atoms: the fields of its atoms by name, a value for each of them; fields that are left
                out have their defaults.
            contexts: those of its contexts.
            relations: those of its relations, in which `kind` is a `RelationKind`.
            query: the question that was asked.
            response: the whole response text.
            topic: what it is about.
            metadata: further facts about the response.
        """
        graph = object.__new__(cls)
        # Its claims and relations are made of the columns when they are first asked for (see
        # `_PartOfColumns`): many a graph is only written, sent or compiled.
        graph.__dict__.update(
            id=id,
            _columns={"atoms": atoms, "contexts": contexts, "relations": relations},
            query=query,
            response=response,
            topic=topic,
            metadata=MappingProxyType(dict(metadata)),
        )
        return graph

    def column(self, part: str, name: str) -> Sequence[Any]:
        """A field of every atom, context or relation, in order.

        Of a graph that is made of columns, this makes no claims or relations of them.

        Args:
            part: "atoms", "contexts" or "relations".
            name: name of the field.
        """
        columns = self.__dict__.get("_columns")
        if columns is None:
            return list(map(attrgetter(name), getattr(self, part)))
        part_columns: Columns = columns[part]
        values = part_columns.get(name)
        return [_DEFAULTS[_PARTS[part]][name]] * _length(part_columns) if values is None else values

    @cached_property
    def atom_ids(self) -> tuple[str, ...]:
        """Ids of the atoms, in order."""
        return tuple(self.column("atoms", "id"))

    @cached_property
    def context_ids(self) -> tuple[str, ...]:
        """Ids of the contexts, in order."""
        return tuple(self.column("contexts", "id"))

    @cached_property
    def compiled(self) -> CompiledFacts:
        """This graph as arrays, from which factor graphs of many settings are made.

        Neutral and improbable relations are left out; `compiled_for` has those that an encoding
        reads.
        """
        return self._compile(DEFAULT_ENCODING)

    def compiled_for(self, encoding: str) -> CompiledFacts:
        """This graph as arrays with the relations that an encoding reads."""
        return self._compiled_with_neutral if encoding == MIXTURE else self.compiled

    @cached_property
    def _compiled_with_neutral(self) -> CompiledFacts:
        return self._compile(MIXTURE) if self.compiled.n_left_out else self.compiled

    def _compile(self, encoding: str) -> CompiledFacts:
        priors = [*self.column("atoms", "prior"), *self.column("contexts", "prior")]
        relations = {name: self.column("relations", name) for name in RELATION_COLUMNS}
        return compile_columns(
            self.atom_ids,
            self.context_ids,
            priors,
            relations,
            encoding,
            least=self._least,
            statements=not self._has_parameters,
        )

    @property
    def _has_parameters(self) -> bool:
        return self.metadata.get(PARAMETERS_KEY) is True

    @property
    def _least(self) -> float:
        """Least probability of a relation that has a factor."""
        return 0.0 if self._has_parameters else LEAST_PROBABILITY

    def n_too_improbable(self, encoding: str = DEFAULT_ENCODING) -> int:
        """Number of relations that say nothing because no kind is probable enough.

        Those less probable than 1/2, and neutral ones in whose distribution an entailment or a
        contradiction is the likeliest kind, and less probable than that. The encoding *mixture*
        reads all of them.
        """
        return sum(p < self._least for p in self._silent(encoding))

    def n_neutral_beside_likelier(self, encoding: str = DEFAULT_ENCODING) -> int:
        """Number of neutral relations in whose distribution another kind is probable enough.

        Whoever made them neutral had another rule, such as a threshold above 1/2. The encoding
        *mixture* reads their distributions.
        """
        return sum(p >= self._least for p in self._silent(encoding))

    def _silent(self, encoding: str) -> Iterator[float]:
        """Yield probabilities of relations without a factor that say something.

        Each is that of the relation, or of the likeliest kind in the distribution of a neutral one.
        """
        if encoding == MIXTURE:
            return
        columns = (self.column("relations", name) for name in ("kind", "probability"))
        shares = self.column("relations", "distribution")
        for stated, p, distribution in zip(*columns, shares, strict=True):
            if stated is not RelationKind.NEUTRAL:
                if p < self._least:
                    yield p
            elif distribution is not None:
                likeliest, share = likeliest_kind(
                    distribution[0] + distribution[2], distribution[1], distribution[3]
                )
                if likeliest is not RelationKind.NEUTRAL:
                    yield share

    def with_parameters(self) -> FactGraph:
        """This graph, its relations' probabilities declared to be parameters of a model.

        Parameters are learned from labels, or are what synthetic data were drawn with. They are no
        statements about a pair: each relation has its table, even with a probability below 1/2.
        """
        return replace(self, metadata={**self.metadata, PARAMETERS_KEY: True})

    def with_priors(
        self,
        *,
        atoms: float | Mapping[str, float] | None = None,
        contexts: float | Mapping[str, float] | None = None,
    ) -> FactGraph:
        """This graph with other priors.

        Args:
            atoms: one prior for all atoms, or priors by id of atom (others keep theirs).
            contexts: the same for contexts.

        Raises:
            InputError: for an id that does not exist or a prior outside [0, 1].
        """
        return replace(
            self,
            atoms=_with_priors(self.atoms, atoms, "atom"),
            contexts=_with_priors(self.contexts, contexts, "context"),
        )

    def derived(self, contexts: tuple[Context, ...], relations: tuple[Relation, ...]) -> FactGraph:
        """This graph with some of its contexts, and valid relations between what is left.

        Where nothing changes, it is this graph itself, with everything already worked out about it.
        """
        if contexts == self.contexts and relations == self.relations:
            return self
        graph = object.__new__(type(self))
        graph.__dict__.update({field.name: getattr(self, field.name) for field in fields(self)})
        graph.__dict__.update(contexts=contexts, relations=relations)
        return graph

    def to_factor_graph(self, encoding: str = DEFAULT_ENCODING) -> FactorGraph:
        """Factor graph over one true/false variable per atom and context.

        Variables are the atoms, then the contexts, in order; state 1 is true. Factors are the
        priors in that order, then one table per relation that is neither neutral nor less probable
        than 1/2 (under *mixture* each that says something), over (source, target).

        Args:
            encoding: name of the encoding of relations; see `factormodels.encodings`.

        Raises:
            InputError: if the encoding is unknown.
        """
        return self.compiled_for(encoding).to_factor_graph(encoding=encoding)

    def to_frame(self) -> pd.DataFrame:
        """The atoms, then the contexts, a row each: id, kind, prior, label and text.

        `factormodels.interchange.to_frames` gives every field, and the relations.
        """
        import pandas as pd

        frame = pd.DataFrame(self._rows(len(self.atoms) + len(self.contexts)), columns=_COLUMNS)
        return frame.astype({"prior": float, "label": "boolean"})

    def preview(self, most: int) -> Preview:
        """The heading of this graph and the first of its atoms and contexts."""
        labelled = sum(atom.label is not None for atom in self.atoms)
        heading = (
            f"FactGraph {self.id!r}: {counted(len(self.atoms), 'atom')} ({labelled:,} labelled), "
            f"{counted(len(self.contexts), 'context')}, "
            f"{counted(len(self.relations), 'relation')}"
        )
        rows = [
            (name, kind, f"{prior:g}", "" if label is None else str(label), text)
            for name, kind, prior, label, text in self._rows(most)
        ]
        return Preview(heading, _COLUMNS, rows, len(self.atoms) + len(self.contexts))

    def _rows(self, most: int) -> list[tuple[str, str, float, bool | None, str]]:
        atoms = [(a.id, "atom", a.prior, a.label, a.text) for a in self.atoms[:most]]
        contexts = self.contexts[: most - len(atoms)]
        return [*atoms, *((c.id, "context", c.prior, None, c.text or c.title) for c in contexts)]


_COLUMNS = ("id", "kind", "prior", "label", "text")


def _defaults(cls: type[Any]) -> dict[str, Any]:
    return {declared.name: declared.default for declared in fields(cls)}


_DEFAULTS: Mapping[type[Any], Mapping[str, Any]] = MappingProxyType(
    {cls: MappingProxyType(_defaults(cls)) for cls in (Atom, Context, Relation)}
)

_SETTERS: Mapping[type[Any], Mapping[str, Callable[[Any, Any], None]]] = MappingProxyType(
    {
        # Those of the slots, which know nothing of the dataclass being frozen.
        cls: MappingProxyType({name: getattr(cls, name).__set__ for name in defaults})
        for cls, defaults in _DEFAULTS.items()
    }
)


_PARTS: Mapping[str, type[Any]] = MappingProxyType(
    {"atoms": Atom, "contexts": Context, "relations": Relation}
)


class _PartOfColumns:
    """The claims or relations of a graph of columns, made of these and kept at the first access.

    Graphs that are made of claims and relations have them as attributes of their own, which Python
    finds first.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, graph: FactGraph | None, owner: type[FactGraph] | None = None) -> Any:
        if graph is None:
            return self
        made = _of_columns(_PARTS[self._name], graph.__dict__["_columns"][self._name])
        graph.__dict__[self._name] = made
        return made


for _name in _PARTS:
    setattr(FactGraph, _name, _PartOfColumns(_name))


def _told(cls: type[Any], columns: Columns) -> dict[str, Sequence[Any]]:
    """The columns of claims or relations but those that hold nothing but the default."""
    return {
        name: column
        for name, column in columns.items()
        if column.count(_DEFAULTS[cls][name]) < len(column)
    }


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def _of_columns(cls: type[Any], columns: Columns) -> tuple[Any, ...]:
    """Claims or relations of which each column holds a field."""
    n = _length(columns)
    items = tuple(map(object.__new__, repeat(cls, n)))
    for name, set_field in _SETTERS[cls].items():
        values = columns[name] if name in columns else repeat(_DEFAULTS[cls][name], n)
        # A deque without room runs through a map without a loop of Python's.
        deque(map(set_field, items, values), maxlen=0)
    return items


def _restored(
    cls: type[FactGraph],
    id: str,
    atoms: Columns,
    contexts: Columns,
    relations: Columns,
    query: str,
    response: str,
    topic: str,
    metadata: dict[str, Any],
) -> FactGraph:
    """The graph that was pickled."""
    return cls.unchecked(id, atoms, contexts, relations, query, response, topic, metadata)


def _with_priors(
    items: tuple[Item, ...], priors: float | Mapping[str, float] | None, what: str
) -> tuple[Item, ...]:
    if priors is None:
        return items
    if not isinstance(priors, Mapping):
        return tuple(replace(item, prior=priors) for item in items)
    unknown = set(priors) - {item.id for item in items}
    if unknown:
        raise InputError(
            f"a prior is given for the {what} {min(unknown)!r}, which does not exist; "
            "give it to one of the graph or leave it out"
        )
    return tuple(replace(item, prior=priors.get(item.id, item.prior)) for item in items)


def _validate(graph: FactGraph) -> None:
    validated_id(graph.id, "a fact graph")
    where = f"fact graph {graph.id!r}"
    atoms = {atom.id for atom in graph.atoms}
    known: set[str] = set()
    for name in graph.atom_ids + graph.context_ids:
        if name in known:
            raise InputError(f"{where}: the id {name!r} is given twice; ids are unique")
        known.add(name)
    for context in graph.contexts:
        for atom in context.retrieved_for:
            if atom not in atoms:
                raise InputError(
                    f"{where}: context {context.id!r} was retrieved for {atom!r}, "
                    "which is not an atom of this graph; add the atom or drop the reference"
                )
    joined: set[tuple[str, str]] = set()
    for relation in graph.relations:
        for end in (relation.source, relation.target):
            if end not in known:
                raise InputError(
                    f"{where}: the relation {relation.source!r} -> {relation.target!r} refers to "
                    f"{end!r}, which is neither an atom nor a context; add it or drop the relation"
                )
        pair = (relation.source, relation.target)
        if pair in joined:
            raise InputError(f"{where}: two relations join {pair[0]!r} -> {pair[1]!r}; keep one")
        joined.add(pair)
    _report_improbable_relations(graph, where)


def _report_improbable_relations(graph: FactGraph, where: str) -> None:
    # Not a warning: every view and copy of a graph is validated anew and would repeat it.
    improbable = graph.n_too_improbable()
    if improbable:
        logger.info(
            "%s: %s less probable than %g, neutral under every encoding but mixture",
            where,
            counted(improbable, "relation"),
            LEAST_PROBABILITY,
        )
