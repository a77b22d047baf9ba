"""Fact graphs as arrays, compiled once for any priors, probabilities and encoding.

    facts = fact_graph.compiled
    facts.to_factor_graph(probabilities=0.9 * facts.probabilities, encoding="conditional")

Variables are the atoms, then the contexts; state 1 is true. Factors are their priors in that order,
then one table over (source, target) for each relation that is evidence
(`factormodels.claims.is_evidence`). Settings change numbers only: their factor graphs share the
arrays of the structure. The encoding *mixture* has a different structure, because it also reads
improbable relations and neutral ones with an informative distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.arrays import frozen
from factormodels.claims import LEAST_PROBABILITY
from factormodels.encodings import (
    ALL_CODES,
    CONDITIONAL,
    DEFAULT_ENCODING,
    MIXTURE,
    NEUTRAL_CODE,
    entries_of,
    holds_prior,
    kind_codes,
    mixture_tables,
    overruled,
    rest_of,
)
from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph, positions
from factormodels.nouns import counted
from factormodels.validation import check_probabilities

RELATION_COLUMNS = ("source", "target", "kind", "probability", "distribution")
"""Fields of relations that determine factors."""


@dataclass(frozen=True, eq=False)
class CompiledFacts:
    """The n claims and passages of fact graphs and the m relations between them, as read-only
    arrays.

    Attributes:
        names: ids of the n atoms and contexts, one variable each.
        is_atom: bool (n,), whether each is an atom.
        priors: float64 (n,), stated prior probability that each is true.
        pairs: int64 (m, 2), positions of the source and the target of each relation.
        kinds: int64 (m,), kinds of relations as numbers of `factormodels.encodings.KIND_CODES`, or
            `NEUTRAL_CODE`.
        probabilities: float64 (m,), stated probabilities of relations.
        relation_numbers: int64 (m,), position of each relation among all relations of its fact
            graph, including those without a factor.
        rest: float64 (m, 2), direction of each relation if it is of another kind, as returned by
            `factormodels.encodings.rest_of`; zeros by default.
        statements: bool (m,), whether each relation is a statement on a claim, against which no
            posterior moves, rather than a parameter of a model; False by default.
        n_left_out: number of relations that *mixture* reads and that are left out here.

    Raises:
        InputError: if arrays differ in length, a name is given twice, a relation does not join two
            of the variables, a kind is invalid, or a probability is outside [0, 1].
    """

    names: tuple[str, ...]
    is_atom: NDArray[np.bool_]
    priors: NDArray[np.float64]
    pairs: NDArray[np.int64]
    kinds: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    relation_numbers: NDArray[np.int64]
    rest: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))
    statements: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    n_left_out: int = 0

    def __post_init__(self) -> None:
        if not len(self.rest):
            object.__setattr__(self, "rest", np.zeros((len(self.kinds), 2)))
        if not len(self.statements):
            object.__setattr__(self, "statements", np.zeros(len(self.kinds), dtype=np.bool_))
        for name, dtype in _ARRAYS.items():
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        _validate(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickling drops the read-only flag of arrays.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def n_entries(self) -> int:
        """Length of the factor graph's `log_values`."""
        return 2 * len(self.names) + 4 * len(self.kinds)

    def to_factor_graph(
        self,
        priors: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        encoding: str = DEFAULT_ENCODING,
    ) -> FactorGraph:
        """Return the factor graph under one setting; arguments as in `log_values`."""
        values = self.log_values(priors, probabilities, encoding)
        if values.ndim != 1:
            raise InputError(
                f"{len(values)} settings were given for one factor graph; give one, or take their "
                "log_values"
            )
        values.flags.writeable = False
        return FactorGraph.unchecked(names=self.names, log_values=values, **self._structure)

    def log_values(
        self,
        priors: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        encoding: str = DEFAULT_ENCODING,
    ) -> NDArray[np.float64]:
        """Return the `log_values` of the factor graph under one or more settings.

        Args:
            priors: (n,) for one setting, (n_settings, n) for several; the stated priors by default.
            probabilities: probabilities of relations, (m,) or (n_settings, m); the stated ones by
                default. Settings broadcast: one row applies to all.
            encoding: name of the encoding of relations.

        Returns:
            float64 (2n + 4m,) or (n_settings, 2n + 4m): for each variable the logarithms of (1 -
            prior, prior), then for each relation its log table, row by row.

        Raises:
            InputError: for a number outside [0, 1], an unknown encoding, or an encoding that reads
                other relations than the compiled ones.
        """
        n, m = len(self.names), len(self.kinds)
        known = self.priors if priors is None else _checked(priors, n, "variable", "prior")
        strengths = self.probabilities
        if probabilities is not None:
            strengths = _checked(probabilities, m, "relation", "probability")
        settings = np.broadcast_shapes(known.shape[:-1], strengths.shape[:-1])
        numbers = np.empty((*settings, n + m, 2))
        numbers[..., :n, 1] = known
        numbers[..., n:, 1] = strengths
        np.subtract(1.0, numbers[..., 1], out=numbers[..., 0])
        if encoding == MIXTURE:
            return self._mixture(numbers[..., :n, :], strengths)
        entries = entries_of(encoding)
        if m and self.kinds.max() == NEUTRAL_CODE:
            raise InputError(
                f"neutral relations have no factor under {encoding!r}; take the fact graph's "
                f"compiled_for({encoding!r})"
            )
        with np.errstate(divide="ignore"):
            logarithms = np.log(numbers).reshape(*settings, 2 * (n + m))
        # Every table entry is the logarithm of one of these numbers. Compute each logarithm once
        # and look entries up by index.
        tables = self._places.take(entries[self.kinds] + self._rows)
        values = logarithms.take(np.concatenate([np.arange(2 * n), tables.ravel()]), axis=-1)
        if encoding == CONDITIONAL and self.statements.any():
            even = self.opposed(np.broadcast_to(known, (*settings, n)), strengths)
            rows = holds_prior()[self.kinds] & even[..., None, None]
            values[..., 2 * n :].reshape(*settings, m, 2, 2)[rows] = np.log(0.5)
        return values

    def opposed(
        self, priors: NDArray[np.float64], probabilities: NDArray[np.float64] | None = None
    ) -> NDArray[np.bool_]:
        """Return whether each statement has a uniform row under *conditional*, bool (..., m).

        Such a statement would otherwise move its target the other way when its source is as likely
        as its prior.

        Args:
            priors: float64 (..., n), priors of the variables.
            probabilities: float64 (..., m), probabilities of the relations; the stated ones by
                default.
        """
        if not self.statements.any():
            return np.zeros((*priors.shape[:-1], len(self.kinds)), dtype=np.bool_)
        p = self.probabilities if probabilities is None else probabilities
        source, target = (priors[..., self.pairs[:, end]] for end in (0, 1))
        return self.statements & overruled(self.kinds, p, source, target)

    def _mixture(
        self, priors: NDArray[np.float64], probabilities: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return `log_values` under *mixture* for priors (..., n, 2) and probabilities (..., m)."""
        if self.n_left_out:
            raise InputError(
                f"{MIXTURE!r} reads "
                f"{counted(self.n_left_out, 'neutral or improbable relation')} that this compiled "
                f"form leaves out; take the fact graph's compiled_for({MIXTURE!r})"
            )
        settings, n = priors.shape[:-2], len(self.names)
        values = np.empty((*settings, self.n_entries))
        with np.errstate(divide="ignore"):
            values[..., : 2 * n] = np.log(priors).reshape(*settings, 2 * n)
        tables = mixture_tables(self.kinds, probabilities, self.rest)
        values[..., 2 * n :] = tables.reshape(*tables.shape[:-3], -1)
        return values

    def split(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return views (n, 2) and (m, 2, 2) of an array laid out as `log_values`."""
        cut = 2 * len(self.names)
        return values[:cut].reshape(-1, 2), values[cut:].reshape(-1, 2, 2)

    @cached_property
    def _structure(self) -> dict[str, NDArray[np.int64]]:
        """Fields of `FactorGraph` shared by the factor graphs of all settings."""
        n, m = len(self.names), len(self.kinds)
        starts = np.arange(n + m + 1)
        starts[n:] += starts[: m + 1]
        variables = np.arange(n + 2 * m)
        variables[n:] = self.pairs.ravel()
        structure = {
            "cardinalities": np.full(n, 2, dtype=np.int64),
            "scope_starts": starts,
            "scope_variables": variables,
            # Tables of one binary variable have two entries, tables of two have four.
            "table_starts": 2 * starts,
            "evidence": np.full(n, UNOBSERVED, dtype=np.int64),
        }
        for array in structure.values():
            array.setflags(write=False)
        return structure

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """Positions of the logarithms of (1 - p, p, 1 - q, q), numbered as in `entries_of`, (4m,).

        The logarithms of (1 - x, x) are stored for the prior x of each variable, then for the
        probability of each relation.
        """
        n, m = len(self.names), len(self.kinds)
        places = np.empty((m, 2, 2), dtype=np.int64)
        places[:, 0, 0] = np.arange(2 * n, 2 * (n + m), 2)
        places[:, 1, 0] = 2 * self.pairs[:, 1]
        places[:, :, 1] = places[:, :, 0] + 1
        return places.ravel()

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Start of the four positions of each relation in `_places`, (m, 1, 1)."""
        return np.arange(0, 4 * len(self.kinds), 4).reshape(-1, 1, 1)


_ARRAYS = {
    "is_atom": np.bool_,
    "priors": np.float64,
    "pairs": np.int64,
    "kinds": np.int64,
    "probabilities": np.float64,
    "relation_numbers": np.int64,
    "rest": np.float64,
    "statements": np.bool_,
}


class FactColumns(NamedTuple):
    """The columns of a valid fact graph that determine its compiled form.

    Attributes:
        atoms, contexts: ids.
        priors: priors of the atoms, then of the contexts.
        relations: values of each field of `RELATION_COLUMNS`, in that order.
        least: least probability of a relation that has a factor; *mixture* reads all.
        statements: whether the relations are statements rather than parameters.
    """

    atoms: tuple[str, ...]
    contexts: tuple[str, ...]
    priors: Sequence[float]
    relations: Sequence[Sequence[Any]]
    least: float = LEAST_PROBABILITY
    statements: bool = True


def compile_each(
    graphs: Sequence[FactColumns], encoding: str = DEFAULT_ENCODING
) -> list[CompiledFacts]:
    """Compile the columns of fact graphs for an encoding; `fact_graph.compiled_each` caches them.

    The arrays of several graphs are made in one step, and each graph's arrays are slices of them:
    for small responses this takes a third of the time of separate steps.

    Args:
        graphs: the columns of each.
        encoding: the encoding whose relations are kept.
    """
    read = [_read(columns, encoding) for columns in graphs]
    if len(graphs) <= 1:
        return [_compiled(*each) for each in zip(graphs, read, strict=True)]
    counts = np.array([each.counts for each in read], dtype=np.int64)
    n_atoms, n_variables, n_relations = counts.T
    starts = _starts(n_variables)
    relation_starts = _starts(n_relations)
    is_atom = _within(n_variables, starts) < np.repeat(n_atoms, n_variables)
    pairs = _flat([each.ends for each in read], np.int64).reshape(-1, 2)
    # Tables between passages follow FactReasoner's code, since their targets are not claims.
    of_atoms = is_atom[pairs[:, 1] + np.repeat(starts[:-1], n_relations)]
    stated = np.array([columns.statements for columns in graphs], dtype=np.bool_)
    of_variables = {
        "is_atom": is_atom,
        "priors": _flat([columns.priors for columns in graphs], np.float64),
    }
    of_relations = {
        "pairs": pairs,
        "kinds": _flat([each.kinds for each in read], np.int64),
        "probabilities": _flat([each.probabilities for each in read], np.float64),
        "relation_numbers": _flat([each.numbers for each in read], np.int64),
        "rest": _flat([chain.from_iterable(each.rests) for each in read], np.float64).reshape(
            -1, 2
        ),
        "statements": of_atoms & np.repeat(stated, n_relations),
    }
    for array in (*of_variables.values(), *of_relations.values()):
        array.setflags(write=False)
    cuts = zip(pairwise(starts.tolist()), pairwise(relation_starts.tolist()), strict=True)
    return [
        _unchecked(
            names=columns.atoms + columns.contexts,
            **{name: array[start:end] for name, array in of_variables.items()},
            **{name: array[first:last] for name, array in of_relations.items()},
            n_left_out=each.n_left_out,
        )
        for columns, each, ((start, end), (first, last)) in zip(graphs, read, cuts, strict=True)
    ]


def _unchecked(**arrays: Any) -> CompiledFacts:
    """Return the compiled form with some fields, which are valid by construction."""
    facts = object.__new__(CompiledFacts)
    facts.__dict__.update(arrays)
    return facts


def _compiled(columns: FactColumns, read: _Read) -> CompiledFacts:
    """Return the compiled form of one graph, without the overhead of a step for several."""
    n_atoms, n_variables, _ = read.counts
    is_atom = np.zeros(n_variables, dtype=np.bool_)
    is_atom[:n_atoms] = True
    ends = np.array(read.ends, dtype=np.int64)
    arrays = {
        "is_atom": is_atom,
        "priors": np.array(columns.priors, dtype=np.float64),
        "pairs": ends.reshape(-1, 2),
        "kinds": np.array(read.kinds, dtype=np.int64),
        "probabilities": np.array(read.probabilities, dtype=np.float64),
        "relation_numbers": np.array(read.numbers, dtype=np.int64),
        "rest": np.array(read.rests, dtype=np.float64).reshape(-1, 2),
        "statements": is_atom[ends[1::2]] & columns.statements,
    }
    for array in arrays.values():
        array.setflags(write=False)
    names = columns.atoms + columns.contexts
    return _unchecked(names=names, **arrays, n_left_out=read.n_left_out)


class _Read(NamedTuple):
    """The relations of a fact graph that an encoding reads, in lists.

    Attributes:
        counts: numbers of atoms, of variables, and of these relations.
        n_left_out: number of relations that *mixture* reads and that are left out.
        ends: positions of the source and the target of each relation, one after another.
        kinds: codes of kinds.
        probabilities: stated probabilities.
        numbers: positions among all relations of the graph.
        rests: as `rest_of` returns them.
    """

    counts: tuple[int, int, int]
    n_left_out: int
    ends: Sequence[int]
    kinds: Sequence[int]
    probabilities: Sequence[float]
    numbers: Sequence[int]
    rests: Sequence[tuple[float, float]]


def _read(columns: FactColumns, encoding: str) -> _Read:
    names = columns.atoms + columns.contexts
    position = dict(zip(names, range(len(names)), strict=True))
    sources, targets, kinds, probabilities, distributions = columns.relations
    codes = [ALL_CODES[kind] for kind in kinds]
    numbers: Sequence[int] = range(len(codes))
    rests: Sequence[tuple[float, float]] = [_NO_REST] * len(codes)
    left_out = 0
    improbable = min(probabilities, default=1.0) < columns.least
    if improbable or NEUTRAL_CODE in codes or distributions.count(None) < len(codes):
        stated = zip(kinds, distributions, strict=True)
        rests = [_NO_REST if shares is None else rest_of(kind, shares) for kind, shares in stated]
        # A neutral relation needs no factor if it cannot be of another kind, or if entailment and
        # contradiction are equally likely.
        says = [
            number
            for number in numbers
            if codes[number] != NEUTRAL_CODE or rests[number] != _NO_REST
        ]
        numbers = says
        if encoding != MIXTURE:
            numbers = [
                number
                for number in says
                if codes[number] != NEUTRAL_CODE and probabilities[number] >= columns.least
            ]
        left_out = len(says) - len(numbers)
        codes, rests = [codes[number] for number in numbers], [rests[number] for number in numbers]
        sources, targets, probabilities = (
            [column[number] for number in numbers] for column in (sources, targets, probabilities)
        )
    ends = [position[end] for pair in zip(sources, targets, strict=True) for end in pair]
    counts = len(columns.atoms), len(names), len(codes)
    return _Read(counts, left_out, ends, codes, probabilities, numbers, rests)


_NO_REST = (0.0, 0.0)


def _flat(parts: Iterable[Iterable[Any]], dtype: type[Any]) -> NDArray[Any]:
    """Return the numbers of several lists, one after another."""
    return np.fromiter(chain.from_iterable(parts), dtype=dtype)


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the start of each part in a flat array, and the end of the last."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _within(counts: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each entry of a flat array within its part."""
    return np.arange(starts[-1]) - np.repeat(starts[:-1], counts)


def side_by_side(responses: Mapping[str, CompiledFacts]) -> CompiledFacts:
    """Combine responses, given by id, without shared variables; names become ``id/name``.

    Raises:
        InputError: if two variables get the same name.
    """
    names = tuple(f"{id}/{name}" for id, part in responses.items() for name in part.names)
    return CompiledFacts(**_joined(list(responses.values()), names))


def _joined(parts: Sequence[CompiledFacts], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of the compiled form that combines several, under some names."""
    n_relations = np.array([len(part.kinds) for part in parts], dtype=np.int64)
    starts = _starts(np.array([len(part.names) for part in parts], dtype=np.int64))
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
    joined["pairs"] = joined["pairs"] + np.repeat(starts[:-1], n_relations)[:, None]
    return {"names": names, **joined, "n_left_out": sum(part.n_left_out for part in parts)}


def factor_graphs(
    each: Sequence[CompiledFacts],
    priors: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    encoding: str = DEFAULT_ENCODING,
) -> list[FactorGraph]:
    """Return the factor graphs of many compiled forms, made in one step.

    They equal those of `CompiledFacts.to_factor_graph` to the last bit.

    Args:
        each: the compiled forms.
        priors: priors of the variables of all forms, one after another; the stated priors by
            default.
        probabilities: probabilities of the relations of all forms; the stated probabilities by
            default.
        encoding: name of the encoding of relations.

    Raises:
        InputError: as in `CompiledFacts.log_values`.
    """
    if len(each) <= 1:
        return [facts.to_factor_graph(priors, probabilities, encoding) for facts in each]
    names = tuple(chain.from_iterable(facts.names for facts in each))
    together = _unchecked(**_joined(each, names))
    values = together.log_values(priors, probabilities, encoding)
    n_variables = np.array([len(facts.names) for facts in each], dtype=np.int64)
    n_relations = np.array([len(facts.kinds) for facts in each], dtype=np.int64)
    # The tables of the priors of all graphs precede those of all relations; each graph has its own
    # relations' after its own priors'.
    before, relations_before = (_starts(counts) for counts in (n_variables, n_relations))
    tables = np.empty_like(values)
    cut = 2 * len(names)
    tables[np.arange(cut) + np.repeat(4 * relations_before[:-1], 2 * n_variables)] = values[:cut]
    tables[np.arange(len(values) - cut) + np.repeat(2 * before[1:], 4 * n_relations)] = values[cut:]
    tables.flags.writeable = False
    new = [facts for facts in each if "_structure" not in vars(facts)]
    for facts, structure in zip(new, _structures(new), strict=True):
        facts.__dict__["_structure"] = structure
    ends = (2 * before + 4 * relations_before).tolist()
    return [
        FactorGraph.unchecked(names=facts.names, log_values=tables[start:end], **facts._structure)
        for facts, (start, end) in zip(each, pairwise(ends), strict=True)
    ]


def _structures(each: Sequence[CompiledFacts]) -> list[dict[str, NDArray[np.int64]]]:
    """Return `CompiledFacts._structure` of each of several compiled forms, made in one step."""
    if not each:
        return []
    n_variables = np.array([len(facts.names) for facts in each], dtype=np.int64)
    n_relations = np.array([len(facts.kinds) for facts in each], dtype=np.int64)
    parts = {
        "cardinalities": n_variables,
        "scope_starts": n_variables + n_relations + 1,
        "scope_variables": n_variables + 2 * n_relations,
        "evidence": n_variables,
    }
    starts = {name: _starts(counts) for name, counts in parts.items()}
    within = {
        name: _within(parts[name], starts[name]) for name in ("scope_starts", "scope_variables")
    }
    scope_starts, variables = within["scope_starts"], within["scope_variables"]
    # The first factors are priors, with one variable each; relations have two.
    scope_starts += np.maximum(scope_starts - np.repeat(n_variables, parts["scope_starts"]), 0)
    of_relations = variables >= np.repeat(n_variables, parts["scope_variables"])
    variables[of_relations] = np.concatenate([facts.pairs.ravel() for facts in each])
    arrays = {
        "cardinalities": np.full(starts["cardinalities"][-1], 2, dtype=np.int64),
        "scope_starts": scope_starts,
        "scope_variables": variables,
        "table_starts": 2 * scope_starts,
        "evidence": np.full(starts["evidence"][-1], UNOBSERVED, dtype=np.int64),
    }
    starts["table_starts"] = starts["scope_starts"]
    for array in arrays.values():
        array.setflags(write=False)
    cuts = {name: ends.tolist() for name, ends in starts.items()}
    return [
        {name: array[cuts[name][k] : cuts[name][k + 1]] for name, array in arrays.items()}
        for k in range(len(each))
    ]


def _validate(facts: CompiledFacts) -> None:
    n, m = len(facts.names), len(facts.kinds)
    if (
        facts.is_atom.shape != (n,)
        or facts.pairs.shape != (m, 2)
        or len(facts.relation_numbers) != m
    ):
        raise InputError(
            f"the arrays do not describe {n} variables and {m} relations; give one entry for each, "
            "and a pair for each relation"
        )
    positions(facts.names)
    kind_codes(facts.kinds, neutral=True)
    if facts.statements.shape != (m,):
        raise InputError(f"statements has {len(facts.statements)} entries for {m} relations")
    if facts.rest.shape != (m, 2) or not (np.abs(facts.rest) <= 1.0).all():
        raise InputError(
            "rest is not a pair of numbers between -1 and 1 for each relation; take rest_of"
        )
    _checked(facts.priors, n, "variable", "prior")
    _checked(facts.probabilities, m, "relation", "probability")
    outside = ((facts.pairs < 0) | (facts.pairs >= n)).any(axis=1)
    wrong = outside | (facts.pairs[:, 0] == facts.pairs[:, 1])
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"relation {at} joins the variables {facts.pairs[at].tolist()}; give two different "
            f"ones from 0 to {n - 1}"
        )


def _checked(values: ArrayLike, count: int, whose: str, what: str) -> NDArray[np.float64]:
    """Return an array of probabilities with `count` entries along the last axis."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape[-1:] != (count,):
        raise InputError(
            f"an array of shape {array.shape} was given for the {what} of each {whose}; "
            f"its last axis must have {count} entries"
        )
    check_probabilities(array, whose, what)
    return array
