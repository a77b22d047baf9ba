"""Settings of a language model that a method asks: where it is, and where its answers are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from experiments.settings import Option, Settings

if TYPE_CHECKING:
    from factormodels.extraction.language_model import LanguageModel
    from factormodels.extraction.language_model.accounting import Ledger


class AnswerSettings(Settings):
    """Answers of language models."""

    api_base: Annotated[str | None, Option("URL")] = None
    """Address of a server with a compatible API."""

    cache: Path = Path("answers.sqlite")
    """File that keeps answers, so that none is repeated."""

    replay: bool = False
    """Take every answer from the cache; send nothing."""

    prompts: Annotated[Path | None, Option("DIR")] = None
    """Folder of prompts that replace ours by name; `factormodels prompts` lists them."""

    def answering(self, model: str | LanguageModel | None, ledger: Ledger) -> LanguageModel | None:
        """A model by name behind the cache, or one by itself, its answers counted; None of None."""
        if model is None:
            return None
        from experiments.assess.evaluation import metered_model
        from factormodels.extraction.prompts.replaced import WithPrompts, read_prompts

        base = self.api_base if isinstance(model, str) else None
        metered = metered_model(model, self.cache, ledger, self.replay, api_base=base)
        return WithPrompts(metered, read_prompts(self.prompts))

    def recorded(self, **resolved: Any) -> dict[str, Any]:
        """All settings as JSON can hold them, language models by name.

        Args:
            resolved: what stands in the place of fields that the data decided.
        """
        values = {name: getattr(self, name) for name in type(self).model_fields} | resolved
        return {
            name: str(value) if isinstance(value, Path) else getattr(value, "name", value)
            for name, value in values.items()
        }
