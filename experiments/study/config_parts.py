"""The parts of a study: datasets, backends, priors, tests, and what each of their keys may say."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from calibration.scores.registry import MEASURES
from calibration.significance.measures import MEASURES as TESTED_MEASURES
from calibration.significance.table import MEANS_OVER_RESPONSES
from experiments.study.cell_names import NO_GRAPH
from factormodels.encodings import ENCODINGS
from factormodels.errors import unknown_name
from factormodels.variants import VARIANTS
from inference.registry import entries

STRICT = {"extra": "forbid"}
"""Configuration of every part: a key that it does not know is refused."""

OWN_PRIORS = "data"
"""What tables call the priors that the data bring with them."""

LEARNED = "learned"
"""What tables call priors that are learned, unless they have a name."""

LEARNABLE = ("atom_prior", "context_prior", "temperature", "probability")
"""What labels can teach: priors, and how far relations are trusted."""


@dataclass(frozen=True)
class Known(AfterValidator):
    """A validator that takes one of some names, which the JSON Schema lists.

    Attributes:
        names: the names there are, asked for when a value is validated.
    """

    names: Callable[[], Iterable[str]] = tuple

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core_schema), "enum": list(self.names())}


def known(names: Callable[[], Iterable[str]], what: str) -> Known:
    """Return a validator that takes one of some names."""

    def check(name: str) -> str:
        if name not in (valid := list(names())):
            raise ValueError(unknown_name(f"the {what}", name, valid))
        return name

    return Known(check, names)


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return values of which none is listed twice.

    Raises:
        ValueError: if one is.
    """
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ValueError(f"{value!r} is listed twice; keep one")
    return values


def file_name(name: str) -> str:
    """Return a name that can be part of a file's.

    Raises:
        ValueError: if it cannot.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError("it names files: use letters, digits, '.', '_' and '-', no space")
    return name


def k_policy(value: int | str) -> int | str:
    """Return a way to choose K.

    Raises:
        ValueError: if it is none.
    """
    number = value.removeprefix("fixed:") if isinstance(value, str) else str(value)
    if value in ("median", "half") or (number.isascii() and number.isdigit() and int(number) > 0):
        return value
    raise ValueError("use median, half, or a whole number above 0")


Variant = Annotated[str, known(lambda: VARIANTS, "variant")]
Encoding = Annotated[str, known(lambda: ENCODINGS, "encoding")]
BackendName = Annotated[str, known(entries, "backend")]
Learnable = Annotated[str, known(lambda: LEARNABLE, "parameter")]
MeasureName = Annotated[str, known(lambda: MEASURES, "measure")]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Strength = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Subset:
    """The responses of a dataset that a study takes; an absent key restricts nothing.

    Attributes:
        responses: ids of the responses.
        topics: topics of the responses.
        labelled: only responses with a labelled atom.
        sample: so many of what is left, drawn at random, in the order of the data.
        seed: seed of the draw.
    """

    __pydantic_config__: ClassVar = STRICT

    responses: tuple[str, ...] | None = None
    topics: tuple[str, ...] | None = None
    labelled: bool = False
    sample: Count | None = None
    seed: Seed = 0


@dataclass(frozen=True)
class DatasetChoice:
    """A dataset of a study: an embedded one by name, a file, or one that is generated.

    Attributes:
        name: name of the embedded dataset, or what to call the other (a file's stem if absent).
        path: a file of responses; relative to the folder of the configuration that names it.
        synthetic: arguments of `factormodels.synthetic.labelled_responses`.
        options: options of the embedded dataset's loader.
        subset: which of the responses.
        limit: only the first so many of these.
    """

    __pydantic_config__: ClassVar = STRICT

    name: str = ""
    path: Annotated[str, Field(min_length=1)] | None = None
    synthetic: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    subset: Subset = Subset()
    limit: Count | None = None

    def __post_init__(self) -> None:
        if self.path is None and not self.name:
            raise ValueError("give the name of an embedded dataset, or the path of a file")
        if self.path is not None and self.synthetic is not None:
            raise ValueError("data are read from a path or generated; leave one of the two out")
        if self.options and (self.path is not None or self.synthetic is not None):
            raise ValueError("options belong to embedded datasets; leave them out here")

    @property
    def title(self) -> str:
        """What tables call this dataset."""
        return self.name or PurePath(str(self.path)).stem


@dataclass(frozen=True)
class Only:
    """The part of a study that a backend takes part in; an absent key restricts nothing."""

    __pydantic_config__: ClassVar = STRICT

    datasets: tuple[str, ...] | None = None
    variants: tuple[Variant, ...] | None = None
    encodings: tuple[Encoding, ...] | None = None
    priors: tuple[str, ...] | None = None
    strengths: tuple[Strength, ...] | None = None
    seeds: tuple[Seed, ...] | None = None
    relation_models: tuple[str, ...] | None = None


@dataclass(frozen=True)
class BackendChoice:
    """A backend of a study, or several that differ in settings.

    Attributes:
        backend: name in the registry.
        label: what tables call it; must differ from the other labels of the study.
        settings: settings by name; the others keep their defaults.
        grid: lists of values by name of setting; one backend for each combination.
        only: restricts it to a part of the study.
    """

    __pydantic_config__: ClassVar = STRICT

    backend: BackendName
    label: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = field(
        default_factory=dict
    )
    only: Only = Only()

    def __post_init__(self) -> None:
        for name in self.grid:
            if name in self.settings:
                raise ValueError(f"{name!r} is given in settings and in grid; keep one")

    def place_of(self, place: str, setting: str) -> str:
        """Return the place of a setting, "" for all, of this choice at a place of a study."""
        part = "grid" if setting in self.grid else "settings"
        return f"{place}.{part}{setting and '.'}{setting}"

    def settings_of_each(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """Return what tables call each backend, with its settings."""
        each = []
        for values in itertools.product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            shown = chosen if self.label else {**self.settings, **chosen}
            given = ", ".join(f"{key}={value}" for key, value in shown.items())
            title = " ".join(filter(None, (self.label or self.backend, given)))
            each.append((title, {**self.settings, **chosen}))
        return tuple(each)


@dataclass(frozen=True)
class Learned:
    """Priors that are learned from the labels of other responses, in cross-fitting.

    Attributes:
        parameters: what is learned, of `LEARNABLE`.
        by: the class of relations that has a temperature or probability of its own.
        folds: parts of the labelled responses; each is judged by what the others teach.
        backend: the algorithm that fits.
        settings: settings of the algorithm.
        objective: what is made small.
        penalty: standard deviation of a normal prior on logit and log scales; None: no penalty.
        max_iterations: after so many a search ends as not converged.
    """

    __pydantic_config__: ClassVar = STRICT

    parameters: Annotated[tuple[Learnable, ...], Field(min_length=1), AfterValidator(distinct)] = (
        "atom_prior",
        "temperature",
    )
    by: Literal["kind", "stance"] | None = None
    folds: Annotated[int, Field(ge=2)] = 5
    backend: BackendName = "exact"
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    objective: Literal["likelihood", "log_loss", "brier"] = "likelihood"
    penalty: Strength | None = None
    max_iterations: Count = 500

    def __post_init__(self) -> None:
        of_relations = [name for name in self.parameters if name in LEARNABLE[2:]]
        if len(of_relations) > 1:
            raise ValueError("a relation has a temperature or a probability; learn one of the two")
        if self.by is not None and not of_relations:
            raise ValueError(
                f"by is {self.by!r}, but nothing of relations is learned; add temperature or "
                "probability to parameters, or leave by out"
            )


@dataclass(frozen=True)
class PriorSetting:
    """Priors of one cell; None keeps the data's own.

    Attributes:
        title: what tables call them.
        atom: prior of every atom.
        context: prior of every context.
        learned: what is learned, and how; None: nothing.
    """

    title: str
    atom: float | None
    context: float | None
    learned: Learned | None = None


_Values = Annotated[tuple[Probability | None, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Priors:
    """Priors that replace those of the data, one setting for each combination.

    Attributes:
        atom: priors of atoms; None keeps the data's own.
        context: priors of contexts.
        name: what tables call the setting; only if there is a single one.
        learned: what is learned from labels; what is fixed beside it stays fixed.
    """

    __pydantic_config__: ClassVar = STRICT

    atom: _Values = (None,)
    context: _Values = (None,)
    name: str = ""
    learned: Learned | None = None

    def __post_init__(self) -> None:
        if self.name and len(self.atom) * len(self.context) > 1:
            raise ValueError("a name is for one setting of the priors; leave it out of a grid")
        if self.name == NO_GRAPH:
            raise ValueError(
                "assessors, which have no priors, are called none; choose another name"
            )
        own = self.atom == self.context == (None,) and self.learned is None
        if self.name == OWN_PRIORS and not own:
            raise ValueError("the priors of the data alone are called data; choose another name")
        for key, values in (("atom", self.atom), ("context", self.context)):
            fixed = any(value is not None for value in values)
            if fixed and self.learned is not None and f"{key}_prior" in self.learned.parameters:
                raise ValueError(f"{key} is given and {key}_prior is learned; keep one")

    def settings(self) -> tuple[PriorSetting, ...]:
        """Return every combination."""
        return tuple(
            PriorSetting(
                self.name or _prior_title(atom, context, self.learned), atom, context, self.learned
            )
            for atom in self.atom
            for context in self.context
        )


def _prior_title(atom: float | None, context: float | None, learned: Learned | None) -> str:
    given = {"atom": atom, "context": context}
    parts = [LEARNED] if learned is not None else []
    parts += [f"{name}={value:g}" for name, value in given.items() if value is not None]
    return " ".join(parts) or OWN_PRIORS


@dataclass(frozen=True)
class Reliability:
    """How the reliability diagram is binned."""

    __pydantic_config__: ClassVar = STRICT

    bins: Count = 10
    strategy: Literal["uniform", "quantile"] = "uniform"


@dataclass(frozen=True)
class Report:
    """What the HTML report shows.

    Attributes:
        responses: how many responses of each dataset have a page, the first ones.
    """

    __pydantic_config__: ClassVar = STRICT

    responses: Count = 200


@dataclass(frozen=True)
class Selector:
    """What one side of a pair is: cells that have these values; the rest both sides share."""

    __pydantic_config__: ClassVar = STRICT

    variant: Variant | None = None
    relation_model: str | None = None
    encoding: Encoding | None = None
    prior: str | None = None
    strength: Strength | None = None
    backend: str | None = None
    seed: Seed | None = None
    selection: str | None = None

    def given(self) -> dict[str, Any]:
        """Return what is given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Significance:
    """Which pairs are tested, and how; every interval and test resamples responses.

    Attributes:
        pairs: pairs of selectors with the same keys; the first is compared with the second
            wherever all else is the same.
        measures: measures of `calibration.significance`.
        test: the paired test.
        alternative: two-sided, or better for the first being better.
        correction: for all p-values of the study together; none leaves them uncorrected.
        resamples: permutations, or replicates of the bootstrap.
    """

    __pydantic_config__: ClassVar = STRICT

    pairs: tuple[Annotated[tuple[Selector, ...], Field(min_length=2, max_length=2)], ...] = ()
    measures: Annotated[
        tuple[Annotated[str, known(lambda: TESTED_MEASURES, "measure")], ...],
        Field(min_length=1),
        AfterValidator(distinct),
    ] = ("brier", "accuracy")
    test: Literal["permutation", "bootstrap", "t"] = "permutation"
    alternative: Literal["two-sided", "better"] = "two-sided"
    correction: Literal["holm", "benjamini-hochberg", "none"] = "holm"
    resamples: Count = 10_000

    def __post_init__(self) -> None:
        pooled = [name for name in self.measures if name not in MEANS_OVER_RESPONSES]
        if self.test == "t" and pooled:
            raise ValueError(
                f"test is 't', but {', '.join(pooled)} is pooled over claims; choose permutation "
                f"or bootstrap, or measures among {', '.join(MEANS_OVER_RESPONSES)}"
            )
        for first, second in self.pairs:
            if not first.given() or set(first.given()) != set(second.given()):
                raise ValueError(
                    "the sides of a pair are told apart by the same keys, such as "
                    "[{variant: FR3}, {variant: FR1}]"
                )
            if first == second:
                raise ValueError("the sides of a pair are the same; let them differ")
