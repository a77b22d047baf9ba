"""Label shift: the share of true claims re-estimated from responses that nobody has labelled.

What is learned on one model's responses is used on another's, where another share of claims is
true. If what evidence says of true and of false claims stays as it was, the joint distribution of
the atoms of a new response is that of the learned graph times (share / old share) for each true
atom and (1 - share) / (1 - old share) for each false one. Its log Z less that of the learned graph
is the log likelihood of the share, and expectation-maximisation climbs it: the share becomes the
mean posterior of the atoms under the last share. Where atoms are independent this is the EM of
Saerens, Latinne and Decaestecker 2002 (Neural Computation 14), known as EMQ; here posteriors are
those of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from calibration.intervals import student_quantile
from calibration.learned_priors.backend_likelihoods import Engine
from calibration.learned_priors.design import design
from calibration.learned_priors.parameters import Parameters
from calibration.learned_priors.specification import Specification
from calibration.learned_priors.uncertainty import CONFOUNDED
from calibration.scores.miscalibration.logistic import sigmoid
from calibration.validation import Floats, open_interval, whole_number
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from inference.backend import Backend
from inference.registry import as_backend

_EDGE = 1e-4
"""A share as near to 0 or 1 stands at the boundary."""

_CRAWL = 100
"""After so many iterations the maximum that lies ahead is looked for between two points instead."""

_STEP = 1e-3
"""Step on the logit scale of the derivative of the score."""


class AdaptationStatus(StrEnum):
    """Whether unlabelled responses determine the share of true claims."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not_converged"
    BOUNDARY = "boundary"
    """The likelihood grows up to a share of 0 or 1."""
    UNIDENTIFIED = "unidentified"
    """The evidence hardly depends on truth: any share suits it."""


@dataclass(frozen=True)
class AdaptedPrior:
    """The share of true claims among unlabelled responses.

    Attributes:
        share: the maximum likelihood estimate.
        lower: lower end of its interval; nan without one.
        upper: upper end.
        standard_error: on the logit scale, clustered by response; nan without one.
        old_share: the share among the responses that were learned from.
        iterations: iterations of the expectation-maximisation.
        status: whether the responses determine the share.
    """

    share: float
    lower: float
    upper: float
    standard_error: float
    old_share: float
    iterations: int
    status: AdaptationStatus

    def apply(self, graph: FactGraph) -> FactGraph:
        """Response whose atoms' prior odds are multiplied by the odds ratio of the two shares."""
        shift = _logit(self.share) - _logit(self.old_share)
        atoms = []
        for atom in graph.atoms:
            prior = atom.prior
            if 0.0 < prior < 1.0:
                prior = _share_of(_logit(prior) + shift)
            atoms.append(replace(atom, prior=prior))
        return replace(graph, atoms=tuple(atoms))


def adapt_prior(
    graphs: Sequence[FactGraph],
    old_share: float,
    *,
    encoding: str = DEFAULT_ENCODING,
    backend: str | Backend = "auto",
    level: float = 0.95,
    max_iterations: int = 10_000,
    tolerance: float = 1e-8,
) -> AdaptedPrior:
    """Share of true claims of responses without labels, by expectation-maximisation.

    The interval is Student's on the logit scale, from the sandwich over responses. It takes what
    was learned, and the old share, as they are. Labels of the responses play no part.

    Args:
        graphs: the responses, with what was learned elsewhere: `LearnedPriors.apply_all`.
        old_share: the share of true claims among the labels that this was learned from.
        encoding: the one it was learned with; not *conditional*, under which the prior of atoms is
            part of the tables of relations too.
        backend: the inference backend, by name or built.
        level: nominal coverage of the interval.
        max_iterations: after this many, the search ends as not converged.
        tolerance: it ends where an iteration moves the share by less.

    Raises:
        InputError: for no responses, a share outside (0, 1), the encoding *conditional*, or bad
            settings.
        InferenceError: if the backend cannot answer for these responses.
    """
    old = open_interval(old_share, "old_share", 0, 1)
    level = open_interval(level, "level", 0, 1)
    max_iterations = whole_number(max_iterations, "max_iterations", 1)
    if encoding == "conditional":
        raise InputError(
            "under 'conditional' the prior of atoms is part of the tables of relations too, so "
            "that it cannot be replaced alone; learn under 'implication' or 'mixture'"
        )
    shares = _Shares(graphs, old, encoding, as_backend(backend))
    share, moved, iterations = old, 1.0, 0
    while moved > tolerance and iterations < max_iterations:
        if iterations >= _CRAWL:
            share, moved = shares.climbed(share), 0.0
            break
        mean = float(shares.means(share).sum() / shares.sizes.sum())
        # An end of the range would be kept for ever.
        mean = min(max(mean, _EDGE / 10), 1.0 - _EDGE / 10)
        moved, share, iterations = abs(mean - share), mean, iterations + 1
    return _known(shares, share, iterations, moved <= tolerance, level)


class _Shares:
    """Sums of the atoms' posteriors over each response at any share."""

    def __init__(
        self, graphs: Sequence[FactGraph], old: float, encoding: str, backend: Backend
    ) -> None:
        stated = Specification(None, None, None, encoding)
        self._design = design(graphs, stated, Parameters(()))
        self._engine = Engine(backend, self._design.graph)
        self._atoms = np.flatnonzero(self._design.facts.is_atom)
        self._owners = self._design.owners[self._atoms]
        self.old = old
        self.sizes = np.bincount(self._owners, minlength=len(graphs)).astype(np.float64)
        if not len(self._atoms):
            raise InputError("the responses hold no atom; give some with claims")

    def means(self, share: float) -> Floats:
        """Sum of the posteriors of each response's atoms at a share, (r,)."""
        values = self._design.graph.log_values.copy()
        unary, _ = self._design.facts.split(values)
        unary[self._atoms, 1] += np.log(share / self.old)
        unary[self._atoms, 0] += np.log((1.0 - share) / (1.0 - self.old))
        values.flags.writeable = False
        true = self._engine(values, None).true[self._atoms]
        sums: Floats = np.bincount(self._owners, true, minlength=len(self.sizes)).astype(np.float64)
        return sums

    def climbed(self, share: float) -> float:
        """Where expectation-maximisation comes to rest: the next maximum that it moves towards."""
        from scipy.optimize import brentq

        def slope(at: float) -> float:
            return float(self.scores(_share_of(at)).sum())

        at, end = _logit(share), _logit(1.0 - _EDGE / 10)
        ahead = slope(at)
        step = math.copysign(0.5, ahead)
        while ahead * (found := slope(at + step)) > 0.0:
            at += step
            if abs(at) >= end:
                return _share_of(math.copysign(end, at))
        return _share_of(brentq(slope, at, at + step, xtol=1e-9)) if found else _share_of(at + step)

    def scores(self, share: float) -> Floats:
        """Derivative of each response's log likelihood by the logit of the share, (r,)."""
        return self.means(share) - share * self.sizes


def _known(
    shares: _Shares, share: float, iterations: int, settled: bool, level: float
) -> AdaptedPrior:
    at = _logit(share)
    ends = [shares.scores(_share_of(at + sign * _STEP)) for sign in (1, -1)]
    curvature = -float((ends[0] - ends[1]).sum()) / (2.0 * _STEP)
    scores = shares.scores(share)
    n = len(scores)
    error = np.nan
    if curvature > 0.0 and n > 1:
        error = float(np.sqrt(n / (n - 1) * scores @ scores) / curvature)
    # The score of a response that says nothing is 0, so that the sandwich says nothing of it.
    if not _EDGE < share < 1.0 - _EDGE:
        status = AdaptationStatus.BOUNDARY
    elif not curvature > 1.0 / CONFOUNDED**2:
        status = AdaptationStatus.UNIDENTIFIED
    else:
        status = AdaptationStatus.CONVERGED if settled else AdaptationStatus.NOT_CONVERGED
    lower = upper = np.nan
    if status in (AdaptationStatus.CONVERGED, AdaptationStatus.NOT_CONVERGED) and n > 1:
        reach = float(student_quantile(level, n - 1)) * error
        lower, upper = sigmoid(np.array([at - reach, at + reach])).tolist()
    else:
        error = np.nan
    return AdaptedPrior(share, lower, upper, error, shares.old, iterations, status)


def _share_of(logit: float) -> float:
    return float(sigmoid(np.array([logit]))[0])


def _logit(p: float) -> float:
    return float(np.log(p) - np.log1p(-p))
