"""Scores that are means of a measure over responses, as in FactReasoner's tables.

The measures are those of `calibration.scores.measures`, computed for many responses at once.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from calibration.intervals import Scale
from calibration.scores.definition import POSITIVE, JudgedClaims, ScoreDefinition, per_response
from calibration.scores.measures import entropy_terms, f1_of_counts, surprisal_terms, verdicts
from calibration.validation import Floats


def _counted(verdict: int, judged: JudgedClaims) -> Floats:
    return judged.grouping.sums(verdicts(judged.p) == verdict)


def _f1_at_k(judged: JudgedClaims) -> Floats:
    supported = judged.grouping.sums(judged.supported)
    return f1_of_counts(supported, judged.grouping.sizes, judged.k)


def _f1_of_each(judged: JudgedClaims) -> Floats:
    """F1 of the class of true claims in each response; 0 if no claim is true or supported."""
    sums = judged.grouping.sums
    both, either = sums(judged.supported & (judged.y == 1)), sums(judged.supported) + sums(judged.y)
    f1: Floats = 2 * both / np.maximum(either, 1)
    return f1


def _precision_error(judged: JudgedClaims) -> Floats:
    grouping = judged.grouping
    supported, true = grouping.sums(judged.supported), grouping.sums(judged.y)
    return np.abs(supported - true) / grouping.sizes


FAMILY = (
    ScoreDefinition(
        name="precision",
        title="Pr",
        meaning="share of atoms with p > 1/2, mean over responses",
        higher_is_better=True,
        needs_labels=False,
        scale=Scale.PROBABILITY,
        ratio=per_response(lambda judged: judged.grouping.means(judged.supported)),
    ),
    ScoreDefinition(
        name="f1_at_k",
        title="F1@K",
        meaning="harmonic mean of Pr and recall up to K, over responses",
        higher_is_better=True,
        needs_labels=False,
        ratio=per_response(_f1_at_k),
    ),
    ScoreDefinition(
        name="entropy",
        title="E",
        meaning="mean of -p log10 p, mean over responses",
        higher_is_better=None,
        needs_labels=False,
        scale=Scale.POSITIVE,
        range=POSITIVE,
        ratio=per_response(lambda judged: judged.grouping.means(entropy_terms(judged.p))),
    ),
    ScoreDefinition(
        name="precision_mae",
        title="MAE",
        meaning="mean over responses of |Pr - Pr*|",
        higher_is_better=False,
        ratio=per_response(_precision_error),
    ),
    ScoreDefinition(
        name="f1_by_response",
        title="F1 by response",
        meaning="F1 of the class of true atoms, mean over responses",
        higher_is_better=True,
        ratio=per_response(_f1_of_each),
    ),
    ScoreDefinition(
        name="expected_precision",
        title="E[Pr]",
        meaning="mean of p, mean over responses",
        higher_is_better=True,
        needs_labels=False,
        ratio=per_response(lambda judged: judged.grouping.means(judged.p)),
    ),
    ScoreDefinition(
        name="mean_surprisal",
        title="Surprisal",
        meaning="mean of -log10 p, mean over responses",
        higher_is_better=False,
        needs_labels=False,
        scale=Scale.POSITIVE,
        range=POSITIVE,
        ratio=per_response(lambda judged: judged.grouping.means(surprisal_terms(judged.p))),
    ),
    ScoreDefinition(
        name="human_precision",
        title="Pr*",
        meaning="share of atoms labeled true, mean over responses",
        higher_is_better=None,
        scale=Scale.PROBABILITY,
        ratio=per_response(lambda judged: judged.grouping.means(judged.y)),
        of_labels=True,
    ),
    *(
        ScoreDefinition(
            name=name,
            title=title,
            meaning=f"number of atoms with p {sign} 1/2, mean over responses",
            higher_is_better=better,
            needs_labels=False,
            scale=Scale.POSITIVE,
            range=POSITIVE,
            ratio=per_response(partial(_counted, verdict)),
        )
        for name, title, sign, verdict, better in (
            ("supported", "#S", ">", 1, True),
            ("contradicted", "#C", "<", -1, False),
            ("undecided", "#U", "=", 0, None),
        )
    ),
)
