"""The adapter, through litellm's real HTTP path, against a server that misbehaves by a script."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from factormodels.extraction.accounting import Ledger, MeteredModel
from factormodels.extraction.concurrency import each
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    Message,
    PromptIdentity,
    Request,
)
from factormodels.extraction.litellm_model import LitellmModel, LitellmSettings, without_secrets
from tests.factormodels.extraction.conftest import KEY
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply
from tests.refusals import refused

pytestmark = pytest.mark.service

REQUEST = Request(
    (Message("system", "Judge."), Message("user", "Who?")), PromptIdentity("p", 1, ""), "stage"
)


def model(server: ScriptedServer, **settings: Any) -> LitellmModel:
    given = {"timeout": 20.0, "longest_wait": 0.05, **settings}
    return LitellmModel(LitellmSettings("openai/test", api_base=server.url, **given))


def complete(
    server: ScriptedServer, request: Request = REQUEST, **settings: Any
) -> Completion | Failure:
    return asyncio.run(model(server, **settings).complete(request))


def in_turn(server: ScriptedServer, *replies: Reply) -> None:
    server.script = lambda _, number: replies[min(number, len(replies) - 1)]


def test_an_answer_with_its_probabilities_and_usage(server: ScriptedServer) -> None:
    in_turn(server, label_reply("yes", 0.75, {"no": 0.25}))
    request = Request(REQUEST.messages, REQUEST.prompt, "s", temperature=0.3, max_tokens=5,
                      top_logprobs=2, seed=7, sample=2)  # fmt: skip
    answer = complete(server, request)
    assert isinstance(answer, Completion)
    assert answer.text == "yes"
    assert [token.text for token in answer.tokens] == ["yes"]
    assert dict(answer.tokens[0].alternatives)["no"] == pytest.approx(-1.3862943611198906)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (20, 2)
    sent = server.requests[0]
    assert sent["messages"] == [
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": "Who?"},
    ]
    assert {name: sent[name] for name in ("temperature", "max_tokens", "top_logprobs", "seed")} == {
        "temperature": 0.3, "max_tokens": 5, "top_logprobs": 2, "seed": 9,
    }  # fmt: skip


def test_no_probabilities_are_asked_where_none_are_wanted(server: ScriptedServer) -> None:
    answer = complete(server)
    assert isinstance(answer, Completion)
    assert answer.tokens == ()
    assert "logprobs" not in server.requests[0]


@pytest.mark.parametrize(
    "first",
    [
        Reply("slow down", status=429),
        Reply("slow down", status=429, headers={"Retry-After": "0.01"}),
        Reply("oops", status=500),
        Reply("gone for lunch", status=503),
    ],
)
def test_what_may_pass_is_tried_again(server: ScriptedServer, first: Reply) -> None:
    in_turn(server, first, first, Reply("fine"))
    answer = complete(server)
    assert isinstance(answer, Completion), answer
    assert answer.text == "fine"
    assert len(server.requests) == 3


def test_the_server_says_how_long_to_wait(server: ScriptedServer) -> None:
    in_turn(server, Reply("slow", status=429, headers={"Retry-After": "0.4"}), Reply("fine"))
    start = time.monotonic()
    assert isinstance(complete(server, longest_wait=5.0), Completion)
    assert time.monotonic() - start >= 0.4


def test_a_timeout_is_tried_again_and_then_a_failure(server: ScriptedServer) -> None:
    in_turn(server, Reply("late", delay=1.5), Reply("fine"))
    assert isinstance(complete(server, timeout=0.7), Completion)
    server.always(Reply("late", delay=1.0))
    answer = complete(server, timeout=0.3, attempts=2)
    assert isinstance(answer, Failure)
    assert "imeout" in answer.reason


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(""), "the answer is empty"),
        (Reply("  \n"), "the answer is empty"),
        (Reply(None), "the answer is empty"),
        (Reply("no such model", status=404), "404"),
        (Reply(raw=b'{"choices": ['), ""),
        (Reply(raw=b"<html>proxy</html>"), ""),
        (Reply(raw=b""), ""),
        (Reply(raw=b'{"choices": []}'), ""),
    ],
)
def test_what_is_no_answer_is_a_failure(server: ScriptedServer, reply: Reply, reason: str) -> None:
    in_turn(server, reply)
    answer = complete(server, attempts=2)
    assert isinstance(answer, Failure)
    assert answer.reason
    assert reason in answer.reason


def test_refusals_for_good_are_not_repeated(server: ScriptedServer) -> None:
    in_turn(server, Reply("bad request", status=400))
    assert isinstance(complete(server), Failure)
    assert len(server.requests) == 1


def test_a_cut_off_answer_says_so(server: ScriptedServer) -> None:
    in_turn(server, Reply("The passage", finish="length"))
    answer = complete(server)
    assert isinstance(answer, Completion)
    assert answer.finish == "length"


def test_keys_go_nowhere(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    in_turn(server, Reply(f"your key {KEY} and Bearer {KEY} are wrong", status=401))
    with caplog.at_level(logging.DEBUG):
        answer = complete(server)
    assert isinstance(answer, Failure)
    assert KEY not in answer.reason
    assert KEY not in caplog.text
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "abcdef123456" not in without_secrets("sk-abcdef123456 and Bearer abcdef123456")


def test_a_missing_key_is_named(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    refused("the model 'openai/test' needs OPENAI_API_KEY", complete, server, attempts=1)


def test_no_more_calls_at_once_than_allowed(server: ScriptedServer) -> None:
    server.always(Reply("fine", delay=0.02))
    ledger = Ledger()
    metered = MeteredModel(model(server, concurrency=3), ledger)
    answers = asyncio.run(each(metered.complete, [REQUEST] * 20, 10))
    assert all(isinstance(answer, Completion) for answer in answers)
    assert server.most_at_once == 3
    total = ledger.total
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == (20, 400, 40)
    assert total.unpriced == 20


def test_failures_are_counted(server: ScriptedServer) -> None:
    in_turn(server, Reply("no", status=400))
    ledger = Ledger()
    asyncio.run(MeteredModel(model(server), ledger).complete(REQUEST))
    assert (ledger.stages["stage"].failures, ledger.total.calls) == (1, 0)


def test_one_model_serves_several_loops(server: ScriptedServer) -> None:
    one = model(server, concurrency=1)
    for _ in range(2):
        assert isinstance(asyncio.run(one.complete(REQUEST)), Completion)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": " "}, "the model ' ' has no name"),
        ({"model": "openai/x", "concurrency": 0}, "concurrency is 0; give 1 or more"),
        ({"model": "openai/x", "timeout": 0.0}, "timeout is 0.0 seconds"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    refused(message, LitellmSettings, **settings)
