"""Models of any provider through litellm: parameters, retries, time-outs, limits, secrets."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from factormodels.errors import InputError
from factormodels.extraction.language_model import (
    LOG_PROBABILITIES,
    Completion,
    Failure,
    Request,
    Usage,
)
from factormodels.extraction.language_model.answers import unreadable
from factormodels.extraction.language_model.call_errors import (
    describe,
    is_exhausted,
    is_transient,
    nothing_left,
)
from factormodels.extraction.language_model.limits import Budget, Pace
from factormodels.extraction.language_model.litellm_library import quiet_litellm
from factormodels.extraction.language_model.litellm_response import (
    CutThoughts,
    NoText,
    as_sent,
    read_response,
)
from factormodels.extraction.language_model.model_parameters import (
    LENGTHS,
    MANY_TOKENS,
    SEED,
    STRUCTURE,
    TEMPERATURE,
    in_words,
    is_about_size,
    reasoning_tokens,
    refused_parameter,
    unlisted_parameters,
)
from factormodels.extraction.language_model.prices import Prices, model_prices
from factormodels.extraction.language_model.provider_keys import missing_keys, no_key, unneeded_keys
from factormodels.extraction.language_model.repeated_calls import LONGEST_WAIT, repeated

logger = logging.getLogger(__name__)

TIMEOUT = 120.0
"""Default time-out of an attempt, in seconds."""

_ABOUT_THE_REQUEST = (400, 404, 422)
"""Statuses of errors that are not caused by a missing key."""

_CHARACTERS_PER_TOKEN = 4
_FRAME = 16
"""Maximum overhead of a message in tokens, for its role and delimiters."""

_ANSWERS_BEFORE_JUDGMENT = 5
"""Number of answers without log-probabilities after which a model is assumed to give none."""


@dataclass(frozen=True)
class LitellmSettings:
    """Settings of a provider's model.

    Attributes:
        model: the model as litellm spells it, such as "openai/NAME"; its key comes from the
            environment, under the name that the provider's own tools use.
        api_base: address of a compatible server; None for the provider's own. A server on this
            machine needs no key.
        concurrency: maximum number of concurrent calls.
        timeout: time-out of an attempt, in seconds.
        attempts: maximum number of attempts; only temporary errors (429, 5xx, time-outs, broken
            connections) are retried, and not an exhausted account.
        longest_wait: maximum seconds between two attempts, even if a server asks for more.
        prices: prices of tokens; None: as litellm reports for each answer or lists for the model.
        requests_per_minute: maximum attempts per minute; None for no limit.
        tokens_per_minute: maximum tokens per minute, of questions and answers; None for no limit.
    """

    model: str
    api_base: str | None = None
    concurrency: int = 16
    timeout: float = TIMEOUT
    attempts: int = 6
    longest_wait: float = LONGEST_WAIT
    prices: Prices | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise InputError(f"the model {self.model!r} has no name; give one such as openai/NAME")
        for name in ("concurrency", "attempts"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; give 1 or more")
        for name in ("timeout", "longest_wait"):
            if not getattr(self, name) > 0.0:
                raise InputError(f"{name} is {getattr(self, name)} seconds; give more than 0")
        Pace(self.requests_per_minute, self.tokens_per_minute)  # validates the limits


class LitellmModel:
    """A language model behind litellm. A permanently failed call returns a `Failure`.

    Requests contain the parameters that litellm lists for the model; a parameter that the server
    refuses is omitted from then on. An answer with a fault, according to `Request.fault`, is asked
    for once more with a statement of the fault, and is then parsable or a failure.

    Args:
        settings: settings of the model.
        budget: limits of calls and cost; None for no limits.
        refused: parameters that the server is known to refuse.
        remember: called with each parameter that the server refuses.

    Raises:
        InputError: if litellm knows no such provider, or a cost is limited and the price of the
            model is unknown.
        MissingDependencyError: if litellm or tenacity is not installed.
    """

    def __init__(
        self,
        settings: LitellmSettings,
        budget: Budget | None = None,
        *,
        refused: Collection[str] = (),
        remember: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self._litellm = quiet_litellm()
        self.unlisted = unlisted_parameters(settings.model)
        self._lacking = set(self.unlisted | set(refused))
        self._remember = remember
        self._reasoning_tokens = reasoning_tokens(settings.model)
        self._without_log_probabilities: int | None = 0
        self._keys = unneeded_keys(settings.model, settings.api_base)
        self._budget = budget or Budget()
        self._prices = settings.prices or model_prices(settings.model)
        if self._budget.max_cost is not None and self._prices is None:
            raise InputError(
                f"--max-cost: the price of {settings.model!r} is unknown; give --price-in and "
                "--price-out, in US dollars per million tokens"
            )
        self._longest_answer: int | None = None
        self._pace = Pace(settings.requests_per_minute, settings.tokens_per_minute)
        self._end: InputError | None = None
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._warn_once(self._lacking, "takes no")

    @property
    def name(self) -> str:
        """The model's name, as litellm spells it."""
        return self.settings.model

    @property
    def lacking(self) -> frozenset[str]:
        """Parameters that are not sent, because the model is known not to take them."""
        return frozenset(self._lacking)

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the provider's answer, which can be parsed, or a failure.

        Raises:
            InputError: if the provider needs a key that is not in the environment.
            LimitReachedError: if the budget allows no further call, or the account is exhausted.
        """
        async with self._slot():
            answer = await self._answered(request)
            fault = _fault(request, answer)
            if not fault:
                return answer
            again = await self._answered(_corrected(request, answer, fault))
        usage = answer.usage + again.usage
        left = _fault(request, again)
        if isinstance(again, Completion) and left:
            return replace(unreadable(again, f"{left}, asked for twice"), usage=usage)
        return replace(again, usage=usage)

    async def _answered(self, request: Request) -> Completion | Failure:
        """Return any answer; if it was cut off during reasoning, retry with more tokens."""
        had_room = bool(self._reasoning_tokens)
        answer = await self._admitted(request)
        if had_room or not isinstance(answer, CutThoughts):
            return answer
        self._reasoning_tokens = MANY_TOKENS
        again = await self._admitted(request)
        return replace(again, usage=answer.usage + again.usage)

    async def _admitted(self, request: Request) -> Completion | Failure:
        """Return the answer to one request within the budget."""
        if self._end is not None:
            # An earlier call has shown that no call can succeed.
            raise self._end
        longest = self._longest_cost(request)
        await self._budget.admit(longest)
        cost: float | None = None
        try:
            answer = await self._accepted(request)
            cost = answer.usage.cost
        finally:
            self._budget.settle(cost, longest)
        return answer

    async def _accepted(self, request: Request) -> Completion | Failure:
        """Return the answer to the request without the parameters that the server refuses."""
        refused: set[str] = set()
        oversized = False
        while True:
            sent = self._options(request, {*refused, *(LENGTHS if oversized else ())})
            try:
                response = await repeated(
                    partial(self._call, request, sent),
                    self.settings.attempts,
                    self.settings.longest_wait,
                )
            except Exception as error:
                name = refused_parameter(error, sent)
                if name is None:
                    self._end = self._ending(error)
                    if self._end is not None:
                        raise self._end from None
                    logger.debug("a call of stage %s failed: %s", request.stage, describe(error))
                    return Failure(describe(error), outage=is_transient(error))
                if name in LENGTHS and is_about_size(error):
                    # Too long for this question only; a shorter question may leave more room.
                    oversized = True
                else:
                    refused.add(name)
                continue
            # The success shows that these parameters caused the refusal.
            self._leave_out(refused)
            answer = read_response(response, self._usage(response))
            if request.needs_logprobs and LOG_PROBABILITIES in sent:
                self._count_log_probabilities(answer)
            return answer

    def _options(self, request: Request, without: Collection[str]) -> dict[str, Any]:
        """Return the parameters of a request that the model takes."""
        lacking = self._lacking | set(without)
        options: dict[str, Any] = {}
        if TEMPERATURE not in lacking:
            options[TEMPERATURE] = request.temperature
        if request.seed is not None and SEED not in lacking:
            # Different seeds for samples of a question, each reproducible.
            options[SEED] = request.seed + request.sample
        if request.top_logprobs and LOG_PROBABILITIES not in lacking:
            options |= {LOG_PROBABILITIES: True, "top_logprobs": request.top_logprobs}
        if request.schema and STRUCTURE not in lacking:
            options[STRUCTURE] = {
                "type": "json_schema",
                "json_schema": {
                    "name": request.prompt.name,
                    "strict": True,
                    "schema": json.loads(request.schema),
                },
            }
        length = next((name for name in LENGTHS if name not in lacking), None)
        if length is not None:
            options[length] = request.max_tokens + self._reasoning_tokens
        return options

    def _leave_out(self, refused: Collection[str]) -> None:
        """Omit some parameters from further requests."""
        new = set(refused) - self._lacking
        self._lacking |= new
        for name in sorted(new):
            self._remember(name)
        self._warn_once(new, "refuses")

    def _warn_once(self, parameters: Collection[str], what: str) -> None:
        """Log once which parameters the model does not take."""
        # Nothing is lost while one name of the maximum length remains, or without a schema, since
        # answers are parsed in any form.
        named = set() if set(LENGTHS) <= self._lacking else set(LENGTHS)
        missing = set(parameters) - named - {STRUCTURE}
        if missing:
            stated = LOG_PROBABILITIES in missing
            logger.warning(
                "%s %s %s: not sent%s",
                self.name,
                what,
                in_words(missing),
                "; probabilities are those that it states" if stated else "",
            )

    async def _call(self, request: Request, options: dict[str, Any]) -> Any:
        asked = sum(len(message.content) for message in request.messages) // _CHARACTERS_PER_TOKEN
        expected = await self._pace.wait(lambda: asked + self._answer_expected(request))
        address = {} if self.settings.api_base is None else {"api_base": self.settings.api_base}
        sent: list[object] = []
        call = self._litellm.acompletion(
            model=self.settings.model,
            messages=[
                {"role": message.role, "content": message.content} for message in request.messages
            ],
            timeout=self.settings.timeout,
            max_retries=0,
            num_retries=0,
            logger_fn=lambda details: sent.append(details.get("original_response")),
            **address,
            **self._keys,
            **options,
        )
        taken = asked
        try:
            # The library's own time-out restarts with every byte received.
            try:
                response = as_sent(await asyncio.wait_for(call, self.settings.timeout), sent)
            except Exception:
                response = as_sent(None, sent)
                if response is None:
                    raise
            usage = self._usage(response)
            taken = usage.prompt_tokens + usage.completion_tokens
            self._longest_answer = max(usage.completion_tokens, self._longest_answer or 0)
        finally:
            self._pace.correct(expected, taken)
        return response

    def _answer_expected(self, request: Request) -> int:
        """Return the expected tokens of an answer: the maximum until earlier answers are known."""
        longest = request.max_tokens + self._reasoning_tokens
        if self._longest_answer is None:
            return longest
        return min(longest, max(request.max_tokens, self._longest_answer))

    def _longest_cost(self, request: Request) -> float:
        """Return the maximum cost of a call in US dollars; 0 if no price is known."""
        if self._prices is None:
            return 0.0
        # A token has at least one byte; each message adds some overhead.
        asked = sum(
            len(message.content.encode("utf-8", "surrogatepass")) + _FRAME
            for message in request.messages
        )
        return self._prices.of(Usage(asked, request.max_tokens + self._reasoning_tokens))

    def _ending(self, error: BaseException) -> InputError | None:
        """Return the error that ends the run if no call can succeed: no key, or no credit."""
        if is_exhausted(error):
            return nothing_left(self.name, error)
        if self._keys or getattr(error, "status_code", None) in _ABOUT_THE_REQUEST:
            return None
        lacking = missing_keys(self.name, self.settings.api_base)
        return no_key(self.name, lacking) if lacking else None

    def _slot(self) -> asyncio.Semaphore:
        # A semaphore belongs to a loop, and a model may outlive the loop of one `asyncio.run`.
        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = (loop, asyncio.Semaphore(self.settings.concurrency))
        return self._slots[1]

    def _count_log_probabilities(self, answer: Completion | Failure) -> None:
        """Detect a server that omits log-probabilities without an error."""
        if self._without_log_probabilities is None or isinstance(answer, Failure):
            return
        if answer.tokens:
            # At most some answers lack them, so each answer is checked by itself.
            self._without_log_probabilities = None
            return
        self._without_log_probabilities += 1
        if self._without_log_probabilities >= _ANSWERS_BEFORE_JUDGMENT:
            self._leave_out({LOG_PROBABILITIES})

    def _usage(self, response: Any) -> Usage:
        reported = getattr(response, "usage", None)
        asked = int(getattr(reported, "prompt_tokens", 0) or 0)
        details = getattr(reported, "prompt_tokens_details", None)
        cached = getattr(details, "cached_tokens", 0)
        usage = Usage(
            prompt_tokens=asked,
            completion_tokens=int(getattr(reported, "completion_tokens", 0) or 0),
            prefix_tokens=min(asked, max(0, cached)) if isinstance(cached, int) else 0,
        )
        if self.settings.prices is not None:
            return replace(usage, cost=self.settings.prices.of(usage))
        cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
        if isinstance(cost, int | float) and cost > 0.0:
            return replace(usage, cost=float(cost))
        return replace(usage, cost=None if self._prices is None else self._prices.of(usage))


def _fault(request: Request, answer: Completion | Failure) -> str:
    """Return the fault of an answer that a second request may correct."""
    if isinstance(answer, NoText):
        return answer.reason
    return request.fault_of(answer) if isinstance(answer, Completion) else ""


def _corrected(request: Request, answer: Completion | Failure, fault: str) -> Request:
    """Return the request that repeats the question and states the fault of the first answer."""
    if not isinstance(answer, Completion):
        return request
    room = 2 * request.max_tokens if answer.finish == "length" else request.max_tokens
    return replace(request.corrected(fault), max_tokens=room)
