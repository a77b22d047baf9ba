"""Encodings: how a relation and its probability become a log table over two binary variables.

A table has shape (2, 2), indexed [state of source, state of target] with 0 = false, 1 = true,
and holds natural logarithms of non-negative potentials. The two encodings give different
posteriors, so a result always names the one it was computed with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.arrays import frozen
from factormodels.claims import RelationKind
from factormodels.errors import InputError, unknown_name

Encoding = Callable[[RelationKind, float, float], NDArray[np.float64]]
"""(relation kind, probability, prior of the target) -> log table of shape (2, 2)."""

DEFAULT_ENCODING = "implication"

KIND_CODES: Mapping[RelationKind, int] = MappingProxyType(
    {RelationKind.ENTAILMENT: 0, RelationKind.CONTRADICTION: 1, RelationKind.EQUIVALENCE: 2}
)
"""Number of each relation that has a factor, for relations held in arrays."""

_NOT_P, _P, _NOT_PRIOR, _PRIOR = range(4)
"""The numbers that tables are made of: 1 - p, p, and the same of the target's prior."""

_ENTRIES: Mapping[str, NDArray[np.int64]] = MappingProxyType(
    {
        "implication": frozen(
            [
                [[_P, _P], [_NOT_P, _P]],
                [[_P, _P], [_P, _NOT_P]],
                [[_P, _NOT_P], [_NOT_P, _P]],
            ],
            np.int64,
        ),
        "conditional": frozen(
            [
                [[_NOT_PRIOR, _PRIOR], [_NOT_P, _P]],
                [[_NOT_PRIOR, _PRIOR], [_P, _NOT_P]],
                [[_P, _NOT_P], [_NOT_P, _P]],
            ],
            np.int64,
        ),
    }
)
"""Which number stands where, by encoding: [relation as in `KIND_CODES`, source, target]."""


def implication(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Log table of FactReasoner's Table 1 (`target_prior` plays no part).

    Entailment: p everywhere but 1 - p at (true, false). Contradiction: p everywhere but 1 - p at
    (true, true). Equivalence: p on the diagonal, 1 - p off it.

    Raises:
        InputError: for a neutral relation, which has no factor.
    """
    return encode_many([kind], [probability], [target_prior], "implication").reshape(2, 2)


def conditional(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Log table in which a false source leaves the target at its prior.

    The row of a true source is the conditional distribution of the target given the relation, as
    in Table 1; the row of a false source is (1 - target_prior, target_prior), as in FactReasoner's
    released code with priors. Equivalence is the same as under *implication*.

    Raises:
        InputError: for a neutral relation, which has no factor.
    """
    return encode_many([kind], [probability], [target_prior], "conditional").reshape(2, 2)


ENCODINGS: Mapping[str, Encoding] = MappingProxyType(
    {"implication": implication, "conditional": conditional}
)


def get_encoding(name: str) -> Encoding:
    """Encoding called `name`.

    Raises:
        InputError: if there is none of that name; the message lists those there are.
    """
    _check_name(name)
    return ENCODINGS[name]


def encode_many(
    kinds: Sequence[RelationKind] | NDArray[np.integer],
    probabilities: ArrayLike,
    target_priors: ArrayLike,
    encoding: str = DEFAULT_ENCODING,
) -> NDArray[np.float64]:
    """Log tables of many relations at once, an array of shape (m, 2, 2).

    Args:
        kinds: (m,) the relations, or their numbers as in `KIND_CODES`.
        probabilities: (m,) probability of each, in [0, 1].
        target_priors: (m,) prior probability that each relation's target is true, in [0, 1].
        encoding: name of the encoding.

    Raises:
        InputError: for an unknown encoding, a neutral relation, or a number outside [0, 1].
    """
    entries = entries_of(encoding)
    codes = kind_codes(kinds)
    p = _checked(probabilities, "probability", len(codes))
    priors = _checked(target_priors, "target prior", len(codes))
    numbers = np.stack([1.0 - p, p, 1.0 - priors, priors], axis=1)
    with np.errstate(divide="ignore"):
        logarithms: NDArray[np.float64] = np.log(numbers)
    return logarithms[np.arange(len(codes))[:, None, None], entries[codes]]


def entries_of(encoding: str) -> NDArray[np.int64]:
    """Which number stands in each entry of an encoding's tables, int64 (3, 2, 2).

    Indexed [relation as in `KIND_CODES`, state of source, state of target]; with p the probability
    of the relation and q the prior of its target, 0 is 1 - p, 1 is p, 2 is 1 - q and 3 is q.

    Raises:
        InputError: if there is no encoding of that name.
    """
    _check_name(encoding)
    return _ENTRIES[encoding]


def kind_codes(kinds: Sequence[RelationKind] | NDArray[np.integer]) -> NDArray[np.int64]:
    """Numbers of relations as in `KIND_CODES`, (m,), those of an array as they are.

    Raises:
        InputError: for a neutral relation, or a number that is none of theirs.
    """
    if isinstance(kinds, np.ndarray):
        codes = np.asarray(kinds, dtype=np.int64)
        if codes.size and (codes.min() < 0 or codes.max() >= len(KIND_CODES)):
            at = int(np.argmax((codes < 0) | (codes >= len(KIND_CODES))))
            raise InputError(
                f"relation {at} has the code {codes[at]}; codes run from 0 to {len(KIND_CODES) - 1}"
            )
        return codes
    try:
        return np.array([KIND_CODES[kind] for kind in kinds], dtype=np.int64)
    except KeyError as error:
        raise InputError(
            f"a relation of kind {error.args[0]!s} has no factor; drop it before encoding"
        ) from None


def _check_name(encoding: str) -> None:
    if encoding not in ENCODINGS:
        raise InputError(unknown_name(f"the encoding {encoding!r}", encoding, ENCODINGS))


def _checked(values: ArrayLike, what: str, count: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (count,):
        raise InputError(
            f"{array.shape} is the shape of the array of each relation's {what}; "
            f"give one for each of the {count} relations"
        )
    bad = ~((array >= 0.0) & (array <= 1.0))
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"relation {at}: the {what} {float(array[at])!r} is not between 0 and 1; correct it"
        )
    return array
