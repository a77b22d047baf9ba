"""Verdicts on claims, of people and of pipelines, in the words of FaStfact's tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calibration.claims.agreement import LABEL_TYPES
from calibration.claims.counts import ClaimCounts
from experiments.evaluators.annotated import VERDICTS, verdict_of
from experiments.evaluators.core_choices import subject_of
from factormodels.fact_graph import FactGraph


@dataclass(frozen=True)
class JudgedResponse:
    """The claims of one response.

    Attributes:
        id: id of the response.
        claims: texts of the claims.
        verdicts: verdict on each claim, a key of `calibration.claims.agreement.LABEL_TYPES`.
        group: the benchmark that the response belongs to.
    """

    id: str
    claims: tuple[str, ...]
    verdicts: tuple[str, ...]
    group: str = ""

    def count(self, kind: str) -> int:
        """The number of claims with a type of verdict."""
        return sum(LABEL_TYPES[verdict] == kind for verdict in self.verdicts)


def judged_graphs(graphs: Iterable[FactGraph]) -> list[JudgedResponse]:
    """The judged claims of fact graphs; a claim without a verdict is left out.

    The verdict is the annotation of the atom if that is a verdict, otherwise the atom's label.
    """
    responses = []
    for graph in graphs:
        judged = [
            (atom.text, verdict)
            for atom in graph.atoms
            if (verdict := verdict_of(atom)) is not None
        ]
        group = graph.metadata.get("benchmark", graph.metadata.get("prompt_source"))
        responses.append(
            JudgedResponse(
                graph.id,
                tuple(text for text, _ in judged),
                tuple(verdict for _, verdict in judged),
                str(group) if group is not None else subject_of(graph).domain,
            )
        )
    return responses


def recorded_verdicts(graphs: Iterable[FactGraph]) -> list[tuple[str, str]]:
    """The pipeline's verdict and the person's on the claims where FaStfact-Bench records both.

    The pipeline's verdict comes from its verifier, or from its pre-verification if it ran no
    search.
    """
    verdict_pairs = []
    for graph in graphs:
        verifier = graph.metadata.get("verifier", {})
        prelabels = graph.metadata.get("prelabel", {})
        for atom in graph.atoms:
            word = str(verifier.get(atom.id, prelabels.get(atom.id, ""))).casefold()
            recorded, human = VERDICTS.get(word, word), verdict_of(atom)
            if human is not None and recorded in LABEL_TYPES:
                verdict_pairs.append((recorded, human))
    return verdict_pairs


def counts_of(responses: Sequence[JudgedResponse]) -> ClaimCounts:
    """The numbers of claims by type of verdict."""
    kinds = ("supported", "non-supported", "irrelevant")
    return ClaimCounts(*([response.count(kind) for response in responses] for kind in kinds))
