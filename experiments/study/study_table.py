"""The table of a study: on the terminal, and as a table of a paper.

The latter holds no timings, so that two runs of one study give the same bytes; times are in the
terminal and in times.csv.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from calibration.scores.registry import DEFAULT_MEASURES, REGISTRY
from experiments.findings.table import Column, Table
from experiments.findings.text import duration, small
from experiments.study.cell_names import NO_GRAPH, shown
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

_BELOW = 1e-12
"""Differences below this are rounding, which may change with the machine: shown as "<1e-12"."""


def difference(value: float | None) -> str:
    return "<1e-12" if value is not None and value < _BELOW else small(value)


def _count(value: float) -> str:
    return f"{int(value):,}"


def _plain(value: float) -> str:
    return f"{value:g}"


_VARYING = (
    Column("relation_model", "relations", "Relations", show=shown),
    Column("prior", "priors", "Priors", show=shown),
    Column("strength", "strength", "Strength", show=_plain),
    Column("seed", "seed", "Seed"),
    Column("selection", "selection", "Selection"),
)
"""Columns that tell cells apart only where a study has several of them."""


def keys(cells: pd.DataFrame) -> tuple[Column, ...]:
    """The columns that tell the cells of a study apart."""
    # An assessor's "none" is not a further value of a column.
    inferred = cells[cells["variant"] != NO_GRAPH] if "variant" in cells else cells
    varying = {c.name: c for c in _VARYING if c.name in cells and inferred[c.name].nunique() > 1}
    return (
        Column("variant", "variant", "Variant", show=shown),
        *(varying[name] for name in ("relation_model",) if name in varying),
        Column("encoding", "encoding", "Encoding", show=shown),
        *(varying[name] for name in ("prior", "strength") if name in varying),
        Column("backend_label", "backend", "Backend"),
        *(varying[name] for name in ("seed", "selection") if name in varying),
    )


MEASURES = (
    Column("precision", "Pr", r"$\mathit{Pr}$", digits=3),
    Column("f1_at_k", "F1@K", "F1@$K$", digits=3),
    Column("entropy", "E", r"$\mathcal{E}$", digits=3),
    Column("precision_mae", "MAE", "MAE", digits=3),
    Column("f1", "F1", "F1", digits=3),
    Column("brier", "Brier", "Brier", digits=3),
    Column("log_loss", "log loss", "Log loss", digits=3),
    Column("accuracy", "accuracy", "Accuracy", digits=3),
    Column("expected_precision", "E[Pr]", r"$\mathbb{E}[\mathit{Pr}]$", digits=3),
    Column("mean_surprisal", "surprisal", "Surprisal", digits=3),
    Column("human_precision", "Pr*", r"$\mathit{Pr}^*$", digits=3),
    Column("supported", "#S", r"\#S", digits=3),
    Column("contradicted", "#C", r"\#C", digits=3),
    Column("undecided", "#U", r"\#U", digits=3),
)


AGREEMENT = (
    Column("max_difference", "max |Δp|", r"$\max|\Delta p|$", show=difference),
    Column("n_not_converged", "not conv.", "Not conv.", show=_count),
)

TROUBLES = (
    Column("n_missing", "missing", "Missing", show=_count),
    Column("n_failed", "failed", "Failed", show=_count),
)
"""Columns that are shown only where there is something to tell."""

TIMES = (
    Column("seconds_total", "time", "Time", show=duration),
    Column("seconds_median", "per resp.", "Per resp.", show=duration),
)


def chosen(measures: Iterable[str]) -> tuple[Column, ...]:
    """The columns of measures, in the order of their names given."""
    by_name = {column.name: column for column in MEASURES}
    # Few studies show another score.
    return tuple(
        by_name.get(name) or Column(name, REGISTRY[name].title, digits=3) for name in measures
    )


def with_absent_named(cells: pd.DataFrame) -> pd.DataFrame:
    """The summary with "(absent)" behind the backends whose library is not installed."""
    labels = zip(cells["backend_label"], cells["n_absent"], strict=True)
    return cells.assign(backend_label=[f"{name} (absent)" if n else name for name, n in labels])


def paper(
    cells: pd.DataFrame,
    title: str,
    measures: Iterable[str] = DEFAULT_MEASURES,
    absent: Mapping[str, str] = MappingProxyType({}),
    *,
    times: bool = False,
) -> Table:
    """The summary as a table, a block per dataset.

    Scores against labels have intervals, and the best is in bold where `experiments.study.best`
    says so, if the summary has these columns.

    Args:
        cells: the summary.
        title: what the table is of.
        measures: names of the measures to show.
        absent: labels of backends whose library is not installed, with the sentence that says so
            and how to install it.
        times: whether it shows how long computation took, in place of intervals: for a terminal.
    """
    own, measures = keys(cells), tuple(measures)
    columns = (*shown_columns(cells, own, measures), *(TIMES if times else ()))
    blocks = {
        dataset: f"{dataset}: {size_of(group)}"
        for dataset, group in cells.groupby("dataset", sort=False)
    }
    frame = with_absent_named(cells).assign(block=[blocks[dataset] for dataset in cells["dataset"]])
    set_columns = tuple(set_column(column, frame, column not in own) for column in columns)
    sentences = [f"{label} is absent: {why}." for label, why in absent.items()]
    within = "auroc" in measures and (cells["auroc_status"] == "within_folds").any()
    folds = _FOLDS if within else ""
    if times:
        set_columns = tuple(replace(column, lower="", upper="") for column in set_columns)
    else:
        # Times differ from run to run, and what is kept must not.
        frame = frame.drop(columns=[column.name for column in TIMES if column.name in frame])
    intervals = any(column.interval for column in set_columns)
    note = " ".join(filter(None, [NOTE * intervals, folds, *sentences]))
    return Table(frame, set_columns, title, "block", note)


_FOLDS = "AUROC of learned priors compares claims of one fold."


NOTE = (
    "In brackets: 95% intervals over responses. In bold: the best of a dataset (within a selection "
    "if there are several) and rows with the same posteriors, if every other row differs from it "
    "(paired permutation tests over responses, p < 0.05 after Holm's correction for the rows)."
)


def set_column(column: Column, frame: pd.DataFrame, right: bool) -> Column:
    """A column with what `frame` knows of it: intervals, and which values are the best."""
    if column.digits is None:
        return replace(column, right=right)
    best = f"{column.name}_best"
    # Intervals of every measure would not fit on a page: those of scores against labels do.
    scored = best in frame or f"{column.name}_status" in frame
    compared = scored and frame[f"{column.name}_lower"].notna().any()
    return replace(
        column,
        lower=f"{column.name}_lower" if compared else "",
        upper=f"{column.name}_upper" if compared else "",
        bold=best if best in frame else "",
    )


def shown_columns(
    cells: pd.DataFrame, own: tuple[Column, ...], measures: Iterable[str]
) -> tuple[Column, ...]:
    """The columns of a table without timings: `own`, measures, agreement, failures if any."""
    troubles = (column for column in TROUBLES if column.name in cells and cells[column.name].any())
    return (*own, *chosen(measures), *AGREEMENT, *troubles)


def size_of(group: pd.DataFrame) -> str:
    """The size of a dataset in words, from the summary of its cells."""
    # The largest of any cell: one with failures has judged fewer atoms than there are.
    responses, atoms, labelled = group[["n_responses", "n_atoms", "n_labelled"]].max()
    sizes = f"{counted(int(responses), 'response')}, {counted(int(atoms), 'atom')}"
    return f"{sizes}, {labelled:,} labelled"
