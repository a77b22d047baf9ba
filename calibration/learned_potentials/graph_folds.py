"""Cross-fitting: what the labels teach without each fold of responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibration.folds import response_folds
from calibration.learned_potentials.graph_fitting import fit_potentials
from calibration.learned_potentials.learned import LearnedPotentials
from calibration.learned_potentials.objectives import Objective, problem, with_labels
from calibration.learned_potentials.terms import Parameters, Potentials, resolve
from calibration.validation import Floats, Integers
from factormodels.fact_graph import FactGraph
from inference.backend import Backend
from inference.registry import as_backend


@dataclass(frozen=True, eq=False)
class CrossFitting:
    """Labelled responses in folds, and how to learn without one of them.

    Attributes:
        graphs: the responses with a label, in order.
        fold: int64 (n_responses,), the fold of each.
        potentials: what is learned.
        parameters: its free numbers over all these responses; what the graphs state decides them,
            no label does.
        backend: the inference backend.
        fit: `fit_potentials` of responses, potentials and parameters, its settings made.
    """

    graphs: tuple[FactGraph, ...]
    fold: Integers
    potentials: Potentials
    parameters: Parameters
    backend: Backend
    fit: Callable[..., LearnedPotentials]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def without(self, number: int) -> LearnedPotentials:
        """What the responses outside a fold teach.

        Raises:
            InputError: as `fit_potentials` does.
            InferenceError: if the backend cannot answer for these responses.
        """
        others = [graph for graph, own in zip(self.graphs, self.fold, strict=True) if own != number]
        return self.fit(others, self.potentials, parameters=self.parameters)

    def learned(self) -> tuple[tuple[LearnedPotentials, ...], list[FactGraph]]:
        """What is taught without each fold, and every response with what its own is not part of.

        Raises:
            InputError: as `fit_potentials` does.
            InferenceError: if the backend cannot answer for these responses.
        """
        fits = tuple(self.without(number) for number in range(self.n_folds))
        own = zip(self.graphs, self.fold.tolist(), strict=True)
        return fits, [fits[number].apply(graph) for graph, number in own]

    def whole(self, unseen: Sequence[FactGraph] = ()) -> LearnedPotentials:
        """What all labelled responses teach, for responses that have no label.

        Args:
            unseen: these responses; what they alone hold stays at its start.

        Raises:
            InputError: as `fit_potentials` does.
            InferenceError: if the backend cannot answer for these responses.
        """
        known = {item.name for item in self.parameters}
        more = resolve(self.potentials, (*self.graphs, *unseen)) if unseen else ()
        added = (item for item in more if item.name not in known)
        parameters = (*self.parameters, *added)
        return self.fit(self.graphs, self.potentials, parameters=parameters)


def cross_fitting(
    graphs: Sequence[FactGraph],
    potentials: Potentials,
    *,
    n_folds: int = 5,
    seed: int = 0,
    backend: str | Backend = "auto",
    **settings: Any,
) -> CrossFitting:
    """Cross-fitting of potentials; nothing is fitted yet.

    Args:
        graphs: the responses; those without labels play no part.
        potentials: what is learned.
        n_folds: number of folds, from 2 to the number of responses with a label.
        seed: seed of the folds.
        backend: as in `fit_potentials`.
        settings: other settings of `fit_potentials`.

    Raises:
        InputError: as `fit_potentials` does, or for a number of folds outside its range.
        MissingDependencyError: if a library that the backend needs is not installed.
    """
    kept, built = with_labels(graphs), as_backend(backend)
    return CrossFitting(
        graphs=tuple(kept),
        fold=response_folds([graph.id for graph in kept], n_folds, seed),
        potentials=potentials,
        parameters=resolve(potentials, kept),
        backend=built,
        fit=partial(fit_potentials, backend=built, quiet=True, **settings),
    )


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Posteriors of labelled atoms under learned potentials that saw nothing of their response.

    Attributes:
        p: float64 (n,), posterior of each labelled atom under what was learned without it.
        default: float64 (n,), its posterior under the graphs as they are given.
        labels: int64 (n,), 1 for true, 0 for false.
        responses: the response id of each atom, (n,).
        atoms: the atom id of each, (n,).
        ids: ids of the r responses with a label.
        fold: int64 (r,), the fold of each.
        log_likelihood: float64 (r,), held-out log probability of all labels of each response.
        default_log_likelihood: float64 (r,), under the graphs as they are given.
        fits: what was learned without each fold.
    """

    p: Floats
    default: Floats
    labels: Integers
    responses: tuple[str, ...]
    atoms: tuple[str, ...]
    ids: tuple[str, ...]
    fold: Integers
    log_likelihood: Floats
    default_log_likelihood: Floats
    fits: tuple[LearnedPotentials, ...]


def cross_validate(crossing: CrossFitting) -> CrossValidation:
    """Posteriors and log likelihoods of every response under what the other folds teach.

    Responses are never split. A parameter that the other folds do not hold stays at its start.

    Raises:
        InputError: as `fit_potentials` does.
        InferenceError: if the backend cannot answer for these responses.
    """
    fits, applied = crossing.learned()
    learned, default = (
        _judged(graphs, crossing.potentials.encoding, crossing.backend)
        for graphs in (applied, crossing.graphs)
    )
    known = [
        (graph.id, atom.id, int(atom.label))
        for graph in crossing.graphs
        for atom in graph.atoms
        if atom.label is not None
    ]
    responses, atoms, labels = zip(*known, strict=True)
    return CrossValidation(
        p=learned[0],
        default=default[0],
        labels=np.array(labels, dtype=np.int64),
        responses=responses,
        atoms=atoms,
        ids=tuple(graph.id for graph in crossing.graphs),
        fold=crossing.fold,
        log_likelihood=learned[1],
        default_log_likelihood=default[1],
        fits=fits,
    )


def _judged(graphs: Sequence[FactGraph], encoding: str, backend: Backend) -> tuple[Floats, Floats]:
    """Posterior of each labelled atom and each response's log probability of labels."""
    as_stated = Potentials(None, None, None, encoding)
    task = problem(graphs, as_stated, (), backend, Objective.LIKELIHOOD)
    nothing = np.zeros(0)
    return task.posteriors(nothing)[0][task.design.labelled], -task.losses(nothing)
