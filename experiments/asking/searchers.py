"""Retrievers by name, with the facts that results depend on."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer

from experiments.asking.own_documents import (
    DocumentsOf,
    Scope,
    is_own,
    own_digest,
    own_documents,
)
from experiments.asking.relation_models import content_hash
from experiments.asking.settings import WebSettings
from experiments.settings import USUAL, Option, Settings, option_of
from experiments.settings.inputs import is_dataset, read_graphs
from experiments.settings.limits import WebAddress
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.retrieval.base import TOP_K
from factormodels.extraction.retrieval.documents import (
    Document,
    documents_of_graphs,
    read_folder,
)
from factormodels.extraction.retrieval.own import OwnDocuments, Searched
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted

if TYPE_CHECKING:
    from experiments.asking.session import Session
    from factormodels.extraction.embeddings import Embedder
    from factormodels.extraction.retrieval.web import WebRetriever

logger = logging.getLogger(__name__)

Documents = str | os.PathLike[str] | Sequence[str] | Mapping[str, str]
"""Passages to search: a folder or file, an embedded dataset, texts, or texts by title."""

GIVEN = "given"
"""Name for the passages of the input, without a retriever."""


def as_documents(documents: Documents | None) -> Path | tuple[Document, ...] | None:
    """Turn texts into documents; a path is returned unchanged.

    Raises:
        InputError: if there are no texts.
    """
    if documents is None:
        return None
    if isinstance(documents, tuple) and all(isinstance(each, Document) for each in documents):
        return documents
    if isinstance(documents, str | os.PathLike):
        return Path(documents)
    titled = documents.items() if isinstance(documents, Mapping) else (("", d) for d in documents)
    listed = tuple(Document(title, "", text) for title, text in titled)
    if not listed:
        raise InputError("there are no documents; give at least one text")
    return listed


def _shown_documents(documents: Path | tuple[Document, ...] | None) -> str | None:
    """Name of documents in reported settings."""
    if isinstance(documents, tuple):
        return counted(len(documents), "document")
    return None if documents is None else str(documents)


DocumentSource = Annotated[
    Any,
    Option("DIR"),
    BeforeValidator(as_documents),
    PlainSerializer(_shown_documents),
    Field(
        description="Documents to search: a folder, a file or a dataset. Files are .txt, .md, "
        ".html, .pdf, .jsonl or a Chroma database (chroma.sqlite3)."
    ),
]
"""Documents to search, in any form of `as_documents`, with their description."""


class EvidenceSettings(Settings):
    """Evidence.

    Options that choose the passages for each claim.
    """

    retriever: Annotated[str | None, Option("NAME", usual=True)] = None
    """Source of evidence: given, local, dense, wikipedia or google. Given evidence is as recorded;
    local searches --documents or the input's own passages, and dense does so by embeddings; google
    needs a key in SERPER_API_KEY."""

    documents: Annotated[DocumentSource, USUAL] = None

    documents_of: DocumentsOf = None

    scope: Scope = None

    queries: bool = False
    """Let the language model write the search queries."""

    question_contexts: bool = False
    """Also search for the question (used by FR2 and FR3)."""

    top_k: Annotated[int | None, Field(ge=1), Option("K", usual=True)] = None
    """Number of passages per claim; 3 by default, 5 with Google."""

    reading: Annotated[str, Option("NAME")] = "head"
    """Part of a web page to read: snippet, head (its first 4,000 characters) or chunks (the best
    parts).
    """

    summarize: bool = False
    """Let the language model shorten each passage to the parts relevant to its claims; its
    confidence scales the passage's prior."""

    embeddings: Annotated[str | None, Option("NAME")] = None
    """For --retriever dense: a folder with a sentence-transformers model, or a model as litellm
    spells it."""

    embeddings_base: Annotated[WebAddress | None, Option("URL")] = None
    """Address of an embedding server with a compatible API."""

    price_embeddings: Annotated[float | None, Field(ge=0), Option("USD")] = None
    """Price of a million embedded tokens; litellm's price if not given."""


@dataclass(frozen=True)
class Search:
    """Settings from which retrievers are built.

    Attributes:
        evidence: settings of evidence.
        web: settings of web searches.
        session: session with cache, ledger and budget.
        retry_failed: True to request missing pages again at once.
    """

    evidence: EvidenceSettings
    web: WebSettings
    session: Session
    retry_failed: bool = False


class Built(NamedTuple):
    """A retriever with its facts.

    Attributes:
        searcher: the retriever.
        facts: facts that results depend on, as JSON values.
        remarks: sentences on files that are not searched.
    """

    searcher: Any
    facts: dict[str, Any]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchedDocuments:
    """Documents to search.

    Attributes:
        shared: documents of all responses; None if each response has its own.
        by_response: documents of each response by its id; None if all responses search the same.
        remarks: sentences on files of a folder that are left out.
    """

    shared: tuple[Document, ...] | None
    by_response: Mapping[str, tuple[Document, ...]] | None = None
    remarks: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that results depend on, as JSON values."""
        if self.by_response is None:
            return {"documents_sha256": document_digest(self.shared or ())}
        return {"scope": "own", "documents_sha256": own_digest(self.by_response)}

    def searched(self, build: Callable[[Sequence[Document]], Any]) -> Searched:
        """Searcher of the documents.

        Args:
            build: returns a named retriever for documents.
        """
        if self.by_response is None:
            retriever: Searched = build(self.shared or ())
            return retriever
        return OwnDocuments(self.by_response, build)


class RetrieverEntry(NamedTuple):
    """A retriever that options can name.

    Attributes:
        build: builds the retriever.
        passage_characters: passage length that an estimate assumes without passages.
        reads_documents: True if it searches local documents.
        by_pages: True if it also serves FaStfact's verification, which reads the best pieces of
            whole pages.
    """

    build: Callable[[Sequence[FactGraph], Search], Built]
    passage_characters: int
    reads_documents: bool = False
    by_pages: bool = True


def refuse_web_options(name: str, *chosen: Settings) -> None:
    """Refuse options of web searches for a retriever that does not search the web.

    Args:
        name: the retriever's name.
        chosen: settings, of which only web settings are checked.

    Raises:
        InputError: for the first option without an effect.
    """
    about_the_web = {*WebSettings.model_fields, "reading"}
    for settings in chosen:
        for field, info in type(settings).model_fields.items():
            if field in about_the_web and getattr(settings, field) != info.default:
                option = option_of(type(settings), field).name
                raise InputError(f"--{option} applies to web searches, not to {name}; leave it out")


def build_retriever(name: str, graphs: Sequence[FactGraph], search: Search) -> Built:
    """Build a retriever of `RETRIEVERS`.

    Args:
        name: its name.
        graphs: the responses, whose passages are the documents if none are named.
        search: settings of the search.

    Raises:
        InputError: if the options do not fit it.
        MissingDependencyError: if it needs a library that is not installed.
    """
    for option, value, needed in (
        ("--embeddings", search.evidence.embeddings, "dense"),
        ("--embeddings-base", search.evidence.embeddings_base, "dense"),
        ("--price-embeddings", search.evidence.price_embeddings, "dense"),
    ):
        if value is not None and name != needed:
            raise InputError(f"{option} is for --retriever {needed}, not for {name}; leave one out")
    if RETRIEVERS[name].reads_documents:
        refuse_web_options(name, search.web, search.evidence)
    else:
        refuse_document_options(name, search.evidence)
    return RETRIEVERS[name].build(graphs, search)


def refuse_document_options(name: str, evidence: Any) -> None:
    """Refuse options about documents for a retriever that searches none.

    Args:
        name: the retriever's name.
        evidence: settings with `documents`, `documents_of` and `scope`.

    Raises:
        InputError: for the first option without an effect.
    """
    for field in ("documents", "documents_of", "scope"):
        if getattr(evidence, field) is not None:
            option = field.replace("_", "-")
            raise InputError(
                f"--{option} applies to --retriever local, not to {name}; leave one out"
            )


def _local(graphs: Sequence[FactGraph], search: Search) -> Built:
    from factormodels.extraction.retrieval.bm25 import build_collection

    documents = read_documents_of(search.evidence, graphs)
    settings = {"top_k": TOP_K, **_top(search)}
    searched = documents.searched(partial(build_collection, **settings))
    return Built(searched, {"top_k": settings["top_k"], **documents.facts}, documents.remarks)


def _dense(graphs: Sequence[FactGraph], search: Search) -> Built:
    from factormodels.extraction.embeddings import load_embedder
    from factormodels.extraction.retrieval.dense import FOLDER, build_dense_collection

    evidence, session = search.evidence, search.session
    if evidence.embeddings is None:
        raise InputError(
            "--retriever dense needs an embedding model; give --embeddings with the folder of a "
            "model, or a name such as openai/NAME"
        )
    embedder: Embedder
    if Path(evidence.embeddings).is_dir():
        embedder = load_embedder(evidence.embeddings, content_hash(Path(evidence.embeddings)))
    else:
        embedder = _provider_s(evidence.embeddings, search)
    documents = read_documents_of(search.evidence, graphs)
    documents_path = evidence.documents if isinstance(evidence.documents, Path) else None
    # An embedded dataset is not a file; embeddings of documents without a folder are cached with
    # the answers.
    beside = (
        documents_path if documents_path is not None and documents_path.exists() else session.cache
    )
    folder = None
    if beside is not None:
        folder = (beside if beside.is_dir() else beside.parent) / FOLDER
    settings = {"top_k": TOP_K, **_top(search)}
    searched = documents.searched(
        partial(
            build_dense_collection,
            embedder=embedder,
            folder=folder,
            replay=session.settings.replay,
            ledger=session.ledger,
            **settings,
        )
    )
    facts = {
        "top_k": settings["top_k"],
        **documents.facts,
        "embeddings": embedder.identity,
    }
    return Built(searched, facts, documents.remarks)


def _provider_s(name: str, search: Search) -> Embedder:
    """Embeddings from a provider, with a price and a budget."""
    from factormodels.extraction.embeddings import LitellmEmbedder
    from factormodels.extraction.language_model.model_parameters import provider_of
    from factormodels.extraction.language_model.prices import model_prices

    price_per_million, budget = search.evidence.price_embeddings, search.session.budget
    price = None if price_per_million is None else price_per_million / 1e6
    replay = search.session.settings.replay
    if price is None and not replay and (listed := model_prices(name)) is not None:
        price = listed.question
    if price is None and budget.max_cost is not None and not replay:
        raise InputError(
            f"--max-cost: the price of {name!r} is unknown; give --price-embeddings, in US "
            "dollars per million tokens"
        )
    try:
        provider_of(name)
    except InputError as error:
        raise InputError(f"--embeddings {name}: there is no such folder, and {error}") from None
    return LitellmEmbedder(name, search.evidence.embeddings_base, price, budget)


def _web(name: str, _: Sequence[FactGraph], search: Search) -> Built:
    from factormodels.extraction.retrieval.pages import checked_reading

    reading = checked_reading(search.evidence.reading)
    searcher = web_retriever(name, search, reading=reading, **_top(search))
    facts = {"top_k": searcher.top_k, "reading": searcher.reading, "results": searcher.results}
    return Built(searcher, {**facts, "service": searcher.service()})


def web_retriever(name: str, search: Search, **settings: Any) -> WebRetriever:
    """Build a web search by name.

    Args:
        name: one of `WEB_RETRIEVERS`.
        search: settings of the search.
        settings: further arguments of `WebRetriever`.

    Raises:
        InputError: if the name is unknown, the price is unknown although costs are limited, the key
            is missing, the cache cannot be used, or there is no cache to replay.
    """
    from factormodels.extraction.language_model.cache import AnswerCache
    from factormodels.extraction.retrieval.web_cache import WebStore

    if name not in WEB_RETRIEVERS:
        raise InputError(unknown_name(f"the search of the web {name!r}", name, WEB_RETRIEVERS))
    kind = WEB_RETRIEVERS[name](search)
    web, session = search.web, search.session
    if web.search_base is not None:
        settings["base_url"] = web.search_base
    replay = session.settings.replay
    kept = None if session.cache is None else AnswerCache(session.cache, read_only=replay)
    store = WebStore(
        kept,
        replay=replay,
        retry_failed=search.retry_failed,
        budget=session.budget,
        price=web.price_search,
    )
    return kind(http=web.http, store=store, **settings)


def _wikipedia(_: Search) -> type[WebRetriever]:
    """Wikipedia search, which is free and needs no key."""
    from factormodels.extraction.retrieval.wikipedia import WikipediaRetriever

    return WikipediaRetriever


def _google(search: Search) -> type[WebRetriever]:
    """Google search by Serper, which needs a key and, with a cost limit, a price."""
    from factormodels.extraction.retrieval.google import GoogleRetriever, serper_key

    if not search.session.settings.replay:
        if search.session.budget.max_cost is not None and search.web.price_search is None:
            raise InputError(
                "--max-cost: the price of a search is unknown; give --price-search, in US "
                "dollars, or 0 for a free service"
            )
        serper_key()
    return GoogleRetriever


WEB_RETRIEVERS: Mapping[str, Callable[[Search], type[WebRetriever]]] = MappingProxyType(
    {"wikipedia": _wikipedia, "google": _google}
)
"""Classes of the web searches by name, loaded on demand."""


def _top(search: Search) -> dict[str, Any]:
    # Left out instead of None, so that each retriever uses its own default.
    top_k = search.evidence.top_k
    return {} if top_k is None else {"top_k": top_k}


RETRIEVERS: Mapping[str, RetrieverEntry] = MappingProxyType(
    {
        "local": RetrieverEntry(_local, 700, reads_documents=True),
        "dense": RetrieverEntry(_dense, 700, reads_documents=True, by_pages=False),
        **{name: RetrieverEntry(partial(_web, name), 4000) for name in WEB_RETRIEVERS},
    }
)
"""Retrievers by name."""


def read_documents_of(evidence: Any, graphs: Sequence[FactGraph]) -> SearchedDocuments:
    """Read the documents that settings name, for all responses or for each.

    Args:
        evidence: settings with `documents`, `documents_of` and `scope`.
        graphs: the responses, whose passages are the documents if none are named.

    Raises:
        InputError: if there are no documents, or they are named twice.
    """
    source = evidence.documents
    if source is not None and evidence.documents_of is not None:
        raise InputError(
            "--documents and --documents-of both name documents to search; leave one out"
        )
    if is_own(evidence.scope, evidence.documents_of):
        folders = own_documents(source, graphs)
        return _remarked(SearchedDocuments(None, folders.documents, folders.remarks))
    if evidence.documents_of is not None:
        folders = own_documents(None, graphs)
        every = dict.fromkeys(each for part in folders.documents.values() for each in part)
        return _remarked(SearchedDocuments(tuple(every), remarks=folders.remarks))
    # The documents of a folder, file or embedded dataset; None: the passages of responses.
    if source is None:
        return SearchedDocuments(documents_of_graphs(graphs))
    if isinstance(source, tuple):
        return SearchedDocuments(source)
    if is_dataset(source):
        return SearchedDocuments(documents_of_graphs(read_graphs(source)))
    folder = read_folder(source)
    return _remarked(SearchedDocuments(folder.documents, remarks=folder.remarks))


def _remarked(documents: SearchedDocuments) -> SearchedDocuments:
    """Log the remarks as warnings before anything is asked; findings repeat them."""
    for remark in documents.remarks:
        logger.warning("%s", remark)
    return documents


def document_digest(documents: Iterable[Document]) -> str:
    """SHA-256 of documents, independent of file names."""
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.title, document.link, document.text):
            # With its length, so that no two lists of parts give the same text.
            digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
