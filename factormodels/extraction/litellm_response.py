"""What a response of litellm says: the answer without thoughts, and the tokens that make it up."""

from __future__ import annotations

from typing import Any

from factormodels.extraction.language_model import Completion, Failure, Token, Usage
from factormodels.extraction.reasoning import aligned, without_reasoning


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
            return CutThoughts("the answer was cut off before its reasoning ended", usage)
        return NoText("the answer is empty", usage)
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
