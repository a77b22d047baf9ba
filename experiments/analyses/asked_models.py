"""The language models that an analysis asked: with which prompts, and what their answers took."""

from __future__ import annotations

from typing import Any

from factormodels.extraction.asking import identity_values
from factormodels.extraction.consumption import Consumption, total
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    PromptIdentity,
    Request,
)


class AskedModel:
    """A language model that remembers what it was asked.

    An answer from the cache counts like a new one, so that a replay says the same.

    Args:
        model: who answers.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = Consumption(model)
        self._prompts: set[PromptIdentity] = set()
        self._failed = 0

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        return self._model.name

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the model's answer, and remember the prompt."""
        self._prompts.add(request.prompt)
        answer = await self._model.complete(request)
        self._failed += isinstance(answer, Failure)
        return answer

    def take(self) -> dict[str, Any]:
        """Return what a manifest says of it, and count anew."""
        prompts, self._prompts = self._prompts, set()
        failed, self._failed = self._failed, 0
        return {
            "language_model": self.name,
            "prompts": [
                identity_values(prompt)
                for prompt in sorted(prompts, key=lambda one: (one.name, one.version, one.digest))
            ],
            "failed": failed,
            **total(self._model.take().values()),
        }
