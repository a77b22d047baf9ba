"""Fact graphs: the atoms, contexts and relations of a response, and its factor graph."""

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
    ContextKind,
    Relation,
    RelationKind,
    likeliest_kind,
)
from factormodels.compile import RELATION_COLUMNS, CompiledFacts, FactColumns, compile_each
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
"""Key of `FactGraph.metadata`, set to True by `FactGraph.with_parameters`."""

Item = TypeVar("Item", Atom, Context)

Columns = Mapping[str, Sequence[Any]]
"""Columns of claims or relations: a sequence of values for each field, by name."""


@dataclass(frozen=True, repr=False)
class FactGraph(Previewed):
    """The typed graph of a response: atoms, contexts and relations, in a fixed order.

    A graph is stored in columns, one sequence of values for each field of its atoms, contexts and
    relations. `Atom`, `Context` and `Relation` objects are made at first access, since many graphs
    are only written, sent or compiled.

    Attributes:
        id: name of the response, unique in its dataset.
        atoms: the claims of the response.
        contexts: the passages of evidence.
        relations: predicted relations between any two atoms or contexts.
        query: the question that was asked.
        response: the full text of the response.
        topic: topic of the response.
        metadata: further facts about the response, JSON values by name.

    Raises:
        InputError: if ids repeat, a relation or a provenance refers to an unknown id, or two
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
        # Graphs are sent to worker processes. Columns of plain values pickle several times as fast
        # as objects, and need no second validation.
        texts = (self.query, self.response, self.topic, dict(self.metadata))
        return _restored, (type(self), self.id, *map(self._stated_columns, _PARTS), *texts)

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
        """Return a graph of parts that are valid by construction, without checks.

        Args:
            id: name of the response.
            atoms: fields of the atoms by name, each with a value for every atom; missing fields
                have their defaults.
            contexts: fields of the contexts.
            relations: fields of the relations; `kind` must hold `RelationKind` members.
            query: the question that was asked.
            response: the full text of the response.
            topic: topic of the response.
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
        """Return a field of every atom, context or relation, in order, without making objects.

        Args:
            part: "atoms", "contexts" or "relations".
            name: name of the field.
        """
        columns: Columns = self.__dict__["_columns"][part]
        values = columns.get(name)
        return [_DEFAULTS[_PARTS[part]][name]] * _length(columns) if values is None else values

    def stated(self, part: str, name: str) -> Sequence[Any]:
        """Return `column`, or an empty sequence if no atom, context or relation states the
        field."""
        values: Sequence[Any] = self.__dict__["_columns"][part].get(name, ())
        return values

    def _stated_columns(self, part: str) -> dict[str, Sequence[Any]]:
        """Return the columns of a part with values that differ from the default."""
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
    def sample_ids(self) -> frozenset[str]:
        """Ids of the contexts that are sampled answers."""
        kinds = self.column("contexts", "kind")
        if ContextKind.SAMPLE not in kinds:
            return frozenset()
        return frozenset(
            name
            for name, kind in zip(self.context_ids, kinds, strict=True)
            if kind is ContextKind.SAMPLE
        )

    @cached_property
    def compiled(self) -> CompiledFacts:
        """This graph as arrays, from which factor graphs under many settings are made.

        Neutral and improbable relations are left out; `compiled_for` returns the relations that an
        encoding reads.
        """
        return self._compile(DEFAULT_ENCODING)

    def compiled_for(self, encoding: str) -> CompiledFacts:
        """Return this graph as arrays with the relations that an encoding reads."""
        return self._compiled_with_neutral if encoding == MIXTURE else self.compiled

    @cached_property
    def _compiled_with_neutral(self) -> CompiledFacts:
        return self._compile(MIXTURE) if self.compiled.n_left_out else self.compiled

    def _compile(self, encoding: str) -> CompiledFacts:
        (compiled,) = compile_each([self._fact_columns()], encoding)
        return compiled

    def _fact_columns(self) -> FactColumns:
        return FactColumns(
            self.atom_ids,
            self.context_ids,
            [*self.column("atoms", "prior"), *self.column("contexts", "prior")],
            [self.column("relations", name) for name in RELATION_COLUMNS],
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
        """Return the number of relations without effect because no kind is probable enough.

        These are relations less probable than 1/2, and neutral ones whose most probable kind is
        entailment or contradiction with a probability below 1/2. The encoding *mixture* reads all
        of them.
        """
        return sum(p < self._least for p in self._silent(encoding))

    def n_neutral_beside_likelier(self, encoding: str = DEFAULT_ENCODING) -> int:
        """Return the number of neutral relations in whose distribution another kind is probable
        enough.

        Their author applied a different rule, such as a threshold above 1/2. The encoding *mixture*
        reads their distributions.
        """
        return sum(p >= self._least for p in self._silent(encoding))

    def _silent(self, encoding: str) -> Iterator[float]:
        """Yield the probabilities of informative relations that have no factor.

        Each is the probability of the relation, or of the most probable kind in the distribution of
        a neutral relation.
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
        """Return this graph with its relations' probabilities declared as parameters of a model.

        Parameters are learned from labels, or are the values that synthetic data were drawn with.
        They are not statements about a pair: each relation has its table, even with a probability
        below 1/2.
        """
        return replace(self, metadata={**self.metadata, PARAMETERS_KEY: True})

    def with_priors(
        self,
        *,
        atoms: float | Mapping[str, float] | None = None,
        contexts: float | Mapping[str, float] | None = None,
    ) -> FactGraph:
        """Return this graph with other priors.

        Args:
            atoms: one prior for all atoms, or priors by id of atom (other atoms keep theirs).
            contexts: the same for contexts.

        Raises:
            InputError: for an unknown id or a prior outside [0, 1].
        """
        return replace(
            self,
            atoms=_with_priors(self.atoms, atoms, "atom"),
            contexts=_with_priors(self.contexts, contexts, "context"),
        )

    def derived(self, contexts: tuple[Context, ...], relations: tuple[Relation, ...]) -> FactGraph:
        """Return this graph with a subset of its contexts and valid relations between the remaining
        ids.

        If nothing changes, return this graph itself, with its cached results.
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
        """Return the factor graph over one true/false variable per atom and context.

        Variables are the atoms, then the contexts, in order; state 1 is true. Factors are the
        priors in that order, then one table over (source, target) per relation that is neither
        neutral nor less probable than 1/2 (under *mixture*, per informative relation).

        Args:
            encoding: name of the encoding of relations; see `factormodels.encodings`.

        Raises:
            InputError: if the encoding is unknown.
        """
        return self.compiled_for(encoding).to_factor_graph(encoding=encoding)

    def to_frame(self) -> pd.DataFrame:
        """Return the atoms, then the contexts, as rows of id, kind, prior, label and text.

        `factormodels.interchange.to_frames` returns every field, and the relations.
        """
        import pandas as pd

        frame = pd.DataFrame(self._rows(None), columns=_COLUMNS)
        return frame.astype({"prior": float, "label": "boolean"})

    def preview(self, most: int) -> Preview:
        """Return the heading of this graph and its first atoms and contexts."""
        labels = self.column("atoms", "label")
        n_contexts, n_relations = len(self.context_ids), len(self.column("relations", "kind"))
        heading = (
            f"FactGraph {self.id!r}: {counted(len(labels), 'atom')} "
            f"({sum(label is not None for label in labels):,} labeled), "
            f"{counted(n_contexts, 'context')}, {counted(n_relations, 'relation')}"
        )
        rows = [
            (name, kind, f"{prior:g}", "" if label is None else str(label), text)
            for name, kind, prior, label, text in self._rows(most)
        ]
        return Preview(heading, _COLUMNS, rows, len(labels) + n_contexts)

    def _rows(self, most: int | None) -> list[tuple[str, str, float, bool | None, str]]:
        """Return rows of `_COLUMNS` for the first atoms and contexts, or of all (None)."""
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


def compiled_each(graphs: Sequence[FactGraph], encoding: str) -> list[CompiledFacts]:
    """Return `FactGraph.compiled_for` of each graph; new ones are compiled in one step."""
    new = [graph for graph in graphs if "compiled" not in vars(graph)]
    made = compile_each([graph._fact_columns() for graph in new], DEFAULT_ENCODING)
    for graph, compiled in zip(new, made, strict=True):
        graph.__dict__["compiled"] = compiled
    return [graph.compiled_for(encoding) for graph in graphs]


_COLUMNS = ("id", "kind", "prior", "label", "text")


def _defaults(cls: type[Any]) -> dict[str, Any]:
    return {declared.name: declared.default for declared in fields(cls)}


_DEFAULTS: Mapping[type[Any], Mapping[str, Any]] = MappingProxyType(
    {cls: MappingProxyType(_defaults(cls)) for cls in (Atom, Context, Relation)}
)

_SETTERS: Mapping[type[Any], Mapping[str, Callable[[Any, Any], None]]] = MappingProxyType(
    {
        # The setters of the slots, which bypass the frozen dataclass.
        cls: MappingProxyType({name: getattr(cls, name).__set__ for name in defaults})
        for cls, defaults in _DEFAULTS.items()
    }
)


_PARTS: Mapping[str, type[Any]] = MappingProxyType(
    {"atoms": Atom, "contexts": Context, "relations": Relation}
)


class _PartOfColumns:
    """Descriptor that makes claims or relations from columns at first access and caches them."""

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
    """Return a column for every field of claims or relations."""
    return {name: list(map(attrgetter(name), items)) for name in _DEFAULTS[cls]}


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def _of_columns(cls: type[Any], columns: Columns) -> tuple[Any, ...]:
    """Return claims or relations from columns of their fields."""
    n = _length(columns)
    items = tuple(map(object.__new__, repeat(cls, n)))
    for name, set_field in _SETTERS[cls].items():
        values = columns[name] if name in columns else repeat(_DEFAULTS[cls][name], n)
        # A deque of length 0 consumes the map without a Python loop.
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
    """Restore a pickled graph."""
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
