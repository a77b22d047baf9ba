"""Local documents: a folder of text, Markdown, HTML, PDF and JSON Lines files."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from factormodels.decoded_values import text_field
from factormodels.errors import InputError
from factormodels.extraction.optional_libraries import optional_module
from factormodels.extraction.retrieval.chroma import FILE, chroma_texts
from factormodels.extraction.retrieval.pdf import pdf_text
from factormodels.fact_graph import FactGraph
from factormodels.io.json import read_json_lines
from factormodels.io.source.files import read_text
from factormodels.io.source.opening import exists, read_whole
from factormodels.io.source.places import record_at
from factormodels.nouns import counted
from factormodels.samples import is_sample

logger = logging.getLogger(__name__)

_MOST_NAMED = 4
"""Number of files that a warning names."""

_FRAGMENT = re.compile(
    r"\s*<(?:article|blockquote|div|dl|h[1-6]|main|ol|p|pre|section|table|ul)\b", re.IGNORECASE
)
"""Start of a fragment of a page: an element of its body, without the body."""

_DATABASE = Path(FILE).suffix
_RECORD_KEYS = "text, and optionally title and link"


@dataclass(frozen=True, slots=True)
class Document:
    """A document from which passages are taken.

    Attributes:
        title: its title.
        link: its address, or its path in the folder.
        text: its whole text.
    """

    title: str
    link: str
    text: str


class DocumentFolder(NamedTuple):
    """The documents of a folder or file.

    Attributes:
        documents: the documents, by path.
        remarks: sentences on files that are not among them.
    """

    documents: tuple[Document, ...]
    remarks: tuple[str, ...]


def read_documents(path: str | os.PathLike[str]) -> tuple[Document, ...]:
    """Read the documents of `read_folder`; its remarks are warnings."""
    folder = read_folder(path)
    for remark in folder.remarks:
        logger.warning("%s", remark)
    return folder.documents


def read_folder(path: str | os.PathLike[str]) -> DocumentFolder:
    """Read the documents of a folder (including subfolders) or of one file, by path.

    .txt and .md: one document per file, named after the file or the first Markdown heading. .html
    and .htm: the text of the page, extracted by trafilatura; .pdf: by pypdf. .jsonl: one document
    per line, an object with `text` and optionally `title` and `link`. chroma.sqlite3: the texts of
    a Chroma database. Other files are skipped; a remark names them, and files without text, such
    as PDFs of scanned pages.

    Raises:
        InputError: if the folder or file does not exist, a file cannot be read, or there is no
            text.
        MissingDependencyError: for HTML, if trafilatura is not installed; for PDF, if pypdf is not.
    """
    root = Path(path)
    remarks: list[str] = []
    if not exists(root):
        raise InputError(f"{root}: there is no such folder or file; name one with --documents")
    if root.is_dir():
        every = sorted(
            file for file in root.rglob("*") if file.is_file() and not _hidden(file, root)
        )
        files = [
            file
            for file in every
            if file.suffix.lower() in _READERS
            # Skip other databases like other files.
            and (file.suffix != _DATABASE or file.name == FILE)
        ]
        base = root
        taken = set(files)
        remarks += _left_out(
            root, [file for file in every if file not in taken], "not read as documents"
        )
    elif root.suffix.lower() in _READERS:
        files, base = [root], root.parent
    else:
        raise InputError(f"{root}: documents are {', '.join(_READERS)}; name a folder of these")
    by_file = {
        file: [
            document
            for document in _READERS[file.suffix.lower()](file, file.relative_to(base).as_posix())
            if document.text.strip()
        ]
        for file in files
    }
    documents = tuple(document for each in by_file.values() for document in each)
    if not documents:
        raise InputError(f"{root}: it holds no text; put {', '.join(_READERS)} files there")
    remarks += _left_out(root, [file for file, each in by_file.items() if not each], "without text")
    return DocumentFolder(documents, tuple(remarks))


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of files that are read as documents."""
    return tuple(_READERS)


def _left_out(root: Path, files: Sequence[Path], what: str) -> list[str]:
    """Return a sentence on files of a folder without documents; none without such files."""
    if not files:
        return []
    names = [file.relative_to(root).as_posix() for file in files[:_MOST_NAMED]]
    more = f" and {len(files) - _MOST_NAMED:,} more" if len(files) > _MOST_NAMED else ""
    return [f"{root}: {counted(len(files), 'file')} {what}: {', '.join(names)}{more}"]


def documents_of_graphs(graphs: Iterable[FactGraph]) -> tuple[Document, ...]:
    """Return the distinct passages of fact graphs as documents, without sampled answers."""
    return tuple(
        dict.fromkeys(
            Document(context.title, context.link, context.content)
            for graph in graphs
            for context in graph.contexts
            if context.content.strip() and not is_sample(context)
        )
    )


def page_text(html: str) -> tuple[str, str]:
    """Return (title, text) of a web page without menus and similar parts; empty if there is none.

    Raises:
        MissingDependencyError: if trafilatura is not installed.
    """
    if not html.strip():
        return "", ""
    trafilatura = optional_module("trafilatura", "llm")
    # trafilatura finds no text in a fragment that is one element, such as <p>...</p>.
    if _FRAGMENT.match(html):
        html = f"<html><body>{html}</body></html>"
    page = trafilatura.bare_extraction(
        html, with_metadata=True, favor_recall=True, include_comments=False
    )
    return ("", "") if page is None else (page.title or "", page.text or "")


def _text_file(path: Path, link: str) -> list[Document]:
    return [Document(path.stem, link, read_text(path))]


def _markdown_file(path: Path, link: str) -> list[Document]:
    text = read_text(path)
    first = text.lstrip().partition("\n")[0]
    title = first.lstrip("#").strip() if first.startswith("# ") else path.stem
    return [Document(title, link, text)]


def _html_file(path: Path, link: str) -> list[Document]:
    title, text = page_text(read_text(path))
    return [Document(title or path.stem, link, text)]


def _pdf_file(path: Path, link: str) -> list[Document]:
    try:
        return [Document(path.stem, link, pdf_text(read_whole(path)))]
    except ValueError as error:
        raise InputError(f"{path}: {error}; repair the file or remove it from the folder") from None


def _records_file(path: Path, link: str) -> list[Document]:
    documents = []
    for line, value in read_json_lines(path):
        record, where = record_at(value, path, line)
        if "text" not in record:
            raise InputError(f"{where}: the key 'text' is missing; a document has {_RECORD_KEYS}")
        documents.append(
            Document(
                text_field(record, "title", where, "") or f"{path.stem} {line}",
                text_field(record, "link", where, "") or f"{link}#{line}",
                text_field(record, "text", where),
            )
        )
    return documents


def _chroma_file(path: Path, link: str) -> list[Document]:
    del link
    return [Document(*each) for each in chroma_texts(path)]


def _hidden(file: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(root).parts)


_READERS: Mapping[str, Callable[[Path, str], list[Document]]] = MappingProxyType(
    {
        ".txt": _text_file,
        ".md": _markdown_file,
        ".html": _html_file,
        ".htm": _html_file,
        ".pdf": _pdf_file,
        ".jsonl": _records_file,
        _DATABASE: _chroma_file,
    }
)
