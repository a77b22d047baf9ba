"""The page of one response: its atoms, what each cell says of them, and what speaks for it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.measures import DECISION_TOLERANCE, verdicts
from experiments.evidence import Removal, evidence_of_atoms
from experiments.report.graph_shapes import Drawing, drawing_of
from experiments.report.removals import ViewRemovals
from experiments.report.subject import Answer, Part, Place
from experiments.report.texts import ABSENT, change, fixed, label_word
from experiments.rows import FAILED
from factormodels.claims import Atom, Context, RelationKind
from factormodels.fact_graph import FactGraph

_SNIPPET = 150

FAILED_TEXT = "failed"


@dataclass(frozen=True)
class Told:
    """What one cell says of an atom.

    Attributes:
        text: the posterior, `FAILED_TEXT`, or empty where the cell was not asked.
        error: why it failed.
        unsure: whether inference ended without converging.
    """

    text: str
    error: str = ""
    unsure: bool = False


@dataclass(frozen=True)
class EvidenceRow:
    """A relation that joins a context to an atom, over all views that hold it.

    Attributes:
        context: id of the context.
        title: its title.
        snippet: beginning of its text.
        relation: what it is.
        against: whether it speaks against the atom.
        probability: as recorded.
        without: posterior without the context, per view; empty where the view lacks the relation.
        changes: what the posterior loses, the same.
    """

    context: str
    title: str
    snippet: str
    relation: RelationKind
    against: bool
    probability: str
    without: tuple[str, ...]
    changes: tuple[str, ...]


@dataclass(frozen=True)
class AtomCard:
    """All that is said of an atom.

    Attributes:
        atom: the atom.
        label: its human label as a word.
        now: per view, what the algorithm that is shown first says.
        in_views: per algorithm, what it says in each view.
        told: per view, what each algorithm says.
        evidence: what speaks for and against it.
        tags: what it can be found by.
        spread: largest less smallest posterior over all cells.
    """

    atom: Atom
    label: str
    now: tuple[str, ...]
    in_views: tuple[tuple[Told, ...], ...]
    told: tuple[tuple[Told, ...], ...]
    evidence: tuple[EvidenceRow, ...]
    tags: tuple[str, ...]
    spread: str


@dataclass(frozen=True)
class ContextRow:
    """A context with what it does.

    Attributes:
        context: the context.
        link: its address, if it is one that a browser may open.
        n_relations: number of relations that are not neutral.
        largest: per view, the largest change that its removal makes, with the atom.
    """

    context: Context
    link: str
    n_relations: int
    largest: tuple[str, ...]


@dataclass(frozen=True)
class CellRow:
    """What one cell says of the response.

    Attributes:
        view: title of the view.
        algorithm: what tables call the algorithm.
        precision: share of atoms with P above 1/2.
        mean: mean of P.
        brier: Brier score over the labelled atoms.
        status: how inference ended.
        error: why it failed.
    """

    view: str
    algorithm: str
    precision: str
    mean: str
    brier: str
    status: str
    error: str


def response_page(part: Part, graph: FactGraph, removals: Sequence[ViewRemovals]) -> dict[str, Any]:
    """Return what the template of a response's page shows.

    Args:
        part: its dataset.
        graph: the response.
        removals: of the contexts, per view of the dataset.
    """
    answers = part.answers.get(graph.id, {})
    evidence = _evidence(graph, removals)
    labels = [atom.label for atom in graph.atoms]
    return {
        "graph": graph,
        "part": part,
        "views": [title for title, _ in part.views],
        "cards": [
            _card(part, atom, row, answers, evidence[atom.id])
            for row, atom in enumerate(graph.atoms)
        ],
        "contexts": list(_contexts(graph, removals)),
        "context_numbers": {name: number for number, name in enumerate(graph.context_ids, 1)},
        "cells": list(_cells(part, answers, labels)),
        "drawings": _drawings(part, graph, answers, removals),
        "n_labelled": sum(label is not None for label in labels),
        "n_true": sum(label is True for label in labels),
        "n_skipped": sum(one.removals is None for one in removals),
        "failures": _failures(part, answers),
    }


def precision(answer: Answer) -> float:
    """Return the share of atoms with P above 1/2; NaN without atoms."""
    return float(_supported(answer.p).mean()) if answer.p.size else math.nan


def brier(answer: Answer, labels: Sequence[bool | None]) -> float:
    """Return the Brier score over the labelled atoms of a response; NaN without any."""
    if answer.status == FAILED:
        return math.nan
    pairs = zip(answer.p, labels, strict=True)
    squares = [(p - label) ** 2 for p, label in pairs if label is not None]
    return float(np.mean(squares)) if squares else math.nan


def _supported(p: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(verdicts(p, DECISION_TOLERANCE) > 0)


def _card(
    part: Part,
    atom: Atom,
    row: int,
    answers: Mapping[Place, Answer],
    evidence: tuple[EvidenceRow, ...],
) -> AtomCard:
    p = np.array([one.p[row] for one in answers.values() if one.p.size])
    told = tuple(
        tuple(
            _told(answers.get((view, algorithm)), row) for algorithm in range(len(part.algorithms))
        )
        for view in range(len(part.views))
    )
    supported = _supported(p)
    tags = [label_word(atom.label)]
    if atom.label is not None and (supported != atom.label).any():
        tags.append("against")
    if supported.any() and not supported.all():
        tags.append("split")
    return AtomCard(
        atom=atom,
        label=label_word(atom.label),
        now=tuple(one[part.main[1]].text or ABSENT for one in told),
        in_views=tuple(zip(*told, strict=True)),
        told=told,
        evidence=evidence,
        tags=tuple(tags),
        spread=fixed(float(np.ptp(p)) if p.size else None),
    )


def _told(answer: Answer | None, row: int) -> Told:
    if answer is None:
        return Told("")
    if answer.status == FAILED:
        return Told(FAILED_TEXT, answer.error or "")
    return Told(fixed(float(answer.p[row])), unsure=answer.status == "not_converged")


def _evidence(
    graph: FactGraph, removals: Sequence[ViewRemovals]
) -> dict[str, tuple[EvidenceRow, ...]]:
    """Return the evidence of every atom, the strongest first, as any view has it."""
    found: dict[str, dict[tuple[str, RelationKind, float], dict[int, Removal | None]]] = {
        atom: {} for atom in graph.atom_ids
    }
    for view, one in enumerate(removals):
        for atom, items in evidence_of_atoms(graph, one.seen, one.removals).items():
            for item in items:
                key = (item.context, item.relation, item.probability)
                found[atom].setdefault(key, {})[view] = item.removal
    contexts = {context.id: context for context in graph.contexts}
    rows: dict[str, tuple[EvidenceRow, ...]] = {}
    for atom, relations in found.items():
        ordered = sorted(relations.items(), key=lambda entry: -_strength(entry[1], entry[0][2]))
        rows[atom] = tuple(
            EvidenceRow(
                context=context,
                title=contexts[context].title,
                snippet=textwrap.shorten(contexts[context].text, _SNIPPET, placeholder=" …"),
                relation=kind,
                against=kind is RelationKind.CONTRADICTION,
                probability=f"{probability:.2f}",
                without=tuple(_in_views(by_view, len(removals), lambda one: fixed(one.without))),
                changes=tuple(_in_views(by_view, len(removals), lambda one: change(one.change))),
            )
            for (context, kind, probability), by_view in ordered
        )
    return rows


def _strength(by_view: Mapping[int, Removal | None], probability: float) -> float:
    known = [abs(one.change) for one in by_view.values() if one is not None]
    # Without numbers the relation itself says how strong it may be.
    return max(known) if known else probability - 1.0


def _in_views(by_view: Mapping[int, Removal | None], n_views: int, show: Any) -> Iterator[str]:
    for view in range(n_views):
        if view not in by_view:
            yield ""
        else:
            removal = by_view[view]
            yield ABSENT if removal is None else show(removal)


def _contexts(graph: FactGraph, removals: Sequence[ViewRemovals]) -> Iterator[ContextRow]:
    counts = dict.fromkeys(graph.context_ids, 0)
    for relation in graph.relations:
        for end in (relation.source, relation.target):
            if end in counts and relation.kind is not RelationKind.NEUTRAL:
                counts[end] += 1
    largest: list[dict[str, tuple[float, str]]] = []
    for one in removals:
        own: dict[str, tuple[float, str]] = {}
        for atom, items in evidence_of_atoms(graph, one.seen, one.removals).items():
            for item in items:
                if item.removal is not None:
                    before = own.get(item.context, (0.0, ""))
                    if not before[1] or abs(item.removal.change) > abs(before[0]):
                        own[item.context] = (item.removal.change, atom)
        largest.append(own)
    for context in graph.contexts:
        yield ContextRow(
            context=context,
            link=context.link if context.link.startswith(("http://", "https://")) else "",
            n_relations=counts[context.id],
            largest=tuple(
                f"{change(own[context.id][0])} {own[context.id][1]}"
                if context.id in own
                else ABSENT
                for own in largest
            ),
        )


def _cells(
    part: Part, answers: Mapping[Place, Answer], labels: Sequence[bool | None]
) -> Iterator[CellRow]:
    for (view, algorithm), answer in sorted(answers.items()):
        yield CellRow(
            view=part.views[view][0],
            algorithm=part.algorithms[algorithm],
            precision=fixed(precision(answer)),
            mean=fixed(float(answer.p.mean()) if answer.p.size else None),
            brier=fixed(brier(answer, labels)),
            status=answer.status.replace("_", " "),
            error=answer.error or "",
        )


def _failures(part: Part, answers: Mapping[Place, Answer]) -> list[tuple[str, list[str]]]:
    """Return every error with the cells that it ended."""
    found: dict[str, list[str]] = {}
    for place, answer in sorted(answers.items()):
        if answer.status == FAILED:
            found.setdefault(answer.error or "", []).append(part.title(place))
    return list(found.items())


def _drawings(
    part: Part,
    graph: FactGraph,
    answers: Mapping[Place, Answer],
    removals: Sequence[ViewRemovals],
) -> list[tuple[list[int], str, Drawing]]:
    """Return a drawing per variant: (the views that it stands for, its caption, the drawing)."""
    by_variant: dict[str, list[int]] = {}
    for number, (_, view) in enumerate(part.views):
        by_variant.setdefault(view.variant, []).append(number)
    result = []
    for numbers in by_variant.values():
        place = next((one for one in sorted(answers) if one[0] in numbers), None)
        answer = answers.get(place) if place is not None else None
        p = answer.p.tolist() if answer is not None else []
        known = dict(zip(graph.atom_ids, p, strict=True)) if p else {}
        drawing = drawing_of(graph, removals[numbers[0]].seen, known)
        if drawing is not None:
            caption = part.title(place) if place is not None and known else ""
            result.append((numbers, caption, drawing))
    return result
