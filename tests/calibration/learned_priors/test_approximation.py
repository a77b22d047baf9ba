"""The bias of learning with approximate inference."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.learned_priors import Free, Specification, approximation_bias, fit
from factormodels import FactGraph
from factormodels.synthetic import labelled_responses
from inference import Backend, get_backend


@pytest.fixture(scope="module")
def loopy() -> tuple[FactGraph, ...]:
    return labelled_responses(
        30, n_atoms=4, contexts_per_atom=1, density=0.6, context_density=0.5, seed=0
    )


def test_the_bias_is_the_difference_of_two_fits(loopy: tuple[FactGraph, ...]) -> None:
    specification = Specification(Free(), None, None)
    coarse = get_backend("wmb", i_bound=1, iterations=3, gap=False)
    backends: tuple[str | Backend, ...] = ("lbp", coarse)
    found = approximation_bias(loopy, specification, backends=backends)
    assert [row.backend for row in found.rows] == ["lbp", "wmb"]
    for row, backend in zip(found.rows, backends, strict=True):
        exact, other = fit(loopy, specification), fit(loopy, specification, backend=backend)
        assert row.exact == pytest.approx(exact.values["atom_prior"])
        assert row.difference == pytest.approx(other.values["atom_prior"] - row.exact, abs=1e-9)
        error = exact.table()[0].unbounded_error
        moved = float((other.theta - exact.theta)[0]) / error
        assert row.standard_errors == pytest.approx(moved, abs=1e-6)
    # Loops: neither approximation is exact here, and each is told apart from exact by far more
    # than the search leaves.
    assert min(abs(row.standard_errors) for row in found.rows) > 1e-3


def test_there_is_no_bias_where_the_approximation_is_exact(loopy: tuple[FactGraph, ...]) -> None:
    found = approximation_bias(
        loopy[:10], Specification(Free(), None, None), backends=(get_backend("wmb", i_bound=12),)
    )
    # Its gradient is by differences, so that the search stops a little beside the optimum.
    np.testing.assert_allclose([row.difference for row in found.rows], 0.0, atol=1e-5)
