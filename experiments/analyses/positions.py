"""Claims by relative position: from a file of labelled responses to a table and a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.figures.positions import Panel, knowledge_panels, label_panels, position_figure
from calibration.self_knowledge import (
    IntervalSettings,
    PositionTable,
    Setting,
    label_positions,
    self_knowledge,
)
from calibration.table_markup import (
    Latex,
    csv_text,
    escape_latex,
    escape_markdown,
    latex_table,
    markdown_table,
)
from experiments.findings.table import Column, Table, data_frame
from experiments.findings.text import interval, number
from experiments.study.labelled_claims import LabelledClaims
from factormodels.io.files import results_folder, write_text

STEM = "positions"
"""The files are positions.csv, positions.md, positions.tex, positions.pdf and positions.png."""

TITLES: Mapping[str, str] = {
    "supported_share": "supported, share",
    "unsupported_share": "unsupported, share",
    "irrelevant_share": "irrelevant, share",
    "supported_number": "supported per sentence",
    "unsupported_number": "unsupported per sentence",
    "irrelevant_number": "irrelevant per sentence",
    "factuality": "factuality, S/(S + NS)",
    "judged_correct": "judged correct",
    "self_known": "Self-Known",
    "self_unknown": "Self-Unknown",
    "sigma": "sigma",
    "rogan_gladen": "Rogan-Gladen",
    "emq": "EMQ",
}
"""What a table calls each quantity."""


@dataclass(frozen=True, eq=False)
class Positions:
    """The tables of a file.

    Attributes:
        claims: the claims.
        labels: kinds of claims by position.
        knowledge: self-knowledge by setting, for the settings that the file has.
    """

    claims: LabelledClaims
    labels: PositionTable
    knowledge: Mapping[Setting, PositionTable]

    def tables(self) -> dict[str, PositionTable]:
        """The tables by what they show, in order."""
        named = {
            setting.value.replace("_", " "): table for setting, table in self.knowledge.items()
        }
        return {"kinds of claims": self.labels, **named}

    def summary(self) -> str:
        """What the tables rest on, in a sentence."""
        claims = self.claims
        with_claims = int(self.labels.n_sentences[-1])
        text = (
            f"{len(claims.records):,} labelled claims in {with_claims:,} of "
            f"{claims.n_sentences:,} sentences; {claims.n_annotated:,} of {claims.n_responses:,} "
            "responses are annotated"
        )
        if claims.n_unlabelled:
            text += f"; {claims.n_unlabelled:,} claims without a label are left out"
        return text

    def note(self) -> str:
        """What the numbers are, in sentences."""
        estimates = next(iter(self.labels.quantities.values()))
        return (
            f"In brackets: {100 * estimates.level:g}% intervals ({estimates.method} over "
            "responses). Shares and numbers of kinds of claims are means over sentences; position "
            "i/n of sentence i of n, an edge belonging to the bin below it."
        )


def analyse(claims: LabelledClaims, intervals: IntervalSettings, n_positions: int) -> Positions:
    """The tables of the claims."""
    return Positions(
        claims=claims,
        labels=label_positions(claims.records, n_positions=n_positions, intervals=intervals),
        knowledge={
            setting: self_knowledge(
                claims.records, setting, n_positions=n_positions, intervals=intervals
            )
            for setting in claims.settings
        },
    )


def write_positions(positions: Positions, folder: Path, title: str) -> list[Path]:
    """Write the tables (CSV, Markdown, LaTeX) and the figure (PDF, PNG) and return the paths.

    Args:
        positions: the tables.
        folder: where they go; it is made if it does not exist.
        title: the title of the figure and of the Markdown page.

    Raises:
        InputError: if the folder cannot be written.
    """
    from calibration.figures import save_figure

    texts = {
        "csv": csv_text(tidy_rows(positions)),
        "md": markdown(positions, title),
        "tex": latex(positions),
    }
    panels: list[Panel] = list(label_panels(positions.labels))
    for setting, table in positions.knowledge.items():
        panels += knowledge_panels(table, f"Share of claims, {setting.value.replace('_', ' ')}")
    with results_folder(folder):
        paths = []
        for suffix, text in texts.items():
            paths.append(folder / f"{STEM}.{suffix}")
            write_text(paths[-1], text)
        figure = position_figure(panels, title=title)
        metadata = {"Title": title, "Subject": positions.summary()}
        return [*paths, *save_figure(figure, folder / STEM, metadata=metadata)]


def tidy_rows(positions: Positions) -> list[dict[str, Any]]:
    """One row per table, quantity and position."""
    return [
        {"table": name, **row} for name, table in positions.tables().items() for row in table.rows()
    ]


def markdown(positions: Positions, title: str) -> str:
    """The tables as Markdown."""
    said = escape_markdown(f"{positions.summary()}. {positions.note()}")
    blocks = [f"# {escape_markdown(title)}\n", f"{said}\n"]
    for name, table in positions.tables().items():
        right = [False, *(True for _ in table.positions)]
        titles = ["quantity", *map(escape_markdown, table.positions)]
        body = markdown_table(titles, right, text_rows(table))
        blocks += [f"## {name[0].upper()}{name[1:]}\n", body]
    return "\n".join(blocks)


def latex(positions: Positions) -> str:
    """The tables as LaTeX that needs the package booktabs."""
    titles = [Latex(""), *map(escape_latex, positions.labels.positions)]
    return latex_table(
        "l" + "r" * len(positions.labels.positions),
        titles,
        [
            (escape_latex(name), [list(map(escape_latex, row)) for row in text_rows(table)])
            for name, table in positions.tables().items()
        ],
        width=len(titles),
        comments=[positions.summary(), positions.note(), r"\usepackage{booktabs}"],
    )


def text_rows(table: PositionTable, digits: int = 3) -> list[list[str]]:
    """A row per quantity: its title and per position its estimate and interval."""
    rows = []
    for name, estimates in table.quantities.items():
        cells = []
        for cell, status in enumerate(table.statuses[name]):
            text = number(float(estimates.estimate[cell]), digits)
            lower, upper = float(estimates.lower[cell]), float(estimates.upper[cell])
            if lower == lower:
                text += f" {interval(lower, upper, digits)}"
            elif status != "ok":
                text += f" ({status.replace('_', ' ')})"
            cells.append(text)
        rows.append([TITLES.get(name, name), *cells])
    return rows


def position_table(found: Mapping[str, PositionTable], caption: str) -> Table:
    """The estimates of tables by what they are of, one row per quantity and position."""
    frame = data_frame(
        [{"of": name, **row} for name, table in found.items() for row in table.rows()]
    )
    frame["title"] = [TITLES.get(name, name) for name in frame["quantity"]]
    first = next(iter(found.values()))
    level = 100 * next(iter(first.quantities.values())).level
    columns = (
        Column("title", "quantity"),
        Column("position", "position"),
        Column("estimate", "estimate", digits=3, lower="lower", upper="upper"),
    )
    group = "of" if len(found) > 1 else ""
    note = f"In brackets: {level:g}% intervals over responses."
    return Table(frame, columns, caption, group=group, note=note)
