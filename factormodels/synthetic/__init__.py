"""Seeded generators of graphs: responses shaped like real ones, grids, chains, random graphs.

    from factormodels.synthetic import fr2
    graph = fr2(31, 3, density=0.05, seed=0)

The same arguments and seed give the same graph, except for the last digits of numbers, which vary
between mathematical libraries.
"""

from __future__ import annotations

from factormodels.synthetic.facts import (
    FactArrays,
    draw_facts,
    fact_graph,
    fr1_forest,
    fr2,
    fr3,
)
from factormodels.synthetic.graphs import chain, grid, random_graph
from factormodels.synthetic.incoherent import incoherent_response
from factormodels.synthetic.labeled import each_labeled_response, labeled_responses
from factormodels.synthetic.laws import (
    Beta,
    Constant,
    Densities,
    FactLaws,
    Law,
    Mixture,
    Uniform,
    mixed_reliability,
)

__all__ = [
    "Beta",
    "Constant",
    "Densities",
    "FactArrays",
    "FactLaws",
    "Law",
    "Mixture",
    "Uniform",
    "chain",
    "draw_facts",
    "each_labeled_response",
    "fact_graph",
    "fr1_forest",
    "fr2",
    "fr3",
    "grid",
    "incoherent_response",
    "labeled_responses",
    "mixed_reliability",
    "random_graph",
]
