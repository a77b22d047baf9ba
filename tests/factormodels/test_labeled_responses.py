"""Synthetic responses with known truth: their process, its rates, and where it is calibrated."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactGraph
from factormodels.compile import side_by_side
from factormodels.synthetic import Beta, Constant, Uniform, labeled_responses
from factormodels.synthetic.laws import Seed
from inference import infer
from tests.chance import DEVIATIONS, assert_share
from tests.refusals import refused


def posteriors(graphs: tuple[FactGraph, ...]) -> list[tuple[float, bool]]:
    """Return (posterior, label) of each labeled atom under *conditional*."""
    whole = side_by_side({graph.id: graph.compiled for graph in graphs})
    marginals = infer(whole.to_factor_graph(encoding="conditional"), "exact").marginals
    return [
        (float(marginals[f"{graph.id}/{atom.id}"][1]), bool(atom.label))
        for graph in graphs
        for atom in graph.atoms
        if atom.label is not None
    ]


def excess(answers: list[tuple[float, bool]]) -> tuple[float, float]:
    """Return two statistics that are standard normal where the posteriors are calibrated.

    The sum of label minus posterior, plain and weighted with the posterior's distance from one
    half (which over- and underconfidence move), each over its standard deviation.
    """
    statistics = []
    for weight in (lambda _: 1.0, lambda p: p - 0.5):
        total = math.fsum(weight(p) * (label - p) for p, label in answers)
        variance = math.fsum(weight(p) ** 2 * p * (1.0 - p) for p, _ in answers)
        statistics.append(total / math.sqrt(variance))
    return statistics[0], statistics[1]


def responses(**changes: Any) -> tuple[FactGraph, ...]:
    settings: dict[str, Any] = {"n_atoms": 20, "contexts_per_atom": 2, "seed": 17}
    settings |= {"strength": Beta(4.0, 2.0), "context_prior": Uniform(0.5, 1.0)}
    return labeled_responses(150, **{**settings, **changes})


@pytest.mark.parametrize("copied", [0.0, 0.4])
def test_later_responses_are_the_same_without_those_before_them(copied: float) -> None:
    settings: dict[str, Any] = {"n_atoms": (0, 3), "contexts_per_atom": 2, "copied": copied}
    seeds: tuple[Callable[[], Seed], ...] = (
        lambda: [5, 6],
        # What spawns counts its children, and so is made anew each time.
        lambda: np.random.SeedSequence(5, spawn_key=(2,), pool_size=8, n_children_spawned=3),
        lambda: np.random.Generator(np.random.Philox(5)),
    )
    for seed in seeds:
        every = labeled_responses(600, **settings, seed=seed())
        for first in (1, 2, 300, 600, 601):
            assert (
                labeled_responses(600, **settings, first=first, seed=seed()) == every[first - 1 :]
            )
    refused("first is 0", labeled_responses, 3, n_atoms=1, contexts_per_atom=1, first=0, seed=0)


@pytest.mark.parametrize(
    "changes",
    [{}, {"n_atoms": 3, "contexts_per_atom": 1, "density": 0.7}],
    ids=["alone", "atoms that share contexts"],
)
def test_posteriors_of_the_default_process_are_calibrated_under_conditional(
    changes: dict[str, Any],
) -> None:
    plain, slope = excess(posteriors(responses(**changes)))
    assert abs(plain) < DEVIATIONS
    assert abs(slope) < DEVIATIONS


@pytest.mark.parametrize(
    ("changes", "statistic", "sign"),
    [
        ({"error_rate": 0.5}, 1, -1),
        ({"error_rate": 0.0}, 1, +1),
        ({"reliability": 0.3}, 1, -1),
        ({"log_odds_factor": 2.0}, 1, -1),
        ({"log_odds_factor": 0.5}, 1, +1),
        ({"log_odds_noise": 1.0}, 1, -1),
        ({"copied": 1.0}, 1, -1),
        ({"truth_rate": 0.8}, 0, +1),
        ({"truth_rate": 0.2}, 0, -1),
    ],
    ids=["overconfident", "underconfident", "contexts worse", "overstated", "understated", "noisy",
         "copied", "atoms better", "atoms worse"],
)  # fmt: skip
def test_known_faults_of_calibration_are_seen_with_their_sign(
    changes: dict[str, Any], statistic: int, sign: int
) -> None:
    assert sign * excess(posteriors(responses(**changes)))[statistic] > DEVIATIONS


def test_truth_follows_the_priors_or_the_rates_given() -> None:
    def true_atoms(graphs: tuple[FactGraph, ...]) -> list[bool]:
        return [bool(atom.label) for graph in graphs for atom in graph.atoms]

    labels = true_atoms(responses(atom_prior=Constant(0.7)))
    assert_share(sum(labels), len(labels), 0.7)
    labels = true_atoms(responses(atom_prior=Constant(0.7), truth_rate=0.4))
    assert_share(sum(labels), len(labels), 0.4)
    for reliability, share in ((None, 0.9), (0.6, 0.6)):
        graphs = responses(context_prior=Constant(0.9), reliability=reliability)
        true = sum(len(graph.metadata["true_contexts"]) for graph in graphs)
        assert_share(true, 150 * 40, share)
    assert {c.prior for graph in graphs for c in graph.contexts} == {0.9}


def test_relations_follow_the_truth_where_the_relation_model_does_not_err() -> None:
    graphs = responses(density=0.2, context_density=0.1, error_rate=0.0, reliability=0.5)
    undetermined = {"evidence": [0, 0], "between": [0, 0]}
    for graph in graphs:
        truth = {atom.id: atom.label for atom in graph.atoms}
        true = set(graph.metadata["true_contexts"])
        truth |= {context.id: context.id in true for context in graph.contexts}
        for relation in graph.relations:
            source, target = truth[relation.source], truth[relation.target]
            between = relation.target.startswith("c")
            support = "equivalence" if between else "entailment"
            assert relation.kind in (support, "contradiction")
            if source or (between and target):
                assert (relation.kind == support) == (source and target)
            else:
                count = undetermined["between" if between else "evidence"]
                count[0] += relation.kind == support
                count[1] += 1
    for supports, total in undetermined.values():
        assert total > 500
        assert_share(supports, total, 0.5)


@pytest.mark.parametrize("error_rate", [None, 0.3])
def test_the_relation_model_errs_at_the_stated_rate(error_rate: float | None) -> None:
    graphs = responses(strength=Constant(0.85), reliability=1.0, error_rate=error_rate)
    wrong = total = 0
    for graph in graphs:
        truth = {atom.id: atom.label for atom in graph.atoms}
        for relation in graph.relations:
            wrong += (relation.kind == "entailment") != truth[relation.target]
            total += 1
    assert_share(wrong, total, 0.15 if error_rate is None else error_rate)


def test_labels_may_be_withheld() -> None:
    labels = [atom.label for graph in responses(unlabeled=0.3) for atom in graph.atoms]
    assert_share(labels.count(None), len(labels), 0.3)
    assert None not in [atom.label for graph in responses() for atom in graph.atoms]


def test_a_response_is_the_same_whatever_the_number_of_responses() -> None:
    settings: dict[str, Any] = {"n_atoms": (2, 9), "contexts_per_atom": 2, "density": 0.1}
    settings["seed"] = 5
    many = labeled_responses(20, **settings)
    assert many[:7] == labeled_responses(7, **settings)
    assert [graph.id for graph in many] == [f"r{i}" for i in range(1, 21)]
    assert many != labeled_responses(20, **{**settings, "seed": 6})
    sizes = {len(graph.atoms) for graph in labeled_responses(200, **settings)}
    assert sizes == set(range(2, 10))
    assert labeled_responses(0, **settings) == ()


def log_odds(graphs: tuple[FactGraph, ...]) -> list[float]:
    return [
        math.log(relation.probability / (1.0 - relation.probability))
        for graph in graphs
        for relation in graph.relations
    ]


def without_probabilities(graph: FactGraph) -> Any:
    return (
        graph.atoms,
        graph.contexts,
        [(relation.source, relation.target, relation.kind) for relation in graph.relations],
        {key: value for key, value in graph.metadata.items() if key != "copies"},
    )


def test_an_overstating_relation_model_changes_what_it_states_and_nothing_else() -> None:
    plain = responses(density=0.1)
    stated = responses(density=0.1, log_odds_factor=2.5)
    assert [without_probabilities(g) for g in plain] == [without_probabilities(g) for g in stated]
    # The logarithms and the logistic function round; the last digits of p close to 1 count most.
    assert log_odds(stated) == pytest.approx([2.5 * x for x in log_odds(plain)], rel=1e-9)
    nothing = responses(log_odds_factor=0.0)
    assert {relation.probability for graph in nothing for relation in graph.relations} == {0.5}


def test_noise_is_normal_on_the_log_odds() -> None:
    plain = responses()
    noisy = responses(log_odds_noise=1.5)
    assert [without_probabilities(g) for g in plain] == [without_probabilities(g) for g in noisy]
    moved = [x - y for x, y in zip(log_odds(noisy), log_odds(plain), strict=True)]
    n = len(moved)
    assert n > 1000
    mean = math.fsum(moved) / n
    assert abs(mean) < DEVIATIONS * 1.5 / math.sqrt(n)
    variance = math.fsum(x * x for x in moved) / n
    # The variance of a squared normal deviate is twice its squared variance.
    assert abs(variance / 1.5**2 - 1.0) < DEVIATIONS * math.sqrt(2.0 / n)


def test_copies_say_what_their_originals_say() -> None:
    graphs = responses(contexts_per_atom=3, density=0.3, copied=1.0, log_odds_noise=1.0,
                       context_prior=Uniform(0.5, 0.95))  # fmt: skip
    compared = 0
    for graph in graphs:
        copies = graph.metadata["copies"]
        assert len(copies) == 2 * len(graph.atoms)
        contexts = {context.id: context for context in graph.contexts}
        stated = {
            (relation.source, relation.target): (relation.kind, relation.probability)
            for relation in graph.relations
        }
        true = set(graph.metadata["true_contexts"])
        for copy, original in copies.items():
            assert contexts[copy].prior == contexts[original].prior
            assert contexts[copy].retrieved_for == contexts[original].retrieved_for
            assert (copy in true) == (original in true)
            for atom in graph.atom_ids:
                if (copy, atom) in stated and (original, atom) in stated:
                    compared += 1
                    assert stated[copy, atom] == stated[original, atom]
    assert compared > 6000


def test_as_many_contexts_copy_as_were_asked_for() -> None:
    graphs = responses(contexts_per_atom=2, copied=0.3)
    followers = sum(len(graph.atoms) for graph in graphs)
    assert_share(sum(len(graph.metadata["copies"]) for graph in graphs), followers, 0.3)
    plain = responses(contexts_per_atom=2)
    assert [[a.label for a in g.atoms] for g in graphs] == [
        [a.label for a in g.atoms] for g in plain
    ]
    assert all("copies" not in graph.metadata for graph in plain)


def test_numbers_of_a_law_of_ones_own_are_checked() -> None:
    class Sure:
        def sample(self, generator: np.random.Generator, size: int) -> NDArray[np.float64]:
            return generator.uniform(1.0, 2.0, size)

    refused("is not between 0 and 1", responses, strength=Sure())
