"""The share of true claims without labels: a likelihood's maximum, found again when drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibration.learned_priors import AdaptationStatus, Specification, adapt_prior, fit
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import Uniform, labelled_responses
from tests.calibration.learned_priors.data import small_graphs
from tests.oracle import oracle
from tests.refusals import refused


def lone(p: list[float]) -> list[FactGraph]:
    return [FactGraph(f"r{at}", (Atom("a", prior=value),)) for at, value in enumerate(p)]


def log_likelihood(graphs: list[FactGraph], share: float, old: float) -> float:
    """Return the log likelihood of a share, by enumeration of every response."""
    total = 0.0
    for graph in graphs:
        plain = graph.to_factor_graph("implication")
        n = len(graph.atoms)
        tables = plain.log_values.copy()
        tables[: 2 * n] += np.tile([np.log((1 - share) / (1 - old)), np.log(share / old)], n)
        shifted = replace(plain, log_values=tables)
        assert isinstance(shifted, FactorGraph)
        total += oracle(shifted).log_z - oracle(plain).log_z
    return total


def test_the_share_maximises_the_likelihood_of_graphs_with_cycles() -> None:
    graphs = small_graphs(2, 6)
    found = adapt_prior(graphs, 0.4, tolerance=1e-12)
    assert found.status is AdaptationStatus.CONVERGED
    best = log_likelihood(graphs, found.share, 0.4)
    for other in (found.share - 0.01, found.share + 0.01, 0.4):
        assert log_likelihood(graphs, other, 0.4) < best
    assert found.lower < found.share < found.upper
    # The fixed point: the mean posterior of all atoms is the share.
    means = [
        oracle(found.apply(graph).to_factor_graph("implication")).marginals[atom.id][1]
        for graph in graphs
        for atom in graph.atoms
    ]
    assert np.mean(means) == pytest.approx(found.share, abs=1e-9)


def test_of_independent_atoms_it_is_the_em_of_class_posteriors() -> None:
    p = np.random.default_rng(0).beta(2, 2, 200)
    share, old = 0.6, 0.6
    for _ in range(5000):
        odds = p / (1 - p) * share / (1 - share) * (1 - old) / old
        share = float((odds / (1 + odds)).mean())
    assert adapt_prior(lone(p.tolist()), old).share == pytest.approx(share, abs=1e-6)


def test_a_drawn_share_is_within_the_interval_and_labels_play_no_part() -> None:
    def drawn(rate: float, seed: int) -> list[FactGraph]:
        return list(
            labelled_responses(
                50,
                n_atoms=(6, 12),
                contexts_per_atom=2,
                strength=Uniform(0.6, 0.95),
                truth_rate=rate,
                reliability=0.99,
                seed=seed,
            )
        )

    known = drawn(0.5, 3)
    learned = fit(known, Specification(), penalty=3.0)
    old = float(np.mean([a.label for g in known for a in g.atoms]))
    new = learned.apply_all(drawn(0.2, 4))
    found = adapt_prior(new, old)
    assert found.lower < 0.2 < found.upper
    assert found.upper < 0.35
    blind = [replace(g, atoms=tuple(replace(a, label=None) for a in g.atoms)) for g in new]
    assert adapt_prior(blind, old).share == found.share


def test_what_does_not_determine_a_share_is_said() -> None:
    # Evidence that says nothing leaves every share as likely.
    relation = Relation("c", "a", RelationKind.ENTAILMENT, 0.5)
    nothing = [
        FactGraph(f"r{at}", (Atom("a", prior=0.4),), (Context("c"),), (relation,))
        for at in range(4)
    ]
    found = adapt_prior(nothing, 0.4)
    assert found.status is AdaptationStatus.UNIDENTIFIED
    assert np.isnan(found.lower)
    sure = adapt_prior(lone([0.9] * 5), 0.3)
    assert sure.status is AdaptationStatus.BOUNDARY
    assert np.isnan(sure.lower)


def test_bad_input_is_refused() -> None:
    refused("old_share is 1.0", adapt_prior, lone([0.5]), 1.0)
    with pytest.raises(ValueError, match="is part of the tables of relations too"):
        adapt_prior(lone([0.5]), 0.5, encoding="conditional")
    refused("no response", adapt_prior, [], 0.5)
