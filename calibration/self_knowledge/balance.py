"""Test of the equality of sigma and factuality on the same claims.

The odds of sigma are the odds of factuality times FP/FN, where FP is the number of unsupported
claims judged correct and FN the number of supported claims judged incorrect. Sigma equals
factuality in a sample exactly if FP = FN, and in a population if both errors are equally frequent.
McNemar's test compares the two binary judgments of the same claims, by people and by the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from calibration.self_knowledge.claims import (
    FALSE,
    NEITHER,
    SUPPORTED,
    TRUE,
    UNSUPPORTED,
    Average,
    Claims,
    Neither,
    as_claims,
    position_names,
)
from calibration.self_knowledge.formula import sigma, sigma_status
from calibration.self_knowledge.positions import N_POSITIONS, OVERALL
from calibration.self_knowledge.quantities import shares
from calibration.significance.corrections import adjust
from calibration.significance.mcnemar import (
    clustered_mcnemar_counts,
    exact_mcnemar_by_response,
)
from calibration.tabular import Frame
from calibration.validation import Floats
from factormodels.io.claim_records import ClaimRecord, Setting, setting_named

FEW = 30
"""Largest number of differing responses for which the exact test replaces the clustered test."""


def in_sample_balance(
    records: Claims | Iterable[ClaimRecord],
    setting: str = Setting.NONE_OF_THE_ABOVE,
    *,
    n_positions: int = N_POSITIONS,
    neither: str = Neither.INCORRECT,
) -> Frame:
    """Test that sigma equals factuality on the same claims, by position and overall (last row).

    Columns: position; sigma, from SK and SU; factuality, S/(S + NS) among the same claims;
    false_positives, unsupported claims judged correct; false_negatives, supported claims judged
    incorrect; n_claims; n_responses; exact and asymptotic, p-values of McNemar's exact and
    chi-square tests for independent claims; clustered, p-value of the test clustered by response;
    by_response, p-value of the exact sign-flip test over responses (`exact_mcnemar_by_response`),
    nan if more than `FEW` responses have unequal numbers of the two errors; p_value, `by_response`
    if defined, else `clustered`, whose distribution is valid for many responses; corrected,
    `p_value` corrected by Holm over the bins, and uncorrected overall; status, status of sigma.

    Args:
        records: the claims.
        setting: setting in which the model was asked.
        n_positions: number of bins.
        neither: treatment of the judgment "neither", as in `self_knowledge`.

    Raises:
        InputError: for no records, or unknown settings.
    """
    claims, names = as_claims(records), position_names(n_positions)
    counts = judged_counts(claims, setting_named(setting), n_positions, neither)
    wrong_no, wrong_yes = counts[..., 0, 1:].sum(axis=-1), counts[..., 1, 0]
    sizes = counts.sum(axis=(2, 3))
    total_no, total_yes, total = (each.sum(axis=0) for each in (wrong_no, wrong_yes, sizes))
    cells = range(n_positions + 1)
    clustered = np.array(
        [
            clustered_mcnemar_counts(wrong_no[:, cell], wrong_yes[:, cell], sizes[:, cell]).p_value
            for cell in cells
        ]
    )
    net = (wrong_no - wrong_yes).astype(np.int64)
    few = (total > 0) & ((net != 0).sum(axis=0) <= FEW)
    by_response = np.array(
        [exact_mcnemar_by_response(net[:, cell]) if few[cell] else np.nan for cell in cells]
    )
    p_value = np.where(few, by_response, clustered)
    exact, asymptotic = (
        np.array([_plain(total_no[cell], total_yes[cell], total[cell], how) for cell in cells])
        for how in (True, False)
    )
    totals = counts.sum(axis=0)
    self_known, self_unknown = laws_of(totals)
    supported, unsupported = np.moveaxis(totals.sum(axis=-1), -1, 0)
    return Frame(
        position=(*names, OVERALL),
        sigma=sigma(self_known, self_unknown),
        factuality=ratio(supported, total),
        false_positives=total_yes.astype(np.int64),
        false_negatives=total_no.astype(np.int64),
        n_claims=total.astype(np.int64),
        n_responses=(sizes > 0).sum(axis=0),
        exact=exact,
        asymptotic=asymptotic,
        clustered=clustered,
        by_response=by_response,
        p_value=p_value,
        corrected=np.append(adjust(p_value[:-1]), p_value[-1]),
        status=[*map(str, sigma_status(self_known, self_unknown, supported, unsupported))],
    )


def _plain(wrong_no: float, wrong_yes: float, n_claims: float, exact: bool) -> float:
    """P-value of McNemar's test for independent claims: exact, or chi-square without correction."""
    from statsmodels.stats.contingency_tables import mcnemar

    if not wrong_no + wrong_yes:
        return 1.0 if n_claims else np.nan
    result = mcnemar([[0, int(wrong_no)], [int(wrong_yes), 0]], exact=exact, correction=False)
    return min(1.0, float(result.pvalue))


def judged_counts(claims: Claims, setting: Setting, n_positions: int, neither: str) -> Floats:
    """Counts of claims by label and judgment, float64 (n_responses, n_cells, 2, 3).

    Only claims labeled S or NS that have a judgment are counted. The third axis is the label,
    supported or unsupported. The last axis is the judgment, true, false or neither; only true
    counts as judged correct.
    """
    _, present = claims.judged_correct(setting, neither)
    codes = claims.judgments[setting]
    tables = []
    for label in (SUPPORTED, UNSUPPORTED):
        for judgment in (TRUE, FALSE, NEITHER):
            kind = present & (claims.label == label) & (codes == judgment)
            tables.append(shares(claims, kind, kind, n_positions, Average.CLAIM).numerator)
    stacked = np.stack(tables, axis=-1)
    return stacked.reshape(*stacked.shape[:-1], 2, 3)


def laws_of(totals: Floats) -> tuple[Floats, Floats]:
    """SK and SU, (...), from counts (..., 2, n_kinds) as in `judged_counts`."""
    sizes = totals.sum(axis=-1)
    known = ratio(totals[..., 0, 0], sizes[..., 0])
    return known, ratio(sizes[..., 1] - totals[..., 1, 0], sizes[..., 1])


def ratio(above: Any, below: Any) -> Floats:
    """Ratio above/below elementwise, nan where below is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)
