"""Measures of a response's factuality from its atoms' posteriors (FactReasoner, section 3.2).

Every function takes the probabilities `p`, (n,), that the atoms of a single response are true.
`calibration.scores.families.responses` computes the same measures for many responses at once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.validation import Floats, is_number, probability_array
from factormodels.decoded_values import shown
from factormodels.errors import InputError

logger = logging.getLogger(__name__)

DECISION_TOLERANCE = 1e-9
"""An atom with |P - 1/2| up to this is undecided, because algorithms round an exact 1/2."""

ENTROPY_PEAK = 1 / math.e
"""The P at which -P log P is largest; below it, E decreases with P."""


def verdicts(p: Floats, tolerance: float = DECISION_TOLERANCE) -> NDArray[np.int8]:
    """Verdict of each atom, int8 (n,): 1 supported, -1 contradicted, 0 undecided.

    An atom is supported if P is above 1/2, contradicted if P is below, and undecided at 1/2
    (FactReasoner, sections 3.2 and 4).

    Args:
        p: probabilities (n,), which are not checked.
        tolerance: an atom with |p - 1/2| up to this is undecided.
    """
    distance = p - 0.5
    undecided = np.abs(distance) <= tolerance
    return np.where(undecided, 0, np.sign(distance)).astype(np.int8)


def factual_precision(p: ArrayLike) -> float:
    """Precision Pr = S/n, the share of supported atoms, where S is the number of atoms with P >
    1/2.

    Source: FactReasoner, section 3.1 and appendix B, equation 5.

    Raises:
        InputError: for bad probabilities.
    """
    return float((verdicts(probability_array(p)) > 0).mean())


def recall_of_counts(supported: ArrayLike, k: ArrayLike) -> Floats:
    """Recall R_K = min(S/K, 1) elementwise, for S supported atoms and K > 0.

    Source: FactReasoner, section 3.1 and appendix B, equation 6.
    """
    recall: Floats = np.minimum(np.asarray(supported, dtype=np.float64) / np.asarray(k), 1.0)
    return recall


def f1_of_counts(supported: ArrayLike, n_atoms: ArrayLike, k: ArrayLike) -> Floats:
    """F1@K elementwise, for S supported atoms among n and K > 0; 0 if S = 0."""
    true = np.asarray(supported, dtype=np.float64)
    precision = true / np.asarray(n_atoms)
    recall = recall_of_counts(true, k)
    # Pr and R_K are both 0 exactly if S is 0; adding 1 to the denominator then avoids 0/0.
    harmonic_mean: Floats = 2 * precision * recall / (precision + recall + (true == 0))
    return harmonic_mean


def f1_at_k(p: ArrayLike, k: float) -> float:
    """F1@K, the harmonic mean of precision Pr and recall R_K; 0 if no atom is supported.

    Source: FactReasoner, section 3.1 and appendix B, equation 7; Wei et al. 2024.

    Args:
        p: probabilities (n,) in [0, 1].
        k: number K of supported atoms at which recall is 1; above 0, not necessarily an integer.

    Raises:
        InputError: for bad probabilities, or if K is not above 0.
    """
    signs = verdicts(probability_array(p))
    return float(f1_of_counts((signs > 0).sum(), signs.size, given_k(k)))


def choose_k(policy: str | float, atom_counts: ArrayLike) -> Floats:
    """K of F1@K for every response, float64 (n_responses,).

    Args:
        policy: a number above 0, or ``fixed:INT`` for the same; ``median`` for the median number
            of atoms over the responses (as in FactReasoner); ``half`` for half of each response's
            number of atoms. Medians and halves are not rounded. ``half-down`` rounds the half down
            to an integer of at least 1, as FactReasoner's release does.
        atom_counts: number of atoms of each response, (n_responses,), at least 1 each.

    Raises:
        InputError: for an unknown policy, K not above 0, or counts that are not positive integers.
    """
    counts = np.asarray(atom_counts)
    if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu" or counts.min() < 1:
        raise InputError(
            f"atom_counts is {atom_counts!r}; give each response's number of atoms, at least 1"
        )
    if not isinstance(policy, str):
        return np.full(counts.size, given_k(policy))
    if policy == "median":
        return np.full(counts.size, np.median(counts))
    if policy == "half":
        return counts / 2
    if policy == "half-down":
        rounded: Floats = np.maximum(counts // 2, 1).astype(np.float64)
        return rounded
    kind, _, number = policy.partition(":")
    if kind == "fixed" and number.isdecimal() and int(number) > 0:
        return np.full(counts.size, float(number))
    raise InputError(
        f"k is {policy!r}; give a number above 0, 'fixed:INT' with one, 'median', 'half' or "
        "'half-down'"
    )


def entropy_terms(p: Floats) -> Floats:
    """-P log10 P of each atom, (n,), with 0 at P = 0, its limit."""
    logarithms = np.zeros_like(p)
    np.log10(p, where=p > 0, out=logarithms)
    # Negate the logarithm rather than the product, so that P = 1 gives 0 and not -0.
    return p * np.abs(logarithms)


def warn_where_entropy_misorders(p: Floats) -> None:
    """Log a warning if atoms have P below 1/e, where E decreases as the atom gets less likely."""
    below = int((p < ENTROPY_PEAK).sum())
    if below:
        logger.warning(
            "entropy measure E: %d of %d atoms have P below 1/e (0.368), where E falls as P "
            "falls, so E does not order responses by truth; compare mean_surprisal or "
            "expected_precision",
            below,
            p.size,
        )


def entropy_measure(p: ArrayLike) -> float:
    """E, the mean of -P log10 P over the atoms (FactReasoner, section 3.2, equation 1).

    E is 0.150515 if every P is 1/2, and 0 if every P is 1. The paper states that E is infinite if
    every atom is certainly false, but its formula gives 0 at P = 0, which this function returns.
    Because -P log P is largest at P = 1/e and decreases below, E does not order responses by truth
    if atoms have P below 1/e; a warning is then logged. `mean_surprisal` and `expected_precision`
    order them.

    Raises:
        InputError: for bad probabilities.
    """
    probabilities = probability_array(p)
    warn_where_entropy_misorders(probabilities)
    return float(entropy_terms(probabilities).mean())


def surprisal_terms(p: Floats) -> Floats:
    """-log10 P of each atom, (n,), infinite at P = 0."""
    with np.errstate(divide="ignore"):
        return np.abs(np.log10(p))


def mean_surprisal(p: ArrayLike) -> float:
    """Mean of -log10 P over the atoms: 0 if every P is 1, infinite if a P is 0.

    Unlike E, it has the property that the paper states: it grows without bound as atoms become
    false.

    Raises:
        InputError: for bad probabilities.
    """
    return float(surprisal_terms(probability_array(p)).mean())


def expected_precision(p: ArrayLike) -> float:
    """Expected precision E[Pr], the mean of P over the atoms.

    Raises:
        InputError: for bad probabilities.
    """
    return float(probability_array(p).mean())


def given_k(k: Any) -> float:
    """Check a K of F1@K.

    Raises:
        InputError: if it is not a finite number above 0.
    """
    if not is_number(k) or not 0 < k < math.inf:
        raise InputError(f"k is {shown(k)}; give a number above 0")
    return float(k)


@contextmanager
def entropy_warnings() -> Iterator[list[str]]:
    """Collect warnings about E instead of logging them, so that cells do not repeat them."""
    collected: list[str] = []
    logger = logging.getLogger("calibration.scores.measures")

    def collect(record: logging.LogRecord) -> bool:
        collected.append(record.getMessage())
        return False

    logger.addFilter(collect)
    try:
        yield collected
    finally:
        logger.removeFilter(collect)
