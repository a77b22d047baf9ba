"""Artifacts of a paper: a table or a figure, the data behind it, and the study it comes from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from experiments.findings.markup import write_csv
from experiments.findings.table import Table, markdown, presented, renaming, warn_of_absent
from experiments.findings.venues import DEFAULT_VENUE, POINTS, VENUES, Venue, fitted
from factormodels.errors import InputError
from factormodels.io.source.files import atomic_path, write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LONGEST_PRINTED = 100_000
"""Maximum rows of a table that is written as LaTeX and Markdown; a longer table is only data."""


@dataclass(frozen=True)
class Origin:
    """Provenance recorded in an artifact.

    Attributes:
        study: name of the study, or of the notebook.
        sha256: hash of the request, as `factormodels.io.yaml.plain_hash` makes it.
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
        title: description of the figure, kept in the files.
        says_nothing: reason why the figure is not worth showing, such as that all labels are the
            same; empty if it is worth showing.
    """

    figure: Figure
    data: pd.DataFrame
    title: str = ""
    says_nothing: str = ""

    @property
    def caption(self) -> str:
        """The title, and the figure's sentences on sample sizes, bands and bars."""
        notes: str = getattr(self.figure, "caption", "")
        if not (notes and self.title):
            return notes or self.title
        return f"{self.title.removesuffix('.')}. {notes}"

    def renamed(
        self, named: Callable[[str], str], caption_with: Callable[[str], str]
    ) -> PaperFigure:
        """Return the figure with other names, given functions that replace them in labels and in
        sentences."""
        from calibration.figures.shown_figure import ShownFigure

        if isinstance(self.figure, ShownFigure):
            self.figure.rename(named, caption_with)
        return replace(self, title=caption_with(self.title))

    @property
    def absence(self) -> str:
        """Reason why the figure is not written; empty if it is written."""
        from calibration.figures.points import has_points

        if self.says_nothing or has_points(self.figure):
            return self.says_nothing
        return "nothing that it would show is a finite number; the tables say why"


@dataclass(frozen=True)
class Artifacts:
    """Tables, figures and remarks made by an analysis.

    Attributes:
        tables: tables by the stem of their files.
        figures: figures by the stem of their files, which differs from the stems of all tables.
        remarks: sentences that a reader of the results must know, such as the source of the data.
    """

    tables: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    figures: Mapping[str, PaperFigure] = field(default_factory=lambda: MappingProxyType({}))
    remarks: tuple[str, ...] = ()

    def with_points(self) -> Artifacts:
        """Return the artifacts without figures that show nothing, and with a remark on each of
        these."""
        absences = {stem: figure.absence for stem, figure in self.figures.items()}
        figures = {stem: self.figures[stem] for stem, why in absences.items() if not why}
        remarks = tuple(
            f"There is no figure {stem}: {why}." for stem, why in absences.items() if why
        )
        return replace(self, figures=figures, remarks=(*self.remarks, *remarks))

    def renamed(self, names: Mapping[str, str]) -> Artifacts:
        """Return the artifacts with other names in tables, figures and remarks, but not in data."""
        if not names:
            return self
        warn_of_absent(names, self.tables.values(), self.remarks)
        named, in_prose = renaming(names), renaming(names, prose=True)
        return Artifacts(
            {stem: presented(table, names) for stem, table in self.tables.items()},
            {stem: figure.renamed(named, in_prose) for stem, figure in self.figures.items()},
            tuple(map(in_prose, self.remarks)),
        )


def write_artifact(
    shown: Table | PaperFigure,
    folder: str | os.PathLike[str],
    stem: str,
    origin: Origin,
    venue: Venue = VENUES[DEFAULT_VENUE],
) -> tuple[Path, ...]:
    """Write a table or a figure as STEM.tex (LaTeX), and its data as STEM.csv.

    A table is also written as STEM.md, a figure as STEM.pdf and STEM.png. A table of more than
    100,000 rows is written as STEM.csv alone.

    Args:
        shown: the table, or the figure.
        folder: an existing folder.
        stem: the name of the files without suffix.
        origin: its origin, as recorded in comments and in the metadata of a figure.
        venue: venue that determines widths and fonts.

    Returns:
        The paths of the files, each whole.

    Raises:
        InputError: if a file cannot be written.
    """
    from experiments.findings.latex import latex, latex_figure

    base = Path(folder)
    comments = origin.comments()
    texts: dict[str, str] = {}
    if isinstance(shown, Table):
        data = shown.frame
        csv_path = base / f"{stem}.csv"
        write_csv(csv_path, data)
        if len(data) <= _LONGEST_PRINTED:
            texts = {
                f"{stem}.tex": latex(shown, stem, comments, venue),
                f"{stem}.md": markdown(shown, comments),
            }
        for name, text in texts.items():
            write_text(base / name, text)
        return (csv_path, *(base / name for name in texts))
    from calibration.figures import save_figure

    subject = {"Subject": shown.title} if shown.title else {}
    with fitted(shown.figure, venue) as wide:
        metadata = {**origin.metadata(), **subject}
        paths = save_figure(shown.figure, base / stem, metadata=metadata)
        height = shown.figure.get_figheight() * POINTS
    tex_path, csv_path = base / f"{stem}.tex", base / f"{stem}.csv"
    write_text(tex_path, latex_figure(stem, shown.caption, height, comments, venue, wide=wide))
    write_csv(csv_path, shown.data)
    return (*paths, tex_path, csv_path)


def write_artifacts(
    artifacts: Artifacts,
    folder: str | os.PathLike[str],
    origin: Origin,
    venue: Venue = VENUES[DEFAULT_VENUE],
) -> tuple[Path, ...]:
    """Write every table and figure, and return the paths of the files.

    Raises:
        InputError: if a table and a figure share a stem, or a file cannot be written.
    """
    # Before anything is written.
    for stem in artifacts.tables.keys() & artifacts.figures.keys():
        raise InputError(
            f"a table and a figure are both called {stem!r}, and both write {stem}.csv; rename one"
        )
    every: dict[str, Table | PaperFigure] = {**artifacts.tables, **artifacts.figures}
    return tuple(
        path
        for stem, shown in every.items()
        for path in write_artifact(shown, folder, stem, origin, venue)
    )


def write_parquet(path: Path, frame: pd.DataFrame, metadata: Mapping[str, str]) -> None:
    """Write a frame without its index as Parquet, whole or not at all.

    A column with values of several types, such as numbers and texts, is written as texts.

    Args:
        path: the file.
        frame: the table.
        metadata: metadata of the file, in addition to the frame's own.

    Raises:
        InputError, OSError: as `atomic_path` does.
    """
    import pyarrow as pa
    from pyarrow import parquet

    columns = {}
    for name, column in frame.items():
        try:
            columns[str(name)] = pa.array(column, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[str(name)] = pa.array(column.map(str, na_action="ignore"), from_pandas=True)
    table = pa.table(columns)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary)
