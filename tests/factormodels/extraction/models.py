"""Language models that answer by a function, for the tests of stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from factormodels.extraction.language_model import Completion, Failure, Request


@dataclass
class AnsweringModel:
    """A language model that answers by a function and remembers what it was asked."""

    answer: Callable[[Request], str | Completion | Failure]
    name: str = "answering"
    asked: list[Request] = field(default_factory=list)

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the function's answer."""
        self.asked.append(request)
        answered = self.answer(request)
        return Completion(answered) if isinstance(answered, str) else answered
