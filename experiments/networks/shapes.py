"""Synthetic graphs by shape: the sizes, densities and strengths that studies of inference vary."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from experiments.settings.keyed import Keyed
from experiments.settings.limits import Count, EncodingName, Positive, Probability
from experiments.study.units import strengthened
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import Densities, FactLaws, Uniform, draw_facts, mixed_reliability


class GraphShape(Keyed):
    """Distribution from which a graph is drawn."""

    atoms: Count = 12
    """Number of atoms."""

    contexts: Annotated[int, Field(ge=0)] = 2
    """Contexts retrieved for each atom."""

    density: Probability = 0.1
    """Probability of a relation between a context and an atom that it was not retrieved for."""

    context_density: Probability = 0.0
    """Probability that two contexts are related."""

    strength: Positive = 1.0
    """Factor for the log odds of the relations' probabilities, which are drawn from Beta(8, 2)."""

    contradictions: Probability = 0.25
    """Share of contradictions among relations; the others are entailments. With 0 almost no cycle
    is frustrated, with 0.5 about half of them."""

    doubtful: Probability = 0.5
    """Share of contexts whose prior is uniform on [0.5, 0.95]; the others' is 0.99."""

    encoding: EncodingName = DEFAULT_ENCODING
    """Encoding of the relations."""


def draw_graph(shape: GraphShape, seed: tuple[int, ...]) -> FactorGraph:
    """A graph of a shape; the same shape and seed give the same graph."""
    all_doubtful = shape.doubtful == 1.0
    laws = FactLaws(
        shares=Densities(1.0 - shape.contradictions, shape.contradictions),
        context_prior=Uniform(0.5, 0.95) if all_doubtful else mixed_reliability(shape.doubtful),
    )
    facts = draw_facts(
        shape.atoms,
        shape.contexts,
        shape.density,
        shape.context_density,
        seed=seed,
        laws=laws,
    )
    stated = strengthened(facts.probabilities, shape.strength)
    return replace(facts, probabilities=stated).to_factor_graph(shape.encoding)
