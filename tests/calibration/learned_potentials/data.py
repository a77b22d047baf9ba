"""Responses whose generating parameters are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibration.learned_potentials.graph_fitting import LearnedPotentials
from calibration.learned_potentials.graph_potentials import Potentials
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.claims import RelationKind as Kind
from factormodels.synthetic import Constant, Uniform, labeled_responses
from inference.tasks import sample

ATOM_PRIOR, CONTEXT_PRIOR, TEMPERATURE = 0.5, 0.8, 0.7
TRUTH = {"atom_prior": ATOM_PRIOR, "context_prior": CONTEXT_PRIOR, "temperature": TEMPERATURE}

GENERATOR = Potentials(("atom_prior", "context_prior", "temperature"), encoding="conditional")
"""The model of the generator: with atom priors of 1/2 its process has the tables of conditional."""


CITIES = (
    *("Aarhus", "Bergen", "Cork", "Delft", "Esbjerg", "Faro", "Ghent", "Halle", "Imola", "Jena"),
    *("Kiel", "Lucca"),
)


def of_cities(n: int = 6) -> list[FactGraph]:
    """Return n responses of three claims with texts, two of them labeled, and three passages."""
    graphs = []
    for number, city in enumerate(CITIES[:n]):
        texts = f"{city} has a harbor.", f"{city} has {number} bridges.", f"Trams run in {city}."
        atoms = tuple(
            Atom(
                f"a{claim}",
                text=text,
                label=(number + claim) % 2 == 0 if claim < 2 else None,
                sentence=1 + claim // 2,
            )
            for claim, text in enumerate(texts)
        )
        contexts = tuple(
            Context(f"c{at}", text=f"{city}: harbor and trams {at}.") for at in range(3)
        )
        relations = tuple(
            Relation(f"c{at}", f"a{at}", Kind.ENTAILMENT, 0.5 + 0.03 * (number + at % 2))
            for at in range(3)
        )
        graphs.append(FactGraph(city, atoms, contexts, relations, topic=city))
    return graphs


def overconfident(graph: FactGraph, temperature: float = TEMPERATURE) -> FactGraph:
    """Return a response whose relations state logit p / temperature in place of logit p."""

    def stated(p: float) -> float:
        return 1.0 / (1.0 + math.exp(-(math.log(p) - math.log1p(-p)) / temperature))

    return replace(
        graph,
        relations=tuple(replace(r, probability=stated(r.probability)) for r in graph.relations),
    )


def generated(n_responses: int, seed: int | Sequence[int]) -> list[FactGraph]:
    """Return responses of the labeled generator, their relations overconfident."""
    graphs = labeled_responses(
        n_responses,
        n_atoms=(2, 6),
        contexts_per_atom=2,
        density=0.4,
        strength=Uniform(0.55, 0.98),
        atom_prior=Constant(ATOM_PRIOR),
        context_prior=Constant(0.99),
        reliability=CONTEXT_PRIOR,
        unlabeled=0.1,
        seed=seed,
    )
    return [overconfident(graph) for graph in graphs]


def relabeled(graphs: Sequence[FactGraph], truth: LearnedPotentials, seed: int) -> list[FactGraph]:
    """Return responses with labels drawn from the joint posterior under known parameters."""
    result = []
    for number, graph in enumerate(graphs):
        model = truth.apply(graph).to_factor_graph(truth.potentials.encoding)
        drawn = sample(model, 1, seed=1000 * seed + number)[0]
        labels = [bool(state) for state in drawn[: len(graph.atoms)]]
        atoms = [replace(a, label=y) for a, y in zip(graph.atoms, labels, strict=True)]
        result.append(replace(graph, atoms=tuple(atoms)))
    return result


def small_graphs(seed: int, n_responses: int = 4) -> list[FactGraph]:
    """Return odd little responses: loops, all kinds, neutral ones, lone atoms, missing labels."""
    rng = np.random.default_rng(seed)
    kinds = [Kind.ENTAILMENT, Kind.CONTRADICTION, Kind.EQUIVALENCE, Kind.NEUTRAL]
    graphs = []
    for number in range(n_responses):
        names = ["a1", "a2", "a3", "c1", "c2"]
        chosen = [
            (s, t) for s in names for t in names if s != t and rng.random() < 0.35 and t != "a3"
        ]
        labels = [None if rng.random() < 0.3 else bool(rng.random() < 0.6) for _ in range(2)]
        graphs.append(
            FactGraph(
                id=f"r{number}",
                topic="even" if number % 2 == 0 else "odd",
                atoms=(
                    *(
                        Atom(name, prior=float(rng.uniform(0.2, 0.8)), label=label)
                        for name, label in zip(names[:2], labels, strict=True)
                    ),
                    Atom("a3", label=True),
                ),
                contexts=tuple(
                    Context(name, prior=float(rng.uniform(0.5, 0.95))) for name in names[3:]
                ),
                relations=tuple(
                    Relation(s, t, RelationKind(kinds[rng.integers(4)]), rng.uniform(0.1, 0.95))
                    for s, t in chosen
                ),
            )
        )
    return graphs
