"""SAFE: every claim made understandable alone, searched for in several steps, judged by reasoning.

Source: Wei et al. 2024, "Long-form factuality in large language models", section 3; the prompts
are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.pipeline import Stage
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.web import WebRetriever
from factormodels.extraction.stages.asking import Question, ask_all, ask_each, identity_of, text_at
from factormodels.extraction.stages.assessors import (
    Assessor,
    Verdict,
    assess,
    assessor_facts,
    shown_passages,
    unsupported_as,
)
from factormodels.fact_graph import FactGraph
from factormodels.recorded_verdicts import ASSESSORS_KEY

NAME = "safe"
STAGES = ("safe-revision", "safe-relevance", "safe-search")
"""Stages of its calls before the verdict, whose stage is `NAME`."""

PROMPTS = ("reviser", "safe_relevance", "safe_query", "assess_safe")

IRRELEVANT = "irrelevant"

STEPS = 5
"""Searches per claim at most, as in the paper; fewer where the model has no more to ask."""

VERDICT = Assessor(
    NAME,
    PROMPTS[-1],
    # What the searches do not bear out is undecided, as with the assessor `factscore`.
    MappingProxyType({"supported": 1.0, "unsupported": 0.5}),
    reasons=True,
    source="Wei et al. 2024",
    words=unsupported_as("unsupported"),
)

RELEVANCE_PROMPT = PROMPTS[1]
RELEVANCE_TOKENS = 20
_REVISION_TOKENS, _QUERY_TOKENS = 300, 100
_SNIPPET = 1000
"""Characters of a passage that are shown."""


@dataclass(frozen=True, slots=True)
class SafeClaim:
    """What SAFE did with a claim.

    Attributes:
        text: the claim as it is understood alone.
        queries: its searches, in order.
        verdict: the verdict; its label is "irrelevant" where the claim does not bear on the
            question, and it is then dropped.
    """

    text: str
    queries: tuple[str, ...]
    verdict: Verdict


def safe(
    graph: FactGraph,
    model: LanguageModel,
    retriever: Retriever,
) -> tuple[SafeClaim, ...]:
    """SAFE's verdict on every claim of a response, in order.

    A claim of which a step fails, or a search was not answered, has no verdict and says why.

    Args:
        graph: the response with its claims; its query is what was asked.
        model: the language model.
        retriever: what is searched.
    """
    if isinstance(retriever, WebRetriever):
        retriever = retriever.checking(graph.response)
    missing: dict[str, str] = {}
    texts = {atom.id: atom.text for atom in graph.atoms}
    asked = {"question": graph.query, "response": graph.response}

    def step(
        atoms: Sequence[Atom], prompt: str, stage: str, fields: Any, read: Any, most: int
    ) -> list[tuple[Atom, Any]]:
        """Answers about the atoms that have one; the others go missing."""
        questions = {atom.id: Question(fields(atom), read, most) for atom in atoms}
        found, failed = ask_each(model, prompt, stage, questions)
        missing.update((atom, f"{stage}: {reason}") for atom, reason in failed)
        return [(atom, found[atom.id]) for atom in atoms if atom.id in found]

    revised = step(
        graph.atoms, PROMPTS[0], STAGES[0], lambda atom: {**asked, "claim": atom.text},
        text_at("claim"), _REVISION_TOKENS,
    )  # fmt: skip
    texts |= {atom.id: text for atom, text in revised}
    judged = step(
        [atom for atom, _ in revised], PROMPTS[1], STAGES[1],
        lambda atom: {**asked, "claim": texts[atom.id]}, read_relevance, RELEVANCE_TOKENS,
    )  # fmt: skip
    relevant = [atom for atom, word in judged if word == "relevant"]
    queries: dict[str, list[str]] = {atom.id: [] for atom in graph.atoms}
    found: dict[str, list[Context]] = {atom.id: [] for atom in relevant}
    searching = relevant
    for _ in range(STEPS):
        wanted = step(
            searching, PROMPTS[2], STAGES[2],
            lambda atom: {"claim": texts[atom.id], "knowledge": shown_passages(found[atom.id])},
            _read_query, _QUERY_TOKENS,
        )  # fmt: skip
        # A search that was made already finds nothing more.
        fresh = [(atom, text) for atom, text in wanted if text and text not in queries[atom.id]]
        before = {atom.id: len(found[atom.id]) for atom, _ in fresh}
        for (atom, text), answer in zip(
            fresh, retriever.retrieve([text for _, text in fresh]) if fresh else [], strict=True
        ):
            queries[atom.id].append(text)
            if not answer.searched:
                missing[atom.id] = f"a search was not answered: {answer.failures[0]}"
            for passage in answer.passages:
                known = {context.text for context in found[atom.id]}
                text = (passage.snippet or passage.text)[:_SNIPPET]
                if text not in known:
                    place = f"{atom.id}.{len(found[atom.id]) + 1}"
                    title, link = passage.title, passage.link
                    found[atom.id].append(
                        Context(place, text, title=title, link=link, retrieved_for=(atom.id,))
                    )
        # Without anything new the same would be asked again.
        searching = [
            atom
            for atom, _ in fresh
            if atom.id not in missing and len(found[atom.id]) > before[atom.id]
        ]
    ready = [atom for atom in relevant if atom.id not in missing]
    verdicts = {
        one.atom: one
        for one in assess(
            replace(
                graph,
                atoms=tuple(replace(atom, text=texts[atom.id]) for atom in ready),
                contexts=tuple(context for atom in ready for context in found[atom.id]),
                relations=(),
            ),
            VERDICT,
            model,
        )
    }
    verdicts |= {atom: Verdict(atom, missing=reason) for atom, reason in missing.items()}
    return tuple(
        SafeClaim(
            texts[atom.id],
            tuple(queries[atom.id]),
            verdicts.get(atom.id, Verdict(atom.id, IRRELEVANT)),
        )
        for atom in graph.atoms
    )


def safe_stage(model: LanguageModel, retriever: Retriever) -> Stage:
    """Stage in which SAFE judges every claim, beside other assessors.

    `metadata["assessors"]["safe"]` holds what `assessor_stage` writes, and `claims`: by id of atom
    its text as it was judged and its queries.
    """

    def stage(graph: FactGraph) -> FactGraph:
        found = safe(graph, model, retriever)
        by_id = dict(zip(graph.atom_ids, found, strict=True))
        prompts = prompts_of(model)
        facts = {
            **assessor_facts(VERDICT, model, (one.verdict for one in found)),
            "prompts": [identity_of(name, prompts) for name in PROMPTS],
            "claims": {
                atom: {"text": one.text, "queries": list(one.queries)}
                for atom, one in by_id.items()
            },
        }
        assessors = {**graph.metadata.get(ASSESSORS_KEY, {}), NAME: facts}
        return replace(graph, metadata={**graph.metadata, ASSESSORS_KEY: assessors})

    return stage


def read_relevance(value: Any) -> str | None:
    """Whether a claim is "relevant" or `IRRELEVANT`; None if the answer does not say."""
    said = value.get("relevant") if isinstance(value, dict) else None
    return None if not isinstance(said, bool) else "relevant" if said else IRRELEVANT


def relevances(
    model: LanguageModel, graph: FactGraph, texts: Sequence[str], stage: str
) -> list[bool | None]:
    """Whether claims bear on the question of a response, as SAFE asks it; None: nobody says."""
    asked = {"question": graph.query, "response": graph.response}
    questions = [
        Question({**asked, "claim": text}, read_relevance, RELEVANCE_TOKENS) for text in texts
    ]
    answers = ask_all(model, RELEVANCE_PROMPT, stage, questions)
    return [None if isinstance(one, Failure) else one != IRRELEVANT for one in answers]


def _read_query(value: Any) -> str | None:
    """The search, empty where there is no more to ask."""
    said = value.get("query", "") if isinstance(value, dict) and "query" in value else None
    return " ".join(said.split()) if isinstance(said, str) else None
