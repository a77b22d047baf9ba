"""Encodings: how a relation and its probability become a log table over two binary variables.

A table has shape (2, 2), indexed [state of source, state of target] with 0 = false, 1 = true,
and holds natural logarithms of non-negative potentials. The encodings give different posteriors, so
a result always names the one it was computed with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.arrays import frozen
from factormodels.claims import CONFLICTS, RelationKind
from factormodels.errors import InputError, unknown_name
from factormodels.validation import check_probabilities

Encoding = Callable[[RelationKind, float, float], NDArray[np.float64]]
"""(relation kind, probability, prior of the target) -> log table of shape (2, 2)."""

DEFAULT_ENCODING = "implication"

CONDITIONAL = "conditional"
"""The encoding in whose tables a silent source leaves its target at its prior."""

MIXTURE = "mixture"
"""The encoding that reads distributions over kinds, neutral relations included."""

KIND_CODES: Mapping[RelationKind, int] = MappingProxyType(
    {
        RelationKind.ENTAILMENT: 0,
        RelationKind.CONTRADICTION: 1,
        RelationKind.EQUIVALENCE: 2,
        RelationKind.EXCLUSIVE: 3,
        RelationKind.CO_NECESSITY: 4,
    }
)
"""Number of each relation that has a factor, for relations held in arrays."""

NEUTRAL_CODE = len(KIND_CODES)
"""Number of a neutral relation that has a factor under *mixture*, by what else it may be."""

ALL_CODES: Mapping[RelationKind, int] = MappingProxyType(
    {**KIND_CODES, RelationKind.NEUTRAL: NEUTRAL_CODE}
)
"""Number of every relation."""

_DIRECTIONS = frozen(
    [[0.0, 1.0], [0.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [0.0, 0.0]], np.float64
)
"""P(target true) - P(target false) under each relation where its source is [false, true]."""

_NOT_P, _P, _NOT_PRIOR, _PRIOR = range(4)
"""The numbers that tables are made of: 1 - p, p, and the same of the target's prior."""

_ENTRIES: Mapping[str, NDArray[np.int64]] = MappingProxyType(
    {
        "implication": frozen(
            [
                [[_P, _P], [_NOT_P, _P]],
                [[_P, _P], [_P, _NOT_P]],
                [[_P, _NOT_P], [_NOT_P, _P]],
                [[_NOT_P, _P], [_P, _NOT_P]],
                [[_NOT_P, _P], [_P, _P]],
            ],
            np.int64,
        ),
        CONDITIONAL: frozen(
            [
                [[_NOT_PRIOR, _PRIOR], [_NOT_P, _P]],
                [[_NOT_PRIOR, _PRIOR], [_P, _NOT_P]],
                [[_P, _NOT_P], [_NOT_P, _P]],
                [[_NOT_P, _P], [_P, _NOT_P]],
                [[_NOT_P, _P], [_NOT_PRIOR, _PRIOR]],
            ],
            np.int64,
        ),
    }
)
"""Which number stands where, by encoding: [relation as in `KIND_CODES`, source, target].

Tables of *mixture* are not such numbers: they are computed from directions."""

VIOLATED: NDArray[np.bool_] = frozen(_ENTRIES["implication"] == _NOT_P, np.bool_)
"""In which states a relation does not hold: [relation as in `KIND_CODES`, source, target]."""

_SAYS = frozen([1.0, -1.0, 0.0, 0.0, 1.0], np.float64)
"""Where a relation as in `KIND_CODES` moves its target if the other row holds the target's prior:
to true, to false, or 0 if neither row does."""

CONFLICT_CODES = tuple(KIND_CODES[kind] for kind in KIND_CODES if kind in CONFLICTS)
"""Numbers of the relations whose two texts cannot both hold."""


def implication(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Log table of FactReasoner's Table 1 (`target_prior` plays no part).

    Entailment: p everywhere but 1 - p at (true, false). Contradiction: p everywhere but 1 - p at
    (true, true). Equivalence: p on the diagonal, 1 - p off it. Exclusive: 1 - p on the diagonal, p
    off it. Co-necessity: p everywhere but 1 - p at (false, false).

    Raises:
        InputError: for a neutral relation, which has no factor.
    """
    return encode_many([kind], [probability], [target_prior], "implication").reshape(2, 2)


def conditional(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Log table in which a source that says nothing leaves the target at its prior.

    The row of a source that speaks is the conditional distribution of the target given the
    relation, as in Table 1; the other row is (1 - target_prior, target_prior), as in FactReasoner's
    released code with priors. A true source of an entailment or a contradiction speaks, and a false
    one of a co-necessity; under equivalence and exclusion both do, as under *implication*. A graph
    of statements has an even row in place of a prior that overrules the relation (`overruled`).

    Raises:
        InputError: for a neutral relation, which has no factor.
    """
    return encode_many([kind], [probability], [target_prior], CONDITIONAL).reshape(2, 2)


def mixture(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Log table of a relation that may be of its kind or neutral (`target_prior` plays no part).

    The row of a true source is the mixture of the target's distributions under each kind: true if
    it is entailed, false if it is contradicted, even if the relation is neutral. A false source
    says nothing, but of an equivalent, exclusive or co-necessary target. Where a relation states a
    whole distribution, `encode_many` takes what it says of the other kinds as `rest`.
    """
    kinds = [kind] if kind is not RelationKind.NEUTRAL else np.array([NEUTRAL_CODE])
    return encode_many(kinds, [probability], [target_prior], MIXTURE).reshape(2, 2)


ENCODINGS: Mapping[str, Encoding] = MappingProxyType(
    {"implication": implication, CONDITIONAL: conditional, MIXTURE: mixture}
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
    rest: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Log tables of many relations at once, an array of shape (m, 2, 2).

    Args:
        kinds: (m,) the relations, or their numbers as in `KIND_CODES`, under *mixture* also
            `NEUTRAL_CODE`.
        probabilities: (m,) probability of each, in [0, 1].
        target_priors: (m,) prior probability that each relation's target is true, in [0, 1].
        encoding: name of the encoding.
        rest: (m, 2) what each says under *mixture* where it is not of its kind, as `rest_of`
            returns it; zeros, as of neutral relations, by default.

    Raises:
        InputError: for an unknown encoding, a neutral relation, or a number outside [0, 1].
    """
    _check_name(encoding)
    codes = kind_codes(kinds, neutral=encoding == MIXTURE)
    p = _checked(probabilities, "probability", len(codes))
    priors = _checked(target_priors, "target prior", len(codes))
    if encoding == MIXTURE:
        return mixture_tables(codes, p, np.zeros((len(codes), 2)) if rest is None else rest)
    entries = entries_of(encoding)
    numbers = np.stack([1.0 - p, p, 1.0 - priors, priors], axis=1)
    with np.errstate(divide="ignore"):
        logarithms: NDArray[np.float64] = np.log(numbers)
    return logarithms[np.arange(len(codes))[:, None, None], entries[codes]]


def entries_of(encoding: str) -> NDArray[np.int64]:
    """Which number stands in each entry of an encoding's tables, int64 (3, 2, 2).

    Indexed [relation as in `KIND_CODES`, state of source, state of target]; with p the probability
    of the relation and q the prior of its target, 0 is 1 - p, 1 is p, 2 is 1 - q and 3 is q.

    Raises:
        InputError: if there is no such encoding.
    """
    _check_name(encoding)
    if encoding not in _ENTRIES:
        raise InputError(unknown_name(f"the encoding {encoding!r}", encoding, _ENTRIES))
    return _ENTRIES[encoding]


def holds_prior() -> NDArray[np.bool_]:
    """Entries of the tables of *conditional* that hold the target's prior, bool (5, 2, 2)."""
    return _ENTRIES[CONDITIONAL] >= _NOT_PRIOR


def overruled(
    codes: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    source_priors: NDArray[np.float64],
    target_priors: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Which relations the prior in their own table of *conditional* overrules.

    A source that speaks with probability s sends its target the message s row + (1 - s) (1 - q, q),
    q the target's prior. Both rows sum to 1, so that the sign of
    s (p - 1/2) + (1 - s) (q - 1/2), p taken as 1 - p of a contradiction, is where it moves.

    Args:
        codes: int64 (m,), the relations as in `KIND_CODES`.
        probabilities, source_priors, target_priors: float64 (..., m).

    Returns:
        bool (..., m): whether that is the other way than the relation says.
    """
    says = _SAYS[codes]
    speaks = np.where(codes == KIND_CODES[RelationKind.CO_NECESSITY], 1.0 - source_priors,
                      source_priors)  # fmt: skip
    moves = speaks * (probabilities - 0.5) + (1.0 - speaks) * says * (target_priors - 0.5)
    result: NDArray[np.bool_] = (says != 0.0) & (probabilities >= 0.5) & (moves < 0.0)
    return result


def mixture_tables(
    codes: NDArray[np.int64], probabilities: NDArray[np.float64], rest: ArrayLike
) -> NDArray[np.float64]:
    """Log tables of relations under *mixture*, one setting of their probabilities or many.

    With d = p D(kind) + (1 - p) rest, D being 1 of an entailed target and -1 of a contradicted one,
    a row is ((1 - d)/2, (1 + d)/2): affine in p, and even where nothing is known.

    Args:
        codes: int64 (m,), the relations as in `KIND_CODES`, or `NEUTRAL_CODE`.
        probabilities: float64 (..., m), in [0, 1].
        rest: float64 (m, 2), as `rest_of` returns it.

    Returns:
        float64 (..., m, 2, 2), indexed [relation, source, target].
    """
    p = probabilities[..., None]
    directions = p * _DIRECTIONS[codes] + (1.0 - p) * np.asarray(rest, dtype=np.float64)
    # Rounding may carry a certain relation past one.
    np.clip(directions, -1.0, 1.0, out=directions)
    with np.errstate(divide="ignore"):
        return np.log(np.stack([1.0 - directions, 1.0 + directions], axis=-1) / 2.0)


def rest_of(kind: RelationKind, distribution: Sequence[float]) -> tuple[float, float]:
    """What a relation says where it is not of its kind.

    Args:
        kind: its kind.
        distribution: probabilities of the kinds, in the order of `RelationKind`; kinds behind its
            end have none.

    Returns:
        P(target true) - P(target false), given that the relation is of another kind, where its
        source is false and where it is true; 0 where no other kind is possible.
    """
    others = {
        k: share for k, share in zip(RelationKind, distribution, strict=False) if k is not kind
    }
    total = sum(others.values())
    if total == 0.0:
        return 0.0, 0.0
    false, true = (
        sum(share * _DIRECTIONS[ALL_CODES[k], state] for k, share in others.items()) / total
        for state in (0, 1)
    )
    return float(false), float(true)


def kind_codes(
    kinds: Sequence[RelationKind] | NDArray[np.integer], *, neutral: bool = False
) -> NDArray[np.int64]:
    """Numbers of relations as in `KIND_CODES`, (m,), those of an array as they are.

    Args:
        kinds: the relations, or their numbers.
        neutral: whether `NEUTRAL_CODE` is one of them.

    Raises:
        InputError: for a neutral relation, or a number that is none of theirs.
    """
    if isinstance(kinds, np.ndarray):
        codes = np.asarray(kinds, dtype=np.int64)
        most = NEUTRAL_CODE if neutral else len(KIND_CODES) - 1
        if codes.size and (codes.min() < 0 or codes.max() > most):
            at = int(np.argmax((codes < 0) | (codes > most)))
            raise InputError(f"relation {at} has the code {codes[at]}; codes run from 0 to {most}")
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
    check_probabilities(array, "relation", what)
    return array
