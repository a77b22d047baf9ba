"""Retrievers by name: what each is built of, and what results depend on of each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from pydantic import BeforeValidator, PlainSerializer

from experiments.evaluators.relation_models_by_name import content_hash
from experiments.settings import Option
from experiments.study.inputs import is_dataset, read_graphs
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.language_model.limits import Budget
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.documents import (
    Document,
    documents_of_graphs,
    read_documents,
)
from factormodels.extraction.retrieval.http import HttpSettings
from factormodels.fact_graph import FactGraph
from factormodels.object_repr import counted

if TYPE_CHECKING:
    from experiments.asking.session import Session
    from experiments.asking.settings import WebSettings
    from experiments.evaluators.assess import AssessSettings
    from factormodels.extraction.language_model.accounting import Ledger
    from factormodels.extraction.retrieval.embeddings import Embedder
    from factormodels.extraction.retrieval.web import WebRetriever

Documents = str | os.PathLike[str] | Sequence[str] | Mapping[str, str]
"""Passages to search: a folder or file, an embedded dataset, texts, or texts by title."""

GIVEN = "given"
"""In place of a retriever: the passages of the input."""


@dataclass(frozen=True, kw_only=True)
class WebAccess:
    """How the web is searched, and at what cost.

    Attributes:
        search_base: address of the search service; None for its own.
        http: limits of requests to the web.
        cache: file in which searches and pages of the web are kept; None keeps none.
        replay: whether everything is taken from what is kept.
        retry_failed: whether pages that are not there are asked for again at once.
        budget: what searches may cost; None for anything.
        price_search: US dollars per search; None where it is not known.
    """

    search_base: str | None = None
    http: HttpSettings = field(default_factory=HttpSettings)
    cache: Path | None = None
    replay: bool = False
    retry_failed: bool = False
    budget: Budget | None = None
    price_search: float | None = None

    @classmethod
    def of(cls, web: WebSettings, session: Session, **options: Any) -> Self:
        """How a session searches the web; what else there is, by name."""
        return cls(
            search_base=web.search_base,
            http=web.http,
            cache=session.cache,
            replay=session.settings.replay,
            budget=session.budget,
            price_search=web.price_search,
            **options,
        )


@dataclass(frozen=True, kw_only=True)
class SearchOptions(WebAccess):
    """What retrievers are built of; None where each has its own default.

    Attributes:
        documents: folder or file of documents, or the documents; None: the passages of responses.
        top_k: passages per query.
        reading: what of a web page becomes a passage.
        embeddings: model of embeddings: a folder, or a name as litellm spells it.
        embeddings_base: address of a compatible server of embeddings.
        price_embeddings: US dollars per token of embeddings; None: as litellm knows.
        ledger: where calls for embeddings are counted; None counts none.
    """

    documents: Path | tuple[Document, ...] | None = None
    top_k: int | None = None
    reading: str = "head"
    embeddings: str | None = None
    embeddings_base: str | None = None
    price_embeddings: float | None = None
    ledger: Ledger | None = None


Built = tuple[Any, dict[str, Any]]
"""A retriever, and the facts of it that results depend on, as JSON values."""


class RetrieverEntry(NamedTuple):
    """A retriever that can be named.

    Attributes:
        build: makes it.
        passage_characters: length of a passage that an estimate assumes while none is there.
        reads_documents: whether it searches documents on this disk.
        by_pages: whether FaStfact's verification, which reads the best pieces of whole pages, has
            it too.
    """

    build: Callable[[Sequence[FactGraph], SearchOptions], Built]
    passage_characters: int
    reads_documents: bool = False
    by_pages: bool = True


def search_options(settings: AssessSettings, session: Session) -> SearchOptions:
    """What the retrievers of an assessment are built of."""
    price = settings.price_embeddings
    return SearchOptions.of(
        settings,
        session,
        retry_failed=settings.retry_failed,
        documents=settings.documents,
        top_k=settings.top_k,
        reading=settings.reading,
        embeddings=settings.embeddings,
        embeddings_base=settings.embeddings_base,
        price_embeddings=None if price is None else price / 1e6,
        ledger=session.ledger,
    )


def build_retriever(
    name: str, graphs: Sequence[FactGraph], options: SearchOptions
) -> tuple[Retriever, dict[str, Any]]:
    """A retriever of `RETRIEVERS`, with the facts of it that results depend on.

    Args:
        name: its name.
        graphs: the responses, whose passages are the documents where none are named.
        options: what it is built of.

    Raises:
        InputError: if the options do not fit it.
        MissingDependencyError: if it needs a library that is not installed.
    """
    for option, value, needed in (
        ("--embeddings", options.embeddings, "dense"),
        ("--embeddings-base", options.embeddings_base, "dense"),
        ("--price-embeddings", options.price_embeddings, "dense"),
    ):
        if value is not None and name != needed:
            raise InputError(f"{option} is for --retriever {needed}, not for {name}; leave one out")
    if options.search_base is not None and RETRIEVERS[name].reads_documents:
        raise InputError(f"--search-base is for a search of the web, not for {name}; leave it out")
    return RETRIEVERS[name].build(graphs, options)


def _local(graphs: Sequence[FactGraph], options: SearchOptions) -> Built:
    from factormodels.extraction.retrieval.bm25 import build_collection

    documents = read_sources(options.documents, graphs)
    local = build_collection(documents, **_top(options))
    return local, {"top_k": local.top_k, "documents_sha256": document_digest(documents)}


def _dense(graphs: Sequence[FactGraph], options: SearchOptions) -> Built:
    from factormodels.extraction.retrieval.dense import FOLDER, build_dense_collection
    from factormodels.extraction.retrieval.embeddings import load_embedder

    if options.embeddings is None:
        raise InputError(
            "--retriever dense needs --embeddings: the folder of a model, or a name such as "
            "openai/NAME"
        )
    embedder: Embedder
    if Path(options.embeddings).is_dir():
        embedder = load_embedder(options.embeddings, content_hash(Path(options.embeddings)))
    else:
        embedder = _provider_s(options.embeddings, options)
    documents = read_sources(options.documents, graphs)
    place = options.documents if isinstance(options.documents, Path) else None
    # An embedded dataset is no file, and what stands in no folder is kept beside the answers.
    beside = place if place is not None and place.exists() else options.cache
    folder = None
    if beside is not None:
        folder = (beside if beside.is_dir() else beside.parent) / FOLDER
    dense = build_dense_collection(
        documents,
        embedder,
        folder=folder,
        replay=options.replay,
        ledger=options.ledger,
        **_top(options),
    )
    return dense, {
        "top_k": dense.top_k,
        "documents_sha256": document_digest(documents),
        "embeddings": embedder.identity,
    }


def _provider_s(name: str, options: SearchOptions) -> Embedder:
    """Embeddings of a provider, at a price and within a budget."""
    from factormodels.extraction.language_model.prices import model_prices
    from factormodels.extraction.retrieval.embeddings import LitellmEmbedder

    price, budget = options.price_embeddings, options.budget or Budget()
    if price is None and not options.replay and (listed := model_prices(name)) is not None:
        price = listed.question
    if price is None and budget.max_cost is not None and not options.replay:
        raise InputError(
            f"--max-cost: the price of {name!r} is not known; give --price-embeddings, in US "
            "dollars per million tokens"
        )
    return LitellmEmbedder(name, options.embeddings_base, price, budget)


def _web(name: str, _: Sequence[FactGraph], options: SearchOptions) -> Built:
    from factormodels.extraction.retrieval.pages import checked_reading

    reading = checked_reading(options.reading)
    searcher = web_retriever(name, options, reading=reading, **_top(options))
    facts = {"top_k": searcher.top_k, "reading": searcher.reading, "results": searcher.results}
    return searcher, {**facts, "service": searcher.service()}


def web_retriever(name: str, access: WebAccess, **settings: Any) -> WebRetriever:
    """The search of the web of a name.

    Args:
        name: one of `WEB_RETRIEVERS`.
        access: how it searches.
        settings: what else a `WebRetriever` takes.

    Raises:
        InputError: if there is no such search, its searches have no price within a limit of cost,
            its key is not set, the cache cannot be used, or there is none to replay.
    """
    from factormodels.extraction.language_model.cache import AnswerCache
    from factormodels.extraction.retrieval.web_cache import WebStore

    if name not in WEB_RETRIEVERS:
        raise InputError(unknown_name(f"the search of the web {name!r}", name, WEB_RETRIEVERS))
    kind = WEB_RETRIEVERS[name](access)
    if access.search_base is not None:
        settings["base_url"] = access.search_base
    kept = None if access.cache is None else AnswerCache(access.cache, read_only=access.replay)
    store = WebStore(
        kept,
        replay=access.replay,
        retry_failed=access.retry_failed,
        budget=access.budget,
        price=access.price_search,
    )
    return kind(http=access.http, store=store, **settings)


def _wikipedia(_: WebAccess) -> type[WebRetriever]:
    """Wikipedia, which is free and asks for no key."""
    from factormodels.extraction.retrieval.wikipedia import WikipediaRetriever

    return WikipediaRetriever


def _google(access: WebAccess) -> type[WebRetriever]:
    """Google by Serper, which is paid for: price and key are asked for before anything is done."""
    from factormodels.extraction.retrieval.google import GoogleRetriever, serper_key

    if not access.replay:
        _check_priced_searches(access)
        serper_key()
    return GoogleRetriever


WEB_RETRIEVERS: Mapping[str, Callable[[WebAccess], type[WebRetriever]]] = MappingProxyType(
    {"wikipedia": _wikipedia, "google": _google}
)
"""The class of every search of the web, by name, once what it needs is there."""


def _check_priced_searches(access: WebAccess) -> None:
    """Refuse a limit of cost for searches that are paid for at a price that is not known."""
    limited = access.budget is not None and access.budget.max_cost is not None
    if limited and access.price_search is None:
        raise InputError(
            "--max-cost: the price of a search is not known; give --price-search, in US dollars, "
            "0 for a service that is free"
        )


def _top(options: SearchOptions) -> dict[str, Any]:
    # Left out rather than None, so that each retriever has its own default.
    return {} if options.top_k is None else {"top_k": options.top_k}


RETRIEVERS: Mapping[str, RetrieverEntry] = MappingProxyType(
    {
        "local": RetrieverEntry(_local, 700, reads_documents=True),
        "dense": RetrieverEntry(_dense, 700, reads_documents=True, by_pages=False),
        **{name: RetrieverEntry(partial(_web, name), 4000) for name in WEB_RETRIEVERS},
    }
)
"""Every retriever by its name."""


def as_documents(documents: Documents | None) -> Path | tuple[Document, ...] | None:
    """The documents that texts stand for, or the path where they are.

    Raises:
        InputError: if there is none.
    """
    if documents is None:
        return None
    if isinstance(documents, tuple) and all(isinstance(each, Document) for each in documents):
        return documents
    if isinstance(documents, str | os.PathLike):
        return Path(documents)
    titled = documents.items() if isinstance(documents, Mapping) else (("", d) for d in documents)
    found = tuple(Document(title, "", text) for title, text in titled)
    if not found:
        raise InputError("there are no documents; give at least one text")
    return found


def _shown_documents(documents: Path | tuple[Document, ...] | None) -> str | None:
    """What documents are called in what is said of settings."""
    if isinstance(documents, tuple):
        return counted(len(documents), "document")
    return None if documents is None else str(documents)


DocumentSource = Annotated[
    Any, Option("DIR"), BeforeValidator(as_documents), PlainSerializer(_shown_documents)
]
"""Documents to search, as `as_documents` takes them."""


def read_sources(
    source: Path | tuple[Document, ...] | None, graphs: Sequence[FactGraph]
) -> tuple[Document, ...]:
    """The documents of a folder, file or embedded dataset; None: the passages of responses.

    Raises:
        InputError: if there are none.
    """
    if source is None:
        return documents_of_graphs(graphs)
    if isinstance(source, tuple):
        return source
    if is_dataset(source):
        return documents_of_graphs(read_graphs(source))
    return read_documents(source)


def document_digest(documents: Iterable[Document]) -> str:
    """SHA-256 of documents, whatever file they stand in."""
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.title, document.link, document.text):
            # With its length, so that no two lists of parts give the same text.
            digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
