"""A session with a language model and with searches, within one budget and with one ledger."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.asking.settings import AnswerSettings, AskingSettings, name_of_model
from experiments.progress import Finished, watcher
from experiments.settings import option_of
from factormodels.errors import InputError, LimitReachedError
from factormodels.extraction.language_model import Completion, Failure, LanguageModel, Request
from factormodels.extraction.language_model.accounting import Consumption, Ledger
from factormodels.extraction.language_model.limits import Budget
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from factormodels.extraction.prompts.replaced import Prompts, WithPrompts, read_prompts
from factormodels.io.source.opening import exists
from factormodels.nouns import counted

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NamedModel:
    """A language model in name only, which a dry run plans with: it answers nothing.

    Attributes:
        name: the model's name.
        lacking: parameters that it does not take.
    """

    name: str
    lacking: frozenset[str] = frozenset()

    async def complete(self, request: Request) -> Completion | Failure:
        """Return a failure for every question: a dry run sends nothing."""
        return Failure(f"stage {request.stage!r} asked in a dry run", planned=True)


@dataclass(frozen=True, eq=False)
class Session:
    """Session with a language model and searches.

    Attributes:
        settings: options.
        ledger: what was asked, by stage.
        budget: what may be asked and spent.
        prompts: what models are asked with.
    """

    settings: AskingSettings
    ledger: Ledger
    budget: Budget
    prompts: Prompts

    @cached_property
    def model(self) -> WithPrompts | None:
        """Language model with its prompts; None if none was named."""
        return self.asked(self.settings.model)

    def asked(self, model: Any) -> WithPrompts | None:
        """A model, however it is given, asked within the session; None for None.

        Raises:
            InputError: as `asking`.
        """
        asked_model = _model(model, self.settings, self.ledger, self.budget)
        return None if asked_model is None else WithPrompts(Consumption(asked_model), self.prompts)

    def needed_model(self, who: str) -> WithPrompts:
        """The model, where something cannot be done without one.

        Raises:
            InputError: if none was named.
        """
        if self.model is None:
            raise InputError(f"{who} a language model; name one with --model")
        return self.model

    @property
    def calls(self) -> int:
        """Calls of the model that may be under way at once."""
        model: Any = self.settings.model
        settings = model if isinstance(model, LitellmSettings) else self.settings
        return int(settings.concurrency)

    @property
    def cache(self) -> Path | None:
        """Cache of answers and searches; no file is made if nothing is sent."""
        return None if self.settings.dry_run else self.settings.cache

    def responses(self, total: int) -> AbstractContextManager[Finished]:
        """Report the number of finished responses to the watcher; call what it yields."""
        return watcher().responses(total, self.ledger)


@contextmanager
def asking(settings: AskingSettings) -> Iterator[Session]:
    """Open a session; if a limit or an interrupt ends it, the calls so far are reported.

    Raises:
        InputError: if the prompts or the cache cannot be used, there is nothing to replay, the key
            of the provider is missing and no answer is known, or a price that is needed.
        MissingDependencyError: if litellm is not installed.
    """
    ledger, budget = Ledger(), settings.budget
    session = Session(settings, ledger, budget, read_prompts(settings.prompts))
    # Before anything is done.
    _ = session.model
    try:
        yield session
    except LimitReachedError:
        watcher().limit_reached(ledger)
        raise
    except (KeyboardInterrupt, SystemExit) as stopped:
        # A batch has said already how far it is.
        if not getattr(stopped, "__notes__", ()) and _keeps_answers(session):
            stopped.add_note(
                f"{counted(ledger.total.calls + ledger.total.cached, 'answer')} so far in "
                f"{settings.cache}; the same command asks for the rest"
            )
        raise
    if session.model is None and not ledger.stages:
        warn_of_no_model(settings)


def _keeps_answers(session: Session) -> bool:
    """Return whether answers of a session's model are kept in the cache."""
    by_name = isinstance(session.settings.model, str | LitellmSettings)
    return by_name and bool(session.ledger.stages) and not session.settings.dry_run


def warn_of_no_model(settings: AskingSettings) -> None:
    """Warn of options about the answers of a model where none was asked."""
    about_answers = AnswerSettings.model_fields.keys() - {"cache"}
    given = settings.model_fields_set & about_answers
    if given:
        options = ", ".join(sorted(f"--{option_of(type(settings), name).name}" for name in given))
        logger.warning("no language model was asked, so these options did nothing: %s", options)


def _model(
    model: Any, settings: AskingSettings, ledger: Ledger, budget: Budget
) -> LanguageModel | None:
    from factormodels.extraction.language_model.accounting import MeteredModel
    from factormodels.extraction.language_model.model_parameters import unlisted_parameters

    if model is None:
        return None
    if not isinstance(model, str) and settings.api_base is not None:
        raise InputError("--api-base is for a model that is given by its name; leave it out")
    if settings.dry_run:
        # In name only: a dry run needs no key, and counts what would be asked.
        name = str(name_of_model(model))
        listed = isinstance(model, str | LitellmSettings)
        lacking = unlisted_parameters(name) if listed else getattr(model, "lacking", frozenset())
        return MeteredModel(NamedModel(name, lacking), ledger)
    return answering(model, settings, ledger, budget)


def answering(
    model: Any, settings: AnswerSettings, ledger: Ledger, budget: Budget | None = None
) -> LanguageModel:
    """A model behind the cache if given by name or settings of litellm, else the given object.

    Its answers are counted. Errors are those of `language_model`.

    Args:
        model: as `experiments.asking.settings.Model` has it.
        settings: where it is called, and where its answers are kept.
        ledger: where answers are counted.
        budget: what may be asked and spent; None for anything.
    """
    from factormodels.extraction.language_model.accounting import MeteredModel

    called = settings.litellm(model) if isinstance(model, str) else model
    if isinstance(called, LitellmSettings):
        return language_model(called, settings.cache, ledger, replay=settings.replay, budget=budget)
    return MeteredModel(called, ledger)


def language_model(
    settings: LitellmSettings,
    cache: Path,
    ledger: Ledger,
    *,
    replay: bool = False,
    budget: Budget | None = None,
) -> LanguageModel:
    """The language model behind a cache, its answers counted.

    Args:
        settings: how the provider is called.
        cache: file of answers; it is made if it does not exist.
        ledger: where answers are counted.
        replay: whether to answer from the cache alone.
        budget: what may be asked and spent; None for anything.

    Raises:
        InputError: if the cache cannot be used, there is none to replay, the provider's key is
            missing and no answer is known, or a cost is limited and the price of the model is not
            known.
        MissingDependencyError: if litellm is not installed.
    """
    from factormodels.extraction.language_model.accounting import MeteredModel
    from factormodels.extraction.language_model.cache import AnswerCache, CachedModel
    from factormodels.extraction.language_model.litellm_model import LitellmModel
    from factormodels.extraction.language_model.provider_keys import require_key

    if not replay and not exists(cache):
        # Not one answer is known, so that the provider will be asked.
        require_key(settings.model, settings.api_base)
    # Metered outside the cache, so that answers from it are counted as well.
    answers = AnswerCache(cache, read_only=replay)
    provider: LitellmModel | None = None
    if not replay:
        name = settings.model
        provider = LitellmModel(
            settings,
            budget,
            refused=answers.lacking(name, refused=True),
            remember=lambda parameter: answers.note_lacking(name, [parameter], refused=True),
        )
        # A replay, which asks no library, chooses by this as the run did.
        answers.note_lacking(name, provider.unlisted, refused=False)
    kept = CachedModel(provider, answers, name=settings.model, prices=settings.prices)
    return MeteredModel(kept, ledger)
