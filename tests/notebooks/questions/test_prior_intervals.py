"""Priors of sources in drawn data: law of labels, estimator in closed form, coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.learned_potentials.graph_fitting import fit_potentials
from calibration.learned_potentials.graph_potentials import CONTEXTS, Potentials, source_class
from calibration.validation import Integers
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph
from notebooks.questions.prior_intervals import (
    PRIORS,
    SPREAD,
    WORLDS,
    P,
    coverage_row,
    drawn,
    learned_prior,
    target,
)
from tests.chance import least_held

KINDS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)


def responses(sizes: Integers, agreeing: Integers) -> list[FactGraph]:
    """Return responses of claims with a passage each; labels of the first ones agree with it."""
    graphs = []
    for number, (size, agrees) in enumerate(zip(sizes.tolist(), agreeing.tolist(), strict=True)):
        atoms, contexts, relations = [], [], []
        for at in range(size):
            kind = KINDS[at % 2]
            label = (at < agrees) == (kind is KINDS[0])
            atoms.append(Atom(f"a{at}", label=label))
            contexts.append(Context(f"c{at}", link="https://source", retrieved_for=(f"a{at}",)))
            relations.append(Relation(f"c{at}", f"a{at}", kind, P))
        graphs.append(FactGraph(f"r{number}", tuple(atoms), tuple(contexts), tuple(relations)))
    return graphs


@pytest.mark.parametrize("world", WORLDS)
def test_labels_have_the_law_that_teaches_the_prior(world: str) -> None:
    for source, prior in PRIORS.items():
        taught = target(WORLDS[world], source)
        if WORLDS[world].agreement == P and not WORLDS[world].invented + WORLDS[world].by_size:
            assert taught == pytest.approx(prior, abs=1e-9)
        sizes, agreeing = drawn(WORLDS[world], source, 40_000, np.random.default_rng(0))
        deviations = agreeing - P / (taught + (1 - taught) * 2 * P) * sizes
        # Four standard errors clustered by response.
        assert abs(deviations.sum()) < 4 * math.sqrt((deviations**2).sum())


@pytest.mark.parametrize(
    ("world", "source"), [("unequal", "reliable"), ("source in half of responses", "weak")]
)
def test_estimates_and_intervals_are_those_of_fitted_graphs(world: str, source: str) -> None:
    pytest.importorskip("torch", reason="PyTorch, of the extra learn, is not installed")
    sizes, agreeing = drawn(WORLDS[world], source, 20, np.random.default_rng(3))
    by_hand = learned_prior(sizes, agreeing)
    assert by_hand is not None
    fitted = fit_potentials(
        responses(sizes, agreeing),
        Potentials((CONTEXTS,), contexts_by=source_class("domain", ("source",))),
        objective="log_loss",
        penalty=SPREAD,
    )
    (value,) = fitted.table()
    # The loss and its curvature are found by finite differences of beliefs.
    assert by_hand.odds == pytest.approx(fitted.theta[0], abs=1e-4)
    assert by_hand.effective == pytest.approx(value.effective, rel=1e-3)
    assert by_hand.ends(by_hand.reach) == pytest.approx((value.lower, value.upper), abs=1e-4)


def test_intervals_without_a_warning_hold_in_every_world() -> None:
    draws, n_checked = 120, 0
    for name in WORLDS:
        row = coverage_row(name, "reliable", 160, draws)
        n_silent = round(row["silent"] * draws)
        if not math.isnan(row["silent_covered"]):
            n_checked += 1
            assert row["silent_covered"] * n_silent >= least_held(n_silent)
        # The rival for independent claims fails where responses are unequal and share passages.
        if name == "very unequal":
            assert row["independent"] < 0.7 < 0.9 < row["covered"]
    # Responses of equal size, with each law of labels.
    assert n_checked == 5
