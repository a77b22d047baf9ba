"""Priors of sources in drawn data: the law of labels and the rival's error, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from factormodels.claims import RelationKind
from notebooks.questions.prior_intervals import (
    PRIORS,
    WORLDS,
    P,
    drawn,
    independent_error,
)

ENTAILMENT = RelationKind.ENTAILMENT


def share(odds: float) -> float:
    """Return P(claim) under one passage that entails it."""
    prior = 1 / (1 + math.exp(-odds))
    return P / (P + prior * (1 - P) + (1 - prior) * P)


@pytest.mark.parametrize("world", WORLDS)
def test_labels_have_the_law_of_the_model(world: str) -> None:
    graphs = drawn(WORLDS[world], 4000, np.random.default_rng(0))
    for source, prior in PRIORS.items():
        agrees, responses = [], []
        for number, graph in enumerate(graphs):
            kinds = {relation.target: relation.kind for relation in graph.relations}
            of_source = [atom for atom in graph.atoms if atom.id.startswith(source)]
            agrees += [atom.label == (kinds[atom.id] is ENTAILMENT) for atom in of_source]
            responses += [number] * len(of_source)
        expected = share(math.log(prior / (1 - prior)))
        sums = np.bincount(responses, np.array(agrees) - expected)
        # Four standard errors clustered by response.
        assert abs(sums.sum()) < 4 * math.sqrt((sums**2).sum())


def test_the_independent_error_is_that_of_the_inverse_information() -> None:
    odds, step, n = 0.4, 1e-5, 200
    slope = (share(odds + step) - share(odds - step)) / (2 * step)
    variance = share(odds) * (1 - share(odds)) / n / slope**2
    # The normal prior with a standard deviation of 10 adds a hundredth to the information.
    expected = (1 / variance + 0.01) ** -0.5
    assert independent_error(odds, [ENTAILMENT] * n) == pytest.approx(expected, rel=1e-6)
