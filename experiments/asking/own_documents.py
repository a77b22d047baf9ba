"""Documents of each response: named in its row, found by its id, or its passages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from experiments.columns.response_table import DOCUMENTS_KEY
from experiments.findings.text import some_of
from experiments.settings import ColumnName, Option
from experiments.settings.inputs import is_dataset, read_graphs
from factormodels.errors import InputError
from factormodels.extraction.retrieval.documents import (
    Document,
    DocumentFolder,
    documents_of_graphs,
    read_folder,
    suffixes,
)
from factormodels.fact_graph import FactGraph
from factormodels.io.source.opening import exists
from factormodels.nouns import counted

DocumentsOf = Annotated[
    ColumnName,
    Field(
        description="In a table, the column with the folder or file of each response's own "
        "documents, relative to the table's folder."
    ),
]
"""Column of the documents of a response, with its description."""

Scope = Annotated[
    Literal["all", "own"] | None,
    Field(
        description="Documents to search for a claim: all, or own, the documents of its response: "
        "those that --documents-of names (own is then the default), those under its id in "
        "--documents, or its passages."
    ),
    Option("WHOSE"),
]
"""Documents that are searched, with their description."""

OWN = "own"

_MOST_REMARKS = 4
"""Largest number of remarks on files of single responses to show."""


class OwnFolders(NamedTuple):
    """The documents of each response.

    Attributes:
        documents: documents of a response by its id.
        remarks: sentences on files that are not searched.
    """

    documents: dict[str, tuple[Document, ...]]
    remarks: tuple[str, ...]


def is_own(scope: str | None, documents_of: str | None) -> bool:
    """Return True if each response searches only its own documents."""
    return scope == OWN or (scope is None and documents_of is not None)


def own_documents(
    source: Path | tuple[Document, ...] | None, graphs: Sequence[FactGraph]
) -> OwnFolders:
    """Read the documents of each response.

    Args:
        source: a folder with a folder or file for each id, a file or documents whose titles are
            ids, or an embedded dataset with these ids; None for the path in a response's row, or
            the passages of the response.
        graphs: the responses.

    Raises:
        InputError: for a response without documents in a named source, for unreadable documents, or
            if no response has any documents.
    """
    if source is None:
        folders = _named_or_passages(graphs)
    elif isinstance(source, Path) and source.is_dir() and not is_dataset(source):
        folders = {graph.id: _in_folder(source, graph.id) for graph in graphs}
    else:
        folders = _by_name(source, graphs)
    if not any(folder.documents for folder in folders.values()):
        raise InputError(
            "--scope own: no response has passages; name its documents with --documents-of COLUMN, "
            "or a folder with a folder for each response with --documents"
        )
    # Responses may have a folder in common.
    remarks = list(dict.fromkeys(each for folder in folders.values() for each in folder.remarks))
    if len(remarks) > _MOST_REMARKS:
        more = counted(len(remarks) - _MOST_REMARKS, "further remark")
        remarks[_MOST_REMARKS:] = [f"{more} on files of other responses that are not searched"]
    return OwnFolders({name: each.documents for name, each in folders.items()}, tuple(remarks))


def own_digest(documents: Mapping[str, Iterable[Document]]) -> str:
    """SHA-256 of documents by response, independent of their files."""
    digest = hashlib.sha256()
    for name, searched in documents.items():
        parts = [name, *(part for each in searched for part in (each.title, each.link, each.text))]
        for part in (str(len(parts)), *parts):
            # Include the length, so that different lists of parts have different texts.
            digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def own_remark(documents: Mapping[str, Sequence[Document]]) -> str:
    """Return a sentence on responses without their own documents; "" if there are none."""
    silent = [name for name, searched in documents.items() if not searched]
    if not silent:
        return ""
    have = "has" if len(silent) == 1 else "have"
    return (
        f"{len(silent):,} of {counted(len(documents), 'response')} {have} no passages to search: "
        f"nothing was found for their claims ({some_of(silent)})."
    )


def _named_or_passages(graphs: Sequence[FactGraph]) -> dict[str, DocumentFolder]:
    by_path: dict[str, DocumentFolder] = {}
    folders = {}
    for graph in graphs:
        path = graph.metadata.get(DOCUMENTS_KEY)
        if not isinstance(path, str):
            folders[graph.id] = _passages(graph)
            continue
        if path not in by_path:
            by_path[path] = _read(Path(path), graph.id)
        folders[graph.id] = by_path[path]
    return folders


def _passages(graph: FactGraph) -> DocumentFolder:
    return DocumentFolder(documents_of_graphs([graph]), ())


def _in_folder(folder: Path, name: str) -> DocumentFolder:
    """Documents of a response in a folder: the folder of its id, or a file named after it."""
    whole = folder.resolve()
    places = [folder / name, *(folder / f"{name}{suffix}" for suffix in suffixes())]
    for path in places:
        # An id must not refer to a path outside the folder.
        if path.resolve().is_relative_to(whole) and path.resolve() != whole and exists(path):
            return _read(path, name)
    raise InputError(
        f"{folder}: it has no folder or file for the response {name!r}; put its documents in a "
        f"folder of that name, or in a file such as {name}.txt"
    )


def _read(path: Path, name: str) -> DocumentFolder:
    try:
        return read_folder(path)
    except InputError as error:
        raise InputError(f"response {name!r}: {error}") from None


def _by_name(
    source: Path | tuple[Document, ...], graphs: Sequence[FactGraph]
) -> dict[str, DocumentFolder]:
    """Documents titled by the id of a response, or passages of a dataset's response."""
    by_name: dict[str, DocumentFolder] = {}
    if isinstance(source, Path) and is_dataset(source):
        where, what = str(source), "response"
        by_name = {graph.id: _passages(graph) for graph in read_graphs(source)}
    else:
        where = str(source) if isinstance(source, Path) else "documents"
        what = "document with the title"
        read = read_folder(source) if isinstance(source, Path) else DocumentFolder(source, ())
        for document in read.documents:
            others = by_name[document.title].documents if document.title in by_name else ()
            by_name[document.title] = DocumentFolder((*others, document), read.remarks)
    for graph in graphs:
        if graph.id not in by_name:
            raise InputError(
                f"{where}: there is no {what} {graph.id!r}, which --scope own needs for that "
                "response; add it"
            )
    return {graph.id: by_name[graph.id] for graph in graphs}
