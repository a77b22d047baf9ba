"""Studies as data: what a configuration may say, checked key by key before anything runs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from factormodels.encodings import DEFAULT_ENCODING, ENCODINGS
from factormodels.variants import VARIANTS
from inference.registry import entries

Output = Literal["latex", "markdown", "reliability"]

_STRICT = {"extra": "forbid"}


def _known(names: Callable[[], Iterable[str]], what: str) -> AfterValidator:
    def check(name: str) -> str:
        if name not in (valid := list(names())):
            raise ValueError(f"the {what} is unknown; use one of {', '.join(valid)}")
        return name

    return AfterValidator(check)


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ValueError(f"{value!r} is listed twice; keep one")
    return values


def _file_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError("it names files: use letters, digits, '.', '_' and '-', no space")
    return name


def _k_policy(value: int | str) -> int | str:
    number = value.removeprefix("fixed:") if isinstance(value, str) else str(value)
    if value in ("median", "half") or (number.isascii() and number.isdigit() and int(number) > 0):
        return value
    raise ValueError("use median, half, or a whole number above 0")


Variant = Annotated[str, _known(lambda: VARIANTS, "variant")]
Encoding = Annotated[str, _known(lambda: ENCODINGS, "encoding")]
BackendName = Annotated[str, _known(entries, "backend")]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True)
class DatasetChoice:
    """A dataset of a study: an embedded one by name, or a file.

    Attributes:
        name: name of the embedded dataset, or what to call the file's (its stem if absent).
        path: a file of responses; relative to the folder of the configuration.
        options: options of the embedded dataset's loader.
        limit: only the first so many responses.
    """

    __pydantic_config__: ClassVar = _STRICT

    name: Annotated[str, Field(min_length=1)] = ""
    path: Annotated[str, Field(min_length=1)] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: Annotated[int, Field(ge=1)] | None = None

    def __post_init__(self) -> None:
        if self.path is None and not self.name:
            raise ValueError("give the name of an embedded dataset, or the path of a file")
        if self.path is not None and self.options:
            raise ValueError("options belong to embedded datasets; leave them out beside a path")

    @property
    def title(self) -> str:
        """What tables call this dataset."""
        return self.name or PurePath(str(self.path)).stem


@dataclass(frozen=True)
class Only:
    """The part of a study that a backend takes part in; an absent key restricts nothing."""

    __pydantic_config__: ClassVar = _STRICT

    datasets: tuple[str, ...] | None = None
    variants: tuple[Variant, ...] | None = None
    encodings: tuple[Encoding, ...] | None = None


@dataclass(frozen=True)
class BackendChoice:
    """A backend of a study.

    Attributes:
        backend: name in the registry.
        label: what tables call it; must differ from the other labels of the study.
        settings: settings by name; the others keep their defaults.
        only: restricts it to a part of the study.
    """

    __pydantic_config__: ClassVar = _STRICT

    backend: BackendName
    label: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    only: Only = Only()

    @property
    def title(self) -> str:
        """What tables call this backend: its label, or its name and the settings given."""
        if self.label or not self.settings:
            return self.label or self.backend
        given = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.backend} {given}"


@dataclass(frozen=True)
class Priors:
    """Priors that replace those of the data; None keeps the data's own."""

    __pydantic_config__: ClassVar = _STRICT

    atom: Probability | None = None
    context: Probability | None = None


@dataclass(frozen=True)
class Reliability:
    """How the reliability diagram is binned."""

    __pydantic_config__: ClassVar = _STRICT

    bins: Annotated[int, Field(ge=1)] = 10
    strategy: Literal["uniform", "quantile"] = "uniform"


@dataclass(frozen=True)
class Study:
    """A compare experiment: datasets x variants x encodings x backends over all responses.

    Attributes:
        study: its name; also that of its folder of results.
        datasets: the data.
        description: what it is for.
        variants: views of the fact graphs: given, FR1, FR2, FR3.
        encodings: encodings of relations.
        backends: the algorithms.
        priors: priors that replace those of the data.
        seed: seed of every backend that has a setting `seed` and is not given one.
        unlabelled: what an atom without a human label counts as in scores.
        k: K of F1@K: median, half, or a number.
        reliability: bins of the reliability diagram.
        outputs: artefacts to make beside the rows, the summary and the manifest.
    """

    __pydantic_config__: ClassVar = _STRICT

    study: Annotated[str, AfterValidator(_file_name)]
    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    description: str = ""
    variants: Annotated[tuple[Variant, ...], Field(min_length=1), AfterValidator(_distinct)] = (
        "FR2",
    )
    encodings: Annotated[tuple[Encoding, ...], Field(min_length=1), AfterValidator(_distinct)] = (
        DEFAULT_ENCODING,
    )
    backends: Annotated[tuple[BackendChoice, ...], Field(min_length=1)] = (BackendChoice("exact"),)
    priors: Priors = Priors()
    seed: Annotated[int, Field(ge=0)] = 0
    unlabelled: Literal["exclude", "false", "true", "error"] = "exclude"
    k: Annotated[int | str, AfterValidator(_k_policy)] = "median"
    reliability: Reliability = Reliability()
    outputs: Annotated[tuple[Output, ...], AfterValidator(_distinct)] = (
        "latex",
        "markdown",
        "reliability",
    )

    def __post_init__(self) -> None:
        _distinct_titles("datasets", "name", [choice.title for choice in self.datasets])
        _distinct_titles("backends", "label", [choice.title for choice in self.backends])
        titles = [choice.title for choice in self.datasets]
        self._check_only(titles)
        if not any(
            takes_part(choice, title, variant, encoding)
            for choice in self.backends
            for title in titles
            for variant in self.variants
            for encoding in self.encodings
        ):
            raise ValueError(
                "no backend takes part in any cell, because `only` excludes every dataset, "
                "variant and encoding of this study; widen it or leave it out"
            )

    def _check_only(self, titles: list[str]) -> None:
        for position, choice in enumerate(self.backends):
            for name in choice.only.datasets or ():
                if name not in titles:
                    raise ValueError(
                        f"backends[{position}].only.datasets names {name!r}, which is no dataset "
                        f"of this study; use one of {', '.join(titles)}"
                    )


def takes_part(choice: BackendChoice, dataset: str, variant: str, encoding: str) -> bool:
    """Return whether a backend of a study is asked in a cell."""
    only = choice.only
    asked = ((only.datasets, dataset), (only.variants, variant), (only.encodings, encoding))
    return all(allowed is None or value in allowed for allowed, value in asked)


def _distinct_titles(key: str, mend: str, titles: list[str]) -> None:
    for position, title in enumerate(titles):
        if title in titles[:position]:
            raise ValueError(
                f"{key}[{position}] is called {title!r} like another; give it its own {mend}"
            )


def as_plain(study: Study) -> dict[str, Any]:
    """Return the whole study as plain data, every default written out.

    A file is named without its folder, so that the result says nothing of the machine.
    """
    plain: dict[str, Any] = json.loads(json.dumps(asdict(study)))
    for dataset in plain["datasets"]:
        if dataset["path"] is not None:
            dataset["path"] = PurePath(dataset["path"]).name
    return plain


def config_hash(study: Study) -> str:
    """Return the SHA-256 of the study's plain form: equal for studies that ask the same."""
    canonical = json.dumps(as_plain(study), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
