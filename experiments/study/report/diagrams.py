"""The reliability diagrams of a study, with few and distinguishable curves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration.cells import are_close
from experiments.columns.cell_names import NO_GRAPH, UNANSWERED
from experiments.findings.artifacts import Origin, PaperFigure, write_artifact
from experiments.findings.figures.reliability import reliability_figure
from experiments.findings.table import renaming
from experiments.findings.venues import DEFAULT_VENUE, VENUES, Venue
from experiments.study.config import OWN_PRIORS
from experiments.study.report.frame import read_judgments
from experiments.study.report.scores import REFERENCE
from experiments.study.rows import CellRows, RowsFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calibration.curves import CorpCurve, ReliabilityBins
    from experiments.study.config import Study

MAX_CURVES = 9
"""Largest number of curves in a diagram; of more, backends other than exact are left out first."""

_DIMENSIONS = ("variant", "relation_model", "prior", "strength", "seed", "backend_label")


@dataclass(frozen=True)
class Curve:
    """Cells that share a curve.

    Attributes:
        cells: parts of each cell's name, the drawn cell first.
        p: posteriors (n,).
        label: human labels (n,), NaN without a label.
        response: indices of the responses (n,).
    """

    cells: tuple[tuple[str, ...], ...]
    p: NDArray[np.float64]
    label: NDArray[np.float64]
    response: NDArray[Any]


@dataclass(frozen=True)
class Diagram:
    """A reliability diagram.

    Attributes:
        stem: name of its files.
        title: its dataset and encoding.
        shown: the diagram and its numbers.
    """

    stem: str
    title: str
    shown: PaperFigure

    @property
    def remark(self) -> str:
        """Reason why the diagram is not written; empty if it is."""
        why = self.shown.absence
        return f"There is no reliability diagram of {self.title}: {why}." if why else ""

    @property
    def figure(self) -> Figure:
        """The diagram alone."""
        return self.shown.figure


def write_diagrams(
    drawn: Iterable[Diagram], folder: Path, origin: Origin, venue: Venue = VENUES[DEFAULT_VENUE]
) -> list[Path]:
    """Write informative reliability diagrams, with their numbers as CSV; return the files.

    Args:
        drawn: the diagrams.
        folder: output folder.
        origin: origin of the diagrams.
        venue: venue of the figures.
    """
    return [
        path
        for diagram in drawn
        if not diagram.shown.absence
        for path in write_artifact(diagram.shown, folder, diagram.stem, origin, venue)
    ]


def diagrams(rows: RowsFile, study: Study) -> Iterator[Diagram]:
    """Yield a reliability diagram per encoding and dataset with labels.

    The dataset with the most labeled atoms under the study's first encoding is called
    reliability, each other diagram reliability-DATASET-ENCODING. A dataset without labels has none.

    Args:
        rows: tidy rows of a study.
        study: the study, whose seed the bootstrap over responses uses.
    """
    panels: dict[tuple[str, str], list[CellRows]] = {}
    assessors: list[CellRows] = []
    for cell in rows.cells():
        named = cell.named()
        if named["variant"] == NO_GRAPH:
            assessors.append(cell)
        else:
            panels.setdefault((named["dataset"], named["encoding"]), []).append(cell)
    # An assessor has no encoding, so it appears in every diagram of its dataset.
    for (dataset, _), cells in panels.items():
        cells += [cell for cell in assessors if cell.named()["dataset"] == dataset]
    labeled = {
        # Maximum over cells, since a cell with missing units has fewer rows.
        key: max(rows.read(cell, ["label"])["label"].drop_null().length() for cell in cells)
        for key, cells in panels.items()
    }
    # The first among equals, which has the study's first encoding.
    main = max(labeled, key=lambda key: labeled[key], default=None)
    for key, cells in panels.items():
        if not labeled[key]:
            continue
        curves = _readable(distinct_curves(rows, cells))
        if not curves:
            continue
        # The legend names only values that differ among the cells of this diagram.
        everything = [cell for curve in curves for cell in curve.cells]
        labels = [_curve_label(curve.cells, everything) for curve in curves]
        drawn = {label: _drawn(curve, study) for label, curve in zip(labels, curves, strict=True)}
        # Curves of one variant are adjacent, to compare backends.
        together = {
            label: " = ".join(dict.fromkeys(cell[0] for cell in curve.cells))
            for label, curve in zip(labels, curves, strict=True)
        }
        stem = "reliability" if key == main else f"reliability-{'-'.join(key)}"
        title = ", ".join(key)
        shown = reliability_figure(
            {label: line for label, (line, _) in drawn.items()},
            {label: bins for label, (_, bins) in drawn.items()},
            f"Reliability: {title}",
            panels=together,
        )
        if study.rename:
            in_label, in_prose = renaming(study.rename), renaming(study.rename, prose=True)
            title, shown = in_label(title), shown.renamed(in_label, in_prose)
        yield Diagram(stem, title, shown)


def distinct_curves(rows: RowsFile, cells: Iterable[CellRows]) -> list[Curve]:
    """The curves of one dataset and encoding; cells with the same posteriors share one.

    Cells with a failed unit are left out, because a curve over fewer atoms is not comparable.
    """
    curves: list[Curve] = []
    for cell in cells:
        judgments = read_judgments(rows, cell)
        if np.isin(judgments.status, UNANSWERED).any():
            continue
        p, label, response = judgments.claims
        key = _curve_key(cell)
        for position, curve in enumerate(curves):
            # Cells of a dataset have the same atoms in the same order, so arrays can be compared.
            if p.shape == curve.p.shape and are_close(p, curve.p):
                curves[position] = replace(curve, cells=(*curve.cells, key))
                break
        else:
            curves.append(Curve((key,), p, label, response))
    return curves


def _curve_key(cell: CellRows) -> tuple[str, ...]:
    """Values that distinguish the curves of a diagram, as `_DIMENSIONS` names them."""
    named = cell.named()
    if named["variant"] == NO_GRAPH:
        return (*[""] * (len(_DIMENSIONS) - 1), named["backend_label"])
    prior = "the data's priors" if named["prior"] == OWN_PRIORS else f"priors {named['prior']}"
    return (
        named["variant"],
        f"{named['relation_model']} relations",
        prior,
        f"strength {named['strength']:g}",
        f"seed {named['seed']}",
        named["backend_label"],
    )


def _readable(curves: Sequence[Curve]) -> list[Curve]:
    if len(curves) <= MAX_CURVES:
        return list(curves)
    exact = [curve for curve in curves if any(cell[-1] == REFERENCE for cell in curve.cells)]
    others = [curve for curve in curves if curve not in exact]
    # By identity: curves contain arrays, whose comparison has no single truth value.
    kept = {id(curve) for curve in (exact + others)[:MAX_CURVES]}
    # Restore the order of the study.
    return [curve for curve in curves if id(curve) in kept]


def _drawn(curve: Curve, study: Study) -> tuple[CorpCurve, ReliabilityBins]:
    """The CORP line of a curve, and its bins."""
    from calibration.curves import corp_curve, reliability_bins
    from calibration.labels import apply_policy

    scored = apply_policy(curve.p, curve.label, study.unlabeled)
    bins = reliability_bins(
        scored.p,
        scored.y,
        n_bins=study.reliability.bins,
        strategy=study.reliability.strategy,
        responses=curve.response if scored.kept.all() else curve.response[scored.kept],
        seed=study.seed,
    )
    # The bins have intervals, so the line needs no band.
    return corp_curve(scored.p, scored.y, band="none"), bins


def _curve_label(cells: Sequence[tuple[str, ...]], everything: Sequence[tuple[str, ...]]) -> str:
    """Name of a curve: its cells, without values that all cells of the diagram share."""
    parts = []
    values = [list(dict.fromkeys(cell[d] for cell in cells)) for d in range(len(_DIMENSIONS))]
    product = 1
    for titles in values:
        product *= len(titles)
    # Only a full grid can be named one dimension at a time.
    if product != len(cells):
        varying = [d for d in range(len(_DIMENSIONS)) if len({cell[d] for cell in everything}) > 1]
        return "; ".join(" ".join(cell[d] for d in varying if cell[d]) for cell in cells)
    for dimension, titles in enumerate(values):
        if len({cell[dimension] for cell in everything}) > 1:
            parts.append(" = ".join(titles))
    return ", ".join(filter(None, parts)) or cells[0][-1]
