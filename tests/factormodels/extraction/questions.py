"""Contents of a stage's question, for servers and models with scripted answers."""

from __future__ import annotations

import re
from typing import Any


def question_of(request: dict[str, Any]) -> str:
    """The question; a remark that an answer was unusable may follow it."""
    asked = [
        str(message["content"]) for message in request["messages"] if message["role"] == "user"
    ]
    return next(text for text in reversed(asked) if "<" in text)


def sentences_of(question: str) -> list[tuple[int, str]]:
    """The numbered sentences whose claims a question asks for."""
    listed = re.findall(r"^\s*(\d+): (.*)$", question.rpartition("<sentences>")[2], re.M)
    return [(int(number), text) for number, text in listed]


def claim_of(question: str) -> str:
    """The claim that a question is about."""
    return question.rpartition("<claim>")[2].partition("</claim>")[0].strip()
