"""Core for any scorer: selection among the judged claims, and scores of the selected claims.

Source: Core, section 3: a decorator between decomposition and score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from experiments.asking.relation_models import relation_model
from experiments.columns.assessed_metadata import CORE_KEY
from experiments.evaluators.batches.threads import LocalRelations
from experiments.evaluators.estimate import Stated, of_model, of_pairs
from experiments.settings import Option, Settings
from experiments.settings.limits import PEOPLE, BleachedDomain
from factormodels.errors import InputError
from factormodels.extraction.asking.table import RELEVANCE
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.pipeline import Stage
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.sentences import sentences_of
from factormodels.extraction.stages.relevance import relevances
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted
from factormodels.selection import (
    CachedRelations,
    Core,
    Informativeness,
    Relevance,
    Subclaim,
    UnjudgedClaimError,
    most_entailments,
    select,
    subclaims_of,
    templates_of,
)

UNJUDGED = "unjudged"
"""Status of an unknown selection."""


CORE_RELATIONS = "core relations"
"""Row of a dry run for the pairs that a language model compares."""


class CoreSettings(Settings):
    """Claims that count.

    Options that score only the claims that Core selects.
    """

    core: bool = False
    """Also score only the claims that count: informative, not repeated, and faithful."""

    faithfulness: bool = True
    """With --core: require that its sentence entails a claim, as in the released code of Core."""

    core_relations: Annotated[str, Option("NAME")] = "lexical"
    """With --core: judge of entailment: lexical, model, nli:FOLDER or recorded:FILE."""

    core_relevance: bool = False
    """With --core: ask the language model once for each claim whether it is relevant to the
    question; irrelevant claims do not count."""

    domain: BleachedDomain = PEOPLE


def core_stage(
    graphs: Sequence[FactGraph],
    settings: CoreSettings,
    model: LanguageModel | None,
    *,
    given: bool = True,
) -> tuple[Stage, dict[str, Any]]:
    """Stage that marks the claims that count without dropping any, and the facts that results
    depend on.

    ``metadata["core"]`` has `kept`, the ids of the claims that count, `status`, `missing`
    (judgments) and the settings. If answers on a claim cannot be read, `kept` is null and the
    status is `UNJUDGED`.

    Args:
        graphs: the responses, to refuse unsuitable ones.
        settings: settings of the selection.
        model: the language model, for relations of that name.
        given: True if the claims come from the input.

    Raises:
        InputError: for an unknown name, or a response that lacks required content.
    """
    bare = [graph for graph in graphs if not graph.response.strip()]
    if settings.faithfulness and bare:
        raise InputError(
            f"--core: the response {bare[0].id!r} has no text to compare "
            "its claims with; add --no-faithfulness"
        )
    if given and any(not atom.text.strip() for graph in graphs for atom in graph.atoms):
        raise InputError("--core: these claims have no texts to compare; leave --core out")
    templates = templates_of(settings.domain)
    if settings.core_relevance and model is None:
        raise InputError("--core-relevance: it asks a language model; add --model")
    relations: RelationModel
    relations, facts = relation_model(settings.core_relations, model, option="--core-relations")
    if settings.core_relations != "model":
        relations = LocalRelations(relations)
    share = 1.0 if settings.faithfulness else None
    asked: dict[str, Any] = {
        "share": share,
        "relations": settings.core_relations,
        "domain": settings.domain,
    }
    if settings.core_relevance:
        asked["relevance"] = True

    def stage(graph: FactGraph) -> FactGraph:
        cached = CachedRelations(relations)
        core = Core(cached, Informativeness(cached, templates), share=share)
        facts: dict[str, Any]
        if settings.core_relevance and model is not None:
            core, *_ = with_relevance(graph, core, model)
        try:
            selection = select(claims_with_sources(graph, share), core)
        except UnjudgedClaimError:
            facts = {"kept": None, "status": UNJUDGED, "missing": cached.missing}
        else:
            facts = {
                "kept": [claim.id for claim in selection.chosen],
                "status": selection.solution.status,
                "missing": selection.missing,
            }
        facts |= asked
        return replace(graph, metadata={**graph.metadata, CORE_KEY: facts})

    return stage, {CORE_KEY: {**asked, **facts}}


def core_calls(settings: CoreSettings) -> list[Stated]:
    """Estimates of the calls of `core_stage`: relevance, and entailments of a language model."""
    calls = [of_model(RELEVANCE)] if settings.core_relevance else []
    if settings.core_relations == "model":
        calls.append(of_pairs(CORE_RELATIONS, most_core_pairs(settings)))
    return calls


def most_core_pairs(settings: CoreSettings) -> Callable[[int], int]:
    """Return the largest number of pairs that Core compares, by the number of claims."""
    n_templates = len(templates_of(settings.domain))
    return partial(most_entailments, n_templates=n_templates, sourced=settings.faithfulness)


def with_relevance(
    graph: FactGraph, core: Core, model: LanguageModel
) -> tuple[Core, set[str], int]:
    """Core with weight 0 for irrelevant claims, their ids, and the number of unjudged claims."""
    judgments = relevances(model, graph, [atom.text for atom in graph.atoms], RELEVANCE)
    irrelevant = {
        name
        for name, is_relevant in zip(graph.atom_ids, judgments, strict=True)
        if is_relevant is False
    }
    weighting = Relevance(lambda claim: claim.id not in irrelevant, core.weighting)
    return replace(core, weighting=weighting), irrelevant, judgments.count(None)


def claims_with_sources(graph: FactGraph, share: float | None) -> list[Subclaim]:
    """The claims of a response, with their sentences if a share of faithful claims is required.

    If the annotators' sentence numbers do not fit the text, the source of a claim is the whole
    response.

    Raises:
        InputError: if a share is required and the response has no text.
    """
    claims = subclaims_of(graph)
    if share is None:
        return claims
    if not graph.response.strip():
        raise InputError(
            f"--share: the response {graph.id!r} has no text to compare its "
            "claims with; leave --share out"
        )
    sentences = sentences_of(graph)
    counted_alike = graph.metadata.get("sentences", len(sentences)) == len(sentences)
    return [
        replace(
            claim,
            source=sentences[atom.sentence - 1]
            if counted_alike and atom.sentence is not None and atom.sentence <= len(sentences)
            else graph.response,
        )
        for claim, atom in zip(claims, graph.atoms, strict=True)
    ]


def kept_claims(graph: FactGraph) -> frozenset[str] | None:
    """Ids of the claims that count; None if nothing was selected."""
    kept = graph.metadata.get(CORE_KEY, {}).get("kept")
    return None if kept is None else frozenset(kept)


def refuse_idle_core(settings: CoreSettings) -> None:
    """Refuse options of Core without --core.

    Raises:
        InputError: if such an option is given.
    """
    for name in CoreSettings.model_fields:
        if name in settings.model_fields_set and not settings.core:
            option = "no-faithfulness" if name == "faithfulness" else name.replace("_", "-")
            raise InputError(f"--{option} applies only with --core; add --core, or leave it out")


def unselected_sentence(graphs: Sequence[FactGraph], relations: str) -> str:
    """Sentence on responses with an unknown selection; "" if there are none."""
    unknown = [graph for graph in graphs if graph.metadata.get(CORE_KEY, {}).get("kept", 0) is None]
    if not unknown:
        return ""
    missing = sum(graph.metadata[CORE_KEY]["missing"] for graph in unknown)
    return (
        f"Core: the selection of {counted(len(unknown), 'response')} is unknown, because "
        f"{counted(missing, 'answer')} of --core-relations {relations} could not be read; they "
        "are left out of the numbers with Core."
    )
