"""Summary: the row of a results table, from the atoms of many responses."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.grouping import Grouping, group_by_response
from calibration.labels import LabelPolicy, apply_policy, remark_unlabelled
from calibration.scores.measures import (
    DECISION_TOLERANCE,
    choose_k,
    entropy_terms,
    f1_of_counts,
    surprisal_terms,
    verdicts,
    warn_where_entropy_misorders,
)
from calibration.scores.pointwise import accuracy, brier, f1_true, log_loss, precision_errors
from calibration.tabular import Tabular
from calibration.validation import (
    Floats,
    Integers,
    check_lengths,
    decision_tolerance,
    label_array,
    probability_array,
)
from factormodels.io.long_columns import piecewise

_UNDEFINED = float("nan")


@dataclass(frozen=True, eq=False, repr=False)
class ResponseMeasures(Tabular):
    """The measures of every response, which need no labels. Arrays have shape (n_responses,).

    Attributes:
        responses: response ids, in order of first appearance.
        n_atoms: number of atoms.
        supported: number of atoms with P > 1/2.
        contradicted: number of atoms with P < 1/2.
        undecided: number of atoms with P = 1/2, up to the tolerance.
        precision: Pr = supported / n_atoms.
        k: the K of F1@K.
        f1_at_k: harmonic mean of Pr and R_K, 0 where no atom is supported.
        entropy: E, the mean of -P log10 P.
        mean_surprisal: the mean of -log10 P.
        expected_precision: the mean of P.
    """

    columns: ClassVar = (
        *("responses", "n_atoms", "supported", "contradicted", "undecided", "precision", "k"),
        *("f1_at_k", "entropy", "mean_surprisal", "expected_precision"),
    )

    responses: Sequence[Hashable]
    n_atoms: Integers
    supported: Integers
    contradicted: Integers
    undecided: Integers
    precision: Floats
    k: Floats
    f1_at_k: Floats
    entropy: Floats
    mean_surprisal: Floats
    expected_precision: Floats


@dataclass(frozen=True)
class Summary(Tabular):
    """How one method does on one dataset; nan where a number is not defined.

    Attributes:
        n_responses: number of responses.
        n_atoms: number of atoms, labelled or not.
        n_labelled: number of atoms that have a human label.
        label_policy: what the other atoms count as in the scores.
        supported: mean over responses of the number of atoms with P > 1/2 (#S).
        contradicted: mean over responses of the number of atoms with P < 1/2 (#C).
        undecided: mean over responses of the number of atoms with P = 1/2 (#U).
        precision: mean over responses of Pr, over all atoms.
        human_precision: mean of Pr*, the share labelled true, over responses with labelled atoms.
        precision_mae: mean over the same responses of |Pr - Pr*|, both over labelled atoms.
        f1_at_k: mean over responses of F1@K.
        k_policy: how K was chosen.
        k: the K of every response; nan if it differs between them.
        entropy: mean over responses of E, base 10. It does not order responses by truth.
        mean_surprisal: mean over responses of the mean of -log10 P.
        expected_precision: mean over responses of the mean of P.
        f1: F1 of the true class, pooled over labelled atoms.
        accuracy: share of labelled atoms judged as their label says, pooled.
        brier: Brier score, pooled over labelled atoms.
        log_loss: log loss in nats, pooled over labelled atoms.
    """

    n_responses: int
    n_atoms: int
    n_labelled: int
    label_policy: str
    supported: float
    contradicted: float
    undecided: float
    precision: float
    human_precision: float
    precision_mae: float
    f1_at_k: float
    k_policy: str
    k: float
    entropy: float
    mean_surprisal: float
    expected_precision: float
    f1: float
    accuracy: float
    brier: float
    log_loss: float

    @property
    def n_unlabelled(self) -> int:
        """The number of atoms that have no human label."""
        return self.n_atoms - self.n_labelled

    def rows(self) -> list[dict[str, Any]]:
        """One row."""
        return [asdict(self)]


def measure_responses(
    p: ArrayLike,
    responses: Any,
    *,
    k: str | float = "median",
    tolerance: float = DECISION_TOLERANCE,
) -> ResponseMeasures:
    """Measures of `calibration.scores.measures` for every response at once.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        responses: response ids (n,).
        k: how the K of F1@K is chosen, as in `choose_k`.
        tolerance: an atom with |P - 1/2| up to this is undecided.

    Raises:
        InputError: for bad arrays, lengths that differ, an unknown `k`, or a bad tolerance.
    """
    probabilities = probability_array(p)
    grouping = group_by_response(responses)
    check_lengths(p=probabilities.size, responses=grouping.index.size)
    warn_where_entropy_misorders(probabilities)
    return grouped_measures(probabilities, grouping, k, decision_tolerance(tolerance))


def summarise(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    unlabelled: str = LabelPolicy.EXCLUDE,
    policy: str | None = None,
    k: str | float = "median",
    tolerance: float = DECISION_TOLERANCE,
) -> Summary:
    """Summary of a method on a dataset (the columns of FactReasoner, tables 3 to 7).

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,): True or False (1 or 0), None or nan where unlabelled; or None if the
            dataset has no labels at all.
        responses: response ids (n,).
        unlabelled: what atoms without a label count as in scores that need one, as in
            `apply_policy`: left out by default. Measures that need no labels are over all atoms.
        policy: an older name of `unlabelled`.
        k: how the K of F1@K is chosen, as in `choose_k`.
        tolerance: an atom with |P - 1/2| up to this is undecided.

    Raises:
        InputError: for bad arrays, lengths that differ, unlabelled atoms where `unlabelled` is
            ``error``, or an unknown policy or `k`.
    """
    probabilities = probability_array(p)
    labels = np.full(probabilities.size, np.nan) if y is None else label_array(y)
    grouping = group_by_response(responses)
    check_lengths(p=probabilities.size, y=labels.size, responses=grouping.index.size)
    chosen = unlabelled if policy is None else policy
    scored = apply_policy(probabilities, labels, policy=chosen)
    if y is not None:
        remark_unlabelled(scored, chosen)
    margin = decision_tolerance(tolerance)
    warn_where_entropy_misorders(probabilities)
    measures = grouped_measures(probabilities, grouping, k, margin)

    human_precision = precision_mae = f1 = share_right = squared = logarithmic = _UNDEFINED
    if scored.p.size:
        own = grouping if scored.kept.all() else grouping.of(scored.kept)
        human_precision = float(own.means(scored.y).mean())
        errors = precision_errors(scored.p, scored.y, own.index, tolerance=margin)
        precision_mae = float(errors.mean())
        f1 = f1_true(scored.p, scored.y, tolerance=margin)
        share_right = accuracy(scored.p, scored.y, tolerance=margin)
        squared = brier(scored.p, scored.y)
        logarithmic = log_loss(scored.p, scored.y)

    common_k = float(measures.k[0]) if np.ptp(measures.k) == 0 else _UNDEFINED
    return Summary(
        n_responses=len(grouping.responses),
        n_atoms=probabilities.size,
        n_labelled=probabilities.size - scored.n_unlabelled,
        label_policy=str(chosen),
        supported=float(measures.supported.mean()),
        contradicted=float(measures.contradicted.mean()),
        undecided=float(measures.undecided.mean()),
        precision=float(measures.precision.mean()),
        human_precision=human_precision,
        precision_mae=precision_mae,
        f1_at_k=float(measures.f1_at_k.mean()),
        k_policy=str(k),
        k=common_k,
        entropy=float(measures.entropy.mean()),
        mean_surprisal=float(measures.mean_surprisal.mean()),
        expected_precision=float(measures.expected_precision.mean()),
        f1=f1,
        accuracy=share_right,
        brier=squared,
        log_loss=logarithmic,
    )


def grouped_measures(
    p: Floats, grouping: Grouping, k: str | float, tolerance: float
) -> ResponseMeasures:
    """What `measure_responses` returns of arrays that were checked, without a warning."""
    signs, sizes = verdicts(p, tolerance), grouping.sizes
    supported = piecewise(_whole, grouping.sums(signs > 0))
    contradicted = piecewise(_whole, grouping.sums(signs < 0))
    ks = choose_k(k, sizes)
    return ResponseMeasures(
        responses=grouping.responses,
        n_atoms=sizes,
        supported=supported,
        contradicted=contradicted,
        undecided=piecewise(lambda n, s, c: n - s - c, sizes, supported, contradicted),
        precision=piecewise(np.divide, supported, sizes),
        k=ks,
        f1_at_k=piecewise(f1_of_counts, supported, sizes, ks),
        entropy=grouping.means(entropy_terms(p)),
        mean_surprisal=grouping.means(surprisal_terms(p)),
        expected_precision=grouping.means(p),
    )


def _whole(numbers: Floats) -> Integers:
    return numbers.astype(np.int64)
