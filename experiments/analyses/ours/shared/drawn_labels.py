"""Labels drawn again and again where all are known: what intervals hold, and how wide they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibration.estimation import (
    RATIOS,
    Quantity,
    Unit,
    difference,
    draw,
    estimate,
    inclusion_probabilities,
    spread,
)
from calibration.grouping import Grouping
from calibration.validation import Floats
from experiments.analyses.posteriors import LabelledAtoms

Design = Literal["responses", "claims", "chosen responses", "chosen claims"]
"""What is labelled: a random sample, or what `estimate --choose` would choose."""


@dataclass(frozen=True)
class Sampling:
    """What is labelled, how often, and what is estimated of it.

    Attributes:
        design: what is labelled.
        n: how many responses, or claims, are labelled.
        quantities: names of `RATIOS`; F1@K is left out where claims are labelled.
        draws: how often labels are drawn.
    """

    design: Design
    n: int
    quantities: Sequence[str]
    draws: int


def coverage_rows(
    posteriors: Mapping[str, Floats],
    atoms: LabelledAtoms,
    sampling: Sampling,
    seed: int,
) -> list[dict[str, Any]]:
    """A row per posteriors and quantity: how often intervals hold the truth, and their width.

    Of the Brier score also the difference between the first two posteriors.

    The truth is what all labels say. Intervals are about responses like these, so that they may
    hold that of these more often than their level.
    """
    labels, grouping = atoms.labels, atoms.grouping
    design, n = sampling.design, sampling.n
    names = [q for q in sampling.quantities if q != "f1-at-k" or design.endswith("responses")]
    judged: list[tuple[str, tuple[Floats, ...], str]] = [
        (kind, (p,), name) for kind, p in posteriors.items() for name in names
    ]
    if "brier" in names and len(posteriors) > 1:
        (first, p), (other, q) = [*posteriors.items()][:2]
        judged.append((f"{first} less {other}", (p, q), "brier"))
    whole = {
        (kind, name): [RATIOS[name](p, labels, grouping.index) for p in those]
        for kind, those, name in judged
    }
    draws_by_quantity: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for number in range(sampling.draws):
        drawn = {kind: _drawn(p, grouping, design, n, seed + number)
                 for kind, p in posteriors.items()}  # fmt: skip
        for (kind, name), quantities in whole.items():
            # Of a difference, both are of the labels that the first would choose.
            kept, weights = drawn.get(kind) or next(iter(drawn.values()))
            each = [estimate(_hidden(quantity, grouping, kept, weights)) for quantity in quantities]
            estimated = each[0] if len(each) == 1 else difference(*each)
            truth, *less = (
                float(quantity.observed.sum() / quantity.size.sum()) for quantity in quantities
            )
            truth -= sum(less)
            draws_by_quantity.setdefault((kind, name), []).append((
                estimated.lower <= truth <= estimated.upper,
                estimated.labels_lower <= truth <= estimated.labels_upper,
                estimated.upper - estimated.lower,
                estimated.labels_upper - estimated.labels_lower,
            ))  # fmt: skip
    rows = []
    for (kind, quantity), draws in draws_by_quantity.items():
        values = np.array(draws, dtype=np.float64)
        covers, labels_cover, width, labels_width = values.mean(axis=0)
        rows.append(
            {
                "design": design,
                "posteriors": kind,
                "quantity": quantity,
                "n": n,
                "covers": covers,
                "width": width,
                "labels_cover": labels_cover,
                "labels_width": labels_width,
                "widest_ratio": float((values[:, 2] / values[:, 3]).max()),
                "draws": sampling.draws,
            }
        )
    return rows


def _hidden(
    whole: Quantity, grouping: Grouping, kept: NDArray[np.bool_], weights: Floats
) -> Quantity:
    """A quantity of which all labels are known, with those of the kept claims alone."""
    if whole.observed.size != kept.size:
        # An item is a response: it is labelled if all of its claims are.
        kept, weights = grouping.sums(kept) == grouping.sizes, grouping.means(weights)
    return replace(whole, observed=np.where(kept, whole.observed, np.nan), weights=weights)


def _drawn(p: Floats, grouping: Grouping, design: Design, n: int, seed: int) -> tuple[Any, Floats]:
    """Which claims are labelled, and how many each stands for."""
    unit = Unit.RESPONSE if design.endswith("responses") else Unit.CLAIM
    size = len(grouping.responses) if unit is Unit.RESPONSE else p.size
    if design.startswith("chosen"):
        minutes = np.ones(size) if unit is Unit.CLAIM else grouping.sizes.astype(np.float64)
        expected = spread(p, grouping, unit)
        chances = inclusion_probabilities(expected, minutes, n, np.ones(size, dtype=np.bool_))
        kept = draw(chances, seed)
    else:
        chances = np.full(size, n / size)
        kept = np.zeros(size, dtype=np.bool_)
        kept[np.random.default_rng(seed).choice(size, n, replace=False)] = True
    weights = np.where(kept, 1 / chances, 1.0)
    if unit is Unit.CLAIM:
        return kept, weights
    return kept[grouping.index], weights[grouping.index]
