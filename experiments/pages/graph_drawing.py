"""A fact graph as the shapes of a drawing within a page: evidence left, claims right."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.evaluators.evidence import recorded_context
from experiments.findings.graph_figure import in_words, untangled
from factormodels.claims import SYMMETRIC, RelationKind
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
