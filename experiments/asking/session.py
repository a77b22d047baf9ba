"""A session with a language model and searches that share a budget and a ledger."""

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
    """Placeholder of a language model for dry runs, which answers nothing.

    Attributes:
        name: the model's name.
        lacking: parameters that the model does not support.
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
        ledger: calls by stage.
        budget: limits on calls and spending.
        prompts: prompts of the questions.
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
        """Wrap a model in any form for use within the session; None for None.

        Raises:
            InputError: as `asking`.
        """
        asked_model = _model(model, self.settings, self.ledger, self.budget)
        return None if asked_model is None else WithPrompts(Consumption(asked_model), self.prompts)

    def needed_model(self, who: str) -> WithPrompts:
        """Return the model, which the caller requires.

        Raises:
            InputError: if none was named.
        """
        if self.model is None:
            raise InputError(f"{who} a language model; name one with --model")
        return self.model

    @property
    def calls(self) -> int:
        """Largest number of concurrent model calls."""
        model: Any = self.settings.model
        settings = model if isinstance(model, LitellmSettings) else self.settings
        return int(settings.concurrency)

    @property
    def cache(self) -> Path | None:
        """Cache of answers and searches; no file is created if nothing is sent."""
        return None if self.settings.dry_run else self.settings.cache

    def responses(self, total: int) -> AbstractContextManager[Finished]:
        """Context manager whose function reports a finished response to the watcher."""
        return watcher().responses(total, self.ledger)


@contextmanager
def asking(settings: AskingSettings) -> Iterator[Session]:
    """Open a session; if a limit or an interrupt ends it, the calls so far are reported.

    Raises:
        InputError: if the prompts or the cache cannot be used, there is nothing to replay, a
            required price is unknown, or the provider's key is missing and the cache is empty.
        MissingDependencyError: if litellm is not installed.
    """
    ledger, budget = Ledger(), settings.budget
    session = Session(settings, ledger, budget, read_prompts(settings.prompts))
    # Check before anything is done.
    _ = session.model
    try:
        yield session
    except LimitReachedError:
        watcher().limit_reached(ledger)
        raise
    except (KeyboardInterrupt, SystemExit) as stopped:
        # A batch has already reported its progress.
        if not getattr(stopped, "__notes__", ()) and _keeps_answers(session):
            stopped.add_note(
                f"{counted(ledger.total.calls + ledger.total.cached, 'answer')} of this run in "
                f"{settings.cache}; repeat the command to ask for the rest"
            )
        raise
    if session.model is None and not ledger.stages:
        warn_of_no_model(settings)


def _keeps_answers(session: Session) -> bool:
    """Return True if the cache keeps the answers of a session's model."""
    by_name = isinstance(session.settings.model, str | LitellmSettings)
    return by_name and bool(session.ledger.stages) and not session.settings.dry_run


def warn_of_no_model(settings: AskingSettings) -> None:
    """Warn of options that had no effect because no model was asked."""
    about_answers = AnswerSettings.model_fields.keys() - {"cache"}
    given = settings.model_fields_set & about_answers
    if given:
        options = ", ".join(sorted(f"--{option_of(type(settings), name).name}" for name in given))
        logger.warning("no language model was asked, so these options had no effect: %s", options)


def _model(
    model: Any, settings: AskingSettings, ledger: Ledger, budget: Budget
) -> LanguageModel | None:
    from factormodels.extraction.language_model.accounting import MeteredModel
    from factormodels.extraction.language_model.model_parameters import unlisted_parameters

    if model is None:
        return None
    if not isinstance(model, str) and settings.api_base is not None:
        raise InputError("--api-base applies only to a model that is given by name; leave it out")
    if settings.dry_run:
        # A placeholder: a dry run needs no key, and only counts calls.
        name = str(name_of_model(model))
        listed = isinstance(model, str | LitellmSettings)
        lacking = unlisted_parameters(name) if listed else getattr(model, "lacking", frozenset())
        return MeteredModel(NamedModel(name, lacking), ledger)
    return answering(model, settings, ledger, budget)


def answering(
    model: Any, settings: AnswerSettings, ledger: Ledger, budget: Budget | None = None
) -> LanguageModel:
    """Model behind the cache if given by name or litellm settings; otherwise the given object.

    Its answers are counted. Errors are those of `language_model`.

    Args:
        model: a value of `experiments.asking.settings.Model`.
        settings: settings of calls and of the cache.
        ledger: ledger that counts answers.
        budget: limits on calls and spending; None for no limits.
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
    """Language model behind a cache, with counted answers.

    Args:
        settings: settings of calls to the provider.
        cache: file of answers, created if it does not exist.
        ledger: ledger that counts answers.
        replay: True to answer only from the cache.
        budget: limits on calls and spending; None for no limits.

    Raises:
        InputError: if the cache cannot be used, there is no cache to replay, the provider's key is
            missing and the cache is empty, or costs are limited and the model's price is unknown.
        MissingDependencyError: if litellm is not installed.
    """
    from factormodels.extraction.language_model.accounting import MeteredModel
    from factormodels.extraction.language_model.cache import AnswerCache, CachedModel
    from factormodels.extraction.language_model.litellm_model import LitellmModel
    from factormodels.extraction.language_model.provider_keys import require_key

    if not replay and not exists(cache):
        # The cache is empty, so the provider will be asked.
        require_key(settings.model, settings.api_base)
    # Meter outside the cache, so that cached answers are counted too.
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
        # A replay, which does not load the library, chooses the same method as the run by these.
        answers.note_lacking(name, provider.unlisted, refused=False)
    kept = CachedModel(provider, answers, name=settings.model, prices=settings.prices)
    return MeteredModel(kept, ledger)
