"""The assessment of one response: posteriors of its atoms, what each context does, measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.scores.measures import entropy_warnings
from calibration.scores.summary import Summary, measure_responses, summarise
from experiments.assess.evidence import ContextEvidence, context_removals, evidence_of_atoms
from factormodels.errors import FactormodelsError, InputError
from factormodels.extraction.pipeline import ASSESSORS_KEY, STAGE_KEYS
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant as variant_of
from inference import Backend

METADATA_KEY = "assessment"

MEASURES = (
    *("n_atoms", "supported", "contradicted", "undecided"),
    *("precision", "entropy", "mean_surprisal", "expected_precision"),
)
"""The measures of a single response that need no labels and no other response."""


@dataclass(frozen=True)
class AssessmentView:
    """How relations become a posterior.

    Attributes:
        variant: FR1, FR2 or FR3.
        encoding: encoding of relations.
        backend: the algorithm.
    """

    variant: str
    encoding: str
    backend: Backend


def assess_graph(graph: FactGraph, views: Sequence[AssessmentView]) -> dict[str, Any]:
    """The assessment of a response under each view, as JSON values by name of the variant.

    Each has `encoding`, `backend`, `status`, `log_z`, `log_z_kind`, `measures` (see `MEASURES`) and
    `atoms`: by id, the posterior `p` of being true and its `evidence`, the contexts that a relation
    joins to it, each with `relation`, `probability` and `change`, what p loses when the context is
    taken away (computed exactly; None where that does not fit the memory). A view that has no
    answer holds its `error` alone.
    """
    return {view.variant: _assessed(graph, view) for view in views}


def by_strength(evidence: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The evidence of an atom in an assessment, what changes its posterior most first."""

    def strength(item: Mapping[str, Any]) -> float:
        size: float = item["probability"] if item["change"] is None else item["change"]
        return abs(size)

    return sorted(evidence, key=strength, reverse=True)


def _assessed(graph: FactGraph, view: AssessmentView) -> dict[str, Any]:
    seen = variant_of(graph, view.variant)
    factor_graph = seen.to_factor_graph(view.encoding)
    try:
        posterior = view.backend.infer(factor_graph)
    # An encoding or setting that does not fit is for the user to mend; other errors are this
    # view's.
    except InputError:
        raise
    except FactormodelsError as error:
        return {"encoding": view.encoding, "backend": view.backend.name, "error": str(error)}
    p = posterior.marginals.of_state(1, seen.atom_ids)
    # Removals are computed exactly even if the posterior is approximate, hence `change` may be None
    # where `p` is there.
    evidence = evidence_of_atoms(graph, seen, context_removals(seen, factor_graph))
    return {
        "encoding": view.encoding,
        "backend": view.backend.name,
        "status": str(posterior.status),
        "log_z": posterior.log_z,
        "log_z_kind": str(posterior.log_z_kind),
        "measures": _measures(p),
        "atoms": {
            atom: {"p": float(value), "evidence": [_plain(item) for item in evidence[atom]]}
            for atom, value in zip(seen.atom_ids, p, strict=True)
        },
    }


def _measures(p: np.ndarray[Any, Any]) -> dict[str, float | int]:
    if not p.size:
        return {"n_atoms": 0}
    # A batch would repeat the warning about E for every response; the summary gives it once.
    with entropy_warnings():
        # All atoms belong to response 0, so every measure has one entry.
        measured = measure_responses(p, np.zeros(p.size, dtype=int))
    return {name: getattr(measured, name)[0].item() for name in MEASURES}


def _plain(item: ContextEvidence) -> dict[str, Any]:
    return {
        "context": item.context,
        "relation": str(item.relation),
        "probability": item.probability,
        "change": None if item.removal is None else item.removal.change,
    }


@dataclass(frozen=True)
class AssessedResponse:
    """What a table needs of one assessed response: little, however long its passages are.

    Attributes:
        response: its id.
        labels: label of each atom, None where there is none.
        p: posteriors of the atoms by variant, absent where a view had no answer; and what
            assessors say by their names, None for an atom without a verdict.
        missing: relations without an answer.
        failures: failures of the other stages.
        unjudged: verdicts of assessors that are missing.
    """

    response: str
    labels: tuple[bool | None, ...]
    p: Mapping[str, tuple[float | None, ...]]
    missing: int
    failures: int
    unjudged: int = 0


def judged(graph: FactGraph) -> AssessedResponse:
    """What tables need of an assessed response."""
    assessment = graph.metadata[METADATA_KEY]
    stages = [graph.metadata.get(key, {}) for key in STAGE_KEYS]
    assessors = graph.metadata.get(ASSESSORS_KEY, {})
    return AssessedResponse(
        graph.id,
        tuple(atom.label for atom in graph.atoms),
        {
            name: tuple(atom["p"] for atom in view["atoms"].values())
            for name, view in assessment.items()
            if "atoms" in view
        }
        | {
            name: tuple(facts["verdicts"].get(atom, {}).get("p") for atom in graph.atom_ids)
            for name, facts in assessors.items()
        },
        len(graph.metadata.get("relations", {}).get("missing", ())),
        sum(len(stage.get("failures", ())) for stage in stages),
        sum(len(facts["missing"]) for facts in assessors.values()),
    )


def summarise_judged(responses: Sequence[AssessedResponse], name: str) -> Summary | None:
    """The summary of a variant or assessor over responses; None if no atom was judged.

    Unlabelled atoms are left out of scores, atoms without a verdict altogether.
    """
    judged = [
        (p, label, response.response)
        for response in responses
        if name in response.p
        for p, label in zip(response.p[name], response.labels, strict=True)
        if p is not None
    ]
    if not judged:
        return None
    p, labels, ids = zip(*judged, strict=True)
    return summarise(p, labels, ids)
