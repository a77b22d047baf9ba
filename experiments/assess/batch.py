"""Assessing responses one after another, durably where there is an output."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.assess.journal import JournalErrors, KeyedJournal, open_keyed_journal
from experiments.assess.response import (
    METADATA_KEY,
    AssessedResponse,
    AssessmentView,
    assess_graph,
    judged,
)
from factormodels.errors import InputError
from factormodels.extraction.consumption import Consumption
from factormodels.extraction.pipeline import Stage, StageError, run_stages
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_text, parse_fact_graph
from factormodels.io.files import atomic_path
from factormodels.io.json_text import decode, encode

CONSUMPTION_KEY = "consumption"

FORMAT = "factormodels/assessment-journal"
VERSION = 2
SUFFIX = ".partial"
_SETTINGS = "settings"
"""Key of the journal under which its settings stand, beside the hashes of responses."""

Report = Callable[[AssessedResponse | None], None]
"""Called with every response that is finished, None for one that failed."""


@dataclass(frozen=True)
class Batch:
    """What came of a batch.

    Attributes:
        responses: what tables need of every assessed response, in the order of the input.
        resumed: number of these that an earlier run had finished.
        failed: (id, reason) of every response that a stage could not go on with.
    """

    responses: tuple[AssessedResponse, ...]
    resumed: int
    failed: tuple[tuple[str, str], ...]


def assess_responses(
    graphs: Sequence[FactGraph],
    stages: Sequence[Stage],
    views: Sequence[AssessmentView],
    settings: Mapping[str, Any],
    *,
    out: Path | None = None,
    report: Report | None = None,
    keep: Callable[[FactGraph], None] | None = None,
    consumption: Consumption | None = None,
) -> Batch:
    """Assess responses and write them to `out` as JSON Lines that the graph reader reads.

    A line is the response's fact graph; its metadata hold what each stage did and the assessment.
    With `out`, every finished response is kept in a journal beside it, which a later run with equal
    settings goes on from, and which goes when all are finished. Responses that failed are not in
    `out`; the journal then stays, and a later run tries them again.

    Args:
        graphs: the responses.
        stages: what makes their graphs.
        views: how these become posteriors.
        settings: JSON values that results depend on.
        out: where to write.
        report: called after every response.
        keep: called with every assessed graph, for what is shown of it.
        consumption: the language model that stages ask; what it says of each response is written.

    Raises:
        InputError: if `out` or the journal cannot be written, or the journal is of other settings.
    """
    found: list[AssessedResponse] = []
    failed: list[tuple[str, str]] = []
    resumed = 0
    with nullcontext() if out is None else _open(out, settings) as journal:
        keys: list[str] = []
        for graph, key in _with_keys(graphs, journal):
            # Hashed by content, so a response that was edited since is assessed anew.
            if journal is not None and key in journal:
                text = decode(journal[key], journal.path)
                assessed: FactGraph | None = parse_fact_graph(text, journal.path)
                resumed += 1
            else:
                assessed = _assessed(graph, stages, views, failed, consumption)
                if journal is not None and assessed is not None:
                    journal.put(key, fact_graph_text(assessed))
            if assessed is not None:
                # In the order of the input, which the output has even if the journal was filled
                # otherwise.
                keys.append(key)
                found.append(judged(assessed))
                if keep is not None:
                    # Graphs may be large; none is held here once the caller has seen it.
                    keep(assessed)
            if report is not None:
                report(None if assessed is None else found[-1])
        if journal is not None and out is not None:
            # Written even if some responses failed: these are then left out, and the journal stays
            # for the next try.
            _write(journal, keys, out)
            # All is in `out` by now, and that was moved into place whole.
            if not failed:
                journal.path.unlink()
    return Batch(tuple(found), resumed, tuple(failed))


def response_key(graph: FactGraph) -> str:
    """What tells a response apart from every other one: a hash of all that it holds."""
    return hashlib.sha256(fact_graph_text(graph).encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def _open(out: Path, settings: Mapping[str, Any]) -> Iterator[KeyedJournal]:
    """Open the journal beside an output: the texts of assessed responses by `response_key`."""
    # Beside the output, where it is found again by the same command.
    path = out.with_name(out.name + SUFFIX)
    foreign = (
        f"{path}: it was begun with other settings or is no journal; repeat the command that began "
        "it, or remove the file to begin anew"
    )
    errors = JournalErrors(
        busy=f"{path}: another process is at work on this batch; wait for it, or name another "
        "--out",
        foreign=foreign,
        damaged=f"{path}: a record before the last one is damaged; remove the file to begin anew",
    )
    with ExitStack() as stack:
        try:
            journal = stack.enter_context(open_keyed_journal(path, errors))
        except OSError as error:
            raise InputError(
                f"{out}: {path.name} cannot be written beside it ({error.strerror}); name a file "
                "in an existing folder"
            ) from None
        # Compared as text: equal settings encode to equal bytes.
        text = encode({"format": FORMAT, "version": VERSION, **settings}, str(path))
        if not journal:
            journal.put(_SETTINGS, text)
        elif journal.get(_SETTINGS) != text:
            raise InputError(foreign)
        yield journal


def _write(journal: KeyedJournal, keys: Iterable[str], path: Path) -> None:
    """Write finished responses as JSON Lines, whole or not at all, one in memory at a time."""
    with atomic_path(path) as temporary, temporary.open("wb") as out:
        for key in keys:
            out.write(f"{journal[key]}\n".encode("utf-8", "surrogatepass"))


def _with_keys(
    graphs: Sequence[FactGraph], journal: KeyedJournal | None
) -> Iterator[tuple[FactGraph, str]]:
    for graph in graphs:
        # Hashing takes time, and without a journal nobody needs the hash.
        yield graph, "" if journal is None else response_key(graph)


def _assessed(
    graph: FactGraph,
    stages: Sequence[Stage],
    views: Sequence[AssessmentView],
    failed: list[tuple[str, str]],
    consumption: Consumption | None,
) -> FactGraph | None:
    """The assessed graph; None, with the reason noted in `failed`, if a stage could not go on."""
    try:
        extracted = run_stages(graph, stages)
    except StageError as error:
        failed.append((graph.id, str(error)))
        return None
    finally:
        # Taken even if a stage fails, or the failed response's tokens would be charged to the next.
        taken = {} if consumption is None else {CONSUMPTION_KEY: consumption.take()}
    assessment = {METADATA_KEY: assess_graph(extracted, views)}
    return replace(extracted, metadata={**extracted.metadata, **taken, **assessment})
