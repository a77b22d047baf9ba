"""Measures of each response under each assessor, graph-based or by a prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.scores.measures import (
    choose_k,
    decisions,
    entropy_terms,
    f1_of_counts,
    verdicts,
)
from experiments.analyses.papers.shared.loading import Block
from factormodels.extraction.stages.assessors import assess, posteriors
from factormodels.extraction.stages.relations import missing_relations, unanswered_atoms
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant as variant_of

if TYPE_CHECKING:
    import pandas as pd

PROMPTS: Mapping[str, str] = MappingProxyType(
    {
        "FS": "factscore",
        "FV": "factverify",
        "VS": "veriscore",
        "DeepSeek-v3": "evidence-and-knowledge",
    }
)
"""The prompt-based assessors by the name that FactReasoner's tables give them."""

DIRECTIONS: Mapping[str, int] = MappingProxyType(
    {"precision": 1, "f1": 1, "f1_at_k": 1, "mae": -1, "accuracy": 1, "brier": -1}
)
"""Which way each measure is better. E does not order responses by truth and is not among them."""


MEASURES = (
    *("atoms", "supported", "contradicted", "undecided", "precision", "f1_at_k", "entropy"),
    *("f1", "mae", "accuracy", "brier"),
)
"""The measures of a response."""


@dataclass(frozen=True)
class Assessed:
    """What an assessor says of the responses of a block.

    Attributes:
        graphs: the responses.
        answers: P(true) by id of atom, of each response; a claim without a verdict is not there.
        k: K of F1@K; None takes half of a response's atoms.
        is_graph: whether the assessor has probabilities, of which E and the Brier score are.
        missing: number of claims without a verdict; of a graph, those none of whose relations
            was found.
        reason: why the first of these has none.
    """

    graphs: tuple[FactGraph, ...]
    answers: tuple[Mapping[str, float], ...]
    k: float | None
    is_graph: bool
    missing: int = 0
    reason: str = ""

    def measures(self, other: Assessed | None = None) -> pd.DataFrame:
        """The measures of each response that has a verdict, a row each with its id as index.

        Args:
            other: of the same responses; of its claims those without a verdict are left out.
        """
        import pandas as pd

        both = self.answers if other is None else other.answers
        rows = {}
        for graph, answer, its in zip(self.graphs, self.answers, both, strict=True):
            shared = {atom: p for atom, p in answer.items() if atom in its}
            if shared:
                rows[graph.id] = _measures(graph, shared, self.k, self.is_graph)
        return pd.DataFrame.from_dict(rows, orient="index", columns=list(MEASURES), dtype=float)


def assessed(
    block: Block,
    prompts: Sequence[str],
    variants: Sequence[str],
    *,
    encoding: str,
    backend: str,
    k: str | int,
) -> dict[str, Assessed]:
    """What each assessor says of the responses, by its name.

    Args:
        block: the responses and who answers prompts; without one, prompts are left out.
        prompts: names of `PROMPTS`.
        variants: the graph-based assessors.
        encoding: encoding of relations.
        backend: name of the algorithm.
        k: K of F1@K, as `choose_k` takes it.
    """
    from inference import infer_batch

    sizes = [len(graph.atoms) for graph in block.graphs if graph.atoms]
    fixed = float(choose_k(k, np.array(sizes))[0]) if k != "half" else None
    graphs = tuple(block.graphs)
    found: dict[str, Assessed] = {}
    if block.judge is not None:
        for name in prompts:
            said = [assess(graph, PROMPTS[name], block.judge) for graph in graphs]
            missing = [verdict.missing for one in said for verdict in one if verdict.missing]
            found[name] = Assessed(
                graphs,
                tuple(posteriors(one) for one in said),
                fixed,
                is_graph=False,
                missing=len(missing),
                reason=missing[0] if missing else "",
            )
    for name in variants:
        views = [variant_of(graph, name) for graph in graphs]
        asked = infer_batch([view.to_factor_graph(encoding) for view in views], backend)
        unanswered = [unanswered_atoms(graph) for graph in graphs]
        answers = tuple(
            {
                atom: p
                for atom, p in zip(
                    view.atom_ids,
                    posterior.marginals.of_state(1, view.atom_ids).tolist(),
                    strict=True,
                )
                if atom not in lacking
            }
            for view, posterior, lacking in zip(views, asked, unanswered, strict=True)
        )
        found[name] = Assessed(
            graphs,
            answers,
            fixed,
            is_graph=True,
            missing=sum(map(len, unanswered)),
            reason=f"{sum(map(missing_relations, graphs))} relations are missing",
        )
    return found


def _measures(
    graph: FactGraph, answer: Mapping[str, float], k: float | None, is_graph: bool
) -> dict[str, Any]:
    p = np.array([answer[atom.id] for atom in graph.atoms if atom.id in answer])
    counts = decisions(p)
    own_k = k if k is not None else len(graph.atoms) / 2
    measures = {
        "atoms": len(p),
        "supported": counts.supported,
        "contradicted": counts.contradicted,
        "undecided": counts.undecided,
        "precision": counts.supported / len(p),
        "f1_at_k": float(f1_of_counts(counts.supported, len(p), own_k)),
        "entropy": float(entropy_terms(p).mean()) if is_graph else math.nan,
    }
    labelled = [atom for atom in graph.atoms if atom.label is not None and atom.id in answer]
    if not labelled:
        return measures | dict.fromkeys(("f1", "mae", "accuracy", "brier"), math.nan)
    y = np.array([atom.label for atom in labelled], dtype=bool)
    forecast = np.array([answer[atom.id] for atom in labelled])
    said = verdicts(forecast) > 0
    # F1 = 2 TP / (2 TP + FP + FN), whose denominator is what was said plus what is true.
    true = int((said & y).sum())
    claimed = int(said.sum() + y.sum())
    return {
        **measures,
        "f1": 2 * true / claimed if claimed else math.nan,
        "mae": abs(float(said.mean()) - float(y.mean())),
        "accuracy": float((said == y).mean()),
        "brier": float(((forecast - y) ** 2).mean()) if is_graph else math.nan,
    }
