"""Simulation of known truth: claims in responses, and how often tests reject it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.self_knowledge.claims import (
    FALSE,
    MISSING,
    SUPPORTED,
    TRUE,
    UNSUPPORTED,
    Claims,
    claims_of_columns,
)
from calibration.self_knowledge.formula import sigma
from calibration.validation import Floats, open_interval, whole_number
from factormodels.errors import InputError
from factormodels.io.claim_records import Setting, setting_named

TRUE_POSITIVE, FALSE_NEGATIVE, FALSE_POSITIVE, TRUE_NEGATIVE = range(4)
"""Supported and judged correct, supported and judged incorrect, unsupported and judged correct,
unsupported and judged incorrect: the columns of counts per response."""


@dataclass(frozen=True)
class Truth:
    """Distribution from which responses are drawn.

    Each response has its own factuality, SK and SU, drawn from beta distributions with these means
    and with `correlation` as the correlation between two claims of one response.

    Attributes:
        factuality: mean share of supported claims, in (0, 1).
        self_known: mean SK, in (0, 1).
        self_unknown: mean SU, in (0, 1).
        correlation: intraclass correlation, in (0, 1).
        n_responses: responses of a sample, at least 2.
        n_claims: mean number of claims of a response; their number is 1 + a Poisson count.

    Raises:
        InputError: for a number outside these ranges.
    """

    factuality: float = 0.6
    self_known: float = 0.7
    self_unknown: float = 0.55
    correlation: float = 0.2
    n_responses: int = 100
    n_claims: float = 25.0

    def __post_init__(self) -> None:
        for name in ("factuality", "self_known", "self_unknown", "correlation"):
            open_interval(getattr(self, name), name, 0, 1)
        whole_number(self.n_responses, "n_responses", 2)
        if not self.n_claims >= 1:
            raise InputError(f"n_claims is {self.n_claims!r}; give a number of at least 1")

    @property
    def sigma(self) -> float:
        """The sigma of SK and SU."""
        return float(sigma(self.self_known, self.self_unknown))


def simulate_counts(truth: Truth, n_replicates: int, seed: int) -> NDArray[np.float64]:
    """Counts of the four kinds of claims, float64 (n_replicates, n_responses, 4).

    The columns are TRUE_POSITIVE, FALSE_NEGATIVE, FALSE_POSITIVE and TRUE_NEGATIVE.
    """
    generator = np.random.default_rng(whole_number(seed, "seed", 0))
    shape = (whole_number(n_replicates, "n_replicates", 1), truth.n_responses)
    concentration = (1 - truth.correlation) / truth.correlation

    def draws_of(mean: float) -> Floats:
        return generator.beta(mean * concentration, (1 - mean) * concentration, size=shape)

    n_claims = 1 + generator.poisson(truth.n_claims - 1, size=shape)
    supported = generator.binomial(n_claims, draws_of(truth.factuality))
    known = generator.binomial(supported, draws_of(truth.self_known))
    unknown = generator.binomial(n_claims - supported, draws_of(truth.self_unknown))
    cells = (known, supported - known, n_claims - supported - unknown, unknown)
    return np.stack(cells, axis=-1).astype(np.float64)


def claims_of_counts(counts: Any, setting: str) -> Claims:
    """Claims, one sentence per response, of counts (n_responses, 4) as simulated.

    Responses are "r1", "r2", ...; one without claims has none. In the other settings the model
    was not asked.

    Raises:
        InputError: if there is no setting of that name.
    """
    chosen = setting_named(setting)
    table = np.asarray(counts, dtype=np.int64)
    kinds = np.tile(np.arange(4), len(table))
    kinds = np.repeat(kinds, table.ravel())
    owners = np.repeat(np.arange(len(table)), table.sum(axis=1))
    supported = (kinds == TRUE_POSITIVE) | (kinds == FALSE_NEGATIVE)
    judged = (kinds == TRUE_POSITIVE) | (kinds == FALSE_POSITIVE)
    ones = np.ones(len(kinds), dtype=np.int64)
    return claims_of_columns(
        [f"r{owner + 1}" for owner in owners.tolist()],
        ones,
        ones,
        np.where(supported, SUPPORTED, UNSUPPORTED).astype(np.int8),
        {
            each: (
                np.where(judged, TRUE, FALSE) if each is chosen else np.full(len(kinds), MISSING)
            ).astype(np.int8)
            for each in Setting
        },
    )


def rejections(
    truth: Truth,
    tests: Mapping[str, Callable[[Floats], float]],
    n_replicates: int = 1000,
    seed: int = 0,
    *,
    level: float = 0.05,
) -> dict[str, float]:
    """Share of simulated samples in which each test rejects.

    Args:
        truth: what the samples are drawn from.
        tests: functions from counts (n_responses, 4) to a p-value, by name.
        n_replicates: number of samples.
        seed: seed of the samples.
        level: a p-value up to this rejects.
    """
    samples = simulate_counts(truth, n_replicates, seed)
    return {
        name: sum(bool(test(counts) <= level) for counts in samples) / n_replicates
        for name, test in tests.items()
    }
