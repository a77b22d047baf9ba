"""Parsing of a litellm response: the answer without reasoning, and its tokens."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from factormodels.extraction.language_model import Completion, Failure, Token, Usage
from factormodels.extraction.language_model.litellm_library import quiet_litellm
from factormodels.extraction.language_model.log_probabilities import fitted

_SEVERAL = 2


class CutThoughts(Failure):
    """An answer that was cut off before its reasoning ended."""


class NoText(Failure):
    """An answer without text."""


def read_response(response: Any, usage: Usage) -> Completion | Failure:
    """Return the answer in a response; `CutThoughts` or `NoText` if it has no text.

    Args:
        response: the response of litellm.
        usage: usage of the call.
    """
    try:
        choices = sorted(response.choices, key=lambda choice: choice.index)
        choice, message = choices[0], choices[0].message
    except (AttributeError, IndexError, TypeError):
        return Failure("the answer has no choices", usage, outage=True)
    if any(other.index == choice.index for other in choices[1:]):
        return Failure("the server sent several answers with one index", usage, unread=True)
    finish = str(getattr(choice, "finish_reason", None) or "stop")
    text, thought = without_reasoning(_text(message.content))
    reasoned = thought or bool(getattr(message, "reasoning_content", None))
    if not text.strip():
        # Some providers hide the reasoning and report only its tokens.
        if finish == "length":
            reason = "the answer was cut off before its reasoning ended"
            return CutThoughts(reason, usage, unread=True)
        return NoText("the answer is empty", usage, unread=True)
    tokens = _tokens(text, choice, reasoned)
    return Completion(text=text, tokens=tokens, usage=usage, finish=finish)


def as_sent(response: Any, sent: Iterable[object]) -> Any:
    """Return a response with the indexes of its choices as sent by the server; litellm renumbers
    them.

    If litellm could not parse the log-probabilities, the response is rebuilt without its
    validation, so that the answer is not lost.

    Args:
        response: the response of litellm; None if it raised an error.
        sent: litellm's records of the call, including the server's JSON text.

    Returns:
        The response; None if it is None and the server's JSON is not a chat completion.
    """
    if response is not None and len(getattr(response, "choices", None) or ()) < _SEVERAL:
        return response
    body = next((body for body in map(_chat_completion, sent) if body is not None), None)
    if body is None:
        return response
    choices = [dict(choice) for choice in body["choices"]]
    if response is not None:
        for choice, raw in zip(response.choices, choices, strict=False):
            index = raw.get("index")
            choice.index = index if isinstance(index, int) else choice.index
        return response
    reported = [choice.pop("logprobs", None) for choice in choices]
    if not any(reported):
        return None  # the error had another cause
    response = quiet_litellm().ModelResponse(**{**body, "choices": choices})
    for choice, log_probabilities in zip(response.choices, reported, strict=True):
        choice.logprobs = log_probabilities
    return response


def _chat_completion(sent: object) -> dict[str, Any] | None:
    """Return the JSON object of a chat completion; None if the text is not one."""
    try:
        body = json.loads(sent) if isinstance(sent, str) else None
    except (ValueError, RecursionError):
        return None
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not all(isinstance(each, dict) for each in choices):
        return None
    return body


def _text(content: Any) -> str:
    """Return the text of a message, which some providers send in parts, including reasoning."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(str(part.get("text") or "") for part in parts)
    return content if isinstance(content, str) else ""


def _tokens(text: str, choice: Any, reasoned: bool) -> tuple[Token, ...]:
    """Return tokens that spell the answer, as `fitted` returns them; else the server's tokens.

    The fault of the latter is detected when they are read, also in a replay. After reasoning they
    are left out, since there may be thousands.
    """
    reported = _reported(_field(choice, "logprobs"))
    tokens = fitted(text, reported, thoughts=reasoned)
    if tokens is not None:
        return tokens
    return () if reasoned else reported


def _reported(log_probabilities: Any) -> tuple[Token, ...]:
    """Return tokens as reported by a server, in the form of chat or older completions."""
    content = log_probabilities
    if not isinstance(content, list):
        content = _field(log_probabilities, "content")
    if isinstance(content, list):
        return tuple(
            Token(
                _token_text(entry),
                _number(_field(entry, "logprob")),
                _alternatives(_field(entry, "top_logprobs")),
            )
            for entry in content
        )
    texts, values, lists = (
        _field(log_probabilities, name) for name in ("tokens", "token_logprobs", "top_logprobs")
    )
    if not isinstance(texts, list) or not isinstance(values, list) or len(texts) != len(values):
        return ()
    if not isinstance(lists, list) or len(lists) != len(texts):
        lists = [None] * len(texts)
    return tuple(
        Token(text if isinstance(text, str) else "", _number(value), _alternatives(top))
        for text, value, top in zip(texts, values, lists, strict=True)
    )


def _alternatives(listed: Any) -> tuple[tuple[str, float], ...]:
    """Return (token, natural log-probability) pairs from a list of objects, or an object."""
    if isinstance(listed, Mapping):
        return tuple((str(text), _number(value)) for text, value in listed.items())
    entries = listed if isinstance(listed, list) else []
    return tuple((_token_text(entry), _number(_field(entry, "logprob"))) for entry in entries)


def _token_text(entry: Any) -> str:
    """Return the text of a token from its bytes if sent, with partial characters as surrogates."""
    listed = _field(entry, "bytes")
    if isinstance(listed, list) and listed:
        try:
            return bytes(listed).decode("utf-8", "surrogateescape")
        except (TypeError, ValueError):
            pass  # not valid bytes
    text = _field(entry, "token")
    return text if isinstance(text, str) else ""


def _field(value: Any, name: str) -> Any:
    """Return a field of a litellm or JSON object; None if absent."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _number(value: Any) -> float:
    """Return a number; NaN for anything else."""
    if isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


_OPENED = re.compile(
    r"\s*(?:<(?P<tag>think|thinking|thought|reasoning|seed:think)>|(?P<bracket>\[THINK\])"
    r"|(?P<channel><\|channel\|>analysis<\|message\|>))",
    re.I,
)
_CHANNEL_END = "<|channel|>final<|message|>"
_CLOSED_ALONE = re.compile(r"(?:^|\n)[^\n]*</think(?:ing)?>[ \t]*(?:\n|$)", re.I)
"""End mark of reasoning whose start mark the server put into the question."""


def without_reasoning(text: str) -> tuple[str, bool]:
    """Return a text without the reasoning at its beginning, and whether there was any.

    Unfinished reasoning leaves an empty text, since the answer had not begun.
    """
    has_thoughts = False
    while (opened := _OPENED.match(text)) is not None:
        has_thoughts = True
        end = _end_of_thoughts(opened)
        at = text.lower().find(end.lower(), opened.end())
        if at < 0:
            return "", True
        text = text[at + len(end) :]
    if not has_thoughts and (closed := _CLOSED_ALONE.search(text)) is not None:
        return text[closed.end() :].strip(), True
    return (text.strip() if has_thoughts else text), has_thoughts


def _end_of_thoughts(opened: re.Match[str]) -> str:
    if opened["bracket"]:
        return "[/THINK]"
    return _CHANNEL_END if opened["channel"] else f"</{opened['tag']}>"
