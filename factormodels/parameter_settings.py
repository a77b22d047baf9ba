"""Many settings of one fact graph: log tables under other priors, probabilities and encodings.

    from factormodels.parameter_settings import log_tables
    rows = log_tables(fact_graph, relation_probabilities=draws)

Every setting has the same factor graph but for its numbers, so that inference plans once for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.claims import RelationKind
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph

_LEAST_CONCENTRATION = 1e-6
"""Below it, a Beta variable is 0 or 1 to rounding, and its generator runs out of range."""

_LEAST_PARAMETER = 1e-300
"""A Beta variable with a parameter below it stays at 0 or 1 to rounding."""


def log_tables(
    fact_graph: FactGraph,
    *,
    atom_priors: ArrayLike | None = None,
    context_priors: ArrayLike | None = None,
    relation_probabilities: ArrayLike | None = None,
    encoding: str | Sequence[str] = DEFAULT_ENCODING,
) -> NDArray[np.float64]:
    """Log tables of the factor graph of a fact graph under many settings.

    What is given broadcasts as in NumPy: one number for all, one for each atom (context,
    relation), a column (n_settings, 1) with one for each setting, or (n_settings, n) with both.
    What is not given stays as the fact graph has it.

    Args:
        fact_graph: the fact graph.
        atom_priors: prior probabilities of atoms, to (n_settings, n_atoms).
        context_priors: the same of contexts.
        relation_probabilities: probabilities of all relations in their order, to
            (n_settings, n_relations); those of neutral relations play no part.
        encoding: name of the encoding of relations, or n_settings names.

    Returns:
        float64 (n_settings, n_entries); row s is the `log_values` of `to_factor_graph` with the
        numbers and the encoding of setting s.

    Raises:
        InputError: for shapes that do not fit each other or the graph, a number outside [0, 1],
            or an unknown encoding.
    """
    names = (encoding,) if isinstance(encoding, str) else tuple(encoding)
    facts = fact_graph.compiled_for(names[0]) if names else fact_graph.compiled
    given: dict[str, tuple[ArrayLike | None, ArrayLike, Sequence[str]]] = {
        "atom_priors": (atom_priors, facts.priors[facts.is_atom], fact_graph.atom_ids),
        "context_priors": (context_priors, facts.priors[~facts.is_atom], fact_graph.context_ids),
        "relation_probabilities": (
            relation_probabilities,
            [relation.probability for relation in fact_graph.relations],
            [f"{relation.source} -> {relation.target}" for relation in fact_graph.relations],
        ),
    }
    arrays = {
        what: _checked(stated if values is None else values, what, ids)
        for what, (values, stated, ids) in given.items()
    }
    count = _common({what: len(array) for what, array in arrays.items()} | {"encoding": len(names)})
    atoms, contexts, probabilities = (
        np.broadcast_to(array, (count, array.shape[1])) for array in arrays.values()
    )
    priors = np.concatenate([atoms, contexts], axis=1)
    probabilities = probabilities[:, facts.relation_numbers]
    if len(names) == 1:
        return facts.log_values(priors, probabilities, names[0])
    result = np.empty((count, facts.n_entries))
    for name in dict.fromkeys(names):
        own = np.flatnonzero([other == name for other in names])
        result[own] = facts.log_values(priors[own], probabilities[own], name)
    return result


def drawn_probabilities(
    fact_graph: FactGraph, *, concentration: float, draws: int, seed: int
) -> NDArray[np.float64]:
    """Bootstrap draws of the probabilities of relations.

    The law: independently for every relation that is not neutral, with recorded probability p*,
    p ~ Beta(c p*, c (1 - p*)), c the concentration. Its mean is p* and its variance
    p* (1 - p*) / (c + 1). A p* of 0 or 1 stays fixed, and so do neutral relations.

    Args:
        fact_graph: the fact graph.
        concentration: c, at least 1e-6; the larger, the closer draws are to p*.
        draws: number of draws, at least 1.
        seed: seed of the draws, a whole number not below 0.

    Returns:
        float64 (draws, n_relations), as `log_tables` takes them.

    Raises:
        InputError: for a number outside its range.
    """
    if not _LEAST_CONCENTRATION <= concentration < math.inf:
        raise InputError(
            f"the concentration {concentration!r} is not a finite number from "
            f"{_LEAST_CONCENTRATION} up; give how many observations a probability is worth"
        )
    for what, value, least in (("draws", draws, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{what} is {value!r}; give a whole number of at least {least}")
    recorded = np.array([r.probability for r in fact_graph.relations], dtype=np.float64)
    first, second = concentration * recorded, concentration * (1.0 - recorded)
    neutral = [relation.kind is RelationKind.NEUTRAL for relation in fact_graph.relations]
    moving = (np.minimum(first, second) >= _LEAST_PARAMETER) & ~np.array(neutral, dtype=bool)
    drawn = np.tile(recorded, (draws, 1))
    size = (draws, int(moving.sum()))
    drawn[:, moving] = np.random.default_rng(seed).beta(first[moving], second[moving], size)
    return drawn


def _checked(values: ArrayLike, what: str, ids: Sequence[str]) -> NDArray[np.float64]:
    """Values as (n_settings or 1, n)."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is not an array of numbers; give probabilities") from None
    fits = array.ndim <= 2 and (array.ndim == 0 or array.shape[-1] in (1, len(ids)))
    if not fits:
        raise InputError(
            f"{what} has the shape {array.shape}; give (number of settings, {len(ids)}), or what "
            "NumPy broadcasts to it"
        )
    array = np.atleast_2d(array)
    bad = ~((array >= 0.0) & (array <= 1.0))
    if bad.any():
        setting, at = np.argwhere(bad)[0].tolist()
        whose = f" of {ids[at]!r}" if array.shape[1] == len(ids) else ""
        raise InputError(
            f"{what}: {float(array[setting, at])!r}{whose} in setting {setting} is not between 0 "
            "and 1; correct it"
        )
    return np.broadcast_to(array, (len(array), len(ids)))


def _common(counts: dict[str, int]) -> int:
    """Number of settings that all agree on, 1 standing for any."""
    several = {what: count for what, count in counts.items() if count != 1}
    if len(set(several.values())) > 1:
        told = ", ".join(f"{count} for {what}" for what, count in several.items())
        raise InputError(f"numbers of settings differ: {told}; give as many for each")
    return next(iter(several.values()), 1)
