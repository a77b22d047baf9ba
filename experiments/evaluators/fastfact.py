"""FaStfact on a user's responses: durable runs, costs by stage, scores against human counts.

Source: FaStfact, sections 4 and 5.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from calibration.intervals import IntervalSettings
from experiments.asking.failed_calls import with_failed_calls
from experiments.asking.own_documents import DocumentsOf, Scope
from experiments.asking.probe_settings import FirstProbeSettings
from experiments.asking.searchers import (
    RETRIEVERS,
    Built,
    DocumentSource,
    EvidenceSettings,
    Search,
    read_documents_of,
    refuse_document_options,
    refuse_web_options,
    web_retriever,
)
from experiments.asking.session import Session, asking
from experiments.asking.settings import AskingSettings, WebSettings
from experiments.columns.responses import LoadedResponses, ResponseSettings
from experiments.evaluators.annotated import aligned, counts_figure
from experiments.evaluators.annotation_counts import (
    counts_sentences,
    counts_tables,
    read_counts,
)
from experiments.evaluators.batches.batch import (
    Batch,
    BatchSettings,
    assess_responses,
    refuse_idle_retry,
)
from experiments.evaluators.calls.costs import CLAIMS_PER_SENTENCE, Load
from experiments.evaluators.calls.early_exits import declines
from experiments.evaluators.core import (
    CORE_RELATIONS,
    CoreSettings,
    core_stage,
    most_core_pairs,
    refuse_idle_core,
    unselected_sentence,
)
from experiments.evaluators.display.fastfact_tables import (
    audit_table,
    claim_table,
    columns_of,
    cost_table,
    curve_table,
    failure_table,
    guaranteed_threshold,
    leaderboard,
    loads_of,
    method_table,
    response_table,
    shown_table,
)
from experiments.evaluators.probe_first import (
    first_probe,
    is_probed,
    planned_probe,
    with_probe,
)
from experiments.evaluators.setup import Stride, stride_of
from experiments.findings.findings import Findings
from experiments.findings.table import Table, data_frame
from experiments.findings.text import number, some_of
from experiments.settings import USUAL, ColumnNames, Option, front_door, option_of
from experiments.settings.limits import DrawnSettings, Gamma, Replicates
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.asking.stage import Extent
from factormodels.extraction.asking.table import (
    ASSESSORS,
    CLAIM_FAILURES,
    MISSING_CLAIMS,
    PRE_VERIFICATION,
    RELEVANCE,
)
from factormodels.extraction.claim_failures import claim_failures_stage
from factormodels.extraction.fastfact import FASTFACT_KEY, FastFactSettings, fastfact_stage
from factormodels.extraction.pipeline import Stage, stage_by_response
from factormodels.extraction.probe.table import (
    FAILURES_OF_CLAIMS,
    MISSING_FROM_CLAIMS,
    PRE_VERIFICATIONS,
    PRE_VERIFICATIONS_IN_RESPONSE,
    RELATIONS,
    RELEVANCES,
)
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.chunks import ChunkSettings
from factormodels.extraction.sentences import sentences_of
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted

if TYPE_CHECKING:
    from experiments.columns.responses import ResponsesIn

VERDICTS = ASSESSORS["fastfact"]
"""Verifier of a claim from the retrieved pieces."""

PAGE_RETRIEVERS = tuple(name for name, entry in RETRIEVERS.items() if entry.by_pages)
"""Names of retrievers that find whole pages; only the best pieces of a page are read."""

DEFAULT_K_PRIME = "k_prime"
"""Default column of K'."""


class FastFactRun(
    DrawnSettings,
    ResponseSettings,
    AskingSettings,
    FirstProbeSettings,
    WebSettings,
    CoreSettings,
    BatchSettings,
):
    """FaStfact.

    Options of `fastfact`.
    """

    stride: Annotated[Stride, USUAL] = "all"

    context: Literal["chunk", "response"] = "chunk"
    """Context of an extraction call: only its chunk of sentences, or also the whole response."""

    theta: Annotated[float, Field(ge=0, le=1), USUAL] = 0.995
    """Confidence above which a claim is skipped."""

    audit: Annotated[float, Field(ge=0, le=1), Option("SHARE")] = 0.0
    """Share of skipped claims to verify for an audit."""

    target_error: Annotated[float | None, Field(gt=0, lt=1)] = None
    """With --audit 1: find the theta at which at most this share of the skipped claims is wrong."""

    failure_types: bool = False
    """Also judge which extracted claims are unverifiable, redundant or missing."""

    retriever: Annotated[str | None, Option("NAME", usual=True)] = None
    """Source of evidence: local, wikipedia or google. local searches --documents or the input's own
    passages; google needs a key in SERPER_API_KEY."""

    documents: Annotated[DocumentSource, USUAL] = None

    documents_of: DocumentsOf = None

    scope: Scope = None

    pages: Annotated[int, Field(ge=1)] = 5
    """Pages read per claim."""

    pieces: Annotated[int, Field(ge=1)] = 10
    """Number of page pieces to show to the verifier."""

    words: Annotated[int, Field(ge=1)] = 250
    """Words per piece."""

    overlap: Annotated[int, Field(ge=0)] = 40
    """Number of words shared by neighboring pieces."""

    k_prime: Annotated[Any, Option("K", usual=True)] = None
    """K', the human count of claims in a response: a number, or a column (k_prime by default, if
    present).
    """

    gamma: Gamma = 0.1

    by: ColumnNames = ("model", "benchmark")
    """Column to group by; repeatable."""

    annotated: Annotated[bool, USUAL] = False
    """Make no calls; show annotators' recorded judgments of a pipeline's claims and verdicts (the
    paper's table 2).
    """

    n_bootstrap: Annotated[Replicates, Option(command_line=False)] = 1000
    """Bootstrap replicates for the intervals over annotated responses."""

    @property
    def pipeline(self) -> FastFactSettings:
        """Settings of the pipeline."""
        stride = stride_of(self.stride, "--stride")
        return FastFactSettings(stride, self.context, self.theta, self.audit, self.seed)


_OF_ANNOTATIONS = {"annotated", "gamma", "seed", "n_bootstrap", "out"}
"""Settings that apply to --annotated."""


@front_door
def fastfact(responses: ResponsesIn | None = None, *, settings: FastFactRun) -> Findings:
    """Judge responses as FaStfact does: F1@K', with calls, searches and cost by stage.

    One call splits a chunk of sentences into claims and judges each claim from the model's
    knowledge. Confident judgments skip the search. For the other claims the command searches pages
    and shows their best pieces to a verifier, which answers with one of five labels. F1@K' needs a
    human count K'; without it, precision and the curve over K' are shown instead. With --out you
    can interrupt a run at any time: the same command continues where it stopped.

    Examples::

        fastfact("answers.jsonl", model="openai/NAME", documents="notes")
        fastfact("answers.jsonl", model="openai/NAME", retriever="google", k_prime="22",
            out="judged")
        fastfact("answers.jsonl", model="openai/NAME", documents="notes", stride="10",
            audit=0.2).report("judged.html")
        fastfact("answers.jsonl", model="openai/NAME", documents="notes", dry_run=True)
        fastfact("annotated.jsonl", annotated=True, out="aligned")

    Args:
        responses: Responses: a text, a table of any kind, a folder of texts, fact graphs, or an
            embedded dataset. Use - for standard input. In Python also fact graphs (only their texts
            are used) or table rows; pass a text as ``text``. With --annotated: a file of
            FaStfact-Bench's annotation tool, the annotation_stats.json of its release, or labels
            with recorded verdicts, such as FactReasoner's outputs.
        settings: options; in Python, pass the fields as keywords instead. `documents` may then be
            texts, or texts by title, `model` an object with the methods of `LanguageModel`, and
            `k_prime` K' by id of response. Without log-probabilities no claim is skipped.

    Raises:
        InputError: for an unknown name, or options that do not fit the input or each other.
        LimitReachedError: if a limit on calls or costs is reached; answers so far are kept.
        MissingDependencyError: if a library that is needed is not installed.
    """
    if settings.annotated:
        return _annotated(responses, settings)
    if settings.target_error is not None and settings.audit < 1:
        raise InputError("--target-error needs every skipped claim verified; add --audit 1")
    refuse_idle_core(settings)
    loaded = settings.load(responses).with_texts()
    graphs = loaded.graphs
    if "by" in settings.model_fields_set:
        _check_columns(graphs, settings.by)
    k_prime = _k_primes(graphs, settings.k_prime)
    with asking(settings) as session:
        stages, facts, unread = _stages(graphs, settings, session)
        names = _probed_stages(settings)
        if settings.dry_run:
            return _bound(loaded, settings, names)
        probed = first_probe([(name, session.model) for name in names])
        with session.responses(len(graphs)) as report:
            batch = assess_responses(
                graphs, stages, (), facts, settings, calls=session.calls, report=report
            )
    tables = _tables(batch, settings, k_prime, session)
    unselected = unselected_sentence(batch.graphs, settings.core_relations)
    findings = Findings(
        source=loaded.source,
        sentences=(
            *loaded.remarks,
            *(f"{remark}." for remark in unread),
            *_declining(batch.graphs),
            *_sentences(tables, batch, settings),
            *filter(None, [unselected]),
        ),
        tables=tables,
        unshown=tuple(
            name
            for name, table in tables.items()
            if not len(table.frame)
            or (name == "claims" and len(batch.graphs) > 1)
            or (name == "audit" and not table.frame["claims"].any())
            or (name == "summary" and not table.frame["scored"].any())
        ),
        incomplete=bool(batch.failed or unselected),
        graphs=batch.graphs,
    )
    return with_probe(with_failed_calls(findings, batch.calls()), probed)


def _declining(graphs: Sequence[FactGraph]) -> list[str]:
    """Remark on responses that decline to answer; empty if there are none."""
    declining = [graph.id for graph in graphs if declines(graph)]
    if not declining:
        return []
    verb = "declines" if len(declining) == 1 else "decline"
    return [
        f"{counted(len(declining), 'response')} {verb} to answer ({some_of(declining)}): FaStfact "
        "lists claims there as in any other, and the means count them."
    ]


def _probed_stages(settings: FastFactRun) -> tuple[str, ...]:
    """Stages with answers from a fixed set of labels, which are probed."""
    if not is_probed(settings.probe, settings.model):
        return ()
    by_model = settings.core and settings.core_relations == "model"
    shown = {"chunk": PRE_VERIFICATIONS, "response": PRE_VERIFICATIONS_IN_RESPONSE}
    failures = (FAILURES_OF_CLAIMS, MISSING_FROM_CLAIMS)
    return (
        # At theta 1 no claim is skipped, so these verdicts have no effect.
        *([shown[settings.context]] if settings.theta < 1.0 else []),
        VERDICTS.name,
        *(failures if settings.failure_types else ()),
        *([RELATIONS] if by_model else []),
        *([RELEVANCES] if settings.core and settings.core_relevance else []),
    )


def _annotated(file: ResponsesIn | None, settings: FastFactRun) -> Findings:
    """Findings on annotators' judgments of a pipeline's claims and verdicts; no model is asked."""
    for name in type(settings).model_fields:
        if name in settings.model_fields_set and name not in _OF_ANNOTATIONS:
            raise InputError(
                f"--{option_of(FastFactRun, name).name} has no effect with --annotated, which "
                "makes no calls; leave one out"
            )
    if not isinstance(file, str | os.PathLike):
        raise InputError("--annotated reads a file, and none is given; give its path")
    if (known := read_counts(file)) is not None:
        return Findings(
            source=Path(file).name,
            sentences=tuple(counts_sentences(known)),
            tables=counts_tables(known),
        )
    intervals = IntervalSettings(n_bootstrap=settings.n_bootstrap, seed=settings.seed)
    counts, tables, sentences = aligned(file, settings.gamma, intervals)
    return Findings(
        source=Path(file).name,
        sentences=tuple(sentences),
        tables=tables,
        draw=lambda: counts_figure(counts),
        unshown=("claims",),
    )


def _stages(
    graphs: Sequence[FactGraph], settings: FastFactRun, session: Session
) -> tuple[list[Stage], dict[str, Any], tuple[str, ...]]:
    """Stages for a response, the facts that results depend on, and remarks on unread files."""
    model = session.needed_model("FaStfact asks")
    retriever, searched, unread = _retriever(graphs, settings, session)
    pipeline = settings.pipeline

    def stage_of(searching: Retriever) -> Stage:
        return fastfact_stage(model, searching, pipeline)

    stages: list[Stage] = [stage_by_response(stage_of, retriever)]
    facts = {
        "method": "fastfact",
        "model": model.name,
        "prompts": prompts_of(model).digests(),
        **asdict(pipeline),
        **searched,
    }
    if settings.language is not None:
        facts["language"] = settings.language
    if settings.core:
        stage, selected = core_stage(graphs, settings, model, given=False)
        stages.append(stage)
        facts |= selected
    if settings.failure_types:
        stages.append(claim_failures_stage(model))
        facts["failure_types"] = True
    return stages, facts, unread


def _tables(
    batch: Batch,
    settings: FastFactRun,
    k_prime: Mapping[str, float],
    session: Session,
) -> dict[str, Table]:
    graphs = batch.graphs
    responses = response_table(graphs, k_prime, settings.gamma, settings.by)
    frames = {
        "responses": responses,
        "summary": leaderboard(responses, settings.by),
        "claims": claim_table(graphs),
    }
    if responses["k_prime"].isna().any():
        frames["curve"] = curve_table(responses, settings.gamma)
    if "core_precision" in responses:
        part = responses.filter(regex="^(response$|core_)")
        frames["core"] = part.rename(columns=lambda name: name.removeprefix("core_"))
    if settings.failure_types:
        frames["claim_failures"] = failure_table(graphs, settings.by)
    frames["cost"] = cost_table(graphs, session.ledger, batch.spent)
    frames["methods"] = method_table(loads_of(graphs))
    frames["audit"] = audit_table(graphs)
    grouped = ("summary", "claim_failures")
    return {
        name: shown_table(name, frame, settings.by if name in grouped else ())
        for name, frame in frames.items()
    }


def _sentences(tables: Mapping[str, Table], batch: Batch, settings: FastFactRun) -> Iterable[str]:
    """Sentences on findings and missing results."""
    responses, claims = tables["responses"].frame, tables["claims"].frame
    yield (
        f"{counted(len(responses), 'response')}, {counted(len(claims), 'claim')}, of which "
        f"{int(responses['missing'].sum()):,} have no verdict."
    )
    lacking = responses[["missing", "missing_chunks", "unread_lines"]]
    verdicts, chunks, lines = map(int, lacking.sum())
    if verdicts or chunks or lines:
        some = int((lacking > 0).any(axis=1).sum())
        yield (
            f"Missing in {counted(some, 'response')}: {counted(verdicts, 'verdict')}, the claims "
            f"of {counted(chunks, 'chunk')} and {counted(lines, 'line')} of claims that could "
            "not be read; they count as neither supported nor false."
        )
    if uncounted := int(responses["k_prime"].isna().sum()):
        yield (
            f"K', the human number of claims, is unknown for {counted(uncounted, 'response')} "
            "(--k-prime): a curve over possible values of K' replaces F1@K'."
        )
    if "core_precision" in responses:
        means = {name: number(responses[name].mean()) for name in (
            "precision", "core_precision", "f1", "core_f1")}  # fmt: skip
        yield (
            f"Mean precision {means['precision']}, with Core {means['core_precision']}; F1@K' "
            f"{means['f1']}, with Core {means['core_f1']}."
        )
    if len(claims) and claims["confidence"].isna().all():
        yield "The model gives no log-probabilities: no claim was skipped."
    reasons = Counter(
        claim["unusable"]
        for graph in batch.graphs
        for claim in graph.metadata[FASTFACT_KEY]["claims"].values()
        if "unusable" in claim
    )
    for reason, count in sorted(reasons.items()):
        yield f"{counted(count, 'claim')} without a confidence and therefore not skipped: {reason}."
    if "claim_failures" in tables and tables["claim_failures"].frame["unanswered"].any():
        yield "Some questions of the judge have no answer: their claims are left out."
    if settings.target_error is not None:
        chosen = guaranteed_threshold(claims, settings.target_error)
        if chosen is None:
            yield "No theta was chosen, because no claim with a confidence was verified."
        elif chosen.skipped:
            yield (
                f"Theta {chosen.value:.4g}: {counted(chosen.skipped, 'claim')} skipped, "
                f"{chosen.error:.3f} of them wrong, at most {chosen.upper:.3f} (with 95% "
                "confidence, if claims err independently)."
            )
        else:
            yield (
                f"No theta keeps the error of skipping below {settings.target_error:g} with "
                "sufficient confidence."
            )
    yield from batch.failures()


def _bound(loaded: LoadedResponses, settings: FastFactRun, probed: Sequence[str]) -> Findings:
    """Upper bound on the calls of this and other methods; a dry run sends nothing."""
    sentences = [sentences_of(graph) for graph in loaded.graphs]
    stride = settings.pipeline.stride
    loads = [
        Load(n, round(CLAIMS_PER_SENTENCE * n), stride=n if stride is None else stride)
        for n in map(len, sentences)
    ]
    extents = [Extent(sentences=load.sentences, atoms=load.claims, stride=stride) for load in loads]
    stages = [PRE_VERIFICATION, VERDICTS.verdict]
    if settings.failure_types:
        stages += [CLAIM_FAILURES, MISSING_CLAIMS]
    if settings.core_relevance:
        stages.append(RELEVANCE)
    calls = dict(planned_probe(probed))
    for stage in stages:
        # Both stages on failures of claims share a name.
        calls[stage.name] = calls.get(stage.name, 0) + stage.number(extents)
    if settings.core_relations == "model":
        calls[CORE_RELATIONS] = sum(map(most_core_pairs(settings), [e.atoms for e in extents]))
    calls["searches"] = sum(load.claims for load in loads)
    frame = data_frame([{"stage": stage, "calls": count} for stage, count in calls.items()])
    given = sum(len(graph.atoms) for graph in loaded.graphs)
    return Findings(
        source=loaded.source,
        sentences=(
            *loaded.remarks,
            "Nothing was sent. Claims are not yet known: the estimate assumes "
            f"{CLAIMS_PER_SENTENCE:g} per sentence. Skipped claims are neither searched nor "
            "verified.",
            *(
                [
                    f"FaStfact lists its own claims, {sum(load.claims for load in loads):,} by "
                    f"that count; the {given:,} of the data are not used. `assess` asks about "
                    "those of the data unless it has --atoms model, so that its counts differ."
                ]
                if given
                else []
            ),
        ),
        tables={
            "calls": shown_table("calls", frame),
            "methods": shown_table("methods", method_table(loads)),
        },
    )


def _retriever(graphs: Sequence[FactGraph], settings: FastFactRun, session: Session) -> Built:
    """Retriever of whole pages."""
    chunks = ChunkSettings(settings.words, settings.overlap)
    named = settings.documents is not None or settings.documents_of is not None
    has_passages = any(graph.contexts for graph in graphs)
    name = settings.retriever or ("local" if has_passages or named else "")
    if not name:
        raise InputError(
            "there is no source of evidence; give --documents FOLDER, or --retriever wikipedia "
            "or google"
        )
    if name not in PAGE_RETRIEVERS:
        raise InputError(unknown_name(f"--retriever {name!r}", name, PAGE_RETRIEVERS))
    refuse_idle_retry(settings, searches_web=name != "local")
    size = {"pages": settings.pages, "pieces": settings.pieces, **asdict(chunks)}
    facts = {"retriever": name, **size}
    if name == "local":
        from factormodels.extraction.retrieval.document_pages import build_document_pages

        refuse_web_options(name, settings)
        documents = read_documents_of(settings, graphs)
        build = partial(
            build_document_pages, pages=settings.pages, top_k=settings.pieces, chunks=chunks
        )
        return Built(documents.searched(build), {**facts, **documents.facts}, documents.remarks)
    refuse_document_options(name, settings)
    searcher = web_retriever(
        name,
        Search(EvidenceSettings(), settings, session, settings.retry_failed),
        top_k=settings.pieces,
        pages=settings.pages,
        reading="chunks",
        chunks=chunks,
    )
    return Built(searcher, facts)


def _check_columns(graphs: Sequence[FactGraph], names: Iterable[str]) -> None:
    """Refuse a group column that no response has."""
    columns = sorted({name for graph in graphs for name in columns_of(graph)})
    for name in names:
        if name not in columns:
            raise InputError(
                unknown_name(f"--by: the column {name!r}", name, columns)
                if columns
                else f"--by {name}: the input has no columns besides its texts; leave --by out"
            )


def _k_primes(graphs: Sequence[FactGraph], k_prime: Any) -> dict[str, float]:
    """K' by id of response, for responses with a K'."""
    if k_prime is None or (isinstance(k_prime, str) and not _is_number(k_prime)):
        column = k_prime or DEFAULT_K_PRIME
        columns = sorted({name for graph in graphs for name in columns_of(graph)})
        if k_prime is not None and column not in columns:
            subject = f"--k-prime {k_prime!r} is not a number, and as a column"
            known = unknown_name(subject, k_prime, columns)
            raise InputError(known if columns else f"{subject} is unknown: the input has none")
        where, values = f"column {column!r}", [columns_of(graph).get(column) for graph in graphs]
    elif isinstance(k_prime, Mapping):
        where, values = "k_prime", [k_prime.get(graph.id) for graph in graphs]
    else:
        where, values = "--k-prime", [k_prime] * len(graphs)
    by_response = {}
    for graph, value in zip(graphs, values, strict=True):
        if value in (None, ""):
            continue
        if not _is_number(value) or float(str(value)) < 0:
            raise InputError(
                f"response {graph.id!r}: {where} is {value!r}, which is not a number; give the "
                "number of its claims"
            )
        by_response[graph.id] = float(str(value))
    return by_response


def _is_number(value: object) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return abs(float(str(value))) < float("inf")
    except ValueError:
        return False
