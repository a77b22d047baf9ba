"""The table of a study: on the terminal, and as a table of a paper.

The latter holds no timings, so that two runs of one study give the same bytes; times are in the
terminal and in times.csv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibration.scores.registry import DEFAULT_MEASURES
from experiments.paper.table import PaperColumn, PaperTable
from experiments.paper.text import counted, duration, number, small
from experiments.study.cell_names import NO_GRAPH, shown

if TYPE_CHECKING:
    import pandas as pd

_BELOW = 1e-12
"""Differences below this are rounding, which may change with the machine: shown as "<1e-12"."""


@dataclass(frozen=True)
class Column:
    """One column of the table.

    Attributes:
        name: its column in the summary.
        title: its heading.
        show: how a value becomes text.
        latex: its heading in LaTeX.
    """

    name: str
    title: str
    show: Callable[[Any], str]
    latex: str


def _difference(value: float | None) -> str:
    return "<1e-12" if value is not None and value < _BELOW else small(value)


def _count(value: float) -> str:
    return f"{int(value):,}"


def _plain(value: float) -> str:
    return f"{value:g}"


_VARYING = (
    Column("relation_model", "relations", shown, "Relations"),
    Column("prior", "priors", shown, "Priors"),
    Column("strength", "strength", _plain, "Strength"),
    Column("seed", "seed", str, "Seed"),
    Column("selection", "selection", str, "Selection"),
)
"""Columns that tell cells apart only where a study has several of them."""


def keys(cells: pd.DataFrame) -> tuple[Column, ...]:
    """Return the columns that tell the cells of a study apart."""
    inferred = cells[cells["variant"] != NO_GRAPH] if "variant" in cells else cells
    varying = {c.name: c for c in _VARYING if c.name in cells and inferred[c.name].nunique() > 1}
    return (
        Column("variant", "variant", shown, "Variant"),
        *(varying[name] for name in ("relation_model",) if name in varying),
        Column("encoding", "encoding", shown, "Encoding"),
        *(varying[name] for name in ("prior", "strength") if name in varying),
        Column("backend_label", "backend", str, "Backend"),
        *(varying[name] for name in ("seed", "selection") if name in varying),
    )


MEASURES = (
    Column("precision", "Pr", number, r"$\mathit{Pr}$"),
    Column("f1_at_k", "F1@K", number, "F1@$K$"),
    Column("entropy", "E", number, r"$\mathcal{E}$"),
    Column("precision_mae", "MAE", number, "MAE"),
    Column("f1", "F1", number, "F1"),
    Column("brier", "Brier", number, "Brier"),
    Column("log_loss", "log loss", number, "Log loss"),
    Column("accuracy", "accuracy", number, "Accuracy"),
    Column("expected_precision", "E[Pr]", number, r"$\mathbb{E}[\mathit{Pr}]$"),
    Column("mean_surprisal", "surprisal", number, "Surprisal"),
    Column("human_precision", "Pr*", number, r"$\mathit{Pr}^*$"),
    Column("supported", "#S", number, r"\#S"),
    Column("contradicted", "#C", number, r"\#C"),
    Column("undecided", "#U", number, r"\#U"),
)


AGREEMENT = (
    Column("max_difference", "max |Δp|", _difference, r"$\max|\Delta p|$"),
    Column("n_not_converged", "not conv.", _count, "Not conv."),
)

TROUBLES = (
    Column("n_missing", "missing", _count, "Missing"),
    Column("n_failed", "failed", _count, "Failed"),
)
"""Columns that are shown only where there is something to tell."""

TIMES = (
    Column("seconds_total", "time", duration, "Time"),
    Column("seconds_median", "per resp.", duration, "Per resp."),
)


def _chosen(measures: Iterable[str]) -> tuple[Column, ...]:
    by_name = {column.name: column for column in MEASURES}
    return tuple(by_name[name] for name in measures)


def paper(
    cells: pd.DataFrame, title: str, measures: Iterable[str] = DEFAULT_MEASURES
) -> PaperTable:
    """Return the summary as a table of a paper, a block per dataset.

    Scores against labels have intervals, and the best is in bold where `experiments.results.best`
    says so, if the summary has these columns.

    Args:
        cells: the summary.
        title: what the table is of.
        measures: names of the measures to show.
    """
    own = keys(cells)
    columns = shown_columns(cells, own, measures)
    blocks = {
        dataset: f"{dataset}: {size_of(group)}"
        for dataset, group in cells.groupby("dataset", sort=False)
    }
    frame = cells.assign(block=[blocks[dataset] for dataset in cells["dataset"]])
    shown = tuple(_paper_column(column, frame, column not in own) for column in columns)
    intervals = any(column.interval for column in shown)
    return PaperTable(
        frame.drop(columns=[name for name in _TIMED if name in frame]),
        shown,
        title,
        "block",
        _NOTE if intervals else "",
    )


_TIMED = ("seconds_total", "seconds_median")

_NOTE = (
    "In brackets 95% intervals over responses. In bold the best of a dataset, within a selection "
    "where there are several, and what has the same posteriors, where every other row differs from "
    "it (paired permutation tests over responses, p < 0.05 after Holm's correction for the rows)."
)


def _paper_column(column: Column, frame: pd.DataFrame, right: bool) -> PaperColumn:
    if column.show is not number:
        return PaperColumn(column.name, column.title, column.latex, show=column.show, right=right)
    best = f"{column.name}_best"
    # Intervals of every measure would not fit on a page: those of scores against labels do.
    compared = best in frame and frame[f"{column.name}_lower"].notna().any()
    return PaperColumn(
        column.name,
        column.title,
        column.latex,
        digits=3,
        lower=f"{column.name}_lower" if compared else "",
        upper=f"{column.name}_upper" if compared else "",
        bold=best if best in frame else "",
    )


def shown_columns(
    cells: pd.DataFrame, own: tuple[Column, ...], measures: Iterable[str]
) -> tuple[Column, ...]:
    """Return the columns of a table without timings: `own`, measures, agreement, failures."""
    return (*own, *_chosen(measures), *AGREEMENT, *_troubles(cells))


def _troubles(cells: pd.DataFrame) -> tuple[Column, ...]:
    return tuple(column for column in TROUBLES if column.name in cells and cells[column.name].any())


def size_of(group: pd.DataFrame) -> str:
    """Return the size of a dataset in words, from the summary of its cells."""
    responses, atoms, labelled = group[["n_responses", "n_atoms", "n_labelled"]].max()
    sizes = f"{counted(int(responses), 'response')}, {counted(int(atoms), 'atom')}"
    return f"{sizes}, {labelled:,} labelled"
