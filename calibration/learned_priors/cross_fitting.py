"""Cross-fitting: what the labels teach without each fold of responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibration.folds import response_folds
from calibration.learned_priors.fitting import checked_scale, fit_parameters
from calibration.learned_priors.learned import LearnedPriors
from calibration.learned_priors.objectives import Objective, with_labels
from calibration.learned_priors.parameters import Parameters, resolve
from calibration.learned_priors.specification import Specification
from calibration.validation import Integers, member_named, whole_number
from factormodels.fact_graph import FactGraph
from inference.backend import Backend
from inference.registry import as_backend


@dataclass(frozen=True, eq=False)
class CrossFitting:
    """Labelled responses in folds, and how to learn without one of them.

    Attributes:
        graphs: the responses with a label, in order.
        fold: int64 (n_responses,), the fold of each.
        specification: what is learned.
        parameters: its free numbers over all these responses; what the graphs state decides them,
            no label does.
        backend: the inference backend.
        objective: what is minimised.
        penalty: as in `fit`.
        max_iterations: as in `fit`.
    """

    graphs: tuple[FactGraph, ...]
    fold: Integers
    specification: Specification
    parameters: Parameters
    backend: Backend
    objective: Objective
    penalty: float | None
    max_iterations: int

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def without(self, number: int) -> LearnedPriors:
        """What the responses outside a fold teach.

        Raises:
            InputError: as `fit` does.
            InferenceError: if the backend cannot answer for these responses.
        """
        others = [graph for graph, own in zip(self.graphs, self.fold, strict=True) if own != number]
        return self._fitted(others, self.parameters)

    def whole(self, unseen: Sequence[FactGraph] = ()) -> LearnedPriors:
        """What all labelled responses teach, for responses that have no label.

        Args:
            unseen: these responses; what they alone hold stays at its start.

        Raises:
            InputError: as `fit` does.
            InferenceError: if the backend cannot answer for these responses.
        """
        known = self.parameters.index
        more = resolve(self.specification, (*self.graphs, *unseen)).items if unseen else ()
        items = (*self.parameters.items, *(one for one in more if one.key not in known))
        return self._fitted(self.graphs, Parameters(items))

    def _fitted(self, graphs: Sequence[FactGraph], parameters: Parameters) -> LearnedPriors:
        return fit_parameters(
            graphs,
            self.specification,
            parameters,
            backend=self.backend,
            objective=self.objective,
            penalty=self.penalty,
            max_iterations=self.max_iterations,
            quiet=True,
        )


def cross_fitting(
    graphs: Sequence[FactGraph],
    specification: Specification,
    *,
    n_folds: int = 5,
    seed: int = 0,
    objective: str = Objective.LIKELIHOOD,
    backend: str | Backend = "auto",
    penalty: float | None = None,
    max_iterations: int = 500,
) -> CrossFitting:
    """Cross-fitting of a specification; nothing is fitted yet.

    Args:
        graphs: the responses; those without labels play no part.
        specification: what is learned.
        n_folds: number of folds, from 2 to the number of responses with a label.
        seed: seed of the folds.
        objective, backend, penalty, max_iterations: as in `fit`.

    Raises:
        InputError: as `fit` does, or for a number of folds outside its range.
        MissingDependencyError: if a library that the backend needs is not installed.
    """
    kept = with_labels(graphs)
    return CrossFitting(
        graphs=tuple(kept),
        fold=response_folds([graph.id for graph in kept], n_folds, seed),
        specification=specification,
        parameters=resolve(specification, kept),
        backend=as_backend(backend),
        objective=member_named(Objective, objective, "objective"),
        penalty=checked_scale(penalty, "penalty"),
        max_iterations=whole_number(max_iterations, "max_iterations", 1),
    )
