"""Synthetic responses with known truth, for studies of calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import update_wrapper
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import RelationKind
from factormodels.encodings import KIND_CODES
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.synthetic.facts import FactArrays
from factormodels.synthetic.laws import (
    ATOM_PRIORS,
    CONTEXT_PRIORS,
    STRENGTH,
    Beta,
    Constant,
    Law,
    Seed,
    Uniform,
    whole,
)
from factormodels.synthetic.structure import ResponseStructure, draw_structure
from factormodels.validation import validated_probability

_ENTAILMENT = KIND_CODES[RelationKind.ENTAILMENT]
_CONTRADICTION = KIND_CODES[RelationKind.CONTRADICTION]
_EQUIVALENCE = KIND_CODES[RelationKind.EQUIVALENCE]

_SPAWNED_AT_ONCE = 256
"""Number of responses whose generators are spawned at a time, which take about a megabyte."""


def each_labeled_response(
    n_responses: int,
    *,
    n_atoms: int | tuple[int, int],
    contexts_per_atom: int | Sequence[int],
    density: float = 0.0,
    context_density: float = 0.0,
    reach: int | None = None,
    strength: Law = STRENGTH,
    atom_prior: Law = ATOM_PRIORS,
    context_prior: Law = CONTEXT_PRIORS,
    truth_rate: float | None = None,
    reliability: float | None = None,
    error_rate: float | None = None,
    unlabeled: float = 0.0,
    log_odds_factor: float = 1.0,
    log_odds_noise: float = 0.0,
    copied: float = 0.0,
    first: int = 1,
    seed: Seed,
) -> Iterator[FactGraph]:
    """Yield responses drawn from a known process, with the truth as labels of their atoms.

    An atom is true with its prior, a context with its own. The relation of two related texts
    follows from their truth: a true context entails a true atom and contradicts a false one; a true
    context is equivalent to a true one and contradicts a false one; if the source (of two contexts:
    both) is false, either relation is equally likely. The relation model states a probability p,
    drawn from `strength`, and reports the relation or, with its error rate, the other one.

    By default the error rate of a relation is 1 - p. With atom priors of 0.5 and no relations
    between contexts, the exact posteriors under the encoding *conditional* are then calibrated: its
    tables are the probabilities of the reported relations, up to a constant. Relations between
    contexts, `truth_rate`, `reliability`, `error_rate`, `log_odds_factor`, `log_odds_noise` and
    `copied` depart from this, each in a known way. The last three do not change any other draw:
    with the same seed, the same responses are drawn with and without them.

    Args:
        n_responses: number of responses, named "r1", "r2", ...; the first ones do not depend on the
            number.
        n_atoms: atoms of each response, or the minimum and maximum number.
        contexts_per_atom: contexts retrieved for each atom, or one number per atom.
        density: probability that a context is related to an atom it was not retrieved for.
        context_density: probability that two contexts are related.
        reach: maximum distance of related pairs, as in `draw_facts`.
        strength: distribution of the stated probability of a relation.
        atom_prior: distribution of the stated priors of atoms.
        context_prior: distribution of the stated priors of contexts.
        truth_rate: share of true atoms, in place of the stated priors.
        reliability: share of true contexts, in place of the stated priors.
        error_rate: error rate of the relation model, in place of 1 - p.
        unlabeled: share of atoms whose label is withheld.
        log_odds_factor: factor of the log odds of p before it is stated, at least 0; the error rate
            stays 1 - p. Above 1 the relation model is overconfident.
        log_odds_noise: standard deviation of a normal error that is then added to them.
        copied: probability that a context copies the previous context of its atom: it has the same
            truth and prior and, to every atom that both are related to, the same relation,
            including errors.
        first: number of the first response to yield; earlier ones are not drawn.
        seed: seed of the random numbers, or a generator.

    Yields:
        A fact graph; ``metadata["true_contexts"]`` lists the ids of the true contexts, and
        ``metadata["copies"]``, if copies are possible, gives the original of each copy.

    Raises:
        InputError: at once, if a number is out of range.
    """
    sizes = _sizes(n_atoms)
    for value, what in (
        (density, "density"),
        (context_density, "context_density"),
        (truth_rate, "truth_rate"),
        (reliability, "reliability"),
        (error_rate, "error_rate"),
        (unlabeled, "unlabeled"),
        (copied, "copied"),
    ):
        if value is not None:
            validated_probability(value, what)
    for value, what in (
        (log_odds_factor, "log_odds_factor"),
        (log_odds_noise, "log_odds_noise"),
    ):
        if not 0.0 <= value < math.inf:
            raise InputError(f"{what} is {value!r}; give a number of at least 0")
    numbers = range(whole(first, "first", 1), whole(n_responses, "n_responses", 0) + 1)
    # Custom laws may return any number.
    checked = not all(
        isinstance(law, Beta | Constant | Uniform) for law in (strength, atom_prior, context_prior)
    )

    def drawn(number: int, generator: np.random.Generator) -> FactGraph:
        structure = draw_structure(
            generator,
            int(generator.integers(sizes[0], sizes[1], endpoint=True)),
            contexts_per_atom,
            density=density,
            context_density=context_density,
            reach=reach,
        )
        atom_priors = atom_prior.sample(generator, structure.n_atoms)
        context_priors = context_prior.sample(generator, len(structure.owners))
        atoms = _truths(generator, atom_priors, truth_rate)
        contexts = _truths(generator, context_priors, reliability)
        same: NDArray[np.int64] | slice = slice(None)
        deviations = None
        if copied or log_odds_noise:
            # Separate streams, so that they do not change the other draws.
            copying, noise = generator.spawn(2)
            originals = _originals(copying, structure, copied)
            context_priors, contexts = context_priors[originals], contexts[originals]
            same = _relations_of_originals(structure, originals)
            count = len(structure.evidence) + len(structure.context_pairs)
            deviations = log_odds_noise * noise.standard_normal(count)[same]
        favorable = _favorable(generator, structure, atoms, contexts)[same]
        probabilities = strength.sample(generator, len(favorable))[same]
        errors = 1.0 - probabilities if error_rate is None else error_rate
        wrong = generator.random(len(favorable))[same] < errors
        facts = FactArrays(
            atom_priors=atom_priors,
            context_priors=context_priors,
            owners=structure.owners,
            pairs=structure.variable_pairs(),
            kinds=_kinds(favorable != wrong, len(structure.evidence)),
            probabilities=_stated(probabilities, log_odds_factor, deviations),
        )
        labels: list[bool | None] = atoms.tolist()
        if unlabeled:
            withheld = (generator.random(len(atoms)) < unlabeled).tolist()
            drawn_labels = zip(labels, withheld, strict=True)
            labels = [None if hidden else truth for truth, hidden in drawn_labels]
        metadata: dict[str, Any] = {"true_contexts": _context_ids(np.flatnonzero(contexts))}
        if copied:
            copies = np.flatnonzero(originals != np.arange(len(originals)))
            of = _context_ids(originals[copies])
            metadata["copies"] = dict(zip(_context_ids(copies), of, strict=True))
        return facts.to_fact_graph(f"r{number}", labels=labels, metadata=metadata, checked=checked)

    return map(drawn, numbers, _spawned(np.random.default_rng(seed), numbers))


_Arguments = ParamSpec("_Arguments")


def _all_of(
    each: Callable[_Arguments, Iterator[FactGraph]],
) -> Callable[_Arguments, tuple[FactGraph, ...]]:
    def labeled_responses(
        *arguments: _Arguments.args, **settings: _Arguments.kwargs
    ) -> tuple[FactGraph, ...]:
        """Return the responses of `each_labeled_response`, with the same arguments."""
        return tuple(each(*arguments, **settings))

    # Lets tools show the signature.
    return update_wrapper(labeled_responses, each, assigned=())


labeled_responses = _all_of(each_labeled_response)


def _spawned(generator: np.random.Generator, numbers: range) -> Iterator[np.random.Generator]:
    """Yield the generators that `generator` would spawn for some numbers from 1, in batches."""
    skipped = numbers.start - 1
    if skipped:
        seeds: Any = generator.bit_generator.seed_seq
        after = np.random.SeedSequence(
            seeds.entropy,
            spawn_key=seeds.spawn_key,
            pool_size=seeds.pool_size,
            n_children_spawned=seeds.n_children_spawned + skipped,
        )
        generator = np.random.Generator(type(generator.bit_generator)(after))
    for start in range(0, len(numbers), _SPAWNED_AT_ONCE):
        yield from generator.spawn(min(_SPAWNED_AT_ONCE, len(numbers) - start))


def _sizes(n_atoms: int | tuple[int, int]) -> tuple[int, int]:
    smallest, largest = (n_atoms, n_atoms) if isinstance(n_atoms, int | np.integer) else n_atoms
    if whole(largest, "the largest n_atoms", 0) < whole(smallest, "the smallest n_atoms", 0):
        raise InputError(
            f"n_atoms runs from {smallest} to {largest}; give the smaller number first"
        )
    return int(smallest), int(largest)


def _truths(
    generator: np.random.Generator, priors: NDArray[np.float64], rate: float | None
) -> NDArray[np.bool_]:
    truths: NDArray[np.bool_] = generator.random(len(priors)) < (priors if rate is None else rate)
    return truths


def _originals(
    generator: np.random.Generator, structure: ResponseStructure, copied: float
) -> NDArray[np.int64]:
    """Return the original of each context through all copies; its own number if it is none."""
    owners = structure.owners
    copies = generator.random(len(owners)) < copied
    copies[:1] = False
    copies[1:] &= owners[1:] == owners[:-1]
    originals = np.where(copies, 0, np.arange(len(owners)))
    return np.maximum.accumulate(originals)


def _relations_of_originals(
    structure: ResponseStructure, originals: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the relation that each one copies: its original's to the same atom, or itself."""
    same = np.arange(len(structure.evidence) + len(structure.context_pairs))
    keys = structure.evidence @ np.array([structure.n_atoms, 1])
    wanted = originals[structure.evidence[:, 0]] * structure.n_atoms + structure.evidence[:, 1]
    # Evidence is sorted by context, then atom, so keys are ascending.
    places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    evidence = same[: len(keys)]
    same[: len(keys)] = np.where(keys[places] == wanted, places, evidence)
    return same


def _stated(
    probabilities: NDArray[np.float64], factor: float, deviations: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return probabilities with scaled and shifted log odds."""
    if factor == 1.0 and (deviations is None or not deviations.any()):
        return probabilities
    with np.errstate(divide="ignore"):
        odds = np.log(probabilities) - np.log1p(-probabilities)
    # Avoids 0 times infinity: with factor 0, certainty is ignored.
    shown = (odds * factor if factor else np.zeros_like(odds)) + (
        0.0 if deviations is None else deviations
    )
    # One of the two exponentials would overflow; exp(-|x|) never does.
    small = np.exp(-np.abs(shown))
    return np.where(shown >= 0.0, 1.0, small) / (1.0 + small)


def _context_ids(numbers: NDArray[np.int64]) -> list[str]:
    return [f"c{number + 1}" for number in numbers.tolist()]


def _favorable(
    generator: np.random.Generator,
    structure: ResponseStructure,
    atoms: NDArray[np.bool_],
    contexts: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return whether each relation is truly an entailment or equivalence."""
    source, target = contexts[structure.evidence[:, 0]], atoms[structure.evidence[:, 1]]
    supports = np.where(source, target, generator.random(len(source)) < 0.5)
    if not len(structure.context_pairs):
        return supports
    first, second = contexts[structure.context_pairs].T
    agree = np.where(first | second, first & second, generator.random(len(first)) < 0.5)
    return np.concatenate([supports, agree])


def _kinds(favorable: NDArray[np.bool_], n_evidence: int) -> NDArray[np.int64]:
    """Return codes of relations, the evidence before relations between contexts."""
    kinds = np.where(favorable, _ENTAILMENT, _CONTRADICTION)
    between = kinds[n_evidence:]
    between[between == _ENTAILMENT] = _EQUIVALENCE
    return kinds
