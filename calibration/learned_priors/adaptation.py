"""Label shift: the share of true claims re-estimated from responses that nobody has labelled.

What is learned on one model's responses is used on another's, where another share of claims is
true. If what evidence says of true and of false claims stays as it was, the joint distribution of
the atoms of a new response is that of the learned graph times (share / old share) for each true
atom and (1 - share) / (1 - old share) for each false one. Its log Z less that of the learned graph
is the log likelihood of the share, and expectation-maximisation climbs it: the share becomes the
mean posterior of the atoms under the last share. Where atoms are independent this is the EM of
Saerens, Latinne and Decaestecker 2002 (Neural Computation 14), known as EMQ; here posteriors are
those of the graph. That what evidence says did stay as it was is tested
(`calibration.learned_potentials.shift`): where the mixture of the two learned distributions does
not give the new one, there is no estimate.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from calibration.intervals import student_quantile
from calibration.learned_potentials.shift import LawOfEvidence, shift_of
from calibration.learned_priors.backend_likelihoods import Engine
from calibration.learned_priors.design import design
from calibration.learned_priors.evidence_fit import evidence_of
from calibration.learned_priors.parameters import Parameters
from calibration.learned_priors.specification import Specification
from calibration.learned_priors.uncertainty import CONFOUNDED
from calibration.scores.logistic import sigmoid
from calibration.validation import Floats, Integers, open_interval, whole_number
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import InputError
from factormodels.evidence_source import evidence_sources, other_sources
from factormodels.fact_graph import FactGraph
from inference.backend import Backend
from inference.registry import as_backend

logger = logging.getLogger(__name__)

_EDGE = 1e-4
"""A share as near to 0 or 1 stands at the boundary."""

_CRAWL = 100
"""After so many iterations the maximum that lies ahead is looked for between two points instead."""

_STEP = 1e-3
"""Step on the logit scale of the derivative of the score."""

_ALARM = 0.05
"""Evidence that is a mixture of what was learned is refused with this probability."""

_NEARLY_CERTAIN = 1e-12


class AdaptationStatus(StrEnum):
    """Whether unlabelled responses determine the share of true claims."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not_converged"
    BOUNDARY = "boundary"
    """The likelihood grows up to a share of 0 or 1."""
    UNIDENTIFIED = "unidentified"
    """The evidence hardly depends on truth: any share suits it."""
    OTHER_EVIDENCE = "other_evidence"
    """No mixture of the evidence of true and of false claims that was learned gives this one."""
    TOO_FEW = "too_few_responses"
    """One response, here or among those learned from: nothing says how responses vary."""


@dataclass(frozen=True)
class AdaptedPrior:
    """The share of true claims among unlabelled responses.

    Attributes:
        share: the maximum likelihood estimate; nan if the evidence is other than it was, or that
            cannot be told.
        lower: lower end of its interval; nan without one.
        upper: upper end.
        standard_error: on the logit scale, clustered by response; nan without one.
        old_share: the share among the responses that were learned from.
        iterations: iterations of the expectation-maximisation.
        status: whether the responses determine the share.
        evidence_p: p-value of the hypothesis that their evidence is a mixture of that of the claims
            labelled true and that of those labelled false; nan for too few responses.
    """

    share: float
    lower: float
    upper: float
    standard_error: float
    old_share: float
    iterations: int
    status: AdaptationStatus
    evidence_p: float

    @property
    def determined(self) -> bool:
        """Whether the responses determine the share."""
        return self.status is AdaptationStatus.CONVERGED

    def apply(self, graph: FactGraph) -> FactGraph:
        """Response whose atoms' prior odds are multiplied by the odds ratio of the two shares.

        The learned prior stays where the responses do not determine their share.
        """
        if not self.determined:
            return graph
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
    labelled: Sequence[FactGraph],
    *,
    encoding: str = DEFAULT_ENCODING,
    backend: str | Backend = "auto",
    level: float = 0.95,
    max_iterations: int = 10_000,
    tolerance: float = 1e-8,
    n_bootstrap: int = 1000,
    seed: int = 0,
) -> AdaptedPrior:
    """Share of true claims of responses without labels, by expectation-maximisation.

    It holds if their evidence is distributed, given truth, as it was among the responses that were
    learned from. That is tested at 5 % by `shift_of`, and the share refused if it fails.
    Where the graphs say that another relation model, retriever or number of passages made it, a
    warning says so.
    The interval is Student's on the logit scale, from the sandwich over responses. It takes what
    was learned, and the old share, as they are. Labels of the responses play no part.

    Args:
        graphs: the responses, with what was learned elsewhere: `LearnedPriors.apply_all`.
        labelled: those that it was learned from, with what was learned as well.
        encoding: the one it was learned with; not *conditional*, under which the prior of atoms is
            part of the tables of relations too.
        backend: the inference backend, by name or built.
        level: nominal coverage of the interval.
        max_iterations: after this many, the search ends as not converged.
        tolerance: it ends where an iteration moves the share by less.
        n_bootstrap: replicates of the test.
        seed: seed of the replicates.

    Raises:
        InputError: for no responses, labels that are not of both kinds, the encoding *conditional*,
            or bad settings.
        InferenceError: if the backend cannot answer for these responses.
    """
    level = open_interval(level, "level", 0, 1)
    max_iterations = whole_number(max_iterations, "max_iterations", 1)
    n_bootstrap, seed = whole_number(n_bootstrap, "n_bootstrap", 1), whole_number(seed, "seed", 0)
    if encoding == "conditional":
        raise InputError(
            "under 'conditional' the prior of atoms is part of the tables of relations too, so "
            "that it cannot be replaced alone; learn under 'implication' or 'mixture'"
        )
    old = labelled_share(labelled)
    if strange := other_sources(evidence_sources(labelled), evidence_sources(graphs)):
        logger.warning("%s", strange)
    solver = as_backend(backend)
    shares = _Shares(graphs, old, encoding, solver)
    share, moved, iterations = old, 1.0, 0
    while moved > tolerance and iterations < max_iterations:
        if iterations >= _CRAWL:
            share, moved = shares.climbed(share), 0.0
            break
        mean = float(shares.means(share).sum() / shares.sizes.sum())
        # An end of the range would be kept for ever.
        mean = min(max(mean, _EDGE / 10), 1.0 - _EDGE / 10)
        moved, share, iterations = abs(mean - share), mean, iterations + 1
    found = _known(shares, share, iterations, moved <= tolerance, level)
    known, labels = _Shares(labelled, old, encoding, solver).evidence()
    p_value = shift_of(
        known.of(np.flatnonzero(labels == 1)),
        known.of(np.flatnonzero(labels == 0)),
        shares.evidence()[0],
        np.nan,
        n_bootstrap=n_bootstrap,
        seed=seed,
    ).p_value
    found = replace(found, evidence_p=p_value)
    # Evidence that says nothing says nothing else than it did.
    if found.status is AdaptationStatus.UNIDENTIFIED or p_value >= _ALARM:
        return found
    few = np.isnan(p_value)
    return replace(
        found,
        share=np.nan,
        lower=np.nan,
        upper=np.nan,
        standard_error=np.nan,
        status=AdaptationStatus.TOO_FEW if few else AdaptationStatus.OTHER_EVIDENCE,
    )


def labelled_share(labelled: Sequence[FactGraph]) -> float:
    """Share of true claims among the labels of responses, which others may differ from.

    Raises:
        InputError: for no label, or if all are true or all false.
    """
    labels = [atom.label for graph in labelled for atom in graph.atoms if atom.label is not None]
    share = sum(map(float, labels)) / max(len(labels), 1)
    if not 0.0 < share < 1.0:
        told = f"all {len(labels):,} labels are {'true' if share else 'false'}"
        raise InputError(
            f"{told if labels else 'no claim has a label'}, so what is learned says nothing about "
            "other shares; give labels of both kinds"
        )
    return share


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
        self._graphs = graphs
        self.old = old
        self.sizes = np.bincount(self._owners, minlength=len(graphs)).astype(np.float64)
        if not len(self._atoms):
            raise InputError("the responses hold no atom; give some with claims")

    def means(self, share: float) -> Floats:
        """Sum of the posteriors of each response's atoms at a share, (r,)."""
        true = self._posteriors(share)
        sums: Floats = np.bincount(self._owners, true, minlength=len(self.sizes)).astype(np.float64)
        return sums

    def evidence(self) -> tuple[LawOfEvidence, Integers]:
        """Evidence of all atoms under the learned prior, and their labels, -1 for none."""
        p = np.clip(self._posteriors(self.old), _NEARLY_CERTAIN, 1.0 - _NEARLY_CERTAIN)
        evidence = evidence_of(self._graphs, np.log(p) - np.log1p(-p), self._owners)
        return evidence, self._design.clamps[self._atoms]

    def _posteriors(self, share: float) -> Floats:
        """Posterior of each atom at a share, (n,)."""
        values = self._design.graph.log_values.copy()
        unary, _ = self._design.facts.split(values)
        unary[self._atoms, 1] += np.log(share / self.old)
        unary[self._atoms, 0] += np.log((1.0 - share) / (1.0 - self.old))
        values.flags.writeable = False
        return np.asarray(self._engine(values, None).true[self._atoms])

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
    return AdaptedPrior(share, lower, upper, error, shares.old, iterations, status, np.nan)


def _share_of(logit: float) -> float:
    return float(sigmoid(np.array([logit]))[0])


def _logit(p: float) -> float:
    return float(np.log(p) - np.log1p(-p))
