"""Ranges of posteriors and measures under missing relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration.scores.measures import (
    ENTROPY_PEAK,
    choose_k,
    entropy_terms,
    f1_of_counts,
    recall_of_counts,
    verdicts,
)
from factormodels.claims import LEAST_PROBABILITY, RelationKind
from factormodels.encodings import MIXTURE, encode_many
from factormodels.extraction.stages.relations import (
    METADATA_KEY,
    unanswered_atoms,
)
from factormodels.fact_graph import FactGraph
from factormodels.variants import COPY_SEPARATOR

if TYPE_CHECKING:
    from inference.sampling.annealing import AnnealedImportance

Range = tuple[float, float]

ANYTHING: Range = (0.0, 1.0)

RANGED = ("precision", "recall_at_k", "f1_at_k", "entropy")
"""Measures with a range that follows from the ranges of the posteriors."""

_ANSWERS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)
_BETWEEN_CONTEXTS = (*_ANSWERS, RelationKind.EQUIVALENCE)


def open_posteriors(
    asked: FactGraph, seen: FactGraph, encoding: str, p: Mapping[str, float]
) -> dict[str, Range]:
    """Bounds on the posteriors of atoms that missing or unasked relations could change.

    A missing relation could be neutral, or an entailment or a contradiction with any probability
    that counts (from `least` to 1); between two contexts also an equivalence, replacing the answer
    of the other order. For every combination, each posterior is within its bounds
    (`inference.tasks.open_marginals`, with draws if neither exact inference nor walks suffice). The
    posterior of an atom without any answer is unbounded.

    Args:
        asked: the response with the relations that the view asks for.
        seen: the view of it that inference saw.
        encoding: encoding of relations.
        p: posterior of each atom in the view.

    Returns:
        (lower, upper) by id of atom, without atoms that no missing relation affects.
    """
    facts = asked.metadata.get(METADATA_KEY, {})
    missing = (*facts.get("missing", ()), *facts.get("unasked", ()))
    if not missing:
        return {}
    from inference.tasks import open_marginals

    priors = {atom.id: atom.prior for atom in seen.atoms}
    priors |= {context.id: context.prior for context in seen.contexts}
    numbers = {name: number for number, name in enumerate(priors)}
    least = facts.get("least", LEAST_PROBABILITY)
    if encoding != MIXTURE:
        # A less probable relation would have no factor.
        least = max(least, LEAST_PROBABILITY)
    contexts = set(seen.context_ids)
    tables: dict[tuple[int, int], NDArray[np.float64]] = {}
    open_pairs: set[frozenset[str]] = set()
    tables_of = cache(partial(_tables, encoding=encoding, least=least))
    for source, target, _ in missing:
        # FR1 copies a context for each of its atoms.
        here = source if source in contexts else f"{source}{COPY_SEPARATOR}{target}"
        if here not in priors or target not in priors or frozenset((here, target)) in open_pairs:
            continue
        open_pairs.add(frozenset((here, target)))
        choices = tables_of(_ANSWERS, priors[target])
        if target in contexts:
            forward = tables_of(_BETWEEN_CONTEXTS, priors[target])
            backward = tables_of(_ANSWERS, priors[here])
            choices = np.concatenate([forward, backward.swapaxes(1, 2)])
        tables[numbers[here], numbers[target]] = choices
    known = tuple(
        relation
        for relation in seen.relations
        if frozenset((relation.source, relation.target)) not in open_pairs
    )
    graph = seen.derived(seen.contexts, known).to_factor_graph(encoding)
    bounds = open_marginals(graph, tables, _draws)
    unanswered = unanswered_atoms(asked)
    return {
        atom: ANYTHING
        if atom in unanswered
        # An approximate posterior can lie outside the exact bounds.
        else (min(lower, p[atom]), max(upper, p[atom]))
        for atom, (lower, upper) in zip(seen.atom_ids, bounds.tolist(), strict=False)
        if atom in unanswered or not np.isnan(lower)
    }


def _draws() -> AnnealedImportance:
    # Loaded where it is needed: that takes longer than most graphs do.
    from inference.sampling.annealing import AnnealedImportance

    return AnnealedImportance()


def open_measures(
    ranges: Sequence[Mapping[str, Sequence[Range | None]]],
    k: str | float,
    logarithm: float = 1.0,
) -> dict[str, dict[str, Range]]:
    """Ranges of the measures of `RANGED`, means over responses, by name of variant or assessor.

    Each measure is monotone in the number of supported claims or a mean over claims, so its
    extremes occur at the bounds of all posteriors. A response without claims is left out.

    Args:
        ranges: for each response, (lower, upper) of every claim by name; a claim that is None
            (dropped) for any name is left out for all.
        k: the K of R_K and F1@K, as `calibration.scores.choose_k` takes it.
        logarithm: factor for E in logarithms to base 10.
    """
    ends_by_name: dict[str, list[list[Range]]] = {}
    for response in ranges:
        for name, kept in zip(response, _in_all([*response.values()]), strict=True):
            if len(kept):
                of_response = float(choose_k(k, [len(kept)])[0])
                ends_by_name.setdefault(name, []).append(_ends(kept, of_response, logarithm))
    means = {name: np.mean(np.array(ends), axis=0).tolist() for name, ends in ends_by_name.items()}
    return {
        name: {measure: (low, high) for measure, (low, high) in zip(RANGED, ends, strict=True)}
        for name, ends in means.items()
    }


def _in_all(ranges: Sequence[Sequence[Range | None]]) -> list[NDArray[np.float64]]:
    kept = [position for position, ends in enumerate(zip(*ranges, strict=True)) if None not in ends]
    return [np.array([ends[position] for position in kept]).reshape(-1, 2) for ends in ranges]


def _ends(ranges: NDArray[np.float64], k: float, logarithm: float) -> list[Range]:
    supported = (verdicts(ranges.ravel()).reshape(-1, 2) > 0).sum(axis=0)
    terms = entropy_terms(ranges.ravel()).reshape(-1, 2)
    peaks = entropy_terms(np.clip(ENTROPY_PEAK, ranges[:, 0], ranges[:, 1]))
    n = len(ranges)
    pairs = (supported / n, recall_of_counts(supported, k), f1_of_counts(supported, n, k))
    entropy = (logarithm * float(terms.min(axis=1).mean()), logarithm * float(peaks.mean()))
    return [*((float(low), float(high)) for low, high in pairs), entropy]


def _tables(
    kinds: tuple[RelationKind, ...], prior: float, *, encoding: str, least: float
) -> NDArray[np.float64]:
    """Tables of a relation at the ends of its probability, and the table without a relation."""
    ends: list[Any] = [(kind, p) for kind in kinds for p in (least, 1.0)]
    tables = encode_many([k for k, _ in ends], [p for _, p in ends], [prior] * len(ends), encoding)
    return np.concatenate([np.zeros((1, 2, 2)), tables])
