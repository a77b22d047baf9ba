"""Errors of failed calls: whether to retry, whether the account is exhausted, and their
description.

A provider whose account is out of credit, or has used up a day's requests, often answers with
status 429 as for too many requests. The latter passes within a minute; the former do not while a
run waits.
"""

from __future__ import annotations

import os
import re
from typing import Any

from factormodels.errors import LimitReachedError
from factormodels.extraction.http.bounds import AnswerRefused

_TOO_MANY = 429
_TRANSIENT_STATUS = {408, 409, 425, _TOO_MANY}
_PAYMENT_REQUIRED = 402
_OF_AN_ACCOUNT = {400, 403, _TOO_MANY}
"""Statuses of errors whose messages may report an exhausted account."""

_EXHAUSTED = re.compile(
    r"insufficient[_ ](?:account[_ ])?(?:quota|balance|credits?|funds)|"
    r"exceeded your (?:current quota|monthly)|quota (?:(?:is|was|has been) )?exhausted|"
    r"billing[_ ](?:hard[_ ])?limit|"
    r"reached your (?:specified )?(?:api )?usage limits?|(?:spend(?:ing)?|key|daily) (?:limit|cap) "
    r"(?:reached|exceeded)|budget has been exceeded|"
    r"(?:credit|account) balance is too low|not enough credits?|payment required|"
    r"\b(?:any|no|out of|used all(?: of your)?)(?: available| remaining)? credits?\b|arrearage",
    re.I,
)
_PASSES = re.compile(
    r"per[ _-]?(?:min|sec)|retry[ _-]?(?:delay|info|in\b)|try again|\b[RT]PM\b", re.I
)
"""Words in errors of limits per minute, which some providers also call a quota."""

_OF_A_DAY = re.compile(
    r"per[ _-]?(?:day|week|month)|(?<![a-z])[rt]pd(?![a-z])|(?-i:ByDay)|per 86,?400 ?s|"
    r"\d[^/]{0,30}/ ?(?:day|week|month)\b|\b24[ -]?h(?:ours?)?\b|"
    r"\b(?:daily|weekly|monthly)\b.{0,40}?\b(?:limit|quota|cap|allowance)|"
    r"(?:quota|limit) for (?:today|the day)|out of call volume quota",
    re.I,
)
_OF_A_MINUTE = re.compile(
    r"per[ _-]?(?:min|sec)|/ ?(?:min(?:ute)?|sec(?:ond)?)s?\b|(?<![a-z])[rt]pm(?![a-z])", re.I
)
_VIOLATED_BY_DAY = re.compile("PerDay")
"""Google's name of a violated quota; a quota per minute may be listed too."""

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$", re.I)
_SECRET_TEXT = re.compile(r"\b(?:sk|pk|key|token)-[\w-]{6,}|(?i:bearer)\s+[\w.~+/-]{6,}=*")
_CLASS_NAMES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Timeout): )+(?:\w+Exception - )?")
"""Names of classes that litellm puts before the words of a server."""

_LONGEST_CHAIN = 10
_SHORTEST_SECRET = 6
_LONGEST_REASON = 300


def is_transient(error: BaseException) -> bool:
    """Return whether a failed call may succeed when repeated."""
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if is_exhausted(error):
        return False
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"Timeout", "APIConnectionError", "APITimeoutError"}:
        return True
    status = getattr(error, "status_code", None)
    # An error despite status 200: the response was cut off, or not a model's answer.
    return isinstance(status, int) and (
        status >= 500 or status in _TRANSIENT_STATUS or status == 200
    )


def is_exhausted(error: BaseException) -> bool:
    """Return whether a call failed because the account has no credit or no requests left for the
    day.

    Once the requests of a day or a month are used up, waiting between attempts does not help, even
    if the answer says "try again in 34 s".
    """
    statuses, message = _statuses_and_messages(error)
    if _PAYMENT_REQUIRED in statuses:
        return True
    exhausted = _EXHAUSTED.search(message) is not None and _PASSES.search(message) is None
    return (exhausted and bool(statuses & _OF_AN_ACCOUNT)) or _until_renewed(statuses, message)


def nothing_left(model: str, error: BaseException) -> LimitReachedError:
    """Return the error that ends a run whose account is exhausted.

    Args:
        model: the model's name.
        error: the provider's error.
    """
    left = "nothing left to spend", "add credit or raise its limit"
    if _until_renewed(*_statuses_and_messages(error)):
        left = (
            "used up its requests for the day or month",
            "wait until that limit resets, or raise it",
        )
    return LimitReachedError(
        f"the account for {model!r} has {left[0]}, so that no further calls are made "
        f"({describe(error)}); {left[1]}: answered calls are kept; run the same command again to "
        "continue"
    )


def _statuses_and_messages(error: BaseException) -> tuple[set[Any], str]:
    """Return the statuses and messages of an error and of its causes."""
    words: list[str] = []
    statuses: set[Any] = set()
    link: BaseException | None = error
    # litellm's error has the message, and its cause, the client's error, has the code.
    for _ in range(_LONGEST_CHAIN):
        if link is None:
            break
        statuses.add(getattr(link, "status_code", None))
        words += [str(link), str(getattr(link, "body", None) or "")]
        link = link.__cause__ or link.__context__
    return statuses, " ".join(words)


def _until_renewed(statuses: set[Any], message: str) -> bool:
    """Return whether the requests of a day or a month are used up."""
    # Other refusals may quote the question, such as a claim about trains per day.
    if _TOO_MANY not in statuses:
        return False
    if _VIOLATED_BY_DAY.search(message):
        return True
    return _OF_A_DAY.search(message) is not None and _OF_A_MINUTE.search(message) is None


def describe(error: BaseException) -> str:
    """Return a one-line description of an error, without secrets."""
    if isinstance(error, AnswerRefused):
        return without_secrets(str(error))
    status = getattr(error, "status_code", None)
    what = f"{type(error).__name__} {status}" if isinstance(status, int) else type(error).__name__
    words = _CLASS_NAMES.sub("", " ".join(str(error).split()))
    if not words and isinstance(error, TimeoutError):
        words = "no whole answer came in time"
    sentence = without_secrets(f"{what}: {words}" if words else what)[:_LONGEST_REASON]
    return "; ".join([sentence, *getattr(error, "__notes__", ())])


def without_secrets(text: str) -> str:
    """Return text without the values of secret environment variables and likely keys."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name):
            text = text.replace(value, "***")
    return _SECRET_TEXT.sub("***", text)
