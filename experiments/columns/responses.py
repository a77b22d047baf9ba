"""Reading of responses to assess: plain text, tables, fact graphs, labeled datasets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, cast

from experiments.columns.reader import Columns
from experiments.columns.response_table import empty_remark, responses_of_table
from experiments.columns.roles import RESPONSE_TEXT
from experiments.columns.sources import IN_MEMORY, table_of
from experiments.findings.findings import Findings
from experiments.settings import USUAL, ColumnName, Option, Settings, Words
from experiments.settings.inputs import check_named, graphs_of, is_dataset, read_graphs
from experiments.settings.limits import Language
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.extraction.sentences import LANGUAGE_KEY
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.registry import format_of
from factormodels.io.reading import items_of
from factormodels.io.source.files import read_text
from factormodels.io.source.opening import decoded, exists, read_whole
from factormodels.io.source.places import record_id
from factormodels.io.tables.data_table import (
    DataTable,
    given_rows,
    holds_binary_tables,
    looks_like_table,
    parse_table,
    read_table,
)
from factormodels.io.tables.records import (
    column_names,
    is_binary,
    is_json,
    is_json_value,
    json_records,
    strictly,
    table_records,
)
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

Given = FactGraph | Mapping[str, Any]
"""A response: a fact graph, or a row of a table with its text, such as
``{"response": ..., "question": ..., "id": ...}``."""

_Read: TypeAlias = tuple[Sequence[FactGraph], tuple[str, ...]]
"""Responses, and remarks on reading them."""

_COLUMN_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "response": "text_column",
        "question": "question_column",
        "id": "id_column",
        "documents": "documents_of",
    }
)
"""Setting for the column of each role; topics and passages have none. Only commands that search
have `documents_of`."""

ResponsesIn: TypeAlias = (
    "str | os.PathLike[str] | Given | Iterable[Given] | pd.DataFrame | Findings"
)
"""Responses: a file, a folder, the name of an embedded dataset, one or several responses, a data
frame, or findings."""

STANDARD_INPUT = Path("-")

_PLAIN_FORMATS = ("responses", "prompts", "longfact", "ragas")
"""Formats of records with a text and passages but no claims, which are read like table rows."""

_TABLE_SUFFIXES = (".csv", ".tsv", ".tab")
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
_TEXT_SUFFIXES = (".txt", ".md")

_REGULAR_ROWS = 2
_PROSE_CELLS = 2
"""Prose with fewer rows, and up to this number of comma-separated cells, may look like a table by
chance."""


@dataclass(frozen=True)
class LoadedResponses:
    """Responses that were read.

    Attributes:
        graphs: the responses.
        remarks: remarks on guesses, a sentence each.
        source: name of the responses.
    """

    graphs: tuple[FactGraph, ...]
    remarks: tuple[str, ...] = ()
    source: str = ""

    def only(
        self, wanted: Callable[[FactGraph], Any], without: str, refusal: str
    ) -> LoadedResponses:
        """Return the usable responses, with a remark on the others.

        Args:
            wanted: returns True for a usable response.
            without: noun for what the others lack, for the remark.
            refusal: error message if no response is usable.

        Raises:
            InputError: if no response is usable.
        """
        graphs = tuple(filter(wanted, self.graphs))
        if not graphs:
            raise InputError(refusal)
        if not (left_out := len(self.graphs) - len(graphs)):
            return self
        remark = f"{counted(left_out, 'response')} without {without}: left out."
        return replace(self, graphs=graphs, remarks=(*self.remarks, remark))

    def with_texts(self) -> LoadedResponses:
        """Return the responses with a text, with a remark on the others.

        Raises:
            InputError: if no response has a text.
        """
        first = self.graphs[0].id
        refusal = f"the response {first!r} has no text to extract claims from; give its text"
        return self.only(lambda graph: graph.response.strip(), "a text", refusal)


class ResponseSettings(Settings):
    """Responses.

    Options that choose responses: texts, columns and passages.
    """

    takes_text: ClassVar[bool] = True
    """True if the reading function has `text`."""

    text: Annotated[Any, Option(command_line=False)] = None
    """The text of a response, or a list of texts, instead of data."""

    query: Annotated[str | None, USUAL] = None
    """The question that the response answers."""

    topic: str | None = None
    """The topic of the response, added to the search for each claim."""

    response: Annotated[Words, Option("ID", usual=True)] = ()
    """Id of a response to use; repeatable."""

    text_column: Annotated[ColumnName, USUAL] = None
    """In a table, the column of responses."""

    question_column: ColumnName = None
    """In a table, the column of questions."""

    id_column: ColumnName = None
    """In a table, the column of ids."""

    language: Language = None

    passages: Path | None = None
    """File of passages for FActScore's atoms, as JSON Lines."""

    def load(self, responses: ResponsesIn | None = None) -> LoadedResponses:
        """Read responses from a file or folder, standard input, an embedded dataset, or `text`.

        A text is a response, and so is each file in a folder of texts. A table has a response per
        row (`factormodels.io.tables.data_table`), in columns that are named or recognized. Fact
        graphs and the other formats of `factormodels.read_many` are read too.

        Args:
            responses: the path of the file or folder; "-" is standard input; or the name of an
                embedded dataset; or the responses; or None if `text` is given.

        Raises:
            InputError: if the input cannot be read, is malformed or empty, or lacks a requested
                response; or if there is no input, or both data and a text.
        """
        if responses is None and not self.takes_text:
            raise InputError(
                f"there are no responses; name a file or an embedded dataset, or {_TEXT_ELSEWHERE}"
            )
        if (responses is None) == (self.text is None):
            both = "both are given" if responses is not None else "neither is given"
            raise InputError(
                f"responses and text: {both}; name a file, a folder or an embedded dataset, or "
                "give text=... alone"
            )
        source: object = "the responses"
        if responses is None:
            graphs, remarks = _of_texts(self.text, self)
        elif isinstance(responses, str | os.PathLike):
            source = Path(responses)
            if isinstance(responses, str):
                _check_place(responses, takes_text=self.takes_text)
            elif source != STANDARD_INPUT:
                check_named(source)
            graphs, remarks = _read(Path(responses), self)
        else:
            graphs, remarks = _of_given(responses, self)
        if self.passages is not None:
            from factormodels.io.formats.factscore_passages import with_passages

            graphs = with_passages(graphs, self.passages)
        for name in self.response:
            if not any(graph.id == name for graph in graphs):
                ids = ", ".join(graph.id for graph in graphs[:4]) + (", ..." * (len(graphs) > 4))
                raise InputError(f"{source}: there is no response {name!r}; it holds {ids}")
        return LoadedResponses(
            tuple(
                replace(
                    graph,
                    query=graph.query if self.query is None else self.query,
                    topic=graph.topic if self.topic is None else self.topic,
                    metadata=graph.metadata
                    if self.language is None
                    else {**graph.metadata, LANGUAGE_KEY: self.language},
                )
                for graph in graphs
                if not self.response or graph.id in self.response
            ),
            remarks,
            source.name if isinstance(source, Path) else str(source),
        )


class _WithDocuments(ResponseSettings):
    """Settings of responses with their own documents, for functions without these settings."""

    takes_text: ClassVar[bool] = False

    documents_of: ColumnName = None


def load_responses(responses: ResponsesIn, documents_of: str | None = None) -> LoadedResponses:
    """Read responses as `ResponseSettings.load` does.

    Args:
        responses: the responses.
        documents_of: column of a table with the path of each response's documents.
    """
    return _WithDocuments(documents_of=documents_of).load(responses)


_TEXT_ELSEWHERE = "give the graphs of `assess(text=...)`"
"""Advice of functions without `text`."""


def _check_place(text: str, *, takes_text: bool) -> None:
    """Raise an error for a string that names nothing, and may be a text.

    Args:
        text: the string.
        takes_text: True if the function has `text`.
    """
    path = Path(text)
    if text == str(STANDARD_INPUT) or is_dataset(path) or exists(path):
        return
    if len(text.split()) > 1 and len(path.suffix.split()) != 1:
        raise InputError(
            f"{shown(text)} is not a file, folder or embedded dataset; "
            + ("give the text of a response as text=..." if takes_text else _TEXT_ELSEWHERE)
        )
    as_text = "give a text as text=..." if takes_text else _TEXT_ELSEWHERE
    check_named(path, f"the path of a file, or {as_text}")


def _of_texts(texts: Any, columns: ResponseSettings) -> _Read:
    """Read the text of a response, or the texts of several."""
    several = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(several, 1):
        if not isinstance(text, str):
            raise InputError(
                f"text {number} is a {type(text).__name__}, not a text; pass rows or graphs as data"
            )
    _require_no_columns(columns, "there is no table")
    graphs = [
        FactGraph(f"response-{number}", (), response=text.strip())
        for number, text in enumerate(several, 1)
    ]
    if not any(graph.response for graph in graphs):
        raise InputError("text 1 is empty; give the text of a response")
    return _without_empty(graphs_of(graphs), "id")


def _of_given(
    data: Given | Iterable[Given] | pd.DataFrame | Findings, columns: ResponseSettings
) -> _Read:
    """Read given responses."""
    if isinstance(data, Findings):
        data = data.graphs or table_of(data).rows
    several: list[Given] = [data] if isinstance(data, FactGraph | Mapping) else given_rows(data)
    if any(isinstance(item, str) for item in several):
        as_texts = "give texts as text=[...]" if columns.takes_text else _TEXT_ELSEWHERE
        raise InputError(f"responses hold a text; {as_texts}")
    remarks: tuple[str, ...] = ()
    if several and all(isinstance(item, Mapping) for item in several):
        rows = cast("list[Mapping[str, Any]]", several)
        if _is_published(rows[0]) and not _named_columns(columns):
            return _without_empty(_unique(_of_published(rows), IN_MEMORY), "id")
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        table = DataTable("response", "rows", names, tuple(rows), (None,) * len(rows))
        graphs, remarks = responses_of_table(table, _named(columns))
        several = list(graphs)
    else:
        _require_no_columns(columns, "there is no table")
    kept, empty = _without_empty(graphs_of(cast("list[FactGraph]", several)), "id")
    return kept, (*remarks, *empty)


def _of_published(rows: Sequence[Mapping[str, Any]]) -> Iterator[FactGraph]:
    """Yield the responses of rows in a published format, as from a file.

    Raises:
        InputError: if a row is malformed.
    """
    form = format_of(rows[0])
    if form is not None:
        parsed = [form.read(row, IN_MEMORY, number) for number, row in enumerate(rows, 1)]
        yield from (item for item in form.items(parsed) if isinstance(item, FactGraph))


def _read(source: Path, columns: ResponseSettings) -> _Read:
    """Read responses from a file or folder."""
    if source != STANDARD_INPUT and is_dataset(source):
        return _without_columns(read_graphs(source), source, columns)
    if source.is_dir() and source != STANDARD_INPUT and not holds_binary_tables(source):
        return _without_columns(_texts_of_folder(source), source, columns, "file")
    content = b"" if source.is_dir() else read_whole(source)
    name = "standard input" if source == STANDARD_INPUT else str(source)
    packed = is_binary(content)
    if source == STANDARD_INPUT and packed:
        raise InputError(
            "standard input is Parquet, Arrow or a workbook, which must be read from a file; "
            "give the file name"
        )
    if source.is_dir() or packed:
        table = read_table(source)
        if packed and _is_published(table.rows[0]) and not _named_columns(columns):
            return _without_columns(read_graphs(source), source, columns)
        return _of_table(table, columns)
    text = decoded(content, name)
    if not text.strip():
        raise InputError(f"{name}: the file is empty; give the text of a response")
    plain = source.with_suffix("") if source.suffix == ".gz" else source
    suffix = plain.suffix.lower()
    if _looks_like_json(text, suffix):
        return _of_json(text, name, columns)
    asked = _named_columns(columns)
    # A table with the requested columns.
    named = bool(asked) and asked <= set(column_names(text)) and "\n" in text.strip()
    if suffix in _TABLE_SUFFIXES or named:
        # Before columns are recognized, because tables of known datasets have their own readers.
        if _is_published(dict.fromkeys(column_names(text), "")):
            return _without_columns(read_graphs(source), source, columns)
        return _of_table(parse_table(text, name), columns)
    if _is_table(text):
        header = ", ".join(column_names(text))
        raise InputError(
            f"{name}: this looks like a table (columns {header}) and not like the text of a "
            "response; name the column with --text-column, or rename the file to .csv; to pass "
            "it as a text, use a row of JSON Lines"
        )
    stem = "response" if source == STANDARD_INPUT else record_id(source)
    return _without_columns([FactGraph(stem, (), response=text.strip())], source, columns)


def _is_published(row: Mapping[str, Any]) -> bool:
    """Return True if a row has a format whose reader uses more than texts."""
    known = format_of(row)
    return known is not None and known.holds == "responses" and known.name not in _PLAIN_FORMATS


def _looks_like_json(text: str, suffix: str) -> bool:
    """Return True if a text is meant as JSON; a response may begin with a bracket, as in [1]."""
    if not is_json(text):
        return False
    if suffix in _JSON_SUFFIXES or text.lstrip().startswith("{"):
        return True
    return bool(re.match(r"\s*\[\s*\{", text)) or is_json_value(text)


def _is_table(text: str) -> bool:
    """Return True if a text is a table: it names a column of responses or has regular rows."""
    if not looks_like_table(text):
        return False
    names = column_names(text)
    if Columns(names, "the text").known(RESPONSE_TEXT) is not None:
        return True
    # Three lines of prose rarely have the same number of semicolons or of two or more commas each;
    # code ends lines with one semicolon.
    rows = sum(1 for _ in table_records(text, ""))
    by_chance = len(names) <= _PROSE_CELLS and "," in text.split("\n")[0]
    return rows >= _REGULAR_ROWS and all(name.strip() for name in names) and not by_chance


def _named(columns: ResponseSettings) -> dict[str, str | None]:
    """Columns that options name, by role."""
    return {meaning: getattr(columns, option, None) for meaning, option in _COLUMN_OPTIONS.items()}


def _require_no_columns(columns: ResponseSettings, why: str, where: str = "") -> None:
    """Refuse options that name columns if there are none."""
    for option in _COLUMN_OPTIONS.values():
        if getattr(columns, option, None) is not None:
            raise InputError(
                f"{where}--{option.replace('_', '-')} names a column, and {why}; leave it out"
            )


def _named_columns(columns: ResponseSettings) -> set[str]:
    return {name for name in _named(columns).values() if name is not None}


def _of_json(text: str, name: str, columns: ResponseSettings) -> _Read:
    values = [record.value for record in strictly(json_records(text, name, nan_is_missing=True))]
    formats = [format_of(value) for value in values]
    plain = all(form is None or form.name in _PLAIN_FORMATS for form in formats)
    # Pass mixtures to the reader of graphs, whose error is better.
    if plain or any(isinstance(value, dict) and columns.text_column in value for value in values):
        return _of_table(parse_table(text, name), columns)
    graphs = [item for item, _ in items_of(text, name) if isinstance(item, FactGraph)]
    if not graphs:
        raise InputError(f"{name}: it contains no response; give responses or fact graphs")
    return _without_columns(_unique(graphs, name), Path(name), columns)


def _of_table(table: DataTable, columns: ResponseSettings) -> _Read:
    graphs, remarks = responses_of_table(table, _named(columns))
    return _unique(graphs, table.source), remarks


def _without_columns(
    graphs: Sequence[FactGraph], source: Path, columns: ResponseSettings, noun: str = "id"
) -> _Read:
    _require_no_columns(columns, "this is not a table", f"{source}: ")
    return _without_empty(graphs, noun)


def _without_empty(
    graphs: Sequence[FactGraph], noun: str
) -> tuple[Sequence[FactGraph], tuple[str, ...]]:
    """Leave out responses with neither text nor claims, unless all are empty, with a remark."""
    filled = [graph for graph in graphs if graph.response.strip() or graph.atoms]
    if not filled or len(filled) == len(graphs):
        return graphs, ()
    kept = {graph.id for graph in filled}
    empty = [graph.id for graph in graphs if graph.id not in kept]
    return filled, (empty_remark(empty, len(graphs), noun),)


def _texts_of_folder(folder: Path) -> list[FactGraph]:
    """A response from each text file of a folder, ordered by path."""
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in _TEXT_SUFFIXES and path.is_file()
    )
    graphs = []
    for path in paths:
        text = read_text(path).strip()
        name = path.relative_to(folder).with_suffix("").as_posix()
        graphs.append(FactGraph(name, (), response=text))
    if graphs and not any(graph.response for graph in graphs):
        raise InputError(
            f"{folder}: every text in the folder is empty; give the text of a response"
        )
    if not graphs:
        raise InputError(
            f"{folder}: the folder contains no text (.txt, .md) and no Parquet or Arrow file; "
            "name another folder, or a table in it"
        )
    return _unique(graphs, str(folder))


def _unique(graphs: Iterable[FactGraph], name: str) -> list[FactGraph]:
    by_id: dict[str, FactGraph] = {}
    for graph in graphs:
        if graph.id in by_id:
            raise InputError(
                f"{name}: two responses have the id {graph.id!r}; give each response its own id"
            )
        by_id[graph.id] = graph
    return list(by_id.values())
