"""Core as a stage of the pipeline: after the atoms are there, before anything is searched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from factormodels.fact_graph import FactGraph
from factormodels.selection.stage import Core, select_atoms

if TYPE_CHECKING:
    from factormodels.extraction.pipeline import Stage

METADATA_KEY = "selection"


def selection_stage(core: Core) -> Stage:
    """Stage that keeps the atoms that count.

    It may stand anywhere after the atoms: before the search, so that nothing is searched for what
    does not count, or last. `metadata["selection"]` holds the relation model, the rule, the share,
    the ids of the atoms that were dropped, the status and the gap of the solution, why nothing was
    selected if nothing was, and the number of missing judgements.

    Args:
        core: how to select. Where it asks for a share of faithful atoms, the response is split
            into sentences as the atomizer splits it.
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
