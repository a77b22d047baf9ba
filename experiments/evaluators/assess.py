"""Assessment of texts: claims, evidence, the probability of every claim, and scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from calibration.scores.measures import entropy_warnings
from experiments.asking.failed_calls import with_failed_calls
from experiments.asking.ledger_table import ledger_table
from experiments.asking.own_documents import own_remark
from experiments.asking.probe_settings import FirstProbeSettings
from experiments.asking.relation_correction import BATCH
from experiments.asking.relation_settings import RelationSettings
from experiments.asking.searchers import EvidenceSettings
from experiments.asking.session import Session, asking
from experiments.asking.settings import AskingSettings, WebSettings
from experiments.columns.cell_names import RECORDED
from experiments.columns.responses import LoadedResponses, ResponseSettings
from experiments.evaluators.addressed import (
    address_sentences,
    address_tables,
    verdicts_without_address,
)
from experiments.evaluators.batches.batch import (
    Batch,
    BatchSettings,
    assess_responses,
)
from experiments.evaluators.calls.costs import CLAIMS_PER_SENTENCE
from experiments.evaluators.calls.early_exits import DECLINED_KEY, EXIT_KEY, early_exit, unless
from experiments.evaluators.calls.few_calls import DECISIVE, few_calls_sentences
from experiments.evaluators.coherence import ClaimCoherenceSettings, coherence
from experiments.evaluators.convention_measures import measure_names
from experiments.evaluators.core import (
    CoreSettings,
    refuse_idle_core,
    unselected_sentence,
)
from experiments.evaluators.display.assess_tables import (
    MEASURES,
    call_table,
    claim_table,
    doubtful_table,
    evidence_table,
    inference_table,
    measure_sentences,
    missing_answers,
    missing_sentences,
    origin_table,
    response_table,
    stage_remarks,
    summary_table,
)
from experiments.evaluators.display.assessed_page import listed_responses, relation_cautions
from experiments.evaluators.estimate import estimate, probe_estimates
from experiments.evaluators.probe_first import (
    FirstProbe,
    is_probed,
    probe_first,
    probe_recorded,
    probed_stages,
    with_probe,
)
from experiments.evaluators.response import Compared, summarize_judged, with_core
from experiments.evaluators.setup import (
    AssessmentPlan,
    Stride,
    corrected_batch,
    make_plan,
    with_correction,
)
from experiments.findings.findings import Findings
from experiments.findings.table import Table, with_note
from experiments.findings.text import some_of
from experiments.settings import USUAL, Option, Settings, Words, front_door
from experiments.settings.backend_settings import AlgorithmSettings
from experiments.settings.conventions import (
    ConventionSettings,
    SourcePriorSettings,
    graph_names,
    note_of,
    own_prior_remarks,
)
from experiments.settings.inputs import relation_remarks
from experiments.settings.limits import DaskAddress, Encoding, Least
from factormodels.claims import LEAST_PROBABILITY
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.extraction.retrieval.own import OwnDocuments
from factormodels.extraction.retrieval.web import WebRetriever
from factormodels.extraction.stages.relations import made_neutral
from factormodels.metadata.learned_from import LearnedFrom, relations_mark
from factormodels.nouns import counted, is_or_are
from factormodels.variants import between_claims, variant
from inference.warm_up import warm_up

if TYPE_CHECKING:
    from experiments.columns.responses import ResponsesIn

MOST_MISSING = 0.05
"""Largest share of missing relations or verdicts in a complete assessment."""


class ClaimSettings(Settings):
    """Claims.

    Options that decide how a text is split into claims.
    """

    atoms: Annotated[str | None, Option("NAME", usual=True)] = None
    """Source of claims: given (as recorded), model or sentences. With model, the language model
    lists the claims; with sentences, each sentence is a claim. A response that declines to answer
    has no claims."""

    stride: Stride = "all"

    revise: bool | None = None
    """Rewrite claims so that they can be understood on their own; by default only claims that the
    language model listed."""


class SampledAnswerSettings(Settings):
    """Evidence.

    Options on sampled answers as evidence.
    """

    samples: Annotated[int | None, Field(ge=1), Option("N")] = None
    """Number of sampled answers to each response's question to use as evidence. The language model
    generates those that the input lacks. Sampled answers in the input are evidence even without
    this option."""


class JudgmentSettings(RelationSettings, AlgorithmSettings):
    """Relations and judgment.

    Options of relations, assessors and inference.
    """

    least: Least = LEAST_PROBABILITY

    orders: Literal["both", "needed"] = "both"
    """Orders in which FR3 asks about two passages: both, or the second only if needed, where it
    could turn an entailment into an equivalence. A dry run counts both."""

    few_calls: bool = False
    """Ask first about the passages found for a claim, then in order of word overlap with the claim,
    and stop at the first relation that decides the claim. At --max-calls or --max-cost the
    assessment ends with the answers so far."""

    decisive: Annotated[float, Field(ge=DECISIVE, le=1), Option("P")] = DECISIVE
    """With --few-calls: smallest probability of an entailment or contradiction that decides a
    claim."""

    early_exit: Annotated[Any, Option("RULE")] = None
    """Rule that skips the relations of a response: declines (it declines to answer), or unlike (no
    passage has half of the words of any claim). In Python also a function of the response, with its
    claims and passages, that returns the reason, or an empty string to continue."""

    variant: Annotated[Words, Option("NAME", usual=True)] = ("FR2",)
    """FR1, FR2 or FR3; repeatable."""

    assessors: Annotated[Words, Option("NAME", "assessor")] = ()
    """Also let the language model judge the claims with a prompt: factscore, factverify, veriscore,
    evidence-and-knowledge, own-knowledge or fastfact; or safe, which rewrites claims to stand alone
    and searches in steps; repeatable."""

    encoding: Annotated[Encoding, USUAL] = DEFAULT_ENCODING

    dask: DaskAddress = None


class AssessSettings(
    ResponseSettings,
    AskingSettings,
    FirstProbeSettings,
    ClaimSettings,
    EvidenceSettings,
    WebSettings,
    SampledAnswerSettings,
    JudgmentSettings,
    CoreSettings,
    ClaimCoherenceSettings,
    BatchSettings,
    ConventionSettings,
    SourcePriorSettings,
):
    """Assessment.

    Every option of `assess`.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variants and assessors that have verdicts."""
        return (*self.variant, *self.assessors)

    def resolved(self) -> AssessSettings:
        """These settings, with the encoding and the least probability of the conventions."""
        conventions = self.declared()
        kept = conventions.weak_relations == "kept" and "least" not in self.model_fields_set
        implied = {"encoding": conventions.encoding, "least": 0.0 if kept else self.least}
        return self.model_copy(update=implied)


@front_door
def assess(responses: ResponsesIn | None = None, *, settings: AssessSettings) -> Findings:
    """Assess responses: find claims and evidence, and compute probabilities.

    Splits a response into claims, finds passages, asks a relation model which passages support or
    contradict which claims, infers the probability of every claim, and shows the effect of each
    passage. With --out you can interrupt a batch at any time: the same command continues where it
    stopped. Every other command can read its graphs.jsonl.

    Without a language model, claims are sentences and relations are lexical: a baseline that
    compares words and numbers, works offline, and is often wrong.

    Examples::

        assess("demonstration", retriever="local")
        assess("answer.txt", query="Who was she?", documents="notes")
        assess("answers.jsonl", documents="notes", out="assessed")
        assess("answers.csv", text_column="answer", question_column="prompt",
            documents="notes", out="assessed")
        assess("answers.jsonl", model="openai/NAME", retriever="wikipedia", dry_run=True)
        assess("answers.jsonl", model="openai/NAME", retriever="wikipedia", out="assessed")
        assess("demonstration", variant=["FR1", "FR2", "FR3"])
        assess("demonstration", model="openai/NAME", assessors="factscore")
        assess("demonstration", retriever="local", core=True, domain="things",
            faithfulness=False)
        assess("demonstration", coherence=True, claim_window=8)
        assess("demonstration", few_calls=True)
        assess("answers.jsonl", model="openai/NAME", samples=5)
        assess("answers.jsonl", model="openai/NAME", retriever="wikipedia", few_calls=True,
            max_calls=200)

    Args:
        responses: Responses: a text, a table, a folder, fact graphs or a dataset. A table
            has a row per response (CSV, TSV, JSON, JSON Lines, Parquet, Arrow); a folder contains
            texts or a saved dataset. Use - for standard input. In Python also table rows, a data
            frame or fact graphs; pass a text as ``text``.
        settings: options; in Python, pass the fields as keywords instead, such as ``max_cost=2.0``.
            `documents` may then be texts, or texts by title, `model` an object with the methods of
            `LanguageModel`, or settings of litellm, `relations` an object with `judge(pairs)`, and
            `backend` an instance.

    Returns:
        Tables, described in `assess_tables`: `responses`, `claims`, `evidence`, `summary` and
            `cost`; for several responses also `doubtful`, with `coherence` also `coherence` and
            `conflicts`; for a dry run `calls` and `inference`.

    Raises:
        InputError: for an unknown name, or options that do not fit the input or each other.
        LimitReachedError: if a limit on calls or costs is reached; answers so far are kept. With
            `few_calls` the findings cover the answers so far instead, and `limit_reached` is True.
        MissingDependencyError: if a library that is needed is not installed.
    """
    refuse_idle_core(settings)
    settings = settings.resolved()
    loaded = settings.load(responses)
    takes_claims = settings.atoms not in (None, "given")
    if takes_claims and any(graph.response.strip() for graph in loaded.graphs):
        loaded = loaded.with_texts()
    graphs = loaded.graphs
    with asking(settings) as session, ExitStack() as places:
        plan = make_plan(graphs, settings, session)
        probed = FirstProbe()
        if not settings.dry_run:
            probed = probe_first(session, settings, plan.relations)
            plan = with_correction(plan, probed.correction)
            if probed.cautions:
                mark = partial(probe_recorded, cautions=probed.cautions)
                plan = replace(plan, stages=(*plan.stages, mark))
        if settings.early_exit is not None:
            plan = with_early_exit(plan)
        if settings.dry_run:
            return _bound(loaded, plan)
        local = plan.asks_nobody
        elsewhere = None
        if settings.dask is not None:
            from experiments.evaluators.batches.on_cluster import on_cluster

            elsewhere = places.enter_context(
                on_cluster(settings.dask, plan.views[0].backend, plan.stages, local=local)
            )
        together = plan.correction is not None and plan.correction.name == BATCH
        batch = assess_responses(
            graphs,
            plan.stages,
            # Results that depend on all answers are computed at the end.
            () if together else plan.views,
            plan.facts,
            settings,
            calls=None if local else session.calls,
            prepare=partial(warm_up, plan.views[0].backend),
            report=places.enter_context(session.responses(len(graphs))),
            elsewhere=elsewhere,
            until_limit=settings.few_calls,
            finish=partial(corrected_batch, plan) if together else None,
        )
        agreeing = None
        if settings.coherence and any(graph.atoms for graph in batch.graphs):
            # Recorded relations are used unchanged: no pairs are chosen.
            has_relations = any(between_claims(graph) for graph in batch.graphs)
            agreeing = coherence(
                [graph for graph in batch.graphs if graph.atoms],
                model=session.model,
                prompts=settings.prompts,
                window=None if has_relations else settings.claim_window,
                encoding=settings.encoding,
            )
    return _findings(loaded, batch, plan, settings, session, agreeing, probed)


def with_early_exit(plan: AssessmentPlan) -> AssessmentPlan:
    """The plan, without relation calls for responses that the early-exit rule ends."""
    stages = list(plan.stages)
    at = plan.relation_place
    rule, least = early_exit(plan.settings.early_exit), float(plan.facts["least"])
    stages[at] = unless(rule, stages[at], plan.widest, least)
    return replace(plan, stages=tuple(stages))


def _findings(
    loaded: LoadedResponses,
    batch: Batch,
    plan: AssessmentPlan,
    settings: AssessSettings,
    session: Session,
    agreeing: Findings | None,
    probed: FirstProbe,
) -> Findings:
    conventions = settings.declared()
    with entropy_warnings() as misordered:
        compared = summarize_judged(batch.responses, settings.names, conventions)
    alone = len(loaded.graphs) == 1
    how = {view.variant: (view.encoding, view.backend.name) for view in plan.views}
    # Do not repeat the remarks for single responses and for claims that count.
    with entropy_warnings():
        tables = {
            "claims": claim_table(batch.graphs),
            "evidence": evidence_table(batch.graphs, deciding=alone),
            **({} if alone else {"doubtful": doubtful_table(batch.graphs)}),
            "responses": response_table(batch, settings.names, conventions),
            "summary": summary_table(compared, _with_core(batch, compared, settings), how),
            "origins": origin_table(batch.responses),
            "cost": ledger_table(session.ledger, len(loaded.graphs)),
        }
    of_graphs = graph_names(settings.variant)
    shown = [column.name for column in tables["summary"].columns]
    of_measures = measure_names(
        [name for name in shown if name in MEASURES],
        irrelevant=any(response.irrelevant for response in batch.responses),
        unlabeled=any(None in response.labels for response in batch.responses),
    )
    for name in ("claims", "doubtful", "responses", "summary"):
        if name in tables:
            names = (*of_graphs, *(of_measures if name == "summary" else ()))
            tables[name] = with_note(tables[name], note_of(conventions, names))
    without_address = verdicts_without_address(batch.graphs, plan.views)
    tables |= address_tables(batch.graphs, without_address)
    graphs = batch.graphs
    if agreeing is not None:
        sources = {"coherence": "responses", "conflicts": "conflicts"}
        tables |= {
            name: agreeing.tables[of] for name, of in sources.items() if of in agreeing.tables
        }
        related = {graph.id: graph for graph in agreeing.graphs}
        graphs = tuple(related.get(graph.id, graph) for graph in graphs)
    unselected = unselected_sentence(batch.graphs, settings.core_relations)
    lost = missing_answers(batch.responses).values()
    incomplete = any(missing > MOST_MISSING * asked for missing, asked in lost)
    unshown: tuple[str, ...] = ("responses",) if alone else ("claims", "evidence")
    findings = Findings(
        source=loaded.source,
        sentences=(
            *relation_cautions(batch.graphs),
            *_of_given_relations(loaded, plan),
            *loaded.remarks,
            *(line for graph in batch.graphs[: int(alone)] for line in stage_remarks(graph)),
            *_of_measures(compared, batch, settings, len(misordered)),
            *_of_asking(batch, plan, settings),
            *_of_correction(batch, plan),
            *_of_relations(batch, plan),
            *_of_few_calls(batch, plan),
            *_of_exits(batch),
            *address_sentences(batch.graphs, without_address),
            *_of_missing(batch, plan, incomplete),
            *filter(None, [unselected]),
            *(() if agreeing is None else agreeing.sentences),
        ),
        tables=tables,
        unshown=(*unshown, *(name for name, table in tables.items() if not len(table.frame))),
        settings=_chosen(plan, settings),
        limit_reached=batch.limit_reached,
        incomplete=incomplete
        or batch.limit_reached
        or bool(unselected)
        or bool(batch.failed)
        or any(response.errors for response in batch.responses)
        or (agreeing is not None and agreeing.incomplete),
        graphs=graphs,
        listed=partial(listed_responses, graphs, batch.failed) if graphs or batch.failed else None,
    )
    return with_probe(with_failed_calls(findings, batch.calls()), probed)


def _chosen(plan: AssessmentPlan, settings: AssessSettings) -> dict[str, Any]:
    """Choices for settings that were left open."""
    chosen = {
        "atoms": plan.atoms,
        "revise": plan.revise,
        "retriever": plan.retriever,
        "relations": plan.relations,
        "top_k": plan.top_k or None,
    }
    return {name: value for name, value in chosen.items() if getattr(settings, name) is None}


def _with_core(batch: Batch, compared: Compared, settings: AssessSettings) -> Compared | None:
    """Measures of only the claims that count; None without Core.

    K is computed from all claims, unless it is a share of each response's claims.
    """
    kept = with_core(batch.responses)
    if compared.k is None or not kept:
        return None
    conventions = settings.declared()
    k = None if math.isnan(compared.k) else compared.k
    return summarize_judged(kept, settings.names, conventions, k)


def _of_measures(
    compared: Compared, batch: Batch, settings: AssessSettings, misordered: int
) -> Iterator[str]:
    """Remarks on the measures."""
    yield from measure_sentences(compared, settings.declared())
    if misordered:
        rows = sum(summary is not None for summary in compared.summaries.values())
        yield (
            f"E does not rank by truth in {misordered} of {rows} rows, because E decreases for "
            "atoms with P below 1/e; use mean_surprisal or expected_precision of the table "
            "`summary`."
        )
    if settings.core:
        kept = with_core(batch.responses)
        every = [response for response in batch.responses if response.counts is not None]
        share = compared.k is not None and math.isnan(compared.k)
        yield (
            f"Core: {sum(sum(response.counts or ()) for response in kept):,} of "
            f"{sum(len(response.labels) for response in every):,} claims count; "
            f"{counted(len(every) - len(kept), 'response')} keep no claim and are left out of "
            "the rows with Core, whose K is computed from "
            f"{'the claims that count' if share else 'all claims'}."
        )


def _of_asking(batch: Batch, plan: AssessmentPlan, settings: AssessSettings) -> Iterator[str]:
    """Remarks on the calls: number, models, and calls of earlier runs."""
    if plan.relations == "model" and plan.model is not None:
        # The origin of probabilities is known only now: a server may refuse log-probabilities.
        origins: Counter[str] = sum(
            (Counter(response.origins) for response in batch.responses), Counter()
        )
        origin_counts = ", ".join(f"{count:,} {name}" for name, count in sorted(origins.items()))
        yield f"{plan.model.name}: probabilities of relations: {origin_counts or 'none'}."
    if isinstance(plan.searcher, WebRetriever):
        store = plan.searcher.store
        paid = "" if settings.price_search is None else f" ({store.paid:.4f} US dollars)"
        yield (
            f"Asked the web for {counted(store.asked['searches'], 'search', 'searches')}{paid}, "
            f"{counted(store.asked['pages'], 'page')}."
        )
    yield from (f"{remark}." for remark in plan.unread)
    if isinstance(plan.searcher, OwnDocuments) and (silent := own_remark(plan.searcher.documents)):
        yield silent
    if batch.resumed:
        were = "was" if batch.resumed == 1 else "were"
        paid = "" if plan.model is None else "; the table `cost` has only the calls of this run"
        yield f"{counted(batch.resumed, 'response')} {were} finished by an earlier run{paid}."


def _of_correction(batch: Batch, plan: AssessmentPlan) -> Iterator[str]:
    """Remarks on a correction learned from labels."""
    if plan.correction is None:
        return
    yield from plan.correction.remarks(plan.judge.name)
    names = [
        graph.id for graph in batch.graphs if relations_mark(graph) is LearnedFrom.THIS_RESPONSE
    ]
    if names:
        yield (
            f"Labels of {counted(len(names), 'response')} here trained the correction "
            f"{plan.correction.name} ({some_of(names)}): they cannot score or correct these "
            "posteriors."
        )


def _of_given_relations(loaded: LoadedResponses, plan: AssessmentPlan) -> Iterator[str]:
    """A remark on relations of passages that the responses already have, which are judged anew."""
    given = sum(
        len(graph.column("relations", "probability")) - len(between_claims(graph))
        for graph in loaded.graphs
    )
    if given and plan.relations.partition(":")[0] != RECORDED:
        yield (
            f"{counted(given, 'relation')} of {loaded.source} {is_or_are(given)} not used: "
            f"`assess` judges passages anew, here by {plan.relations!r}. `factormodels infer` "
            "computes posteriors from the relations of the data."
        )


def _of_relations(batch: Batch, plan: AssessmentPlan) -> Iterator[str]:
    """Remarks on informative relations that are not used."""
    conventions = plan.settings.declared()
    for encoding in dict.fromkeys(view.encoding for view in plan.views):
        seen = (variant(graph, plan.widest, conventions) for graph in batch.graphs)
        yield from relation_remarks(seen, encoding)
    yield from own_prior_remarks(batch.graphs, conventions)
    # Without a distribution, the relation retains no information from the answer.
    lost = sum(map(made_neutral, batch.graphs))
    if lost:
        yield (
            f"{counted(lost, 'answer')} with probability below {plan.settings.least:g} "
            f"{is_or_are(lost)} read as neutral, because they have no distribution."
        )


def _of_few_calls(batch: Batch, plan: AssessmentPlan) -> Iterator[str]:
    """Yield remarks on calls saved by `few_calls`."""
    if plan.settings.few_calls:
        yield from few_calls_sentences(batch.graphs, plan.facts["decisive"])


def _of_exits(batch: Batch) -> Iterator[str]:
    """Remarks on responses that decline, and on responses without relation calls, by reason."""
    if declined := sum(DECLINED_KEY in graph.metadata for graph in batch.graphs):
        yield (
            f"{counted(declined, 'response')} {'declines' if declined == 1 else 'decline'} to "
            "answer: without claims, and left out of every measure."
        )
    reasons = Counter(
        str(graph.metadata[EXIT_KEY]) for graph in batch.graphs if EXIT_KEY in graph.metadata
    )
    for reason, count in reasons.most_common():
        yield (
            f"{counted(count, 'response')}: relations were not asked for ({reason}); their "
            "claims have no answer."
        )


def _of_missing(batch: Batch, plan: AssessmentPlan, incomplete: bool) -> Iterator[str]:
    """Remarks on missing answers, on unrequested approximate answers, and on failures."""
    yield from missing_sentences(batch.responses, batch.graphs)
    if incomplete:
        local = plan.asks_nobody
        again = "" if local else "; add --retry-failed to ask for missing answers again"
        yield (
            f"More than {MOST_MISSING:.0%} of the requested answers are missing: the assessment is "
            f"incomplete{again}."
        )
    for view in plan.views:
        answered = [
            (response, response.answered_by.get(view.variant)) for response in batch.responses
        ]
        others = [(response, by) for response, by in answered if by not in (None, "exact")]
        if view.backend.name == "auto" and others:
            yield (
                f"{view.variant}: {counted(len(others), 'response')} of {len(answered):,} would "
                "take long to solve exactly: their log Z is bounded, and their posteriors are "
                f"estimates; the first is {others[0][0].response}, by {others[0][1]}."
            )
        without = [response for response in batch.responses if view.variant in response.errors]
        if without:
            yield (
                f"{view.variant}: no posterior of {counted(len(without), 'response')}, the first "
                f"{without[0].response}: {without[0].errors[view.variant]}"
            )
    yield from batch.failures()


def _bound(loaded: LoadedResponses, plan: AssessmentPlan) -> Findings:
    """Estimate of calls and of the cost of exact inference; a dry run sends nothing."""
    rows = estimate(loaded.graphs, plan)
    if is_probed(plan.settings.probe, plan.settings.model):
        rows = [*probe_estimates(probed_stages(plan.settings, plan.relations), plan), *rows]
    tables: dict[str, Table] = {"calls": call_table(rows)}
    if any(row.inference for row in rows):
        tables["inference"] = inference_table(rows, plan.views[0].backend)
    thinks = (
        "Thoughts: upper bound on reasoning tokens before the answers; models usually use a "
        "small part of it."
    )
    return Findings(
        source=loaded.source,
        sentences=(
            *loaded.remarks,
            "Nothing was sent.",
            *([thinks] if any(row.thoughts for row in rows) else []),
            "Tokens: characters / 4. Cached answers are not subtracted. If claims are not yet "
            f"known, the estimate assumes {CLAIMS_PER_SENTENCE:g} per sentence, each with "
            "passages of its own as far as the documents allow. Verdicts of assessors count "
            "with their maximum length.",
        ),
        tables=tables,
    )
