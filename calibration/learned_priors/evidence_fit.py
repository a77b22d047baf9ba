"""The evidence of responses in kinds, for the test whether a mixture of what was learned gives it.

The test itself is `calibration.learned_potentials.shift.shift_of`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.learned_potentials.shift import LawOfEvidence
from calibration.validation import Floats, Integers
from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph


def evidence_of(graphs: Sequence[FactGraph], log_odds: Floats, owners: Integers) -> LawOfEvidence:
    """Evidence of all atoms of responses, in order.

    Its kinds are the log odds by all evidence, and the numbers of relations with an atom, of those
    that support it and of those that contradict it.

    Args:
        graphs: the responses.
        log_odds: of each atom by all evidence, (n,).
        owners: the response of each, (n,).
    """
    counts = [row for graph in graphs for row in _counts(graph)]
    # Rounded, since equal evidence in two responses must not differ by the order of a sum.
    columns = np.round(log_odds, 9)[:, np.newaxis], np.array(counts, np.float64).reshape(-1, 3)
    return LawOfEvidence(np.concatenate(columns, axis=1), owners, len(graphs))


def _counts(graph: FactGraph) -> list[list[int]]:
    """Of each atom: relations with it, those that support it, those that contradict it."""
    counts = {atom: [0, 0, 0] for atom in graph.atom_ids}
    for relation in graph.relations:
        for end in {relation.source, relation.target} & counts.keys():
            counts[end][0] += 1
            if relation.kind is RelationKind.CONTRADICTION:
                counts[end][2] += 1
            elif relation.kind is not RelationKind.NEUTRAL:
                counts[end][1] += 1
    return list(counts.values())
