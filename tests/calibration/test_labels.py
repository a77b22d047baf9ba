"""The policy for unlabelled atoms."""

from __future__ import annotations

import numpy as np
import pytest

from calibration import apply_policy
from calibration.labels import LabelPolicy
from factormodels.errors import InputError

P = [0.9, 0.4, 0.7, 0.2]
Y = [True, None, False, None]


def test_exclude_leaves_unlabelled_atoms_out() -> None:
    labelled = apply_policy(P, Y)
    assert labelled.p.tolist() == [0.9, 0.7]
    assert labelled.y.tolist() == [1.0, 0.0]
    assert labelled.kept.tolist() == [True, False, True, False]
    assert labelled.n_unlabelled == 2


@pytest.mark.parametrize(("policy", "filled"), [("false", 0.0), ("true", 1.0)])
def test_false_and_true_label_them(policy: str, filled: float) -> None:
    labelled = apply_policy(P, Y, policy)
    assert labelled.p.tolist() == P
    assert labelled.y.tolist() == [1.0, filled, 0.0, filled]
    assert labelled.kept.all()
    assert labelled.n_unlabelled == 2


def test_error_refuses_them_and_only_them() -> None:
    with pytest.raises(InputError, match=r"y\[1\] is unlabelled, as are 2 of 4 atoms"):
        apply_policy(P, Y, LabelPolicy.ERROR)
    labelled = apply_policy([0.9, 0.1], [1, 0], policy="error")
    assert labelled.n_unlabelled == 0


def test_excluding_every_atom_leaves_none() -> None:
    labelled = apply_policy([0.9, 0.1], [None, np.nan])
    assert labelled.p.size == labelled.y.size == 0
    assert labelled.n_unlabelled == 2


def test_an_unknown_policy_is_named_with_the_known() -> None:
    with pytest.raises(InputError, match=r"'ignore'; choose one of exclude, false, true, error"):
        apply_policy(P, Y, "ignore")
