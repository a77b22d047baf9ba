"""Posteriors of responses under conventions, computed on demand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from experiments.evaluators.convention_effects import Posteriors
from factormodels.claims import RelationKind
from factormodels.conventions import Conventions
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.variants import variant as variant_of

if TYPE_CHECKING:
    from inference.backend import Backend


def least_reduced(graphs: Iterable[FactGraph]) -> FactGraph:
    """The first graph with the most relations, and among those the fewest neutral ones.

    Conventions can be applied to it later. They cannot be undone: once an equivalence is merged,
    its two entailments are unknown, and once a relation below 1/2 is neutral, its kind is.
    """
    return max(
        graphs,
        key=lambda graph: (
            len(graph.relations),
            sum(relation.kind is not RelationKind.NEUTRAL for relation in graph.relations),
        ),
    )


def solved_views(
    graphs: Sequence[FactGraph], variant: str, backend: Backend, conventions: Conventions
) -> Posteriors:
    """P(true) by response and claim of a view of responses under conventions."""
    views = [variant_of(graph, variant, conventions) for graph in graphs]
    models = [view.to_factor_graph(conventions.encoding) for view in views]
    return marginals_of_claims(views, models, backend)


def marginals_of_claims(
    views: Sequence[FactGraph], models: Sequence[FactorGraph], backend: Backend
) -> Posteriors:
    """P(true) by response and claim, without models that have no answer."""
    # Imported here because it loads the code that reads and writes rows of a study.
    from experiments.study.units import infer_many

    p: dict[tuple[str, str], float] = {}
    for view, answer in zip(views, infer_many(backend, models), strict=True):
        if not isinstance(answer, Exception):
            values = answer.marginals.of_state(1, view.atom_ids).tolist()
            keys = [(view.id, claim) for claim in view.atom_ids]
            p |= dict(zip(keys, values, strict=True))
    return p
