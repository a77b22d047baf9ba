"""Every provider through litellm itself, to a server that refuses what the provider refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from factormodels import Atom, Context, FactGraph
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.relation_models.base import Judgment, TextPair
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.stages.assessors import assess
from factormodels.extraction.stages.atomizer import atomize
from tests.factormodels.extraction.provider_servers import PROVIDERS, Provider
from tests.factormodels.extraction.web_server import WebServer, web_server

pytestmark = [pytest.mark.service, pytest.mark.slow]

RESPONSE = "The bridge is old. It has arches."
PAIRS = [TextPair(f"Passage {n}.", "The bridge has arches.") for n in range(8)]
GRAPH = FactGraph(
    "r",
    (Atom("a1", "The bridge has arches."), Atom("a2", "The bridge is old.")),
    (Context("c1", "An old bridge with arches.", retrieved_for=("a1", "a2")),),
)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without a key: servers on this machine need none."""
    for name in os.environ:
        if name.endswith("_API_KEY") or name.startswith("AWS_"):
            monkeypatch.delenv(name)


@pytest.fixture
def serving(provider: Provider) -> Iterator[tuple[WebServer, LitellmModel]]:
    """A provider's server and its model."""
    with web_server(lambda asked, _: provider.answer(asked)) as server:
        yield server, LitellmModel(LitellmSettings(provider.model, server.url, attempts=2))


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.model)
def test_claims_relations_and_verdicts(
    provider: Provider, serving: tuple[WebServer, LitellmModel]
) -> None:
    server, model = serving
    claims = atomize(RESPONSE, model)
    assert claims.failures == ()
    assert [(atom.sentence, atom.text) for atom in claims.atoms] == [
        (1, "The bridge has 1 arches."),
        (2, "The bridge has 2 arches."),
    ]
    # What a server says of log-probabilities it may say only when it is asked for them, at first
    # without a word in five answers.
    judged = PromptedRelationModel(model).judge(PAIRS)
    expected = 0.75 if provider.origin == "logprobs" else 0.8
    for claim in judged:
        assert isinstance(claim, Judgment), claim
        assert (claim.kind, claim.origin) == ("entailment", provider.origin)
        assert claim.probability == pytest.approx(expected)
    verdicts = assess(GRAPH, "factverify", model)
    assert [(verdict.label, verdict.p_true) for verdict in verdicts] == [("supported", 1.0)] * 2
    assert model.lacking >= provider.lacking
    asked = len(server.asked)
    again = PromptedRelationModel(model).judge(PAIRS)
    assert again == judged
    # What was refused once is not asked for again, and nothing is asked twice.
    assert len(server.asked) - asked == len(PAIRS)
    # Whoever insists on log-probabilities pays for no call that cannot give any.
    assert PromptedRelationModel(model, "logprobs").judge(PAIRS) == judged
    assert len(server.asked) - asked == 2 * len(PAIRS)
    sent = json.loads(server.asked[-1].body)
    assert not provider.lacking & sent.keys()


LOCAL = tuple(
    provider
    for provider in PROVIDERS
    if provider.model.startswith(("ollama", "hosted_vllm", "openai/"))
)
