"""Estimation of weights of graphs from labels, with standard errors and cross-fitting."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from calibration.folds import response_folds
from calibration.intervals import (
    MOST_LEVERAGE,
    RARE_KIND,
    effective_number,
    satterthwaite_freedom,
    student_quantile,
    unseen_share,
)
from calibration.learned_potentials.fitting import Objective
from calibration.learned_potentials.graph_loss import (
    LearningProblem,
    learning_problem,
    with_labels,
)
from calibration.learned_potentials.graph_potentials import Potentials, Weight, apply, weights_of
from calibration.tabular import TableOf
from calibration.validation import Floats, Integers, is_number, whole_number
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from inference.backend import Backend

logger = logging.getLogger(__name__)

_SMALL_GRADIENT = {True: 1e-5, False: 2e-3}
"""Gradient per labeled atom at convergence, for exact and for approximate inference. A standard
error corresponds to a gradient of about 0.5 divided by the root of the number of labels, so that
the remaining error is less than a thousandth, or a fifth, of a standard error."""

_AT_BOUND, _UNTOUCHED = 1e-6, 1e-6
"""Distances to a bound, and curvatures, below this count as 0. A label that depends on a weight
adds about 0.1 to its curvature."""

_CONFOUNDED, _TAKES_PART = 10.0, 0.2
"""A direction of weights with a standard error above the first number is not determined by the
labels; a weight belongs to a direction of length 1 if its entry is at least the second number."""

_Known = tuple[Floats, Floats, Floats, list[int], list[list[int]]]
"""A covariance, degrees of freedom and effective numbers of responses of the weights, weights on
which no label depends, and the confounded groups of weights."""

WHOLE = -1
"""Fold number of responses without a label, which learn from all labeled responses."""


class FitStatus(StrEnum):
    """Status of a search."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not_converged"
    """The gradient is not 0 yet, or the backend did not converge at the final weights."""
    BOUNDARY = "boundary"
    """A weight is at the end of its range: the labels push it to 0, 1 or infinity."""
    ONE_LABEL = "one_label"
    """All labels are equal, so that only the ranges of the weights stop the search."""


class ValueStatus(StrEnum):
    """Status of a learned weight."""

    OK = "ok"
    BOUNDARY = "boundary"
    UNTOUCHED = "untouched"
    """No label depends on the weight; it keeps its initial value."""
    CONFOUNDED = "confounded"
    """The weight can change, alone or together with others, without changing the objective."""


@dataclass(frozen=True)
class LearnedValue:
    """A learned probability or temperature.

    Attributes:
        name: its name.
        estimate: its value.
        lower: lower end of its interval; nan without one.
        upper: upper end.
        standard_error: clustered by response, by the delta method; nan without one.
        start: initial value of the search.
        effective: number of responses of equal size with the same information about it (Kish
            1965), by the curvature of the objective; nan without errors.
        status: whether the labels determine it.
    """

    name: str
    estimate: float
    lower: float
    upper: float
    standard_error: float
    start: float
    effective: float
    status: ValueStatus

    def may_lack_kinds(self, level: float) -> bool:
        """Return whether the labels may lack a kind of response, so that coverage is uncertain."""
        return self.effective > 0 and unseen_share(self.effective, level) > RARE_KIND


@dataclass(frozen=True, eq=False)
class LearnedPotentials:
    """Priors and strengths of relations learned from labels.

    Attributes:
        potentials: specification of the weights.
        weights: the k weights, in order.
        theta: float64 (k,), their values; log odds for probabilities.
        covariance: float64 (k, k), clustered by response; nan where unknown.
        freedom: float64 (k,), degrees of freedom of their intervals; nan where unknown.
        effective: float64 (k,), number of responses of equal size with the same information, by
            the share of each response in the curvature of the objective; nan where unknown.
        backend: name of the inference backend; for ``auto`` its choice, ``exact`` or ``lbp``.
        value: the objective at the end, without the penalty.
        n_responses: number of responses with a label.
        n_labeled: number of labeled atoms.
        iterations: iterations of the search.
        gradient: largest entry of the final gradient per labeled atom, without weights at bounds.
        status: status of the search.
        boundary: names of weights at the end of their range.
        untouched: names of weights on which no label depends.
        confounded: groups of names of weights that the labels cannot distinguish.
    """

    potentials: Potentials
    weights: tuple[Weight, ...]
    theta: Floats
    covariance: Floats
    freedom: Floats
    effective: Floats
    backend: str
    value: float
    n_responses: int
    n_labeled: int
    iterations: int
    gradient: float
    status: FitStatus
    boundary: tuple[str, ...]
    untouched: tuple[str, ...]
    confounded: tuple[tuple[str, ...], ...]

    @property
    def by_name(self) -> dict[str, float]:
        """Values of the weights by name, on the scale of the search."""
        names = (weight.name for weight in self.weights)
        return dict(zip(names, self.theta.tolist(), strict=True))

    @property
    def values(self) -> dict[str, float]:
        """The learned probabilities and temperatures by name."""
        return {weight.name: weight.natural(self.by_name[weight.name]) for weight in self.weights}

    def table(self, level: float = 0.95) -> TableOf[LearnedValue]:
        """Learned numbers with standard errors and intervals.

        Intervals use Student's t. Its degrees of freedom are the smaller of two numbers:
        `effective` - 1, which is R - 1 for R equal responses and less if a few long ones decide the
        weight, and `satterthwaite_freedom` of the influences of the responses. Intervals of
        probabilities are computed on the logit scale.

        Args:
            level: nominal coverage of the intervals.
        """
        with np.errstate(invalid="ignore"):
            errors = np.sqrt(np.diag(self.covariance)).tolist()
        quantiles = student_quantile(level, self.freedom).tolist()
        statuses = {
            **dict.fromkeys(chain(*self.confounded), ValueStatus.CONFOUNDED),
            **dict.fromkeys(self.untouched, ValueStatus.UNTOUCHED),
            **dict.fromkeys(self.boundary, ValueStatus.BOUNDARY),
        }
        rows = []
        for weight, value, error, quantile, effective in zip(
            *(self.weights, self.theta.tolist(), errors, quantiles, self.effective.tolist()),
            strict=True,
        ):
            known = weight.natural(value)
            rows.append(
                LearnedValue(
                    name=weight.name,
                    estimate=known,
                    lower=weight.natural(value - quantile * error),
                    upper=weight.natural(value + quantile * error),
                    standard_error=error * (known * (1.0 - known) if weight.is_level else 1.0),
                    start=weight.natural(weight.start),
                    effective=effective,
                    status=statuses.get(weight.name, ValueStatus.OK),
                )
            )
        return TableOf(rows)

    def apply(self, graph: FactGraph) -> FactGraph:
        """Response with the learned priors and relation probabilities.

        Encode it with `potentials.encoding` to obtain the posteriors of the fitted model.

        Raises:
            InputError: if the response has a prior or a class of relations that was not learned.
        """
        return apply(graph, self.potentials, self.by_name)


def fit_potentials(
    graphs: Sequence[FactGraph],
    potentials: Potentials | None = None,
    *,
    weights: tuple[Weight, ...] | None = None,
    objective: str = Objective.LIKELIHOOD,
    backend: str | Backend = "auto",
    penalty: float | None = None,
    max_iterations: int = 500,
    quiet: bool = False,
    with_errors: bool = True,
) -> LearnedPotentials:
    """Learn priors and strengths of relations from labels.

    SciPy's L-BFGS-B starts from the probabilities that the graphs state. Responses may be partly
    labeled; responses without labels are ignored.

    Args:
        graphs: the responses, with labels on atoms.
        potentials: specification of the weights; None for one atom prior and one temperature.
        weights: the weights, which may include weights of other responses; those keep their
            initial values. None for the weights of these responses.
        objective: ``likelihood`` (of all labels of a response together), ``log_loss`` or ``brier``
            (of each atom's posterior by itself).
        backend: an inference backend whose beliefs are the derivative of its log Z, by name or as
            an object. ``auto`` uses ``exact`` if a pass over all responses is predicted to take at
            most 2 s. Otherwise it uses ``lbp``, whose log Z approximates the model's.
        penalty: None, or the standard deviation s of a normal prior, which adds
            (theta - start)^2 / (2 s^2) to the objective for each weight.
        max_iterations: number of iterations after which the search ends as not converged.
        quiet: whether to suppress warnings.
        with_errors: whether to compute the covariance, which takes two gradients per weight.

    Raises:
        InputError: for responses without labels or with labels that the model forbids, a relation
            of probability 0 or 1 under a temperature, no weight to learn, or bad settings.
        MissingDependencyError: if a library that the backend needs is not installed, or PyTorch.
        InferenceError: if the backend cannot answer for these responses.
    """
    potentials = Potentials() if potentials is None else potentials
    weights = weights_of(potentials, graphs) if weights is None else weights
    checked_scale(penalty, "penalty")
    whole_number(max_iterations, "max_iterations", 1)
    problem = learning_problem(graphs, potentials, weights, backend, objective)
    pull = 0.0 if penalty is None else 1.0 / penalty**2
    # For operations on few numbers, threads cost more time than they save.
    with threadpool_limits(1):
        return _fitted(problem, pull, max_iterations, quiet=quiet, with_errors=with_errors)


def _fitted(
    problem: LearningProblem, pull: float, max_iterations: int, *, quiet: bool, with_errors: bool
) -> LearnedPotentials:
    """Fit a problem under a penalty with curvature `pull`."""
    weights = problem.weights
    theta, gradient, iterations = _search(problem, pull, max_iterations)
    lower, upper = (np.array([getattr(w, end) for w in weights]) for end in ("lower", "upper"))
    at_bound = np.minimum(theta - lower, upper - theta) <= _AT_BOUND
    unknown = np.full((len(theta),) * 2, np.nan)
    known: _Known = unknown, unknown.diagonal(), unknown.diagonal(), [], []
    if with_errors:
        known = _uncertainty(problem, theta, at_bound, pull)
    covariance, freedom, effective, untouched, confounded = known
    if problem.labels.min() == problem.labels.max():
        status = FitStatus.ONE_LABEL
    elif (
        iterations >= max_iterations
        or gradient > _SMALL_GRADIENT[problem.exact]
        or (problem.exact and not problem.settled(theta))
    ):
        status = FitStatus.NOT_CONVERGED
    else:
        status = FitStatus.BOUNDARY if at_bound.any() else FitStatus.CONVERGED
    names = tuple(weight.name for weight in weights)
    result = LearnedPotentials(
        potentials=problem.potentials,
        weights=weights,
        theta=theta,
        covariance=covariance,
        freedom=freedom,
        effective=effective,
        backend=problem.algorithm,
        value=problem.value_and_scores(theta)[0],
        n_responses=len(problem.graphs),
        n_labeled=len(problem.labeled),
        iterations=iterations,
        gradient=gradient,
        status=status,
        boundary=tuple(names[at] for at in np.flatnonzero(at_bound)),
        untouched=tuple(names[at] for at in untouched),
        confounded=tuple(tuple(names[at] for at in part) for part in confounded),
    )
    if not quiet:
        _warn(result)
    return result


def checked_scale(scale: float | None, name: str) -> float | None:
    """Check a standard deviation.

    Raises:
        InputError: if it is neither None nor a finite number above 0.
    """
    if scale is not None and not (is_number(scale) and 0.0 < scale < math.inf):
        raise InputError(f"{name} is {scale!r}; give a standard deviation above 0, or None")
    return scale


def _search(
    problem: LearningProblem, pull: float, max_iterations: int
) -> tuple[Floats, float, int]:
    """Optimum, its largest projected gradient per label, and the number of iterations."""
    from scipy.optimize import minimize

    n_labeled = len(problem.labeled)
    start = np.array([weight.start for weight in problem.weights], dtype=np.float64)
    bounds = np.array([(weight.lower, weight.upper) for weight in problem.weights])

    def cost(theta: Floats) -> tuple[float, Floats]:
        """Penalized cost and its gradient, per label."""
        value, scores = problem.value_and_scores(theta)
        away = theta - start
        value += 0.5 * pull * float(away @ away)
        return value / n_labeled, (scores.sum(axis=0) + pull * away) / n_labeled

    # Approximate beliefs are only accurate to the backend's tolerance.
    tolerances = {"ftol": 1e-14, "gtol": 1e-9} if problem.exact else {"ftol": 1e-12, "gtol": 1e-6}
    options = {"maxiter": max_iterations, "maxls": 40, **tolerances}
    result = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    theta = np.clip(np.asarray(result.x, dtype=np.float64), bounds[:, 0], bounds[:, 1])
    projected = theta - np.clip(theta - cost(theta)[1], bounds[:, 0], bounds[:, 1])
    return theta, float(np.abs(projected).max()), int(result.nit)


def _uncertainty(
    problem: LearningProblem, theta: Floats, at_bound: NDArray[np.bool_], pull: float
) -> _Known:
    """Covariance of the weights, what their intervals rest on, and weights that labels leave open.

    The covariance, (k, k), is clustered by response, from `_influences`. Few labels can agree with
    the model by chance. Under the likelihood and the log loss a variance is therefore at least that
    of labels which the model draws independently, the inverse of the curvature. The covariance is
    nan in rows and columns of weights at a bound, of weights on which no label depends (fourth
    result), and of confounded weights (fifth result, by group). The degrees of freedom and
    effective numbers of responses, (k,), are those of `LearnedPotentials`.

    Args:
        problem: the objective.
        theta: the optimum, (k,).
        at_bound: bool (k,), weights at a bound, where the curvature is not used.
        pull: curvature of the penalty.
    """
    covariance = np.full((len(theta),) * 2, np.nan)
    curvature, of_responses = problem.curvature(theta)
    # Where a label surprises the model, its response may bend the objective the other way.
    shares = np.maximum(np.diagonal(of_responses, axis1=1, axis2=2), 0.0)
    effective = effective_number(shares)
    freedom = effective - 1.0
    scale = np.abs(curvature).max(axis=1)
    start = np.array([weight.start for weight in problem.weights])
    flat, moved = scale <= _UNTOUCHED, np.abs(theta - start) > _AT_BOUND
    untouched = np.flatnonzero(~at_bound & flat & ~moved)
    inside = np.flatnonzero(~at_bound & ~flat)
    block = np.ix_(inside, inside)
    values, vectors = np.linalg.eigh(curvature[block])
    unsure = values < 1.0 / _CONFOUNDED**2
    parts = [np.flatnonzero(np.abs(vectors[:, at]) >= _TAKES_PART) for at in np.flatnonzero(unsure)]
    # Some weights moved to values at which no label depends on them any more.
    confounded: list[list[int]] = [[at] for at in np.flatnonzero(~at_bound & flat & moved).tolist()]
    confounded += [inside[part].tolist() for part in parts]
    if len(problem.graphs) > 1 and len(inside):
        kept = values + pull > 0.0 if pull else ~unsure
        root = vectors[:, kept] / np.sqrt(values[kept] + pull)
        influences = _influences(
            problem.value_and_scores(theta)[1][:, inside],
            of_responses[:, inside[:, None], inside],
            root,
        )
        clustered = influences.T @ influences
        if problem.objective is not Objective.BRIER:
            least = np.square(root).sum(axis=1)
            clustered += np.diag(np.maximum(least - np.diag(clustered), 0.0))
        covariance[block] = clustered
        for at, of_weight in zip(inside, influences.T, strict=True):
            freedom[at] = satterthwaite_freedom(of_weight, float(freedom[at]))
        if not pull:
            unknown = sorted({weight for part in confounded for weight in part})
            covariance[unknown, :] = covariance[:, unknown] = np.nan
    return covariance, freedom, effective, untouched.tolist(), confounded


def _influences(scores: Floats, curvatures: Floats, root: Floats) -> Floats:
    """First-order contributions of responses to weights, (r, k), whose squares sum to a variance.

    A response with a large share of the curvature pulls the weights toward its own labels, so that
    its score is too small. With the penalized curvatures H of all responses and H_i of one, its
    score s_i becomes H^(1/2) (I - H^(-1/2) H_i H^(-1/2))^(-1/2) H^(-1/2) s_i (CR2 of Bell and
    McCaffrey 2002, for the working variance H_i).

    Args:
        scores: derivatives s of each response's contribution to the objective, (r, k).
        curvatures: its second derivatives H_i, (r, k, k).
        root: H^(-1/2), (k, m) of the m directions that labels determine.
    """
    leverages, directions = np.linalg.eigh(root.T @ curvatures @ root)
    rates = 1.0 / np.sqrt(1.0 - np.clip(leverages, 0.0, MOST_LEVERAGE))
    turned = np.einsum("rji,rj->ri", directions, scores @ root)
    return np.asarray(np.einsum("rij,rj->ri", directions, rates * turned) @ root.T)


def _warn(learned: LearnedPotentials) -> None:
    remarks = (
        (
            "no label depends on %s: it keeps its initial value; fix it or drop it",
            learned.untouched,
        ),
        (
            "the labels cannot distinguish %s: other values fit equally well; fix one of them, "
            "share it, or give a penalty",
            [" and ".join(names) for names in learned.confounded if len(names) > 1],
        ),
        (
            "the labels do not determine %s: other values fit equally well; fix it or give a "
            "penalty",
            [name for name, *others in learned.confounded if not others],
        ),
        (
            "%s is at the end of its range: there is no optimum inside it; fix it or give "
            "a penalty",
            learned.boundary,
        ),
    )
    for message, names in remarks:
        for name in names:
            logger.warning(message, name)
    if learned.status is FitStatus.ONE_LABEL:
        logger.warning("all labels are equal, so that priors and reliabilities have no optimum")
    elif learned.status is FitStatus.NOT_CONVERGED:
        logger.warning(
            "the search did not converge: the largest gradient per label is %.1e after %d "
            "iterations",
            learned.gradient,
            learned.iterations,
        )


@dataclass(frozen=True, eq=False)
class CrossFitting:
    """Cross-fitting of potentials over folds of responses.

    Attributes:
        graphs: the r responses, in order.
        fold: int64 (r,), the fold of each, or `WHOLE`.
        potentials: specification of the weights.
        settings: settings of `fit_potentials`.
    """

    graphs: tuple[FactGraph, ...]
    fold: Integers
    potentials: Potentials
    settings: Mapping[str, Any]

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """Weights over all labeled responses; they do not depend on the labels."""
        return weights_of(self.potentials, self._others(WHOLE))

    def without(self, number: int) -> LearnedPotentials:
        """Fit the potentials to the labeled responses outside a fold; for `WHOLE`, to all of them.

        A weight that occurs only in the omitted responses keeps its initial value.

        Raises:
            InputError: as `fit_potentials`.
            InferenceError: if the backend cannot answer for these responses.
        """
        weights = self.weights
        if number == WHOLE and (self.fold == WHOLE).any():
            known = {weight.name for weight in weights}
            every = weights_of(self.potentials, self.graphs)
            weights = (*weights, *(weight for weight in every if weight.name not in known))
        settings = {"quiet": True, **self.settings}
        return fit_potentials(self._others(number), self.potentials, weights=weights, **settings)

    def learned(self) -> tuple[dict[int, LearnedPotentials], list[FactGraph]]:
        """Fits by omitted fold, and every response under the fit that omits its fold.

        Raises:
            InputError: as `fit_potentials`.
            InferenceError: if the backend cannot answer for these responses.
        """
        folds = self.fold.tolist()
        fits = {number: self.without(number) for number in sorted(set(folds))}
        return fits, [
            fits[number].apply(graph) for graph, number in zip(self.graphs, folds, strict=True)
        ]

    def _others(self, number: int) -> list[FactGraph]:
        """Labeled responses outside a fold."""
        places = np.flatnonzero((self.fold != number) & (self.fold != WHOLE))
        return [self.graphs[position] for position in places]


def labeled_folds(graphs: Sequence[FactGraph], n_folds: int, seed: int) -> Integers:
    """Fold of every response, int64 (r,): equal folds of labeled responses, `WHOLE` for others.

    Raises:
        InputError: if no response has a label, or for a number of folds outside its range.
    """
    kept = {graph.id for graph in with_labels(graphs)}
    places = [position for position, graph in enumerate(graphs) if graph.id in kept]
    fold = np.full(len(graphs), WHOLE)
    fold[places] = response_folds([graphs[position].id for position in places], n_folds, seed)
    return fold


def cross_fitting(
    graphs: Sequence[FactGraph],
    potentials: Potentials,
    *,
    n_folds: int = 5,
    seed: int = 0,
    **settings: Any,
) -> CrossFitting:
    """Prepare the cross-fitting of potentials without fitting them.

    Args:
        graphs: the responses.
        potentials: specification of the weights.
        n_folds: number of folds, from 2 to the number of responses with a label.
        seed: seed of the folds.
        settings: settings of `fit_potentials`.

    Raises:
        InputError: if no response has a label, or for a number of folds outside its range.
    """
    return CrossFitting(tuple(graphs), labeled_folds(graphs, n_folds, seed), potentials, settings)
