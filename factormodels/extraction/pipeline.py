"""Pipeline of stages: from a response to its atoms, contexts and relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from factormodels.claims import LEAST_PROBABILITY, Atom
from factormodels.errors import FactormodelsError
from factormodels.extraction.asking import table
from factormodels.extraction.asking.stage import ModelStage
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.own import OwnDocuments, Searched
from factormodels.extraction.sentences import stated_language
from factormodels.extraction.stages import atomizer, queries, reviser, summarizer
from factormodels.extraction.stages.assessors import assess, assessor_facts, get_assessor
from factormodels.extraction.stages.duplicates import METADATA_KEY as DUPLICATES_KEY
from factormodels.extraction.stages.relations import METADATA_KEY as RELATIONS_KEY
from factormodels.extraction.stages.relations import with_relations
from factormodels.extraction.stages.retrieval import with_contexts
from factormodels.extraction.stages.samples import ask_samples
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY
from factormodels.metadata.stage_keys import (
    ATOMS_KEY,
    QUERIES_KEY,
    REVISION_KEY,
    SAMPLES_KEY,
    SUMMARIES_KEY,
)
from factormodels.samples import is_sample, with_samples
from factormodels.variants import merge_duplicate_contexts

Stage = Callable[[FactGraph], FactGraph]
"""Step of the pipeline: returns a response's graph with additions."""


class StageError(FactormodelsError):
    """A stage cannot process a response; the message names the stage and the reason."""


def run_stages(graph: FactGraph, stages: Sequence[Stage]) -> FactGraph:
    """Return the result of applying the stages to a response in order.

    Raises:
        StageError: if a stage cannot process it.
    """
    for stage in stages:
        graph = stage(graph)
    return graph


def sentences_stage() -> Stage:
    """Return the stage that makes every sentence of the response an atom."""

    def stage(graph: FactGraph) -> FactGraph:
        atoms = atomizer.sentence_atoms(graph.response, stated_language(graph))
        if not atoms:
            raise StageError("there is no sentence in the response")
        return _with_atoms(graph, atoms, {"method": "sentences", "failures": []})

    return stage


def atomizer_stage(model: LanguageModel, stride: int | None = None) -> Stage:
    """Return the stage in which a language model lists the claims of a response.

    The stage raises a StageError if no chunk was answered, but not for a response without claims.
    """

    def stage(graph: FactGraph) -> FactGraph:
        atomized = atomizer.atomize(
            graph.response,
            model,
            query=graph.query,
            stride=stride,
            language=stated_language(graph),
        )
        if len(atomized.failures) == atomized.chunks:
            reason = atomized.failures[0][1] if atomized.failures else "there is no sentence in it"
            raise StageError(f"no claims were extracted: {reason}")
        facts = {
            **_asked(model, table.ATOMIZER, atomized.calls, atomized.failures),
            "method": "model",
            "stride": "all" if stride is None else stride,
        }
        return _with_atoms(graph, atomized.atoms, facts)

    return stage


def reviser_stage(model: LanguageModel) -> Stage:
    """Return the stage in which a language model makes every atom self-contained."""

    def stage(graph: FactGraph) -> FactGraph:
        revised = reviser.revise(graph.atoms, graph.response, model, query=graph.query)
        facts = {
            **_asked(model, table.REVISER, len(graph.atoms), revised.failures),
            "changed": revised.changed,
        }
        return replace(graph, atoms=revised.atoms, metadata={**graph.metadata, REVISION_KEY: facts})

    return stage


def retrieval_stage(
    retriever: Retriever, model: LanguageModel | None = None, *, for_question: bool = False
) -> Stage:
    """Return the stage that searches for every atom.

    Args:
        retriever: the retriever.
        model: the language model that writes the queries; None uses the atom and its topic.
        for_question: whether to also search for the question of the response.
    """

    def stage(graph: FactGraph) -> FactGraph:
        question = graph.query if for_question else ""
        if model is None:
            texts = tuple(queries.build_query(atom, graph.topic) for atom in graph.atoms)
            return with_contexts(graph, retriever, texts, question=question)
        asked = queries.ask_queries(graph.atoms, model, topic=graph.topic)
        facts = _asked(model, table.QUERIES, len(graph.atoms), asked.failures)
        searched = with_contexts(graph, retriever, asked.texts, question=question)
        return replace(searched, metadata={**searched.metadata, QUERIES_KEY: facts})

    return stage


def stage_by_response(stage_of: Callable[[Retriever], Stage], searched: Searched) -> Stage:
    """Return a stage that applies the stage of its own retriever to each response.

    Args:
        stage_of: makes the stage of a retriever.
        searched: a retriever for all responses, or documents of each.
    """
    if not isinstance(searched, OwnDocuments):
        return stage_of(searched)
    documents = searched
    return lambda graph: stage_of(documents.of(graph))(graph)


def summary_stage(model: LanguageModel, *, log_probabilities: bool = True) -> Stage:
    """Return the stage in which a language model reduces every context to the parts about its
    claims.

    Args:
        model: the language model.
        log_probabilities: see `factormodels.extraction.stages.summarizer.summarize_contexts`.
    """

    def stage(graph: FactGraph) -> FactGraph:
        summarized = summarizer.summarize_contexts(
            merge_duplicate_contexts(graph), model, log_probabilities=log_probabilities
        )
        stage_facts = summarized.metadata[SUMMARIES_KEY]
        facts = {
            **_asked(model, table.SUMMARIZER, stage_facts["calls"], stage_facts["failures"]),
            **stage_facts,
        }
        return replace(summarized, metadata={**summarized.metadata, SUMMARIES_KEY: facts})

    return stage


def samples_stage(model: LanguageModel | None = None, wanted: int = 0) -> Stage:
    """Return the stage that relates sampled answers to the claims, and requests missing ones.

    Args:
        model: the language model that answers again; None requests no answers.
        wanted: number of sampled answers of each response.
    """

    def stage(graph: FactGraph) -> FactGraph:
        if model is None or not wanted:
            return with_samples(graph)
        asked = ask_samples(graph, model, wanted)
        facts = _asked(model, table.SAMPLED_ANSWER, asked.calls, asked.failures)
        sampled = with_samples(graph, asked.texts)
        return replace(sampled, metadata={**sampled.metadata, SAMPLES_KEY: facts})

    return stage


def relation_stage(
    model: RelationModel,
    variant: str,
    least: float = LEAST_PROBABILITY,
    facts: Mapping[str, Any] | None = None,
    *,
    both_orders: bool = True,
    unite: bool = True,
) -> Stage:
    """Return the stage that merges equal contexts and predicts the relations of a variant.

    Args:
        model: the relation model.
        variant: "FR1", "FR2" or "FR3".
        least: see `factormodels.extraction.stages.relations.with_relations`.
        facts: further facts that the predictions depend on, such as prompts, for
            `metadata["relations"]`.
        both_orders: as in `with_relations`.
        unite: as in `with_relations`.
    """

    def stage(graph: FactGraph) -> FactGraph:
        related = with_relations(
            merge_duplicate_contexts(graph),
            *(model, variant),
            least=least,
            both_orders=both_orders,
            unite=unite,
        )
        relation_facts = {**related.metadata[RELATIONS_KEY], **(facts or {})}
        return replace(related, metadata={**related.metadata, RELATIONS_KEY: relation_facts})

    return stage


def assessor_stage(
    names: Sequence[str], model: LanguageModel, retriever: Retriever | None = None
) -> Stage:
    """Return the stage in which prompt-based assessors judge every atom, searching ones last.

    `metadata["assessors"]` holds for each assessor its prompt, `verdicts` by id of atom (`label`,
    its `probability`, and `p` of being true, None if the label excludes the atom from the score)
    and `missing`, as [atom, reason]; for an assessor with several steps also `prompts` and
    `claims`, as in `assessor_facts`.

    Args:
        names: names of assessors.
        model: the language model that judges.
        retriever: searched by the assessors that search; the others use the contexts.

    Raises:
        InputError: for an unknown assessor, or one that searches without a retriever.
    """
    assessors = sorted(map(get_assessor, names), key=lambda assessor: assessor.searches > 0)

    def stage(graph: FactGraph) -> FactGraph:
        facts = {}
        for assessor in assessors:
            facts[assessor.name] = assessor_facts(
                assessor, model, assess(graph, assessor, model, retriever)
            )
        recorded = graph.metadata.get(ASSESSORS_KEY, {})
        return replace(graph, metadata={**graph.metadata, ASSESSORS_KEY: {**recorded, **facts}})

    return stage


def _with_atoms(graph: FactGraph, atoms: tuple[Atom, ...], facts: dict[str, Any]) -> FactGraph:
    metadata = {**graph.metadata, ATOMS_KEY: facts}
    for key in (DUPLICATES_KEY, ASSESSORS_KEY):
        metadata.pop(key, None)  # of the replaced atoms
    # Passages belong to the former claims. Without claims, they belong to the response as a whole,
    # and samples always do.
    contexts = tuple(
        replace(context, retrieved_for=())
        for context in graph.contexts
        if is_sample(context) or not graph.atoms
    )
    return replace(graph, atoms=atoms, contexts=contexts, relations=(), metadata=metadata)


def _asked(
    model: LanguageModel,
    stage: ModelStage[Any],
    calls: int,
    failures: Iterable[tuple[Any, str]],
) -> dict[str, Any]:
    return {
        "model": model.name,
        "prompt": prompts_of(model).identity_of(stage.prompt),
        "calls": calls,
        "failures": [list(failure) for failure in failures],
    }
