"""Posteriors averaged over draws of the relation probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import FactormodelsError, InputError
from factormodels.fact_graph import FactGraph
from factormodels.parameter_settings import drawn_probabilities, log_tables
from inference.backend import Backend, ZeroPartitionError
from inference.batch import settings_results
from inference.posterior import Status
from inference.registry import as_backend

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
"""Levels of the quantiles by default: the median, the middle half and the middle 95 percent."""

_NUMBERS_AT_A_TIME = 2**24
"""Draws are run in parts of so many numbers of log tables, 128 MB of them."""


@dataclass(frozen=True, eq=False)
class AveragedPosterior:
    """Posteriors of atoms over draws of the relation probabilities.

    Attributes:
        atom_ids: ids of the atoms, in order.
        mean: float64 (n_atoms,), mean over draws of the probability of being true.
        standard_deviation: float64 (n_atoms,), over draws (divisor draws - 1).
        levels: float64 (n_levels,), levels of the quantiles.
        quantiles: float64 (n_atoms, n_levels), over draws.
        posteriors: float64 (draws, n_atoms), the probability of being true in each draw.
        relation_probabilities: float64 (draws, n_relations), what was drawn, one column per
            relation of the fact graph; neutral ones keep theirs.
        not_converged: number of draws for which the backend did not converge; 0 for `exact`.
    """

    atom_ids: tuple[str, ...]
    mean: NDArray[np.float64]
    standard_deviation: NDArray[np.float64]
    levels: NDArray[np.float64]
    quantiles: NDArray[np.float64]
    posteriors: NDArray[np.float64]
    relation_probabilities: NDArray[np.float64]
    not_converged: int

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Monte Carlo standard error of `mean`, (n_atoms,)."""
        return self.standard_deviation / math.sqrt(len(self.posteriors))


def averaged(
    fact_graph: FactGraph,
    *,
    encoding: str,
    concentration: float,
    draws: int,
    seed: int,
    backend: str | Backend = "auto",
    levels: Sequence[float] = LEVELS,
) -> AveragedPosterior:
    """Posteriors of atoms averaged over draws of the relation probabilities.

    The law: independently for every relation that is not neutral, with recorded probability p*,
    p ~ Beta(c p*, c (1 - p*)), c the concentration. Its mean is p* and its variance
    p* (1 - p*) / (c + 1). A p* of 0 or 1 stays fixed. All draws count equally: they are of what the
    relation model might have said, and are not weighted by the partition function, which holds
    no observation of it.

    The structure is the same in all draws, which run as one batch (`inference.infer_settings`):
    where that is exact it is planned once, and the answer is that of one run per draw to the last
    bit.

    Args:
        fact_graph: the fact graph.
        encoding: name of the encoding of relations.
        concentration: c, at least 1e-6; the larger, the closer draws are to p*.
        draws: number of draws, at least 2.
        seed: seed of the draws, a whole number not below 0. Settings of the backend, its own
            seed among them, are the same for every draw.
        backend: name of a registered backend, or one that is built already.
        levels: levels of the quantiles, in [0, 1].

    Raises:
        InputError: for an unknown encoding or backend, or a number outside its range.
        ZeroPartitionError: if no assignment has positive potential in some draw.
        InferenceError: if the backend cannot answer for this graph.
    """
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 2:
        raise InputError(f"draws is {draws!r}; give a whole number of at least 2")
    checked = _checked_levels(levels)
    built = as_backend(backend)
    drawn = drawn_probabilities(fact_graph, concentration=concentration, draws=draws, seed=seed)
    graph = fact_graph.to_factor_graph(encoding)
    n_atoms = len(fact_graph.atoms)
    posteriors = np.empty((draws, n_atoms))
    not_converged = 0
    at_a_time = max(1, _NUMBERS_AT_A_TIME // max(1, len(graph.log_values)))
    for first in range(0, draws, at_a_time):
        rows = log_tables(
            fact_graph,
            relation_probabilities=drawn[first : first + at_a_time],
            encoding=encoding,
        )
        for draw, found in enumerate(settings_results(graph, rows, built), first):
            if isinstance(found, ZeroPartitionError):
                raise _contradiction(draw) from None
            if isinstance(found, FactormodelsError):
                raise found
            posteriors[draw] = found.marginals.flat[1 : 2 * n_atoms : 2]
            not_converged += found.status not in (Status.EXACT, Status.CONVERGED)
    return AveragedPosterior(
        atom_ids=fact_graph.atom_ids,
        mean=posteriors.mean(axis=0),
        standard_deviation=posteriors.std(axis=0, ddof=1),
        levels=checked,
        quantiles=np.quantile(posteriors, checked, axis=0).T,
        posteriors=posteriors,
        relation_probabilities=drawn,
        not_converged=not_converged,
    )


def _contradiction(draw: int) -> ZeroPartitionError:
    return ZeroPartitionError(
        f"draw {draw} of the relation probabilities leaves no assignment possible: relations "
        "of probability 0 or 1 contradict each other or a prior; correct them, or raise the "
        "concentration if they were drawn so"
    )


def _checked_levels(levels: Sequence[float]) -> NDArray[np.float64]:
    checked = np.asarray(levels, dtype=np.float64)
    if checked.ndim != 1 or not ((checked >= 0.0) & (checked <= 1.0)).all():
        raise InputError(f"levels is {levels!r}; give a list of numbers between 0 and 1")
    return checked
