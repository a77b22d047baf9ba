"""Retrievers by name: what each is built of, and what results depend on of each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.assess.relation_models import content_hash
from experiments.study.inputs import is_dataset, read_graphs
from factormodels.errors import InputError
from factormodels.extraction.limits import Budget
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.documents import (
    Document,
    documents_of_graphs,
    read_documents,
)
from factormodels.extraction.retrieval.http import HttpSettings
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    from factormodels.extraction.accounting import Ledger
    from factormodels.extraction.retrieval.embeddings import Embedder
    from factormodels.extraction.retrieval.kept import WebStore

GIVEN = "given"
"""In place of a retriever: the passages of the input."""


@dataclass(frozen=True)
class SearchOptions:
    """What retrievers are built of; None where each has its own default.

    Attributes:
        graphs: the responses, whose passages are the documents where none are named.
        documents: folder or file of documents, or the documents.
        top_k: passages per query.
        reading: what of a web page becomes a passage.
        search_base: address of the search service; None for its own.
        http: limits of requests to the web.
        embeddings: model of embeddings: a folder, or a name as litellm spells it.
        embeddings_base: address of a compatible server of embeddings.
        cache: file in which searches and pages of the web are kept; None keeps none.
        replay: whether everything is taken from what is kept.
        retry_failed: whether pages that are not there are asked for again at once.
        budget: what searches may cost; None for anything.
        price_search: US dollars per search; None where it is not known.
        price_embeddings: US dollars per token of embeddings; None: as litellm knows.
        ledger: where calls for embeddings are counted; None counts none.
    """

    graphs: Sequence[FactGraph]
    documents: Path | tuple[Document, ...] | None
    top_k: int | None
    reading: str
    search_base: str | None
    http: HttpSettings
    embeddings: str | None
    embeddings_base: str | None
    cache: Path | None
    replay: bool
    retry_failed: bool
    budget: Budget | None
    price_search: float | None
    price_embeddings: float | None
    ledger: Ledger | None


Built = tuple[Any, dict[str, Any]]
"""A retriever, and the facts of it that results depend on, as JSON values."""


class RetrieverEntry(NamedTuple):
    """A retriever that can be named.

    Attributes:
        build: makes it.
        reads_documents: whether it searches documents on this disk.
        is_paid: whether a search costs money.
    """

    build: Callable[[SearchOptions], Built]
    reads_documents: bool = False
    is_paid: bool = False


def build_retriever(name: str, options: SearchOptions) -> tuple[Retriever, dict[str, Any]]:
    """A retriever of `RETRIEVERS`, with the facts of it that results depend on.

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
    if RETRIEVERS[name].is_paid:
        check_priced_searches(options.budget, options.price_search, replay=options.replay)
    return RETRIEVERS[name].build(options)


def check_priced_searches(
    budget: Budget | None, price: float | None, *, replay: bool = False
) -> None:
    """Refuse a limit of cost for searches that are paid for at a price that is not known.

    Raises:
        InputError: if there is such a limit.
    """
    if budget is not None and budget.max_cost is not None and price is None and not replay:
        raise InputError(
            "--max-cost: the price of a search is not known; give --price-search, in US dollars, "
            "0 for a service that is free"
        )


def _local(options: SearchOptions) -> Built:
    from factormodels.extraction.retrieval.collection import build_collection

    documents = read_sources(options.documents, options.graphs)
    local = build_collection(documents, **_top(options))
    return local, {"top_k": local.top_k, "documents_sha256": document_digest(documents)}


def _dense(options: SearchOptions) -> Built:
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
    documents = read_sources(options.documents, options.graphs)
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
    from factormodels.extraction.prices import model_prices
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


def _wikipedia(options: SearchOptions) -> Built:
    from factormodels.extraction.retrieval.wikipedia import WikipediaRetriever

    return _web(WikipediaRetriever, options)


def _google(options: SearchOptions) -> Built:
    from factormodels.extraction.retrieval.google import GoogleRetriever, serper_key

    if not options.replay:
        serper_key()  # so that its absence is told before anything is done
    return _web(GoogleRetriever, options)


RETRIEVERS: Mapping[str, RetrieverEntry] = MappingProxyType(
    {
        "local": RetrieverEntry(_local, reads_documents=True),
        "dense": RetrieverEntry(_dense, reads_documents=True),
        "wikipedia": RetrieverEntry(_wikipedia),
        "google": RetrieverEntry(_google, is_paid=True),
    }
)
"""Every retriever by its name."""


def _web(kind: Callable[..., Any], options: SearchOptions) -> Built:
    from factormodels.extraction.retrieval.pages import checked_reading

    base = {} if options.search_base is None else {"base_url": options.search_base}
    searcher = kind(
        reading=checked_reading(options.reading),
        http=options.http,
        store=web_store(
            options.cache,
            replay=options.replay,
            retry_failed=options.retry_failed,
            budget=options.budget,
            price=options.price_search,
        ),
        **base,
        **_top(options),
    )
    facts = {"top_k": searcher.top_k, "reading": searcher.reading, "results": searcher.results}
    return searcher, {**facts, "service": searcher.service()}


def _top(options: SearchOptions) -> dict[str, Any]:
    # Left out rather than None, so that each retriever has its own default.
    return {} if options.top_k is None else {"top_k": options.top_k}


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


def web_store(cache: Path | None, **settings: Any) -> WebStore:
    """Where searches and pages of the web are kept.

    Args:
        cache: the file; None keeps them in memory.
        settings: as `WebStore` takes them.

    Raises:
        InputError: if the cache cannot be used, or there is none to replay.
    """
    from factormodels.extraction.cache import AnswerCache
    from factormodels.extraction.retrieval.kept import WebStore

    replay = settings.get("replay", False)
    kept = None if cache is None else AnswerCache(cache, read_only=replay)
    return WebStore(kept, **settings)
