"""Risk-coverage curve with a confidence band over responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.curves.histograms import LabelCurve, about
from calibration.forecasts import forecasts
from calibration.intervals import IntervalSettings, of_samples, redrawn_interval
from calibration.labels import LabelPolicy
from calibration.scores.families.selective import risk_areas, risk_at
from calibration.validation import Floats


@dataclass(frozen=True, eq=False, repr=False)
class RiskCurve(LabelCurve):
    """Risk among the kept atoms at every coverage, with a confidence band.

    Attributes:
        coverage: float64 (g,), share of atoms that are kept, ascending to 1.
        risk: float64 (g,), share of kept atoms that are wrong, averaged over the orders of ties.
        lower: float64 (g,), lower end of the band.
        upper: float64 (g,), upper end of the band.
        area: AURC of the data.
        excess: AURC minus the smallest AURC with the same errors.
        rule: ``verdict`` or ``claim``.
        n_atoms: number of atoms.
    """

    columns: ClassVar = ("coverage", "risk", "lower", "upper")

    coverage: Floats
    risk: Floats
    lower: Floats
    upper: Floats
    area: float
    excess: float
    rule: str
    n_atoms: int


def risk_curve(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    responses: Any = None,
    rule: str = "verdict",
    n_bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> RiskCurve:
    """Risk-coverage curve at 100 coverages, with a percentile band over responses.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled.
        weights: weights (n,), the number of atoms that each represents; None for 1 each.
        responses: response ids (n,), or None if atoms are independent.
        rule: ``verdict`` keeps the most confident verdicts and counts wrong verdicts; ``claim``
            keeps the claims with the highest p and counts false claims.
        n_bootstrap: number of replicates.
        seed: seed of the replicates.
        level: nominal coverage, between 0 and 1.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, no labeled atom, or a bad setting.
    """
    points = forecasts(p, y, weights, responses, unlabeled)
    area, excess = risk_areas(points.sample(), rule)
    coverage = np.linspace(0.0, 1.0, 101)[1:]
    lower, upper = redrawn_interval(
        of_samples(points, lambda sample: risk_at(sample, rule, coverage)),
        points.n_responses,
        IntervalSettings(n_bootstrap=n_bootstrap, seed=seed, level=level),
    )
    return RiskCurve(
        coverage=coverage,
        risk=risk_at(points.sample(), rule, coverage),
        lower=lower,
        upper=upper,
        area=area,
        excess=excess,
        rule=rule,
        level=level,
        **about(points),
    )
