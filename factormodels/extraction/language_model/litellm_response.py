"""What a response of litellm says: the answer without thoughts, and the tokens that make it up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from factormodels.extraction.language_model import Completion, Failure, Token, Usage


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
        choice = response.choices[0]
        message = choice.message
    except (AttributeError, IndexError, TypeError):
        return Failure("the answer has no choices", usage, outage=True)
    finish = str(getattr(choice, "finish_reason", None) or "stop")
    text, thought = without_reasoning(_text(message.content))
    reasoned = thought or bool(getattr(message, "reasoning_content", None))
    if not text.strip():
        # Some providers keep thoughts to themselves: all that is seen of them is what they took.
        if finish == "length":
            reason = "the answer was cut off before its reasoning ended"
            return CutThoughts(reason, usage, unread=True)
        return NoText("the answer is empty", usage, unread=True)
    text, tokens = aligned(text, _tokens(choice), reasoned)
    return Completion(text=text, tokens=tokens, usage=usage, finish=finish)


def _text(content: Any) -> str:
    """The text of a message, which some providers send in parts, thoughts among them."""
    if isinstance(content, list):
        parts = [one for one in content if isinstance(one, dict) and one.get("type") == "text"]
        return "".join(str(one.get("text") or "") for one in parts)
    return content if isinstance(content, str) else ""


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
    found = False
    while (opened := _OPENED.match(text)) is not None:
        found = True
        end = _end_of_thoughts(opened)
        at = text.lower().find(end.lower(), opened.end())
        if at < 0:
            return "", True
        text = text[at + len(end) :]
    if not found and (closed := _CLOSED_ALONE.search(text)) is not None:
        return text[closed.end() :].strip(), True
    return (text.strip() if found else text), found


def _end_of_thoughts(opened: re.Match[str]) -> str:
    if opened["bracket"]:
        return "[/THINK]"
    return _CHANNEL_END if opened["channel"] else f"</{opened['tag']}>"


def aligned(text: str, tokens: Sequence[Token], reasoned: bool) -> tuple[str, tuple[Token, ...]]:
    """An answer and its tokens, such that these joined are the answer and no thoughts before it.

    Args:
        text: the answer.
        tokens: all tokens that the server reported.
        reasoned: whether there were thoughts; then tokens among which the answer is not found are
            of no use, since it is not known which of them are its own.
    """
    whole = "".join(token.text for token in tokens)
    if whole == text or not tokens:
        return text, tuple(tokens)
    stripped = text.strip()
    start = whole.rfind(stripped)
    if start < 0:
        return text, () if reasoned else tuple(tokens)
    kept: list[Token] = []
    end = 0
    for token in tokens:
        begin, end = end, end + len(token.text)
        if end > start:
            kept.append(replace(token, text=token.text[max(0, start - begin) :]))
    return stripped, tuple(kept)
