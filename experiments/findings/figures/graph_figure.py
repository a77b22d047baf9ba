"""A fact graph drawn for a paper: evidence on the left, claims on the right, relations between."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from calibration.figures.panels import PAGE, legend_within
from calibration.figures.style import COLORS, paper_style
from factormodels import Atom, Context, FactGraph, InputError, Relation, RelationKind
from factormodels.claims import SYMMETRIC
from factormodels.control_characters import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

    from calibration.figures.shown_figure import ShownFigure

RELATION_COLORS: Mapping[RelationKind, str] = {
    RelationKind.ENTAILMENT: COLORS[0],
    RelationKind.CONTRADICTION: COLORS[1],
    RelationKind.EQUIVALENCE: COLORS[2],
    RelationKind.NEUTRAL: "0.7",
    RelationKind.EXCLUSIVE: COLORS[6],
    RelationKind.CO_NECESSITY: COLORS[3],
}
"""Colors of relations."""

RELATION_DASHES: Mapping[RelationKind, Any] = {
    RelationKind.ENTAILMENT: "-",
    RelationKind.CONTRADICTION: "--",
    RelationKind.EQUIVALENCE: "-.",
    RelationKind.NEUTRAL: ":",
    RelationKind.EXCLUSIVE: (0, (7, 1.5, 1, 1.5, 1, 1.5)),
    RelationKind.CO_NECESSITY: (0, (1.2, 1)),
}
"""Line styles of relations for matplotlib, which together with arrowheads distinguish relations in
print without color."""

KIND_WORDS: Mapping[RelationKind, str] = {
    **{kind: str(kind) for kind in RelationKind},
    RelationKind.EXCLUSIVE: "exclusive: exactly one",
    RelationKind.CO_NECESSITY: "co-necessity: at least one",
}
"""Label of each kind in a legend."""

_SENTENCES: Mapping[RelationKind, str] = {
    RelationKind.ENTAILMENT: "{} entails {}",
    RelationKind.CONTRADICTION: "{} contradicts {}",
    RelationKind.EQUIVALENCE: "{} says the same as {}",
    RelationKind.NEUTRAL: "{} says nothing of {}",
    RelationKind.EXCLUSIVE: "exactly one of {} and {} holds",
    RelationKind.CO_NECESSITY: "at least one of {} and {} holds",
}


def in_words(relation: Relation) -> str:
    """Describe a relation in words, by the ids of its two ends."""
    return _SENTENCES[relation.kind].format(relation.source, relation.target)


MOST_ROWS = 120
"""Maximum number of claims, and of passages, in a drawing: three times as many as fit on a page."""

MOST_RELATIONS = 1000

_TWO_HEADS = SYMMETRIC - {RelationKind.CONTRADICTION, RelationKind.NEUTRAL}
"""Kinds whose lines have two heads. A contradiction, although symmetric, starts at the evidence."""

LETTERS_SIZE = 8.25
"""Size of all letters, in points: 11 pixels on a screen that shows the drawing at its actual
size."""

_LINE = 0.138
"""Height of a line of these letters, in inches."""

_LETTER = 0.054
"""Width of a letter, in inches."""

_MOST_LETTERS, _LEAST_LETTERS = 94, 12
"""Number of letters of a text that are shown at any width, and the minimum letters of a line."""

_BAR_ROOM = 0.19
"""Height of a row below its text, in inches: the bar and the space around it."""

_EVIDENCE, _CLAIMS = 0.37, 0.63
"""Horizontal positions of the points of evidence and claims, as shares of the width."""

_APART = 0.07
"""Inches between a point and its text."""

_NUMBER = 0.3
"""Inches at the right for the number after a bar."""

_LEGEND_COLUMNS = 5


@dataclass(frozen=True)
class _Size:
    """Size of a drawing, in inches; the units of the axes are widths and rows.

    Attributes:
        width: width of the drawing.
        text: height of the tallest text.
    """

    width: float
    text: float

    @property
    def row(self) -> float:
        """Height of a row."""
        return self.text + _BAR_ROOM

    def across(self, inches: float) -> float:
        """Convert a horizontal distance to widths."""
        return inches / self.width

    def up(self, inches: float) -> float:
        """Convert a vertical distance to rows."""
        return inches / self.row


def draw_fact_graph(
    graph: FactGraph,
    posteriors: Mapping[str, float] | None = None,
    *,
    neutral: bool = False,
    title: str | None = None,
    width: float = PAGE,
) -> ShownFigure:
    """Draw a fact graph: nodes with their texts, relations with their strengths.

    If a graph is too large, the part that `legible` chooses is drawn, and a sentence below names
    the rest. The color and dashes of a line show the kind of relation, its thickness the
    probability. A relation within a column is an arc beside it. The bar of a claim shows its
    posterior, and the tick at its end the human label, if there is one.

    Args:
        graph: the fact graph.
        posteriors: P(true) by id of atom, in [0, 1]; without them bars show the priors.
        neutral: whether neutral relations are drawn too.
        title: text above, or None.
        width: width of the figure, in inches; narrow figures break texts into more lines.

    Returns:
        A matplotlib Figure, by default as wide as a page of two columns. Its letters have 8.25
        points at any width.

    Raises:
        InputError: if the graph has no atoms, or a posterior is missing or outside [0, 1].
    """
    from calibration.figures.shown_figure import ShownFigure

    if not graph.atoms:
        raise InputError(f"fact graph {graph.id!r} has no atoms; there is nothing to draw")
    graph, left_out = legible(graph)
    shown = {atom.id: _probability(atom, posteriors) for atom in graph.atoms}
    figure = ShownFigure(figsize=(width, width))
    bar = f"{'prior' if posteriors is None else 'posterior'} of being true"

    def arrange() -> None:
        figure.clear()
        with paper_style():
            _draw(figure, graph, shown, bar, (title or "", left_out), neutral=neutral)

    figure.arranged_by(arrange)
    return figure


def _draw(
    figure: ShownFigure,
    graph: FactGraph,
    shown: Mapping[str, float],
    bar: str,
    texts: tuple[str, str],
    *,
    neutral: bool,
) -> None:
    """Draw a graph at the width of a figure, and set its height.

    Args:
        figure: an empty figure.
        graph: the graph.
        shown: what the bar of each claim shows.
        bar: description of the bars in the legend.
        texts: texts above and below; empty for none.
        neutral: whether neutral relations are drawn too.
    """
    width = figure.get_figwidth()
    letters = max(int((_EVIDENCE * width - _APART) / _LETTER), _LEAST_LETTERS)
    contexts = untangled(graph)
    nodes = {
        **{context.id: context.title or context.text for context in contexts},
        **{atom.id: atom.text for atom in graph.atoms},
    }
    labels = {
        name: _label(figure.named(name), figure.named(text), letters)
        for name, text in nodes.items()
    }
    size = _Size(width, max(map(_height, labels.values())))
    rows = max(len(graph.atoms), len(contexts))
    places = {
        **_places(graph.atom_ids, _CLAIMS, rows),
        **_places([context.id for context in contexts], _EVIDENCE, rows),
    }
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    # The point of a node is at the middle of its text, at the top of its row.
    above_point = size.up(size.text / 2)
    axes.set(xlim=(0.0, 1.0), ylim=(above_point - 1.0, above_point + rows - 1.0))
    axes.set_axis_off()
    kinds = _draw_relations(axes, graph, places, neutral)
    for context in contexts:
        _draw_text(axes, places[context.id], labels[context.id], "right", size)
    for atom in graph.atoms:
        _draw_text(axes, places[atom.id], labels[atom.id], "left", size)
        _draw_bar(axes, atom, places[atom.id], shown[atom.id], size, _height(labels[atom.id]))
    legend = _legend(figure, kinds, bar, any(atom.label is not None for atom in graph.atoms))
    heights = [legend.get_window_extent().height / figure.dpi + _EDGE]
    above, below = texts
    written = []
    for text, write in ((below, figure.supxlabel), (above, figure.suptitle)):
        lines = textwrap.wrap(text, int(size.width / _LETTER))
        heights.append(len(lines) * _LINE + (_EDGE if lines else 0.0))
        written.append(write("\n".join(lines), fontsize=LETTERS_SIZE, parse_math=False))
    under = heights[0] + heights[1]
    whole = under + rows * size.row + heights[2] + 2 * _EDGE
    figure.set_size_inches(size.width, whole)
    axes.set_position((0.0, (under + _EDGE) / whole, 1.0, rows * size.row / whole))
    legend.set_bbox_to_anchor((0.5, (heights[1] + _EDGE / 2) / whole), figure.transFigure)
    for line, at in zip(written, (_EDGE / 2, whole - _EDGE / 2), strict=True):
        line.set_y(at / whole)


_EDGE = 0.06
"""Inches around the texts above and below a graph."""


def legible(graph: FactGraph) -> tuple[FactGraph, str]:
    """Return the part of a graph to draw, and a sentence on the rest; empty if all is drawn.

    The part has the first `MOST_ROWS` claims, at most as many passages, namely those with the most
    decided relations to these claims, and the `MOST_RELATIONS` most decided relations between them,
    neutral ones last. All keep their order.
    """
    atoms = graph.atoms[:MOST_ROWS]
    places = {atom.id for atom in atoms}
    others = {context.id for context in graph.contexts}
    ranks: dict[str, tuple[bool, float]] = {}
    for relation in graph.relations:
        for end, other in ((relation.source, relation.target), (relation.target, relation.source)):
            if end in others and other in places:
                ranks[end] = max(ranks.get(end, _NO_RANK), _rank(relation))
    best = sorted(graph.contexts, key=lambda context: ranks.get(context.id, _NO_RANK), reverse=True)
    places |= {context.id for context in best[:MOST_ROWS]}
    between = [
        relation for relation in graph.relations if {relation.source, relation.target} <= places
    ]
    decided = sorted(range(len(between)), key=lambda at: _rank(between[at]), reverse=True)
    drawn = replace(
        graph,
        atoms=atoms,
        contexts=tuple(
            replace(
                context,
                retrieved_for=tuple(name for name in context.retrieved_for if name in places),
            )
            for context in graph.contexts
            if context.id in places
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
        color = RELATION_COLORS[relation.kind]
        attributes = {
            "color": color if color.startswith("#") else "gray70",
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
    """The contexts, in the order of the atoms that they are related to, so that few lines cross."""
    rows = {atom.id: row for row, atom in enumerate(graph.atoms)}
    near: dict[str, list[int]] = {context.id: [] for context in graph.contexts}
    for relation in graph.relations:
        for end, other in (
            (relation.source, relation.target),
            (relation.target, relation.source),
        ):
            if end in near and other in rows and relation.kind is not RelationKind.NEUTRAL:
                near[end].append(rows[other])
    # Contexts without a related atom go to the bottom.
    last = float(len(rows))
    # By the mean row of its atoms (the barycenter heuristic for layered drawings); stable for ties.
    return sorted(
        graph.contexts,
        key=lambda context: (
            sum(near[context.id]) / len(near[context.id]) if near[context.id] else last
        ),
    )


def _places(names: Sequence[str], x: float, rows: int) -> dict[str, tuple[float, float]]:
    """Vertical positions of nodes, evenly spaced from the top."""
    # A single node is in the middle.
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
                color=RELATION_COLORS[relation.kind],
                linestyle=RELATION_DASHES[relation.kind],
                linewidth=0.3 + 1.2 * relation.probability,
                alpha=0.85,
            )
        )
    return [kind for kind in RelationKind if any(r.kind is kind for r in drawn)]


def _draw_bar(
    axes: Axes,
    atom: Atom,
    corner: tuple[float, float],
    probability: float,
    size: _Size,
    text: float,
) -> None:
    """Draw the bar of a claim and its label below its text, whose height is `text` inches."""
    x, y = corner
    left = x + size.across(_APART)
    width = 1.0 - size.across(_NUMBER) - left
    low, height = y - size.up(text / 2 + 0.45 * _BAR_ROOM), size.up(0.04)
    axes.barh(low, width, height, left=left, color="0.9", zorder=1)
    axes.barh(low, width * probability, height, left=left, color="0.35", zorder=2)
    axes.text(
        left + width + size.across(0.04), low, f"{probability:.2f}", va="center",
        fontsize=LETTERS_SIZE,
    )  # fmt: skip
    if atom.label is not None:
        end = left + (width if atom.label else 0.0)
        # At the end of the bar that the label names: 1 right, 0 left.
        reach = size.up(0.05)
        axes.plot([end, end], [low - reach, low + reach], color="black", linewidth=1.2, zorder=3)


def _draw_text(axes: Axes, corner: tuple[float, float], text: str, side: str, size: _Size) -> None:
    x, y = corner
    axes.plot([x], [y], "o", color="black", markersize=2.5, zorder=4)
    shift = size.across(_APART) * (1 if side == "left" else -1)
    axes.text(
        x + shift, y, text, ha=side, va="center", fontsize=LETTERS_SIZE, linespacing=1.1,
        parse_math=False,
    )  # fmt: skip


def _legend(
    figure: ShownFigure, kinds: Sequence[RelationKind], bar: str, has_labels: bool
) -> Legend:
    """Make the legend at the lower edge, with human labels if there are any, and return it."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=RELATION_COLORS[kind], linestyle=RELATION_DASHES[kind], linewidth=1.4)
        for kind in kinds
    ]
    handles.append(Line2D([], [], color="0.35", linewidth=3.0))
    names = [*(KIND_WORDS[kind] for kind in kinds), bar]
    if has_labels:
        handles.append(Line2D([], [], color="black", marker="|", linestyle="none"))
        names.append("human label (0 or 1)")
    # More than five do not fit beside each other.
    columns = len(handles) if len(handles) <= _LEGEND_COLUMNS else -(-len(handles) // 2)
    return legend_within(figure, handles, names, columns, loc="lower center", fontsize=LETTERS_SIZE)


def _label(name: str, text: str, letters: int = _MOST_LETTERS // 2) -> str:
    """Return the id and the beginning of a text, in lines of `letters` letters."""
    whole = f"{name}: {' '.join(text.split())}" if text else name
    most = max(-(-_MOST_LETTERS // letters), 2)
    lines = textwrap.wrap(printable(whole), letters, max_lines=most, placeholder=" …")
    return "\n".join(lines)


def _height(label: str) -> float:
    """Return the height of a label in inches."""
    return (1 + label.count("\n")) * _LINE


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
