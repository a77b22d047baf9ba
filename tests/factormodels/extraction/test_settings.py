"""Settings of models, searches and parts of texts: what cannot be is refused in a sentence."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from factormodels.extraction.http.requests import HttpSettings
from factormodels.extraction.language_model.limits import Budget, Pace
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from factormodels.extraction.language_model.prices import prices_per_million
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.retrieval.chunks import ChunkSettings
from factormodels.extraction.retrieval.wikipedia import WikipediaRetriever
from factormodels.extraction.sentences import split_chunks
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused

priced = partial(prices_per_million, 1.0)
split = partial(split_chunks, ("One.", "Two."))
prompted = partial(PromptedRelationModel, AnsweringModel(lambda _: ""))


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        *((HttpSettings, {name: 0}, name) for name in ("attempts", "max_bytes", "concurrency")),
        *((HttpSettings, {name: -1}, name) for name in ("total", "longest_wait")),
        (HttpSettings, {"timeout": 0}, "timeout"),
        (HttpSettings, {"contact": "a\r\nX-Evil: 1"}, "contact"),
        *((WikipediaRetriever, {name: 0}, "passages per query") for name in ("top_k", "results")),
        (WikipediaRetriever, {"pages": -1}, "passages per query"),
        (WikipediaRetriever, {"reading": "all"}, "'all'"),
        (WikipediaRetriever, {"language": "e/n"}, "language code"),
        (LitellmSettings, {"model": " "}, "the model ' ' has no name"),
        (LitellmSettings, {"model": "x", "concurrency": 0}, "concurrency is 0; give 1 or more"),
        (LitellmSettings, {"model": "x", "timeout": 0.0}, "timeout is 0.0 seconds"),
        (Budget, {"max_calls": -1}, "max_calls is -1"),
        (Budget, {"max_cost": float("nan")}, "max_cost is nan"),
        (Pace, {"requests": 0.0}, "requests per minute is 0.0"),
        (Pace, {"tokens": -5}, "tokens per minute is -5"),
        (priced, {"price_out": None}, "one price of tokens is missing"),
        (priced, {"price_out": -2.0}, "price_out is -2.0"),
        (prompted, {"method": "guess"}, "the method 'guess' with fallback 'verbalized' is unknown"),
        (prompted, {"fallback": "logprobs"}, "'automatic' with fallback 'logprobs' is unknown"),
        (prompted, {"samples": 0}, "samples and concurrency of a relation model are 1 or more"),
        (prompted, {"top_logprobs": 50}, "top_logprobs is 50; give 1 to 20"),
        *((ChunkSettings, {"words": n, "overlap": 0}, "chunks") for n in (0, True)),
        *((ChunkSettings, {"words": 5, "overlap": n}, "chunks") for n in (5, -1)),
        *((split, {"stride": stride}, "stride") for stride in (0, -1, True, 1.5)),
    ],
)
def test_impossible_values_are_named(make: Any, settings: dict[str, Any], message: str) -> None:
    refused(message, make, **settings)
