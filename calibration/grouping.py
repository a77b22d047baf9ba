"""Grouping of atoms by response, and sums over the atoms of each response."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.validation import Floats, Integers, is_missing
from factormodels.errors import InputError


@dataclass(frozen=True, eq=False)
class Grouping:
    """Assignment of atoms to responses.

    Attributes:
        responses: the distinct response ids, in order of first appearance.
        index: int64 (n_atoms,), the position in `responses` of every atom's response.
        sizes: int64 (n_responses,), the number of atoms of each response.
    """

    responses: Sequence[Hashable]
    index: Integers
    sizes: Integers

    def of(self, kept: NDArray[np.bool_]) -> Grouping:
        """Grouping of a subset of the atoms, a mask bool (n_atoms,), by first appearance."""
        if _ascends(self.index):
            return _closed_up(self.responses, self.index[kept])
        numbers, index, sizes = _by_appearance(self.index[kept])
        return Grouping(tuple(self.responses[number] for number in numbers), index, sizes)

    def sums(self, values: Any) -> Floats:
        """Sum over each response's atoms, (n_responses,), of `values`, (n_atoms,)."""
        weights = np.asarray(values).astype(np.float64, copy=False)
        sums = np.bincount(self.index, weights=weights, minlength=len(self.responses))
        return sums.astype(np.float64, copy=False)

    def means(self, values: Any) -> Floats:
        """Mean over each response's atoms, (n_responses,), of `values`, (n_atoms,)."""
        return self.sums(values) / self.sizes


def response_ids(responses: Any, name: str = "responses") -> list[Hashable]:
    """Response ids as a list, one per atom, with their original types.

    Args:
        responses: response ids (n_atoms,).
        name: name of the argument in errors.

    Raises:
        InputError: if `responses` is None, a text, or not a sequence.
    """
    wanted = "give one response id per atom" if name == "responses" else "give one id per atom"
    if responses is None or isinstance(responses, (str, bytes)):
        raise InputError(f"{name} is {responses!r}; {wanted}")
    # Lists are not converted to arrays: NumPy would make the ids 1 and "1" equal.
    try:
        return list(responses.tolist() if hasattr(responses, "tolist") else responses)
    except TypeError:
        raise InputError(f"{name} is {responses!r}; {wanted}") from None


def group_by_response(responses: Any, name: str = "responses") -> Grouping:
    """Grouping of atoms by response.

    Args:
        responses: response ids (n_atoms,), numbers or texts.
        name: name of the argument in errors.

    Raises:
        InputError: if `responses` is empty or not a sequence, or an id is missing or a container.
    """
    if _are_numbers(responses):
        return _group_by_number(responses)
    ids = response_ids(responses, name)
    if not ids:
        raise InputError(f"{name} is empty; give one id per atom")
    positions: dict[Hashable, int] = {}
    try:
        index = np.fromiter(
            (positions.setdefault(identifier, len(positions)) for identifier in ids),
            dtype=np.int64,
            count=len(ids),
        )
    except TypeError:
        raise InputError(
            f"{name} holds a list, a table or another container; give one id per atom"
        ) from None
    for identifier, position in positions.items():
        if is_missing(identifier):
            first = int(np.argmax(index == position))
            raise InputError(f"{name}[{first}] is missing; give every atom an id")
    return Grouping(tuple(positions), index, np.bincount(index, minlength=len(positions)))


def _are_numbers(responses: Any) -> bool:
    """Return whether responses are a non-empty one-dimensional array of integers."""
    return (
        isinstance(responses, np.ndarray)
        and responses.dtype.kind in "iu"
        and responses.ndim == 1
        and responses.size > 0
    )


def _group_by_number(numbers: Integers) -> Grouping:
    """Group atoms by integer ids (n_atoms,), as `group_by_response` does, without a list."""
    index = numbers.astype(np.int64, copy=False)
    # The usual case: ids number the responses in order; some responses may have no atoms.
    if index[0] >= 0 and index[-1] < 2 * len(index) and _ascends(index):
        return _closed_up(range(int(index[-1]) + 1), index)
    return Grouping(*_by_appearance(numbers))


def _by_appearance(numbers: Integers) -> tuple[tuple[int, ...], Integers, Integers]:
    """Distinct numbers in order of first appearance, their inverse index, and their counts."""
    distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    index = np.argsort(order)[inverse]
    return tuple(distinct[order].tolist()), index, np.bincount(index, minlength=distinct.size)


def _closed_up(responses: Sequence[Hashable], index: Integers) -> Grouping:
    """Grouping of an ascending index, without the responses that have no atoms."""
    sizes = np.bincount(index, minlength=len(responses))
    left = np.flatnonzero(sizes)
    if left.size == sizes.size:
        return Grouping(responses, index, sizes)
    number = np.cumsum(sizes > 0) - 1
    return Grouping(
        tuple(responses[response] for response in left.tolist()),
        number[index],
        sizes[left],
    )


def _ascends(index: Integers) -> bool:
    """Return whether the numbers never decrease."""
    return bool((index[1:] >= index[:-1]).all())
