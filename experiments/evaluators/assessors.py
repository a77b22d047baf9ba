"""Assessors for the robustness experiments: from a response to the claims that it supports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibration.scores.measures import DECISION_TOLERANCE, verdicts
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.stages.assessors import ASSESSORS, assess, posteriors
from factormodels.extraction.stages.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.object_repr import counted
from factormodels.selection.atom_relations import relate_atoms
from factormodels.variants import merge_duplicate_contexts
from factormodels.variants import variant as variant_of
from inference import infer

Assessor = Callable[[FactGraph], Sequence[bool]]
"""Says of each atom of a response, in order, whether it is supported.

It may leave out atoms that do not count, as one that relates atoms to each other does.
"""


def by_labels(graph: FactGraph) -> list[bool]:
    """The human label of each atom; one without a label is not supported."""
    return [atom.label is True for atom in graph.atoms]


def verified(graphs: Sequence[FactGraph], assessor: Assessor) -> tuple[FactGraph, ...]:
    """Responses whose claims have the verdicts of an assessor for labels.

    Those of which it supports no claim are left out: what is appended to a response has to be true
    of it.

    Args:
        graphs: the responses; labels that they have play no part.
        assessor: says of every atom, in order, whether it is supported.
    """
    found = []
    for graph in graphs:
        said = zip(graph.atoms, assessor(graph), strict=True)
        atoms = tuple(replace(atom, label=supported) for atom, supported in said)
        if any(atom.label for atom in atoms):
            found.append(replace(graph, atoms=atoms))
    return tuple(found)


def labelled_by(
    graphs: Sequence[FactGraph],
    verifier: str | None,
    assessors: Mapping[str, Assessor],
    source: str,
) -> tuple[tuple[FactGraph, ...], str, str]:
    """The responses with labels, whose they are, and what is to be said of that.

    Args:
        graphs: the responses.
        verifier: the assessor whose verdicts are taken for labels; None: people's, if there are
            any.
        assessors: by name.
        source: what the responses are called.

    Raises:
        InputError: for an unknown assessor, or one that supports no claim of any response.
    """
    if verifier is None:
        if any(atom.label is not None for graph in graphs for atom in graph.atoms):
            return tuple(graphs), "human labels", ""
        recorded = any(graph.relations for graph in graphs)
        verifier = "FR2" if recorded else next(name for name in assessors if "FR2, " in name)
    if verifier not in assessors:
        raise InputError(unknown_name(f"--verifier {verifier!r}", verifier, assessors))
    kept = verified(graphs, assessors[verifier])
    if not kept:
        raise InputError(
            f"{source}: {verifier} supports no claim of it, so nothing true can be appended; give "
            "responses with evidence (`factormodels assess --documents FOLDER --out FOLDER`), or "
            "another --verifier"
        )
    left_out = len(graphs) - len(kept)
    without = f"; {counted(left_out, 'response')} of which it supports no claim left out"
    remark = f"What {verifier} supports counts as true{without if left_out else ''}."
    return kept, f"verdicts of {verifier}", remark


def assessors_by_name(
    relations: RelationModel, model: LanguageModel | None, missing: Counter[str]
) -> dict[str, Assessor]:
    """The assessors that say of every claim whether it is supported, by name.

    Args:
        relations: the relation model of "FR2, NAME"; the others read what is recorded.
        model: the language model of the prompt-based assessors; None leaves them out.
        missing: where their missing verdicts are counted, by name.
    """
    prompted = (
        {} if model is None else {each: by_prompt(each, model, missing) for each in ASSESSORS}
    )
    return {
        **{variant: by_inference(variant) for variant in ("FR1", "FR2", "FR3")},
        f"FR2, {relations.name}": by_inference("FR2", relations),
        **prompted,
    }


def by_inference(variant: str, relations: RelationModel | None = None) -> Assessor:
    """FactReasoner as an assessor, by exact inference.

    Args:
        variant: FR1, FR2 or FR3.
        relations: predicts the relations; None takes those of the graph.
    """

    def assessor(graph: FactGraph) -> list[bool]:
        if not graph.atoms:
            return []
        related = graph
        if relations is not None:
            # Predicted anew for each version of a response, as it would be for one never seen
            # before.
            related = with_relations(merge_duplicate_contexts(graph), relations, variant)
        seen = variant_of(related, variant)
        posterior = infer(seen.to_factor_graph())
        p: NDArray[np.float64] = posterior.marginals.of_state(1, seen.atom_ids)
        return [bool(v > 0) for v in verdicts(p, DECISION_TOLERANCE)]

    return assessor


def by_related_atoms(variant: str, relations: RelationModel) -> Assessor:
    """FactReasoner with atoms related to each other: of atoms that say the same, one counts.

    Args:
        variant: FR1, FR2 or FR3, by the relations that are recorded.
        relations: says which atom entails which.
    """

    def assessor(graph: FactGraph) -> list[bool]:
        if not graph.atoms:
            return []
        related = relate_atoms(variant_of(graph, variant), relations)
        posterior = infer(related.graph.to_factor_graph())
        p: NDArray[np.float64] = posterior.marginals.of_state(1, graph.atom_ids)
        supported = verdicts(p, DECISION_TOLERANCE) > 0
        # Of atoms that say the same, the one that represents them is its own representative.
        return [bool(supported[k]) for k, own in enumerate(related.representative) if own == k]

    return assessor


def by_prompt(name: str, model: LanguageModel, missing: Counter[str] | None = None) -> Assessor:
    """A prompt-based assessor; an atom without a verdict is not supported.

    Args:
        name: a name of `factormodels.extraction.stages.assessors.ASSESSORS`.
        model: the language model that judges.
        missing: where verdicts that are missing are counted, by the assessor's name.
    """

    def assessor(graph: FactGraph) -> list[bool]:
        found = assess(graph, name, model) if graph.atoms else ()
        if missing is not None:
            missing[name] += sum(bool(verdict.missing) for verdict in found)
        p = posteriors(found)
        # The tolerance is that of the other assessors, so that 1/2 counts alike in all.
        return [p.get(atom, 0.0) > 0.5 + DECISION_TOLERANCE for atom in graph.atom_ids]

    return assessor
