"""Probability distributions of synthetic priors and relation probabilities.

The laws use NumPy's generators, and are validated to stay within [0, 1]. Distributions of
`scipy.stats` were measured as an alternative: a draw of ten numbers takes 43 µs instead of 2.5 µs,
which adds a fifth to the time of a response of four claims; importing `scipy.stats` takes longer
than drawing a thousand of them; its `uniform` rounds differently; and it has no constant and no
mixture of these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import ATOM_PRIOR, CONTEXT_PRIOR
from factormodels.encodings import KIND_CODES
from factormodels.errors import InputError
from factormodels.validation import validated_probability

Seed = int | Sequence[int] | np.random.SeedSequence | np.random.Generator
"""Values from which NumPy creates a random generator."""


class Law(Protocol):
    """Protocol of distributions of numbers in [0, 1]."""

    def sample(self, generator: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return `size` independent draws."""


@dataclass(frozen=True)
class Beta:
    """The beta distribution with shape parameters `a` and `b`, mean a / (a + b)."""

    a: float
    b: float

    def __post_init__(self) -> None:
        if not (0.0 < self.a < math.inf and 0.0 < self.b < math.inf):
            raise InputError(
                f"Beta({self.a!r}, {self.b!r}) is not a law; both parameters are numbers above 0"
            )

    def sample(self, generator: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return `size` independent draws."""
        return generator.beta(self.a, self.b, size)


@dataclass(frozen=True)
class Uniform:
    """The uniform distribution between `low` and `high`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.low <= self.high <= 1.0:
            raise InputError(
                f"Uniform({self.low!r}, {self.high!r}) is not a distribution of probabilities; "
                "give 0 <= low <= high <= 1"
            )

    def sample(self, generator: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return `size` independent draws."""
        return generator.uniform(self.low, self.high, size)


@dataclass(frozen=True)
class Constant:
    """The law with the single value `value`."""

    value: float

    def __post_init__(self) -> None:
        validated_probability(self.value, "Constant")

    def sample(
        self,
        generator: np.random.Generator,  # noqa: ARG002
        size: int,
    ) -> NDArray[np.float64]:
        """Return `size` copies of the value; the generator is not used."""
        return np.full(size, float(self.value))


@dataclass(frozen=True)
class Mixture:
    """A mixture of laws, one of which is chosen independently for every draw.

    Attributes:
        parts: pairs of a weight above 0 and a law; weights need not sum to 1, and their sum is
            finite.
    """

    parts: tuple[tuple[float, Law], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple((w, law) for w, law in self.parts))
        weights = [weight for weight, _ in self.parts]
        if not all(weight > 0.0 for weight in weights) or not 0.0 < sum(weights) < math.inf:
            raise InputError(
                f"the weights of a mixture are {weights}; give numbers above 0 with a finite sum"
            )

    def sample(self, generator: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return `size` independent draws."""
        chosen = choose(generator, [weight for weight, _ in self.parts], size)
        values = np.empty(size)
        for part, (_, law) in enumerate(self.parts):
            of_part = chosen == part
            values[of_part] = law.sample(generator, int(of_part.sum()))
        return values


def mixed_reliability(share: float = 0.2) -> Mixture | Constant:
    """Return a distribution of context priors: 0.99, but uniform on [0.5, 0.95] for a `share`.

    Raises:
        InputError: if the share is not in [0, 1).
    """
    if not 0.0 <= share < 1.0:
        raise InputError(f"the share {share!r} of unreliable contexts is not in [0, 1); correct it")
    reliable = Constant(CONTEXT_PRIOR)
    if share == 0.0:
        return reliable
    return Mixture(((1.0 - share, reliable), (share, Uniform(0.5, 0.95))))


@dataclass(frozen=True)
class Densities:
    """Probabilities that a pair is related, by kind of relation."""

    entailment: float = 0.0
    contradiction: float = 0.0
    equivalence: float = 0.0
    exclusive: float = 0.0
    co_necessity: float = 0.0

    def __post_init__(self) -> None:
        for kind, density in asdict(self).items():
            validated_probability(density, f"density of {kind}")
        if self.total > 1.0 + 1e-12:
            raise InputError(
                f"the densities sum to {self.total!r}; a pair has one relation at most, "
                "so give densities whose sum is at most 1"
            )

    @property
    def total(self) -> float:
        """Probability that a pair is related."""
        return math.fsum(astuple(self))


SHARES = Densities(entailment=0.6, contradiction=0.25, equivalence=0.15)
"""Default shares of the kinds among related pairs."""

STRENGTH = Beta(8.0, 2.0)
"""Default distribution of the probability of a relation: mean 0.8, rarely below 0.5."""

ATOM_PRIORS = Constant(ATOM_PRIOR)
CONTEXT_PRIORS = Constant(CONTEXT_PRIOR)


@dataclass(frozen=True)
class FactLaws:
    """The distributions of a synthetic response's priors and relation probabilities.

    Attributes:
        shares: shares of each kind among related pairs, as relative weights.
        entailment: distribution of the probability of an entailment.
        contradiction: distribution of the probability of a contradiction.
        equivalence: distribution of the probability of an equivalence.
        exclusive: distribution of the probability of an exclusion.
        co_necessity: distribution of the probability of a co-necessity.
        atom_prior: distribution of the priors of atoms.
        context_prior: distribution of the priors of contexts.
    """

    shares: Densities = SHARES
    entailment: Law = STRENGTH
    contradiction: Law = STRENGTH
    equivalence: Law = STRENGTH
    exclusive: Law = STRENGTH
    co_necessity: Law = STRENGTH
    atom_prior: Law = ATOM_PRIORS
    context_prior: Law = CONTEXT_PRIORS

    def __post_init__(self) -> None:
        if self.shares.total == 0.0:
            raise InputError("the shares of the kinds of relation are all 0; give one above 0")

    def sample_probabilities(
        self, generator: np.random.Generator, kinds: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return one probability per relation, from the distribution of its kind.

        Args:
            generator: source of randomness.
            kinds: (m,) code of each relation, as in `encodings.KIND_CODES`.
        """
        values = np.empty(len(kinds))
        for kind, code in KIND_CODES.items():
            of_kind = kinds == code
            law: Law = getattr(self, kind.value)
            values[of_kind] = law.sample(generator, int(of_kind.sum()))
        return values


def choose(
    generator: np.random.Generator, weights: Sequence[float], size: int
) -> NDArray[np.int64]:
    """Return `size` independent indices, each drawn in proportion to its weight."""
    steps = np.cumsum(np.asarray(weights, dtype=np.float64))
    drawn = np.searchsorted(steps, generator.random(size) * steps[-1], side="right")
    # With subnormal weights, products may round up past the last index.
    chosen: NDArray[np.int64] = np.minimum(drawn, int(np.flatnonzero(weights)[-1]))
    return chosen


def whole(value: object, what: str, least: int) -> int:
    """Return `value` as an integer.

    Raises:
        InputError: if it is not a whole number or below `least`; `what` names it.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what} is {value!r}; give a whole number, at least {least}")
    return int(value)
