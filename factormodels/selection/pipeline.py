"""Core as a stage of the pipeline, after the atoms and before any search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from factormodels.fact_graph import FactGraph
from factormodels.selection.stage import Core, select_atoms

if TYPE_CHECKING:
    from factormodels.extraction.pipeline import Stage

METADATA_KEY = "selection"


def selection_stage(core: Core) -> Stage:
    """Return the stage that keeps the atoms that count.

    It may be anywhere after the atoms: before the search, so that other atoms are not searched for,
    or last. `metadata["selection"]` holds the relation model, the rule, the share, the ids of the
    dropped atoms, the status and the gap of the solution, the reason of an empty selection, and the
    number of missing judgments.

    Args:
        core: settings of the selection. If it requires a share of faithful atoms, the response is
            split into sentences as in the atomizer.
    """

    def stage(graph: FactGraph) -> FactGraph:
        sentences = None
        if core.share is not None:
            from factormodels.extraction.sentences import sentences_of

            sentences = sentences_of(graph)
        view, selection = select_atoms(graph, core, sentences)
        solution = selection.solution
        kept = set(view.atom_ids)
        facts: dict[str, Any] = {
            "relations": core.relations.name,
            "rule": core.rule,
            "share": core.share,
            "atoms": len(graph.atoms),
            "dropped": [atom for atom in graph.atom_ids if atom not in kept],
            "status": solution.status,
            "gap": solution.gap,
            "reason": solution.reason,
            "missing": selection.missing,
        }
        return replace(view, metadata={**graph.metadata, METADATA_KEY: facts})

    return stage
