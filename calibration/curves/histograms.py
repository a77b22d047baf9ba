"""Histograms of probabilities, true and false atoms apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.curves.reliability import HISTOGRAM_BINS
from calibration.validation import Integers, labelled_pairs


@dataclass(frozen=True, eq=False)
class LabelHistogram:
    """How many true and how many false atoms have p in each of 21 equal parts of [0, 1].

    Attributes:
        true: int64 (21,), number of true atoms in each part.
        false: int64 (21,), number of false atoms in each part.
    """

    true: Integers
    false: Integers

    @property
    def n_atoms(self) -> int:
        """The number of atoms over all parts."""
        return int(self.true.sum() + self.false.sum())


def label_histogram(p: ArrayLike, y: Any) -> LabelHistogram:
    """Return the histogram of p by label; a p on an edge belongs to the part below it.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False.

    Raises:
        InputError: for bad arrays, lengths that differ, or an unlabelled atom.
    """
    probabilities, labels = labelled_pairs(p, y)
    edges = np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)[1:-1]
    part = np.searchsorted(edges, probabilities, side="left")
    true = np.bincount(part[labels == 1], minlength=HISTOGRAM_BINS)
    return LabelHistogram(true, np.bincount(part, minlength=HISTOGRAM_BINS) - true)
