"""Concurrent assessment of responses, durable with an output folder."""

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
"""File of the assessed responses in the folder of a batch."""

_MOST_NAMED = 5

_RESPONSES, _SETTINGS = "responses", "settings"
"""Kind of a batch's store: graphs by the hash of their response, and an entry with settings."""

Report = Callable[[AssessedResponse | None], None]
"""Function that is called with every finished response, or None for a failed one."""

Compute = Callable[[FactGraph, Sequence[AssessmentView]], dict[str, Any]]
"""Function that assesses a graph, such as `assess_graph`."""

Finish = Callable[[Sequence[FactGraph]], Sequence[FactGraph]]
"""Function of all responses together, in order."""

Run = Callable[[FactGraph, Sequence[Stage]], FactGraph]
"""Function that runs stages, such as `run_stages`."""


@dataclass(frozen=True)
class Elsewhere:
    """Executor of responses.

    Attributes:
        places: number of responses that fit at a time.
        compute: assesses a response; called from many threads.
        run: runs the stages of a response; None to run them in this process.
    """

    places: int
    compute: Compute
    run: Run | None = None


@dataclass(frozen=True)
class Batch:
    """Result of a batch.

    Attributes:
        responses: summary of every assessed response for tables, in the order of the input.
        graphs: the assessed responses.
        resumed: number of these that an earlier run finished.
        failed: (id, reason) of every response without a result, because a stage failed or an outage
            interrupted its answers.
        spent: usage of each failed response by stage, as in `Account.take`.
        limit_reached: True if a limit on calls or costs left something unasked.
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
            # The message of a server may end in a period of its own.
            cause = reason.removesuffix(".")
            yield f"{first}{f' and {more:,} more' if more > 0 else ''} failed: {cause}."
        if self.failed:
            yield (
                f"{counted(len(self.failed), 'response')} without a result; repeat the command "
                "to request only the missing answers."
            )


def calls_of_graphs(
    graphs: Sequence[FactGraph], spent: Sequence[Mapping[str, Any]] = ()
) -> dict[str, StageCalls]:
    """Calls of each stage for assessed graphs, and for responses with known calls only."""
    metadata = [graph.metadata for graph in graphs]
    consumed = [facts.get(CONSUMPTION_KEY, {}) for facts in metadata]
    return calls_of_responses([*consumed, *spent], metadata)


@dataclass(frozen=True)
class _Failed:
    """Reason for a missing result, usage of the answers, and whether a limit was reached."""

    reason: str
    taken: Mapping[str, Any]
    limited: bool = False


class BatchSettings(Settings):
    """Batch.

    Options on many responses: the output, failures and interrupted answers.
    """

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
    """Ask again for answers that an interrupted batch recorded as failed or missing."""

    partial: bool = False
    """Judge responses that an outage interrupted from the answers so far."""


def refuse_idle_retry(how: BatchSettings, *, searches_web: bool) -> None:
    """Refuse --retry-failed if no recorded failures can exist.

    Failed answers are recorded only in the folder of --out, and missing web pages with the cached
    searches.

    Args:
        how: settings of the batch.
        searches_web: True if web pages are read.

    Raises:
        InputError: if the option would have no effect.
    """
    if how.retry_failed and how.out is None and not searches_web:
        raise InputError(
            "--retry-failed needs the folder of a batch; name it with --out, or leave "
            "--retry-failed out"
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
    """Assess responses and write them as JSON Lines of fact graphs.

    A line is the response's fact graph; its metadata record every stage and the assessment. With an
    output, every finished response is kept in a store in its folder. A later run with equal
    settings resumes from the store, which is removed when all responses are finished. Responses
    that failed, or whose answers were cut off by an outage, are not in the output; the store then
    stays, and a later run tries them again. If no response is left, the output is not written.
    Stages run in threads, and share the limits of their model.

    Args:
        graphs: the responses.
        stages: stages that build their graphs.
        views: views that turn graphs into posteriors.
        settings: JSON values that results depend on.
        how: settings of output and retries, which do not affect results.
        calls: number of concurrent calls of a language model; None if no model is asked, and
            responses are assessed one after another.
        prepare: one-time preparation of the computation, such as warming up a backend; runs during
            the first calls.
        report: called after every response, in the order in which they are finished.
        elsewhere: executor of responses; None for this process, one response at a time.
        until_limit: True if a limit on calls or costs ends only the current response, whose result
            uses the answers so far, or which fails. A later run continues it.
        finish: function of all responses together once all are answered. The store keeps the
            responses before this step, so that a later run can repeat it.

    Raises:
        InputError: if the output or the store cannot be written, or the store has other settings.
        LimitReachedError: if a limit is reached, unless `until_limit`; the store keeps finished
            responses.
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

        # Backends use all processors themselves and are not thread-safe.
        here = OneAtATime(assess_graph, prepare)
        place_of_work = elsewhere or Elsewhere(1, here)

        def work(graph: FactGraph) -> FactGraph | _Failed:
            return _assessed(graph, stages, views, place_of_work, stop, how.partial, until_limit)

        batch = [graphs[position] for position in todo]
        # Responses may wait for a search or the processor, so use twice as many threads as
        # concurrent calls.
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
            # Write the output even if some responses failed: they are left out, and the store stays
            # for the next run. The order is that of the input. If all failed, keep the output of an
            # earlier run.
            if out is not None and (results or not failed):
                # Hold one response in memory at a time.
                with atomic_path(out) as temporary, temporary.open("wb") as file:
                    for position in sorted(results):
                        kept = store.get(keys[position]) if finish is None else None
                        text = f"{kept or fact_graph_text(results[position][1])}\n"
                        file.write(text.encode("utf-8", "surrogatepass"))
            # `out` is complete, or about to be written from memory.
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

    The store is in the folder, or next to the file, where the same command looks for it. A file
    other than .jsonl contains no responses, and is written from the findings.
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
        # Compare as text: equal settings have equal encodings.
        text = encode({"format": FORMAT, "version": VERSION, **settings}, str(path))
        kept, begun = store.values(_RESPONSES), store.value(_SETTINGS, _SETTINGS)
        if begun is None and not store.n_records():
            store.put(_SETTINGS, _SETTINGS, text)
        elif begun != text:
            raise InputError(
                f"{path}: the batch was started with other settings; repeat the original "
                "command, or remove the file to start over"
            )
        yield kept


def _finished(store: KeptValues, key: str, retry_failed: bool) -> FactGraph | None:
    """Result of an earlier run for a response, or None."""
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
    """Return the assessed graph, or the reason for its absence."""
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

    A page that could not be fetched is not an outage, because its snippet replaces it.
    """
    if account.outages:
        return f"an outage cut off calls: {account.outages[0]}"
    retrieval = graph.metadata.get(RETRIEVAL_KEY, {})
    if refused := retrieval.get("refused"):
        return (
            f"a search was refused ({refused[0]}); check the key, the credit and the address of "
            "the service"
        )
    lost = retrieval.get("unsearched", ())
    return f"an outage cut off searches: {lost[0]}" if lost else ""
