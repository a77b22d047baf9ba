"""Tables of a study's cells and tests, for the terminal and for papers.

Tables for papers have no timings, so that runs of a study produce the same bytes; times are in the
terminal and in times.csv.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from calibration.scores.registry import DEFAULT_MEASURES, REGISTRY
from calibration.significance import (
    PairedTest,
    least_corrected,
    least_p_value,
    stars_legend,
    unattainable_stars,
)
from experiments.columns.cell_names import NO_GRAPH, shown
from experiments.evaluators.convention_measures import measure_names
from experiments.findings.table import Column, Table
from experiments.findings.text import duration, p_value, small
from experiments.settings.conventions import graph_names, note_of
from experiments.study.config import Study
from experiments.study.report.scores import WITHIN_FOLDS, AgreeingCells, with_absent_named
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

_BELOW = 1e-12
"""Differences below this value are rounding, which depends on the machine: shown as "<1e-12"."""


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
"""Columns that identify cells only if a study has several values of them."""


def keys(cells: pd.DataFrame) -> tuple[Column, ...]:
    """The columns that identify the cells of a study."""
    # An assessor's "none" does not count as a value of a column.
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
"""Columns that are hidden if empty."""

TIMES = (
    Column("seconds_total", "time", "Time", show=duration),
    Column("seconds_median", "per resp.", "Per resp.", show=duration),
)


def chosen(measures: Iterable[str]) -> tuple[Column, ...]:
    """The columns of measures, in the order of their names given."""
    by_name = {column.name: column for column in MEASURES}
    # Other scores are rare.
    return tuple(
        by_name.get(name) or Column(name, REGISTRY[name].title, digits=3) for name in measures
    )


def conventions_note(study: Study) -> str:
    """Sentence on the conventions of the numbers in a study's tables."""
    names = [name for name in graph_names(study.variants) if name != "encoding"]
    names += measure_names(study.measures)
    if study.unlabeled == "true":
        names = [name for name in names if name != "unlabeled"]
    return note_of(study.declared, names)


def cells_table(
    cells: pd.DataFrame,
    title: str,
    measures: Iterable[str] = DEFAULT_MEASURES,
    absent: Mapping[str, str] = MappingProxyType({}),
    *,
    times: bool = False,
    conventions: str = "",
) -> Table:
    """The summary as a table, a block per dataset.

    Scores against labels have intervals, and the best score, marked by MEASURE_best, is in bold, if
    the summary has these columns.

    Args:
        cells: the summary.
        title: title of the table.
        measures: names of the measures to show.
        absent: labels of backends without their library, with a sentence on how to install it.
        times: True to show times instead of intervals, for a terminal.
        conventions: sentence on the conventions.
    """
    key_columns, measures = keys(cells), tuple(measures)
    columns = (*shown_columns(cells, key_columns, measures), *(TIMES if times else ()))
    blocks = {
        dataset: f"{dataset}: {size_of(group)}"
        for dataset, group in cells.groupby("dataset", sort=False)
    }
    frame = with_absent_named(cells).assign(block=[blocks[dataset] for dataset in cells["dataset"]])
    set_columns = tuple(set_column(column, frame, column not in key_columns) for column in columns)
    if times:
        set_columns = _without_intervals(set_columns)
    else:
        frame = _without_times(frame)
    within = "auroc" in measures and (cells["auroc_status"] == WITHIN_FOLDS).any()
    sentences = [f"{label} is absent: {why}." for label, why in absent.items()]
    notes = [NOTE * _have_intervals(set_columns), _FOLDS * bool(within), *sentences, conventions]
    return Table(frame, set_columns, title, "block", " ".join(filter(None, notes)))


def means_table(means: pd.DataFrame, study: Study, title: str) -> Table:
    """Means over responses ± standard deviations, as in FactReasoner's tables 10 to 19.

    Args:
        means: a row per cell and selection, of `experiments.study.report.scores.response_means`.
        study: the study.
        title: title of the table.
    """
    frame = means.copy()
    columns = []
    for column in chosen(study.measures):
        if column.name not in means:
            continue
        ends = zip(means[column.name], means[f"{column.name}_sd"], strict=True)
        frame[f"{column.name}_text"] = [f"{mean:.3f} ± {sd:.3f}" for mean, sd in ends]
        columns.append(Column(f"{column.name}_text", column.title, column.latex, right=True))
    caption = " ".join(filter(None, [title, "Means over responses ± standard deviations."]))
    return Table(frame, (*keys(means), *columns), caption, "dataset", conventions_note(study))


def _without_times(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without times, which differ between runs, while kept files must not."""
    return frame.drop(columns=[column.name for column in TIMES if column.name in frame])


def _without_intervals(columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(replace(column, lower="", upper="") for column in columns)


def _have_intervals(columns: Iterable[Column]) -> bool:
    return any(column.interval for column in columns)


_FOLDS = "AUROC of learned priors compares claims of the same fold."


NOTE = (
    "In brackets: 95% intervals over responses. In bold: the best of a dataset (within a selection "
    "if there are several) and rows with the same posteriors, if every other row differs from it "
    "(paired permutation tests over responses, p < 0.05 after Holm's correction for the rows)."
)


def set_column(column: Column, frame: pd.DataFrame, right: bool) -> Column:
    """A column with its intervals and best values from `frame`."""
    if column.digits is None:
        return replace(column, right=right)
    best = f"{column.name}_best"
    # Only intervals of scores against labels fit on a page.
    scored = best in frame or f"{column.name}_status" in frame
    compared = scored and frame[f"{column.name}_lower"].notna().any()
    return replace(
        column,
        lower=f"{column.name}_lower" if compared else "",
        upper=f"{column.name}_upper" if compared else "",
        bold=best if best in frame else "",
    )


def shown_columns(
    cells: pd.DataFrame, leading: tuple[Column, ...], measures: Iterable[str]
) -> tuple[Column, ...]:
    """The columns of a table without timings: `leading`, measures, agreement, failures if any."""
    troubles = (column for column in TROUBLES if column.name in cells and cells[column.name].any())
    return (*leading, *chosen(measures), *AGREEMENT, *troubles)


def size_of(group: pd.DataFrame) -> str:
    """The size of a dataset in words, from the summary of its cells."""
    # Maximum over cells, since a cell with failures has judged fewer atoms.
    responses, atoms, labeled = group[["n_responses", "n_atoms", "n_labeled"]].max()
    sizes = f"{counted(int(responses), 'response')}, {counted(int(atoms), 'atom')}"
    return f"{sizes}, {labeled:,} labeled"


_SHORT = ("precision", "brier", "log_loss", "accuracy")
"""Measures of the short table, to which a study's additional measures are added."""


_APART = Column("apart", "agree to", "Agree to", show=difference)

_NOTE = (
    "Cells whose posteriors never differ by more than 0.005 share a row, with the numbers of "
    "the first cell; agree to: largest difference of two posteriors."
)


def short_table(
    cells: pd.DataFrame,
    groups: Sequence[AgreeingCells],
    title: str,
    measures: Iterable[str] = DEFAULT_MEASURES,
    *,
    times: bool = False,
    conventions: str = "",
) -> Table:
    """The summary with a single row for cells with equal posteriors.

    Args:
        cells: the summary.
        groups: its cells by whether they agree.
        title: title of the table.
        measures: names of the measures that the study shows.
        times: True to show times instead of intervals, for a terminal.
        conventions: sentence on the conventions.
    """
    import pandas as pd

    wanted = [name for name in measures if name in _SHORT or name not in DEFAULT_MEASURES]
    by_dataset = dict(list(cells.groupby("dataset", sort=False)))
    records: list[dict[str, Any]] = []
    for group in groups:
        group_cells = cells.iloc[list(group.rows)]
        size = size_of(by_dataset[group.dataset])
        # The cell that the study names first.
        first: dict[str, Any] = {str(name): value for name, value in group_cells.iloc[0].items()}
        records.append(
            first
            | {
                "cells": _title(group),
                "n_cells": len(group_cells),
                "apart": group.apart,
                # Differences from exact, not between the cells.
                "max_difference": group_cells["max_difference"].max(),
                **{
                    name: group_cells[name].sum()
                    for name in ("n_not_converged", "n_missing", "n_failed")
                },
                "block": f"{group.dataset}: {size}",
                **{
                    str(name): group_cells[name].any()
                    for name in group_cells
                    if str(name).endswith("_best")
                },
            }
        )
    frame = pd.DataFrame(records)
    troubled = tuple(
        column
        for column in (AGREEMENT[1], *TROUBLES)
        if not frame.empty and frame[column.name].any()
    )
    shown = [column for column in chosen(wanted) if frame[column.name].notna().any()]
    columns = (
        Column("cells", "cells that agree", "Cells that agree"),
        *(set_column(column, frame, True) for column in shown),
        *(replace(column, right=True) for column in (_APART, AGREEMENT[0], *troubled)),
    )
    frame = _without_times(frame)
    if times:
        frame["times"] = [_times(cells, group) for group in groups]
        columns = (*_without_intervals(columns), Column("times", "per resp.", right=True))
        return Table(frame, columns, title, "block", conventions)
    notes = [_NOTE, NOTE * _have_intervals(columns), conventions]
    return Table(frame, columns, title, "block", " ".join(filter(None, notes)))


def _title(group: AgreeingCells) -> str:
    """Name of a row; cells without a common value have the name for none."""
    title = ", ".join(filter(None, [group.name, group.selection]))
    return title if group.answered else f"{title}: no posterior"


def _times(cells: pd.DataFrame, group: AgreeingCells) -> str:
    """Median times per response of the fastest and the slowest of the grouped cells."""
    seconds = cells["seconds_median"].iloc[list(group.rows)]
    least, most = duration(seconds.min()), duration(seconds.max())
    if least == most:
        return least
    # Use a single unit for both, to save space.
    return f"{least.removesuffix(most[most.rindex(' ') :])}–{most}"


def significance_table(tests: pd.DataFrame, study: Study) -> Table:
    """The tests of a study as a table of a paper, a block per dataset."""
    settings = study.significance
    corrected = settings.correction != "none"
    measured = bool(tests["coverage"].notna().any())
    tested = "corrected" if corrected else "p_value"
    texts = (("first", "First"), ("second", "Second"), ("elsewhere", "Where"))
    columns = (
        *(Column(name, title.lower(), title) for name, title in texts),
        Column("measure", "measure", "Measure"),
        Column(
            "difference", "difference", "Difference", digits=4,
            lower="lower", upper="upper", stars="stars",
        ),
        *((Column("coverage", "covers", "Covers", digits=2),) if measured else ()),
        Column(tested, "p", "$p$", show=p_value, right=True),
    )  # fmt: skip
    note = "p-values not corrected; "
    if corrected:
        how = f"corrected ({settings.correction.title()}) over {len(tests)} tests"
        least = least_corrected(_least_p_value(tests, study), len(tests), settings.correction)
        legend, missing = stars_legend(least), unattainable_stars(least)
        few = f" (too few resamples for {missing})" if legend and missing else ""
        note = f"{legend or 'no star is possible'}{few}, {how}; "
    within = "auroc" in settings.measures and any(prior.learned for prior in study.priors)
    notes = [
        f"{note}in brackets: 95% intervals of the difference, paired by response.",
        _COVERS * measured,
        _FOLDS * within,
    ]
    title = f"Paired {settings.test} tests over responses, {settings.alternative}."
    return Table(tests, columns, title, "dataset", " ".join(filter(None, notes)))


def _least_p_value(tests: pd.DataFrame, study: Study) -> float:
    """Smallest possible p-value of a study's tests."""
    settings = study.significance
    sizes = tests.loc[tests["p_value"].notna(), ["n_responses", "resamples"]].drop_duplicates()
    return min(
        (
            least_p_value(PairedTest(settings.test), int(n), int(used), settings.alternative)
            for n, used in sizes.itertuples(index=False)
        ),
        default=1.0,
    )


_COVERS = (
    "Covers: simulated coverage of intervals of such a difference with the same number of "
    "responses, if it differs from their level."
)
