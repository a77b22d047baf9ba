"""Encodings of a relation and its probability as a log table over two binary variables.

A table has shape (2, 2), indexed [state of source, state of target] with 0 = false, 1 = true, and
holds natural logarithms of non-negative potentials. Posteriors depend on the encoding, so every
result names the encoding that it was computed with.
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
"""Name of the encoding in which an uninformative source leaves its target at its prior."""

MIXTURE = "mixture"
"""Name of the encoding that reads distributions over kinds, including neutral relations."""

KIND_CODES: Mapping[RelationKind, int] = MappingProxyType(
    {
        RelationKind.ENTAILMENT: 0,
        RelationKind.CONTRADICTION: 1,
        RelationKind.EQUIVALENCE: 2,
        RelationKind.EXCLUSIVE: 3,
        RelationKind.CO_NECESSITY: 4,
    }
)
"""Integer code of each kind of relation that has a factor."""

NEUTRAL_CODE = len(KIND_CODES)
"""Code of a neutral relation whose distribution gives it a factor under *mixture*."""

ALL_CODES: Mapping[RelationKind, int] = MappingProxyType(
    {**KIND_CODES, RelationKind.NEUTRAL: NEUTRAL_CODE}
)
"""Integer code of every kind, including neutral."""

_DIRECTIONS = frozen(
    [[0.0, 1.0], [0.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [0.0, 0.0]], np.float64
)
"""P(target true) - P(target false) under each relation, for a source that is [false, true]."""

_NOT_P, _P, _NOT_PRIOR, _PRIOR = range(4)
"""Codes of the numbers in tables: 1 - p and p, and 1 - q and q for the target's prior q."""

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
"""Code of each table entry by encoding, indexed [relation as in `KIND_CODES`, source, target].
*mixture* is absent, since its tables are computed from directions."""

VIOLATED: NDArray[np.bool_] = frozen(_ENTRIES["implication"] == _NOT_P, np.bool_)
"""Whether states violate a relation, indexed [relation as in `KIND_CODES`, source, target]."""

_SAYS = frozen([1.0, -1.0, 0.0, 0.0, 1.0], np.float64)
"""Direction in which a relation, as in `KIND_CODES`, moves its target under *conditional*: 1
(true), -1 (false), or 0 if no row holds the target's prior."""

CONFLICT_CODES = tuple(KIND_CODES[kind] for kind in KIND_CODES if kind in CONFLICTS)
"""Codes of the relations whose two texts cannot both hold."""


def implication(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Return the log table of FactReasoner's Table 1 (`target_prior` is unused).

    Entailment: p everywhere but 1 - p at (true, false). Contradiction: p everywhere but 1 - p at
    (true, true). Equivalence: p on the diagonal, 1 - p off it. Exclusive: 1 - p on the diagonal, p
    off it. Co-necessity: p everywhere but 1 - p at (false, false).

    Raises:
        InputError: for a neutral relation, which has no factor.
    """
    return encode_many([kind], [probability], [target_prior], "implication").reshape(2, 2)


def conditional(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Return the log table in which an uninformative source leaves the target at its prior.

    The row of an informative source state is the conditional distribution of the target given the
    relation, as in Table 1; the other row is (1 - target_prior, target_prior), as in FactReasoner's
    released code with priors. The informative state is true for entailment and contradiction, and
    false for co-necessity; under equivalence and exclusion both states are, as under *implication*.
    In a graph of statements, a uniform row replaces a prior that overrules the relation
    (`overruled`).

    Raises:
        InputError: for a neutral relation, which has no factor.
    """
    return encode_many([kind], [probability], [target_prior], CONDITIONAL).reshape(2, 2)


def mixture(kind: RelationKind, probability: float, target_prior: float) -> NDArray[np.float64]:
    """Return the log table of a relation that is of its kind or neutral (`target_prior` is unused).

    The row of a true source is the mixture of the target's distributions under each kind: true
    under entailment, false under contradiction, uniform under neutral. The row of a false source is
    uniform, except under equivalence, exclusion and co-necessity. `encode_many` takes the
    directions of the other kinds as `rest` if a relation states a full distribution.
    """
    kinds = [kind] if kind is not RelationKind.NEUTRAL else np.array([NEUTRAL_CODE])
    return encode_many(kinds, [probability], [target_prior], MIXTURE).reshape(2, 2)


ENCODINGS: Mapping[str, Encoding] = MappingProxyType(
    {"implication": implication, CONDITIONAL: conditional, MIXTURE: mixture}
)


def get_encoding(name: str) -> Encoding:
    """Return the encoding called `name`.

    Raises:
        InputError: if no encoding has that name; the message lists the encodings.
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
    """Return the log tables of several relations, float64 (m, 2, 2).

    Args:
        kinds: (m,) the relations, or their codes in `KIND_CODES`; under *mixture* also
            `NEUTRAL_CODE`.
        probabilities: (m,) probability of each relation, in [0, 1].
        target_priors: (m,) prior probability that each relation's target is true, in [0, 1].
        encoding: name of the encoding.
        rest: (m, 2) directions under *mixture* of the other kinds, as `rest_of` returns them; by
            default zeros, which means neutral.

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
    """Return the code of each entry of an encoding's tables, int64 (5, 2, 2).

    Indexed [relation as in `KIND_CODES`, state of source, state of target]. With p the probability
    of the relation and q the prior of its target, code 0 is 1 - p, 1 is p, 2 is 1 - q and 3 is q.

    Raises:
        InputError: if the encoding does not exist.
    """
    _check_name(encoding)
    if encoding not in _ENTRIES:
        raise InputError(unknown_name(f"the encoding {encoding!r}", encoding, _ENTRIES))
    return _ENTRIES[encoding]


def holds_prior() -> NDArray[np.bool_]:
    """Return whether each table entry of *conditional* is the target's prior, bool (5, 2, 2)."""
    return _ENTRIES[CONDITIONAL] >= _NOT_PRIOR


def overruled(
    codes: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    source_priors: NDArray[np.float64],
    target_priors: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Return whether the prior in each relation's own *conditional* table overrules the relation.

    A source that is informative with probability s sends its target the message s row + (1 - s) (1
    - q, q), where q is the target's prior. Both rows sum to 1, so the target moves in the direction
    of the sign of s (p - 1/2) + (1 - s) (q - 1/2), with 1 - p in place of p for a contradiction.

    Args:
        codes: int64 (m,), the relations as in `KIND_CODES`.
        probabilities, source_priors, target_priors: float64 (..., m).

    Returns:
        bool (..., m): whether the target moves against the relation.
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
    """Return the log tables of relations under *mixture*, for one or more settings.

    With d = p D(kind) + (1 - p) rest, where D is 1 for an entailed and -1 for a contradicted
    target, a row is ((1 - d)/2, (1 + d)/2): affine in p, and uniform for d = 0.

    Args:
        codes: int64 (m,), the relations as in `KIND_CODES`, or `NEUTRAL_CODE`.
        probabilities: float64 (..., m), in [0, 1].
        rest: float64 (m, 2), as `rest_of` returns it.

    Returns:
        float64 (..., m, 2, 2), indexed [relation, source, target].
    """
    p = probabilities[..., None]
    directions = p * _DIRECTIONS[codes] + (1.0 - p) * np.asarray(rest, dtype=np.float64)
    # Rounding may push a certain relation past one.
    np.clip(directions, -1.0, 1.0, out=directions)
    with np.errstate(divide="ignore"):
        return np.log(np.stack([1.0 - directions, 1.0 + directions], axis=-1) / 2.0)


def rest_of(kind: RelationKind, distribution: Sequence[float]) -> tuple[float, float]:
    """Return the direction of a relation given that it is of another kind than the stated one.

    Args:
        kind: the stated kind.
        distribution: probabilities of the kinds, in the order of `RelationKind`; missing kinds at
            the end have probability 0.

    Returns:
        P(target true) - P(target false), given that the relation is of another kind, for a false
        and for a true source; 0 if no other kind is possible.
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
    """Return the codes of relations as in `KIND_CODES`, int64 (m,); codes are checked and returned.

    Args:
        kinds: the relations, or their codes.
        neutral: whether to accept `NEUTRAL_CODE`.

    Raises:
        InputError: for a neutral relation, or an unknown code.
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
