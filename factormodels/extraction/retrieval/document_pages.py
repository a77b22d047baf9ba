"""Local documents searched like the web: the best pages, then their best pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from factormodels.errors import InputError
from factormodels.extraction.retrieval.base import Retrieved, checked_top_k
from factormodels.extraction.retrieval.bm25 import ChunkIndex
from factormodels.extraction.retrieval.chunks import ChunkSettings, snippet_of
from factormodels.extraction.retrieval.documents import Document
from factormodels.extraction.retrieval.pages import Hit, passages_of


@dataclass(frozen=True)
class DocumentPages:
    """A collection searched for whole documents, as `build_document_pages` makes it.

    Attributes:
        documents: the documents, in order.
        pages: number of documents that are read per query.
        top_k: pieces per query, the best of all these documents by BM25.
        chunks: settings of the pieces.
        name: the retriever's name in tables and manifests.
    """

    documents: tuple[Document, ...] = field(repr=False)
    index: ChunkIndex = field(repr=False)
    pages: int
    top_k: int
    chunks: ChunkSettings
    name: str = "local"

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """Return the best pieces of the best documents for each query."""
        return [self._retrieved(query) for query in queries]

    def _retrieved(self, query: str) -> Retrieved:
        documents = (self.documents[index] for index in self.index.best(query, self.pages))
        pages = [
            (Hit(document.title, document.link, snippet_of(document.text)), document.text)
            for document in documents
        ]
        return passages_of(query, pages, (), "chunks", self.top_k, self.chunks)


def build_document_pages(
    documents: Iterable[Document], *, pages: int, top_k: int, chunks: ChunkSettings
) -> DocumentPages:
    """Return a retriever over whole documents (FaStfact, sections 4.2 and 4.3).

    Raises:
        InputError: if there is no document with text, or a setting is out of range.
    """
    with_text = tuple(document for document in documents if document.text.strip())
    if not with_text:
        raise InputError("the collection holds no text; give documents with text")
    # A claim often names its subject, which a document names only in its title: search both.
    index = ChunkIndex(tuple(f"{document.title}\n{document.text}" for document in with_text))
    return DocumentPages(with_text, index, checked_top_k(pages), checked_top_k(top_k), chunks)
