"""Cross-validation: every response judged by priors that were learned without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.estimate import Difference
from calibration.learned_priors.cross_fitting import cross_fitting
from calibration.learned_priors.learned import FitStatus, LearnedPriors
from calibration.learned_priors.objectives import Objective, problem
from calibration.learned_priors.parameters import Parameters
from calibration.learned_priors.specification import Specification
from calibration.scores.families.pointwise import LOSSES
from calibration.significance.paired import paired_bootstrap
from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from inference.backend import Backend


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Posteriors of labelled atoms under learned priors that saw nothing of their response.

    Attributes:
        p: float64 (n,), posterior of each labelled atom under the priors learned without it.
        default: float64 (n,), its posterior under the graphs as they are given.
        labels: int64 (n,), 1 for true, 0 for false.
        responses: the response id of each atom, (n,).
        atoms: the atom id of each, (n,).
        ids: ids of the r responses with a label.
        fold: int64 (r,), the fold of each.
        log_likelihood: float64 (r,), held-out log probability of all labels of each response.
        default_log_likelihood: float64 (r,), under the graphs as they are given.
        comparisons: test of learned less default by name of score: ``brier`` and ``log_loss`` are
            means over atoms; ``log_likelihood`` is that of minus the log probability of all labels
            of a response, mean over responses. Below 0, what was learned is better.
        rivals: probabilities that need no graph to learn, (n,) each, from the same folds: ``platt``
            scaling of the default, and the ``base_rate``. Where atoms are independent, a learned
            prior and temperature are hardly more than the first (docs/theory.md).
        rival_comparisons: test of learned less each rival, by its name and that of the score.
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
    comparisons: Mapping[str, Difference]
    rivals: Mapping[str, Floats]
    rival_comparisons: Mapping[str, Mapping[str, Difference]]
    fits: tuple[LearnedPriors, ...]

    def score(self, name: str) -> tuple[float, float]:
        """Mean ``brier`` or ``log_loss`` of what was learned and of the default."""
        return self._mean(self.p, name), self._mean(self.default, name)

    def rival_score(self, rival: str, name: str) -> float:
        """Mean ``brier`` or ``log_loss`` of a rival."""
        return self._mean(self.rivals[rival], name)

    def _mean(self, p: Floats, name: str) -> float:
        return float(_losses(p, self.labels, name).mean())

    @property
    def not_converged(self) -> tuple[int, ...]:
        """Folds whose search did not converge."""
        return tuple(
            number
            for number, learned in enumerate(self.fits)
            if learned.status is FitStatus.NOT_CONVERGED
        )


def cross_validate(
    graphs: Sequence[FactGraph],
    specification: Specification | None = None,
    *,
    n_folds: int = 5,
    seed: int = 0,
    objective: str = Objective.LIKELIHOOD,
    backend: str | Backend = "auto",
    penalty: float | None = None,
    max_iterations: int = 500,
    n_bootstrap: int = 2000,
    level: float = 0.95,
) -> CrossValidation:
    """Posteriors and log likelihoods of every response under priors learned without it.

    Responses are never split. A parameter that the other folds do not hold stays at its start. The
    comparison with the graphs as given is a studentised bootstrap over responses; it takes the
    learned numbers of each fold as they are, and so speaks of these fits, not of all data sets.

    Args:
        graphs: the responses; those without labels play no part.
        specification: what is learned; None: one atom prior and one temperature.
        n_folds: number of folds, from 2 to the number of responses with a label.
        seed: seed of the folds and of the bootstrap.
        objective, backend, penalty, max_iterations: as in `fit`.
        n_bootstrap: replicates of the comparison.
        level: nominal coverage of its intervals.

    Raises:
        InputError: as `fit` does, or for a number of folds outside its range.
        MissingDependencyError: if a library that the backend needs is not installed.
        InferenceError: if the backend cannot answer for these responses.
    """
    chosen = Specification() if specification is None else specification
    crossing = cross_fitting(
        graphs,
        chosen,
        n_folds=n_folds,
        seed=seed,
        objective=objective,
        backend=backend,
        penalty=penalty,
        max_iterations=max_iterations,
    )
    kept, fold = crossing.graphs, crossing.fold
    fits = tuple(crossing.without(number) for number in range(crossing.n_folds))
    applied = [fits[own].apply(graph) for graph, own in zip(kept, fold.tolist(), strict=True)]
    learned = _judged(applied, chosen.encoding, crossing.backend)
    default = _judged(kept, chosen.encoding, crossing.backend)
    labelled = [(g.id, a.id, int(a.label)) for g in kept for a in g.atoms if a.label is not None]
    labels = np.array([label for _, _, label in labelled], dtype=np.int64)
    responses = tuple(response for response, _, _ in labelled)
    held_out = {
        name: (_losses(learned[0], labels, name), _losses(default[0], labels, name), responses)
        for name in ("brier", "log_loss")
    }
    ids = tuple(graph.id for graph in kept)
    held_out["log_likelihood"] = -learned[1], -default[1], ids
    comparisons = {
        name: paired_bootstrap(*values, n_bootstrap=n_bootstrap, seed=seed, level=level)
        for name, values in held_out.items()
    }
    position = dict(zip(ids, fold.tolist(), strict=True))
    own_fold = np.array([position[name] for name in responses], dtype=np.int64)
    rivals = _rivals(default[0], labels, own_fold)
    against = {
        rival: {
            name: paired_bootstrap(
                held_out[name][0],
                _losses(p, labels, name),
                responses,
                n_bootstrap=n_bootstrap,
                seed=seed,
                level=level,
            )
            for name in ("brier", "log_loss")
        }
        for rival, p in rivals.items()
    }
    return CrossValidation(
        p=learned[0],
        default=default[0],
        labels=labels,
        responses=responses,
        atoms=tuple(atom for _, atom, _ in labelled),
        ids=ids,
        fold=fold,
        log_likelihood=learned[1],
        default_log_likelihood=default[1],
        comparisons=comparisons,
        rivals=rivals,
        rival_comparisons=against,
        fits=fits,
    )


def _judged(graphs: Sequence[FactGraph], encoding: str, backend: Backend) -> tuple[Floats, Floats]:
    """Posterior of each labelled atom and each response's log probability of labels."""
    as_stated = Specification(None, None, None, encoding)
    task = problem(graphs, as_stated, Parameters(()), backend, Objective.LIKELIHOOD)
    nothing = np.zeros(0)
    return task.posteriors(nothing)[0][task.design.labelled], -task.losses(nothing)


def _rivals(default: Floats, labels: Integers, fold: Integers) -> dict[str, Floats]:
    """Probabilities of each atom from the labels of the other folds, without a graph."""
    from calibration.recalibration import PlattRecalibrator

    platt, rate = np.empty_like(default), np.empty_like(default)
    for number in np.unique(fold):
        own, others = fold == number, fold != number
        # One true and one false atom more, so that no fold is certain of the next.
        rate[own] = (labels[others].sum() + 1) / (others.sum() + 2)
        try:
            scaled = PlattRecalibrator().fit(default[others], labels[others])
            platt[own] = scaled.predict(default[own])
        except InputError:
            # Labels of one class, or a default that is the same throughout: no slope to be learned.
            platt[own] = rate[own]
    return {"platt": platt, "base_rate": rate}


def _losses(p: Floats, labels: Integers, name: str) -> Floats:
    if_true, if_false = LOSSES[name](p)
    return np.where(labels == 1, if_true, if_false)
