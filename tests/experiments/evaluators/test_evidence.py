"""Evidence for and against claims, and the effect of removing it."""

from __future__ import annotations

import pytest

from experiments.evaluators.evidence import context_removals, evidence_of_atoms
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.variants import variant
from inference import infer

GRAPH = FactGraph(
    id="r",
    atoms=(Atom("a1", "One."), Atom("a2", "Two.")),
    contexts=(Context("c1", "A passage."),),
    relations=(
        Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),
        # Less likely than not: it has no factor, lest an entailment speak against its target.
        Relation("c1", "a2", RelationKind.ENTAILMENT, 0.4977, (0.4977, 0.0489, 0.0, 0.4534)),
    ),
)


@pytest.mark.parametrize("view", ["FR1", "FR2"])
def test_a_relation_without_a_factor_changes_nothing_when_it_is_removed(view: str) -> None:
    seen = variant(GRAPH, view)
    model = seen.to_factor_graph("implication")
    evidence = evidence_of_atoms(GRAPH, seen, context_removals(seen, model))
    posterior = infer(model).marginals
    (speaks,), (silent,) = evidence["a1"], evidence["a2"]
    assert speaks.removal is not None
    assert silent.removal is not None
    assert speaks.removal.change == pytest.approx(posterior["a1"][1] - 0.5)
    assert silent.removal.change == 0.0
    assert silent.removal.present == pytest.approx(posterior["a2"][1])
