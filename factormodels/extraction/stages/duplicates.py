"""Claims that a response makes more than once: judged once, counted as often as they are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from factormodels.claims import Atom, Relation
from factormodels.fact_graph import FactGraph
from factormodels.variants import normalized_text

METADATA_KEY = "duplicates"

_OWN = ("label", "annotation", "sentence")
"""What a merged atom keeps of its own."""


def merge_duplicate_atoms(graph: FactGraph) -> FactGraph:
    """Graph with atoms of equal texts merged into the first of each kind.

    Texts are compared up to Unicode form, case and white space; an atom without a text stays. What
    was retrieved for a merged atom counts as retrieved for the one that stays, and its relations
    move there, unless that has one with the same context. `metadata["duplicates"]` holds by id of
    each merged atom the one that stays (`same_as`) and its own label, annotation and sentence.

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
    # Those of the atoms that stay come first, so that none of theirs is displaced.
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
    """Yield every atom of the response with the id of its representative, merged atoms last.

    Measures count these: a claim that is made twice is two of the response's claims.
    """
    known = {atom.id: atom for atom in graph.atoms}
    return [(atom, atom.id) for atom in graph.atoms] + [
        (
            replace(known[facts["same_as"]], id=name, **{key: facts[key] for key in _OWN}),
            facts["same_as"],
        )
        for name, facts in graph.metadata.get(METADATA_KEY, {}).items()
        # An atom may have been taken out of a written graph since.
        if facts["same_as"] in known
    ]


def _facts(atom: Atom, same_as: str) -> dict[str, Any]:
    return {"same_as": same_as, **{key: getattr(atom, key) for key in _OWN}}
