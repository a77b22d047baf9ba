"""Comparison of two conditions on the same responses, such as with and without retrieval (RAG)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from calibration.intervals import (
    Estimand,
    Estimates,
    IntervalSettings,
    PairedDifference,
    estimate_all,
)
from calibration.self_knowledge.claims import (
    Average,
    Claims,
    Neither,
    as_claims,
    position_names,
)
from calibration.self_knowledge.positions import DEFAULT_INTERVALS, N_POSITIONS, OVERALL
from calibration.self_knowledge.quantities import judgment_estimands, label_estimands
from calibration.significance.corrections import adjust
from calibration.significance.student import student_p_values
from calibration.tabular import Frame
from calibration.validation import Floats
from factormodels.errors import InputError
from factormodels.io.claim_records import ClaimRecord, Setting, setting_named

JUDGED = "judged_"
"""Prefix of quantities over judged claims if both tables have a quantity of that name."""


def compare_conditions(
    first: Iterable[ClaimRecord],
    second: Iterable[ClaimRecord],
    setting: str | None = Setting.NONE_OF_THE_ABOVE,
    *,
    unpaired: str = "error",
    n_positions: int = N_POSITIONS,
    label_average: str = Average.SENTENCE,
    judgment_average: str = Average.CLAIM,
    neither: str = Neither.INCORRECT,
    intervals: IntervalSettings = DEFAULT_INTERVALS,
) -> Frame:
    """Compare the quantities of the paper between two conditions (its section 5.3).

    Columns, with a row per quantity and position: quantity; position, last "overall"; first and
    second, the values of the conditions; difference, second minus first, with lower and upper, the
    ends of its interval paired over responses; p_value, from Student's t for the difference and its
    standard error clustered by response, nan if undefined; corrected, the p-value corrected by
    Holm, over all quantities and bins for bins, and over all quantities for overall; n_responses in
    both conditions; n_dropped, responses in only one condition.

    Responses with the same id answer the same prompt; their claims and sentences may differ. The
    quantities are those of `label_positions` and, unless `setting` is None, those of
    `self_knowledge`, whose ``factuality`` over judged claims is renamed ``judged_factuality``. A
    bootstrap redraws the two responses to a prompt together.

    Args:
        first: claims of one condition, such as without passages.
        second: claims of the other condition, such as with passages.
        setting: setting in which the model was asked, or None to leave judgments out.
        unpaired: treatment of a response that only one condition has: ``error`` or ``drop``.
        n_positions: number of bins.
        label_average: average of the shares of kinds of claims, as in `label_positions`.
        judgment_average: average of SK, SU and so on, as in `self_knowledge`.
        neither: treatment of the judgment "neither", as in `self_knowledge`.
        intervals: settings of the intervals.

    Raises:
        InputError: for no records, no response in common, an unpaired response under ``error``, or
            unknown settings.
    """
    if unpaired not in ("error", "drop"):
        raise InputError(f"unpaired is {unpaired!r}; choose 'error' or 'drop'")
    names = position_names(n_positions)
    first_claims, second_claims, n_dropped = _paired(list(first), list(second), unpaired)

    def estimands(claims: Claims) -> tuple[Estimand, ...]:
        labels = label_estimands(claims, n_positions, label_average)
        if setting is None:
            return labels
        chosen = setting_named(setting)
        return labels + judgment_estimands(claims, chosen, n_positions, judgment_average, neither)

    pairs = list(zip(estimands(first_claims), estimands(second_claims), strict=True))
    keys = _keys([each.name for each, _ in pairs])
    before, after, difference = (
        estimate_all(group, intervals)
        for group in (
            tuple(each for each, _ in pairs),
            tuple(each for _, each in pairs),
            tuple(PairedDifference(each, against) for each, against in pairs),
        )
    )
    p_value = np.stack([_p_values(each) for each in difference])
    cells = (*names, OVERALL)

    def joined(made: Sequence[Estimates], part: str = "estimate") -> Floats:
        """An attribute of the estimates, concatenated over quantities."""
        return np.concatenate([getattr(each, part) for each in made])

    return Frame(
        quantity=np.repeat(keys, len(cells)),
        position=cells * len(keys),
        first=joined(before),
        second=joined(after),
        difference=joined(difference),
        lower=joined(difference, "lower"),
        upper=joined(difference, "upper"),
        p_value=p_value.ravel(),
        corrected=_corrected(p_value).ravel(),
        n_responses=first_claims.n_responses,
        n_dropped=n_dropped,
    )


def _paired(
    first: list[ClaimRecord], second: list[ClaimRecord], unpaired: str
) -> tuple[Claims, Claims, int]:
    as_claims(first), as_claims(second)
    order = {record.response: None for record in first}
    others = {record.response for record in second}
    alone = [response for response in order if response not in others]
    alone += sorted(others - set(order))
    if alone and unpaired == "error":
        raise InputError(
            f"response {alone[0]!r} is in only one condition, as are {len(alone)} in all; give "
            "both conditions the same responses, or set unpaired to 'drop'"
        )
    shared = [response for response in order if response in others]
    if not shared:
        raise InputError(
            "the conditions have no response in common; give answers to one prompt "
            "the same response id in both"
        )
    number_of = {response: number for number, response in enumerate(shared)}
    first_claims, second_claims = (
        as_claims(
            sorted(
                (record for record in records if record.response in number_of),
                key=lambda record: number_of[record.response],
            )
        )
        for records in (first, second)
    )
    return first_claims, second_claims, len(alone)


def _keys(names: list[str]) -> list[str]:
    keys: list[str] = []
    for name in names:
        keys.append(JUDGED + name if name in keys else name)
    return keys


def _p_values(difference: Estimates) -> Floats:
    degrees = np.where(difference.n_responses > 1, difference.n_responses - 1.0, np.nan)
    p_values = student_p_values(difference.estimate, difference.standard_error, degrees)
    return np.where(difference.standard_error > 0, p_values, np.nan)


def _corrected(p_value: Floats) -> Floats:
    """Correct p-values (n_quantities, n_cells), separately for the bins and for overall."""
    bins = adjust(p_value[:, :-1].ravel()).reshape(p_value[:, :-1].shape)
    return np.append(bins, adjust(p_value[:, -1])[:, np.newaxis], axis=1)
