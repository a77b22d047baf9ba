"""Responses of known incoherence: consistent claims with conflicts planted at a given rate."""

from __future__ import annotations

import math

import numpy as np

from factormodels.claims import Atom, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.synthetic.laws import STRENGTH, Seed, Uniform, whole

PLANTED_KEY = "planted_conflicts"
"""Metadata key of the number of planted conflicts."""

FALSE_ALARM = Uniform(0.3, 0.8)
"""Law of the probability of a false alarm; models are less certain of these."""

_SHARE_OF_EQUIVALENCES = 0.2
_SHARE_OF_EXCLUSIONS = 0.2


def incoherent_response(
    n_claims: int,
    rate: float,
    *,
    entailments: float = 0.5,
    false_alarms: float = 0.1,
    window: int = 6,
    seed: Seed,
) -> FactGraph:
    """Return a response with a known number of conflicts, as a relation model sees it.

    Numbers of relations follow Poisson laws, but the number of planted conflicts is `rate` times
    the number of claims, rounded. Every relation joins a different pair of claims, at most `window`
    apart. A fifth of the entailments are equivalences, and a fifth of the conflicts exclusions.
    Their probabilities follow `STRENGTH`, those of false alarms `FALSE_ALARM`.

    Args:
        n_claims: number of claims, 2 or more.
        rate: planted conflicts per claim.
        entailments: mean number of relations of agreement per claim.
        false_alarms: mean number of conflicts per claim that the relation model predicts wrongly.
        window: maximum distance of related claims, in claims.
        seed: seed, or a generator.

    Returns:
        The response; `metadata[PLANTED_KEY]` has the number of planted conflicts.

    Raises:
        InputError: if a number is out of range, or there are too few pairs.
    """
    n = whole(n_claims, "the number of claims", 2)
    reach = whole(window, "the window", 1)
    for what, value in (
        ("rate of conflicts", rate),
        ("number of entailments", entailments),
        ("number of false alarms", false_alarms),
    ):
        if not (math.isfinite(value) and value >= 0.0):
            raise InputError(f"the {what} per claim is {value!r}; give 0 or more")
    generator = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, min(n, i + reach + 1))]
    numbers = (
        int(generator.poisson(entailments * n)),
        round(rate * n),
        int(generator.poisson(false_alarms * n)),
    )
    if sum(numbers) > len(pairs):
        raise InputError(
            f"{sum(numbers)} relations are to join {len(pairs)} pairs of {n} claims at most "
            f"{reach} apart; take fewer per claim, or a wider window"
        )
    chosen = generator.permutation(len(pairs))[: sum(numbers)]
    kinds = [
        *_kinds(generator, numbers[0], "entailment", "equivalence", _SHARE_OF_EQUIVALENCES),
        *_kinds(generator, numbers[1], "contradiction", "exclusive", _SHARE_OF_EXCLUSIONS),
        *[RelationKind.CONTRADICTION] * numbers[2],
    ]
    probabilities = np.concatenate(
        [
            STRENGTH.sample(generator, numbers[0] + numbers[1]),
            FALSE_ALARM.sample(generator, numbers[2]),
        ]
    )
    relations = [
        Relation(f"a{pairs[at][0] + 1}", f"a{pairs[at][1] + 1}", kind, float(p))
        for at, kind, p in zip(chosen.tolist(), kinds, probabilities, strict=True)
    ]
    return FactGraph(
        "r",
        tuple(Atom(f"a{number}") for number in range(1, n + 1)),
        relations=tuple(relations),
        metadata={PLANTED_KEY: numbers[1]},
    ).with_parameters()


def _kinds(
    generator: np.random.Generator, size: int, usual: str, other: str, share: float
) -> list[RelationKind]:
    return [
        RelationKind(other if draw < share else usual) for draw in generator.random(size).tolist()
    ]
