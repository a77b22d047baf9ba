"""Tables by relative position: kinds of claims, self-knowledge, and flips between settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.intervals import Estimates, IntervalSettings, estimate_all
from calibration.self_knowledge.claims import (
    IRRELEVANT,
    Average,
    Claims,
    Neither,
    as_claims,
    position_names,
)
from calibration.self_knowledge.formula import SigmaStatus, sigma_status
from calibration.self_knowledge.quantities import (
    LABELS,
    flip_estimands,
    judgment_estimands,
    label_estimands,
    shares,
)
from calibration.tabular import Tabular
from calibration.validation import Integers, member_named
from factormodels.errors import InputError
from factormodels.io.claim_records import ClaimRecord, Setting, setting_named

OVERALL = "overall"
"""Name of the last cell of every table."""

N_POSITIONS = 5
"""Number of bins in the paper: 0-20%, 20-40%, 40-60%, 60-80% and 80-100% (section 2.1)."""

DEFAULT_INTERVALS = IntervalSettings()


@dataclass(frozen=True, eq=False, repr=False)
class PositionTable(Tabular):
    """Quantities in each bin of relative position, and overall.

    Attributes:
        positions: names of the bins, then "overall".
        quantities: estimates by name, with an entry per position.
        statuses: status of each quantity per position, by name.
        n_claims: number of claims in the table, int64 (n_cells,), by kind ("supported",
            "unsupported", "irrelevant").
        n_sentences: int64 (n_cells,), number of sentences with such claims.
        n_responses: int64 (n_cells,), number of responses with such claims.
        n_missing: int64 (n_cells,), number of supported and unsupported claims without a judgment,
            which are left out.
        average: ``sentence`` or ``claim``.
        setting: the setting, or the two settings of a flip; None for a table without judgments.
    """

    positions: tuple[str, ...]
    quantities: Mapping[str, Estimates]
    statuses: Mapping[str, tuple[SigmaStatus, ...]]
    n_claims: Mapping[str, Integers]
    n_sentences: Integers
    n_responses: Integers
    n_missing: Integers
    average: str
    setting: str | None

    def __getitem__(self, name: str) -> Estimates:
        try:
            return self.quantities[name]
        except KeyError:
            names = ", ".join(self.quantities)
            raise InputError(f"there is no quantity {name!r}; choose one of {names}") from None

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per quantity and position; undefined numbers are nan."""
        return [
            {
                "quantity": name,
                "position": position,
                "estimate": float(estimates.estimate[cell]),
                "lower": float(estimates.lower[cell]),
                "upper": float(estimates.upper[cell]),
                "standard_error": float(estimates.standard_error[cell]),
                "status": str(self.statuses[name][cell]),
                "n_supported": int(self.n_claims["supported"][cell]),
                "n_unsupported": int(self.n_claims["unsupported"][cell]),
                "n_irrelevant": int(self.n_claims["irrelevant"][cell]),
                "n_sentences": int(self.n_sentences[cell]),
                "n_responses": int(self.n_responses[cell]),
                "n_missing": int(self.n_missing[cell]),
                "level": estimates.level,
                "interval": estimates.method,
                "average": self.average,
                "setting": self.setting,
            }
            for name, estimates in self.quantities.items()
            for cell, position in enumerate(self.positions)
        ]


def label_positions(
    records: Claims | Iterable[ClaimRecord],
    *,
    n_positions: int = N_POSITIONS,
    average: str = Average.SENTENCE,
    intervals: IntervalSettings = DEFAULT_INTERVALS,
) -> PositionTable:
    """Share and number of supported, unsupported and irrelevant claims by position.

    The procedure follows the paper (section 2.1). Within each sentence, take the share (or number)
    of each kind of claim. Sentence i of n has position i/n, and is assigned to one of five bins of
    equal width. In each bin, average over sentences, so that every sentence has the same weight
    regardless of its number of claims.

    The paper does not specify the bin of a position on an edge. Here it belongs to the bin below,
    the only choice that assigns i/n = 100% to a bin. n is the number of all sentences of the
    response. A sentence without claims has no share, and is left out of the means.

    Quantities: supported_share, unsupported_share, irrelevant_share (of all claims), factuality
    (S/(S + NS)), supported_number, unsupported_number, irrelevant_number (per sentence).

    Args:
        records: the claims.
        n_positions: number of bins.
        average: ``sentence``, as in the paper; ``claim`` pools the claims of a bin for the shares.
        intervals: settings of the intervals.

    Raises:
        InputError: for no records, or settings outside these ranges.
    """
    claims, names = as_claims(records), position_names(n_positions)
    estimands = label_estimands(claims, n_positions, average)
    estimates = estimate_all(estimands, intervals)
    everything = np.ones(claims.label.size, dtype=bool)
    return _table(claims, names, estimates, everything, ~everything, average, None)


def self_knowledge(
    records: Claims | Iterable[ClaimRecord],
    setting: str = Setting.NONE_OF_THE_ABOVE,
    *,
    n_positions: int = N_POSITIONS,
    average: str = Average.CLAIM,
    neither: str = Neither.INCORRECT,
    intervals: IntervalSettings = DEFAULT_INTERVALS,
) -> PositionTable:
    """SK, SU and sigma by position, with factuality and its other estimates.

    Quantities, over claims labeled S or NS that have a judgment: factuality; judged_correct
    (q); self_known (SK); self_unknown (SU); sigma (equation 3 from SK and SU of the bin);
    rogan_gladen (from q of the bin, and SK and SU of all positions).

    The odds of overall sigma are the odds of factuality times FP/FN. Sigma therefore reflects the
    balance of the two errors in this sample and is not a prediction; see `out_of_sample`.

    Args:
        records: the claims.
        setting: setting in which the model was asked. The paper prefers the third (section 3).
        n_positions: number of bins.
        average: ``claim`` pools the claims of a bin; ``sentence`` averages over sentences.
        neither: treatment of the judgment "neither": ``incorrect``, as in the paper, or
            ``exclude``, as no judgment.
        intervals: settings of the intervals.

    Raises:
        InputError: for no records, no judgment in the setting, or unknown settings.
    """
    chosen = setting_named(setting)
    claims, names = as_claims(records), position_names(n_positions)
    _, present = claims.judged_correct(chosen, neither)
    _check_judged(present & (claims.label != IRRELEVANT), chosen)
    estimands = judgment_estimands(claims, chosen, n_positions, average, neither)
    estimates = estimate_all(estimands, intervals)
    relevant = claims.label != IRRELEVANT
    return _table(
        claims, names, estimates, present & relevant, ~present & relevant, average, chosen.value
    )


def flip_rates(
    records: Claims | Iterable[ClaimRecord],
    before: str = Setting.QUESTION_ANSWERING,
    after: str = Setting.NONE_OF_THE_ABOVE,
    *,
    among_correct: bool = False,
    n_positions: int = N_POSITIONS,
    average: str = Average.CLAIM,
    neither: str = Neither.INCORRECT,
    intervals: IntervalSettings = DEFAULT_INTERVALS,
) -> PositionTable:
    """Share of claims judged correct in one setting and incorrect in another.

    Quantities: supported_flip_rate and unsupported_flip_rate (section 3 and figure 2d). The paper
    does not state the denominator of the rate. Here it is the number of claims of the kind that
    have both judgments or, with `among_correct`, that are also judged correct before.

    Raises:
        InputError: for no records, no claim with both judgments, or unknown settings.
    """
    first, second = setting_named(before), setting_named(after)
    if first is second:
        raise InputError(f"before and after are both {first.value!r}; give two settings")
    claims, names = as_claims(records), position_names(n_positions)
    present = claims.judged_correct(first, neither)[1] & claims.judged_correct(second, neither)[1]
    relevant = claims.label != IRRELEVANT
    _check_judged(present & relevant, first, second)
    estimands = flip_estimands(
        claims, first, second, n_positions, average, neither, bool(among_correct)
    )
    estimates = estimate_all(estimands, intervals)
    name = f"{first.value} -> {second.value}"
    return _table(claims, names, estimates, present & relevant, ~present & relevant, average, name)


def _check_judged(judged: Any, *settings: Setting) -> None:
    if not judged.any():
        names = " and ".join(setting.value for setting in settings)
        raise InputError(
            f"no supported or unsupported claim has a judgment in {names}; "
            "choose a setting in which the model was asked"
        )


def _table(
    claims: Claims,
    names: tuple[str, ...],
    estimates: list[Estimates],
    among: Any,
    missing: Any,
    average: str,
    setting: str | None,
) -> PositionTable:
    n_positions = len(names)

    def counts(which: Any) -> Integers:
        sums = shares(claims, which, which, n_positions, Average.CLAIM)
        return np.asarray(sums.denominator.sum(axis=0), dtype=np.int64)

    pooled = shares(claims, among, among, n_positions, Average.CLAIM)
    by_sentence = shares(claims, among, among, n_positions, Average.SENTENCE)
    n_claims = {name: counts(among & (claims.label == code)) for name, code in LABELS}
    quantities = {each.name: each for each in estimates}
    return PositionTable(
        positions=(*names, OVERALL),
        quantities=quantities,
        statuses={name: _statuses(name, quantities, n_claims) for name in quantities},
        n_claims=n_claims,
        n_sentences=by_sentence.denominator.sum(axis=0).astype(np.int64),
        n_responses=pooled.touching(),
        n_missing=counts(missing),
        average=str(member_named(Average, average, "average")),
        setting=setting,
    )


def _statuses(
    name: str, quantities: Mapping[str, Estimates], n_claims: Mapping[str, Integers]
) -> tuple[SigmaStatus, ...]:
    supported, unsupported = n_claims["supported"], n_claims["unsupported"]
    if name == "sigma":
        known, unknown = quantities["self_known"], quantities["self_unknown"]
        return sigma_status(known.estimate, unknown.estimate, supported, unsupported)
    if name == "rogan_gladen":
        # SK and SU come from all positions, so that the status is that of the last cell.
        last = sigma_status(
            quantities["self_known"].estimate[-1:],
            quantities["self_unknown"].estimate[-1:],
            supported[-1:],
            unsupported[-1:],
        )[0]
        law = last if last in _WITHOUT_LAW else SigmaStatus.OK
        return tuple(
            SigmaStatus.EMPTY if not count else law for count in (supported + unsupported).tolist()
        )
    defined = ~np.isnan(quantities[name].estimate)
    absent = _ABSENT.get(name, SigmaStatus.EMPTY)
    return tuple(SigmaStatus.OK if here else absent for here in defined.tolist())


_WITHOUT_LAW = {SigmaStatus.NO_SUPPORTED, SigmaStatus.NO_UNSUPPORTED, SigmaStatus.UNINFORMATIVE}

_ABSENT = {
    "self_known": SigmaStatus.NO_SUPPORTED,
    "self_unknown": SigmaStatus.NO_UNSUPPORTED,
    "supported_flip_rate": SigmaStatus.NO_SUPPORTED,
    "unsupported_flip_rate": SigmaStatus.NO_UNSUPPORTED,
}
