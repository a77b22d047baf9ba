"""Readouts of coherence, held to an enumeration of states, of reality and of a reified node."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import Atom, Context, FactGraph, FactorGraph, Relation, RelationKind
from factormodels.claims import LEAST_PROBABILITY, is_evidence
from factormodels.encodings import ENCODINGS, MIXTURE
from factormodels.synthetic.incoherent import PLANTED_KEY, incoherent_response
from inference import ZeroPartitionError
from inference.tasks import Coherence, coherence
from tests.oracle import oracle
from tests.refusals import refused

ENTAILMENT, CONTRADICTION, EQUIVALENCE, NEUTRAL, EXCLUSIVE, CO_NECESSITY = RelationKind

# Products and sums of a few hundred doubles.
ROUNDING = 1e-11

BROKEN = {
    # The states of (source, target) in which a relation does not hold.
    ENTAILMENT: {(1, 0)},
    CONTRADICTION: {(1, 1)},
    EQUIVALENCE: {(0, 1), (1, 0)},
    EXCLUSIVE: {(0, 0), (1, 1)},
    CO_NECESSITY: {(0, 0)},
}


def response(seed: int, n_contexts: int = 1) -> FactGraph:
    """Return a small response with relations of every kind, among claims and from a passage."""
    rng = np.random.default_rng(seed)
    atoms = tuple(Atom(f"a{i}", prior=float(rng.uniform(0.2, 0.95))) for i in range(5))
    contexts = tuple(Context(f"c{i}", prior=0.9) for i in range(n_contexts))
    names = [*(atom.id for atom in atoms), *(context.id for context in contexts)]
    pairs = [pair for pair in product(names, names) if pair[0] < pair[1]]
    chosen = rng.choice(len(pairs), size=8, replace=False)
    kinds = [*BROKEN, NEUTRAL, CONTRADICTION, EXCLUSIVE]
    relations = tuple(
        Relation(pairs[at][0], pairs[at][1], kind, float(rng.choice([0.3, 0.7, 0.9, 1.0])))
        for at, kind in zip(chosen, kinds, strict=True)
    )
    return FactGraph("r", atoms, contexts, relations)


def coherence_of_graph(
    graph: FactGraph, encoding: str = "implication", prior: float | None = None
) -> Coherence:
    return coherence(graph.compiled_for(encoding), encoding, prior=prior)


def between(graph: FactGraph, encoding: str) -> list[Relation]:
    """Return the relations between claims that an encoding reads."""
    atoms = set(graph.atom_ids)
    # Improbable relations are neutral but for mixture.
    least = 0.0 if encoding == MIXTURE else LEAST_PROBABILITY
    evidence = (r for r in graph.relations if is_evidence(r.kind, r.probability, least))
    return [r for r in evidence if {r.source, r.target} <= atoms]


def without(graph: FactGraph, dropped: list[Relation]) -> FactGraph:
    return replace(graph, relations=tuple(r for r in graph.relations if r not in dropped))


def with_reified(graph: FactorGraph, relations: list[Relation], prior: float) -> FactorGraph:
    """Return the graph with a node R that, where true, makes each relation hold with 1 - p."""
    n = graph.n_variables
    factors: list[tuple[list[int], NDArray[np.float64]]] = [
        ([int(v) for v in graph.scope(f)], np.exp(graph.log_table(f)))
        for f in range(len(graph.table_starts) - 1)
    ]
    factors.append(([n], np.array([1.0 - prior, prior])))
    for relation in relations:
        table = np.ones((2, 2, 2))
        for states in BROKEN[relation.kind]:
            table[(1, *states)] = 1.0 - relation.probability
        ends = [graph.names.index(relation.source), graph.names.index(relation.target)]
        factors.append(([n, *ends], table))
    return FactorGraph.from_factors([2] * (n + 1), factors, names=[*graph.names, "R"])


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("seed", range(8))
def test_every_readout_is_that_of_an_enumeration(seed: int, encoding: str) -> None:
    graph = response(seed)
    conflicts = [r for r in between(graph, encoding) if r.kind in (CONTRADICTION, EXCLUSIVE)]
    # Every other response has claims of one prior, and its passage that of its own.
    prior = 0.7 if seed % 2 else None
    answer = coherence_of_graph(graph, encoding, prior)
    assert (answer.n_claims, answer.n_relations) == (5, len(between(graph, encoding)))
    if prior is not None:
        graph = graph.with_priors(atoms=prior)
    base = oracle(graph.to_factor_graph(encoding))
    bare = oracle(without(graph, conflicts).to_factor_graph(encoding))
    assert answer.log_z == pytest.approx(base.log_z, abs=ROUNDING)
    assert answer.floor == pytest.approx(max(base.log_potentials), abs=ROUNDING)
    assert answer.ceiling == pytest.approx(bare.log_z, abs=ROUNDING)
    expected = [base.marginals[name][1] for name in graph.atom_ids]
    np.testing.assert_allclose(answer.marginals, expected, atol=ROUNDING)
    assert answer.mean_marginal == pytest.approx(np.mean(expected), abs=ROUNDING)
    position = (answer.log_z - answer.floor) / (answer.ceiling - answer.floor)
    assert answer.position == pytest.approx(position, abs=ROUNDING)
    # Entries of tables are at most one, so that taking a table away cannot lower log Z.
    assert 0.0 <= position <= 1.0
    quiet, kept = 0.0, 0.0
    for states, p, p_bare in zip(base.states, base.probabilities, bare.probabilities, strict=True):
        truth = dict(zip(base.names, states, strict=True))
        ends = [(truth[r.source], truth[r.target]) for r in conflicts]
        quiet += p * ((1, 1) not in ends)
        # Each conflict is real or not, by its probability.
        for real in product((False, True), repeat=len(conflicts)):
            drawn = math.prod(
                r.probability if is_real else 1.0 - r.probability
                for r, is_real in zip(conflicts, real, strict=True)
            )
            broken = any(
                is_real and pair in BROKEN[r.kind]
                for r, is_real, pair in zip(conflicts, real, ends, strict=True)
            )
            kept += p_bare * drawn * (not broken)
    assert answer.no_active_conflict == pytest.approx(quiet, abs=ROUNDING)
    assert answer.consistency == pytest.approx(kept, abs=ROUNDING)
    assert answer.agreement == pytest.approx(kept ** (1 / 5), abs=ROUNDING)
    node = oracle(with_reified(graph.to_factor_graph(encoding), between(graph, encoding), 0.5))
    assert answer.reified == pytest.approx(node.marginals["R"][1], abs=ROUNDING)
    named = [graph.relations[at] for at in answer.conflicts]
    assert named == conflicts
    for relation, active in zip(conflicts, answer.active, strict=True):
        both = base.probability({relation.source: 1, relation.target: 1})
        assert active == pytest.approx(both, abs=ROUNDING)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_cost_of_the_only_conflict_is_that_of_the_response(encoding: str) -> None:
    graph = response(3)
    conflicts = [r for r in between(graph, encoding) if r.kind in (CONTRADICTION, EXCLUSIVE)]
    answer = coherence_of_graph(without(graph, conflicts[1:]), encoding)
    assert len(answer.costs) == 1
    assert answer.costs[0] == pytest.approx(-math.log(answer.consistency), abs=ROUNDING)


def pair(kind: RelationKind, p: float, *further: Relation, n: int = 2) -> FactGraph:
    atoms = tuple(Atom(f"a{i}") for i in range(1, n + 1))
    return FactGraph("r", atoms, relations=(Relation("a1", "a2", kind, p), *further))


def test_claims_taken_at_their_word_pay_for_each_conflict() -> None:
    graph = pair(CONTRADICTION, 0.8, Relation("a2", "a3", EXCLUSIVE, 0.5), n=3)
    answer = coherence(graph.compiled, prior=1.0)
    # All are true for certain, so each conflict that is real is violated.
    assert answer.consistency == pytest.approx((1.0 - 0.8) * (1.0 - 0.5), abs=ROUNDING)
    assert answer.mean_marginal == 1.0


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("graph", "prior"),
    [
        (pair(CONTRADICTION, 1.0), 1.0),
        # a1, a2 and a3 are the same, and exactly one of a1 and a3 holds.
        (
            pair(
                EQUIVALENCE,
                1.0,
                Relation("a2", "a3", EQUIVALENCE, 1.0),
                Relation("a1", "a3", EXCLUSIVE, 1.0),
                n=3,
            ),
            0.8,
        ),
    ],
)
def test_conflicts_that_leave_no_state_are_a_consistency_of_0(
    graph: FactGraph, prior: float, encoding: str
) -> None:
    answer = coherence(graph.compiled_for(encoding), encoding, prior=prior)
    assert answer.consistency == answer.agreement == 0.0
    assert answer.costs.tolist() == [math.inf]
    assert answer.log_z == answer.floor == -math.inf < answer.ceiling
    undefined = (answer.mean_marginal, answer.no_active_conflict, answer.reified, answer.position)
    assert np.isnan([*undefined, *answer.active]).all()


def test_claims_that_are_impossible_without_conflicts_are_refused() -> None:
    sure = (Atom("a1", prior=1.0), Atom("a2", prior=0.0))
    with pytest.raises(ZeroPartitionError):
        coherence_of_graph(FactGraph("r", sure, relations=(Relation("a1", "a2", ENTAILMENT, 1.0),)))


def test_a_reified_node_may_be_impossible_or_asked_for_a_wrong_number() -> None:
    graph = pair(ENTAILMENT, 0.9, Relation("a1", "a3", CONTRADICTION, 0.9), n=3)
    assert 0.0 < coherence_of_graph(graph).reified < 0.5
    refused("prior.*1.5", coherence, graph.compiled, prior=1.5)
    refused("reified", coherence, graph.compiled, reified_prior=-1.0)


def test_no_claims_have_no_mean() -> None:
    answer = coherence_of_graph(FactGraph("r", ()))
    assert math.isnan(answer.mean_marginal)
    assert math.isnan(answer.agreement)


def test_agreement_follows_planted_conflicts_whatever_else_varies() -> None:
    """The numbers of the guide, on fewer responses."""
    rng = np.random.default_rng(0)
    rows, planted = [], []
    for number in range(120):
        graph = incoherent_response(
            int(rng.choice([8, 20, 60])),
            float(rng.choice([0.0, 0.05, 0.1, 0.2, 0.3])),
            entailments=float(rng.choice([0.0, 0.3, 1.0])),
            seed=number,
        )
        answer = coherence(graph.compiled, prior=0.99)
        planted.append(graph.metadata[PLANTED_KEY] / answer.n_claims)
        rows.append((answer.agreement, answer.no_active_conflict))

    def ranks(values: list[float]) -> list[float]:
        return [sum(w < v for w in values) + sum(w == v for w in values) / 2 for v in values]

    agreement, quiet = (
        np.corrcoef(ranks([row[column] for row in rows]), ranks(planted))[0, 1] for column in (0, 1)
    )
    # 500 responses have -0.91 and -0.3; what is asserted is the gap, wider than their noise.
    assert agreement < -0.8 < -0.6 < quiet


def test_planted_responses_have_what_they_say() -> None:
    graph = incoherent_response(40, 0.1, entailments=0.3, false_alarms=0.2, seed=1)
    conflicts = [r for r in graph.relations if r.kind in (CONTRADICTION, EXCLUSIVE)]
    agreeing = len(graph.relations) - len(conflicts)
    assert graph.metadata[PLANTED_KEY] == 4 <= len(conflicts)
    assert agreeing > 0
    assert graph == incoherent_response(40, 0.1, entailments=0.3, false_alarms=0.2, seed=1)
    places = [(int(r.source[1:]), int(r.target[1:])) for r in graph.relations]
    assert all(0 < j - i <= 6 for i, j in places)
    refused("2 or more|at least 2", incoherent_response, 1, 0.1, seed=0)
    refused("rate.*-0.1.*0 or more", incoherent_response, 5, -0.1, seed=0)
    refused("wider window", incoherent_response, 4, 3.0, window=1, seed=0)
