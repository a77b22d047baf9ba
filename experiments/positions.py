"""Claims by relative position: from a file of labelled responses to a table and a figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.figures.positions import Panel, knowledge_panel, label_panels, position_figure
from calibration.self_knowledge import (
    ClaimLabel,
    ClaimRecord,
    IntervalSettings,
    PositionTable,
    Setting,
    label_positions,
    read_records,
    self_knowledge,
)
from calibration.self_knowledge.records import looks_like_record
from experiments.console import heading, number, plain_table
from experiments.outputs import results_folder
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io import read_many
from factormodels.io.files import read_text, write_text
from factormodels.io.json_text import decode

if TYPE_CHECKING:
    from rich.console import Console

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


@dataclass(frozen=True)
class LabelledClaims:
    """The claims of a file.

    Attributes:
        records: every claim with a human label.
        n_responses: number of responses in the file, annotated or not.
        n_annotated: number of responses that are annotated.
        n_sentences: number of sentences of the annotated responses.
        n_unlabelled: number of claims without a label, which are left out.
    """

    records: tuple[ClaimRecord, ...]
    n_responses: int
    n_annotated: int
    n_sentences: int
    n_unlabelled: int

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings in which the model was asked about a supported or unsupported claim."""
        return tuple(
            setting
            for setting in Setting
            if any(
                record.judgement(setting) is not None
                for record in self.records
                if record.label is not ClaimLabel.IRRELEVANT
            )
        )


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
        """Return the tables by what they show, in order."""
        named = {
            setting.value.replace("_", " "): table for setting, table in self.knowledge.items()
        }
        return {"kinds of claims": self.labels, **named}

    def summary(self) -> str:
        """Return what the tables rest on, in a sentence."""
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


def load_claims(path: Path) -> LabelledClaims:
    """Return the claims of a file: FActScore's, Factcheck-Bench's, fact graphs, or records.

    Raises:
        InputError: if the file cannot be read, or says of no claim where it stands.
    """
    first = next((line for line in read_text(path).split("\n") if line.strip()), "")
    if _is_record(first):
        records = read_records(path)
        lengths = {record.response: record.sentences for record in records}
        n_responses = len(lengths)
        return LabelledClaims(tuple(records), n_responses, n_responses, sum(lengths.values()), 0)
    return claims_of_graphs(read_many(path), path)


def claims_of_graphs(graphs: Sequence[FactGraph], source: object) -> LabelledClaims:
    """Return the labelled atoms of fact graphs as records.

    A response that nobody annotated has no atoms and is counted alone; a sentence without atoms
    counts in the number of sentences, hence in the positions of the others.

    Args:
        graphs: the responses.
        source: their file, which errors name.

    Raises:
        InputError: if no atom has a label, or one has no sentence.
    """
    records: list[ClaimRecord] = []
    n_annotated = n_sentences = n_unlabelled = 0
    for graph in graphs:
        if not graph.atoms:
            continue
        length = _n_sentences(graph, source)
        n_annotated += 1
        n_sentences += length
        for atom in graph.atoms:
            label = _label(atom.annotation, atom.label)
            if label is None:
                n_unlabelled += 1
                continue
            if atom.sentence is None:
                raise InputError(
                    f"{source}: atom {atom.id!r} of response {graph.id!r} does not say its "
                    "sentence; give 'sentence', counted from 1"
                )
            records.append(ClaimRecord(graph.id, atom.sentence, length, atom.id, label))
    if not records:
        raise InputError(f"{source}: no atom has a human label; give a labelled file")
    return LabelledClaims(tuple(records), len(graphs), n_annotated, n_sentences, n_unlabelled)


def analyse(claims: LabelledClaims, intervals: IntervalSettings, n_positions: int) -> Positions:
    """Return the tables of the claims."""
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
        "csv": csv_text(positions),
        "md": markdown(positions, title),
        "tex": latex(positions),
    }
    panels: list[Panel] = list(label_panels(positions.labels))
    panels += [knowledge_panel(table) for table in positions.knowledge.values()]
    with results_folder(folder):
        paths = []
        for suffix, text in texts.items():
            paths.append(folder / f"{STEM}.{suffix}")
            write_text(paths[-1], text)
        figure = position_figure(panels, title=title)
        metadata = {"Title": title, "Subject": positions.summary()}
        return [*paths, *save_figure(figure, folder / STEM, metadata=metadata)]


def csv_text(positions: Positions) -> str:
    """Return the tidy rows as CSV, one row per table, quantity and position."""
    rows = [
        {"table": name, **row} for name, table in positions.tables().items() for row in table.rows()
    ]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _plain(value) for key, value in row.items()})
    return buffer.getvalue()


def markdown(positions: Positions, title: str) -> str:
    """Return the tables as Markdown."""
    blocks = [f"# {title}\n", f"{positions.summary()}. {_note(positions.labels)}\n"]
    for name, table in positions.tables().items():
        lines = [
            f"## {name[0].upper()}{name[1:]}\n",
            f"| quantity | {' | '.join(table.positions)} |",
            f"| --- |{' ---: |' * len(table.positions)}",
            *(f"| {' | '.join(row)} |" for row in _texts(table)),
        ]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def latex(positions: Positions) -> str:
    """Return the tables as LaTeX that needs the package booktabs."""
    columns = positions.labels.positions
    lines = [
        *(f"% {line}" for line in (positions.summary(), _note(positions.labels))),
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        _latex_row(["", *columns]),
    ]
    for name, table in positions.tables().items():
        lines.append(r"\midrule")
        lines.append(rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{\textit{{{name}}}}} \\")
        lines += [_latex_row(row) for row in _texts(table)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def show(console: Console, positions: Positions) -> None:
    """Print the tables."""
    console.print(positions.summary(), soft_wrap=True)
    console.print()
    for name, table in positions.tables().items():
        heading(console, name)
        shown = plain_table()
        shown.add_column("quantity", no_wrap=True)
        for position in table.positions:
            shown.add_column(position, justify="right", no_wrap=True)
        for row in _texts(table, digits=2):
            shown.add_row(*row)
        console.print(shown)
        console.print()
    console.print(_note(positions.labels), soft_wrap=True)


def _texts(table: PositionTable, digits: int = 3) -> list[list[str]]:
    """Return a row per quantity: its title and per position its estimate and interval."""
    rows = []
    for name, estimates in table.quantities.items():
        cells = []
        for cell, status in enumerate(table.statuses[name]):
            text = number(float(estimates.estimate[cell]), digits)
            lower, upper = float(estimates.lower[cell]), float(estimates.upper[cell])
            if lower == lower:
                text += f" [{number(lower, digits)}, {number(upper, digits)}]"
            elif status != "ok":
                text += f" ({status.replace('_', ' ')})"
            cells.append(text)
        rows.append([TITLES.get(name, name), *cells])
    return rows


def _note(table: PositionTable) -> str:
    estimates = next(iter(table.quantities.values()))
    return (
        f"In brackets: {100 * estimates.level:g}% intervals ({estimates.method} over responses)."
        " Shares and numbers of kinds of claims are means over sentences; position i/n of sentence "
        "i of n, an edge belonging to the bin below it."
    )


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cell.replace("%", r"\%") for cell in cells) + r" \\"


def _plain(value: Any) -> Any:
    """Return a value as a CSV cell: an undefined number is empty."""
    return "" if value is None or value != value else value


def _is_record(line: str) -> bool:
    try:
        return looks_like_record(decode(line, ""))
    except InputError:
        return False


def _n_sentences(graph: FactGraph, source: object) -> int:
    length = graph.metadata.get("sentences")
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise InputError(
            f"{source}: response {graph.id!r} does not say how many sentences it has; give "
            "'sentences' in its metadata"
        )
    return length


def _label(annotation: str | None, label: bool | None) -> ClaimLabel | None:
    if annotation in set(ClaimLabel):
        return ClaimLabel(annotation)
    if label is None:
        return None
    return ClaimLabel.SUPPORTED if label else ClaimLabel.UNSUPPORTED
