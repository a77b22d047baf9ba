"""Findings of a method in a user's data: sentences, tables and figures, to read and to save."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from experiments.destination import check_destination
from experiments.findings.artifacts import (
    Artifacts,
    Origin,
    PaperFigure,
    write_artifacts,
    write_parquet,
)
from experiments.findings.markup import write_csv
from experiments.findings.table import (
    Table,
    blocks,
    is_right,
    markdown,
    presented,
    renaming,
    warn_of_absent,
)
from experiments.findings.venues import DEFAULT_VENUE, Venue, venue_named
from factormodels.errors import InputError, options_as_arguments, unknown_name
from factormodels.io.fact_graph_json import write_fact_graphs
from factormodels.io.json import jsonable, plain_hash
from factormodels.io.source.files import (
    move_together,
    results_folder,
    unfinished_folder,
    write_text,
)
from factormodels.object_repr import Preview, Previewed

if TYPE_CHECKING:
    import pandas as pd

    from experiments.findings.responses import ListedResponses
    from factormodels.fact_graph import FactGraph


CLAIMS = "claims"
"""Name of the long frame of claims among the tables and frames of findings."""


def no_figures() -> Mapping[str, PaperFigure]:
    """Return no figures, for a method that draws none."""
    return MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False)
class Findings(Previewed):
    """Findings of a method; shown as its sentences and its first table.

    Attributes:
        source: name of the data.
        sentences: findings in words: first test results, then caveats.
        tables: the tables by name, the most important first.
        settings: settings of the command, as JSON can represent them; the front door adds the
            missing ones.
        draw: function that makes the figures, by name.
        unshown: names of tables that are saved but neither printed nor on the page.
        incomplete: whether a requested result is missing; the sentences name it.
        graphs: responses with the findings on each, which every command reads.
        texts: contents of text files by name; printed verbatim if there is no table.
        frames: functions that make long frames, by name, called on demand.
        written: files already written, or none if there is nothing to save; None: `save` writes
            them.
        listed: function that makes the responses that a page lists one by one; None: it lists none.
        page: the page, if the command has already made it.
        differing: settings that differ from their defaults, by option name, added by the front
            door.
        command: equivalent command, added by the front door.
        not_used: contents of files that no reader used, from `factormodels.io.not_used`, added by
            the front door.
        limit_reached: whether results are missing because of a limit on calls or costs.
        tidy: function that makes `frame`, which is also the content of a file of one table; None
            for the numbers of the first table.
    """

    source: str
    sentences: tuple[str, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    draw: Callable[[], Mapping[str, PaperFigure]] = field(default=no_figures)
    unshown: tuple[str, ...] = ()
    incomplete: bool = False
    graphs: tuple[FactGraph, ...] = ()
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    frames: Mapping[str, Callable[[], pd.DataFrame]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    written: tuple[Path, ...] | None = None
    listed: Callable[[], ListedResponses] | None = None
    page: bytes | None = None
    differing: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    command: str = ""
    not_used: tuple[Mapping[str, Any], ...] = ()
    limit_reached: bool = False
    tidy: Callable[[], pd.DataFrame] | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """Findings as a tidy frame: a row per number of interest, or the first table.

        Raises:
            InputError: if there is no table.
        """
        if self.tidy is not None:
            return self.tidy()
        if not self.tables:
            raise InputError(f"{self.command} has found no table; its sentences are all there is")
        return next(iter(self.tables.values())).numbers

    def __getitem__(self, name: str) -> pd.DataFrame:
        """Numbers of a table, a row per line, or a long frame.

        Raises:
            InputError: if there is no such table.
        """
        if name in self.frames:
            return self.frames[name]()
        if name not in self.tables:
            known = (*self.tables, *self.frames)
            raise InputError(unknown_name(f"the table {name!r}", name, known))
        return self.tables[name].numbers

    @property
    def claims(self) -> pd.DataFrame:
        """The long frame of claims, as data of `score`, `estimate`, `keep`, `fit` and `diff`.

        A row per claim with response, claim, text, p and label, then the columns of its cell: such
        as variant, model, setting or dataset.

        Raises:
            InputError: if the findings are not about claims.
        """
        if CLAIMS not in (*self.tables, *self.frames):
            raise InputError(
                f"{self.command} {self.source}: these findings have no claims; give one of their "
                "tables, such as result['NAME'], or findings of assess, apply or run"
            )
        return self[CLAIMS]

    @property
    def folder(self) -> Path:
        """The folder that already holds the result.

        Raises:
            InputError: if there is none.
        """
        if not self.written:
            raise InputError(f"{self.command} has written nothing; `save` does")
        return self.written[0].parent

    @property
    def origin(self) -> Origin:
        """Provenance recorded in files: the command, and a hash of its settings."""
        asked = {"command": self.command, "source": self.source, **jsonable(dict(self.settings))}
        return Origin(self.command, plain_hash(asked))

    def presented(
        self, names: Mapping[str, str] = MappingProxyType({}), chosen: Sequence[str] = ()
    ) -> Findings:
        """Findings with displayed names and the requested columns of numbers.

        Args:
            names: displayed names of models, data and so on, in tables, figures and sentences; the
                data behind tables and figures keep their names.
            chosen: columns of numbers that tables show, by name or title, in this order.

        Raises:
            InputError: if no table has a chosen column.
        """
        columns = [column for table in self.tables.values() for column in table.columns]
        known = dict.fromkeys(column.names for column in columns if is_right(column))
        for name in chosen:
            if not any(name in called for called in known):
                raise InputError(self._unknown_column(name, (first for first, _ in known)))
        tables = {name: presented(table, names, chosen) for name, table in self.tables.items()}
        if not names:
            return replace(self, tables=tables)
        warn_of_absent(names, self.tables.values(), self.sentences)
        in_prose = renaming(names, prose=True)

        def draw() -> Mapping[str, PaperFigure]:
            return {
                stem: each.renamed(renaming(names), in_prose) for stem, each in self.draw().items()
            }

        listed = None if self.listed is None else partial(_listed_renamed, self.listed, names)
        sentences = tuple(map(in_prose, self.sentences))
        return replace(self, tables=tables, sentences=sentences, draw=draw, listed=listed)

    def _unknown_column(self, name: str, known: Iterable[str]) -> str:
        """Return the message for a column that no table has, with the option that computes it."""
        if "scores" in self.settings:
            from calibration.scores.registry import REGISTRY

            given = {title.casefold(): each for each, score in REGISTRY.items()
                     for title in (each, score.title, score.column) if title}  # fmt: skip
            if score := given.get(name.casefold()):
                return f"the score {name!r} was not computed; add {score} to --scores"
        return unknown_name(f"the column {name!r}", name, known)

    def _for_readers(self, rename: Mapping[str, str], show: Sequence[str] | str) -> Findings:
        """Findings with renamed names and chosen columns, as `presented`; a warning for names."""
        chosen = show.split(",") if isinstance(show, str) else show
        if not rename and not chosen:
            return self
        return self.presented(rename, [name.strip() for name in chosen])

    def with_figures(self) -> Findings:
        """Return the findings with figures drawn; a sentence names figures without a number."""
        drawn = Artifacts(self.tables, self.draw(), self.sentences).with_points()
        return replace(self, sentences=drawn.remarks, draw=lambda: drawn.figures)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        venue: str = DEFAULT_VENUE,
        rename: Mapping[str, str] = MappingProxyType({}),
        show: Sequence[str] | str = (),
    ) -> list[Path]:
        """Write tables (CSV, LaTeX, Markdown), figures, texts, graphs and findings.json.

        Args:
            folder: a folder for everything, created if it does not exist; or a file, whose suffix
                determines its content: the first table (.tex, .md), its numbers, or `frame` if
                there is a tidy one (.csv, .parquet), the responses or else these numbers (.jsonl),
                or `as_json` (.json).
            venue: venue that LaTeX tables and figures must fit, as for `venue_named`.
            rename: displayed names of models, data and so on, as in `presented`.
            show: columns of numbers to show in tables, in this order, as a list or separated by
                commas.

        Returns:
            The files.

        Raises:
            InputError: if the folder or file cannot be created or written, the findings have no
                such content, the venue is unknown, or no table has a column of `show`.
        """
        target = Path(folder)
        with options_as_arguments():
            printed = venue_named(venue)
            form = check_destination(target)
            shown = self._for_readers(rename, show)
        if form:
            shown._write_one(target, form, printed)
            return [target]
        # Inside, because the folder may be the only one that can be written, or a disk of its own.
        with results_folder(target), unfinished_folder(target, inside=True) as unfinished:
            complete = shown.with_figures()
            artifacts = Artifacts(complete.tables, complete.draw(), complete.sentences)
            paths = list(write_artifacts(artifacts, unfinished, self.origin, printed))
            paths.append(unfinished / "findings.json")
            write_text(paths[-1], complete.as_json())
            for name, text in self.texts.items():
                paths.append(unfinished / name)
                write_text(paths[-1], text)
            if self.graphs:
                paths.append(unfinished / "graphs.jsonl")
                write_fact_graphs(self.graphs, paths[-1])
            move_together(paths, target)
        return [target / path.name for path in paths]

    def _write_one(self, path: Path, form: str, venue: Venue) -> None:
        if form == ".json":
            write_text(path, self.as_json())
            return
        if form == ".jsonl" and self.graphs:
            write_fact_graphs(self.graphs, path)
            return
        if not self.tables:
            raise InputError(f"{path}: there is no table for a {form} file; name a folder")
        table, comments = next(iter(self.tables.values())), self.origin.comments()
        numbers = table if self.tidy is None else Table(self.tidy(), ())
        if form == ".parquet":
            write_parquet(path, numbers.frame, self.origin.metadata())
        elif form == ".jsonl":
            lines = (json.dumps(row, ensure_ascii=False) for row in jsonable(numbers.records()))
            write_text(path, "".join(f"{line}\n" for line in lines))
        elif form == ".csv":
            write_csv(path, numbers.frame)
        elif form == ".md":
            write_text(path, markdown(table, comments))
        else:
            from experiments.findings.latex import latex

            write_text(path, latex(table, path.stem, comments, venue))

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        rename: Mapping[str, str] = MappingProxyType({}),
        show: Sequence[str] | str = (),
    ) -> Path:
        """Write all findings as a single HTML page, which needs no network.

        Args:
            path: the page.
            rename: displayed names of models, data and so on, as in `presented`.
            show: columns of numbers to show in tables, as in `save`.

        Raises:
            InputError: if the file cannot be written, or no table has a column of `show`.
        """
        from experiments.findings.page import findings_page, write_page

        target = Path(path)
        with options_as_arguments():
            shown = self._for_readers(rename, show)
        page = findings_page(shown.with_figures()) if shown.page is None else shown.page
        write_page(target, page)
        return target

    def as_json(self) -> str:
        """All but the figures as one JSON object on one line, ending in a newline.

        Keys: command, source, settings, findings (sentences), incomplete (whether something is
        missing), tables {name: [row]} and, where there are any, not_used (keys of files that no
        reader used: file, key, count, holds) and texts {name of the file: text}. A number that is
        not defined is null.
        """
        document = {
            "command": self.command,
            "source": self.source,
            "settings": jsonable(dict(self.settings)),
            "findings": list(self.sentences),
            "incomplete": self.incomplete,
            "tables": {name: jsonable(table.records()) for name, table in self.tables.items()},
        }
        if self.not_used:
            document["not_used"] = [dict(each) for each in self.not_used]
        if self.texts:
            document["texts"] = dict(self.texts)
        return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"

    def preview(self, most: int) -> Preview:
        """The findings in words, and the first rows of the first table."""
        heading = "\n".join((f"{self.command}: {self.source}", *self.sentences))
        table = next(iter(self.tables.values()), Table((), ()))
        rows = [row for _, part in blocks(table) for row in part]
        return Preview(
            heading,
            [column.title for column in table.columns],
            [
                [f"{cell.text}{cell.stars} {cell.interval}".strip() for cell in r]
                for r in rows[:most]
            ],
            len(rows),
            [is_right(column) for column in table.columns],
            table.notes if rows else "",
        )

    def shown(self) -> dict[str, Table]:
        """The tables that are printed."""
        return {name: table for name, table in self.tables.items() if name not in self.unshown}


def _listed_renamed(
    listed: Callable[[], ListedResponses], names: Mapping[str, str]
) -> ListedResponses:
    return listed().renamed(renaming(names))
