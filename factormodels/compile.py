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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

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


def compile_columns(
    atoms: tuple[str, ...],
    contexts: tuple[str, ...],
    priors: Sequence[float],
    relations: Mapping[str, Sequence[Any]],
    encoding: str = DEFAULT_ENCODING,
    *,
    least: float = LEAST_PROBABILITY,
    statements: bool = True,
) -> CompiledFacts:
    """Compile the columns of a valid fact graph for an encoding; `FactGraph.compiled_for` caches
    them.

    Args:
        atoms, contexts: ids.
        priors: priors of the atoms, then of the contexts.
        relations: values of each field of `RELATION_COLUMNS`, by name.
        encoding: the encoding whose relations are kept.
        least: least probability of a relation that has a factor; *mixture* reads all.
        statements: whether the relations are statements rather than parameters.
    """
    names = atoms + contexts
    position = dict(zip(names, range(len(names)), strict=True))
    sources, targets, kinds, probabilities, distributions = (
        relations[name] for name in RELATION_COLUMNS
    )
    codes = [ALL_CODES[kind] for kind in kinds]
    numbers = list(range(len(codes)))
    rests = [_NO_REST] * len(codes)
    left_out = 0
    improbable = min(probabilities, default=1.0) < least
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
                if codes[number] != NEUTRAL_CODE and probabilities[number] >= least
            ]
        left_out = len(says) - len(numbers)
        codes, rests = [codes[number] for number in numbers], [rests[number] for number in numbers]
        sources, targets, probabilities = (
            [column[number] for number in numbers] for column in (sources, targets, probabilities)
        )
    ends = [position[end] for pair in zip(sources, targets, strict=True) for end in pair]
    is_atom = np.zeros(len(names), dtype=np.bool_)
    is_atom[: len(atoms)] = True
    arrays = {
        "is_atom": is_atom,
        "priors": np.array(priors, dtype=np.float64),
        "pairs": np.array(ends, dtype=np.int64).reshape(-1, 2),
        "kinds": np.array(codes, dtype=np.int64),
        "probabilities": np.array(probabilities, dtype=np.float64),
        "relation_numbers": np.array(numbers, dtype=np.int64),
        "rest": np.array(rests, dtype=np.float64).reshape(-1, 2),
        # Tables between passages follow FactReasoner's code, since their targets are not claims.
        "statements": is_atom[np.array(ends, dtype=np.int64)[1::2]] & statements,
    }
    for array in arrays.values():
        array.setflags(write=False)
    # The columns of a valid fact graph need no validation.
    facts = object.__new__(CompiledFacts)
    facts.__dict__.update(names=names, **arrays, n_left_out=left_out)
    return facts


_NO_REST = (0.0, 0.0)


def side_by_side(responses: Mapping[str, CompiledFacts]) -> CompiledFacts:
    """Combine responses, given by id, without shared variables; names become ``id/name``.

    Raises:
        InputError: if two variables get the same name.
    """
    parts = list(responses.values())
    ends = np.cumsum([len(part.names) for part in parts]).tolist()
    return CompiledFacts(
        names=tuple(f"{id}/{name}" for id, part in responses.items() for name in part.names),
        is_atom=np.concatenate([part.is_atom for part in parts]),
        priors=np.concatenate([part.priors for part in parts]),
        pairs=np.concatenate(
            [part.pairs + end - len(part.names) for part, end in zip(parts, ends, strict=True)]
        ),
        kinds=np.concatenate([part.kinds for part in parts]),
        probabilities=np.concatenate([part.probabilities for part in parts]),
        relation_numbers=np.concatenate([part.relation_numbers for part in parts]),
        rest=np.concatenate([part.rest for part in parts]),
        statements=np.concatenate([part.statements for part in parts]),
        n_left_out=sum(part.n_left_out for part in parts),
    )


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
