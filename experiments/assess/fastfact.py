"""FaStfact on one's own responses: durable, counted by stage, scored against people's counts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.assess.batch import (
    ALONE,
    BatchOptions,
    Report,
    assess_responses,
    responses_under_way,
)
from experiments.assess.core import CoreSettings, core_settings, core_stage
from experiments.assess.evaluation import (
    CACHE,
    CONCURRENCY,
    Documents,
    Texts,
    as_documents,
    as_responses,
    metered_model,
    save_tables,
)
from experiments.assess.fastfact_tables import (
    audit_table,
    claim_table,
    columns_of,
    cost_table,
    curve_table,
    failure_table,
    leaderboard,
    method_table,
    response_table,
)
from experiments.assess.response_columns import ResponseColumns
from experiments.assess.retrievers_by_name import (
    RETRIEVERS,
    WebAccess,
    document_digest,
    read_sources,
    web_retriever,
)
from experiments.assess.setup import stride_of
from factormodels.errors import InputError, options_as_arguments, unknown_name
from factormodels.extraction.claim_failures import claim_failures_stage
from factormodels.extraction.fastfact import FastFactSettings, fastfact_stage
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.accounting import Consumption, Ledger
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from factormodels.extraction.preverification import ShownContext
from factormodels.extraction.prompts.replaced import Prompts, WithPrompts, prompts_of, read_prompts
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.chunks import ChunkSettings
from factormodels.extraction.retrieval.documents import Document
from factormodels.fact_graph import FactGraph
from factormodels.object_repr import Preview, Previewed, counted

if TYPE_CHECKING:
    import pandas as pd


PAGE_RETRIEVERS = tuple(name for name, entry in RETRIEVERS.items() if entry.by_pages)
"""Names of the retrievers that find the pages of which the best pieces are read."""

KPrime = float | str | Mapping[str, float] | None
"""K' of every response, the column that holds it, K' by id of response; or nobody counted."""

DEFAULT_K_PRIME = "k_prime"
"""The column that is looked for where none is named."""


@dataclass(frozen=True, kw_only=True)
class PageEvidence(WebAccess):
    """Where evidence is searched, and how much of it is read.

    Attributes:
        retriever: one of `PAGE_RETRIEVERS`; None: local where there are documents.
        documents: folder or file of documents, or the documents; None: the input's own passages.
        pages: pages that are read per claim.
        pieces: pieces of these that are shown to the verifier, the best by BM25.
        words: the longest piece.
        overlap: words that neighbouring pieces share, at most.

    Source: FaStfact, sections 4.2 and 4.3; the numbers as its authors run it.
    """

    retriever: str | None = None
    documents: Path | tuple[Document, ...] | None = None
    pages: int = 5
    pieces: int = 10
    words: int = 250
    overlap: int = 40


@dataclass(frozen=True)
class Scoring:
    """How claims become a score.

    Attributes:
        k_prime: the number of claims that people find in each response.
        gamma: of recall at K', above 0.
        by: columns of the input by which responses are grouped, where it has them.
    """

    k_prime: KPrime = None
    gamma: float = 0.1
    by: tuple[str, ...] = ("model", "benchmark")


@dataclass(frozen=True, eq=False, repr=False)
class FastFactEvaluation(Previewed):
    """What FaStfact says of responses; shown as its table of responses.

    Attributes:
        responses: a row per response: `supported` S, `unsupported` N, `irrelevant`, `missing`
            (claims without a verdict, in neither), `missing_chunks` and `unread_lines` (of answers
            that list claims); `precision`, `k_prime`,
            `recall`, `f1` (missing where nobody counted K'); `sentences`, `claims`,
            `verified_share` p, calls by stage, `searches`, `pages`, tokens and `cost`.
        claims: a row per claim: what the extracting model said of it and how surely, whether it
            was skipped or audited, its verdict and the type that counts, or why it is missing.
        summary: a row per group, or one for all: numbers of responses, mean F1@K' with a 95%
            interval over responses, precision, claims per response, what is missing.
        curve: means over responses of precision, recall and F1@K' for each K' from 1; what there
            is to say where nobody counted.
        cost: a row per stage: what was asked anew, taken from the cache or failed, tokens and
            cost of all answers, those about responses that failed among them, per response, and
            the calls of table 6.
        methods: calls and searches of other methods for these responses, by table 6.
        audit: how often skipping was wrong, of the skipped claims that were verified anyway.
        claim_failures: what is wrong with extracted claims (figure 5 and table 5), a row per group
            and kind; None where that was not asked.
        failures: (id, reason) of every response that was not taken apart.
        graphs: the responses with their claims, evidence and verdicts.
    """

    responses: pd.DataFrame
    claims: pd.DataFrame
    summary: pd.DataFrame
    curve: pd.DataFrame
    cost: pd.DataFrame
    methods: pd.DataFrame
    audit: pd.DataFrame
    claim_failures: pd.DataFrame | None
    failures: tuple[tuple[str, str], ...]
    graphs: tuple[FactGraph, ...]

    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name."""
        names = ("responses", "claims", "summary", "curve", "cost", "methods", "audit")
        found = {name: getattr(self, name) for name in names}
        if self.claim_failures is not None:
            found["claim_failures"] = self.claim_failures
        return found

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the tables as CSV, and the graphs as graphs.jsonl, which every command reads.

        Returns:
            The files.

        Raises:
            InputError: if the folder cannot be made or written.
        """
        return save_tables(folder, self.tables(), self.graphs)

    def preview(self, most: int) -> Preview:
        """How much was judged, and the first responses."""
        heading = (
            f"FaStfact of {counted(len(self.responses), 'response')}: "
            f"{counted(len(self.claims), 'claim')}"
        )
        if self.failures:
            heading += f"; {counted(len(self.failures), 'response')} failed"
        names = ("response", "supported", "unsupported", "missing", "precision", "f1")
        rows = [
            tuple(_shown(row[name]) for name in names)
            for row in self.responses.head(most).to_dict("records")
        ]
        return Preview(heading, names, rows, len(self.responses))


@dataclass(frozen=True)
class FastFactPlan:
    """What is done with responses, checked and ready.

    Attributes:
        graphs: the responses.
        settings: how the pipeline runs.
        retriever: what is searched.
        searched: JSON values that its answers depend on.
        k_prime: K' by id of response, of those that people counted.
        scoring: how claims become a score.
    """

    graphs: tuple[FactGraph, ...]
    settings: FastFactSettings
    retriever: Retriever
    searched: dict[str, Any]
    k_prime: Mapping[str, float]
    scoring: Scoring


def plan_fastfact(
    graphs: Sequence[FactGraph],
    settings: FastFactSettings,
    evidence: PageEvidence,
    scoring: Scoring,
) -> FastFactPlan:
    """Check what FaStfact is to do.

    Raises:
        InputError: for what does not fit the input or each other.
        MissingDependencyError: if the retriever needs a library that is not installed.
    """
    for graph in graphs:
        if not graph.response.strip():
            raise InputError(
                f"the response {graph.id!r} has no text to take claims from; give its text"
            )
    if not scoring.gamma > 0:
        raise InputError(f"gamma is {scoring.gamma}; give a number above 0")
    retriever, searched = _retriever(graphs, evidence)
    k_prime = _k_primes(graphs, scoring.k_prime)
    return FastFactPlan(tuple(graphs), settings, retriever, searched, k_prime, scoring)


def run_fastfact(
    plan: FastFactPlan,
    model: Consumption,
    ledger: Ledger,
    prompts: Prompts,
    options: BatchOptions = ALONE,
    monitor: AbstractContextManager[Report] | None = None,
    core: CoreSettings | None = None,
    failure_types: bool = False,
) -> FastFactEvaluation:
    """FaStfact's verdicts on responses, durably where there is an output.

    Args:
        plan: what is done.
        model: the language model that extracts and verifies.
        ledger: where its answers are counted.
        prompts: what it is asked with.
        options: where they are written, as `assess_responses` does, and how many are under way.
        monitor: a context with what is called after every response.
        core: how claims that count are selected; None selects none.
        failure_types: whether the model also judges what is wrong with the claims it extracted.

    Raises:
        InputError: as `assess_responses` and `core_stage`.
    """
    asked = WithPrompts(model, prompts)
    found: list[FactGraph] = []
    settings = {
        "method": "fastfact",
        "model": model.name,
        "prompts": prompts_of(asked).digests(),
        **asdict(plan.settings),
        **plan.searched,
    }
    stages = [fastfact_stage(asked, plan.retriever, plan.settings)]
    if core is not None:
        stage, facts = core_stage(plan.graphs, core, asked, given=False)
        stages.append(stage)
        settings |= facts
    if failure_types:
        stages.append(claim_failures_stage(asked))
        settings["failure_types"] = True
    with monitor or nullcontext(_unseen) as report:
        batch = assess_responses(
            plan.graphs, stages, (), settings, options, report=report, keep=found.append
        )
    responses = response_table(found, plan.k_prime, plan.scoring.gamma, plan.scoring.by)
    return FastFactEvaluation(
        responses=responses,
        claims=claim_table(found),
        summary=leaderboard(responses, plan.scoring.by),
        curve=curve_table(responses, plan.scoring.gamma),
        cost=cost_table(found, ledger, batch.spent),
        methods=method_table(found),
        audit=audit_table(found),
        claim_failures=failure_table(found, plan.scoring.by) if failure_types else None,
        failures=batch.failed,
        graphs=tuple(found),
    )


def fastfact(
    texts: Texts,
    *,
    model: str | LitellmSettings | LanguageModel,
    api_base: str | None = None,
    documents: Documents | None = None,
    retriever: str | None = None,
    query: str | None = None,
    topic: str | None = None,
    response: str | None = None,
    question: str | None = None,
    id: str | None = None,
    k_prime: KPrime = None,
    gamma: float = 0.1,
    by: Sequence[str] = ("model", "benchmark"),
    stride: int | str = "all",
    context: ShownContext = "chunk",
    theta: float = 0.995,
    audit: float = 0.0,
    seed: int = 0,
    pages: int = 5,
    pieces: int = 10,
    words: int = 250,
    overlap: int = 40,
    prompts: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] = CACHE,
    replay: bool = False,
    out: str | os.PathLike[str] | None = None,
    core: CoreSettings | bool = False,
    failure_types: bool = False,
) -> FastFactEvaluation:
    """Evaluate the factuality of responses as FaStfact does.

    from experiments import fastfact
    fastfact("It opened in 1890.", model="openai/NAME", documents="notes", k_prime=1).summary

    This is the command `factormodels fastfact`. A language model lists the claims of chunks of
    sentences with its own verdict on each; what it is sure of needs no search. The others are
    searched and verified: supported, refuted, conflicting, insufficient or unverifiable.

    Args:
        texts: the text of a response, or several; a path of a file of responses (as a `Path`); a
            fact graph, or several, whose texts are taken.
        model: the language model, as litellm spells it, its key in the environment; or settings of
            litellm, or an object with the methods of `LanguageModel`. It should give
            log-probabilities: without them no claim is skipped.
        api_base: address of a compatible server, for a model that is given by its name.
        documents: what is searched on this disk: a folder or file, an embedded dataset, a list of
            texts, or a dict of texts by title; None: the passages of `texts`.
        retriever: local, wikipedia or google.
        query: what was asked.
        topic: what the responses are about; searched with each claim.
        response: of a table, the column of the responses; None: recognised by its name.
        question: of a table, the column of the questions.
        id: of a table, the column of the ids.
        k_prime: the number of claims that people find in a response: one for all, by id of
            response, or the column that holds it; None: the column k_prime, if there is one.
        gamma: how fast recall falls with the distance from K'.
        by: columns by which the summary groups responses, where the input has them.
        stride: sentences per extracting call, or "all".
        context: "chunk" shows the extracting model these sentences, "response" all of the response.
        theta: the confidence above which a definite label spares the search.
        audit: share of the skipped claims that are verified anyway.
        seed: seed of the audit's draw.
        pages: pages that are read per claim.
        pieces: pieces of these pages that are shown to the verifier.
        words: the longest piece, in words.
        overlap: words that neighbouring pieces share, at most.
        prompts: folder of templates that replace ours by name.
        cache: file of answers and searches, none of which is repeated.
        replay: whether every answer and search is taken from there.
        out: file of the judged responses; an interrupted run goes on from a journal beside it.
        core: whether to score the claims that count (Core) beside all claims, or how to select
            them.
        failure_types: whether the model also judges what is wrong with the claims it extracted.

    Raises:
        InputError: for an unknown name, or options that do not fit the input or each other.
        MissingDependencyError: if a library that is needed is not installed.

    Source: FaStfact, section 4.
    """
    ledger = Ledger()
    kept = Path(cache)
    with options_as_arguments():
        settings = FastFactSettings(stride_of(str(stride), "--stride"), context, theta, audit, seed)
        chunked = PageEvidence(
            retriever=retriever,
            documents=as_documents(documents),
            pages=pages,
            pieces=pieces,
            words=words,
            overlap=overlap,
            cache=kept,
            replay=replay,
        )
        scoring = Scoring(k_prime, gamma, tuple(by))
        graphs = as_responses(texts, query, topic, ResponseColumns(response, question, id))
        plan = plan_fastfact(graphs, settings, chunked, scoring)
        asked = Consumption(metered_model(model, kept, ledger, replay, api_base=api_base))
        calls = model.concurrency if isinstance(model, LitellmSettings) else CONCURRENCY
        written = None if out is None else Path(out)
        options = BatchOptions(written, responses_under_way(calls))
        return run_fastfact(
            plan,
            asked,
            ledger,
            read_prompts(prompts),
            options,
            core=core_settings(core),
            failure_types=failure_types,
        )


def _unseen(_: object) -> None:
    """Nobody is told of the progress."""


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.3f}"
    return "" if value is None else str(value)


def _k_primes(graphs: Sequence[FactGraph], given: KPrime) -> dict[str, float]:
    """K' by id of response, of those that have one."""
    if given is None or (isinstance(given, str) and not _is_number(given)):
        column = given or DEFAULT_K_PRIME
        columns = sorted({name for graph in graphs for name in columns_of(graph)})
        if given is not None and column not in columns:
            subject = f"--k-prime {given!r} is not a number, and as a column"
            known = unknown_name(subject, given, columns)
            raise InputError(known if columns else f"{subject} is unknown: the input has none")
        where, values = f"column {column!r}", [columns_of(graph).get(column) for graph in graphs]
    elif isinstance(given, Mapping):
        where, values = "k_prime", [given.get(graph.id) for graph in graphs]
    else:
        where, values = "--k-prime", [given] * len(graphs)
    found = {}
    for graph, value in zip(graphs, values, strict=True):
        if value in (None, ""):
            continue
        if not _is_number(value) or float(str(value)) < 0:
            raise InputError(
                f"response {graph.id!r}: {where} is {value!r}; give the number of its claims"
            )
        found[graph.id] = float(str(value))
    return found


def _is_number(value: object) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return abs(float(str(value))) < float("inf")
    except ValueError:
        return False


def _retriever(
    graphs: Sequence[FactGraph], evidence: PageEvidence
) -> tuple[Retriever, dict[str, Any]]:
    """What is searched, with the facts of it that results depend on."""
    chunks = ChunkSettings(evidence.words, evidence.overlap)
    own = any(graph.contexts for graph in graphs)
    name = evidence.retriever or ("local" if own or evidence.documents is not None else "")
    if not name:
        raise InputError(
            "there is no evidence: name a folder with --documents, or a source with --retriever "
            "wikipedia or google"
        )
    if name not in PAGE_RETRIEVERS:
        raise InputError(unknown_name(f"--retriever {name!r}", name, PAGE_RETRIEVERS))
    size = {"pages": evidence.pages, "pieces": evidence.pieces, **asdict(chunks)}
    facts = {"retriever": name, **size}
    if name == "local":
        from factormodels.extraction.retrieval.document_pages import build_document_pages

        documents = read_sources(evidence.documents, graphs)
        local = build_document_pages(
            documents, pages=evidence.pages, top_k=evidence.pieces, chunks=chunks
        )
        return local, {**facts, "documents_sha256": document_digest(documents)}
    if evidence.documents is not None:
        raise InputError(f"--documents is for --retriever local, not for {name}; leave one out")
    searcher = web_retriever(
        name,
        evidence,
        top_k=evidence.pieces,
        pages=evidence.pages,
        reading="chunks",
        chunks=chunks,
    )
    return searcher, facts
