"""The responses of a study as its page lists them: the answer of each cell, and the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from experiments.columns.cell_names import UNANSWERED
from experiments.evaluators.display.listed_evidence import (
    Borne,
    evidence_of,
    graphs_shown,
    n_relations,
)
from experiments.evaluators.display.marked_texts import marked_response
from experiments.evaluators.evidence import evidence_of_atoms
from experiments.findings.responses import (
    Effect,
    Ended,
    ListedClaim,
    ListedFailure,
    ListedJudge,
    ListedResponse,
    ListedResponses,
)
from experiments.pages.removals import REPORT_SECONDS, ViewRemovals, removals_of
from experiments.pages.reported_datasets import WITHOUT_GRAPH, Answer, Part, Step, Watch
from experiments.study.outputs import RunContents
from factormodels.fact_graph import FactGraph

MORE = "factormodels report RUN --response ID"


def listed_of_study(
    subject: RunContents, parts: Sequence[Part], watch: Watch | None = None
) -> ListedResponses:
    """The responses of a study.

    Args:
        subject: the run.
        parts: its datasets as shown.
        watch: shows progress.
    """
    judges = _judges(parts)
    views = tuple(dict.fromkeys(title for part in parts for title, _ in part.views))
    shown = tuple(view for view in views if view != WITHOUT_GRAPH)
    several = len(parts) > 1
    n_shown = sum(len(part.responses) for part in parts)
    responses: list[ListedResponse] = []
    places: dict[tuple[str, str], int] = {}
    # One budget for the whole page, used up in the order of the responses.
    seconds = REPORT_SECONDS
    steps: AbstractContextManager[Step] = nullcontext(lambda: None)
    with watch(n_shown) if watch else steps as step:
        for part in parts:
            at = {graph.id: number for number, graph in enumerate(part.data.graphs)}
            for graph in part.responses:
                number = at[graph.id]
                related = part.data.related[number] if part.data.related else {}
                fits = [
                    fit.of([number])
                    for fit in subject.fits
                    if fit.request.dataset == part.data.name
                ]
                dataset_views = [view for _, view in part.views]
                removals, seconds = removals_of(graph, dataset_views, seconds, related, fits)
                by_view = dict(zip((title for title, _ in part.views), removals, strict=True))
                places[part.data.name, graph.id] = len(responses)
                dataset = part.data.name if several else ""
                responses.append(
                    _listed(part, graph, dataset, [*judges], [by_view.get(view) for view in shown])
                )
                step()
    return ListedResponses(
        answers=tuple(
            ListedJudge(title, None if view == WITHOUT_GRAPH else shown.index(view))
            for title, view in judges.items()
        ),
        views=shown,
        responses=tuple(responses),
        n_responses=sum(len(part.data.graphs) for part in parts),
        failures=tuple(_failures(subject, parts, places)),
        selections=parts[0].selections if parts else (),
        more=MORE,
        n_judges=len({part.title(cell) for part in parts for cell in part.cells.values()}),
    )


def _judges(parts: Sequence[Part]) -> dict[str, str]:
    """The cells of all datasets by title, each with its view, the one shown first leading."""
    ordered = [(part, part.main) for part in parts]
    ordered += [(part, cell) for part in parts for cell in part.places]
    return {part.title(cell): part.view(cell) for part, cell in ordered}


def _listed(
    part: Part,
    graph: FactGraph,
    dataset: str,
    judges: Sequence[str],
    removals: Sequence[ViewRemovals | None],
) -> ListedResponse:
    answers = {part.title(cell): answer for cell, answer in part.answers.get(graph.id, {}).items()}
    seen = [None if removal is None else removal.seen for removal in removals]
    evidence = evidence_of(graph, _borne(graph, removals), len(removals))
    kept = part.kept_by.get(graph.id)
    ended = []
    for title in judges:
        answer = answers.get(title)
        ended.append(
            Ended("not asked") if answer is None else Ended(answer.status, answer.error or "")
        )
    return ListedResponse(
        id=graph.id,
        dataset=dataset,
        topic=graph.topic,
        query=graph.query,
        pieces=marked_response(graph),
        claims=tuple(
            ListedClaim(
                atom,
                tuple(_posterior(answers.get(title), row) for title in judges),
                evidence.get(atom.id, ()),
                kept_by=() if kept is None else kept[row],
            )
            for row, atom in enumerate(graph.atoms)
        ),
        passages=graph.contexts,
        n_relations=tuple(
            None if view_graph is None else n_relations(graph, view_graph) for view_graph in seen
        ),
        ended=tuple(ended),
        failures=tuple(_errors(part, graph)),
        unknown=tuple(_unknown(removals)),
        notes=tuple(_notes(part, graph, removals)),
        graphs=tuple(graphs_shown(graph, seen)),
    )


def _posterior(answer: Answer | None, row: int) -> float | None:
    if answer is None or not answer.p.size or math.isnan(answer.p[row]):
        return None
    return float(answer.p[row])


def _borne(
    graph: FactGraph, removals: Sequence[ViewRemovals | None]
) -> dict[Borne, dict[int, Effect]]:
    """Effects of passages on claims, a row for all views that agree on a relation."""
    effects: dict[Borne, dict[int, Effect]] = {}
    for view, of_view in enumerate(removals):
        if of_view is None or of_view.seen is None:
            continue
        for atom, items in evidence_of_atoms(graph, of_view.seen, of_view.removals).items():
            for item in items:
                removal = item.removal
                effect = (
                    Effect()
                    if removal is None
                    else Effect(removal.without, removal.change, removal.error)
                )
                key = Borne(atom, item.context, item.relation, item.probability)
                effects.setdefault(key, {})[view] = effect
    return effects


def _unknown(removals: Sequence[ViewRemovals | None]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the reasons why relations of views are unknown, with the numbers of the views."""
    views_by_reason: dict[str, list[int]] = {}
    for view, removal in enumerate(removals):
        if removal is not None and removal.seen is None:
            views_by_reason.setdefault(removal.reason, []).append(view)
    for reason, numbers in views_by_reason.items():
        yield tuple(numbers), reason


def _notes(part: Part, graph: FactGraph, removals: Sequence[ViewRemovals | None]) -> Iterator[str]:
    yield from part.remarks.get(graph.id, ())
    skipped: dict[str, int] = {}
    for removal in removals:
        if removal is not None and removal.seen is not None and removal.removals is None:
            skipped[removal.reason] = skipped.get(removal.reason, 0) + 1
        if removal is not None and removal.learned:
            yield removal.learned
    for reason, count in skipped.items():
        yield (
            f"in {count} of {len(removals)} views what passages change was not computed, because "
            f"{reason}"
        )


def _errors(part: Part, graph: FactGraph) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every error of a response with the cells that failed with it."""
    cells_by_error: dict[str, list[str]] = {}
    for cell, answer in sorted(part.answers.get(graph.id, {}).items()):
        if answer.status in UNANSWERED:
            cells_by_error.setdefault(answer.error or "", []).append(part.title(cell))
    for error, cells in cells_by_error.items():
        yield error, tuple(cells)


def _failures(
    subject: RunContents, parts: Sequence[Part], places: Mapping[tuple[str, str], int]
) -> Iterator[ListedFailure]:
    """Yield, for each error of a cell, the responses of the run that failed with it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    titles = {key: part.title(cell) for part in parts for key, cell in part.cells.items()}
    for cell in subject.rows.cells():
        if cell.key not in titles:
            continue
        table = subject.rows.read(cell, ("response", "status", "error"))
        table = table.filter(pc.is_in(table["status"], pa.array(UNANSWERED)))
        # A dictionary as an ordered set: a response has a row for each of its atoms.
        responses_by_error: dict[str, dict[str, None]] = {}
        for response, error in zip(
            table["response"].to_pylist(), table["error"].to_pylist(), strict=True
        ):
            responses_by_error.setdefault(error or "", {})[response] = None
        dataset = cell.named()["dataset"]
        stage = titles[cell.key] if len(parts) == 1 else f"{dataset} · {titles[cell.key]}"
        for error, responses in responses_by_error.items():
            yield ListedFailure(
                stage,
                error,
                len(responses),
                tuple((name, places.get((dataset, name))) for name in responses),
            )
