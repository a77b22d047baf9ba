"""Configuration of a study: every key, its meaning and its checks.

Each class of settings is a mapping of the file, each field a key, and the string below the field
the meaning of the key, from which the reference is generated. Types check single keys; validators
of a class check combinations of keys. `experiments.study.reading` reads a study from a file, and
`experiments.study.errors` words its errors.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from calibration.learned_potentials.graph_potentials import LEARNABLE, OF_RELATIONS
from calibration.scores.registry import DEFAULT_MEASURES, REGISTRY
from calibration.significance.comparison import MEANS_OVER_RESPONSES
from experiments.asking.relation_correction import NONE
from experiments.asking.relation_settings import ProbabilityMethod, RelationPrompt
from experiments.asking.settings import AnswerSettings
from experiments.columns.cell_names import NO_GRAPH, RECORDED
from experiments.findings.venues import DEFAULT_VENUE, VENUE_MEANING, venue_named
from experiments.settings.conventions import ScoreConventionSettings, SourcePriorSettings
from experiments.settings.keyed import Keyed
from experiments.settings.limits import (
    Count,
    EncodingName,
    Folds,
    KPolicy,
    Least,
    ObjectiveName,
    Openness,
    Positive,
    Probability,
    Seed,
    VariantName,
)
from experiments.settings.selection_rule import SelectionRule, Weights
from experiments.study.cells import PriorSetting
from factormodels import datasets
from factormodels.claims import LEAST_PROBABILITY
from factormodels.conventions import Conventions, GraphConventions, Unlabeled, stated
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import unknown_name
from factormodels.extraction.asking.table import ASSESSORS, RELATION
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.io.json import plain_hash
from inference.registry import entries

# --- Values of keys ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Known(AfterValidator):
    """A validator that accepts a fixed set of names, which the JSON Schema lists.

    Attributes:
        names: function that returns the names, called when a value is validated.
        what: noun for the value in errors.
    """

    names: Callable[[], Iterable[str]] = tuple
    what: str = ""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core_schema), "enum": list(self.names())}


def known(names: Callable[[], Iterable[str]], what: str) -> Known:
    """Return a validator for a set of names, whose error calls the value `what`."""

    def check(name: str) -> str:
        if name not in (valid := list(names())):
            raise ValueError(unknown_name(f"the {what}", name, valid))
        return name

    return Known(check, names, what)


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values, which must be distinct.

    Raises:
        ValueError: if a value is listed twice.
    """
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ValueError(f"{value!r} is listed twice; keep one")
    return values


def file_name(name: str) -> str:
    """Return the name, which must be valid in file names.

    Raises:
        ValueError: if it is not.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(
            "it is used in file names: use letters, digits, '.', '_' and '-', without spaces"
        )
    return name


def venue_name(name: str) -> str:
    """Return the name of a venue, or its widths.

    Raises:
        InputError: if it is neither.
    """
    venue_named(name)
    return name


def _written_out(policy: Any) -> Any:
    """Policy for unlabeled atoms as a text: YAML reads a bare true or false as a boolean."""
    return str(policy).lower() if isinstance(policy, bool) else policy


def column_name(name: str) -> str:
    """Return the name, which must be valid in a column of several names, or empty.

    Raises:
        ValueError: if it is not.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]*", name):
        raise ValueError("a column lists several names; use letters, digits, '.', '_', '-'")
    return name


Item = TypeVar("Item")
Some = Annotated[tuple[Item, ...], Field(min_length=1)]
Several = Annotated[tuple[Item, ...], Field(min_length=1), AfterValidator(distinct)]
UnlabeledPolicy = Literal[Unlabeled, "true", "error"]
NonEmpty = Annotated[str, Field(min_length=1)]
ShownNames = Annotated[
    Mapping[NonEmpty, str],
    Field(
        description="Replacements of names in tables, figures and the page, such as {gpt-4o: "
        "GPT-4o}; data files keep the names.",
    ),
]
BackendName = Annotated[str, known(entries, "backend")]
MeasureName = Annotated[str, known(lambda: REGISTRY, "measure")]
VenueName = Annotated[str, AfterValidator(venue_name), Field(description=VENUE_MEANING)]
StudyName = Annotated[
    str,
    AfterValidator(file_name),
    Field(description="Name of the study and of its folder of results."),
]
Purpose = Annotated[str, Field(description="What it is for.")]
"""Name and purpose of a study, with their descriptions."""

# --- Data -------------------------------------------------------------------------------------


class Subset(Keyed):
    """The responses of a dataset to use; an absent key restricts nothing."""

    responses: tuple[str, ...] | None = None
    """Ids of the responses."""

    topics: tuple[str, ...] | None = None
    """Topics of the responses."""

    labeled: bool = False
    """Only responses with a labeled atom."""

    sample: Count | None = None
    """Number of the remaining responses to draw at random, kept in the order of the data."""

    seed: Seed = 0
    """Seed of the draw."""


class DatasetChoice(Keyed):
    """A dataset of a study: embedded, a file, or generated."""

    text_key: ClassVar[str] = "name"

    name: str = ""
    """Name of an embedded dataset; or the name in tables of a file (its stem if absent) or of
    generated data."""

    path: NonEmpty | None = None
    """A file of fact graphs or a published file, relative to the folder of the configuration."""

    synthetic: Mapping[str, Any] | None = None
    """Arguments of `factormodels.synthetic.labeled_responses`; a distribution is a number, or the
    two ends of an interval."""

    options: Mapping[str, Any] = Field(default_factory=dict)
    """Options of the embedded dataset's loader."""

    subset: Subset = Subset()
    """Subset of the responses."""

    limit: Count | None = None
    """Number of responses to keep, from the first."""

    variants: Some[VariantName] | None = None
    """Variants of the study for these responses; all if absent."""

    @model_validator(mode="after")
    def _consistent(self) -> DatasetChoice:
        if self.path is None and not self.name:
            raise ValueError("give the name of an embedded dataset, or the path of a file")
        if self.path is not None and self.synthetic is not None:
            raise ValueError("data are read from a path or generated; leave one of the two out")
        if self.options and (self.path is not None or self.synthetic is not None):
            raise ValueError("options belong to embedded datasets; leave them out here")
        return self

    @property
    def title(self) -> str:
        """Name of this dataset in tables."""
        return self.name or PurePath(str(self.path)).stem


# --- Models of texts --------------------------------------------------------

LOCAL_MODELS = ("nli", "minicheck", "alignscore")
"""Relation models that are loaded from a folder."""

RELATION_MODELS = (RECORDED, "lexical", *LOCAL_MODELS, "prompted")

ACCESS = tuple(AnswerSettings.model_fields)
"""Keys of access to language models, which do not affect results and are not written to result
files."""


class LanguageModelChoice(AnswerSettings, Keyed):
    """A language model and its access; paths are relative to the configuration's folder."""

    model: NonEmpty
    """Name as litellm spells it, such as openai/NAME, with its key from the environment."""


class Asking(AnswerSettings, Keyed):
    """Language model settings of a relation model or assessor."""

    language_model: NonEmpty | None = None
    """Name as litellm spells it; absent keys are taken from the study's language model."""

    def resolved(self, shared: LanguageModelChoice | None) -> LanguageModelChoice | None:
        """The language model with its access; None if no model is named.

        Args:
            shared: the study's language model.
        """
        model = self.language_model or (None if shared is None else shared.model)
        if model is None:
            return None
        # Missing settings come from the study.
        access = {
            name: getattr(choice, name)
            for choice in (shared, self)
            if choice is not None
            for name in choice.given(*ACCESS)
        }
        return LanguageModelChoice(model=model, **access)


class RelationModelChoice(Asking):
    """A relation model of a study."""

    model: Annotated[str, known(lambda: RELATION_MODELS, "relation model")]
    """recorded (from the data, or with `path` from a file of judgments), lexical (overlap of
    words), nli, minicheck or alignscore (a local model), or prompted (a language model).
    """

    label: str = ""
    """Name in tables; derived from the other keys if absent."""

    path: NonEmpty | None = None
    """Folder of a local model, or file of recorded judgments (JSON Lines), relative to the folder
    of the configuration."""

    method: ProbabilityMethod = "automatic"

    samples: Count | None = None
    """Number of answers per pair, for the method samples; 5 if absent."""

    openness: Openness = OPENNESS

    prompt: RelationPrompt = RELATION.prompt

    least: Least = LEAST_PROBABILITY

    @model_validator(mode="after")
    def _consistent(self) -> RelationModelChoice:
        if self.model in LOCAL_MODELS and self.path is None:
            raise ValueError(
                f"the relation model {self.model!r} needs the path of a folder; add path"
            )
        if self.path is not None and self.model not in (*LOCAL_MODELS, RECORDED):
            raise ValueError(f"the relation model {self.model!r} has no path; leave it out")
        options = self.given("method", "samples", "openness", "prompt", "language_model", *ACCESS)
        if options and self.model != "prompted":
            raise ValueError(f"{options[0]} applies to the relation model 'prompted'; leave it out")
        if self.as_recorded and self.label:
            raise ValueError(
                "the name of the data's relations is fixed (recorded); leave the label out"
            )
        if not self.as_recorded and self.label == RECORDED:
            raise ValueError(
                "the name recorded is reserved for the data's relations; choose another label"
            )
        if self.label == NO_GRAPH:
            raise ValueError(
                "the name none is reserved for assessors, which have no relations; choose "
                "another label"
            )
        if self.as_recorded and self.given("least"):
            raise ValueError("recorded relations are not changed; leave 'least' out")
        return self

    @property
    def as_recorded(self) -> bool:
        """True if the relations are the data's own."""
        return self.model == RECORDED and self.path is None

    def title(self, shared: LanguageModelChoice | None) -> str:
        """Name in tables.

        Args:
            shared: the study's language model.
        """
        if self.label:
            return self.label
        if self.path is not None:
            path = PurePath(self.path)
            return f"{self.model}:{path.name if self.model in LOCAL_MODELS else path.stem}"
        access = self.resolved(shared)
        if self.model == "prompted" and access is not None:
            return access.model + ("" if self.method == "automatic" else f" ({self.method})")
        return self.model


def _judging_given() -> list[str]:
    """Names of the assessors that judge by the passages of the data, without searches."""
    return [name for name, assessor in ASSESSORS.items() if not assessor.searches]


class AssessorChoice(Asking):
    """A prompt-based assessor of a study, or recorded verdicts."""

    assessor: Annotated[str, known(lambda: (*_judging_given(), RECORDED), "assessor")]
    """A name of `factormodels.extraction.asking.table.ASSESSORS`; or recorded, for verdicts in the
    responses, such as in FactReasoner's outputs."""

    label: str = ""
    """Name in tables; the assessor's name if absent."""

    all_contexts: bool = False
    """Judge every atom with all contexts instead of only those retrieved for it."""

    expected: bool = False
    """Average P(true) over the labels by their probabilities."""

    of: NonEmpty | None = None
    """Name of the assessor whose recorded verdicts to use; needed only if several are recorded."""

    @model_validator(mode="after")
    def _consistent(self) -> AssessorChoice:
        asking = self.given("all_contexts", "expected", "language_model", *ACCESS)
        if self.as_recorded and asking:
            raise ValueError(f"recorded verdicts need no model; leave {asking[0]} out")
        if self.of is not None and not self.as_recorded:
            raise ValueError("of applies to the assessor 'recorded'; leave it out")
        return self

    @property
    def as_recorded(self) -> bool:
        """True if the verdicts are the data's own."""
        return self.assessor == RECORDED

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.label or self.of or self.assessor

    def setting(self, shared: LanguageModelChoice | None) -> dict[str, Any]:
        """Settings that its verdicts depend on, by name.

        Args:
            shared: the study's language model.
        """
        if self.as_recorded:
            return {"of": self.of}
        access = self.resolved(shared)
        return {
            "language_model": None if access is None else access.model,
            "all_contexts": self.all_contexts,
            "expected": self.expected,
        }


# --- Algorithms -------------------------------------------------------------------------------


class Only(Keyed):
    """The cells of a study for a backend; an absent key restricts nothing."""

    datasets: tuple[str, ...] | None = None
    """Datasets, by name in tables."""

    variants: tuple[VariantName, ...] | None = None
    """Variants."""

    encodings: tuple[EncodingName, ...] | None = None
    """Encodings."""

    priors: tuple[str, ...] | None = None
    """Settings of the priors, by name in tables."""

    strengths: tuple[Positive, ...] | None = None
    """Strengths."""

    seeds: tuple[Seed, ...] | None = None
    """Seeds."""

    relation_models: tuple[str, ...] | None = None
    """Relation models, by name in tables."""


class BackendChoice(Keyed):
    """A backend of a study, or several with different settings."""

    backend: BackendName
    """Name of the backend; `factormodels list backends` shows all."""

    label: str = ""
    """Name in tables, which must be unique in the study; by default name and settings."""

    settings: Mapping[str, Any] = Field(default_factory=dict)
    """Settings by name; the others keep their defaults."""

    grid: Mapping[str, Some[Any]] = Field(default_factory=dict)
    """Lists of values by name of setting; each combination is a backend."""

    only: Only = Only()
    """Restriction to a part of the study."""

    @model_validator(mode="after")
    def _consistent(self) -> BackendChoice:
        for name in self.grid:
            if name in self.settings:
                raise ValueError(f"{name!r} is given in settings and in grid; keep one")
        return self

    def place_of(self, choice_key: str, setting: str) -> str:
        """Path of a setting ("" for all) of this choice in a study."""
        part = "grid" if setting in self.grid else "settings"
        return f"{choice_key}.{part}{setting and '.'}{setting}"

    def settings_of_each(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """Name in tables and settings of each backend."""
        each = []
        # Without a grid the product has a single empty entry: the backend itself.
        for values in itertools.product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            # With a label, titles leave out settings that all combinations share.
            shown = chosen if self.label else {**self.settings, **chosen}
            settings_text = ", ".join(f"{key}={value}" for key, value in shown.items())
            title = " ".join(filter(None, (self.label or self.backend, settings_text)))
            each.append((title, {**self.settings, **chosen}))
        return tuple(each)


Backends = Annotated[Some[BackendChoice], Field(description="Algorithms to compare.")]
DEFAULT_BACKENDS = (BackendChoice(backend="auto"),)
Seeds = Annotated[
    tuple[Seed, ...],
    AfterValidator(distinct),
    Field(
        description="Seeds for backends that do not set their `seed`, one cell per seed. Only "
        "`seed` if absent."
    ),
]
"""Algorithms of a study and their seeds, with their descriptions."""

# --- Priors -----------------------------------------------------------------------------------

OWN_PRIORS = "data"
"""Name in tables for the data's own priors."""

LEARNED = "learned"
"""Name in tables for learned priors without a name."""

Parameter = Annotated[str, known(lambda: LEARNABLE, "parameter")]


class Learned(Keyed):
    """Priors that are learned from labels by cross-fitting."""

    parameters: Several[Parameter] = ("atom_prior", "temperature")
    """Parameters to learn: atom_prior, context_prior, and for relations temperature (on the logit
    of each stated probability) or probability (replacing it)."""

    by: Literal["kind", "stance"] | None = None
    """Classes of relations with separate temperatures or probabilities: kind, or stance
    (Factcheck-Bench). If absent, a single temperature, or a probability per kind."""

    folds: Folds = 5
    """Number of folds of labeled responses, drawn with the study's `seed`; each fold is judged with
    priors from the others."""

    backend: BackendName = "auto"
    """The algorithm that fits."""

    settings: Mapping[str, Any] = Field(default_factory=dict)
    """Settings of the algorithm."""

    objective: ObjectiveName = "likelihood"
    """Objective to minimize; likelihood is the negative log likelihood."""

    penalty: Positive | None = None
    """Standard deviation of a normal prior on logit and log scales; no penalty if absent."""

    max_iterations: Count = 500
    """Number of iterations after which the optimizer stops as not converged."""

    judge: str = ""
    """File from `factormodels fit --save`: its posteriors become priors of atoms, and the relations
    with contexts that it used are dropped. Nothing is learned from the study's labels, and no other
    key is allowed."""

    def __hash__(self) -> int:
        # Priors are keys of mappings, and dictionaries are unhashable; equality still compares the
        # settings.
        return hash(tuple(value for name, value in self if name != "settings"))

    @model_validator(mode="after")
    def _consistent(self) -> Learned:
        if self.judge and self.model_copy(update={"judge": ""}) != Learned():
            raise ValueError("judge uses a judge that is already learned; leave the other keys out")
        of_relations = [name for name in self.parameters if name in OF_RELATIONS]
        if len(of_relations) > 1:
            raise ValueError("temperature and probability exclude each other; learn one of the two")
        if self.by is not None and not of_relations:
            raise ValueError(
                f"by is {self.by!r}, but no parameter of relations is learned; add temperature or "
                "probability to parameters, or leave by out"
            )
        return self


PriorValues = Some[Probability | None]


class Priors(Keyed):
    """Priors that replace the data's priors; every combination is a setting."""

    atom: PriorValues = (None,)
    """Priors of atoms; null keeps the data's priors."""

    context: PriorValues = (None,)
    """Priors of contexts; null keeps the data's priors."""

    name: str = ""
    """Name in tables, only for a single setting; derived from the other keys if absent."""

    learned: Learned | None = None
    """Priors to learn from labels; other priors stay fixed."""

    @model_validator(mode="after")
    def _consistent(self) -> Priors:
        if self.name and len(self.atom) * len(self.context) > 1:
            raise ValueError(
                "a name needs a single setting of the priors, and this is a grid; leave it out"
            )
        if self.name == NO_GRAPH:
            raise ValueError(
                "the name none is reserved for assessors, which have no priors; choose another name"
            )
        # Only the data's own priors may have the name data.
        as_in_data = self.atom == self.context == (None,) and self.learned is None
        if self.name == OWN_PRIORS and not as_in_data:
            raise ValueError("the name data is reserved for the data's priors; choose another name")
        for key, values in (("atom", self.atom), ("context", self.context)):
            # null keeps the data's prior and fixes nothing.
            fixed = any(value is not None for value in values)
            if fixed and self.learned is not None and f"{key}_prior" in self.learned.parameters:
                raise ValueError(f"{key} is given and {key}_prior is learned; keep one")
        return self

    def settings(self) -> tuple[PriorSetting, ...]:
        """Every combination."""
        return tuple(
            PriorSetting(
                self.name or _prior_title(atom, context, self.learned), atom, context, self.learned
            )
            for atom in self.atom
            for context in self.context
        )


def _prior_title(atom: float | None, context: float | None, learned: Learned | None) -> str:
    numbers = {"atom": atom, "context": context}
    parts = [LEARNED] if learned is not None else []
    parts += [f"{name}={value:g}" for name, value in numbers.items() if value is not None]
    return " ".join(parts) or OWN_PRIORS


# --- Conventions ------------------------------------------------------------------------------


class ConventionChoice(SourcePriorSettings, ScoreConventionSettings, Keyed):
    """Conventions of a study: a paper's or tool's by name, or single conventions."""

    text_key: ClassVar[str] = "like"


# --- Scores, tests, reports -------------------------------------------------------------------

EVERYTHING = "all"
"""The selection that keeps every atom."""

SELECTIONS = (EVERYTHING, "core")
"""Names of selections: all atoms, or Core's."""


class SelectionChoice(SelectionRule, Keyed):
    """Selection of the atoms that count in measures and tests; it does not affect posteriors."""

    selection: Annotated[str, known(lambda: SELECTIONS, "selection")]
    """`all`, or `core` (informative atoms that do not entail each other)."""

    name: Annotated[str, AfterValidator(column_name)] = ""
    """Name in tables; the selection's name if absent."""

    weights: Weights = "uniform"

    relations: Literal["lexical", "recorded", "nli"] = "lexical"
    """Judge of entailment between atoms: lexical (overlap of words), recorded (a file of judgments,
    or the relations between atoms in the data) or nli (a local model).
    """

    path: NonEmpty | None = None
    """File of recorded judgments (absent: the data's own), or folder of the model."""

    domain: str | None = None
    """Domain of the bleached claims of `informativeness`; the response's domain if absent."""

    time_limit: Positive = 3.0
    """Time limit per response in seconds; then the best set so far is used, with a remark."""

    @model_validator(mode="after")
    def _consistent(self) -> SelectionChoice:
        options = [
            name
            for name in self.given(*type(self).model_fields)
            if name not in ("selection", "name")
        ]
        if self.selection == EVERYTHING and options:
            raise ValueError(f"{options[0]} does not apply to the selection 'all'; leave it out")
        if self.relations == "lexical" and self.path is not None:
            raise ValueError("lexical relations have no path; leave it out, or use recorded or nli")
        if self.relations == "nli" and self.path is None:
            raise ValueError("the relations 'nli' need the path of the model's folder; add path")
        return self

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.name or self.selection


class Selector(Keyed):
    """Side of a pair: cells with these values; all other values are equal on both sides."""

    text_key: ClassVar[str] = "backend"

    variant: VariantName | None = None
    """Variant."""

    relation_model: str | None = None
    """Relation model, by name in tables."""

    encoding: EncodingName | None = None
    """Encoding."""

    prior: str | None = None
    """Setting of the priors, by name in tables."""

    strength: Positive | None = None
    """Strength."""

    backend: str | None = None
    """Backend or assessor, by name in tables."""

    seed: Seed | None = None
    """Seed."""

    selection: str | None = None
    """Selection, by name in tables; each side then uses its own atoms."""

    def values(self) -> dict[str, Any]:
        """Values of this side's cells, by name."""
        return {name: value for name, value in self if value is not None}


class Significance(Keyed):
    """Pairs to test and the tests; every interval and test resamples responses."""

    pairs: tuple[Annotated[tuple[Selector, ...], Field(min_length=2, max_length=2)], ...] = ()
    """Pairs of selectors with the same keys; the first is compared with the second in cells that
    are otherwise equal."""

    measures: Several[MeasureName] = ("brier", "accuracy")
    """Measures to compare, from `calibration.significance`."""

    test: Literal["permutation", "bootstrap", "t"] = "permutation"
    """Paired test; t applies to means over responses."""

    alternative: Literal["two-sided", "better"] = "two-sided"
    """two-sided, or better (the first is better)."""

    correction: Literal["holm", "benjamini-hochberg", "none"] = "holm"
    """Correction over all p-values of the study; none leaves them uncorrected."""

    resamples: Count = 10_000
    """Number of permutations or bootstrap replicates per measure; all permutations if there are
    fewer."""

    @model_validator(mode="after")
    def _consistent(self) -> Significance:
        pooled = [name for name in self.measures if name not in MEANS_OVER_RESPONSES]
        # A t test needs a value per response, which pooled scores such as F1@K lack.
        if self.test == "t" and pooled:
            raise ValueError(
                f"test is 't', but {', '.join(pooled)} is pooled over claims; choose permutation "
                f"or bootstrap, or measures among {', '.join(MEANS_OVER_RESPONSES)}"
            )
        neither = [
            measure for measure in self.measures if REGISTRY[measure].higher_is_better is None
        ]
        if self.alternative == "better" and neither:
            raise ValueError(
                f"alternative is better, but {', '.join(neither)} has no better direction; "
                "choose two-sided, or leave such measures out"
            )
        for first, second in self.pairs:
            # Sides with different keys would differ in more than the tested dimension.
            if not first.values() or set(first.values()) != set(second.values()):
                raise ValueError(
                    "the two sides of a pair must have the same keys, as in [{variant: FR3}, "
                    "{variant: FR1}]"
                )
            if first == second:
                raise ValueError("the sides of a pair are equal; change one of them")
        return self


class Reliability(Keyed):
    """Bins of the reliability diagram."""

    bins: Annotated[int, Field(ge=1, le=10_000)] = 10
    """Number of bins."""

    strategy: Literal["quantile", "uniform"] = "quantile"
    """Bins with equal numbers of atoms (quantile) or of equal width (uniform)."""


class Report(Keyed):
    """Contents of the HTML report."""

    responses: Count = 200
    """Number of responses of each dataset on the page, from the first."""


# --- The study --------------------------------------------------------------------------------

PRESENTATION = (
    *("description", "selections", "unlabeled", "k", "measures", "significance", "conventions"),
    *("reliability", "report", "venue", "rename", "outputs"),
)
"""Keys that do not affect posteriors (except for conventions of graphs) and may change when a run
is resumed.
"""


class Study(Keyed):
    """Study: datasets x variants x relation models x encodings x priors x strengths x backends."""

    study: StudyName

    datasets: Some[DatasetChoice]
    """Datasets, each embedded, a file, or generated."""

    description: Purpose = ""

    variants: Several[VariantName] = ("FR2",)
    """Views of the fact graphs: given (as recorded), FR1 (each atom with the contexts retrieved for
    it), FR2 (every atom with every context), FR3 (also contexts with each other)."""

    relation_models: Some[RelationModelChoice] = (RelationModelChoice(model=RECORDED),)
    """Sources of relations: the data, or models that judge the texts."""

    relation_correction: Several[NonEmpty] = (NONE,)
    """Corrections of the label bias of new relations, one cell per correction: none, probe, batch
    (by the mean answer to the pairs of a variant of a dataset), automatic (the probe's correction
    if it is better), or a file from fit --relations, relative to the folder of the configuration.
    """

    assessors: tuple[AssessorChoice, ...] = ()
    """Assessors that judge claims by prompts, without a graph."""

    language_model: LanguageModelChoice | None = None
    """Default language model of relation models and assessors."""

    prompts: NonEmpty | None = None
    """Folder of prompts that replace the default ones by name, relative to the folder of the
    configuration. `factormodels list prompts` lists the defaults."""

    probe: bool = True
    """First ask each language model questions with known answers, and report whether its answers
    are evidence."""

    encodings: Several[EncodingName] = (DEFAULT_ENCODING,)
    """Encodings of relations as factors."""

    priors: Some[Priors] = (Priors(),)
    """Priors that replace the data's priors; every combination is a setting."""

    strengths: Several[Positive] = (1.0,)
    """Factors for the log odds of every relation's probability."""

    conventions: ConventionChoice = ConventionChoice()
    """Conventions of a paper or tool, by name (paper, fact-reasoner-0.8), or single conventions. A
    name also sets `encodings`, `k` and `unlabeled` if absent, and the definition of f1."""

    backends: Backends = DEFAULT_BACKENDS

    seed: Seed = 0
    """Seed of intervals, tests, and backends unless `seeds` is given."""

    seeds: Seeds = ()

    selections: Some[SelectionChoice] = (SelectionChoice(selection=EVERYTHING),)
    """Selections of atoms for measures and tests."""

    unlabeled: Annotated[
        UnlabeledPolicy,
        BeforeValidator(_written_out),
        WithJsonSchema({"enum": [*get_args(UnlabeledPolicy), False, True]}),
    ] = "exclude"
    """Treatment of unlabeled atoms in scores; error refuses them."""

    k: KPolicy = "median"

    measures: Several[MeasureName] = DEFAULT_MEASURES
    """Columns of the tables and of summary.csv, from `calibration.scores.REGISTRY`."""

    significance: Significance = Field(default_factory=Significance)
    """Pairs to be tested."""

    reliability: Reliability = Field(default_factory=Reliability)
    """Bins of the reliability diagram."""

    report: Report = Field(default_factory=Report)
    """Contents of the HTML report."""

    venue: VenueName = DEFAULT_VENUE

    rename: ShownNames = Field(default_factory=dict)

    outputs: Annotated[
        tuple[Literal["csv", "latex", "markdown", "reliability", "report"], ...],
        AfterValidator(distinct),
    ] = ("csv", "latex", "markdown", "reliability")
    """Artifacts in addition to the rows, the summary and the manifest."""

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        self.conventions.check_encodings(self.encodings)
        # Titles identify things in tables, rows and resumed runs, so they must be unique.
        _check_titles("datasets", "name", [[dataset.title] for dataset in self.datasets])
        backends = [[title for title, _ in choice.settings_of_each()] for choice in self.backends]
        _check_titles("backends", "label", backends)
        self._check_models()
        corrected = [[title for _, title in self.corrections_of(m)] for m in self.relation_models]
        _check_titles("relation_models", "label", corrected)
        # Assessors share the column of the backends.
        taken = list(itertools.chain(*backends))
        judging = [assessor.title for assessor in self.assessors]
        _check_titles("assessors", "label", [[title] for title in judging], taken)
        priors = [[setting.title for setting in prior.settings()] for prior in self.priors]
        _check_titles("priors", "name", priors)
        _check_titles("selections", "name", [[selection.title] for selection in self.selections])
        for position, choice in enumerate(self.backends):
            self._check_only(position, choice)
        self._check_pairs([*taken, *judging])
        # Raise an error here instead of writing an empty table.
        if not self.assessors and not any(self._takes_part(choice) for choice in self.backends):
            raise ValueError(
                "no cell has a backend, because `only` excludes every dataset, variant, "
                "relation model, encoding, prior, strength or seed of this study; widen it or "
                "leave it out"
            )
        return self

    @property
    def relation_titles(self) -> tuple[str, ...]:
        """Names of the relation models in tables."""
        return tuple(
            title for model in self.relation_models for _, title in self.corrections_of(model)
        )

    def corrections_of(self, model: RelationModelChoice) -> list[tuple[str, str]]:
        """The corrections of a relation model, each with the model's name in tables."""
        title = model.title(self.language_model)
        if model.as_recorded:
            return [(NONE, title)]
        return [
            (name, title if name == NONE else f"{title} ({PurePath(name).name})")
            for name in self.relation_correction
        ]

    @property
    def prior_settings(self) -> tuple[PriorSetting, ...]:
        """Every setting of the priors, in order."""
        return tuple(setting for priors in self.priors for setting in priors.settings())

    @property
    def declared(self) -> Conventions:
        """The conventions in force, without encodings, which are a dimension of the study."""
        unlabeled = "false" if self.unlabeled == "false" else "exclude"
        return self.conventions.declared(k=self.k, encoding=DEFAULT_ENCODING, unlabeled=unlabeled)

    @property
    def backend_seeds(self) -> tuple[int, ...]:
        """The seeds of backends that have a setting `seed`."""
        return self.seeds or (self.seed,)

    @property
    def selected(self) -> tuple[str, ...]:
        """Names of the selections in tables; empty without selections."""
        titles = tuple(choice.title for choice in self.selections)
        return () if titles == (EVERYTHING,) else titles

    def dimensions(self) -> dict[str, tuple[Any, ...]]:
        """Values of each dimension that `only` may restrict."""
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

    def _check_models(self) -> None:
        """Check that every model that needs a language model can have one."""
        shared = self.language_model
        prompted = [
            (f"relation_models[{position}]", model)
            for position, model in enumerate(self.relation_models)
            if model.model == "prompted"
        ]
        judging = [
            (f"assessors[{position}]", assessor)
            for position, assessor in enumerate(self.assessors)
            if not assessor.as_recorded
        ]
        for location, choice in (*prompted, *judging):
            if choice.resolved(shared) is None:
                raise ValueError(
                    f"{location} needs a language model; add language_model: openai/NAME to it "
                    "or to the study"
                )
        # New relations would replace the data's relations of the variant 'given'.
        anew = [model for model in self.relation_models if not model.as_recorded]
        if anew and "given" in self.variants:
            raise ValueError(
                f"the relation model {anew[0].title(shared)!r} finds relations for FR1, FR2 and "
                "FR3, and 'given' uses the data's relations; leave one of the two out"
            )
        if not anew and self.relation_correction != (NONE,):
            raise ValueError(
                "relation_correction corrects new relations, and this study uses only the "
                "data's relations; name a relation model, or leave it out"
            )
        if self.prompts is not None and not (prompted or judging):
            raise ValueError("prompts: nothing in this study asks a language model; leave it out")

    def _check_only(self, position: int, choice: BackendChoice) -> None:
        for name in ("datasets", "relation_models", "priors"):
            # A study may override a base with more datasets, which the base's backends still name.
            elsewhere = datasets.names() if name == "datasets" else ()
            location = f"backends[{position}].only.{name} names"
            for value in getattr(choice.only, name) or ():
                if value not in elsewhere:
                    _check_named(location, value, self.dimensions()[name])

    def _check_pairs(self, backends: list[str]) -> None:
        # A selector names a single value per dimension.
        of_study = {name.removesuffix("s"): values for name, values in self.dimensions().items()}
        of_study |= {
            "backend": tuple(backends),
            "selection": tuple(choice.title for choice in self.selections),
        }
        for position, pair in enumerate(self.significance.pairs):
            for name, value in itertools.chain(*(selector.values().items() for selector in pair)):
                location = f"significance.pairs[{position}] names the {name}"
                _check_named(location, value, of_study[name])


def allows(choice: BackendChoice, dimension: str, value: object) -> bool:
    """Return True if a backend of a study allows a value of a dimension."""
    allowed = getattr(choice.only, dimension)
    return allowed is None or value in allowed


def as_plain(study: Study) -> dict[str, Any]:
    """The whole study as plain data, with every default.

    Files are named without their folder, and settings of calls to language models are left out, so
    that the result reveals nothing about the machine.
    """
    plain: dict[str, Any] = without_folders(study.model_dump(mode="json"))
    for dataset in plain["datasets"]:
        # Studies without the key keep their hash from before the key existed.
        if dataset["variants"] is None:
            del dataset["variants"]
    for assessor in plain["assessors"]:
        if assessor["of"] is None:
            del assessor["of"]
    plain["relation_correction"] = [PurePath(name).name for name in study.relation_correction]
    if plain["relation_correction"] == [NONE]:
        del plain["relation_correction"]
    plain["conventions"] = differing_from_default(study.declared)
    if not plain["conventions"]:
        del plain["conventions"]
    if not plain["rename"]:
        del plain["rename"]
    # What a model is asked beforehand changes no result.
    del plain["probe"]
    without_access(plain)
    return plain


def without_folders(plain: Any) -> Any:
    """Plain data with only the names of files and folders.

    Parent folders would reveal the machine; the hash of the data identifies the content.
    """
    if isinstance(plain, dict):
        return {
            key: PurePath(value).name
            if key in ("path", "templates", "prompts") and isinstance(value, str)
            else without_folders(value)
            for key, value in plain.items()
        }
    return [without_folders(item) for item in plain] if isinstance(plain, list) else plain


def config_hash(study: Study) -> str:
    """SHA-256 of the study's plain form, equal for equivalent studies."""
    return plain_hash(as_plain(study))


def computed_part(study: Study) -> dict[str, Any]:
    """Plain form of the part that posteriors depend on: the study without presentation."""
    plain = {key: value for key, value in as_plain(study).items() if key not in PRESENTATION}
    of_graphs = differing_from_default(study.declared, GraphConventions)
    if of_graphs:
        plain["conventions"] = of_graphs
    return plain


def differing_from_default(
    conventions: Conventions, kind: type[GraphConventions] = Conventions
) -> dict[str, Any]:
    """Conventions that differ from the default, by their names in studies.

    Args:
        conventions: conventions in force.
        kind: class of the conventions to compare.
    """
    # These are separate keys of a study.
    elsewhere = ("k", "encoding", "unlabeled")
    return {
        name: value for name, value in stated(conventions, kind).items() if name not in elsewhere
    }


def without_access(plain: dict[str, Any]) -> None:
    """Remove keys of access to language models from a study's plain form, in place."""
    models = [*plain["relation_models"], *plain["assessors"]]
    if plain["language_model"] is not None:
        models.append(plain["language_model"])
    for model in models:
        for name in ACCESS:
            del model[name]


def _check_named(location: str, value: object, of_study: Sequence[Any]) -> None:
    if value not in of_study:
        subject = f"{location} {value!r}, which in this study"
        raise ValueError(unknown_name(subject, value, map(str, of_study)))


def _check_titles(
    key: str, mend: str, titles: Iterable[Iterable[str]], taken: Iterable[str] = ()
) -> None:
    """Check that titles are unique over the entries of a list."""
    seen = set(taken)
    for position, entry_titles in enumerate(titles):
        for title in entry_titles:
            if title in seen:
                raise ValueError(
                    f"{key}[{position}] has the name {title!r} of another entry; give it another "
                    f"{mend}"
                )
            seen.add(title)
