"""The adapter, through litellm's real HTTP path, against a server that misbehaves by a script."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from factormodels import Atom, FactGraph
from factormodels.errors import LimitReachedError
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    Message,
    PromptIdentity,
    Request,
    litellm_library,
)
from factormodels.extraction.language_model.accounting import Ledger, MeteredModel
from factormodels.extraction.language_model.call_errors import without_secrets
from factormodels.extraction.language_model.limits import Budget
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.language_model.model_parameters import unlisted_parameters
from factormodels.extraction.language_model.prices import Prices, model_prices
from factormodels.extraction.language_model.provider_keys import (
    KEYS,
    is_on_this_machine,
    missing_keys,
    require_key,
)
from factormodels.extraction.stages.assessors import assess
from tests.factormodels.extraction.conftest import KEY
from tests.factormodels.extraction.provider_servers import PROVIDERS, ChatCompletions
from tests.factormodels.extraction.server import Reply, ScriptedServer, body_of, label_reply
from tests.factormodels.extraction.web_server import (
    Answer,
    Asked,
    WebServer,
    dripping,
    web_server,
)
from tests.refusals import refused

pytestmark = pytest.mark.service

REQUEST = Request(
    (Message("system", "Judge."), Message("user", "Who?")), PromptIdentity("p", 1, ""), "stage"
)


def model(server: ScriptedServer, **settings: Any) -> LitellmModel:
    given = {"timeout": 20.0, "longest_wait": 0.05, **settings}
    return LitellmModel(LitellmSettings("openai/test", api_base=server.url, **given))


def answered(asked: LitellmModel, request: Request = REQUEST) -> Completion:
    answer = run_until_done(asked.complete(request))
    assert isinstance(answer, Completion), answer
    return answer


def completed(server: ScriptedServer, request: Request = REQUEST, **settings: Any) -> Completion:
    return answered(model(server, **settings), request)


def failed(server: ScriptedServer, **settings: Any) -> Failure:
    answer = run_until_done(model(server, **settings).complete(REQUEST))
    assert isinstance(answer, Failure), answer
    return answer


@contextmanager
def saying(
    body: dict[str, Any], status: int, provider: str, **settings: Any
) -> Iterator[tuple[WebServer, LitellmModel]]:
    """A server that says one thing to everything, and a provider's model there."""
    answer = Answer(json.dumps(body).encode(), status, {"Content-Type": "application/json"})
    with web_server(lambda *_: answer) as server:
        asking = LitellmSettings(provider, api_base=server.url, longest_wait=0.05, **settings)
        yield server, LitellmModel(asking)


@pytest.fixture
def every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of every provider."""
    for names in KEYS.values():
        for name in names:
            monkeypatch.setenv(name, KEY)


def in_turn(server: ScriptedServer, *replies: Reply) -> None:
    server.script = lambda _, number: replies[min(number, len(replies) - 1)]


def test_an_answer_with_its_probabilities_and_usage(server: ScriptedServer) -> None:
    in_turn(server, label_reply("yes", 0.75, {"no": 0.25}))
    request = Request(REQUEST.messages, REQUEST.prompt, "s", temperature=0.3, max_tokens=5,
                      top_logprobs=2, seed=7, sample=2)  # fmt: skip
    answer = completed(server, request)
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
    in_turn(server, Reply("The passage", finish="length"))
    answer = completed(server)
    # That it was cut off is told with it.
    assert (answer.tokens, answer.finish) == ((), "length")
    assert "logprobs" not in server.requests[0]


@pytest.mark.parametrize(
    "first",
    [
        *(Reply("slow down", status=status) for status in (429, 500, 503)),
        Reply("slow down", status=429, headers={"Retry-After": "0.01"}),
    ],
)
def test_temporary_failures_are_tried_again(server: ScriptedServer, first: Reply) -> None:
    in_turn(server, first, first, Reply("fine"))
    answer = completed(server)
    assert answer.text == "fine"
    assert len(server.requests) == 3


def test_the_server_says_how_long_to_wait(server: ScriptedServer) -> None:
    in_turn(server, Reply("slow", status=429, headers={"Retry-After": "0.4"}), Reply("fine"))
    start = time.monotonic()
    completed(server, longest_wait=5.0)
    assert time.monotonic() - start >= 0.4


def test_a_timeout_is_tried_again_and_then_a_failure(server: ScriptedServer) -> None:
    in_turn(server, Reply("late", delay=1.5), Reply("fine"))
    completed(server, timeout=0.7)
    server.always(Reply("late", delay=1.0))
    answer = failed(server, timeout=0.3, attempts=2)
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
def test_non_answers_are_failures(server: ScriptedServer, reply: Reply, reason: str) -> None:
    in_turn(server, reply)
    answer = failed(server, attempts=2)
    assert answer.reason
    assert reason in answer.reason


def test_refusals_for_good_are_counted_and_not_repeated(server: ScriptedServer) -> None:
    in_turn(server, Reply("bad request", status=400))
    ledger = Ledger()
    answer = run_until_done(MeteredModel(model(server), ledger).complete(REQUEST))
    assert isinstance(answer, Failure)
    # The words of the server, without the names of classes that litellm puts before them.
    assert answer.reason == "BadRequestError 400: bad request"
    assert (ledger.stages["stage"].failures, ledger.total.calls) == (1, 0)
    assert len(server.requests) == 1


_EXCEEDED = "You exceeded your current quota, please check your plan and billing details."


def _error(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def _short(message: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "code": code}}


def _typed(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _google(message: str, wait: str, *quotas: str) -> dict[str, Any]:
    """A refusal of Google's, which names a wait whichever quota is violated."""
    kind = "type.googleapis.com/google.rpc"
    violations = [{"quotaId": quota} for quota in quotas]
    details = [
        {"@type": f"{kind}.QuotaFailure", "violations": violations},
        {"@type": f"{kind}.RetryInfo", "retryDelay": wait},
    ]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message, "details": details}
    return {"error": error}


_OF_ALL_DAYS = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
_OF_ALL_MINUTES = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"


SPENT = (
    ("openai/test", 429, _error(_EXCEEDED, "insufficient_quota")),
    # litellm leaves the code out of its own error.
    ("openai/test", 429, _error("Quota.", "insufficient_quota")),
    ("openai/test", 429, _error("Quota exhausted for this project.", "quota_exhausted")),
    ("openai/test", 429, _error("Billing hard limit has been reached", "billing_hard_limit")),
    ("deepseek/deepseek-chat", 402, _error("Insufficient Balance", "invalid_request_error")),
    ("openrouter/some/model", 402, _short("Add more credits.", 402)),
    ("anthropic/claude-sonnet-4-5", 400, _typed(
        "invalid_request_error", "Your credit balance is too low to access the Anthropic API."
    )),
    ("xai/grok-3", 403, {"code": "permission", "error": "Your team has no credits yet."}),
    ("openrouter/some/model", 403, _short("Key limit exceeded.", 403)),
    ("anthropic/claude-sonnet-4-5", 400, _typed(
        "invalid_request_error", "You have reached your specified API usage limits."
    )),
    ("openai/test", 400, _error("Budget has been exceeded! Current cost: 5", "budget")),
)  # fmt: skip
DAY = (
    ("gemini/gemini-2.5-flash", _google(f"{_EXCEEDED} Retry in 34.07s.", "34s", _OF_ALL_DAYS)),
    ("gemini/gemini-2.5-flash", _google(_EXCEEDED, "34s", _OF_ALL_MINUTES, _OF_ALL_DAYS)),
    ("groq/llama-3.3-70b-versatile", _error(
        "Rate limit reached for model `llama-3.3-70b-versatile` on tokens per day (TPD): Limit "
        "100000, Used 99336, Requested 1200. Try again in 7m43.104s.", "rate_limit_exceeded"
    )),
    *(("openai/test", _error(message, "rate_limit_exceeded")) for message in [
        "Rate limit reached for gpt-4o in organization org-x on requests per day (RPD): "
        "Limit 200, Used 200, Requested 1. Please try again in 7m12s.",
        "Rate limit reached. Limit: 200 / day. Please try again in 7m12s.",
        "Rate limit exceeded: limit_rpd/mistralai/ministral-8b",
        "Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 55555 seconds "
        "before retrying.",
        "Too many tokens per day, please wait before trying again.",
        "Your trial key is limited to 1000 API calls / month.",
        "Daily request limit of this key was hit, retry tomorrow.",
        "At most 100 requests in 24 hours.",
        "Your monthly quota has been exhausted.",
    ]),
    ("openrouter/some/model", _short(
        "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model "
        "requests per day", 429
    )),
    ("anthropic/claude-sonnet-4-5", _typed(
        "rate_limit_error", "Number of request tokens has exceeded your daily rate limit."
    )),
)  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "status", "body", "message"),
    [
        *((*case, "has nothing left to spend.*add credit") for case in SPENT),
        *(
            (provider, 429, body, "the day or month.*wait until that limit resets")
            for provider, body in DAY
        ),
    ],
)
@pytest.mark.usefixtures("every_key")
def test_an_exhausted_account_ends_the_run_and_is_asked_once(
    provider: str, status: int, body: dict[str, Any], message: str
) -> None:
    with saying(body, status, provider) as (server, asked):
        for _ in range(2):
            with pytest.raises(LimitReachedError, match=message) as caught:
                run_until_done(asked.complete(REQUEST))
        assert len(server.asked) == 1
    assert KEY not in str(caught.value)


def test_a_refusal_that_quotes_what_was_asked_is_no_exhausted_day(server: ScriptedServer) -> None:
    in_turn(server, Reply("cannot judge: 'At most 3 trains per day cross it.'", status=400))
    failed(server)


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai/test", _error("Rate limit reached on requests per min (RPM): try again in 1s.",
                               "rate_limit_exceeded")),
        ("openai/test", _error("Quota exhausted: 60 requests per minute.", "rate_limit")),
        ("openai/test", _error("Limit: 3 / min, 200 / day.", "rate_limit_exceeded")),
        ("openai/test", _error("Rate limit exceeded: free-models-per-min.", "429")),
        ("openai/test", _error("Rate limit of 10 per 60s exceeded for UserByModelByMinute.", "x")),
        ("openai/test", _error("Too many tokens, please wait before trying again.", "x")),
        ("gemini/gemini-2.5-flash", _google(_EXCEEDED, "1s", "TokensPerModelPerMinute-FreeTier")),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("every_key")
def test_a_limit_a_minute_passes_though_it_is_called_a_quota(
    provider: str, body: dict[str, Any]
) -> None:
    with saying(body, 429, provider, attempts=2) as (server, asked):
        answer = run_until_done(asked.complete(REQUEST))
        assert len(server.asked) == 2
    assert isinstance(answer, Failure)
    assert answer.outage


def test_keys_go_nowhere(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    in_turn(server, Reply(f"your key {KEY} and Bearer {KEY} are wrong", status=401))
    with caplog.at_level(logging.DEBUG):
        answer = failed(server)
    assert KEY not in answer.reason
    assert KEY not in caplog.text
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "abcdef123456" not in without_secrets("sk-abcdef123456 and Bearer abcdef123456")


def test_a_missing_key_is_named(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    completed(server, attempts=1)  # on this machine none is needed
    assert server.headers[0]["authorization"] == "Bearer none"
    elsewhere = LitellmModel(LitellmSettings("openai/test", attempts=1))
    refused(
        "the model 'openai/test' needs OPENAI_API_KEY", run_until_done, elsewhere.complete(REQUEST)
    )


@pytest.mark.parametrize("provider", sorted(KEYS))
def test_keys_that_are_known_without_the_library_are_those_it_looks_for(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS[provider]:
        monkeypatch.delenv(name, raising=False)
    assert set(missing_keys(f"{provider}/x", None)) <= set(KEYS[provider])
    refused(
        f"the model '{provider}/x' needs {KEYS[provider][0]} in the environment",
        *(require_key, f"{provider}/x", None),
    )
    require_key(f"{provider}/x", "http://127.0.0.1:9/v1")
    for name in KEYS[provider]:
        with monkeypatch.context() as environment:
            environment.setenv(name, KEY)
            require_key(f"{provider}/x", None)


def test_no_more_calls_at_once_than_allowed(server: ScriptedServer) -> None:
    server.always(Reply("fine", delay=0.02))
    ledger = Ledger()
    metered = MeteredModel(model(server, concurrency=3), ledger)
    answers = run_until_done(each(metered.complete, [REQUEST] * 20, 10))
    assert all(isinstance(answer, Completion) for answer in answers)
    assert server.most_at_once == 3
    total = ledger.total
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == (20, 400, 40)
    assert total.unpriced == 20


def test_one_model_serves_several_loops(server: ScriptedServer) -> None:
    shared = model(server, concurrency=1)
    for _ in range(2):
        assert isinstance(asyncio.run(shared.complete(REQUEST)), Completion)


class OpenAIChatCompletion:
    """A class of the library's name, whose calls are prepared in a thread."""

    async def acompletion(self) -> None:
        """Do nothing."""


async def acompletion() -> None:
    """Do nothing."""


def test_a_call_that_was_canceled_before_it_began_is_no_warning() -> None:
    # An interrupt may arrive while a thread of the library prepares the call.
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        litellm_library.quiet_litellm()
        calls = [OpenAIChatCompletion().acompletion(), acompletion()]
        calls.clear()
    # Other tests leave connections behind, of which Python may speak in between.
    unawaited = [str(each.message) for each in warned if "never awaited" in str(each.message)]
    assert unawaited == ["coroutine 'acompletion' was never awaited"]


def test_the_library_is_made_quiet_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at all objects, for what an import has left, costs more than a call."""
    litellm = litellm_library.quiet_litellm()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("it is imported already"))
    assert litellm_library.quiet_litellm() is litellm


def test_clients_of_servers_are_kept_for_as_long_as_the_process_lasts(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = model(server)
    run_until_done(asking.complete(REQUEST))
    now = time.time
    with warnings.catch_warnings():
        # What the loops of other tests have left.
        warnings.simplefilter("ignore")
        gc.collect()
    with warnings.catch_warnings(record=True) as warned, monkeypatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(time, "time", lambda: now() + 86400.0)
        answered(asking, REQUEST)
        gc.collect()
    assert [str(warning.message) for warning in warned if "nclosed" in str(warning.message)] == []


def yes_or_no(answer: Completion) -> str:
    return "" if answer.text.strip().lower() in ("yes", "no") else "it is not yes or no"


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
STRICT = replace(
    REQUEST,
    fault=yes_or_no,
    temperature=0.0,
    top_logprobs=2,
    seed=0,
    schema=json.dumps(SCHEMA),
)


def test_unreadable_answers_are_requested_again_with_the_error(
    server: ScriptedServer,
) -> None:
    in_turn(server, Reply("Well..."), Reply("yes"))
    answer = completed(server, STRICT)
    assert answer.text == "yes"
    # Both were paid for.
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (40, 4)
    messages = server.requests[1]["messages"]
    assert messages[0] == server.requests[0]["messages"][0]
    assert messages[1]["content"].endswith("\nWho?")
    assert "it is not yes or no" in messages[1]["content"]


def test_a_second_unreadable_answer_is_a_paid_failure(server: ScriptedServer) -> None:
    server.always(Reply("Well..."))
    ledger = Ledger()
    answer = run_until_done(MeteredModel(model(server), ledger).complete(STRICT))
    assert isinstance(answer, Failure)
    assert answer.reason == (
        "the answer cannot be read: it is not yes or no, asked for twice: 'Well...'"
    )
    total = ledger.total
    assert len(server.requests) == 2
    assert (total.calls, total.failures, total.prompt_tokens) == (0, 1, 40)


def test_an_answer_that_was_cut_off_gets_more_room(server: ScriptedServer) -> None:
    in_turn(server, Reply("Well", finish="length"), Reply("yes"))
    completed(server, STRICT)
    assert [request["max_tokens"] for request in server.requests] == [1024, 2048]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("logprobs", "You are not allowed to request logprobs from this model"),
        ("temperature", "Unsupported value: 'temperature' does not support 0 with this model."),
        ("seed", "property 'seed' is unsupported"),
        ("response_format", "Failed to parse grammar: unknown type"),
        ("max_tokens", "'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
    ],
)
@pytest.mark.parametrize("status", [400, 403, 422, 500])
def test_a_parameter_that_the_server_refuses_is_left_out_from_then_on(
    server: ScriptedServer, name: str, message: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.script = lambda request, _: (
        Reply(message, status=status) if name in request else Reply("yes")
    )
    noted: list[str] = []
    settings = LitellmSettings("openai/test", server.url, attempts=1)
    asked = LitellmModel(settings, remember=noted.append)
    for _ in range(2):
        answered(asked, STRICT)
    assert [name in request for request in server.requests] == [True, False, False]
    assert noted == [name]
    # The other name of the longest answer is taken, and answers are read without a schema too, so
    # that nothing is lost.
    assert ("refuses" in caplog.text) == (name not in ("max_tokens", "response_format"))
    again = LitellmModel(settings, refused=noted)
    answered(again, STRICT)
    assert len(server.requests) == 4


def test_tokens_from_the_prefix_cache_of_a_server_are_read(server: ScriptedServer) -> None:
    body = json.loads(body_of(Reply("yes", usage=(600, 3)), {}))
    # As llama.cpp's server and OpenAI send it.
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 540}
    server.always(Reply(raw=json.dumps(body).encode()))
    assert completed(server).usage.prefix_tokens == 540
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 9000}
    server.always(Reply(raw=json.dumps(body).encode()))
    # No more than there are.
    assert completed(server).usage.prefix_tokens == 600
    server.always(Reply("yes"))
    assert completed(server).usage.prefix_tokens == 0


def test_a_prefix_has_the_price_that_is_listed() -> None:
    prices = model_prices("openai/gpt-4o-mini")
    assert prices is not None
    assert prices.prefix is not None
    assert 0.0 < prices.prefix < prices.question


def test_an_answer_is_held_to_its_schema_by_the_server(server: ScriptedServer) -> None:
    server.always(Reply("yes"))
    completed(server, STRICT)
    completed(server)
    strict, free = server.requests
    assert strict["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "p", "strict": True, "schema": SCHEMA},
    }
    assert "response_format" not in free


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("openai/gpt-4o-mini", True),
        # Listed without structured output.
        ("openai/gpt-4", False),
        # Not listed: its server is asked, and may refuse.
        ("hosted_vllm/some-model", True),
    ],
)
def test_who_is_listed_without_schemas_is_sent_none(name: str, takes: bool) -> None:
    assert ("response_format" not in unlisted_parameters(name)) == takes


def test_refusal_that_only_mentions_a_parameter_does_not_drop_it(
    server: ScriptedServer,
) -> None:
    server.always(Reply("the question speaks of temperature", status=400))
    asked = model(server)
    assert isinstance(run_until_done(asked.complete(STRICT)), Failure)
    assert asked.lacking == frozenset()
    server.always(Reply("yes"))
    answered(asked, STRICT)
    assert "temperature" in server.requests[-1]


def test_a_length_that_is_too_large_for_one_question_is_left_out_for_that_one(
    server: ScriptedServer,
) -> None:
    server.script = lambda _, number: (
        Reply("'max_tokens' is too large: 1024. The maximum context length is 512.", status=400)
        if number == 0
        else Reply("yes")
    )
    asked = model(server)
    for _ in range(2):
        answered(asked, STRICT)
    assert ["max_tokens" in request for request in server.requests] == [True, False, True]


def test_an_unknown_provider_is_named() -> None:
    refused("the model 'nobody/x' has no provider that litellm knows", LitellmModel,
            LitellmSettings("nobody/x"))  # fmt: skip


@pytest.mark.parametrize(
    ("address", "here"),
    [
        *(("http://127.0.0.1:8000/v1", True), ("http://localhost", True), ("http://[::1]:1", True)),
        *(("http://0.0.0.0:8000", True), ("127.0.0.5:80", True), ("http://10.0.0.1", False)),
        *(("https://api.openai.com/v1", False), ("http://localhost.example.org", False)),
        *(("http://[", False), ("http://\u2100/", False), ("", False)),
    ],
)
def test_this_machine_is_known_by_its_addresses(address: str, here: bool) -> None:
    assert is_on_this_machine(address) == here


def test_a_listed_price_is_counted_where_litellm_tells_none_of_an_answer(
    server: ScriptedServer,
) -> None:
    server.always(Reply("yes"))
    settings = LitellmSettings("hosted_vllm/gpt-4o-mini", api_base=server.url)
    answer = answered(LitellmModel(settings))
    listed = model_prices("gpt-4o-mini")
    assert listed is not None
    assert answer.usage.cost == pytest.approx(20 * listed.question + 2 * listed.answer)


def test_a_limit_of_cost_wants_a_price(server: ScriptedServer) -> None:
    settings = LitellmSettings("openai/test", api_base=server.url)
    refused("the price of 'openai/test' is unknown", LitellmModel, settings, Budget(max_cost=1.0))


def test_calls_side_by_side_fit_into_the_limit_at_their_longest(server: ScriptedServer) -> None:
    # Of 100 dollars a million tokens answered: a call has 1,024 at the most, some ten cents.
    settings = LitellmSettings(
        "openai/test", api_base=server.url, concurrency=10, prices=Prices(0.0, 1e-4)
    )
    budget = Budget(max_cost=0.35)
    server.script = lambda _, number: Reply(f"answer {number}", delay=0.05)
    asked = LitellmModel(settings, budget)
    run_until_done(each(lambda _: asked.complete(REQUEST), range(9)))
    assert server.most_at_once == 3
    assert budget.calls == 9
    assert budget.cost == pytest.approx(9 * 2e-4)


def test_tokens_of_reasoning_are_paced_before_any_is_seen(server: ScriptedServer) -> None:
    server.always(Reply("yes"))
    settings = LitellmSettings(
        "openai/o3-mini", api_base=server.url, tokens_per_minute=1_500_000, timeout=20.0
    )
    asked = LitellmModel(settings)
    long = replace(REQUEST, max_tokens=10)
    expected: list[int] = []
    correct = asked._pace.correct

    def noted(forecast: int, taken: int) -> None:
        expected.append(forecast)
        correct(forecast, taken)

    asked._pace.correct = noted  # type: ignore[method-assign, assignment]
    for _ in range(2):
        answered(asked, long)
    # The first may think as long as it has room for; the second as long as the first did.
    assert expected[0] > 25_000
    assert expected[1] == 2 + 10


def test_a_pace_holds_for_every_attempt(server: ScriptedServer) -> None:
    in_turn(server, Reply("slow down", status=429, headers={"Retry-After": "0"}), Reply("fine"))
    start = time.monotonic()
    completed(server, requests_per_minute=300)
    assert time.monotonic() - start >= 0.2 - 0.002


@pytest.mark.parametrize(
    "name",
    [
        "openai/x",
        "anthropic/claude-sonnet-4-5",
        # LiteLLM asks these with the client that asks Anthropic's.
        pytest.param("ollama_chat/x", marks=pytest.mark.nightly),
        pytest.param("bedrock/converse/amazon.nova-lite-v1:0", marks=pytest.mark.nightly),
    ],
)
def test_as_many_calls_are_under_way_as_are_allowed(name: str) -> None:
    answers = {
        provider.model.partition("/")[0]: provider.answer for provider in reversed(PROVIDERS)
    }
    answers["openai"] = ChatCompletions()
    # More than the 100 connections that HTTP clients keep unless they are told otherwise.
    at_once = 120
    arrived, all_here = [0], threading.Event()
    counting = threading.Lock()

    def script(asked: Asked, _: int) -> Answer:
        # Nobody is answered before all are here, or it is plain that they will not be.
        with counting:
            arrived[0] += "messages" in asked.body.decode()
            if arrived[0] == at_once:
                all_here.set()
        if not all_here.wait(60.0):
            return Answer(b"too few", 400)
        return answers[name.partition("/")[0]](asked)

    with web_server(script) as server:
        shared = LitellmModel(LitellmSettings(name, server.url, concurrency=at_once, attempts=1))
        graph = FactGraph("r", tuple(Atom(f"a{n}", f"It is {n}.") for n in range(at_once)))
        verdicts = assess(graph, "factverify", shared)
    assert {verdict.label for verdict in verdicts} == {"supported"}


def resetting(connection: socket.socket) -> None:
    # Closed with a wait of zero seconds for what was not sent: the peer sees a reset.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize(
    "bad", [resetting, partial(dripping, b"HTTP/1.1 200 OK\r\nX-Slow: ")], ids=["reset", "drip"]
)
def test_connections_that_break_or_drip_are_given_up_and_tried_again(
    bad: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    yes = ChatCompletions()
    with web_server(lambda asked, before: yes(asked) if before else Answer(talk=bad)) as server:
        settings = LitellmSettings("openai/test", server.url, timeout=1.0, longest_wait=0.05)
        answered(LitellmModel(settings))
    assert len(server.asked) == 2
