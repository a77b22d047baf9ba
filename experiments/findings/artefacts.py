"""Artefacts of a paper: a table or a figure, the data behind it, and the study it comes from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from calibration.table_markup import csv_text
from experiments.findings import table as latex_table
from experiments.findings.table import Table, TableWidth
from factormodels.errors import InputError
from factormodels.io.files import write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Origin:
    """What an artefact says of where it comes from.

    Attributes:
        study: name of the study, or of the notebook.
        sha256: hash of what was asked, as `factormodels.io.plain_yaml.plain_hash` makes it.
    """

    study: str
    sha256: str

    def metadata(self) -> dict[str, str]:
        """The origin as metadata of files of figures and rows."""
        return {"study": self.study, "config_sha256": self.sha256}

    def comments(self) -> tuple[str, str]:
        """The origin as the lines at the head of a table."""
        return f"study {self.study}", f"config sha256 {self.sha256}"


@dataclass(frozen=True)
class PaperFigure:
    """A figure with the data that it shows.

    Attributes:
        figure: the figure.
        data: the numbers behind it, one row per point, line or bar.
        title: what it shows, kept in the files.
    """

    figure: Figure
    data: pd.DataFrame
    title: str = ""


@dataclass(frozen=True)
class Artefacts:
    """What an analysis makes.

    Attributes:
        tables: tables by the stem of their files.
        figures: figures by the stem of theirs, none of a table's.
        remarks: sentences that a reader of the results must know, such as whose the data are.
    """

    tables: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    figures: Mapping[str, PaperFigure] = field(default_factory=lambda: MappingProxyType({}))
    remarks: tuple[str, ...] = ()


def write_table(
    table: Table,
    folder: str | os.PathLike[str],
    stem: str,
    origin: Origin,
    width: TableWidth = "page",
) -> tuple[Path, ...]:
    """Write a table as STEM.csv (all columns of its frame), STEM.tex and STEM.md.

    Args:
        table: the table.
        folder: an existing folder.
        stem: the name of the files without suffix.
        origin: where it comes from; the table's texts carry it in a comment.
        width: what the LaTeX table fits.

    Returns:
        The paths of the files, each whole.

    Raises:
        InputError: if a file cannot be written.
    """
    base = Path(folder)
    comments = origin.comments()
    texts = {
        f"{stem}.csv": csv_text(table.frame),
        f"{stem}.tex": latex_table.latex(table, comments, width),
        f"{stem}.md": latex_table.markdown(table, comments),
    }
    for name, text in texts.items():
        write_text(base / name, text)
    return tuple(base / name for name in texts)


def write_figure(
    figure: Figure,
    data: pd.DataFrame,
    folder: str | os.PathLike[str],
    stem: str,
    origin: Origin,
    title: str = "",
) -> tuple[Path, ...]:
    """Write a figure as STEM.pdf and STEM.png, and the data behind it as STEM.csv.

    Args:
        figure: the figure.
        data: the numbers that it shows, one row per point, line or bar.
        folder: an existing folder.
        stem: the name of the files without suffix.
        origin: where it comes from; the metadata of the figure carry it.
        title: what it shows, for the metadata.

    Returns:
        The paths of the files, each whole.

    Raises:
        InputError: if a file cannot be written.
    """
    from calibration.figures import save_figure

    base = Path(folder)
    subject = {"Subject": title} if title else {}
    paths = save_figure(figure, base / stem, metadata={**origin.metadata(), **subject})
    write_text(base / f"{stem}.csv", csv_text(data))
    return (*paths, base / f"{stem}.csv")


def write_artefacts(
    artefacts: Artefacts,
    folder: str | os.PathLike[str],
    origin: Origin,
    width: TableWidth = "page",
) -> tuple[Path, ...]:
    """Write every table and figure, and return the paths of the files.

    Raises:
        InputError: if a table and a figure share a stem, or a file cannot be written.
    """
    # Before anything is written.
    for stem in artefacts.tables.keys() & artefacts.figures.keys():
        raise InputError(
            f"a table and a figure are both called {stem!r}, and both write {stem}.csv; rename one"
        )
    paths: list[Path] = []
    for stem, table in artefacts.tables.items():
        paths += write_table(table, folder, stem, origin, width)
    for stem, each in artefacts.figures.items():
        paths += write_figure(each.figure, each.data, folder, stem, origin, each.title)
    return tuple(paths)
