"""The page of one response: its atoms, what each cell says of them, and what speaks for it."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.scores.measures import DECISION_TOLERANCE, verdicts
from experiments.evaluators.evidence import (
    ContextEvidence,
    Removal,
    evidence_of_atoms,
    recorded_context,
)
from experiments.evaluators.listed_evidence import n_relations
from experiments.evaluators.marked_texts import deciding_sentences, marked_response
from experiments.findings.graph_figure import KIND_WORDS, in_words, untangled
from experiments.pages.pages import ABSENT, change, fixed, label_word
from experiments.pages.removals import ViewRemovals
from experiments.pages.reported_datasets import Answer, Part, Place
from experiments.study.rows import UNANSWERED
from factormodels.claims import CONFLICTS, SYMMETRIC, RelationKind
from factormodels.fact_graph import FactGraph

MAX_NODES = 60
MAX_RELATIONS = 200
"""Beyond these a drawing is a tangle, and is left out."""

_WIDTH = 960
_BAR = 270
"""What a claim's bar takes beside its dot, with the number behind it, in pixels."""
_ROW = 48
_MARGIN = 14
_EVIDENCE, _CLAIMS = 372, 588
_CHARACTERS = 56


Shape = dict[str, Any]
"""A node (id as recorded, x and y of its dot in pixels, lines of its text; of an atom also p, its
posterior, and its human label), or an edge (kind, path as SVG takes it, width in pixels, title, and
whether both ends have a head)."""


@dataclass(frozen=True)
class Drawing:
    """A drawing, as wide as its texts ask for.

    Attributes:
        left: where it begins, in pixels.
        width: in pixels.
        height: in pixels.
        contexts: the nodes on the left.
        atoms: those on the right.
        edges: the relations that are not neutral.
    """

    left: int
    width: int
    height: int
    contexts: list[Shape]
    atoms: list[Shape]
    edges: list[Shape]

    @property
    def kinds(self) -> list[RelationKind]:
        """The kinds that it has, in the order of all."""
        return [kind for kind in RelationKind if any(edge["kind"] is kind for edge in self.edges)]


def drawing_of(
    graph: FactGraph, seen: FactGraph, posteriors: Mapping[str, float]
) -> Drawing | None:
    """The drawing of a view of a response; None if it is too large, or has nothing.

    Args:
        graph: the response as recorded.
        seen: the view.
        posteriors: P(true) by id of the atom, where known.
    """
    relations = [one for one in seen.relations if one.kind is not RelationKind.NEUTRAL]
    n_nodes = len(seen.atoms) + len(seen.contexts)
    if not seen.atoms or n_nodes > MAX_NODES or len(relations) > MAX_RELATIONS:
        return None
    contexts = untangled(seen)
    rows = max(len(seen.atoms), len(contexts))
    height = _ROW * rows + 2 * _MARGIN
    places: dict[str, tuple[int, float]] = {}
    for x, names in ((_EVIDENCE, [one.id for one in contexts]), (_CLAIMS, list(seen.atom_ids))):
        # The shorter column is spread over the full height.
        step = (height - 2 * _MARGIN) / max(1, len(names))
        places |= {name: (x, _MARGIN + step * (row + 0.5)) for row, name in enumerate(names)}
    nodes = []
    for context in contexts:
        # FR1 has a copy of a context per atom; it is shown under its recorded name.
        served = context.retrieved_for[0] if context.retrieved_for else ""
        name = recorded_context(context.id, served, graph)
        nodes.append(_node(name, places[context.id], context.title or context.text))
    atoms = [
        _node(atom.id, places[atom.id], atom.text)
        | {"p": posteriors.get(atom.id), "label": atom.label}
        for atom in seen.atoms
    ]
    edges = [
        {
            "kind": one.kind,
            "path": _path(places[one.source], places[one.target]),
            # Rounded to what can be seen, which keeps pages short and the same on every platform.
            "width": round(0.6 + 2.0 * one.probability, 2),
            "title": f"{in_words(one)}, probability {one.probability:.2f}",
            "both": one.kind in SYMMETRIC - {RelationKind.CONTRADICTION},
        }
        for one in relations
    ]
    left = max(0, _EVIDENCE - _widest(nodes) - 2 * _MARGIN)
    right = min(_WIDTH, _CLAIMS + max(_BAR, _widest(atoms)) + 2 * _MARGIN)
    return Drawing(left, right - left, height, nodes, atoms, edges)


def _widest(nodes: Sequence[Shape]) -> int:
    """About how wide the longest line is, in pixels; rather more than less."""
    lines = (line for node in nodes for line in node["lines"])
    # Letters of East Asia are as wide as they are high, which others seldom are.
    return max(
        (sum(12 if ord(letter) > 0x2E7F else 8 for letter in line) for line in lines), default=0
    )


def _path(start: tuple[int, float], end: tuple[int, float]) -> str:
    """A cubic Bézier curve from the edge of one dot to that of another, as SVG takes it."""
    (x, y), (to_x, to_y) = start, end
    if x == to_x:
        # A relation within a column bulges into the space between the columns.
        bulge = min(90.0, 24.0 + 0.25 * abs(to_y - y)) * (1 if x == _EVIDENCE else -1)
        side = 6 if x == _EVIDENCE else -6
        first, last = (x + side, y), (to_x + side, to_y)
        control = (x + bulge, y), (to_x + bulge, to_y)
    else:
        side = 6 if x < to_x else -6
        first, last = (x + side, y), (to_x - side, to_y)
        control = (x + 12 * side, y), (to_x - 12 * side, to_y)
    # Five digits are a fraction of a pixel, and keep pages small.
    points = " ".join(f"{a:.5g},{b:.5g}" for a, b in (*control, last))
    return f"M{first[0]:.5g},{first[1]:.5g} C{points}"


def _node(name: str, place: tuple[int, float], text: str) -> Shape:
    whole = f"{name}: {' '.join(text.split())}" if text else name
    lines = textwrap.wrap(whole, _CHARACTERS, max_lines=2, placeholder=" …")
    return {"id": name, "x": place[0], "y": place[1], "lines": lines}


_Bearing = Mapping[str, Sequence[ContextEvidence]]
"""What bears on each atom in one view, by its id; nothing where the view is not known."""


@dataclass(frozen=True)
class ShownAnswer:
    """What one cell says of an atom.

    Attributes:
        text: the posterior, why there is none (a status), or empty where the cell was not asked.
        error: why it failed.
        unsure: whether inference ended without converging.
    """

    text: str
    error: str = ""
    unsure: bool = False


def response_page(part: Part, graph: FactGraph, removals: Sequence[ViewRemovals]) -> dict[str, Any]:
    """What the template of a response's page shows.

    Args:
        part: its dataset.
        graph: the response.
        removals: of the contexts, per view of the dataset.
    """
    answers = part.answers.get(graph.id, {})
    bearing = [
        {} if one.seen is None else evidence_of_atoms(graph, one.seen, one.removals)
        for one in removals
    ]
    evidence = _evidence(graph, bearing)
    labels = [atom.label for atom in graph.atoms]
    pieces, nowhere = marked_response(graph)
    drawings = _drawings(part, graph, answers, removals)
    return {
        "graph": graph,
        "pieces": pieces,
        "nowhere": nowhere,
        "part": part,
        "views": [title for title, _ in part.views],
        "cards": [
            _card(part, graph, row, removals, evidence[atom.id])
            for row, atom in enumerate(graph.atoms)
        ],
        # An assessor stands behind the last view, where there is none to show.
        "main_view": min(part.main[0], len(part.views) - 1),
        "remarks": part.remarks.get(graph.id, ()),
        "contexts": list(_contexts(graph, removals, bearing)),
        "context_numbers": {name: number for number, name in enumerate(graph.context_ids, 1)},
        "cells": list(_cells(part, answers, labels)),
        "drawings": drawings,
        "drawn_kinds": [
            kind for kind in RelationKind if any(kind in own.kinds for *_, own in drawings)
        ],
        "kind_words": KIND_WORDS,
        "n_labelled": sum(label is not None for label in labels),
        "n_true": sum(label is True for label in labels),
        "skipped": Counter(
            one.reason for one in removals if one.seen is not None and one.removals is None
        ),
        "unknown": _by_text("" if one.seen is not None else one.reason for one in removals),
        "learned": _by_text(one.learned for one in removals),
        "failures": _failures(part, answers),
    }


def precision(answer: Answer) -> float:
    """The share of judged atoms with P above 1/2; NaN without any."""
    return float(_supported(answer.judged).mean()) if answer.judged.size else math.nan


def brier(answer: Answer, labels: Sequence[bool | None]) -> float:
    """The Brier score over the judged and labelled atoms of a response; NaN without any."""
    if answer.status in UNANSWERED:
        return math.nan
    pairs = zip(answer.p.tolist(), labels, strict=True)
    squares = [(p - label) ** 2 for p, label in pairs if label is not None and not math.isnan(p)]
    return float(np.mean(squares)) if squares else math.nan


def _supported(p: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(verdicts(p, DECISION_TOLERANCE) > 0)


def _by_text(texts: Iterable[str]) -> list[tuple[list[int], str]]:
    """Each text of views that have one, with their numbers."""
    found: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if text:
            found.setdefault(text, []).append(number)
    return [(numbers, text) for text, numbers in found.items()]


def _card(
    part: Part,
    graph: FactGraph,
    row: int,
    removals: Sequence[ViewRemovals],
    evidence: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """All that is said of an atom, over all views and algorithms."""
    atom = graph.atoms[row]
    p = np.array([one.p[row] for one in part.answers.get(graph.id, {}).values() if one.p.size])
    p = p[~np.isnan(p)]
    told = [
        [
            _told(part.answer(graph.id, view, algorithm), row)
            for algorithm in range(len(part.algorithms))
        ]
        for view in range(len(part.views))
    ]
    # Over all cells: they are compared with the label, and with each other.
    supported = _supported(p)
    tags = [label_word(atom.label)]
    if atom.label is not None and (supported != atom.label).any():
        tags.append("against")
    if supported.any() and not supported.all():
        tags.append("split")
    own = part.kept_by.get(graph.id)
    kept_by = () if own is None else own[row]
    tags += [f"in:{name}" for name in kept_by]
    known = [view for view, one in enumerate(removals) if one.seen is not None]
    # Empty where the view lacks the relation; `ABSENT` where only its effect is not known.
    borne = {view for view in known for one in evidence if one["without"][view]}
    return {
        "atom": atom,
        "label": label_word(atom.label),
        # Per view, what the algorithm says that is shown first.
        "now": [one[part.main[1]].text or ABSENT for one in told],
        # Per algorithm, what it says in each view; and per view, what each algorithm says.
        "in_views": list(zip(*told, strict=True)),
        "told": told,
        "evidence": evidence,
        # Numbers of the views in which anything speaks for or against it, and of those in which
        # nothing does; of the others that is not known.
        "with_evidence": sorted(borne),
        "without_evidence": [view for view in known if view not in borne],
        "kept_by": kept_by,
        # What it can be found by.
        "tags": tags,
        # The largest less the smallest posterior over all cells.
        "spread": fixed(float(np.ptp(p)) if p.size else None),
        # Of the algorithm and view that are shown first.
        "verdict": _verdict(part.answers.get(graph.id, {}).get(part.main), row),
    }


def _verdict(answer: Answer | None, row: int) -> str:
    if answer is None or answer.status in UNANSWERED or math.isnan(answer.p[row]):
        return "unknown"
    (sign,) = verdicts(answer.p[row : row + 1], DECISION_TOLERANCE).tolist()
    return {1: "supported", -1: "contradicted", 0: "undecided"}[sign]


def _told(answer: Answer | None, row: int) -> ShownAnswer:
    if answer is None:
        return ShownAnswer("")
    if answer.status in UNANSWERED:
        return ShownAnswer(answer.status, answer.error or "")
    return ShownAnswer(fixed(float(answer.p[row])), unsure=answer.status == "not_converged")


def _evidence(graph: FactGraph, bearing: Sequence[_Bearing]) -> dict[str, list[dict[str, Any]]]:
    """The relations that join contexts to every atom, the strongest first, as any view has them."""
    found: dict[str, dict[tuple[str, RelationKind, float], dict[int, Removal | None]]] = {
        atom: {} for atom in graph.atom_ids
    }
    for view, own in enumerate(bearing):
        for atom, items in own.items():
            for item in items:
                # One row for all views that agree on the relation; where they differ, a row each.
                key = (item.context, item.relation, item.probability)
                found[atom].setdefault(key, {})[view] = item.removal
    contexts = {context.id: context for context in graph.contexts}
    texts = {one.id: one.text for one in graph.atoms}
    shown = [(atom, context, kind) for atom, own in found.items() for context, kind, _ in own]
    passages = [(contexts[context].content, texts[atom], kind) for atom, context, kind in shown]
    decides = dict(zip(shown, deciding_sentences(passages), strict=True))
    rows: dict[str, list[dict[str, Any]]] = {}
    for atom, relations in found.items():
        # The strongest effect in any view; stable, so that ties stay in the order of the relations.
        ordered = sorted(
            relations.items(),
            key=lambda entry: (
                -max(
                    (abs(one.change) for one in entry[1].values() if one is not None),
                    # Without numbers the relation itself says how strong it may be.
                    default=entry[0][2] - 1.0,
                )
            ),
        )
        rows[atom] = [
            {
                "context": context,
                "title": contexts[context].title,
                "snippet": decides[atom, context, kind],
                "relation": kind,
                "against": kind in CONFLICTS,
                "probability": f"{probability:.2f}",
                # Per view the posterior without the context, and what it loses.
                "without": list(_in_views(by_view, len(bearing), lambda one: fixed(one.without))),
                "changes": list(_in_views(by_view, len(bearing), _change)),
            }
            for (context, kind, probability), by_view in ordered
        ]
    return rows


def _change(one: Removal) -> str:
    # An estimate has its standard error beside it.
    error = f" ± {one.error:.3f}" if one.error else ""
    return f"{change(one.change)}{error}"


def _in_views(by_view: Mapping[int, Removal | None], n_views: int, show: Any) -> Iterator[str]:
    for view in range(n_views):
        if view not in by_view:
            yield ""
        else:
            removal = by_view[view]
            yield ABSENT if removal is None else show(removal)


def _contexts(
    graph: FactGraph, removals: Sequence[ViewRemovals], bearing: Sequence[_Bearing]
) -> Iterator[dict[str, Any]]:
    """Yield what contexts do, per view: their relations, and the largest change by removing one."""
    counts = [
        None
        if one.seen is None
        else dict(zip(graph.context_ids, n_relations(graph, one.seen), strict=True))
        for one in removals
    ]
    largest: list[dict[str, tuple[float, str]]] = []
    for by_atom in bearing:
        own: dict[str, tuple[float, str]] = {}
        # Over all atoms, to find the one on which a context bears most.
        for atom, items in by_atom.items():
            for item in items:
                if item.removal is not None:
                    before = own.get(item.context, (0.0, ""))
                    if not before[1] or abs(item.removal.change) > abs(before[0]):
                        own[item.context] = (item.removal.change, atom)
        largest.append(own)
    for context in graph.contexts:
        yield {
            "context": context,
            # No other scheme: a link of a data set could be a script.
            "link": context.link if context.link.startswith(("http://", "https://")) else "",
            "n_relations": [ABSENT if own is None else str(own[context.id]) for own in counts],
            "largest": [
                f"{change(own[context.id][0])} {own[context.id][1]}"
                if context.id in own
                else ABSENT
                for own in largest
            ],
        }


def _cells(
    part: Part, answers: Mapping[Place, Answer], labels: Sequence[bool | None]
) -> Iterator[dict[str, Any]]:
    """Yield what each cell says of the response."""
    for place, answer in sorted(answers.items()):
        missing = answer.p.size - answer.judged.size
        yield {
            "view": part.view(place),
            "algorithm": part.algorithms[place[1]],
            "precision": fixed(precision(answer)),
            "mean": fixed(float(answer.judged.mean()) if answer.judged.size else None),
            "brier": fixed(brier(answer, labels)),
            "status": answer.status.replace("_", " ") + (f", {missing} missing" if missing else ""),
            "error": answer.error or "",
        }


def _failures(part: Part, answers: Mapping[Place, Answer]) -> list[tuple[str, list[str]]]:
    """Every error with the cells that it ended."""
    found: dict[str, list[str]] = {}
    for place, answer in sorted(answers.items()):
        if answer.status in UNANSWERED:
            found.setdefault(answer.error or "", []).append(part.title(place))
    return list(found.items())


def _drawings(
    part: Part,
    graph: FactGraph,
    answers: Mapping[Place, Answer],
    removals: Sequence[ViewRemovals],
) -> list[tuple[list[int], str, Drawing]]:
    """A drawing per variant and source of relations.

    Each is (the views that it stands for, its caption, the drawing).
    """
    found: dict[tuple[str, str], list[int]] = {}
    for number, (_, view) in enumerate(part.views):
        found.setdefault((view.variant, view.relation_model), []).append(number)
    result = []
    # Encodings and priors do not change which relations there are, so they share a drawing.
    for numbers in found.values():
        seen = removals[numbers[0]].seen
        if seen is None:
            continue
        place = next((one for one in sorted(answers) if one[0] in numbers), None)
        answer = answers.get(place) if place is not None else None
        p = answer.p.tolist() if answer is not None else []
        named = zip(graph.atom_ids, p, strict=True) if p else ()
        known = {atom: value for atom, value in named if not math.isnan(value)}
        drawing = drawing_of(graph, seen, known)
        if drawing is not None:
            caption = part.title(place) if place is not None and known else ""
            result.append((numbers, caption, drawing))
    return result
