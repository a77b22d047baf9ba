"""Claims of a response with a verdict on each, as a pipeline or a person gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from calibration.claims.agreement import LABEL_TYPES
from calibration.claims.counts import ClaimCounts
from experiments.padding.gaming import subject_of
from factormodels.claims import Atom
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.accounting import Ledger, MeteredModel
from factormodels.extraction.prompts.replaced import WithPrompts, prompts_of
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.stages.assessors import assess
from factormodels.fact_graph import FactGraph

VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "conflicting": "conflicting evidence",
        "insufficient": "not enough evidence",
        "undecided": "not enough evidence",
        "contradicted": "refuted",
        "true": "supported",
        "false": "non-supported",
        "unsupported": "non-supported",
    }
)
"""What FaStfact's table 2 calls the verdicts of assessors."""


@dataclass(frozen=True)
class JudgedResponse:
    """The claims of one response.

    Attributes:
        id: of the response.
        claims: texts.
        verdicts: one of each claim, a key of `calibration.claims.agreement.LABEL_TYPES`.
        group: the benchmark that it belongs to.
        tokens: what the judging took; None where it is not known.
    """

    id: str
    claims: tuple[str, ...]
    verdicts: tuple[str, ...]
    group: str = ""
    tokens: int | None = None

    def count(self, kind: str) -> int:
        """The number of claims with a type of verdict."""
        return sum(LABEL_TYPES[verdict] == kind for verdict in self.verdicts)


def judged_graphs(graphs: Iterable[FactGraph]) -> list[JudgedResponse]:
    """The judged claims of fact graphs; a claim without a verdict is left out.

    The verdict is the annotation of the atom where it is one, otherwise its label.
    """
    found = []
    for graph in graphs:
        judged = [
            (atom.text, verdict)
            for atom in graph.atoms
            if (verdict := verdict_of(atom)) is not None
        ]
        group = graph.metadata.get("benchmark", graph.metadata.get("prompt_source"))
        tokens = graph.metadata.get("tokens")
        found.append(
            JudgedResponse(
                graph.id,
                tuple(text for text, _ in judged),
                tuple(verdict for _, verdict in judged),
                str(group) if group is not None else subject_of(graph).domain,
                tokens if isinstance(tokens, int) else None,
            )
        )
    return found


def verdict_of(atom: Atom) -> str | None:
    """What people said of an atom, a key of `LABEL_TYPES`; None where they said nothing."""
    known = VERDICTS.get(atom.annotation or "", atom.annotation)
    if known in LABEL_TYPES:
        return known
    return None if atom.label is None else "supported" if atom.label else "non-supported"


def recorded_verdicts(graphs: Iterable[FactGraph]) -> list[tuple[str, str]]:
    """The pipeline's verdict and the person's on the claims where FaStfact-Bench records both.

    The pipeline's is that of its verifier, or of its pre-verification where it searched nothing.
    """
    found = []
    for graph in graphs:
        verifier = graph.metadata.get("verifier", {})
        prelabels = graph.metadata.get("prelabel", {})
        for atom in graph.atoms:
            said = str(verifier.get(atom.id, prelabels.get(atom.id, ""))).casefold()
            own, human = VERDICTS.get(said, said), verdict_of(atom)
            if human is not None and own in LABEL_TYPES:
                found.append((own, human))
    return found


def counts_of(responses: Sequence[JudgedResponse]) -> ClaimCounts:
    """The numbers of claims by type of verdict."""
    return ClaimCounts(
        *(
            [response.count(kind) for response in responses]
            for kind in ("supported", "non-supported", "irrelevant")
        )
    )


Pipeline = Callable[[FactGraph, LanguageModel, Retriever], tuple[Sequence[str], Sequence[str]]]
"""From a response to claims and a verdict on each, by a language model and a retriever."""


def run_pipeline(
    pipeline: Pipeline, graphs: Iterable[FactGraph], model: LanguageModel, retriever: Retriever
) -> list[JudgedResponse]:
    """What a pipeline says of responses, with the tokens that it took for each."""
    found = []
    for graph in graphs:
        ledger = Ledger()
        metered = WithPrompts(MeteredModel(model, ledger), prompts_of(model))
        claims, verdicts = pipeline(graph, metered, retriever)
        used = ledger.total.taken
        found.append(
            JudgedResponse(
                graph.id,
                tuple(claims),
                tuple(VERDICTS.get(verdict, verdict) for verdict in verdicts),
                subject_of(graph).domain,
                used.prompt_tokens + used.completion_tokens,
            )
        )
    return found


def fastfact_pipeline(
    graph: FactGraph, model: LanguageModel, retriever: Retriever
) -> tuple[list[str], list[str]]:
    """FaStfact's claims and verdicts; a claim that needs no search has its own verdict."""
    from factormodels.extraction.fastfact import fastfact

    done = fastfact(graph, model, retriever)
    claims, verdicts = [], []
    for atom, own in zip(done.graph.atoms, done.extraction.claims, strict=True):
        verdict = done.verdicts.get(atom.id)
        if verdict is not None and not verdict.label:
            continue
        claims.append(atom.text)
        verdicts.append(str(own.label) if verdict is None else verdict.label)
    return claims, verdicts


def sentence_pipeline(assessor: str) -> Pipeline:
    """A pipeline that extracts sentence by sentence, searches all and asks an assessor."""

    def pipeline(
        graph: FactGraph, model: LanguageModel, retriever: Retriever
    ) -> tuple[list[str], list[str]]:
        from dataclasses import replace

        from factormodels.extraction.stages.atomizer import atomize
        from factormodels.extraction.stages.queries import build_query
        from factormodels.extraction.stages.retrieval import with_contexts

        atoms = atomize(graph.response, model, query=graph.query, stride=1).atoms
        plain = replace(graph, atoms=atoms, contexts=(), relations=())
        searched = with_contexts(
            plain, retriever, [build_query(atom, graph.topic) for atom in atoms]
        )
        said = [one for one in assess(searched, assessor, model) if one.label]
        texts = {atom.id: atom.text for atom in atoms}
        return [texts[one.atom] for one in said], [one.label for one in said]

    return pipeline
