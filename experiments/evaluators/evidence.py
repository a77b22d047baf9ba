"""Evidence for and against the atoms of a response, and the effect of removing each context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.variants import COPY_SEPARATOR

if TYPE_CHECKING:
    from inference.exact.backend import Exact
    from inference.sampling.annealing import AnnealedImportance

DRAWING_SECONDS = 60.0
"""Limit on seconds of draws per view, in addition to 5 s for its posterior. Draws for 31 claims and
90 passages take 2.4 s of processor time; a view can have thousands of passages.
"""


class Removal(NamedTuple):
    """Posterior of an atom with a context and without it, exact if `error` is 0.

    Attributes:
        present: posterior with the context.
        without: posterior without the context.
        error: standard error of the change, for estimates from draws.
    """

    present: float
    without: float
    error: float = 0.0

    @property
    def change(self) -> float:
        """Decrease of the posterior when the context is removed."""
        return self.present - self.without


Removals = dict[tuple[str, str], Removal | None]
"""Effect of removing a context on an atom, by (context, atom); None if unknown."""


@dataclass(frozen=True)
class ContextEvidence:
    """A relation between a context and an atom.

    Attributes:
        context: id of the context in the response as recorded.
        relation: kind of the relation.
        probability: probability of the relation in the view.
        removal: effect on the atom of removing the context; None if unknown.
    """

    context: str
    relation: RelationKind
    probability: float
    removal: Removal | None


def evidence_of_atoms(
    graph: FactGraph, seen: FactGraph, removals: Removals | None
) -> dict[str, list[ContextEvidence]]:
    """The evidence of every atom by its id, in the order of the relations.

    Args:
        graph: the response as recorded.
        seen: the view of it that inference saw.
        removals: output of `context_removals`; None if it was not computed.
    """
    evidence: dict[str, list[ContextEvidence]] = {atom: [] for atom in seen.atom_ids}
    contexts = set(seen.context_ids)
    for relation in seen.relations:
        ends = (relation.source, relation.target)
        # Exactly one end must be a context: relations between two atoms or two contexts are not
        # evidence.
        if relation.kind is RelationKind.NEUTRAL or (ends[0] in contexts) == (ends[1] in contexts):
            continue
        # Relations can have either direction.
        context, atom = ends if ends[0] in contexts else ends[::-1]
        evidence[atom].append(
            ContextEvidence(
                context=recorded_context(context, atom, graph),
                relation=relation.kind,
                probability=relation.probability,
                removal=None if removals is None else removals[context, atom],
            )
        )
    return evidence


def context_removals(
    seen: FactGraph, factor_graph: FactorGraph, exact: Exact | None = None
) -> Removals | None:
    """Effect on the atoms of removing each context alone.

    Args:
        seen: the view of a response.
        factor_graph: its factor graph.
        exact: settings of the exact computation; draws answer if it refuses. None for the settings
            of `auto`.

    Returns:
        An entry for each related pair of a context and an atom; None if the tables do not fit into
        memory and the draws are too imprecise or exceed `DRAWING_SECONDS`.
    """
    from inference import InferenceError, Status
    from inference.auto import Auto
    from inference.tasks import without_variables

    if not seen.contexts or not seen.atoms:
        return {}

    def draws() -> AnnealedImportance:
        # Imported here because loading takes longer than most graphs do.
        from inference.sampling.annealing import AnnealedImportance

        return AnnealedImportance(seconds=DRAWING_SECONDS)

    exact = exact or Auto().exact()
    try:
        effects = without_variables(factor_graph, seen.context_ids, exact=exact, otherwise=draws)
    except InferenceError:
        return None
    if effects.status is Status.NOT_CONVERGED:
        return None
    names = seen.atom_ids + seen.context_ids
    errors = effects.standard_errors
    of_change = np.zeros(len(effects.removed)) if errors is None else errors[:, 1]
    removals: Removals = {
        (names[removed], names[target]): (
            None if np.isnan(without) else Removal(float(present), float(without), float(error))
        )
        for removed, target, present, without, error in zip(
            effects.removed,
            effects.targets,
            effects.present,
            effects.without,
            of_change,
            strict=True,
        )
        # Variables are the atoms first, then the contexts; effects of a context on other contexts
        # are left out.
        if target < len(seen.atoms)
    }
    return removals | _without_factors(seen, factor_graph, removals, exact)


def _without_factors(
    seen: FactGraph, factor_graph: FactorGraph, removals: Removals, exact: Exact
) -> Removals:
    """Removals for pairs of a context and an atom without a common factor, which change nothing.

    A relation with probability below 1/2 has no factor.
    """
    from inference import InferenceError

    atoms, contexts = set(seen.atom_ids), set(seen.context_ids)
    missing = [
        ends
        for relation in seen.relations
        for ends in ((relation.source, relation.target), (relation.target, relation.source))
        if ends[0] in contexts and ends[1] in atoms and ends not in removals
    ]
    if not missing:
        return {}
    try:
        p = exact.infer(factor_graph).marginals.of_state(1, [atom for _, atom in missing])
    except InferenceError:
        return dict.fromkeys(missing)
    return {ends: Removal(value, value) for ends, value in zip(missing, p.tolist(), strict=True)}


def recorded_context(context: str, atom: str, graph: FactGraph) -> str:
    """Original of the context that FR1 copied for an atom."""
    if context in graph.context_ids:
        return context
    # FR1 copies a context for each of its atoms, and names the copy after the context and the atom.
    return context.removesuffix(f"{COPY_SEPARATOR}{atom}")
