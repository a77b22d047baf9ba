"""A model's judgments of its own labeled claims, from generations to sigma."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from calibration.self_knowledge import declining_clauses
from experiments.asking.failed_calls import failed_throughout, failure_sentences
from experiments.asking.own_documents import DocumentsOf, Scope
from experiments.asking.probe_settings import FirstProbeSettings
from experiments.asking.searchers import (
    RETRIEVERS,
    DocumentSource,
    EvidenceSettings,
    Search,
    build_retriever,
)
from experiments.asking.session import Session
from experiments.asking.settings import AskingSettings, Model, WebSettings
from experiments.evaluators.batches.batch import (
    BatchSettings,
    assess_responses,
    refuse_idle_retry,
)
from experiments.evaluators.display.fastfact_tables import columns_of
from experiments.evaluators.probe_first import is_probed
from experiments.settings import USUAL, Option
from factormodels.claims import Atom
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.asking.self_answers import SELF_JUDGMENT
from factormodels.extraction.asking.stage import Extent
from factormodels.extraction.asking.table import CLAIM_AS_QUESTION, REFUSAL, SELF_SETTINGS
from factormodels.extraction.language_model import Failure
from factormodels.extraction.pipeline import (
    Stage,
    assessor_stage,
    atomizer_stage,
    retrieval_stage,
    run_stages,
    stage_by_response,
)
from factormodels.extraction.probe.table import REFUSALS
from factormodels.extraction.prompts.replaced import WithPrompts, prompts_of
from factormodels.extraction.refusals import judge_refusals
from factormodels.extraction.self_judgment import human_label, judge_own_claims
from factormodels.extraction.sentences import sentences_of
from factormodels.extraction.stages.duplicates import merge_duplicate_atoms
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY
from factormodels.nouns import counted

METADATA_KEY = "self_judgments"
DECLINES_KEY = "declines"
"""Metadata key of a response without claims: True if it declines to answer."""

LABELLER = "factscore"
"""Assessor that labels extracted claims by passages, as FActScore does."""

_JUDGED = ("S", "NS")


class AskSettings(AskingSettings, FirstProbeSettings, WebSettings, BatchSettings):
    """Asking the model.

    Options that ask the model about its claims.
    """

    model: Annotated[Model, USUAL] = None
    """Ask this model for its judgments in the paper's three settings; the data are its responses
    with labeled claims. As litellm spells it, with its key from the environment."""

    extract: Annotated[bool, USUAL] = False
    """First split responses without claims into claims, and label them by passages from --documents
    or --retriever."""

    documents: Annotated[DocumentSource, USUAL] = None

    documents_of: DocumentsOf = None

    scope: Scope = None
    """Documents to search for a claim: all, or own (of its response). The own documents are named
    by --documents-of, which makes own the default, or are under the id of the response in
    --documents.
    """

    retriever: Annotated[str | None, Option("NAME")] = None
    """Search engine instead of documents: wikipedia or google."""


def check_askable(graphs: Sequence[FactGraph], asked: AskSettings, settings: Sequence[str]) -> None:
    """Check the responses and options before any call.

    Raises:
        InputError: if nothing can be asked, or an option does not fit.
    """
    for name in settings:
        if name not in SELF_SETTINGS:
            raise InputError(unknown_name(f"the setting {name!r}", name, SELF_SETTINGS))
    named = (asked.documents, asked.documents_of, asked.retriever)
    searched = any(each is not None for each in named)
    bare = [graph for graph in graphs if not graph.atoms]
    if not asked.extract:
        if searched:
            raise InputError(
                "--documents and --retriever label the claims that --extract makes; add --extract"
            )
        # A response that declines has no claims.
        lacking = [graph for graph in bare if not declining_clauses(graph.response)]
        if lacking:
            raise InputError(
                f"response {lacking[0].id!r} has no claims; add --extract with --documents, or "
                "give labeled claims"
            )
        if not any(_labeled(graph) for graph in graphs):
            raise InputError("no claim has a label, S or NS, so σ is undefined; label the claims")
        return
    if not bare:
        raise InputError("--extract: every response already has claims; leave it out")
    for graph in bare:
        if not graph.response.strip():
            raise InputError(
                f"the response {graph.id!r} has no text to take claims from; give its text"
            )
    if not searched:
        raise InputError(
            "--extract: extracted claims are labeled by passages, and no source is named; give "
            "--documents FOLDER, or --retriever wikipedia"
        )


def probed_stages(
    graphs: Sequence[FactGraph], asked: AskSettings, settings: Sequence[str]
) -> tuple[str, ...]:
    """Stages to probe, whose answers come from a fixed set of labels."""
    if not is_probed(asked.probe, asked.model):
        return ()
    bare = any(not graph.atoms for graph in graphs)
    return (*settings, *([REFUSALS] if bare else []), *([LABELLER] if asked.extract else []))


def planned_calls(graphs: Sequence[FactGraph], settings: Sequence[str]) -> dict[str, int]:
    """Number of calls by stage for labeled claims with an empty cache."""
    bare = [Extent() for graph in graphs if not graph.atoms]
    extents = [Extent(atoms=len(_labeled(graph))) for graph in graphs]
    asked = [SELF_SETTINGS[name] for name in settings]
    pairs = any(setting.needs_pair for setting in asked)
    return {
        **({REFUSAL.name: REFUSAL.number(bare)} if bare else {}),
        **({CLAIM_AS_QUESTION.name: CLAIM_AS_QUESTION.number(extents)} if pairs else {}),
        SELF_JUDGMENT: sum(setting.stage.number(extents) for setting in asked),
    }


def ask_claims(
    graphs: Sequence[FactGraph],
    asked: AskSettings,
    settings: Sequence[str],
    session: Session,
) -> tuple[list[dict[str, Any]], list[str], bool]:
    """Ask a model about its own claims; with an output folder, answers are kept.

    Args:
        graphs: responses of the model.
        asked: settings of asking.
        settings: names of the paper's settings.
        session: session with the model.

    Returns:
        A row per labeled claim, in the columns that `judged_claims` knows; remarks, a sentence
        each; and True if a response has no result or a stage no answer.

    Raises:
        InputError: as `check_askable` and `assess_responses`.
        LimitReachedError: if a limit on calls or costs is reached; answers so far are kept.
    """
    model = session.needed_model("asking takes")
    stages: list[Stage] = [_refusal_stage(model)]
    facts: dict[str, Any] = {}
    if asked.extract:
        name = asked.retriever or "local"
        if name not in RETRIEVERS:
            raise InputError(unknown_name(f"--retriever {name!r}", name, RETRIEVERS))
        no_documents = asked.documents is None and asked.documents_of is None
        if RETRIEVERS[name].reads_documents and no_documents:
            raise InputError(f"--retriever {name} searches documents; name them with --documents")
        retriever, facts, _ = build_retriever(
            name,
            graphs,
            Search(
                EvidenceSettings(
                    documents=asked.documents,
                    documents_of=asked.documents_of,
                    scope=asked.scope,
                    top_k=5,
                ),
                asked,
                session,
                asked.retry_failed,
            ),
        )
        extraction = (
            atomizer_stage(model, 1),
            merge_duplicate_atoms,
            stage_by_response(retrieval_stage, retriever),
            assessor_stage([LABELLER], model),
        )
        stages.append(
            lambda graph: (
                graph
                if graph.atoms or graph.metadata.get(DECLINES_KEY)
                else run_stages(graph, extraction)
            )
        )
    stages.append(_own_claims_stage(model, settings))
    on_disk = not facts or RETRIEVERS[asked.retriever or "local"].reads_documents
    refuse_idle_retry(asked, searches_web=not on_disk)
    depended = {
        "method": "self-knowledge",
        "model": model.name,
        "prompts": prompts_of(model).digests(),
        "settings": list(settings),
        "extract": asked.extract,
        **facts,
    }
    with session.responses(len(graphs)) as report:
        batch = assess_responses(
            graphs, stages, (), depended, asked, calls=session.calls, report=report
        )
    rows, missing = _rows(batch.graphs)
    reason = f": {missing[0]}" if missing else ""
    if not any(name in row for row in rows for name in settings):
        raise InputError(
            f"no claim has both a label and a judgment, so nothing can be measured{reason}"
        )
    remarks = [
        f"{model.name} was asked of {counted(len(rows), 'claim')} in "
        f"{counted(len(settings), 'setting')}; {counted(len(missing), 'judgment')} missing"
        + (f", of which none counts as false: the first, since {missing[0]}." if missing else ".")
    ]
    reasons = Counter(
        reason
        for graph in batch.graphs
        for claim in graph.metadata[METADATA_KEY].values()
        for reason in claim.get("unusable", {}).values()
    )
    remarks += [
        f"{counted(count, 'judgment')} without a probability: {reason}."
        for reason, count in sorted(reasons.items())
    ]
    bare = [graph for graph in batch.graphs if not graph.atoms]
    for declining, what in (
        (True, f"declined to answer, as {model.name} says"),
        (False, "answered"),
    ):
        these = [graph.id for graph in bare if graph.metadata[DECLINES_KEY] is declining]
        if these:
            remarks.append(
                f"Left out: {counted(len(these), 'response')} of {len(graphs):,}, without claims, "
                f"that {what}; the first is {these[0]}."
            )
    if asked.extract:
        remarks.append(
            f"Claims were extracted by {model.name} and labeled by it from passages (the assessor "
            f"{LABELLER}): these labels are a model's verdicts, not people's."
        )
    if batch.failed:
        remarks.append(
            f"{counted(len(batch.failed), 'response')} failed and are not counted: "
            f"{batch.failed[0][0]} ({batch.failed[0][1]})."
        )
    calls = batch.calls()
    remarks += failure_sentences(calls)
    return rows, remarks, bool(batch.failed) or failed_throughout(calls)


def _refusal_stage(model: WithPrompts) -> Stage:
    def stage(graph: FactGraph) -> FactGraph:
        if graph.atoms:
            return graph
        (judged,) = judge_refusals([graph], model)
        # Without an answer from the model, the wording of the response decides.
        declines = (
            bool(declining_clauses(graph.response)) if isinstance(judged, Failure) else judged
        )
        return replace(graph, metadata={**graph.metadata, DECLINES_KEY: declines})

    return stage


def _own_claims_stage(model: WithPrompts, settings: Sequence[str]) -> Stage:
    def stage(graph: FactGraph) -> FactGraph:
        labeled = _labeled(graph)
        # An unlabeled claim would cost calls without any effect.
        asked = replace(graph, atoms=tuple(labeled), contexts=(), relations=())
        judged = judge_own_claims(asked, model, settings=settings)
        facts = {
            claim.claim: {
                "judgments": {name: each.judgment for name, each in claim.judgments.items()},
                "log_probabilities": {
                    name: dict(each.log_probabilities)
                    for name, each in claim.judgments.items()
                    if each.log_probabilities
                },
                "unusable": {
                    name: each.unusable for name, each in claim.judgments.items() if each.unusable
                },
                "missing": dict(claim.missing),
                "pair": None if claim.pair is None else list(claim.pair),
            }
            for claim in judged
        }
        return replace(graph, metadata={**graph.metadata, METADATA_KEY: facts})

    return stage


def _label(graph: FactGraph, atom: Atom) -> str | None:
    """Label S, NS, IR, or None: from a person, or from the assessor of extracted claims."""
    label = human_label(atom)
    if label is not None:
        return label
    verdicts: Mapping[str, Any] = graph.metadata.get(ASSESSORS_KEY, {}).get(LABELLER, {})
    verdict = verdicts.get("verdicts", {}).get(atom.id)
    return None if verdict is None else "S" if verdict["label"] == "true" else "NS"


def _labeled(graph: FactGraph) -> list[Atom]:
    return [atom for atom in graph.atoms if _label(graph, atom) in _JUDGED]


def _rows(graphs: Sequence[FactGraph]) -> tuple[list[dict[str, Any]], list[str]]:
    """A row per labeled claim, and the reasons for missing judgments."""
    rows: list[dict[str, Any]] = []
    missing: list[str] = []
    placed = all(atom.sentence is not None for graph in graphs for atom in graph.atoms)
    for graph in graphs:
        columns = columns_of(graph)
        last = max((atom.sentence or 0 for atom in graph.atoms), default=0)
        recorded = graph.metadata.get("sentences")
        length = recorded if isinstance(recorded, int) else len(sentences_of(graph))
        for atom in graph.atoms:
            label = _label(graph, atom)
            if label is None:
                continue
            answers = graph.metadata[METADATA_KEY].get(atom.id, {"judgments": {}, "missing": {}})
            missing += answers["missing"].values()
            rows.append(
                {
                    "response": graph.id,
                    "claim": atom.id,
                    "text": atom.text,
                    "label": label,
                    **(
                        {"sentence": atom.sentence, "sentences": max(length, last)}
                        if placed
                        else {}
                    ),
                    **({"condition": columns["condition"]} if "condition" in columns else {}),
                    **answers["judgments"],
                }
            )
    return rows, missing
