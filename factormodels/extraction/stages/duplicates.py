"""Claims that a response makes more than once: judged once, and counted each time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from factormodels.claims import Atom, Relation
from factormodels.fact_graph import FactGraph
from factormodels.variants import normalized_text

METADATA_KEY = "duplicates"

_OWN = ("label", "annotation", "sentence")
"""Fields that a merged atom keeps."""


def merge_duplicate_atoms(graph: FactGraph) -> FactGraph:
    """Return the graph with atoms of equal texts merged into the first one.

    Texts are compared without regard to Unicode form, case and white space; atoms without a text
    are not merged. Contexts retrieved for a merged atom count as retrieved for the first one, and
    its relations move to the first one, unless that has a relation with the same context.
    `metadata["duplicates"]` holds, by id of each merged atom, the id of the first one (`same_as`)
    and the merged atom's label, annotation and sentence.

    Source: FactReasoner's release, which drops repeated atoms.
    """
    first: dict[str, str] = {}
    stays: dict[str, str] = {}
    for atom in graph.atoms:
        text = normalized_text(atom.text)
        stays[atom.id] = first.setdefault(text, atom.id) if text else atom.id
    merged = {
        atom.id: _facts(atom, stays[atom.id]) for atom in graph.atoms if stays[atom.id] != atom.id
    }
    if not merged:
        return graph
    relations: dict[tuple[str, str], Relation] = {}
    # Relations of the remaining atoms come first, so that they take precedence.
    for relation in sorted(graph.relations, key=lambda r: r.source in merged or r.target in merged):
        ends = (
            stays.get(relation.source, relation.source),
            stays.get(relation.target, relation.target),
        )
        if ends[0] != ends[1]:
            relations.setdefault(ends, replace(relation, source=ends[0], target=ends[1]))
    return replace(
        graph,
        atoms=tuple(atom for atom in graph.atoms if atom.id not in merged),
        contexts=tuple(
            replace(
                context,
                retrieved_for=tuple(dict.fromkeys(stays[atom] for atom in context.retrieved_for)),
            )
            for context in graph.contexts
        ),
        relations=tuple(relations.values()),
        metadata={
            **graph.metadata,
            METADATA_KEY: {**graph.metadata.get(METADATA_KEY, {}), **merged},
        },
    )


def every_atom(graph: FactGraph) -> list[tuple[Atom, str]]:
    """Return every atom of the response with the id of its representative, merged atoms last.

    Measures count all of them: a claim that is made twice counts as two claims.
    """
    known = {atom.id: atom for atom in graph.atoms}
    return [(atom, atom.id) for atom in graph.atoms] + [
        (
            replace(known[facts["same_as"]], id=name, **{key: facts[key] for key in _OWN}),
            facts["same_as"],
        )
        for name, facts in graph.metadata.get(METADATA_KEY, {}).items()
        # The representative may have been removed from a graph that was written and edited.
        if facts["same_as"] in known
    ]


def _facts(atom: Atom, same_as: str) -> dict[str, Any]:
    return {"same_as": same_as, **{key: getattr(atom, key) for key in _OWN}}
