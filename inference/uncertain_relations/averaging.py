"""Posteriors averaged over draws of the relation probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from inference.backend import Backend, ZeroPartitionError
from inference.exact import Exact
from inference.kernels.elimination.propagation import ZERO
from inference.kernels.elimination.solve import plant, run_tree
from inference.parallel_elimination import LOG2_CHUNKED_TABLE
from inference.posterior import Status
from inference.registry import get_backend
from inference.uncertain_relations.relation_factors import RelationFactors, relation_factors

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
"""Levels of the quantiles by default: the median, the middle half and the middle 95 percent."""

_LEAST_CONCENTRATION = 1e-6
"""Below it, a Beta variable is 0 or 1 to rounding, and its generator runs out of range."""

_LEAST_PARAMETER = 1e-300
"""A Beta variable with a parameter below it stays at 0 or 1 to rounding."""

_BYTES_PER_ENTRY = 8


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
    backend: str | Backend = "exact",
    levels: Sequence[float] = LEVELS,
) -> AveragedPosterior:
    """Return the posteriors of atoms averaged over draws of the relation probabilities.

    The law: independently for every relation that is not neutral, with recorded probability p*,
    p ~ Beta(c p*, c (1 - p*)), c the concentration. Its mean is p* and its variance
    p* (1 - p*) / (c + 1). A p* of 0 or 1 stays fixed. Draws count alike: they are of what the
    relation model might have said, and are not weighted by the partition function, which holds
    no observation of it.

    The structure is the same in all draws. With `exact` it is planned once, and the answer is
    that of one run per draw to the last bit.

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
    _check(concentration, draws, seed)
    checked = _checked_levels(levels)
    built = get_backend(backend) if isinstance(backend, str) else backend
    factors = relation_factors(fact_graph, encoding)
    drawn = _drawn(factors.probabilities, concentration, draws, np.random.default_rng(seed))
    posteriors = np.empty((draws, factors.n_atoms))
    not_converged = 0
    for draw, (posterior, converged) in enumerate(_solved(factors, drawn, built)):
        posteriors[draw] = posterior
        not_converged += not converged
    recorded = np.array([r.probability for r in fact_graph.relations], dtype=np.float64)
    relation_probabilities = np.tile(recorded, (draws, 1))
    relation_probabilities[:, factors.columns] = drawn
    return AveragedPosterior(
        atom_ids=fact_graph.atom_ids,
        mean=posteriors.mean(axis=0),
        standard_deviation=posteriors.std(axis=0, ddof=1),
        levels=checked,
        quantiles=np.quantile(posteriors, checked, axis=0).T,
        posteriors=posteriors,
        relation_probabilities=relation_probabilities,
        not_converged=not_converged,
    )


def _drawn(
    probabilities: NDArray[np.float64],
    concentration: float,
    draws: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return (draws, m) probabilities of the relations."""
    first, second = concentration * probabilities, concentration * (1.0 - probabilities)
    moving = np.minimum(first, second) >= _LEAST_PARAMETER
    drawn = np.tile(probabilities, (draws, 1))
    drawn[:, moving] = rng.beta(first[moving], second[moving], (draws, int(moving.sum())))
    return drawn


def _solved(
    factors: RelationFactors, drawn: NDArray[np.float64], backend: Backend
) -> Iterator[tuple[NDArray[np.float64], bool]]:
    """Yield, for every draw, the posteriors of the atoms and whether they are to be relied on."""
    tree = _planted(factors, backend) if isinstance(backend, Exact) else None
    graph = factors.graph
    for draw, probabilities in enumerate(drawn):
        tables = factors.log_tables(probabilities)
        if tree is None:
            try:
                posterior = backend.infer(factors.with_log_tables(tables))
            except ZeroPartitionError:
                raise _contradiction(draw) from None
            marginals = posterior.marginals.flat
            converged = posterior.status in (Status.EXACT, Status.CONVERGED)
        else:
            code, _, marginals, _, _ = run_tree(
                graph.cardinalities,
                graph.scope_starts,
                graph.scope_variables,
                graph.table_starts,
                factors.log_values(tables),
                tree,
            )
            if code == ZERO:
                raise _contradiction(draw)
            converged = True
        yield marginals[1 : 2 * factors.n_atoms : 2], converged


def _planted(factors: RelationFactors, exact: Exact) -> object | None:
    """Return the cluster tree; None where `exact` refuses the graph or shares it over threads."""
    graph = factors.graph
    fits, tree, _, largest, _, _ = plant(
        graph.cardinalities,
        graph.scope_starts,
        graph.scope_variables,
        exact.seed,
        exact.restarts,
        exact.allowed_bytes() / _BYTES_PER_ENTRY,
    )
    return tree if fits and largest < LOG2_CHUNKED_TABLE else None


def _contradiction(draw: int) -> ZeroPartitionError:
    return ZeroPartitionError(
        f"draw {draw} of the relation probabilities leaves no assignment possible: relations "
        "of probability 0 or 1 contradict each other or a prior; correct them, or raise the "
        "concentration if they were drawn so"
    )


def _check(concentration: float, draws: int, seed: int) -> None:
    if not _LEAST_CONCENTRATION <= concentration < math.inf:
        raise InputError(
            f"the concentration {concentration!r} is not a finite number from "
            f"{_LEAST_CONCENTRATION} up; give how many observations a probability is worth"
        )
    for what, value, least in (("draws", draws, 2), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{what} is {value!r}; give a whole number of at least {least}")


def _checked_levels(levels: Sequence[float]) -> NDArray[np.float64]:
    checked = np.asarray(levels, dtype=np.float64)
    if checked.ndim != 1 or not ((checked >= 0.0) & (checked <= 1.0)).all():
        raise InputError(f"levels is {levels!r}; give a list of numbers between 0 and 1")
    return checked
