"""Assessing responses side by side, durably where there is an output."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from experiments.asking.failed_calls import StageCalls, calls_of_responses
from experiments.columns.assessed_metadata import METADATA_KEY
from experiments.destination import FILES_MEANING, check_destination
from experiments.evaluators.batches.threads import OneAtATime, as_ready
from experiments.evaluators.calls.few_calls import limit_of
from experiments.evaluators.response import AssessedResponse, AssessmentView, assess_graph, judged
from experiments.settings import Option, Settings
from factormodels.errors import InputError, LimitReachedError
from factormodels.extraction.language_model.accounting import Account, charged_to
from factormodels.extraction.pipeline import Stage, StageError, run_stages
from factormodels.extraction.stages.retrieval import METADATA_KEY as RETRIEVAL_KEY
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_text, parse_fact_graph
from factormodels.io.json import decode, encode
from factormodels.io.source.files import atomic_path, prepare_folder
from factormodels.io.store.results import STORE, KeptValues, open_store, remove_store
from factormodels.metadata.stage_keys import CONSUMPTION_KEY
from factormodels.nouns import counted, is_or_are

FORMAT = "factormodels/assessment"
VERSION = 3
GRAPHS = "graphs.jsonl"
"""The responses with all that was found, in the folder of a batch."""

_MOST_NAMED = 5

_RESPONSES, _SETTINGS = "responses", "settings"
"""Contents of a batch's store: graphs by the hash of their response, and one entry of settings."""

Report = Callable[[AssessedResponse | None], None]
"""Called with every response that is finished, None for one that failed."""

Compute = Callable[[FactGraph, Sequence[AssessmentView]], dict[str, Any]]
"""Makes an assessment of a graph, as `assess_graph`."""

Finish = Callable[[Sequence[FactGraph]], Sequence[FactGraph]]
"""Makes something of all responses together, in order."""

Run = Callable[[FactGraph, Sequence[Stage]], FactGraph]
"""Runs stages, as `run_stages`."""


@dataclass(frozen=True)
class Elsewhere:
    """Executor of responses.

    Attributes:
        places: how many there is room for at a time.
        compute: makes an assessment; it is called in many threads.
        run: runs the stages of a response; None: they run in this process.
    """

    places: int
    compute: Compute
    run: Run | None = None


@dataclass(frozen=True)
class Batch:
    """Result of a batch.

    Attributes:
        responses: what tables need of every assessed response, in the order of the input.
        graphs: these responses, with all that was found.
        resumed: number of these that an earlier run had finished.
        failed: (id, reason) of every response that has no result: a stage could not go on with it,
            or an outage cut off its answers.
        spent: what the answers of each of these took by stage, as `Account.take` tells it.
        limit_reached: whether a limit on calls or costs left something unasked.
    """

    responses: tuple[AssessedResponse, ...]
    graphs: tuple[FactGraph, ...]
    resumed: int
    failed: tuple[tuple[str, str], ...]
    spent: tuple[Mapping[str, Any], ...] = ()
    limit_reached: bool = False

    def calls(self) -> dict[str, StageCalls]:
        """Calls of each stage for all responses, including earlier runs and failed responses."""
        return calls_of_graphs(self.graphs, self.spent)

    def failures(self) -> Iterator[str]:
        """Failures, a sentence per reason with the fix."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.failed:
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            first, more = ", ".join(names[:_MOST_NAMED]), len(names) - _MOST_NAMED
            yield f"{first}{f' and {more:,} more' if more > 0 else ''} failed: {reason}."
        if self.failed:
            yield (
                f"{counted(len(self.failed), 'response')} without a result: the same command asks "
                "for what is missing of them, and for nothing that was answered."
            )


def calls_of_graphs(
    graphs: Sequence[FactGraph], spent: Sequence[Mapping[str, Any]] = ()
) -> dict[str, StageCalls]:
    """Calls of each stage for assessed graphs, and for responses with known calls alone."""
    metadata = [graph.metadata for graph in graphs]
    consumed = [facts.get(CONSUMPTION_KEY, {}) for facts in metadata]
    return calls_of_responses([*consumed, *spent], metadata)


@dataclass(frozen=True)
class _Failed:
    """Why a response has no result, what its answers took, and whether a limit was reached."""

    reason: str
    taken: Mapping[str, Any]
    limited: bool = False


class BatchSettings(Settings):
    """Settings of a batch."""

    out: Annotated[
        Path | None,
        Field(
            exclude=True,
            description="Write everything to this folder, or one table to this file. An "
            "interrupted batch continues from its files. A folder gets all tables (CSV, LaTeX, "
            f"Markdown), figures, findings.json and the responses. {FILES_MEANING}",
        ),
        Option("PATH", command_line=False, writes=True),
    ] = None

    retry_failed: bool = False
    """Ask again for what an interrupted batch recorded as failed or missing."""

    partial: bool = False
    """Judge responses that an outage cut off by whatever was obtained."""


def refuse_idle_retry(how: BatchSettings, *, searches_web: bool) -> None:
    """Refuse --retry-failed where nothing recorded as failed can be there.

    Failed answers are recorded in the folder of --out, and missing pages of the web with the
    answers of searches; answers of a model that failed are not recorded elsewhere.

    Args:
        how: settings of the batch.
        searches_web: whether pages of the web are read.

    Raises:
        InputError: if the option would do nothing.
    """
    if how.retry_failed and how.out is None and not searches_web:
        raise InputError(
            "--retry-failed asks again for what a batch recorded in its folder; name it with "
            "--out, or leave --retry-failed out"
        )


def assess_responses(
    graphs: Sequence[FactGraph],
    stages: Sequence[Stage],
    views: Sequence[AssessmentView],
    settings: Mapping[str, Any],
    how: BatchSettings,
    *,
    calls: int | None = None,
    prepare: Callable[[], None] = lambda: None,
    report: Report | None = None,
    elsewhere: Elsewhere | None = None,
    until_limit: bool = False,
    finish: Finish | None = None,
) -> Batch:
    """Assess responses and write them as JSON Lines that the graph reader reads.

    A line is the response's fact graph; its metadata record every stage and the assessment. With an
    output, every finished response is kept in a store in its folder. A later run with equal
    settings resumes from the store, which is removed when all responses are finished. Responses
    that failed, or whose answers were cut off by an outage, are not in the output; the store then
    stays, and a later run tries them again. If no response is left, the output is not written.
    Stages run in threads, and share the limits of their model.

    Args:
        graphs: the responses.
        stages: what makes their graphs.
        views: how these become posteriors.
        settings: JSON values that results depend on.
        how: where to write, and what is done again; nothing that results depend on.
        calls: calls of a language model under way at a time; None: nobody is asked, and one
            response is assessed after another.
        prepare: what computing here needs once, such as a backend that is warm: done while the
            first questions are under way.
        report: called after every response, in the order in which they are finished.
        elsewhere: where responses are computed; None: in this process, one at a time.
        until_limit: whether a limit on calls or costs ends a response alone: its result is of what
            was answered, or it fails. A later run takes it up again.
        finish: what is made of all responses together when all are answered; the store has them
            as they were before, so that a later run makes it of all of them.

    Raises:
        InputError: if the output or the store cannot be written, or the store is of other
            settings.
        LimitReachedError: if no more may be asked, unless `until_limit`; the store has what is
            finished.
    """
    stop = threading.Event()
    results: dict[int, tuple[AssessedResponse, FactGraph]] = {}
    failed: dict[int, _Failed] = {}
    out, path = (None, None) if how.out is None else _kept_at(how.out)
    with nullcontext() if path is None else _open(path, settings) as store:
        keys = ["" if store is None else response_key(graph) for graph in graphs]

        def settle(position: int, assessed: FactGraph) -> None:
            results[position] = judged(assessed), assessed
            if report is not None:
                report(results[position][0])

        todo: list[int] = []
        for position, key in enumerate(keys):
            # Hashed by content, so that an edited response is assessed again.
            finished = None if store is None else _finished(store, key, how.retry_failed)
            if finished is None:
                todo.append(position)
            else:
                settle(position, finished)
        resumed = len(results)

        # Backends use the processors themselves, and are not made for several threads.
        here = OneAtATime(assess_graph, prepare)
        place_of_work = elsewhere or Elsewhere(1, here)

        def work(graph: FactGraph) -> FactGraph | _Failed:
            return _assessed(graph, stages, views, place_of_work, stop, how.partial, until_limit)

        batch = [graphs[position] for position in todo]
        # A response may wait for a search or for the processor: twice as many as calls use up the
        # model's limit on these.
        count = max(1 if calls is None else 2 * calls, place_of_work.places)
        meanwhile = here.prepare if elsewhere is None else lambda: None
        try:
            for number, result in as_ready(work, batch, count, stop, meanwhile):
                position = todo[number]
                if isinstance(result, _Failed):
                    failed[position] = result
                    if report is not None:
                        report(None)
                    continue
                if store is not None:
                    store.put(keys[position], fact_graph_text(result))
                settle(position, result)
        except KeyboardInterrupt as stopped:
            if store is not None:
                stopped.add_note(
                    f"{len(results)} of {counted(len(graphs), 'response')} "
                    f"{is_or_are(len(results))} finished; the same command continues"
                )
            raise
        if finish is not None:
            places = sorted(results)
            together = finish([results[position][1] for position in places])
            results = {
                position: (judged(graph), graph)
                for position, graph in zip(places, together, strict=True)
            }
        if store is not None:
            # Written even if some responses failed: these are then left out, and the store stays
            # for the next try. In the order of the input, however the store was filled. Where all
            # failed, what an earlier run wrote there is worth more than nothing.
            if out is not None and (results or not failed):
                # One in memory at a time.
                with atomic_path(out) as temporary, temporary.open("wb") as file:
                    for position in sorted(results):
                        kept = store.get(keys[position]) if finish is None else None
                        text = f"{kept or fact_graph_text(results[position][1])}\n"
                        file.write(text.encode("utf-8", "surrogatepass"))
            # All is in `out` by now, which was moved into place whole, or about to be written.
            if not failed:
                remove_store(store.path)
    return Batch(
        tuple(results[position][0] for position in sorted(results)),
        tuple(results[position][1] for position in sorted(results)),
        resumed,
        tuple((graphs[position].id, failed[position].reason) for position in sorted(failed)),
        tuple(failed[position].taken for position in sorted(failed)),
        any(limit_of(graph) for _, graph in results.values())
        or any(failure.limited for failure in failed.values()),
    )


def response_key(graph: FactGraph) -> str:
    """Key of a response: a hash of its whole content."""
    return hashlib.sha256(fact_graph_text(graph).encode("utf-8", "surrogatepass")).hexdigest()


def _kept_at(out: Path) -> tuple[Path | None, Path]:
    """The file of the assessed responses and the store of a batch with a destination.

    The store lies where the same command looks for it again: in the folder, or beside the file. A
    file of another kind than .jsonl holds no responses, and is written from the findings.
    """
    form = check_destination(out)
    if form:
        return (out if form == ".jsonl" else None), out.with_name(f".{out.name}.{STORE}")
    prepare_folder(out)
    return out / GRAPHS, out / STORE


@contextmanager
def _open(path: Path, settings: Mapping[str, Any]) -> Iterator[KeptValues]:
    """Open the store of a batch: the texts of assessed responses by `response_key`."""
    with open_store(path, "remove the file to start over") as store:
        # Compared as text: equal settings encode to equal bytes.
        text = encode({"format": FORMAT, "version": VERSION, **settings}, str(path))
        kept, begun = store.values(_RESPONSES), store.value(_SETTINGS, _SETTINGS)
        if begun is None and not store.n_records():
            store.put(_SETTINGS, _SETTINGS, text)
        elif begun != text:
            raise InputError(
                f"{path}: it was begun with other settings; repeat the command that began it, or "
                "remove the file to start over"
            )
        yield kept


def _finished(store: KeptValues, key: str, retry_failed: bool) -> FactGraph | None:
    """Result of an earlier run for a response; None if it has yet to be assessed."""
    text = store.get(key)
    if text is None:
        return None
    graph = parse_fact_graph(decode(text, store.path), store.path)
    lacks = limit_of(graph) or (retry_failed and judged(graph).lacking)
    return None if lacks else graph


def _assessed(
    graph: FactGraph,
    stages: Sequence[Stage],
    views: Sequence[AssessmentView],
    elsewhere: Elsewhere,
    stop: threading.Event,
    partial: bool,
    until_limit: bool,
) -> FactGraph | _Failed:
    """Return the assessed graph, or the reason why there is none."""
    account = Account(stopped=stop.is_set)
    try:
        with charged_to(account):
            extracted = (elsewhere.run or run_stages)(graph, stages)
    except StageError as error:
        return _Failed(str(error), account.take())
    except LimitReachedError as error:
        if not until_limit:
            raise
        return _Failed(str(error).partition(";")[0], account.take(), limited=True)
    if (lost := _cut_off(extracted, account)) and not partial:
        return _Failed(lost, account.take())
    taken = account.take()
    return replace(
        extracted,
        metadata={
            **extracted.metadata,
            **({CONSUMPTION_KEY: taken} if taken else {}),
            METADATA_KEY: elsewhere.compute(extracted, views),
        },
    )


def _cut_off(graph: FactGraph, account: Account) -> str:
    """Parts of a response lost to an outage or a refusal; empty if none.

    A page that could not be fetched is not an outage: its snippet replaces it.
    """
    if account.outages:
        return f"an outage cut off {counted(len(account.outages), 'call')}: {account.outages[0]}"
    retrieval = graph.metadata.get(RETRIEVAL_KEY, {})
    if refused := retrieval.get("refused"):
        return (
            f"a search was refused ({refused[0]}); see to the key, the credit and the address of "
            "the service"
        )
    lost = retrieval.get("unsearched", ())
    return f"an outage cut off {counted(len(lost), 'call')} of searches: {lost[0]}" if lost else ""
