"""The policy for unlabeled atoms."""

from __future__ import annotations

import numpy as np
import pytest

from calibration import apply_policy
from calibration.labels import LabelPolicy
from factormodels.errors import InputError

P = [0.9, 0.4, 0.7, 0.2]
Y = [True, None, False, None]


def test_exclude_leaves_unlabeled_atoms_out() -> None:
    labeled = apply_policy(P, Y)
    assert labeled.p.tolist() == [0.9, 0.7]
    assert labeled.y.tolist() == [1.0, 0.0]
    assert labeled.kept.tolist() == [True, False, True, False]
    assert labeled.n_unlabeled == 2


@pytest.mark.parametrize(("policy", "filled"), [("false", 0.0), ("true", 1.0)])
def test_false_and_true_label_them(policy: str, filled: float) -> None:
    labeled = apply_policy(P, Y, policy)
    assert labeled.p.tolist() == P
    assert labeled.y.tolist() == [1.0, filled, 0.0, filled]
    assert labeled.kept.all()
    assert labeled.n_unlabeled == 2


def test_error_refuses_them_and_only_them() -> None:
    with pytest.raises(InputError, match=r"y\[1\] is unlabeled, as are 2 of 4 atoms"):
        apply_policy(P, Y, LabelPolicy.ERROR)
    labeled = apply_policy([0.9, 0.1], [1, 0], policy="error")
    assert labeled.n_unlabeled == 0


def test_excluding_every_atom_leaves_none() -> None:
    labeled = apply_policy([0.9, 0.1], [None, np.nan])
    assert labeled.p.size == labeled.y.size == 0
    assert labeled.n_unlabeled == 2


def test_an_unknown_policy_is_named_with_the_known() -> None:
    with pytest.raises(InputError, match=r"'ignore'; choose one of exclude, false, true, error"):
        apply_policy(P, Y, "ignore")
