"""What votes are worth, learned from labels: minima, posteriors that a graph gives, recovery."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibration.recalibration.relation_law import fit_claims, fit_relations
from factormodels import Atom, Context, FactGraph, Relation
from factormodels.extraction.relation_models.consensus import KINDS, relation_probabilities
from inference import infer
from tests.refusals import refused

TRUE_LAW = np.array([0.3, -0.5, 0.6, 0.8])


def drawn(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Columns of n pairs, and relations drawn from the law of them."""
    rng = np.random.default_rng(seed)
    columns = np.log(rng.dirichlet(np.ones(3), (n, 2))).transpose(0, 2, 1)
    p = relation_probabilities(columns, TRUE_LAW)
    return columns, (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)


def test_a_law_of_relations_is_found_again() -> None:
    columns, kinds = drawn(20_000)
    found = fit_relations(columns, kinds, penalty=0.0)
    assert found.converged
    np.testing.assert_allclose(found.coefficients, TRUE_LAW, atol=0.08)


def relation_loss(coefficients: Any, columns: Any, kinds: Any, penalty: float) -> float:
    """The penalised log loss, pair by pair."""
    total = 0.0
    for own, kind in zip(columns, kinds, strict=True):
        scores = [*coefficients[:2], 0.0] + own @ coefficients[2:]
        total -= scores[kind] - np.log(np.exp(scores).sum())
    away = coefficients - [0.0, 0.0, 1.0, *[0.0] * (len(coefficients) - 3)]
    return float(total + penalty / 2 * (away**2).sum())


@pytest.mark.parametrize("penalty", [0.0, 1.0, 50.0])
def test_it_is_where_no_step_makes_the_loss_smaller(penalty: float) -> None:
    columns, kinds = drawn(60)
    found = fit_relations(columns, kinds, penalty=penalty).coefficients
    least = relation_loss(found, columns, kinds, penalty)
    for place in range(found.size):
        for step in (-1e-2, 1e-2):
            moved = found.copy()
            moved[place] += step
            assert relation_loss(moved, columns, kinds, penalty) > least


def test_few_labels_leave_the_votes_as_they_are() -> None:
    columns, kinds = drawn(10)
    held = fit_relations(columns, kinds, penalty=1e6).coefficients
    np.testing.assert_allclose(held, [0, 0, 1, 0], atol=1e-3)


def claims_of(n: int, seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    columns, _ = drawn(n, seed)
    claims = np.sort(rng.integers(0, n // 2, n))
    claims = np.unique(claims, return_inverse=True)[1]
    m = int(claims.max()) + 1
    return columns, claims, rng.random(m).round(), rng.normal(size=m), rng.uniform(0.5, 0.99, n)


def test_claims_have_the_posteriors_of_their_graphs() -> None:
    """The loss is that of exact inference in FR1 under *mixture*, claim by claim."""
    columns, claims, labels, prior, trust = claims_of(12, seed=3)
    found = fit_claims(columns, claims, labels, prior, trust, penalty=2.0)
    p = relation_probabilities(columns, found.coefficients)
    losses = []
    for claim, truth in enumerate(labels):
        own = np.flatnonzero(claims == claim)
        graph = FactGraph(
            "r",
            (Atom("a", prior=float(1 / (1 + np.exp(-prior[claim])))),),
            tuple(Context(f"c{at}", prior=float(trust[at])) for at in own),
            tuple(
                Relation(
                    *(f"c{at}", "a", KINDS[best], float(p[at, best])),
                    distribution=(p[at, 0], p[at, 1], 0.0, p[at, 2]),
                )
                for at in own
                for best in (int(p[at].argmax()),)
            ),
        )
        true = float(infer(graph.to_factor_graph("mixture"), "exact").marginals["a"][1])
        losses.append(-np.log(true if truth else 1 - true))
    assert found.log_loss == pytest.approx(float(np.mean(losses)), rel=1e-6)


def test_the_law_of_claims_is_where_no_step_makes_their_loss_smaller() -> None:
    columns, claims, labels, prior, trust = claims_of(60, seed=1)

    def loss(coefficients: Any) -> float:
        p = relation_probabilities(columns, coefficients)
        odds = prior.copy()
        for at, claim in enumerate(claims):
            pull = trust[at] * (p[at, 0] - p[at, 1])
            odds[claim] += np.log((1 + pull) / (1 - pull))
        by_claim = np.where(labels == 1, np.log1p(np.exp(-odds)), np.log1p(np.exp(odds)))
        away = coefficients - [0, 0, 1, 0]
        return float(by_claim.sum() + 0.5 * 3.0 * (away**2).sum())

    found = fit_claims(columns, claims, labels, prior, trust, penalty=3.0)
    least = loss(found.coefficients)
    for place in range(4):
        for step in (-1e-2, 1e-2):
            moved = found.coefficients.copy()
            moved[place] += step
            assert loss(moved) > least
    assert least < loss(np.array([0.0, 0.0, 1.0, 0.0]))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda c, k: fit_relations(c, k[:-1]), "9 labels do not fit 10 pairs"),
        (lambda c, k: fit_relations(c, k + 1), "give 0, 1 or 2"),
        (lambda c, k: fit_relations(c, k, penalty=-1.0), "the penalty is -1.0"),
        (
            lambda c, _: fit_claims(c, np.arange(10), np.ones(9), np.zeros(9), np.ones(10)),
            "the claims are numbered to 9, and there are 9",
        ),
        (
            lambda c, _: fit_claims(c, np.arange(10), np.full(10, 0.5), np.zeros(10), np.ones(10)),
            "neither 0 nor 1",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, told: str) -> None:
    columns, kinds = drawn(10)
    kinds[0] = 2
    refused(told, call, columns, kinds)
