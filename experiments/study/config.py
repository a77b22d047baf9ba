"""Studies as data: what a configuration may say, checked key by key before anything runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from calibration.scores.registry import DEFAULT_MEASURES
from experiments.study.cell_names import RECORDED
from experiments.study.config_models import (
    AssessorChoice,
    LanguageModelChoice,
    RelationModelChoice,
    check_models,
    without_access,
)
from experiments.study.config_parts import (
    STRICT,
    BackendChoice,
    DatasetChoice,
    Encoding,
    MeasureName,
    Priors,
    PriorSetting,
    Reliability,
    Report,
    Seed,
    Selector,
    Significance,
    Strength,
    Variant,
    distinct,
    file_name,
    k_policy,
)
from experiments.study.config_selections import EVERYTHING, SelectionChoice
from factormodels.datasets import names
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import unknown_name

Output = Literal["csv", "latex", "markdown", "reliability", "report"]

PRESENTATION = (
    "description",
    "selections",
    "unlabelled",
    "k",
    "measures",
    "significance",
    "reliability",
    "report",
    "outputs",
)
"""Keys that no posterior depends on: they may change between a run and its resumption."""


@dataclass(frozen=True)
class Study:
    """A study: datasets x variants x relation models x encodings x priors x strengths x backends.

    Attributes:
        study: its name; also that of its folder of results.
        datasets: the data.
        description: what it is for.
        variants: views of the fact graphs: given, FR1, FR2, FR3.
        relation_models: where relations come from: the data, or the texts, asked anew.
        assessors: what judges claims by prompts, without a graph, beside the backends.
        language_model: of the relation models and assessors that do not name their own.
        encodings: encodings of relations.
        priors: priors that replace those of the data.
        strengths: what the log odds of every relation's probability are multiplied by.
        backends: the algorithms.
        seed: seed of what is drawn: intervals, tests, and backends unless `seeds` is given.
        seeds: seeds of the backends that have a setting `seed` and are not given one; a cell each.
        selections: which atoms count in measures and tests.
        unlabelled: what an atom without a human label counts as in scores.
        k: K of F1@K: median, half, or a number.
        measures: columns of the tables.
        significance: pairs to be tested.
        reliability: bins of the reliability diagram.
        report: what the HTML report shows.
        outputs: artefacts to make beside the rows, the summary and the manifest.
    """

    __pydantic_config__: ClassVar = STRICT

    study: Annotated[str, AfterValidator(file_name)]
    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    description: str = ""
    variants: Annotated[tuple[Variant, ...], Field(min_length=1), AfterValidator(distinct)] = (
        "FR2",
    )
    relation_models: Annotated[tuple[RelationModelChoice, ...], Field(min_length=1)] = (
        RelationModelChoice(RECORDED),
    )
    assessors: tuple[AssessorChoice, ...] = ()
    language_model: LanguageModelChoice | None = None
    encodings: Annotated[tuple[Encoding, ...], Field(min_length=1), AfterValidator(distinct)] = (
        DEFAULT_ENCODING,
    )
    priors: Annotated[tuple[Priors, ...], Field(min_length=1)] = (Priors(),)
    strengths: Annotated[tuple[Strength, ...], Field(min_length=1), AfterValidator(distinct)] = (
        1.0,
    )
    backends: Annotated[tuple[BackendChoice, ...], Field(min_length=1)] = (BackendChoice("exact"),)
    seed: Seed = 0
    seeds: Annotated[tuple[Seed, ...], AfterValidator(distinct)] = ()
    selections: Annotated[tuple[SelectionChoice, ...], Field(min_length=1)] = (
        SelectionChoice(EVERYTHING),
    )
    unlabelled: Literal["exclude", "false", "true", "error"] = "exclude"
    k: Annotated[int | str, AfterValidator(k_policy)] = "median"
    measures: Annotated[tuple[MeasureName, ...], Field(min_length=1), AfterValidator(distinct)] = (
        DEFAULT_MEASURES
    )
    significance: Significance = field(default_factory=Significance)
    reliability: Reliability = field(default_factory=Reliability)
    report: Report = field(default_factory=Report)
    outputs: Annotated[tuple[Output, ...], AfterValidator(distinct)] = (
        "csv",
        "latex",
        "markdown",
        "reliability",
    )

    def __post_init__(self) -> None:
        titles = [choice.title for choice in self.datasets]
        _distinct_titles("datasets", "name", list(enumerate(titles)))
        backends = [
            (position, title)
            for position, choice in enumerate(self.backends)
            for title, _ in choice.settings_of_each()
        ]
        _distinct_titles("backends", "label", backends)
        check_models(self.relation_models, self.assessors, self.language_model, self.variants)
        _distinct_titles("relation_models", "label", list(enumerate(self.relation_titles)))
        of_assessors = [(position, one.title) for position, one in enumerate(self.assessors)]
        taken = {title for _, title in backends}
        _distinct_titles("assessors", "label", of_assessors, taken)
        priors = [
            (position, setting.title)
            for position, choice in enumerate(self.priors)
            for setting in choice.settings()
        ]
        _distinct_titles("priors", "name", priors)
        selections = [(position, one.title) for position, one in enumerate(self.selections)]
        _distinct_titles("selections", "name", selections)
        for position, choice in enumerate(self.backends):
            self._check_only(position, choice)
        self._check_pairs([title for _, title in (*backends, *of_assessors)])
        if not self.assessors and not any(self._takes_part(choice) for choice in self.backends):
            raise ValueError(
                "no backend takes part in any cell, because `only` excludes every dataset, "
                "variant, relation model, encoding, prior, strength or seed of this study; widen "
                "it or leave it out"
            )

    @property
    def relation_titles(self) -> tuple[str, ...]:
        """What tables call the relation models."""
        return tuple(one.title(self.language_model) for one in self.relation_models)

    @property
    def prior_settings(self) -> tuple[PriorSetting, ...]:
        """Every setting of the priors, in order."""
        return tuple(setting for priors in self.priors for setting in priors.settings())

    @property
    def backend_seeds(self) -> tuple[int, ...]:
        """The seeds of backends that have a setting `seed`."""
        return self.seeds or (self.seed,)

    @property
    def selected(self) -> tuple[str, ...]:
        """What tables call the selections; empty where every atom counts and nothing else."""
        titles = tuple(choice.title for choice in self.selections)
        return () if titles == (EVERYTHING,) else titles

    def dimensions(self) -> dict[str, tuple[Any, ...]]:
        """Return the values of each dimension that `only` may restrict."""
        return {
            "datasets": tuple(choice.title for choice in self.datasets),
            "variants": self.variants,
            "relation_models": self.relation_titles,
            "encodings": self.encodings,
            "priors": tuple(setting.title for setting in self.prior_settings),
            "strengths": self.strengths,
            "seeds": self.backend_seeds,
        }

    def _takes_part(self, choice: BackendChoice) -> bool:
        return all(
            any(allows(choice, name, value) for value in values)
            for name, values in self.dimensions().items()
        )

    def _check_only(self, position: int, choice: BackendChoice) -> None:
        for name in ("datasets", "relation_models", "priors"):
            of_study = self.dimensions()[name]
            # A study may be laid over one with more datasets, whose backends name them still.
            elsewhere = names() if name == "datasets" else ()
            for value in getattr(choice.only, name) or ():
                if value not in of_study and value not in elsewhere:
                    raise ValueError(
                        unknown_name(
                            f"backends[{position}].only.{name} names {value!r}, which in this "
                            "study",
                            value,
                            of_study,
                        )
                    )

    def _check_pairs(self, backends: list[str]) -> None:
        dimensions = self.dimensions()
        of_study: dict[str, Iterable[Any]] = {
            "variant": self.variants,
            "relation_model": self.relation_titles,
            "encoding": self.encodings,
            "prior": dimensions["priors"],
            "strength": self.strengths,
            "backend": backends,
            "seed": self.backend_seeds,
            "selection": [choice.title for choice in self.selections],
        }
        for position, pair in enumerate(self.significance.pairs):
            for selector in pair:
                _check_selector(selector, f"significance.pairs[{position}]", of_study)


def allows(choice: BackendChoice, dimension: str, value: object) -> bool:
    """Return whether a backend of a study takes part where a dimension has a value."""
    allowed = getattr(choice.only, dimension)
    return allowed is None or value in allowed


def as_plain(study: Study) -> dict[str, Any]:
    """Return the whole study as plain data, every default written out.

    A file is named without its folder, and nothing is said of how the answers of language models
    are got, so that the result tells nothing of the machine.
    """
    plain: dict[str, Any] = json.loads(json.dumps(asdict(study)))
    for part in (*plain["datasets"], *plain["selections"], *plain["relation_models"]):
        for key in ("path", "templates"):
            if part.get(key) is not None:
                part[key] = PurePath(part[key]).name
    without_access(plain)
    return plain


def config_hash(study: Study) -> str:
    """Return the SHA-256 of the study's plain form: equal for studies that ask the same."""
    return plain_hash(as_plain(study))


def plain_hash(plain: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain data, whatever the order of keys."""
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def computed_part(study: Study) -> dict[str, Any]:
    """Return the plain form of what posteriors depend on: the study less its presentation."""
    return {key: value for key, value in as_plain(study).items() if key not in PRESENTATION}


def _check_selector(selector: Selector, place: str, of_study: Mapping[str, Iterable[Any]]) -> None:
    for name, value in selector.given().items():
        if value not in (valid := list(of_study[name])):
            raise ValueError(
                unknown_name(
                    f"{place} names the {name} {value!r}, which in this study",
                    value,
                    map(str, valid),
                )
            )


def _distinct_titles(
    key: str, mend: str, titles: list[tuple[int, str]], taken: Iterable[str] = ()
) -> None:
    seen = set(taken)
    for position, title in titles:
        if title in seen:
            raise ValueError(
                f"{key}[{position}] is called {title!r} like another; give it its own {mend}"
            )
        seen.add(title)
