"""Measures of each response under each assessor, graph-based or by a prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from experiments.analyses.papers.loading import Block
from factormodels.extraction.assessors import assess, posteriors
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant as variant_of

if TYPE_CHECKING:
    import pandas as pd

PROMPTS: Mapping[str, str] = MappingProxyType(
    {"FS": "factscore", "FV": "factverify", "VS": "veriscore", "DeepSeek-v3": "own-knowledge"}
)
"""The prompt-based assessors by the name that FactReasoner's tables give them."""

DIRECTIONS: Mapping[str, int] = MappingProxyType(
    {"precision": 1, "f1": 1, "f1_at_k": 1, "mae": -1, "accuracy": 1, "brier": -1}
)
"""Which way each measure is better. E does not order responses by truth and is not among them."""


def assessed(
    block: Block,
    prompts: Sequence[str],
    variants: Sequence[str],
    *,
    encoding: str,
    backend: str,
    k: str | int,
) -> dict[str, pd.DataFrame]:
    """The measures of each response by assessor: a frame with the responses as index.

    A claim without a verdict is left out, and a response without any is not in the frame.

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
    found: dict[str, pd.DataFrame] = {}
    if block.judge is not None:
        for name in prompts:
            answers = [
                posteriors(assess(graph, PROMPTS[name], block.judge)) for graph in block.graphs
            ]
            found[name] = _measured(block.graphs, answers, fixed, is_graph=False)
    for name in variants:
        views = [variant_of(graph, name) for graph in block.graphs]
        asked = infer_batch([view.to_factor_graph(encoding) for view in views], backend)
        answers = [
            dict(
                zip(
                    view.atom_ids,
                    posterior.marginals.of_state(1, view.atom_ids).tolist(),
                    strict=True,
                )
            )
            for view, posterior in zip(views, asked, strict=True)
        ]
        found[name] = _measured(block.graphs, answers, fixed, is_graph=True)
    return found


def _measured(
    graphs: Sequence[FactGraph],
    answers: Sequence[Mapping[str, float]],
    k: float | None,
    *,
    is_graph: bool,
) -> pd.DataFrame:
    import pandas as pd

    rows = {
        graph.id: _measures(graph, answer, k, is_graph)
        for graph, answer in zip(graphs, answers, strict=True)
        if answer
    }
    return pd.DataFrame.from_dict(rows, orient="index", dtype=float)


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
