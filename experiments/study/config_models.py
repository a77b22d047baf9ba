"""What a study may ask about texts: relation models, assessors, and the language models behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from experiments.study.cell_names import NO_GRAPH, RECORDED
from experiments.study.config_parts import STRICT, Count, Probability, known
from factormodels.extraction.assessors import ASSESSORS
from factormodels.extraction.relations import LEAST_PROBABILITY

RELATION_MODELS = (RECORDED, "lexical", "nli", "prompted")

Name = Annotated[str, Field(min_length=1)]

ACCESS = ("api_base", "cache", "replay", "concurrency")
"""Keys that say how answers are got: no number depends on them, and no file of results has them."""


@dataclass(frozen=True)
class LanguageModelChoice:
    """A language model and how its answers are got.

    Attributes:
        model: its name as litellm spells it, such as openai/NAME; its key is in the environment.
        api_base: address of a compatible server.
        cache: file in which answers are kept, relative to the folder of the configuration.
        replay: whether every answer is taken from there.
        concurrency: most calls under way at a time.
    """

    __pydantic_config__: ClassVar = STRICT

    model: Name
    api_base: Name | None = None
    cache: Name = "answers.sqlite"
    replay: bool = False
    concurrency: Count = 16


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a relation model or assessor says of its language model; None: as the study says."""

    __pydantic_config__: ClassVar = STRICT

    language_model: Name | None = None
    api_base: Name | None = None
    cache: Name | None = None
    replay: bool | None = None
    concurrency: Count | None = None

    def resolved(self, shared: LanguageModelChoice | None) -> LanguageModelChoice | None:
        """Return the language model with its access; None if neither names one.

        Args:
            shared: the study's.
        """
        model = self.language_model or (None if shared is None else shared.model)
        if model is None:
            return None
        defaults = shared or LanguageModelChoice(model)
        own = {name: getattr(self, name) for name in ACCESS}
        given = {
            name: getattr(defaults, name) if value is None else value for name, value in own.items()
        }
        return LanguageModelChoice(model, **given)


@dataclass(frozen=True)
class RelationModelChoice(Access):
    """A relation model of a study.

    Attributes:
        model: recorded, lexical, nli or prompted.
        label: what tables call it.
        path: folder of an nli model, or file of recorded judgements; relative to the folder of
            the configuration that names it.
        method: where a language model's probabilities come from.
        samples: its answers per pair, for the method "samples".
        least: the least probability of an entailment or contradiction that is kept.
    """

    __pydantic_config__: ClassVar = STRICT

    model: Annotated[str, known(lambda: RELATION_MODELS, "relation model")]
    label: str = ""
    path: Name | None = None
    method: Literal["logprobs", "verbalised", "samples"] = "logprobs"
    samples: Count = 5
    least: Probability = LEAST_PROBABILITY

    def __post_init__(self) -> None:
        if self.model == "nli" and self.path is None:
            raise ValueError("the relation model 'nli' needs the path of a folder; give it")
        if self.path is not None and self.model not in ("nli", RECORDED):
            raise ValueError(f"the relation model {self.model!r} has no path; leave it out")
        names = ("method", "samples", "language_model", *ACCESS)
        given = [name for name in names if getattr(self, name) != _DEFAULTS[name]]
        if given and self.model != "prompted":
            raise ValueError(f"{given[0]} is for the relation model 'prompted'; leave it out")
        if self.as_recorded and self.label:
            raise ValueError("the relations of the data are called recorded; leave the label out")
        if not self.as_recorded and self.label == RECORDED:
            raise ValueError("the relations of the data alone are called recorded; choose another")
        if self.label == NO_GRAPH:
            raise ValueError("assessors, which have no relations, are called none; choose another")
        if self.as_recorded and self.least != LEAST_PROBABILITY:
            raise ValueError("recorded relations stay as they are; leave 'least' out")

    @property
    def as_recorded(self) -> bool:
        """Whether the relations are those of the data."""
        return self.model == RECORDED and self.path is None

    def title(self, shared: LanguageModelChoice | None) -> str:
        """Return what tables call it.

        Args:
            shared: the study's language model.
        """
        if self.label:
            return self.label
        if self.path is not None:
            path = PurePath(self.path)
            return f"{self.model}:{path.name if self.model == 'nli' else path.stem}"
        access = self.resolved(shared)
        if self.model == "prompted" and access is not None:
            return f"{access.model} ({self.method})"
        return self.model


_DEFAULTS: dict[str, Any] = {"method": "logprobs", "samples": 5} | dict.fromkeys(
    ("language_model", *ACCESS)
)


@dataclass(frozen=True)
class AssessorChoice(Access):
    """A prompt-based assessor of a study.

    Attributes:
        assessor: name of one of `factormodels.extraction.assessors.ASSESSORS`.
        label: what tables call it.
        all_contexts: whether every atom is shown every context, in place of those retrieved for it.
        expected: whether P(true) is averaged over the labels by their probabilities.
    """

    __pydantic_config__: ClassVar = STRICT

    assessor: Annotated[str, known(lambda: ASSESSORS, "assessor")]
    label: str = ""
    all_contexts: bool = False
    expected: bool = False

    @property
    def title(self) -> str:
        """What tables call it."""
        return self.label or self.assessor

    def setting(self, shared: LanguageModelChoice | None) -> dict[str, Any]:
        """Return what its verdicts depend on, by name.

        Args:
            shared: the study's language model.
        """
        access = self.resolved(shared)
        return {
            "language_model": None if access is None else access.model,
            "all_contexts": self.all_contexts,
            "expected": self.expected,
        }


def check_models(
    relation_models: Sequence[RelationModelChoice],
    assessors: Sequence[AssessorChoice],
    shared: LanguageModelChoice | None,
    variants: Sequence[str],
) -> None:
    """Check what a study asks about texts.

    Raises:
        ValueError: if one has no language model, or finds relations for the variant "given".
    """
    asking = [
        *((f"relation_models[{at}]", one) for at, one in enumerate(relation_models)
          if one.model == "prompted"),
        *((f"assessors[{at}]", one) for at, one in enumerate(assessors)),
    ]  # fmt: skip
    for place, one in asking:
        if one.resolved(shared) is None:
            raise ValueError(
                f"{place} needs a language model; give it language_model: openai/NAME, or the "
                "study one for all"
            )
    anew = [one for one in relation_models if not one.as_recorded]
    if anew and "given" in variants:
        raise ValueError(
            f"the relation model {anew[0].title(shared)!r} finds the relations of FR1, FR2 and "
            "FR3, and 'given' is as the data have them; leave one of the two out"
        )


def without_access(plain: dict[str, Any]) -> None:
    """Take out of a study's plain form what only says how answers are got, in place."""
    models = [*plain["relation_models"], *plain["assessors"]]
    if plain["language_model"] is not None:
        models.append(plain["language_model"])
    for one in models:
        for name in ACCESS:
            del one[name]
