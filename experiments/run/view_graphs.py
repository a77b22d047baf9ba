"""Factor graphs of one view of a response under many encodings, priors and strengths.

Between them only numbers differ, so that scopes and kinds of relations are worked out once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.study.design import GraphView
from factormodels.claims import RelationKind
from factormodels.encodings import KIND_CODES, encode_many
from factormodels.fact_graph import FactGraph, pairwise_factor_graph
from factormodels.factor_graph import FactorGraph


@dataclass(frozen=True, eq=False)
class ViewArrays:
    """A view of a response as arrays.

    Attributes:
        names: ids of the atoms, then of the contexts.
        n_atoms: how many of them are atoms.
        priors: float64 (n,), the priors that the data bring.
        pairs: int64 (m, 2), the (source, target) of every relation that is not neutral.
        kinds: int64 (m,), their kinds, as `KIND_CODES` numbers them.
        probabilities: float64 (m,), their probabilities.
    """

    names: tuple[str, ...]
    n_atoms: int
    priors: NDArray[np.float64]
    pairs: NDArray[np.int64]
    kinds: NDArray[np.int64]
    probabilities: NDArray[np.float64]


def view_arrays(graph: FactGraph) -> ViewArrays:
    """Return a view of a response as arrays."""
    names = graph.atom_ids + graph.context_ids
    position = {name: place for place, name in enumerate(names)}
    relations = [one for one in graph.relations if one.kind is not RelationKind.NEUTRAL]
    ends = [position[end] for one in relations for end in (one.source, one.target)]
    return ViewArrays(
        names=names,
        n_atoms=len(graph.atoms),
        priors=np.array(
            [atom.prior for atom in graph.atoms] + [one.prior for one in graph.contexts],
            dtype=np.float64,
        ),
        pairs=np.array(ends, dtype=np.int64).reshape(-1, 2),
        kinds=np.array([KIND_CODES[one.kind] for one in relations], dtype=np.int64),
        probabilities=np.array([one.probability for one in relations], dtype=np.float64),
    )


def factor_graph(arrays: ViewArrays, view: GraphView) -> FactorGraph:
    """Return the factor graph of a view, as `FactGraph.to_factor_graph` would.

    Args:
        arrays: the view of the response that `view` names.
        view: encoding, priors and strength.
    """
    priors = arrays.priors.copy()
    if view.prior.atom is not None:
        priors[: arrays.n_atoms] = view.prior.atom
    if view.prior.context is not None:
        priors[arrays.n_atoms :] = view.prior.context
    tables = encode_many(
        arrays.kinds,
        strengthened(arrays.probabilities, view.strength),
        priors[arrays.pairs[:, 1]],
        view.encoding,
    )
    return pairwise_factor_graph(arrays.names, priors, arrays.pairs, tables)


def strengthened(probabilities: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """Return probabilities (m,) whose log odds are multiplied.

    Above 1 the relation model is taken for surer than it says, below 1 for less sure; 0 and 1 stay.
    """
    if strength == 1.0:
        return probabilities
    with np.errstate(divide="ignore", over="ignore"):
        log_odds = strength * (np.log(probabilities) - np.log1p(-probabilities))
        return 1.0 / (1.0 + np.exp(-log_odds))
