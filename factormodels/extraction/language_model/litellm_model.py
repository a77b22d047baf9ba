"""Any provider's model through litellm: what it takes, retries, time-outs, limits, kept secrets."""

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
"""Seconds after which an attempt is given up, by default."""

_ABOUT_THE_REQUEST = (400, 404, 422)
"""Statuses of errors that no key would have spared."""

_CHARACTERS_PER_TOKEN = 4
_FRAME = 16
"""Tokens that a message takes beside its text, at most: who speaks, where it begins and ends."""

_ANSWERS_BEFORE_JUDGEMENT = 5
"""Answers without log-probabilities after which a model counts as one that gives none."""


@dataclass(frozen=True)
class LitellmSettings:
    """How a provider is called.

    Attributes:
        model: the model as litellm spells it, such as "openai/NAME"; its key comes from the
            environment, under the name that the provider's own tools use.
        api_base: address of a compatible server; None for the provider's own. A server on this
            machine needs no key.
        concurrency: most calls under way at a time.
        timeout: seconds after which one attempt is given up.
        attempts: how often a call is made before it counts as failed; only refusals that may pass
            (429, 5xx, time-outs, broken connections) are repeated, and no exhausted account.
        longest_wait: most seconds between two attempts; what a server asks for is waited for up to
            this.
        prices: what tokens cost; None: as litellm says of each answer or lists for the model.
        requests_per_minute: most attempts a minute; None for any number.
        tokens_per_minute: most tokens a minute, of questions and answers; None likewise.
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
        Pace(self.requests_per_minute, self.tokens_per_minute)  # raises what is wrong with them


class LitellmModel:
    """A language model behind litellm. A call that fails for good is a `Failure`, no exception.

    It is sent the parameters that litellm lists for it; one that its server refuses all the same
    is left out from then on. An answer that cannot be read, as `Request.fault` says, is asked for
    once more with what was wrong with it; it comes out readable or as a failure.

    Args:
        settings: how the provider is called.
        budget: what may be asked and spent; None for anything.
        refused: parameters that the server is known to refuse.
        remember: called with each parameter that the server is found to refuse.

    Raises:
        InputError: if litellm knows no such provider, or a cost is limited and the price of the
            model is not known.
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
                f"--max-cost: the price of {settings.model!r} is not known; give --price-in and "
                "--price-out, in US dollars per million tokens"
            )
        self._longest_answer: int | None = None
        self._pace = Pace(settings.requests_per_minute, settings.tokens_per_minute)
        self._end: InputError | None = None
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._tell(self._lacking, "takes no")

    @property
    def name(self) -> str:
        """The model's name, as litellm spells it."""
        return self.settings.model

    @property
    def lacking(self) -> frozenset[str]:
        """Parameters that are not sent, since the model does not take them, as far as is known."""
        return frozenset(self._lacking)

    async def complete(self, request: Request) -> Completion | Failure:
        """Provider's answer, one that can be read.

        Raises:
            InputError: if the provider wants a key and the environment lacks it.
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
        """An answer, whatever it says; one cut off amid its thoughts is given room for them."""
        had_room = bool(self._reasoning_tokens)
        answer = await self._admitted(request)
        if had_room or not isinstance(answer, CutThoughts):
            return answer
        self._reasoning_tokens = MANY_TOKENS
        again = await self._admitted(request)
        return replace(again, usage=answer.usage + again.usage)

    async def _admitted(self, request: Request) -> Completion | Failure:
        """An answer to one request within the budget."""
        if self._end is not None:
            # One call has shown that none can succeed.
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
        """An answer to the request without the parameters that the server refuses."""
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
                    # Too long for this question; the next one may leave more room.
                    oversized = True
                else:
                    refused.add(name)
                continue
            # Only now is it known that they were what the server disliked.
            self._leave_out(refused)
            answer = read_response(response, self._usage(response))
            if request.needs_logprobs and LOG_PROBABILITIES in sent:
                self._count_log_probabilities(answer)
            return answer

    def _options(self, request: Request, without: Collection[str]) -> dict[str, Any]:
        """The parameters of a request that the model takes."""
        lacking = self._lacking | set(without)
        options: dict[str, Any] = {}
        if TEMPERATURE not in lacking:
            options[TEMPERATURE] = request.temperature
        if request.seed is not None and SEED not in lacking:
            # Samples of one question differ, each reproducibly.
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
        """Send some parameters no more."""
        new = set(refused) - self._lacking
        self._lacking |= new
        for name in sorted(new):
            self._remember(name)
        self._tell(new, "refuses")

    def _tell(self, parameters: Collection[str], what: str) -> None:
        """Say once which parameters the model does not take."""
        # While one name of the longest answer is left, nothing is missing; nor is anything without
        # a schema, since answers are read in whatever form they come.
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
            # Its own time-out begins anew with every byte that arrives.
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
        """Tokens of an answer: as long as it may be, until answers show how long they become."""
        longest = request.max_tokens + self._reasoning_tokens
        if self._longest_answer is None:
            return longest
        return min(longest, max(request.max_tokens, self._longest_answer))

    def _longest_cost(self, request: Request) -> float:
        """US dollars that a call costs at its longest; 0 where no price is known."""
        if self._prices is None:
            return 0.0
        # No token is less than a byte; the frame of a message takes some.
        asked = sum(
            len(message.content.encode("utf-8", "surrogatepass")) + _FRAME
            for message in request.messages
        )
        return self._prices.of(Usage(asked, request.max_tokens + self._reasoning_tokens))

    def _ending(self, error: BaseException) -> InputError | None:
        """The error that ends the run, if no call can succeed: for want of a key, or of credit."""
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
        """Notice a server that leaves log-probabilities out and says nothing."""
        if self._without_log_probabilities is None or isinstance(answer, Failure):
            return
        if answer.tokens:
            # They are missing now and then at most: each answer is looked at by itself.
            self._without_log_probabilities = None
            return
        self._without_log_probabilities += 1
        if self._without_log_probabilities >= _ANSWERS_BEFORE_JUDGEMENT:
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
    """What is wrong with an answer that may be right when it is asked for again."""
    if isinstance(answer, NoText):
        return answer.reason
    return request.fault_of(answer) if isinstance(answer, Completion) else ""


def _corrected(request: Request, answer: Completion | Failure, fault: str) -> Request:
    """The request that asks for an answer once more and says what was wrong with the first."""
    if not isinstance(answer, Completion):
        return request
    room = 2 * request.max_tokens if answer.finish == "length" else request.max_tokens
    return replace(request.corrected(fault), max_tokens=room)
