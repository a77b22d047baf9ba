"""Turn a user's request into the stages, views and settings of an assessment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from calibration.label_bias import smoothed_mean
from experiments.asking.relation_correction import (
    BATCH,
    CorrectedRelations,
    RelationCorrection,
)
from experiments.asking.relation_models import (
    name_of_relations,
    relation_model,
    relation_model_facts,
)
from experiments.asking.searchers import (
    GIVEN,
    RETRIEVERS,
    Search,
    build_retriever,
    refuse_document_options,
    refuse_web_options,
)
from experiments.columns.assessed_metadata import METADATA_KEY as ASSESSMENT_KEY
from experiments.columns.response_table import DOCUMENTS_KEY
from experiments.evaluators.batches.batch import refuse_idle_retry
from experiments.evaluators.batches.threads import LocalRelations
from experiments.evaluators.calls.early_exits import early_exit, of_answers
from experiments.evaluators.calls.few_calls import DECISIVE, few_calls_stage
from experiments.evaluators.core import core_calls, core_stage
from experiments.evaluators.estimate import (
    Stated,
    claim_relations,
    of_assessor,
    of_model,
    searches,
)
from experiments.evaluators.estimate import relations as relations_stated
from experiments.evaluators.response import AssessmentView, assess_graph
from experiments.settings import Option
from factormodels.conventions import GraphConventions, stated
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.asking import table
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.pipeline import (
    Stage,
    assessor_stage,
    atomizer_stage,
    relation_stage,
    retrieval_stage,
    reviser_stage,
    samples_stage,
    sentences_stage,
    stage_by_response,
    summary_stage,
)
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.relation_models.prompted import chosen_method
from factormodels.extraction.retrieval.own import Searched
from factormodels.extraction.stages.addressed import (
    with_addressed,
    with_addressed_verdicts,
    with_corrected_address,
)
from factormodels.extraction.stages.assessors import get_assessor
from factormodels.extraction.stages.duplicates import merge_duplicate_atoms
from factormodels.extraction.stages.relations import (
    EXTRACTED_VARIANTS,
    evidence_distributions,
    with_corrected_relations,
)
from factormodels.extraction.stages.relations import METADATA_KEY as RELATIONS_KEY
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    from experiments.asking.session import Session
    from experiments.evaluators.assess import AssessSettings

Stride = Annotated[
    str,
    Option("W", python="int | str"),
    BeforeValidator(str),
    Field(description="Sentences per call that lists claims, or all."),
]
"""Sentences per call: a number, or "all"."""

ATOMS = ("given", "sentences", "model")


@dataclass(frozen=True)
class AssessmentPlan:
    """Complete plan of an assessment.

    Attributes:
        settings: settings of the assessment.
        stages: stages that build the graphs of responses.
        calls: the estimated calls of each stage, and of each question asked after the stages.
        views: views that turn graphs into posteriors.
        facts: JSON values that results depend on.
        atoms: source of claims, one of `ATOMS`.
        revise: True if claims are rewritten.
        retriever: `GIVEN`, or one of `RETRIEVERS`.
        searcher: retriever, or documents of each response; None for `GIVEN`.
        relations: source of relations, one of `RELATIONS`.
        judge: the relation model.
        model: the language model, or None.
        relation_place: index of the stage that asks for relations.
        relation_stage_of: returns this stage for a relation model and the JSON values that its
            answers also depend on; with the third argument True, the relations of both orders of
            two passages stay separate.
        stride: sentences per call that lists claims; None for all.
        unread: sentences on files of `--documents` that are not searched.
        correction: correction of the label bias of relations, or None.
    """

    settings: AssessSettings
    stages: tuple[Stage, ...]
    calls: tuple[Stated, ...]
    views: tuple[AssessmentView, ...]
    facts: dict[str, Any]
    atoms: str
    revise: bool
    retriever: str
    searcher: Searched | None
    relations: str
    judge: RelationModel
    model: LanguageModel | None
    relation_place: int
    relation_stage_of: Callable[[RelationModel, Mapping[str, Any], bool], Stage]
    stride: int | None
    unread: tuple[str, ...]
    correction: RelationCorrection | None = None

    @property
    def asks_nobody(self) -> bool:
        """True if no model is asked, so that parallel waiting gains nothing."""
        return self.model is None and self.retriever in (GIVEN, "local")

    @property
    def method(self) -> str:
        """Origin of the language model's probabilities of relations."""
        return _chosen_method(self.settings, self.model)

    @property
    def widest(self) -> str:
        """The variant whose relations are requested, which include those of the other variants."""
        return max(self.settings.variant, key=EXTRACTED_VARIANTS.index)

    @property
    def top_k(self) -> int:
        """Passages per query; 0 without a search."""
        return int(self.facts.get("top_k", 0))


def make_plan(
    graphs: Sequence[FactGraph], settings: AssessSettings, session: Session
) -> AssessmentPlan:
    """Plan the stages, views and settings of an assessment.

    Raises:
        InputError: for an unknown name, or options that do not fit the input or each other.
        MissingDependencyError: if a stage needs a library that is not installed.
    """
    backend = settings.algorithm
    for name in settings.variant:
        if name not in EXTRACTED_VARIANTS:
            raise InputError(
                f"the variant {name!r} is unknown; use one of {', '.join(EXTRACTED_VARIANTS)}"
            )
    if len(set(settings.variant)) < len(settings.variant):
        raise InputError(f"--variant {', '.join(settings.variant)}: one is given twice; keep one")
    conventions = settings.declared()
    views = tuple(
        AssessmentView(name, settings.encoding, backend, conventions.graph)
        for name in settings.variant
    )
    atoms = _atoms(graphs, settings, session.model)
    revise = atoms == "model" if settings.revise is None else settings.revise
    retriever = _retriever_name(graphs, settings, atoms)
    on_disk = retriever == GIVEN or RETRIEVERS[retriever].reads_documents
    refuse_idle_retry(settings, searches_web=not on_disk)
    judge = settings.relations or ("lexical" if session.model is None else "model")
    relations = str(name_of_relations(judge))
    stages: list[Stage] = []
    calls: list[Stated] = []
    # Everything that affects a result belongs here: a store continues only with equal facts.
    facts: dict[str, Any] = {
        "atoms": atoms,
        "retriever": retriever,
        "relations": relations,
        "variants": list(settings.variant),
        "encoding": settings.encoding,
        "least": settings.least,
        # Backends are dataclasses, so the repr contains all settings.
        "backend": repr(backend),
    }
    declared = stated(conventions, GraphConventions)
    if declared:
        facts["conventions"] = declared
    if settings.language is not None:
        facts["language"] = settings.language
    # Without a model its settings have no effect, and must not prevent continuing a batch.
    if session.model is not None:
        facts |= {
            "model": session.model.name,
            "stride": settings.stride,
            "revise": revise,
            "queries": settings.queries,
            "method": settings.method,
            "openness": settings.openness,
            "prompts": prompts_of(session.model).digests(),
        }
    stride = stride_of(settings.stride, "--stride")
    if atoms == "sentences":
        stages.append(of_answers(sentences_stage()))
    elif atoms == "model":
        stages.append(of_answers(atomizer_stage(_model(session, "--atoms model"), stride)))
        calls.append(of_model(table.ATOMIZER, "response"))
    if revise:
        stages.append(reviser_stage(_model(session, "--revise")))
        calls.append(of_model(table.REVISER))
    # After revision, which can merge two claims, and before any question about claims.
    stages.append(merge_duplicate_atoms)
    searcher: Searched | None = None
    unread: tuple[str, ...] = ()
    if retriever != GIVEN:
        search = Search(settings, settings, session, settings.retry_failed)
        searcher, chosen_facts, unread = build_retriever(retriever, graphs, search)
        writer = _model(session, "--queries") if settings.queries else None
        if settings.question_contexts and not any(graph.query.strip() for graph in graphs):
            raise InputError("--question-contexts: no response has a question; give --query")
        retrieval = partial(retrieval_stage, model=writer, for_question=settings.question_contexts)
        stages.append(stage_by_response(retrieval, searcher))
        calls += [*([] if writer is None else [of_model(table.QUERIES)]), searches]
        facts |= {**chosen_facts, "question_contexts": settings.question_contexts}
    else:
        for name, chosen in (
            ("--queries", settings.queries),
            ("--question-contexts", settings.question_contexts),
            ("--top-k", settings.top_k is not None),
            ("--scope", settings.scope is not None),
        ):
            if chosen:
                raise InputError(f"{name}: --retriever given searches nothing; leave one out")
        refuse_web_options(GIVEN, settings)
    if settings.summarize:
        log_probabilities = _chosen_method(settings, session.model) == "logprobs"
        summarizing = _model(session, "--summarize")
        stages.append(summary_stage(summarizing, log_probabilities=log_probabilities))
        calls.append(of_model(table.SUMMARIZER, "contexts"))
        # Records of earlier versions use this spelling.
        facts["summarize"] = True
    if settings.samples is not None:
        if not any(graph.query.strip() for graph in graphs):
            raise InputError(
                "--samples needs the question of each response, and no response has one; give "
                "--query, or --question-column for a table"
            )
        stages.append(samples_stage(_model(session, "--samples"), settings.samples))
        calls.append(of_model(table.SAMPLED_ANSWER, "response"))
        facts["samples"] = settings.samples
    elif any(graph.sample_ids for graph in graphs):
        stages.append(samples_stage())
    model, chosen_facts = relation_model(
        judge,
        session.model,
        method=settings.method,
        window=settings.window,
        openness=settings.openness,
        prompt=settings.relation_prompt,
    )
    facts |= chosen_facts
    widest = max(settings.variant, key=EXTRACTED_VARIANTS.index)
    shared = model if relations == "model" else LocalRelations(model)
    relation_facts = chosen_facts
    if relations == "model":
        asked = prompts_of(session.model)
        relation_facts = chosen_facts | relation_model_facts(
            "prompted",
            method=settings.method,
            openness=settings.openness,
            prompt=settings.relation_prompt,
            prompts=asked,
        )
    relation_place = len(stages)
    both = settings.orders == "both"
    if not both:
        facts["orders"] = settings.orders

    decisive = max(settings.decisive, settings.least)

    def relation_stage_of(judging: RelationModel, more: Mapping[str, Any], apart: bool) -> Stage:
        # The view combines both orders into an equivalence with the larger probability of
        # entailment.
        unite = not apart and conventions.equivalence == "smaller"

        def stage_of(asked: RelationModel) -> Stage:
            return relation_stage(
                *(asked, widest, settings.least, {**relation_facts, **more}),
                both_orders=both,
                unite=unite,
            )

        if settings.few_calls:
            related = few_calls_stage(stage_of, judging, decisive)
        else:
            related = stage_of(judging)
        # Recorded relations are for whole passages, and windows would multiply the few calls.
        silent = settings.few_calls or relations.startswith("recorded")

        def stage(graph: FactGraph) -> FactGraph:
            return with_addressed(
                *(related(graph), None if silent else judging, widest),
                least=settings.least,
                unite=unite,
            )

        return stage

    if settings.few_calls:
        facts["decisive"] = decisive
        if settings.relation_correction == BATCH:
            raise InputError(
                "--relation-correction batch needs all answers, and --few-calls stops at the "
                "first relation that decides a claim; leave one out"
            )
    elif settings.decisive != DECISIVE:
        raise InputError("--decisive applies only with --few-calls; add --few-calls")
    stages.append(relation_stage_of(shared, {}, False))
    calls.append(relations_stated)
    if settings.early_exit is not None:
        rule = early_exit(settings.early_exit)
        # A function is identified only by its name.
        facts["early_exit"] = getattr(rule, "__qualname__", repr(rule))
    if settings.assessors:
        if len(set(settings.assessors)) < len(settings.assessors):
            listed = ", ".join(settings.assessors)
            raise InputError(f"--assessor {listed}: one is given twice; keep one")
        judge = _model(session, "--assessor")
        for assessor in map(get_assessor, settings.assessors):
            if assessor.searches and searcher is None:
                raise InputError(
                    f"--assessor {assessor.name} searches by itself; name --retriever wikipedia or "
                    "google, or --retriever local with --documents"
                )
            calls.append(of_assessor(assessor))
        asking = partial(assessor_stage, settings.assessors, judge)
        stages.append(asking() if searcher is None else stage_by_response(asking, searcher))
        if not settings.few_calls:
            stages.append(
                partial(with_addressed_verdicts, assessors=settings.assessors, model=judge)
            )
        facts["assessors"] = list(settings.assessors)
    if settings.core:
        recorded = atoms == "given"
        stage, selected = core_stage(graphs, settings, session.model, given=recorded)
        stages.append(stage)
        calls += core_calls(settings)
        facts |= selected
    if settings.coherence:
        calls.append(claim_relations)
    return AssessmentPlan(
        *(settings, tuple(stages), tuple(calls), views, facts, atoms, revise),
        *(retriever, searcher, relations, model, session.model),
        relation_place,
        relation_stage_of,
        stride,
        unread,
    )


def with_correction(plan: AssessmentPlan, correction: RelationCorrection | None) -> AssessmentPlan:
    """The plan with a correction of its relations' label bias; unchanged without a correction.

    The correction by the run's own mean needs all answers; `corrected_batch` applies it.
    """
    if correction is None:
        return plan
    batch = correction.name == BATCH
    judge: RelationModel = plan.judge
    if not batch:
        judge = CorrectedRelations(judge, correction)
    shared = judge if plan.relations == "model" else LocalRelations(judge)
    stages = list(plan.stages)
    more = {} if batch else {"correction": correction.facts}
    related = plan.relation_stage_of(shared, more, batch)

    def stage(graph: FactGraph) -> FactGraph:
        return correction.marked(related(graph))

    stages[plan.relation_place] = related if correction.lesson is None else stage
    return replace(
        plan,
        stages=tuple(stages),
        facts={**plan.facts, "relation_correction": correction.facts},
        correction=correction,
    )


def corrected_batch(plan: AssessmentPlan, graphs: Sequence[FactGraph]) -> list[FactGraph]:
    """Divide the relations of responses by the mean answer over all of them, and assess the
    responses.

    Args:
        plan: the plan, whose correction uses the run's own mean answer.
        graphs: responses with uncorrected relations.
    """
    shares = [row for graph in graphs for row in evidence_distributions(graph)]
    if not shares:
        correction = RelationCorrection(BATCH)
    else:
        correction = RelationCorrection(BATCH, tuple(smoothed_mean(shares).tolist()))

    def correct(rows: list[tuple[float, float, float]]) -> list[list[float]]:
        return correction.corrected(np.array(rows)).tolist()  # type: ignore[no-any-return]

    finished = []
    for graph in graphs:
        if RELATIONS_KEY in graph.metadata:
            corrected = partial(
                with_corrected_relations,
                correct=correct,
                least=plan.settings.least,
                unite=plan.views[0].conventions.equivalence == "smaller",
            )
            graph = corrected(graph, facts={"correction": correction.facts})
            graph = with_corrected_address(graph, corrected)
        assessment = assess_graph(graph, plan.views)
        finished.append(replace(graph, metadata={**graph.metadata, ASSESSMENT_KEY: assessment}))
    return finished


def _atoms(
    graphs: Sequence[FactGraph], settings: AssessSettings, model: LanguageModel | None
) -> str:
    """Source of claims: the requested source, or the default for the input, checked against it."""
    has_claims = any(graph.atoms for graph in graphs)
    # Source of atoms if the input has none.
    without = "sentences" if model is None else "model"
    name = settings.atoms or ("given" if has_claims else without)
    if name not in ATOMS:
        raise InputError(f"--atoms {name!r} is unknown; use one of {', '.join(ATOMS)}")
    if name == "given" and not has_claims:
        raise InputError(f"--atoms given: the input contains no claims; use --atoms {without}")
    if name != "given":
        for graph in graphs:
            if not graph.response.strip():
                raise InputError(
                    f"--atoms {name}: the response {graph.id!r} has no text to take claims from; "
                    "use --atoms given"
                )
    return name


def _retriever_name(graphs: Sequence[FactGraph], settings: AssessSettings, atoms: str) -> str:
    """Source of evidence: requested, or the default for the input; checked against the input."""
    sampled = settings.samples is not None or any(graph.sample_ids for graph in graphs)
    with_passages = [graph for graph in graphs if len(graph.sample_ids) < len(graph.contexts)]
    passages = bool(with_passages)
    # Without claims in the input, passages belong to each response as a whole.
    of_claims = any(graph.atoms for graph in with_passages)
    name = settings.retriever
    if name is None:
        if settings.documents is not None or settings.documents_of is not None:
            name = "local" if settings.embeddings is None else "dense"
        elif passages:
            # Passages that were found for the input's atoms do not fit other atoms, but can be
            # searched as documents.
            name = "local" if of_claims and atoms != "given" else "given"
        elif sampled:
            name = "given"
        else:
            raise InputError(
                "there is no source of evidence; give --documents FOLDER, --retriever wikipedia "
                "or google, or sample other answers with --samples 5"
            )
    if name not in (GIVEN, *RETRIEVERS):
        subject = f"--retriever {name!r}"
        raise InputError(unknown_name(subject, name, (GIVEN, *RETRIEVERS)))
    if name == "given" and not (passages or sampled):
        raise InputError("--retriever given: the input contains no passages; name another source")
    placed = any(context.retrieved_for for graph in with_passages for context in graph.contexts)
    if name == "given" and "FR1" in settings.variant and passages and not placed:
        raise InputError(
            "--variant FR1: the input does not state the claim that a passage was retrieved "
            "for; use --variant FR2, or --retriever local to search the passages again"
        )
    if name == "given" and of_claims and atoms != "given":
        raise InputError(
            "--retriever given: the passages were retrieved for the claims of the input, and "
            f"--atoms is {atoms}; use --retriever local to search them again"
        )
    reads_documents = name != GIVEN and RETRIEVERS[name].reads_documents
    named = settings.documents is not None or any(DOCUMENTS_KEY in g.metadata for g in graphs)
    if reads_documents and not named and not passages:
        raise InputError(f"--retriever {name}: there are no documents; give --documents FOLDER")
    if not reads_documents:
        refuse_document_options(name, settings)
    return name


def _chosen_method(settings: AssessSettings, model: LanguageModel | None) -> str:
    """Origin of the relations' probabilities, by the parameters that the model supports."""
    return settings.method if model is None else chosen_method(settings.method, model)


def _model(session: Session, option: str) -> LanguageModel:
    return session.needed_model(f"{option} needs")


def stride_of(text: str, option: str) -> int | None:
    """Parse an option for sentences per call; None for all.

    Raises:
        InputError: if the text is neither a number from 1 nor "all".
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(
            f"{option} {text!r} is not a number of sentences; give a number from 1, or all"
        )
    return int(text)
