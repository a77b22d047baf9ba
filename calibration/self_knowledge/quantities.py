"""Estimands for the quantities of the Self-Known paper, in each bin of positions and overall.

All estimands have n_positions + 1 cells; the last cell is overall.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.intervals import Estimand, RatioSums, Scale, Smooth
from calibration.self_knowledge.claims import (
    IRRELEVANT,
    SUPPORTED,
    UNSUPPORTED,
    Average,
    Claims,
)
from calibration.self_knowledge.formula import rogan_gladen, sigma, sigma_slopes
from calibration.validation import Floats, member_named
from factormodels.io.claim_records import Setting

LABELS = (("supported", SUPPORTED), ("unsupported", UNSUPPORTED), ("irrelevant", IRRELEVANT))


def label_estimands(claims: Claims, n_positions: int, average: str) -> tuple[Estimand, ...]:
    """Share and number of each kind of claim, and factuality.

    Shares are among all claims. Factuality is S/(S + NS), without irrelevant claims. Numbers are
    means over sentences with claims.
    """
    everything = np.ones(claims.label.size)
    estimands: list[Estimand] = []
    for name, code in LABELS:
        kind = (claims.label == code).astype(np.float64)
        sums = shares(claims, kind, everything, n_positions, average)
        estimands.append(sums.named(f"{name}_share"))
    estimands.append(_factuality(claims, claims.label != IRRELEVANT, n_positions, average))
    for name, code in LABELS:
        kind = (claims.label == code).astype(np.float64)
        sums = numbers(claims, kind, n_positions)
        estimands.append(sums.named(f"{name}_number", Scale.NUMBER))
    return tuple(estimands)


def judgment_estimands(
    claims: Claims, setting: Setting, n_positions: int, average: str, neither: str
) -> tuple[Estimand, ...]:
    """Factuality, share judged correct, SK, SU, sigma and Rogan-Gladen in a setting.

    All quantities use the claims that are labeled S or NS and have a judgment. The Rogan-Gladen
    estimate uses SK and SU of all positions together and the share judged correct in the bin, so
    that overall it equals the factuality.
    """
    correct, present = claims.judged_correct(setting, neither)
    judged = present & (claims.label != IRRELEVANT)
    supported = (judged & (claims.label == SUPPORTED)).astype(np.float64)
    unsupported = (judged & (claims.label == UNSUPPORTED)).astype(np.float64)

    known = shares(claims, supported * correct, supported, n_positions, average)
    unknown = shares(claims, unsupported * (1 - correct), unsupported, n_positions, average)
    judged_share = shares(claims, judged * correct, judged, n_positions, average)
    laws = (_spread(known), _spread(unknown))
    return (
        _factuality(claims, judged, n_positions, average),
        judged_share.named("judged_correct"),
        known.named("self_known"),
        unknown.named("self_unknown"),
        Smooth("sigma", (known, unknown), sigma, sigma_slopes),
        Smooth(
            "rogan_gladen",
            (judged_share, *laws),
            rogan_gladen,
            _rogan_gladen_slopes,
            Scale.NUMBER,
        ),
    )


def flip_estimands(
    claims: Claims,
    before: Setting,
    after: Setting,
    n_positions: int,
    average: str,
    neither: str,
    among_correct: bool,
) -> tuple[Estimand, ...]:
    """Flip rate of supported and of unsupported claims."""
    correct_before, present_before = claims.judged_correct(before, neither)
    correct_after, present_after = claims.judged_correct(after, neither)
    base = present_before & present_after
    if among_correct:
        base &= correct_before == 1
    flipped = base & (correct_before == 1) & (correct_after == 0)
    estimands = []
    for name, code in LABELS[:2]:
        kind = claims.label == code
        sums = shares(claims, flipped & kind, base & kind, n_positions, average)
        estimands.append(sums.named(f"{name}_flip_rate"))
    return tuple(estimands)


def shares(
    claims: Claims, numerator: Any, denominator: Any, n_positions: int, average: str
) -> RatioSums:
    """Share in each bin and overall, pooled over claims or averaged over sentences.

    Args:
        claims: the claims.
        numerator: contribution of each claim to the numerator, (n_claims,).
        denominator: contribution of each claim to the denominator, (n_claims,).
        n_positions: number of bins.
        average: ``claim`` or ``sentence``. For ``sentence``, sentences with a denominator of 0 are
            left out.
    """
    above = _per_sentence(claims, numerator)
    below = _per_sentence(claims, denominator)
    if member_named(Average, average, "average") is Average.SENTENCE:
        defined = below > 0
        above = np.divide(above, below, out=np.zeros_like(above), where=defined)
        below = defined.astype(np.float64)
    return _per_bin(claims, above, below, n_positions)


def numbers(claims: Claims, values: Any, n_positions: int) -> RatioSums:
    """Mean over sentences of the sum of `values`, (n_claims,), in each sentence."""
    above = _per_sentence(claims, values)
    return _per_bin(claims, above, np.ones_like(above), n_positions)


def _per_sentence(claims: Claims, values: Any) -> Floats:
    weights = np.asarray(values, dtype=np.float64)
    n_sentences = claims.sentence_response.size
    sums = np.bincount(claims.sentence, weights=weights, minlength=n_sentences)
    return sums.astype(np.float64, copy=False)


def _per_bin(claims: Claims, above: Floats, below: Floats, n_positions: int) -> RatioSums:
    cell = claims.sentence_response * n_positions + claims.bins(n_positions)
    size = claims.n_responses * n_positions

    def table(values: Floats) -> Floats:
        sums = np.bincount(cell, weights=values, minlength=size)
        sums = sums.reshape(claims.n_responses, n_positions)
        return np.concatenate([sums, sums.sum(axis=1, keepdims=True)], axis=1)

    return RatioSums(table(above), table(below))


def _spread(sums: RatioSums) -> RatioSums:
    """Repeat the overall ratio in every cell."""
    return RatioSums(
        np.broadcast_to(sums.numerator[:, -1:], sums.numerator.shape),
        np.broadcast_to(sums.denominator[:, -1:], sums.denominator.shape),
    )


def _factuality(
    claims: Claims, among: NDArray[np.bool_], n_positions: int, average: str
) -> Estimand:
    supported = among & (claims.label == SUPPORTED)
    return shares(claims, supported, among, n_positions, average).named("factuality")


def _rogan_gladen_slopes(
    judged_correct: Floats, self_known: Floats, self_unknown: Floats
) -> tuple[Floats, Floats, Floats]:
    prevalence = rogan_gladen(judged_correct, self_known, self_unknown)
    information = np.where(np.isnan(prevalence), np.nan, self_known + self_unknown - 1)
    return 1 / information, -prevalence / information, (1 - prevalence) / information
