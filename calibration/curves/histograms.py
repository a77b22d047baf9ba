"""Histograms of probabilities, true and false atoms apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.curves.reliability_bins import HISTOGRAM_BINS
from calibration.labels import LabelPolicy, labelled_atoms
from calibration.tabular import Tabular
from calibration.validation import Integers


@dataclass(frozen=True, eq=False, repr=False)
class LabelHistogram(Tabular):
    """How many true and how many false atoms have p in each of 21 equal parts of [0, 1].

    Attributes:
        true: int64 (21,), number of true atoms in each part.
        false: int64 (21,), number of false atoms in each part.
        n_unlabelled: number of atoms that had no label.
    """

    columns: ClassVar = ("true", "false")

    true: Integers
    false: Integers
    n_unlabelled: int = 0

    @property
    def n_atoms(self) -> int:
        """The number of atoms over all parts."""
        return int(self.true.sum() + self.false.sum())


def label_histogram(
    p: ArrayLike, y: Any, *, unlabelled: str = LabelPolicy.EXCLUDE
) -> LabelHistogram:
    """Histogram of p by label; a p on an edge belongs to the part below it.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, or no labelled atom.
    """
    atoms = labelled_atoms(p, y, unlabelled)
    edges = np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)[1:-1]
    part = np.searchsorted(edges, atoms.p, side="left")
    true = np.bincount(part[atoms.y == 1], minlength=HISTOGRAM_BINS)
    false = np.bincount(part, minlength=HISTOGRAM_BINS) - true
    return LabelHistogram(true, false, atoms.n_unlabelled)
