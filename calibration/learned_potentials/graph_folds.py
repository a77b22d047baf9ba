"""Cross-fitting: what the labels teach without each fold of responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibration.folds import response_folds
from calibration.learned_potentials.graph_fitting import fit_potentials
from calibration.learned_potentials.learned import LearnedPotentials
from calibration.learned_potentials.objectives import with_labels
from calibration.learned_potentials.terms import Parameters, Potentials, resolve
from calibration.validation import Integers
from factormodels.fact_graph import FactGraph

WHOLE = -1
"""In place of a fold: responses without a label, for which all labelled ones are others."""


@dataclass(frozen=True, eq=False)
class CrossFitting:
    """Responses in folds, and how to learn without one of them.

    Attributes:
        graphs: the r responses, in order.
        fold: int64 (r,), the fold of each, or `WHOLE`.
        potentials: what is learned.
        settings: settings of `fit_potentials`.
    """

    graphs: tuple[FactGraph, ...]
    fold: Integers
    potentials: Potentials
    settings: Mapping[str, Any]

    @cached_property
    def parameters(self) -> Parameters:
        """The free numbers over all labelled responses; what these state decides them, no label."""
        return resolve(self.potentials, self._others(WHOLE))

    def without(self, number: int) -> LearnedPotentials:
        """What the labelled responses outside a fold teach; outside `WHOLE`, all of them.

        A parameter that responses without a label alone hold stays at its start.

        Raises:
            InputError: as `fit_potentials` does.
            InferenceError: if the backend cannot answer for these responses.
        """
        parameters = self.parameters
        if number == WHOLE and (self.fold == WHOLE).any():
            known = {item.name for item in parameters}
            every = resolve(self.potentials, self.graphs)
            parameters = (*parameters, *(item for item in every if item.name not in known))
        taught = self._others(number)
        how = {"quiet": True, **self.settings}
        return fit_potentials(taught, self.potentials, parameters=parameters, **how)

    def learned(self) -> tuple[dict[int, LearnedPotentials], list[FactGraph]]:
        """What is taught without each fold, and every response with what its own is not part of.

        Raises:
            InputError: as `fit_potentials` does.
            InferenceError: if the backend cannot answer for these responses.
        """
        own = self.fold.tolist()
        fits = {number: self.without(number) for number in sorted(set(own))}
        return fits, [
            fits[number].apply(graph) for graph, number in zip(self.graphs, own, strict=True)
        ]

    def _others(self, number: int) -> list[FactGraph]:
        """The labelled responses that are not of a fold."""
        places = np.flatnonzero((self.fold != number) & (self.fold != WHOLE))
        return [self.graphs[place] for place in places]


def labelled_folds(graphs: Sequence[FactGraph], n_folds: int, seed: int) -> Integers:
    """The fold of every response, int64 (r,): even among those with a label, `WHOLE` of the others.

    Raises:
        InputError: if no response has a label, or for a number of folds outside its range.
    """
    kept = {graph.id for graph in with_labels(graphs)}
    places = [place for place, graph in enumerate(graphs) if graph.id in kept]
    fold = np.full(len(graphs), WHOLE)
    fold[places] = response_folds([graphs[place].id for place in places], n_folds, seed)
    return fold


def cross_fitting(
    graphs: Sequence[FactGraph],
    potentials: Potentials,
    *,
    n_folds: int = 5,
    seed: int = 0,
    **settings: Any,
) -> CrossFitting:
    """Cross-fitting of potentials; nothing is fitted yet.

    Args:
        graphs: the responses.
        potentials: what is learned.
        n_folds: number of folds, from 2 to the number of responses with a label.
        seed: seed of the folds.
        settings: settings of `fit_potentials`.

    Raises:
        InputError: if no response has a label, or for a number of folds outside its range.
    """
    return CrossFitting(tuple(graphs), labelled_folds(graphs, n_folds, seed), potentials, settings)
