"""The page of a study: the configuration, the results and the responses.

Layout, style, scripts, figures and the list of responses are the same as on every page of findings
(`experiments.findings.page`). The page of a run adds what findings do not have: cells that agree in
one row above all cells, each table sorted by all digits of its numbers; what is missing and what
failed, from the manifest; and the origin of code, data, seeds and models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.figures.panels import COLUMN
from calibration.figures.style import COLORS, MARKERS, paper_style
from experiments.columns.cell_names import CELL
from experiments.findings.page import environment, inline_svg, page, table_parts, write_page
from experiments.findings.table import ENDS, Table, columns_as, presented, renaming
from experiments.findings.text import ABSENT, in_sample_remark, p_value
from experiments.pages.report_settings import AS_PLANNED, ReportSettings
from experiments.pages.reported_datasets import Part, Watch, parts_of
from experiments.pages.study_responses import listed_of_study
from experiments.study.config import Study, as_plain
from experiments.study.outputs import RunContents
from experiments.study.prepared.text_models import ASSESSING, RELATIONS
from experiments.study.report import tables
from experiments.study.report.diagrams import diagrams
from experiments.study.report.frame import read_judgments
from experiments.study.report.scores import (
    REFERENCE,
    AgreeingCells,
    agreeing_cells,
)
from experiments.study.report.sentences import sentences
from factormodels.io.yaml import yaml_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

_PLOTTED = {"brier": "Brier score (lower is better)", "accuracy": "Accuracy"}

_KINDS = {RELATIONS: "relation model", ASSESSING: "assessor"}


def study_page(
    subject: RunContents, shown: ReportSettings = AS_PLANNED, watch: Watch | None = None
) -> tuple[bytes, int]:
    """The page of a run, and the number of responses that it lists; equal runs give equal bytes.

    Args:
        subject: the run.
        shown: the responses to list.
        watch: shows progress.

    Raises:
        InputError: for an id that the run does not have.
    """
    parts = parts_of(subject, shown)
    named = renaming(subject.study.rename) if subject.study.rename else str
    listed = listed_of_study(subject, parts, watch).renamed(named)
    filled = {
        "run": subject.study.study,
        "sha256": subject.manifest["config_sha256"],
        **_study(subject, parts, named),
    }
    made = page(_templates(), "study.html", "report", filled, listed)
    return made, len(listed.responses)


def _templates() -> Environment:
    """Templates of the page, with the functions that they call."""
    templates = environment(resources.files("experiments.pages") / "templates")
    templates.globals |= {"in_sample_remark": in_sample_remark, "absent": ABSENT}
    return templates


def write_study_page(subject: RunContents, path: Path, *, watch: Watch | None = None) -> None:
    """Write the page of a run that has just ended.

    Args:
        subject: the run.
        path: the file.
        watch: shows progress.

    Raises:
        InputError: if the file cannot be written.
    """
    write_page(path, study_page(subject, watch=watch)[0])


def _study(
    subject: RunContents, parts: Sequence[Part], named: Callable[[str], str]
) -> dict[str, Any]:
    """Contents of the page, except for the list of responses.

    Args:
        subject: the run.
        parts: its datasets as shown.
        named: function that replaces names by those of the readers.
    """
    groups = agreeing_cells(subject.rows, subject.summary)
    differences, others = _plots(subject, parts, groups, named)
    # The selections of a cell share its units.
    # Failures would otherwise be counted once for each selection.
    cells = subject.summary.drop_duplicates(list(CELL))
    differs = differing(subject.study, subject.manifest["config"])
    return {
        "study": subject.study,
        "manifest": subject.manifest,
        "settings": [(key, yaml_text(value).strip()) for key, value in differs.items()],
        "sentences": [
            renaming(subject.study.rename, prose=True)(sentence)
            if subject.study.rename
            else sentence
            for sentence in sentences(subject.summary, groups, times=False)
        ],
        "answers": [*_parts(_answers(subject, groups))],
        "differences": differences[:1],
        "cells": [*_parts(_summary(subject))],
        "plots": [*differences[1:], *others],
        "tests": [*table_parts(_tests(subject))] if len(subject.tests) else [],
        "covers": bool(subject.tests["coverage"].notna().any()),
        "conventions": tables.conventions_note(subject.study),
        "correction": subject.study.significance.correction,
        "n_failed": int(cells["n_failed"].sum()),
        "n_cells": len(cells),
        "n_rows": len(subject.summary),
        "asked": [
            (_KINDS.get(key, key), named(name), facts)
            for key, models in subject.manifest.get("models", {}).items()
            for name, facts in models.items()
        ],
    }


def differing(study: Study, config: Mapping[str, Any]) -> dict[str, Any]:
    """Datasets of a study, and its keys that differ from the defaults.

    Args:
        study: the study.
        config: the same with every default written out.
    """
    usual = as_plain(Study(study=study.study, datasets=study.datasets)) | {"datasets": None}
    return {key: value for key, value in config.items() if value != usual.get(key)}


def _answers(subject: RunContents, groups: Sequence[AgreeingCells]) -> Table:
    """The summary, with cells that agree in one row."""
    table = tables.short_table(subject.summary, groups, "", subject.study.measures)
    return presented(_with_intervals(table), subject.study.rename)


def _summary(subject: RunContents) -> Table:
    """The summary, with a row per cell."""
    table = tables.cells_table(subject.summary, "", subject.study.measures)
    return presented(_with_intervals(table), subject.study.rename)


def _with_intervals(table: Table) -> Table:
    """A summary with all its intervals, for which a page has room."""
    columns = [
        replace(column, lower=f"{column.name}_lower", upper=f"{column.name}_upper")
        if f"{column.name}_lower" in table.frame
        else column
        for column in table.columns
    ]
    return replace(table, columns=tuple(columns))


def _parts(table: Table) -> Iterator[dict[str, Any]]:
    """Yield a summary dataset by dataset."""
    for part in table_parts(table):
        dataset, _, size = part["title"].rpartition(": ")
        yield part | {"dataset": dataset, "size": size}


_Plot = tuple[str, str, bool]
"""A caption, an SVG element, and whether it takes the whole width."""


def _scores(
    subject: RunContents, groups: Sequence[AgreeingCells]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the plotted scores of every dataset in which cells differ."""
    by_dataset: dict[str, list[dict[str, Any]]] = {}
    for group in groups:
        group_rows = subject.summary.iloc[list(group.rows)]
        record = group_rows.iloc[0]
        # Without labels there is no score to draw.
        if not record["n_labeled"]:
            continue
        name = ", ".join(filter(None, (group.name, group.selection)))
        exact = bool((group_rows["backend"] == REFERENCE).any())
        rows = by_dataset.setdefault(group.dataset, [])
        rows.append(
            {**{str(key): value for key, value in record.items()}, "name": name, "exact": exact}
        )
    # A dataset without differences needs only one row and no plot, unless there is no other
    # dataset.
    differing = {name: rows for name, rows in by_dataset.items() if len(rows) > 1} or by_dataset
    for dataset, rows in differing.items():
        shown = rows[:MAX_ROWS]
        caption = f"{dataset}: scores with 95% intervals over responses"
        if len(shown) < len(rows):
            caption += f", the first {len(shown)} of {len(rows)} answers"
        if len({row["exact"] for row in shown}) > 1:
            caption += "; circles: exact inference, squares: what differs from it"
        yield caption, shown


def _plots(
    subject: RunContents,
    parts: Sequence[Part],
    groups: Sequence[AgreeingCells],
    named: Callable[[str], str],
) -> tuple[list[_Plot], list[_Plot]]:
    """The plots of scores, and the others."""
    scores = []
    for number, (caption, answers) in enumerate(_scores(subject, groups)):
        caption = named(caption)
        shown = [{**row, "name": named(row["name"])} for row in answers]
        figure = scores_figure(shown, _PLOTTED)
        scores.append((caption, inline_svg(figure, f"scores{number}", caption), True))
    others: list[tuple[str, Figure, bool]] = []
    located = {cell.key: cell for cell in subject.rows.cells()}
    for part in parts:
        judgments = read_judgments(subject.rows, located[part.main_key])
        if judgments.judged.any():
            caption = named(f"{part.data.name}: posteriors under {part.title(part.main)}")
            figure = posteriors_figure(
                judgments.p[judgments.judged], judgments.label[judgments.judged]
            )
            others.append((caption, figure, False))
    drawn = subject.diagrams
    for diagram in diagrams(subject.rows, subject.study) if drawn is None else drawn:
        if diagram.shown.absence:
            continue
        wide = diagram.figure.get_figwidth() > COLUMN
        others.append((f"{diagram.title}: reliability", diagram.figure, wide))
    return scores, [
        (caption, inline_svg(figure, f"plot{number}", caption), wide)
        for number, (caption, figure, wide) in enumerate(others, start=1)
    ]


def _tests(subject: RunContents) -> Table:
    """The tests, with a row per test."""
    tests = subject.tests
    # Not corrected if the study requests no correction.
    p = tests["corrected"].where(tests["corrected"].notna(), tests["p_value"])
    covers = "coverage:2 covers | " if tests["coverage"].notna().any() else ""
    columns = columns_as(
        "dataset | first | second | elsewhere | measure | n_claims:0 claims | difference:3[] | "
        f"{covers}p> | status",
        status=lambda status: str(status).replace("_", " "),
        p=p_value,
    )
    stars = [replace(each, stars="stars" if each.name == "p" else "") for each in columns]
    return presented(Table(tests.assign(p=p), tuple(stars)), subject.study.rename)


MAX_ROWS = 30
"""Maximum number of answers in a plot of scores."""

_WIDTH = 6.9
_ROW_INCHES = 0.15
_NAME_CHARACTERS = 46
_BINS = 20


def scores_figure(rows: Sequence[Mapping[str, Any]], measures: Mapping[str, str]) -> Figure:
    """Draw scores with their intervals: a row for every answer, a panel for every measure.

    Args:
        rows: the answers, with the columns `name`, the label of the row; `exact`, whether the exact
            backend, which has its own color, gave the answer; and for each measure the score and
            the ends of its interval, MEASURE_lower and MEASURE_upper.
        measures: the measures to show, with the title of each.
    """
    from textwrap import fill

    from calibration.figures.shown_figure import ShownFigure

    names = [fill(row["name"], _NAME_CHARACTERS) for row in rows]
    lines = [1 + name.count("\n") for name in names]
    # A name of two lines takes the room of two rows.
    height = [sum(lines[:row]) + lines[row] / 2 for row in range(len(rows))]
    with paper_style():
        figure = ShownFigure(
            figsize=(_WIDTH, _ROW_INCHES * (sum(lines) + 1) + 0.5), layout="constrained"
        )
        panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for axes, (measure, title) in zip(panels, measures.items(), strict=True):
            for row, y in zip(rows, height, strict=True):
                estimate, *ends = (row[f"{measure}{end}"] for end in ENDS)
                number = 0 if row["exact"] else 1
                if np.isfinite(ends).all():
                    axes.plot(ends, [y, y], color=COLORS[number], linewidth=1.0)
                axes.plot([estimate], [y], MARKERS[number], color=COLORS[number], markersize=3.5)
            axes.set_xlabel(title)
            axes.grid(axis="x", color="0.5", alpha=0.25, linewidth=0.5)
        panels[0].set_yticks(height, names)
        for label in panels[0].get_yticklabels():
            # Names with a dollar sign are drawn verbatim.
            label.set_parse_math(False)
        # Upside down, so that the first row is at the top.
        panels[0].set_ylim(sum(lines) + 0.4, -0.4)
        for axes in panels:
            axes.tick_params(axis="y", length=0)
    return figure


def posteriors_figure(p: NDArray[np.float64], label: NDArray[np.float64]) -> Figure:
    """Draw the distribution of posteriors over [0, 1], by human label.

    Args:
        p: posteriors (n,).
        label: labels (n,): 1, 0, or NaN if there is none.
    """
    from matplotlib.ticker import MaxNLocator

    from calibration.figures.shown_figure import ShownFigure

    groups = {
        "labeled true": (label == 1, COLORS[0]),
        "labeled false": (label == 0, COLORS[1]),
        "unlabeled": (np.isnan(label), "0.55"),
    }
    shown = {
        name: (p[members], color) for name, (members, color) in groups.items() if members.any()
    }
    with paper_style():
        figure = ShownFigure(figsize=(3.4, 2.6), layout="constrained")
        axes = figure.add_subplot()
        axes.hist(
            [values for values, _ in shown.values()],
            bins=np.linspace(0.0, 1.0, _BINS + 1).tolist(),
            stacked=True,
            label=[f"{name} ({len(values):,})" for name, (values, _) in shown.items()],
            color=[color for _, color in shown.values()],
            # The hatching distinguishes them without color.
            hatch=["////" if name == "labeled false" else "" for name in shown],
            edgecolor="white",
            linewidth=0.4,
        )
        axes.set(xlim=(0, 1), xlabel="Posterior probability of being true", ylabel="Claims")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.axvline(0.5, color="0.5", linewidth=0.6, linestyle=(0, (4, 3)))
        figure.legend(loc="outside lower center", ncols=2)
    return figure
