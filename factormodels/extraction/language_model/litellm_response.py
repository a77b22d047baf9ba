"""What a response of litellm says: the answer without thoughts, and the tokens that make it up."""

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
    """An answer that ended before its reasoning did."""


class NoText(Failure):
    """An answer without a text."""


def read_response(response: Any, usage: Usage) -> Completion | Failure:
    """The answer in a response; `CutThoughts` or `NoText` if it has no text.

    Args:
        response: what litellm returned.
        usage: what the call consumed.
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
        # Some providers keep thoughts to themselves: all that is seen of them is what they took.
        if finish == "length":
            reason = "the answer was cut off before its reasoning ended"
            return CutThoughts(reason, usage, unread=True)
        return NoText("the answer is empty", usage, unread=True)
    tokens = _tokens(text, choice, reasoned)
    return Completion(text=text, tokens=tokens, usage=usage, finish=finish)


def as_sent(response: Any, sent: Iterable[object]) -> Any:
    """Response with the indexes of its choices as the server sent them, which litellm renumbers.

    Where litellm could not read the log-probabilities, the response is made without its checks, so
    that the answer is not lost with them.

    Args:
        response: what litellm returned; None if it raised an error.
        sent: what it notes of the call, the server's JSON text among it.

    Returns:
        The response; None if it is None and the server's JSON is no chat completion.
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
        return None  # something else was wrong
    response = quiet_litellm().ModelResponse(**{**body, "choices": choices})
    for choice, log_probabilities in zip(response.choices, reported, strict=True):
        choice.logprobs = log_probabilities
    return response


def _chat_completion(sent: object) -> dict[str, Any] | None:
    """JSON object of a chat completion; None if a text is none."""
    try:
        body = json.loads(sent) if isinstance(sent, str) else None
    except (ValueError, RecursionError):
        return None
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not all(isinstance(each, dict) for each in choices):
        return None
    return body


def _text(content: Any) -> str:
    """The text of a message, which some providers send in parts, thoughts among them."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(str(part.get("text") or "") for part in parts)
    return content if isinstance(content, str) else ""


def _tokens(text: str, choice: Any, reasoned: bool) -> tuple[Token, ...]:
    """Tokens that spell an answer, as `fitted` returns them; else as the server sent them.

    What is wrong with the latter is found whenever they are read, in a replay too. After reasoning
    they are left out: there may be thousands.
    """
    reported = _reported(_field(choice, "logprobs"))
    tokens = fitted(text, reported, thoughts=reasoned)
    if tokens is not None:
        return tokens
    return () if reasoned else reported


def _reported(log_probabilities: Any) -> tuple[Token, ...]:
    """Tokens as a server reports them, in the form of chat completions or of the older ones."""
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
    """(token, natural log-probability) of a list of objects, or of an object by token."""
    if isinstance(listed, Mapping):
        return tuple((str(text), _number(value)) for text, value in listed.items())
    entries = listed if isinstance(listed, list) else []
    return tuple((_token_text(entry), _number(_field(entry, "logprob"))) for entry in entries)


def _token_text(entry: Any) -> str:
    """Text of a token: its bytes, if a server sends any; a part of a character as surrogates."""
    listed = _field(entry, "bytes")
    if isinstance(listed, list) and listed:
        try:
            return bytes(listed).decode("utf-8", "surrogateescape")
        except (TypeError, ValueError):
            pass  # these are no bytes
    text = _field(entry, "token")
    return text if isinstance(text, str) else ""


def _field(value: Any, name: str) -> Any:
    """A field of an object of litellm or of JSON; None if there is none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _number(value: Any) -> float:
    """A number; NaN for what is none."""
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
"""The end of thoughts whose beginning the server put into the question."""


def without_reasoning(text: str) -> tuple[str, bool]:
    """A text without the thoughts at its beginning, and whether there were any.

    Thoughts that do not end leave nothing: the answer had not begun.
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
