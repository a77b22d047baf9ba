"""Mean probability and share of true atoms by group, with intervals."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.curves.histograms import LabelCurve
from calibration.intervals import IntervalSettings, RatioSums, redrawn_interval
from calibration.labels import LabelPolicy, labeled_atoms
from calibration.validation import Floats, Integers
from factormodels.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class GroupCalibration(LabelCurve):
    """Mean probability and share of true atoms by group. Arrays have shape (k,).

    Attributes:
        groups: the groups, in the requested order.
        n_atoms: number of atoms.
        mean_predicted: mean of p; nan in a group without atoms.
        observed: share of true atoms.
        gap: observed - mean_predicted, above 0 if p is too low.
        lower: lower end of the percentile interval of the gap; nan if fewer than two responses
            have atoms in the group.
        upper: upper end.
    """

    columns: ClassVar = ("groups", "n_atoms", "mean_predicted", "observed", "gap", "lower", "upper")

    groups: tuple[Hashable, ...]
    n_atoms: Integers
    mean_predicted: Floats
    observed: Floats
    gap: Floats
    lower: Floats
    upper: Floats


def group_calibration(
    p: ArrayLike,
    y: Any,
    groups: Any,
    *,
    weights: ArrayLike | None = None,
    order: Any = None,
    responses: Any = None,
    n_bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> GroupCalibration:
    """Mean probability and share of true atoms by group, with intervals over responses.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled.
        groups: group of each atom, (n,), such as its variant, position or rarity.
        weights: weights (n,), the number of atoms that each represents; None for 1 each.
        order: the groups in order; None for the order of first appearance.
        responses: response ids (n,), or None if atoms are independent.
        n_bootstrap: number of replicates.
        seed: seed of the replicates.
        level: nominal coverage, between 0 and 1.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, no labeled atom, a group that `order`
            lacks, or a bad setting.
    """
    atoms = labeled_atoms(p, y, unlabeled)
    n_atoms, counts = atoms.p.size, atoms.weights(weights)
    how = IntervalSettings(n_bootstrap=n_bootstrap, seed=seed, level=level)
    by_group = atoms.grouping(groups, "groups")
    wanted = _wanted(tuple(by_group.responses), order)
    column_of = {group: number for number, group in enumerate(wanted)}
    column = np.array([column_of[group] for group in by_group.responses])[by_group.index]
    response, n_responses = np.arange(n_atoms), n_atoms
    if responses is not None:
        grouping = atoms.grouping(responses)
        response, n_responses = grouping.index, len(grouping.responses)

    cell, shape = response * len(wanted) + column, (n_responses, len(wanted))

    def sums(values: Floats) -> Floats:
        """Sums over the atoms of each response and group, (n_responses, k)."""
        totals = np.bincount(cell, weights=values, minlength=shape[0] * shape[1])
        return totals.astype(np.float64, copy=False).reshape(shape)

    weight, predicted, true = sums(counts), sums(counts * atoms.p), sums(counts * atoms.y)
    mean_predicted, observed = (RatioSums(each, weight).estimate() for each in (predicted, true))
    gap = RatioSums(true - predicted, weight)
    few, ends = gap.touching() < 2, redrawn_interval(gap.replicates, n_responses, how)
    lower, upper = (np.where(few, np.nan, end) for end in ends)
    return GroupCalibration(
        groups=wanted,
        n_atoms=np.bincount(column, minlength=len(wanted)),
        mean_predicted=mean_predicted,
        observed=observed,
        gap=observed - mean_predicted,
        lower=lower,
        upper=upper,
        level=level,
        n_responses=None if responses is None else n_responses,
        n_unlabeled=atoms.n_unlabeled,
    )


def _wanted(groups: tuple[Hashable, ...], order: Any) -> tuple[Hashable, ...]:
    if order is None:
        return groups
    wanted = tuple(order)
    if len(set(wanted)) < len(wanted):
        raise InputError("order names a group twice; name every group once")
    for group in groups:
        if group not in wanted:
            raise InputError(f"order lacks the group {group!r}; name every group")
    return wanted
