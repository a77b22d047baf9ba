"""Commands about claims ask in one session: a dry run sends nothing, and a limit stops them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from experiments import coherence, omissions, revise
from experiments.asking.ledger_table import ledger_table
from experiments.asking.settings import AskingSettings
from factormodels.errors import LimitReachedError
from factormodels.extraction.language_model import Completion, Request, Usage
from factormodels.extraction.language_model.accounting import Ledger
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from tests.experiments.methods.test_omissions import bridge
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.server import Reply, ScriptedServer

COMMANDS: dict[str, tuple[Callable[..., Any], int, dict[str, Any]]] = {
    "coherence": (coherence, 1, {}),
    "omissions": (omissions, 2, {}),
    "revise": (revise, 1, {"drop": 0.5}),
}
"""By name the command, the calls about a response that do not hang on answers, and settings."""


def nothing(_: Request) -> str:
    return json.dumps({"relation": "none", "confidence": 0.9})


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dry_run_counts_calls_and_asks_nobody(name: str) -> None:
    call, least, options = COMMANDS[name]
    model = AnsweringModel(nothing)
    planned: Any = call([bridge()], model=model, dry_run=True, **options)
    assert model.asked == []
    assert planned["calls"]["calls"].sum() >= least
    assert planned.sentences == ("Nothing was sent; calls that depend on answers are not counted.",)


def test_options_about_answers_that_nobody_gives_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    coherence([bridge()], relations="lexical", max_calls=3, price_in=1.0, dry_run=False)
    (record,) = caplog.records
    assert record.getMessage().endswith("had no effect: --max-calls, --price-in")
    caplog.clear()
    coherence([bridge()], relations="lexical")
    coherence([bridge()], model=AnsweringModel(nothing), max_calls=100)
    assert not [each for each in caplog.records if "had no effect" in each.getMessage()]


@pytest.mark.service
@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_limit_on_calls_stops_it(name: str, tmp_path: Any) -> None:
    call, _, options = COMMANDS[name]
    with ScriptedServer(lambda *_: Reply(nothing(None))) as server:  # type: ignore[arg-type]
        model = LitellmSettings("openai/test", server.url)
        settings = {"model": model, "cache": tmp_path / "answers.sqlite", "max_calls": 0, **options}
        with pytest.raises(LimitReachedError):
            call([bridge()], **settings)
        assert server.requests == []


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 120.0),
        ({"api_base": "https://example.org/v1"}, 120.0),
        # A processor alone may take minutes, and others of the same run are in its queue.
        ({"api_base": "http://127.0.0.1:8080/v1"}, 600.0),
        ({"api_base": "http://127.0.0.1:8080/v1", "timeout": 30.0}, 30.0),
    ],
)
def test_a_server_on_this_machine_has_longer_to_answer(
    given: dict[str, Any], seconds: float
) -> None:
    assert AskingSettings(**given).litellm("openai/x").timeout == seconds


def test_tokens_of_a_prefix_cache_stand_with_the_costs() -> None:
    ledger = Ledger()
    ledger.add("relations", Completion("entailment", usage=Usage(600, 3, None, 540)))
    table = ledger_table(ledger)
    assert table.frame["prefix_tokens"].tolist() == [540]
    assert "90%" in table.note
    # A server that says nothing of it has no column.
    silent = Ledger()
    silent.add("relations", Completion("entailment", usage=Usage(600, 3)))
    assert "prefix_tokens" not in ledger_table(silent).frame
    assert ledger_table(silent).note == ""
