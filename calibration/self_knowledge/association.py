"""Whether Self-Known and Self-Unknown go with the factuality, over positions and models.

The Self-Known paper reads from its figure 4 that Self-Known is positively correlated with the
factuality and Self-Unknown with the share of unsupported claims (section 5.2.2). A cell is a bin of
positions of a group, such as a model; an interval redraws responses, the same ones in all groups
that have them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import StrEnum
from typing import Any

import numpy as np

from calibration.intervals import IntervalSettings, redrawn_interval
from calibration.self_knowledge.claims import Average, Claims, Neither, as_claims
from calibration.self_knowledge.positions import DEFAULT_INTERVALS, N_POSITIONS
from calibration.self_knowledge.quantities import judgement_estimands
from calibration.tabular import Frame
from calibration.validation import Floats
from factormodels.errors import InputError
from factormodels.io.claim_records import ClaimRecord, Setting, setting_named

FEWEST_CELLS = 3
"""Two points always lie on a line."""

_PAIRS = (("self_known", "factuality"), ("self_unknown", "unsupported"))


class Over(StrEnum):
    """Which cells a correlation is over."""

    POSITIONS = "positions"
    """The positions of one group."""
    MODELS = "models"
    """The groups, each at all positions together."""
    ALL = "positions and models"
    """Every position of every group."""


def association(
    groups: Mapping[str, Claims | Iterable[ClaimRecord]],
    setting: str = Setting.NONE_OF_THE_ABOVE,
    *,
    n_positions: int = N_POSITIONS,
    neither: str = Neither.INCORRECT,
    intervals: IntervalSettings = DEFAULT_INTERVALS,
) -> Frame:
    """Correlations of SK with the factuality, and of SU with the share of unsupported claims.

    Columns: over, which cells, and of which group where it is one; first, self_known or
    self_unknown; second, factuality or unsupported, its complement; correlation, Pearson's, nan for
    fewer than `FEWEST_CELLS` cells or without spread; lower and upper, ends of the percentile
    interval over responses; rank_correlation, Spearman's; n_cells, cells in which both are defined.

    Args:
        groups: claims by group, such as a model.
        setting: how the models were asked.
        n_positions: number of bins.
        neither: what the judgement "neither" counts as, as in `self_knowledge`.
        intervals: how many replicates, their seed and the level; the intervals are percentiles.

    Raises:
        InputError: for no group, no records, or unknown settings.
    """
    if not groups:
        raise InputError("groups is empty; give the claims of at least one")
    chosen = setting_named(setting)
    claims = {name: as_claims(records) for name, records in groups.items()}
    everyone: dict[Hashable, int] = {}
    for one in claims.values():
        for response in one.responses:
            everyone.setdefault(response, len(everyone))
    estimands = {
        name: {
            each.name: each
            for each in judgement_estimands(one, chosen, n_positions, Average.CLAIM, neither)
        }
        for name, one in claims.items()
    }

    def cells(weights: Floats | None) -> Floats:
        """SK, SU and factuality in every cell, (n_replicates, 3, n_groups, n_positions + 1)."""
        found = []
        for name, one in claims.items():
            own = None if weights is None else weights[:, [everyone[id_] for id_ in one.responses]]
            found.append(
                [
                    estimands[name][each].estimate()[np.newaxis]
                    if own is None
                    else estimands[name][each].replicates(own)
                    for each in ("self_known", "self_unknown", "factuality")
                ]
            )
        return np.moveaxis(np.array(found), (0, 1, 2), (2, 1, 0))

    names = list(claims)
    choices: dict[str, Any] = {}
    if n_positions >= FEWEST_CELLS:
        for place, name in enumerate(names):
            label = f"{Over.POSITIONS} of {name}" if name else str(Over.POSITIONS)
            choices[label] = (place, slice(0, n_positions))
    if len(names) > 1 and n_positions > 1:
        choices[str(Over.ALL)] = (slice(None), slice(0, n_positions))
    if len(names) >= FEWEST_CELLS:
        choices[str(Over.MODELS)] = (slice(None), -1)

    def correlations(values: Floats) -> Floats:
        """Pearson's of every pair and choice, (n_replicates, n_rows)."""
        found = [
            _pearson(*_both(values, choice, first))
            for choice in choices.values()
            for first in range(2)
        ]
        return np.stack(found, axis=-1) if found else np.empty((values.shape[0], 0))

    observed = cells(None)
    correlation = correlations(observed)[0]
    lower, upper = redrawn_interval(
        lambda weights: correlations(cells(weights)), len(everyone), intervals
    )
    undefined = np.isnan(correlation)
    pairs = [
        (over, *_PAIRS[first], _both(observed, choice, first))
        for over, choice in choices.items()
        for first in range(2)
    ]
    return Frame(
        over=[over for over, *_ in pairs],
        first=[pair[1] for pair in pairs],
        second=[pair[2] for pair in pairs],
        correlation=correlation,
        lower=np.where(undefined, np.nan, lower),
        upper=np.where(undefined, np.nan, upper),
        rank_correlation=[float(_pearson(*_ranks(*pair[3]))[0]) for pair in pairs],
        n_cells=[int(np.isfinite(sum(pair[3])).sum()) for pair in pairs],
    )


def _both(values: Floats, choice: Any, first: int) -> tuple[Floats, Floats]:
    """The two quantities of a pair in the chosen cells, (n_replicates, n_cells) each."""
    picked = values[(slice(None), slice(None), *choice)].reshape(*values.shape[:2], -1)
    factuality = picked[:, 2]
    return picked[:, first], factuality if first == 0 else 1 - factuality


def _pearson(one: Floats, other: Floats) -> Floats:
    """Pearson's correlation of each row over the cells in which both are numbers, (n,)."""
    held = np.isfinite(one) & np.isfinite(other)
    count = held.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = (
            np.where(
                held, each - np.where(held, each, 0).sum(-1, keepdims=True) / count[:, None], 0
            )
            for each in (one, other)
        )
        spread = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
        # Equal shares differ by the rounding of their sums.
        defined = (count >= FEWEST_CELLS) & (spread > 1e-12)
        return np.where(defined, (a * b).sum(axis=-1) / spread, np.nan)


def _ranks(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Ranks over the cells in which both are numbers, ties at their mean; nan elsewhere."""
    from scipy.stats import rankdata

    held = np.isfinite(one) & np.isfinite(other)
    first, second = (
        rankdata(np.where(held, each, np.nan), axis=-1, nan_policy="omit") for each in (one, other)
    )
    return np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
