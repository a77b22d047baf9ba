"""A rule for every kind of input: no posterior moves against the likelier relation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from factormodels.claims import Atom, Context, Relation, RelationKind, likeliest_kind
from factormodels.encodings import ENCODINGS, MIXTURE
from factormodels.extraction.relation_models.base import Judgment, TextPair
from factormodels.extraction.relation_models.recorded import read_recorded
from factormodels.extraction.stages.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.interchange import from_frames, to_frames
from factormodels.io import read_many
from factormodels.io.fact_graph_json import fact_graph_text
from inference import infer
from tests.oracle import oracle

STEPS = 20

GRID = [
    (e / STEPS, c / STEPS, (STEPS - e - c) / STEPS)
    for e in range(STEPS + 1)
    for c in range(STEPS + 1 - e)
]
"""Distributions over entailment, contradiction and neutral."""

Shares = tuple[float, float, float]


def name(kind: str, number: int) -> str:
    return f"{kind}{number}"


def texts(graph: FactGraph) -> FactGraph:
    return replace(
        graph,
        atoms=tuple(replace(atom, text=f"claim {atom.id}") for atom in graph.atoms),
        contexts=tuple(
            replace(context, text=f"passage {context.id}") for context in graph.contexts
        ),
    )


def stated(relations: Sequence[Relation]) -> FactGraph:
    """Return a graph in which each relation has a claim and a certain passage of its own."""
    return FactGraph(
        "r",
        tuple(Atom(relation.target) for relation in relations),
        tuple(
            Context(relation.source, prior=1.0, retrieved_for=(relation.target,))
            for relation in relations
        ),
        tuple(relations),
    )


def as_likeliest(*, whole: bool) -> FactGraph:
    """Return the graph of the likeliest kinds, with the distributions or without."""
    made = []
    for number, (e, c, n) in enumerate(GRID):
        kind, p = likeliest_kind(e, c, n)
        shares = (e, c, 0.0, n) if whole else None
        made.append(Relation(name("c", number), name("a", number), kind, p, shares))
    return stated(made)


def of_a_table(folder: Path) -> FactGraph:
    rows = [f"r,a{i},c{i},{e},{c},{n}" for i, (e, c, n) in enumerate(GRID)]
    path = folder / "relations.csv"
    head = "response,claim,passage,entailment,contradiction,neutral"
    path.write_text("\n".join([head, *rows]), encoding="utf-8")
    (graph,) = read_many(path)
    return replace(graph, contexts=tuple(replace(context, prior=1.0) for context in graph.contexts))


def of_json(folder: Path) -> FactGraph:
    path = folder / "graph.json"
    path.write_text(fact_graph_text(as_likeliest(whole=True)), encoding="utf-8")
    (graph,) = read_many(path)
    return graph


def of_frames(folder: Path) -> FactGraph:  # noqa: ARG001
    pytest.importorskip("pandas")
    frames = to_frames(as_likeliest(whole=True))
    return from_frames("r", frames.atoms, frames.contexts, frames.relations)


class Model:
    """A relation model that states the likeliest kind of each pair, as a naive one does."""

    name = "naive"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment]:
        kinds = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL)
        answers = []
        for pair in pairs:
            shares = GRID[int(pair.target[1:])]
            best = int(np.argmax(shares))
            answers.append(Judgment(kinds[best], shares[best], "recorded", shares))
        return answers


def of_a_model(folder: Path, least: float = 0.5) -> FactGraph:  # noqa: ARG001
    graph = texts(replace(as_likeliest(whole=True), relations=()))
    return with_relations(graph, Model(), "FR1", least=least)  # type: ignore[arg-type]


def of_a_model_without_a_threshold(folder: Path) -> FactGraph:
    return of_a_model(folder, 0.0)


def of_records(folder: Path) -> FactGraph:
    graph = texts(as_likeliest(whole=True))
    path = folder / "recorded.jsonl"
    lines = [
        json.dumps(
            {
                "source": relation.source,
                "target": relation.target,
                "relation": str(relation.kind),
                "probability": relation.probability,
                "distribution": GRID[int(relation.target[1:])],
            }
        )
        for relation in graph.relations
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return with_relations(replace(graph, relations=()), read_recorded(path), "FR1")


WAYS: tuple[Callable[[Path], FactGraph], ...] = (
    lambda _: as_likeliest(whole=True),
    lambda _: as_likeliest(whole=False),
    of_a_table,
    of_json,
    of_frames,
    of_a_model,
    of_a_model_without_a_threshold,
    of_records,
)


def moves(graph: FactGraph, encoding: str, prior: float) -> dict[int, float]:
    """Return by how much each claim's posterior differs from its prior."""
    posterior = infer(graph.with_priors(atoms=prior).to_factor_graph(encoding))
    return {int(atom[1:]): float(posterior.marginals[atom][1]) - prior for atom in graph.atom_ids}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("prior", [0.2, 0.5, 0.9])
def test_no_posterior_moves_against_the_likelier_relation(
    way: Callable[[Path], FactGraph], encoding: str, prior: float, tmp_path: Path
) -> None:
    moved = moves(way(tmp_path), encoding, prior)
    assert len(moved) == len(GRID)
    for number, change in moved.items():
        entails, contradicts, _ = GRID[number]
        assert change * np.sign(entails - contradicts) > -1e-12
        if entails == contradicts:
            assert change == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_doubtful_passage_moves_an_even_claim_no_other_way(encoding: str) -> None:
    graph = as_likeliest(whole=True).with_priors(contexts=0.7)
    for number, change in moves(graph, encoding, 0.5).items():
        entails, contradicts, _ = GRID[number]
        assert change * np.sign(entails - contradicts) > -1e-12


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("believed", [0.01, 0.5])
@pytest.mark.parametrize("prior", [0.01, 0.3, 0.9])
def test_neither_doubt_nor_a_prior_turns_a_relation(
    believed: float, prior: float, encoding: str
) -> None:
    graph = as_likeliest(whole=True).with_priors(contexts=believed)
    for number, change in moves(graph, encoding, prior).items():
        entails, contradicts, _ = GRID[number]
        assert change * np.sign(entails - contradicts) > -1e-12


@pytest.mark.parametrize("encoding", ["implication"])
@pytest.mark.parametrize("seed", range(8))
def test_a_relation_more_moves_its_target_in_no_graph_the_other_way(
    seed: int, encoding: str
) -> None:
    # Whatever else joins the source and the target; by enumeration, which knows no encodings.
    rng = np.random.default_rng(seed)
    kinds = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.EQUIVALENCE)
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    chosen = rng.permutation(len(pairs))[:9]
    relations = tuple(
        Relation(name("a", i), name("a", j), kinds[rng.integers(3)], float(rng.uniform(0.5, 1.0)))
        for i, j in (pairs[at] for at in chosen)
    )
    atoms = tuple(Atom(name("a", i), prior=float(rng.uniform(0.02, 0.98))) for i in range(5))
    last = replace(relations[-1], kind=kinds[seed % 2])
    with_it = FactGraph("r", atoms, (), (*relations[:-1], last)).to_factor_graph(encoding)
    without = FactGraph("r", atoms, (), relations[:-1]).to_factor_graph(encoding)
    p, before = (oracle(graph).marginals[last.target][1] for graph in (with_it, without))
    assert (p - before) * (1 if last.kind is RelationKind.ENTAILMENT else -1) > -1e-12


def test_only_a_prior_on_the_other_side_leaves_the_table() -> None:
    # A passage of 1/2 entails with 0.6: 0.3 (0.5 * 0.5 + 0.5 * 0.6) against 0.7 (0.5 * 0.5 + ...).
    relation = Relation("c", "a", RelationKind.ENTAILMENT, 0.6)

    def posterior(prior: float, *, parameters: bool = False) -> float:
        graph = FactGraph("r", (Atom("a", prior=prior),), (Context("c", prior=0.5),), (relation,))
        graph = graph.with_parameters() if parameters else graph
        return float(infer(graph.to_factor_graph("conditional")).marginals["a"][1])

    assert posterior(0.3) == pytest.approx(0.3 * 0.55 / (0.3 * 0.55 + 0.7 * 0.45))
    assert posterior(0.8) == pytest.approx(0.8 * 0.7 / (0.8 * 0.7 + 0.2 * 0.3))
    # Parameters are what they are, also where they pull a claim below its prior.
    assert posterior(0.3, parameters=True) == pytest.approx(0.3 * 0.45 / (0.3 * 0.45 + 0.7 * 0.55))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("kind", "direction"),
    [
        (RelationKind.ENTAILMENT, 1),
        (RelationKind.EQUIVALENCE, 1),
        (RelationKind.CONTRADICTION, -1),
        (RelationKind.EXCLUSIVE, -1),
    ],
)
def test_a_kind_with_any_probability_never_turns_into_its_opposite(
    kind: RelationKind, direction: int, encoding: str
) -> None:
    graph = stated(
        [Relation(name("c", i), name("a", i), kind, i / STEPS) for i in range(STEPS + 1)]
    )
    moved = moves(graph, encoding, 0.5)
    for number, change in moved.items():
        assert change * direction > -1e-12
        # What is improbable says nothing by itself; the mixture weighs it.
        if number < STEPS / 2 and encoding != MIXTURE:
            assert change == 0.0
    assert moved[STEPS] == 0.5 * direction


def test_the_numbers_of_a_table_of_pluralities(tmp_path: Path) -> None:
    path = tmp_path / "relations.csv"
    path.write_text(
        "response,claim,passage,entailment,contradiction,neutral\n"
        "r,a1,p1,0.46,0.08,0.46\nr,a2,p2,0.25,0.43,0.32\nr,a3,p3,0.6,0.3,0.1\n",
        encoding="utf-8",
    )
    (graph,) = read_many(path)
    kinds = [relation.kind for relation in graph.relations]
    assert kinds == [RelationKind.NEUTRAL, RelationKind.NEUTRAL, RelationKind.ENTAILMENT]
    assert graph.n_too_improbable() == 2
    assert graph.n_too_improbable(MIXTURE) == 0
    # A passage of prior 0.99: half of 0.99 (e - c) is added to 1/2.
    mixed = infer(graph.to_factor_graph(MIXTURE)).marginals
    assert [mixed[a][1] for a in ("a1", "a2", "a3")] == pytest.approx([0.6881, 0.4109, 0.6485])
    implied = infer(graph.to_factor_graph()).marginals
    assert [implied[a][1] for a in ("a1", "a2")] == [0.5, 0.5]
    assert implied["a3"][1] == pytest.approx(0.6 / (0.6 + 0.4 * 0.99 + 0.6 * 0.01))


def test_neutral_relations_are_counted_by_what_their_distributions_say() -> None:
    shares = [
        (0.1, 0.7, 0.0, 0.2),
        (0.3, 0.0, 0.3, 0.4),
        (0.4, 0.3, 0.0, 0.3),
        (0.3, 0.3, 0.0, 0.4),
        (0.4, 0.4, 0.0, 0.2),
    ]
    graph = stated(
        [
            Relation(
                name("c", i), name("a", i), RelationKind.NEUTRAL, distribution[-1], distribution
            )
            for i, distribution in enumerate(shares)
        ]
    )
    # The first two have a likelier kind of 1/2 or more, the third one of less, the others none.
    assert (graph.n_neutral_beside_likelier(), graph.n_too_improbable()) == (2, 1)
    assert (graph.n_neutral_beside_likelier(MIXTURE), graph.n_too_improbable(MIXTURE)) == (0, 0)
    assert list(infer(graph.to_factor_graph()).marginals["a0"]) == [0.5, 0.5]


def test_parameters_keep_their_tables_below_one_half() -> None:
    relation = Relation("c1", "a1", RelationKind.ENTAILMENT, 0.2)
    graph = stated([relation]).with_parameters()
    assert graph.n_too_improbable() == 0
    assert infer(graph.to_factor_graph()).marginals["a1"][1] == pytest.approx(0.2)
