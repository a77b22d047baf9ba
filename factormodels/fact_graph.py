"""FactGraph: the atoms, contexts and relations of one response, and its factor graph."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, islice, repeat
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

    A graph is columns: the fields of its atoms, contexts and relations, each with a value for every
    one of them. Claims and relations are made of the columns when they are first asked for: many a
    graph is only written, sent or compiled.

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
        parts = {part: tuple(getattr(self, part)) for part in _PARTS}
        self.__dict__.update(
            parts,
            metadata=MappingProxyType(dict(self.metadata)),
            _columns={part: _columns_of(_PARTS[part], items) for part, items in parts.items()},
        )
        _validate(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Worker processes need graphs; as columns of plain values these travel several times as
        # fast as one by one, and what was validated here is not validated there again.
        texts = (self.query, self.response, self.topic, dict(self.metadata))
        return _restored, (type(self), self.id, *map(self._told_columns, _PARTS), *texts)

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
        """A field of every atom, context or relation, in order; no claim or relation is made.

        Args:
            part: "atoms", "contexts" or "relations".
            name: name of the field.
        """
        columns: Columns = self.__dict__["_columns"][part]
        values = columns.get(name)
        return [_DEFAULTS[_PARTS[part]][name]] * _length(columns) if values is None else values

    def _told_columns(self, part: str) -> dict[str, Sequence[Any]]:
        """The columns of a part but those that hold nothing but the default."""
        columns: Columns = self.__dict__["_columns"][part]
        defaults = _DEFAULTS[_PARTS[part]]
        return {
            name: column
            for name, column in columns.items()
            if column.count(defaults[name]) < len(column)
        }

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
        graph.__dict__.update(
            contexts=contexts,
            relations=relations,
            _columns={
                "atoms": self.__dict__["_columns"]["atoms"],
                "contexts": _columns_of(Context, contexts),
                "relations": _columns_of(Relation, relations),
            },
        )
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

        frame = pd.DataFrame(self._rows(None), columns=_COLUMNS)
        return frame.astype({"prior": float, "label": "boolean"})

    def preview(self, most: int) -> Preview:
        """The heading of this graph and the first of its atoms and contexts."""
        labels = self.column("atoms", "label")
        n_contexts, n_relations = len(self.context_ids), len(self.column("relations", "kind"))
        heading = (
            f"FactGraph {self.id!r}: {counted(len(labels), 'atom')} "
            f"({sum(label is not None for label in labels):,} labelled), "
            f"{counted(n_contexts, 'context')}, {counted(n_relations, 'relation')}"
        )
        rows = [
            (name, kind, f"{prior:g}", "" if label is None else str(label), text)
            for name, kind, prior, label, text in self._rows(most)
        ]
        return Preview(heading, _COLUMNS, rows, len(labels) + n_contexts)

    def _rows(self, most: int | None) -> list[tuple[str, str, float, bool | None, str]]:
        """The first atoms and contexts, as `_COLUMNS` names what is of each; None: all."""
        of_atoms = (self.column("atoms", name) for name in ("id", "prior", "label", "text"))
        of_contexts = (self.column("contexts", name) for name in ("id", "prior", "text", "title"))
        rows = chain(
            (
                (name, "atom", prior, label, text)
                for name, prior, label, text in zip(*of_atoms, strict=True)
            ),
            (
                (name, "context", prior, None, text or title)
                for name, prior, text, title in zip(*of_contexts, strict=True)
            ),
        )
        return list(islice(rows, most))


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
    """The claims or relations of a graph, made of its columns and kept at the first access."""

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


def _columns_of(cls: type[Any], items: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """A column for every field of claims or relations."""
    return {name: list(map(attrgetter(name), items)) for name in _DEFAULTS[cls]}


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
    atoms = set(graph.atom_ids)
    known: set[str] = set()
    for name in graph.atom_ids + graph.context_ids:
        if name in known:
            raise InputError(f"{where}: the id {name!r} is given twice; ids are unique")
        known.add(name)
    retrieved_for = graph.column("contexts", "retrieved_for")
    for context, owners in zip(graph.context_ids, retrieved_for, strict=True):
        for atom in owners:
            if atom not in atoms:
                raise InputError(
                    f"{where}: context {context!r} was retrieved for {atom!r}, "
                    "which is not an atom of this graph; add the atom or drop the reference"
                )
    pairs = zip(*(graph.column("relations", end) for end in ("source", "target")), strict=True)
    joined: set[tuple[str, str]] = set()
    for source, target in pairs:
        for end in (source, target):
            if end not in known:
                raise InputError(
                    f"{where}: the relation {source!r} -> {target!r} refers to "
                    f"{end!r}, which is neither an atom nor a context; add it or drop the relation"
                )
        if (source, target) in joined:
            raise InputError(f"{where}: two relations join {source!r} -> {target!r}; keep one")
        joined.add((source, target))
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
