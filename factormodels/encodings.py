"""Encodings: how a relation and its probability become a log table over two binary variables.

A table has shape (2, 2), indexed [state of source, state of target] with 0 = false, 1 = true,
and holds natural logarithms of non-negative potentials. The two encodings give different
posteriors, so a result always names the one it was computed with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import RelationKind
from factormodels.errors import InputError

Encoding = Callable[[RelationKind, float, float], NDArray[np.float64]]
"""(relation kind, probability, prior of the target) -> log table of shape (2, 2)."""

DEFAULT_ENCODING = "implication"


def implication(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Return the log table of FactReasoner's Table 1 (`target_prior` plays no part).

    Entailment: p everywhere but 1 - p at (true, false). Contradiction: p everywhere but 1 - p at
    (true, true). Equivalence: p on the diagonal, 1 - p off it.

    Raises:
        InputError: for a neutral relation, which has no factor.
    """
    p, q = probability, 1.0 - probability
    match kind:
        case RelationKind.ENTAILMENT:
            table = [[p, p], [q, p]]
        case RelationKind.CONTRADICTION:
            table = [[p, p], [p, q]]
        case RelationKind.EQUIVALENCE:
            table = [[p, q], [q, p]]
        case _:
            raise _without_factor(kind)
    return _log(table)


def conditional(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Return the log table in which a false source leaves the target at its prior.

    The row of a true source is the conditional distribution of the target given the relation, as
    in Table 1; the row of a false source is (1 - target_prior, target_prior), as in FactReasoner's
    released code with priors. Equivalence is the same as under *implication*.

    Raises:
        InputError: for a neutral relation, which has no factor.
    """
    p, q = probability, 1.0 - probability
    unaffected = [1.0 - target_prior, target_prior]
    match kind:
        case RelationKind.ENTAILMENT:
            table = [unaffected, [q, p]]
        case RelationKind.CONTRADICTION:
            table = [unaffected, [p, q]]
        case RelationKind.EQUIVALENCE:
            table = [[p, q], [q, p]]
        case _:
            raise _without_factor(kind)
    return _log(table)


ENCODINGS: Mapping[str, Encoding] = MappingProxyType(
    {"implication": implication, "conditional": conditional}
)


def get_encoding(name: str) -> Encoding:
    """Return the encoding called `name`.

    Raises:
        InputError: if there is none of that name; the message lists those there are.
    """
    try:
        return ENCODINGS[name]
    except KeyError:
        raise InputError(
            f"the encoding {name!r} is unknown; use one of {', '.join(ENCODINGS)}"
        ) from None


def _log(table: list[list[float]]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.log(np.array(table, dtype=np.float64))


def _without_factor(kind: RelationKind) -> InputError:
    return InputError(f"a relation of kind {kind} has no factor; drop it before encoding")
