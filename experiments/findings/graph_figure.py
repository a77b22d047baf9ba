"""A fact graph drawn for a paper: evidence on the left, claims on the right, relations between."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibration.figures.panels import legend_below
from calibration.figures.style import COLOURS, paper_style
from factormodels import Atom, Context, FactGraph, InputError, Relation, RelationKind
from factormodels.claims import SYMMETRIC
from factormodels.control_characters import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibration.figures.shown_figure import ShownFigure

RELATION_COLOURS: Mapping[RelationKind, str] = {
    RelationKind.ENTAILMENT: COLOURS[0],
    RelationKind.CONTRADICTION: COLOURS[1],
    RelationKind.EQUIVALENCE: COLOURS[2],
    RelationKind.NEUTRAL: "0.7",
    RelationKind.EXCLUSIVE: COLOURS[6],
    RelationKind.CO_NECESSITY: COLOURS[3],
}
"""Colours of relations."""

RELATION_DASHES: Mapping[RelationKind, Any] = {
    RelationKind.ENTAILMENT: "-",
    RelationKind.CONTRADICTION: "--",
    RelationKind.EQUIVALENCE: "-.",
    RelationKind.NEUTRAL: ":",
    RelationKind.EXCLUSIVE: (0, (7, 1.5, 1, 1.5, 1, 1.5)),
    RelationKind.CO_NECESSITY: (0, (1.2, 1)),
}
"""Line styles of relations as matplotlib takes them, which with the heads of lines keep them apart
in a print without colour."""

KIND_WORDS: Mapping[RelationKind, str] = {
    **{kind: str(kind) for kind in RelationKind},
    RelationKind.EXCLUSIVE: "exclusive: exactly one",
    RelationKind.CO_NECESSITY: "co-necessity: at least one",
}
"""What a legend says of each kind."""

_SENTENCES: Mapping[RelationKind, str] = {
    RelationKind.ENTAILMENT: "{} entails {}",
    RelationKind.CONTRADICTION: "{} contradicts {}",
    RelationKind.EQUIVALENCE: "{} says the same as {}",
    RelationKind.NEUTRAL: "{} says nothing of {}",
    RelationKind.EXCLUSIVE: "exactly one of {} and {} holds",
    RelationKind.CO_NECESSITY: "at least one of {} and {} holds",
}


def in_words(relation: Relation) -> str:
    """What a relation says of its two ends, by their ids."""
    return _SENTENCES[relation.kind].format(relation.source, relation.target)


MOST_ROWS = 120
"""Claims, and passages, that a drawing has: three times what fits on a page."""

MOST_RELATIONS = 1000

_TWO_HEADS = SYMMETRIC - {RelationKind.CONTRADICTION, RelationKind.NEUTRAL}
"""Kinds whose lines have two heads. A contradiction, which is symmetric too, goes from evidence."""

_WIDTH = 6.9
_ROW_INCHES = 0.36
_LINE_CHARACTERS = 48
_LINES = 2
_EVIDENCE, _CLAIMS = 0.37, 0.63
_BAR = 0.33
_LEGEND_COLUMNS = 5


def draw_fact_graph(
    graph: FactGraph,
    posteriors: Mapping[str, float] | None = None,
    *,
    neutral: bool = False,
    title: str | None = None,
) -> ShownFigure:
    """A drawing of a fact graph: nodes with their texts, relations with their strengths.

    Of a graph that is too large what `legible` chooses is drawn, and what is not is said below. The
    colour and the dashes of a line say what the relation is, its thickness how probable. A
    relation within a column is an arc beside it. The bar of a claim is its posterior, the tick at
    its end the human label, where there is one.

    Args:
        graph: the fact graph.
        posteriors: P(true) by id of atom, in [0, 1]; without them bars show the priors.
        neutral: whether neutral relations are drawn too.
        title: text above, or None.

    Returns:
        A matplotlib Figure 6.9 inches wide, the width of a page of two columns.

    Raises:
        InputError: if the graph has no atoms, or a posterior is missing or outside [0, 1].
    """
    from calibration.figures.shown_figure import ShownFigure

    if not graph.atoms:
        raise InputError(f"fact graph {graph.id!r} has no atoms; there is nothing to draw")
    graph, left_out = legible(graph)
    shown = {atom.id: _probability(atom, posteriors) for atom in graph.atoms}
    contexts = untangled(graph)
    rows = max(len(graph.atoms), len(contexts))
    places = {
        **_places(graph.atom_ids, _CLAIMS, rows),
        **_places([context.id for context in contexts], _EVIDENCE, rows),
    }
    with paper_style():
        figure = ShownFigure(figsize=(_WIDTH, _ROW_INCHES * rows + 0.7), layout="constrained")
        axes = figure.add_subplot()
        axes.set(xlim=(0.0, 1.0), ylim=(-0.7, rows - 0.3))
        axes.set_axis_off()
        kinds = _draw_relations(axes, graph, places, neutral)
        for context in contexts:
            _draw_text(axes, places[context.id], context.id, context.title or context.text, "right")
        for atom in graph.atoms:
            _draw_atom(axes, atom, places[atom.id], shown[atom.id])
        _draw_legend(figure, kinds, "prior" if posteriors is None else "posterior")
        if title:
            axes.set_title(title)
        if left_out:
            figure.supxlabel(left_out, fontsize=6.5)
    return figure


def legible(graph: FactGraph) -> tuple[FactGraph, str]:
    """What of a graph is drawn, and a sentence on what is not; empty where all of it is.

    These are the first `MOST_ROWS` claims, as many passages with the most decided relations to
    them, and the most decided `MOST_RELATIONS` relations between all of these, those that are not
    neutral first. All stand in their order.
    """
    atoms = graph.atoms[:MOST_ROWS]
    places = {atom.id for atom in atoms}
    others = {context.id for context in graph.contexts}
    ranks: dict[str, tuple[bool, float]] = {}
    for relation in graph.relations:
        for one, other in ((relation.source, relation.target), (relation.target, relation.source)):
            if one in others and other in places:
                ranks[one] = max(ranks.get(one, _NO_RANK), _rank(relation))
    best = sorted(graph.contexts, key=lambda context: ranks.get(context.id, _NO_RANK), reverse=True)
    places |= {context.id for context in best[:MOST_ROWS]}
    between = [one for one in graph.relations if {one.source, one.target} <= places]
    decided = sorted(range(len(between)), key=lambda at: _rank(between[at]), reverse=True)
    drawn = replace(
        graph,
        atoms=atoms,
        contexts=tuple(
            replace(one, retrieved_for=tuple(name for name in one.retrieved_for if name in places))
            for one in graph.contexts
            if one.id in places
        ),
        relations=tuple(between[at] for at in sorted(decided[:MOST_RELATIONS])),
    )
    sizes = (
        ("claims", len(graph.atoms), len(drawn.atoms)),
        ("passages", len(graph.contexts), len(drawn.contexts)),
        ("relations", len(graph.relations), len(drawn.relations)),
    )
    lacking = [f"{n - m:,} of {n:,} {noun}" for noun, n, m in sizes if m < n]
    return drawn, f"Not drawn: {', '.join(lacking)}." if lacking else ""


_NO_RANK = (False, -1.0)


def _rank(relation: Relation) -> tuple[bool, float]:
    return relation.kind is not RelationKind.NEUTRAL, abs(relation.probability - 0.5)


def to_dot(graph: FactGraph, posteriors: Mapping[str, float] | None = None) -> str:
    """A fact graph in Graphviz's language; `dot -Tpdf` draws it where Graphviz is installed.

    Args:
        graph: the fact graph.
        posteriors: P(true) by id of atom, in [0, 1]; without them nodes show the priors.

    Raises:
        InputError: if a posterior is missing or outside [0, 1].
    """
    lines = [f"digraph {_quoted(graph.id)} {{", "  rankdir=LR;", "  node [fontsize=10];"]
    for context in graph.contexts:
        label = _label(context.id, context.title or context.text)
        lines.append(f"  {_quoted(context.id)} [shape=box, label={_quoted(label)}];")
    for atom in graph.atoms:
        label = f"{_label(atom.id, atom.text)}\nP = {_probability(atom, posteriors):.2f}"
        lines.append(f"  {_quoted(atom.id)} [shape=ellipse, label={_quoted(label)}];")
    styles = {"-": "solid", "--": "dashed", "-.": "dashed", ":": "dotted"}
    between_claims = {
        RelationKind.EXCLUSIVE: "dashed,bold",
        RelationKind.CO_NECESSITY: "dotted,bold",
    }
    for relation in graph.relations:
        colour = RELATION_COLOURS[relation.kind]
        attributes = {
            "color": colour if colour.startswith("#") else "gray70",
            "style": between_claims.get(relation.kind) or styles[RELATION_DASHES[relation.kind]],
            "label": f"{relation.probability:.2f}",
            "dir": "both" if relation.kind in _TWO_HEADS else "forward",
        }
        listed = ", ".join(f"{name}={_quoted(value)}" for name, value in attributes.items())
        lines.append(f"  {_quoted(relation.source)} -> {_quoted(relation.target)} [{listed}];")
    return "\n".join([*lines, "}", ""])


def _probability(atom: Atom, posteriors: Mapping[str, float] | None) -> float:
    if posteriors is None:
        return atom.prior
    value = posteriors.get(atom.id)
    if value is None:
        raise InputError(f"atom {atom.id!r} has no posterior; give P(true) of every atom by its id")
    if not 0.0 <= value <= 1.0:
        raise InputError(f"the posterior {value} of atom {atom.id!r} is not between 0 and 1")
    return float(value)


def untangled(graph: FactGraph) -> list[Context]:
    """The contexts in the order of the atoms that they bear on, so that few lines cross."""
    rows = {atom.id: row for row, atom in enumerate(graph.atoms)}
    near: dict[str, list[int]] = {context.id: [] for context in graph.contexts}
    for relation in graph.relations:
        for one, other in (
            (relation.source, relation.target),
            (relation.target, relation.source),
        ):
            if one in near and other in rows and relation.kind is not RelationKind.NEUTRAL:
                near[one].append(rows[other])
    # Contexts that bear on no atom go to the bottom.
    last = float(len(rows))
    # By the mean row of its atoms (the barycentre heuristic for layered drawings); stable for ties.
    return sorted(
        graph.contexts,
        key=lambda context: (
            sum(near[context.id]) / len(near[context.id]) if near[context.id] else last
        ),
    )


def _places(names: Sequence[str], x: float, rows: int) -> dict[str, tuple[float, float]]:
    """Where nodes stand, evenly spaced from the top."""
    # A single node stands in the middle.
    step = (rows - 1) / (len(names) - 1) if len(names) > 1 else 0.0
    top = rows - 1 if len(names) > 1 else (rows - 1) / 2
    return {name: (x, top - step * row) for row, name in enumerate(names)}


def _draw_relations(
    axes: Axes, graph: FactGraph, places: Mapping[str, tuple[float, float]], neutral: bool
) -> list[RelationKind]:
    """Draw relations as arrows, and return the kinds that were drawn."""
    from matplotlib.patches import FancyArrowPatch

    drawn = [r for r in graph.relations if neutral or r.kind is not RelationKind.NEUTRAL]
    for relation in drawn:
        start, end = places[relation.source], places[relation.target]
        bend = 0.0
        if start[0] == end[0]:
            # Arcs of both columns lie between them, whatever the direction of the relation.
            outwards = 1.0 if start[0] == _EVIDENCE else -1.0
            bend = 0.35 * outwards * (1.0 if start[1] > end[1] else -1.0)
        axes.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle="<|-|>" if relation.kind in _TWO_HEADS else "-|>",
                connectionstyle=f"arc3,rad={-bend}",
                mutation_scale=5.0,
                shrinkA=3.0,
                shrinkB=3.0,
                color=RELATION_COLOURS[relation.kind],
                linestyle=RELATION_DASHES[relation.kind],
                linewidth=0.3 + 1.2 * relation.probability,
                alpha=0.85,
            )
        )
    return [kind for kind in RelationKind if any(r.kind is kind for r in drawn)]


def _draw_atom(axes: Axes, atom: Atom, place: tuple[float, float], probability: float) -> None:
    x, y = place
    _draw_text(axes, place, atom.id, atom.text, "left")
    left, width, height = x + 0.012, _BAR, 0.1
    # Below the text, within the row.
    low = y - 0.44
    axes.barh(low, width, height, left=left, color="0.9", zorder=1)
    axes.barh(low, width * probability, height, left=left, color="0.35", zorder=2)
    axes.text(left + width + 0.005, low, f"{probability:.2f}", va="center", fontsize=6.0)
    if atom.label is not None:
        end = left + (width if atom.label else 0.0)
        # At the end of the bar that the label names: 1 right, 0 left.
        axes.plot([end, end], [low - 0.13, low + 0.13], color="black", linewidth=1.2, zorder=3)


def _draw_text(axes: Axes, place: tuple[float, float], name: str, text: str, side: str) -> None:
    x, y = place
    axes.plot([x], [y], "o", color="black", markersize=2.5, zorder=4)
    shift = 0.012 if side == "left" else -0.012
    axes.text(
        x + shift, y, _label(name, text), ha=side, va="center", fontsize=6.5, parse_math=False
    )


def _draw_legend(figure: ShownFigure, kinds: Sequence[RelationKind], shown: str) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=RELATION_COLOURS[kind], linestyle=RELATION_DASHES[kind], linewidth=1.4)
        for kind in kinds
    ]
    handles.append(Line2D([], [], color="0.35", linewidth=3.0))
    handles.append(Line2D([], [], color="black", marker="|", linestyle="none"))
    names = [
        *(KIND_WORDS[kind] for kind in kinds),
        f"{shown} of being true",
        "human label (0 or 1)",
    ]
    # More than five do not fit beside each other.
    columns = len(handles) if len(handles) <= _LEGEND_COLUMNS else -(-len(handles) // 2)
    legend_below(figure, handles, names, columns)


def _label(name: str, text: str) -> str:
    """The id and the beginning of a text, in at most two lines."""
    whole = f"{name}: {' '.join(text.split())}" if text else name
    lines = textwrap.wrap(printable(whole), _LINE_CHARACTERS, max_lines=_LINES, placeholder=" …")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
