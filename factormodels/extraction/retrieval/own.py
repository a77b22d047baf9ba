"""Retrieval from each response's own documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from factormodels.errors import InputError
from factormodels.extraction.retrieval.base import Retrieved, Retriever
from factormodels.extraction.retrieval.documents import Document
from factormodels.fact_graph import FactGraph

OWN_NAME = "own documents"
"""Suffix of the retriever's name in the metadata of a response whose own documents were searched,
since this evidence differs from evidence in the documents of all responses."""


@dataclass(frozen=True)
class OwnRetriever:
    """Retriever over the documents of one response.

    Attributes:
        inner: retriever over these documents; None if there are none, in which case nothing is
            found.
        name: the retriever's name in tables and manifests.
        top_k: passages per query; None if the retriever does not state it.
    """

    inner: Retriever | None
    name: str = OWN_NAME
    top_k: int | None = None

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """Return the result of each query, in order."""
        if self.inner is None:
            return [Retrieved(()) for _ in queries]
        return self.inner.retrieve(queries)


@dataclass(frozen=True)
class OwnDocuments:
    """Documents by response.

    Attributes:
        documents: documents by id of response; a response may have none.
        build: makes a retriever of documents.
    """

    documents: Mapping[str, tuple[Document, ...]] = field(repr=False)
    build: Callable[[Sequence[Document]], Retriever]

    def of(self, graph: FactGraph) -> OwnRetriever:
        """Return a retriever over the documents of a response.

        The retriever is rebuilt at each call, so that only one index is in memory at a time.

        Raises:
            InputError: if no documents are given for the response.
        """
        if graph.id not in self.documents:
            raise InputError(f"response {graph.id!r}: no documents are named for it; name some")
        documents = self.documents[graph.id]
        if not documents:
            return OwnRetriever(None)
        inner = self.build(documents)
        return OwnRetriever(inner, f"{inner.name}, {OWN_NAME}", getattr(inner, "top_k", None))

    def together(self) -> Retriever:
        """Return a retriever over the documents of all responses."""
        return self.build([each for documents in self.documents.values() for each in documents])


Searched: TypeAlias = Retriever | OwnDocuments
"""A retriever for all responses, or documents of each."""
