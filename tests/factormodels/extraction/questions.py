"""What a question of a stage holds, for servers and models that answer by a script."""

from __future__ import annotations

import re
from typing import Any


def question_of(request: dict[str, Any]) -> str:
    """What was asked; below it may stand that an answer to it was of no use."""
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
