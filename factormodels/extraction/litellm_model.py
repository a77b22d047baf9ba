"""Any provider's model through litellm: retries, time-outs, bounded concurrency, kept secrets."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from factormodels.errors import InputError
from factormodels.extraction.language_model import Completion, Failure, Request, Token, Usage
from factormodels.extraction.optional import optional_module

if TYPE_CHECKING:
    from tenacity import RetryCallState

logger = logging.getLogger(__name__)

_TRANSIENT_STATUS = {408, 409, 425, 429}
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$", re.I)
_SECRET_TEXT = re.compile(r"\b(?:sk|pk|key|token)-[\w-]{6,}|(?i:bearer)\s+[\w.~+/-]{6,}=*")
_SHORTEST_SECRET = 6
_LONGEST_REASON = 300


@dataclass(frozen=True)
class LitellmSettings:
    """How a provider is called.

    Attributes:
        model: the model as litellm spells it, such as "openai/NAME"; its key comes from the
            environment, under the name that the provider's own tools use.
        api_base: address of a compatible server; None for the provider's own.
        concurrency: most calls under way at a time.
        timeout: seconds after which one attempt is given up.
        attempts: how often a call is made before it counts as failed; only refusals that may pass
            (429, 5xx, time-outs, broken connections) are repeated.
        longest_wait: most seconds between two attempts.
    """

    model: str
    api_base: str | None = None
    concurrency: int = 16
    timeout: float = 120.0
    attempts: int = 6
    longest_wait: float = 30.0

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise InputError(f"the model {self.model!r} has no name; give one such as openai/NAME")
        for name in ("concurrency", "attempts"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; give 1 or more")
        for name in ("timeout", "longest_wait"):
            if not getattr(self, name) > 0.0:
                raise InputError(f"{name} is {getattr(self, name)} seconds; give more than 0")


class LitellmModel:
    """A language model behind litellm. A call that fails for good is a `Failure`, no exception.

    Args:
        settings: how the provider is called.

    Raises:
        MissingDependencyError: if litellm or tenacity is not installed.
    """

    def __init__(self, settings: LitellmSettings) -> None:
        self.settings = settings
        self._litellm = quiet_litellm()
        self._tenacity = optional_module("tenacity", "llm")
        self._refusal = ""
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    @property
    def name(self) -> str:
        """The model's name, as litellm spells it."""
        return self.settings.model

    async def complete(self, request: Request) -> Completion | Failure:
        """Provider's answer.

        Raises:
            InputError: if the call failed and the environment lacks the provider's key.
        """
        tenacity = self._tenacity
        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.settings.attempts),
            retry=tenacity.retry_if_exception(is_transient),
            wait=self._wait,
            reraise=True,
        )
        async with self._slot():
            if self._refusal:
                # One call has shown that none can succeed.
                raise InputError(self._refusal)
            try:
                response = await retrying(self._call, request)
            except Exception as error:
                self._refuse_without_key()
                logger.debug("a call of stage %s failed: %s", request.stage, describe(error))
                return Failure(describe(error))
        return self._completion(response)

    def _refuse_without_key(self) -> None:
        """Raise an error if no call can succeed, for want of a key."""
        found = self._litellm.validate_environment(model=self.settings.model)
        lacking = found.get("missing_keys") or []
        if lacking and not any(os.environ.get(name) for name in lacking):
            self._refusal = (
                f"the model {self.settings.model!r} needs {', '.join(lacking)} in the environment; "
                "set it, or replay an earlier run"
            )
            raise InputError(self._refusal)

    def _slot(self) -> asyncio.Semaphore:
        # A semaphore belongs to a loop, and a model may outlive the loop of one `asyncio.run`.
        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = (loop, asyncio.Semaphore(self.settings.concurrency))
        return self._slots[1]

    async def _call(self, request: Request) -> Any:
        options: dict[str, Any] = {}
        if request.top_logprobs:
            options |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        if request.seed is not None:
            # Samples of one question differ, each reproducibly.
            options["seed"] = request.seed + request.sample
        if self.settings.api_base is not None:
            options["api_base"] = self.settings.api_base
        call = self._litellm.acompletion(
            model=self.settings.model,
            messages=[{"role": one.role, "content": one.content} for one in request.messages],
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            timeout=self.settings.timeout,
            max_retries=0,
            num_retries=0,
            **options,
        )
        return await asyncio.wait_for(call, self.settings.timeout)

    def _wait(self, state: RetryCallState) -> float:
        """Seconds to wait: what the server asks for, otherwise longer every time."""
        longest = self.settings.longest_wait
        error = state.outcome.exception() if state.outcome else None
        headers = getattr(error, "litellm_response_headers", None) or {}
        try:
            asked = float(headers.get("retry-after", ""))
        except (TypeError, ValueError):
            backoff = self._tenacity.wait_random_exponential(multiplier=0.5, max=longest)
            return min(longest, float(backoff(state)))
        return min(longest, max(0.0, asked))

    def _completion(self, response: Any) -> Completion | Failure:
        try:
            choice = response.choices[0]
            text = choice.message.content
        except (AttributeError, IndexError, TypeError):
            return Failure("the answer has no choices")
        if not isinstance(text, str) or not text.strip():
            return Failure("the answer is empty")
        return Completion(
            text=text,
            tokens=_tokens(choice),
            usage=self._usage(response),
            finish=str(getattr(choice, "finish_reason", None) or "stop"),
        )

    def _usage(self, response: Any) -> Usage:
        reported = getattr(response, "usage", None)
        cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
        return Usage(
            prompt_tokens=int(getattr(reported, "prompt_tokens", 0) or 0),
            completion_tokens=int(getattr(reported, "completion_tokens", 0) or 0),
            cost=float(cost) if isinstance(cost, int | float) and cost > 0.0 else None,
        )


def is_transient(error: BaseException) -> bool:
    """Whether a call that failed so may succeed when it is made again."""
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"Timeout", "APIConnectionError", "APITimeoutError"}:
        return True
    status = getattr(error, "status_code", None)
    return isinstance(status, int) and (status >= 500 or status in _TRANSIENT_STATUS)


def describe(error: BaseException) -> str:
    """One line that says what went wrong, without anything secret."""
    status = getattr(error, "status_code", None)
    what = f"{type(error).__name__} {status}" if isinstance(status, int) else type(error).__name__
    words = " ".join(str(error).split())
    return without_secrets(f"{what}: {words}" if words else what)[:_LONGEST_REASON]


def without_secrets(text: str) -> str:
    """Text with the values of secret environment variables and what looks like a key."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name):
            text = text.replace(value, "***")
    return _SECRET_TEXT.sub("***", text)


def _tokens(choice: Any) -> tuple[Token, ...]:
    listed = getattr(getattr(choice, "logprobs", None), "content", None) or ()
    try:
        return tuple(
            Token(
                one.token,
                float(one.logprob),
                tuple((other.token, float(other.logprob)) for other in one.top_logprobs or ()),
            )
            for one in listed
        )
    except (AttributeError, TypeError, ValueError):
        return ()


def quiet_litellm() -> Any:
    """Litellm, which asks no network for prices, prints nothing and reports to nobody."""
    with _environment("LITELLM_LOCAL_MODEL_COST_MAP", "True"), warnings.catch_warnings():
        # Its types are completed with the first answer, and pydantic warns of one of them.
        warnings.simplefilter("ignore")
        litellm = optional_module("litellm", "llm")
        litellm.ModelResponse()
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ.setdefault(name, value)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
