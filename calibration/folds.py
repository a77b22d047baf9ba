"""Folds for cross-validation that keep the atoms of a response together."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.grouping import Grouping, group_by_response
from calibration.validation import Integers, whole_number
from factormodels.errors import InputError
from factormodels.nouns import counted


def response_folds(responses: Any, n_folds: int, seed: int = 0) -> Integers:
    """Fold of every atom, int64 (n,); folds are random and have equal numbers of responses.

    Args:
        responses: response ids (n,).
        n_folds: number of folds, from 2 to the number of responses.
        seed: seed of the assignment.

    Raises:
        InputError: for bad ids, or a number of folds outside its range.
    """
    return folds_of(group_by_response(responses), n_folds, seed)


def folds_of(grouping: Grouping, n_folds: int, seed: int) -> Integers:
    """Fold of every atom, as `response_folds` returns it, from grouped responses.

    Raises:
        InputError: for a number of folds outside its range.
    """
    n_folds = whole_number(n_folds, "n_folds", 2)
    seed = whole_number(seed, "seed", 0)
    n_responses = len(grouping.responses)
    if n_folds > n_responses:
        raise InputError(
            f"n_folds is {n_folds}, but there are {counted(n_responses, 'response')}, which are "
            "never split; "
            f"give at most {n_responses}"
        )
    order = np.random.default_rng(seed).permutation(n_responses)
    fold = np.empty(n_responses, dtype=np.int64)
    fold[order] = np.arange(n_responses) % n_folds
    folds: Integers = fold[grouping.index]
    return folds
