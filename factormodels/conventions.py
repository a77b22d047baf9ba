"""Conventions in which papers and tools differ: priors, passages, K, logarithms.

Two tools that implement FactReasoner can compute different posteriors and measures from the same
relations, each correctly under its own conventions. This module names the conventions, so that a
result can state them and a difference can be traced to one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Literal

from factormodels.claims import CONTEXT_PRIOR
from factormodels.encodings import CONDITIONAL, DEFAULT_ENCODING
from factormodels.passage_sources import OTHERS, PassageKey, parse_priors

Equivalence = Literal["smaller", "larger"]
SharedPassage = Literal["copied", "one"]
WeakRelations = Literal["left-out", "kept"]
F1 = Literal["pooled", "by-response"]
Logarithm = Literal["10", "e", "2"]
Irrelevant = Literal["counted", "left-out", "false"]
Unlabeled = Literal["exclude", "false"]

RELEASE_CONTEXT_PRIOR = 0.9
"""Prior of passages in FactReasoner's release 0.8; the paper has `claims.CONTEXT_PRIOR`."""

DEFAULT_PRIORS = (CONTEXT_PRIOR, RELEASE_CONTEXT_PRIOR)
"""Priors that tools write for passages of unknown reliability. A convention replaces them; other
priors, such as priors scaled by a summarizer, are statements and are kept."""


@dataclass(frozen=True)
class GraphConventions:
    """Conventions by which a fact graph becomes a model; posteriors depend on each of them.

    Attributes:
        context_prior: prior of passages without a stated prior; None keeps the priors in the data.
        equivalence: probability of the equivalence that two entailments make in FR3, the smaller or
            the larger of the two.
        shared_passage: treatment in FR1 of a passage that was retrieved for several claims: a
            copied variable for each claim, or one variable that all claims share.
        prior: priors by source of passages without a stated prior, as
            `factormodels.passage_sources.priors_text` writes them; None without such priors.
        prior_by: way in which these priors identify the source of a passage.
        weak_relations: whether relations less probable than 1/2 are left out or kept as factors. A
            factor that is kept moves its claim in the direction opposite to the relation.
    """

    context_prior: float | None = None
    equivalence: Equivalence = "smaller"
    shared_passage: SharedPassage = "copied"
    weak_relations: WeakRelations = "left-out"
    prior: str | None = None
    prior_by: PassageKey = "domain"


@dataclass(frozen=True)
class Conventions(GraphConventions):
    """All conventions of a result: conventions of its graphs and of its measures.

    Attributes:
        encoding: name of the encoding of relations as tables, from `factormodels.encodings`.
        k: choice of K in F1@K, an argument of `calibration.scores.measures.choose_k`.
        f1: whether F1 is computed from all claims pooled, or as the mean over responses.
        logarithm: base of the logarithms of E and of surprisal.
        irrelevant_claims: treatment of claims labeled irrelevant: counted in the measures without
            labels and left out of the others, left out of all, or counted as false.
        unlabeled: treatment of claims without a label in measures that need one: excluded, or
            counted as false, so that the Brier score is divided by the number of all claims.
    """

    encoding: str = DEFAULT_ENCODING
    k: int | str = "median"
    f1: F1 = "pooled"
    logarithm: Logarithm = "10"
    irrelevant_claims: Irrelevant = "counted"
    unlabeled: Unlabeled = "exclude"

    @property
    def graph(self) -> GraphConventions:
        """Conventions that posteriors depend on."""
        names = [field.name for field in fields(GraphConventions)]
        return GraphConventions(**{name: getattr(self, name) for name in names})


DEFAULT = Conventions()
"""The default conventions."""

PRESETS: Mapping[str, Conventions] = MappingProxyType(
    {
        # FactReasoner, section 3.1 (priors), table 1 (encoding; the factor of the most likely
        # relation, however small its probability), table 2 (K, labeled claims), tables 10 to 19
        # (means over responses), section 3.2 (E at 1/2 is 0.1505, hence base 10).
        "paper": Conventions(
            context_prior=CONTEXT_PRIOR,
            weak_relations="kept",
            f1="by-response",
            irrelevant_claims="left-out",
        ),
        # The package fact-reasoner 0.8.0: PRIOR_PROB_CONTEXT, _reconcile_ctx_pair, one node per
        # context id, tables with priors, K of half the atoms, natural logarithms, and every claim
        # false that is not labeled S: avg_brier is a sum over all claims, divided by all.
        "fact-reasoner-0.8": Conventions(
            context_prior=RELEASE_CONTEXT_PRIOR,
            equivalence="larger",
            shared_passage="one",
            weak_relations="kept",
            encoding=CONDITIONAL,
            k="half-down",
            f1="by-response",
            logarithm="e",
            irrelevant_claims="false",
            unlabeled="false",
        ),
    }
)
"""Conventions of a paper or a release, by name."""

_MOST_SOURCES = 4
"""Maximum number of sources that a note lists with their priors."""

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "context_prior": "prior of passages",
        "equivalence": "equivalences",
        "shared_passage": "shared passages",
        "weak_relations": "relations below 1/2",
        "prior": "priors by source",
        "prior_by": "sources of passages",
        "encoding": "encoding",
        "k": "K",
        "f1": "mean of F1",
        "logarithm": "base of logarithms",
        "irrelevant_claims": "irrelevant claims",
        "unlabeled": "unlabeled claims",
    }
)
"""Description of each convention in the notes of tables."""

_MEANINGS: Mapping[str, Mapping[object, str]] = MappingProxyType(
    {
        "equivalence": {
            "smaller": "equivalences as probable as the smaller entailment",
            "larger": "equivalences as probable as the larger entailment",
        },
        "shared_passage": {
            "copied": "passages of several claims copied",
            "one": "passages of several claims shared",
        },
        "weak_relations": {
            "left-out": "relations below 1/2 left out",
            "kept": "relations below 1/2 kept",
        },
        "prior_by": {
            "domain": "sources of passages by domain",
            "source": "sources of passages by name",
        },
        "f1": {"pooled": "F1 of all claims pooled", "by-response": "F1 as a mean over responses"},
        "unlabeled": {
            "exclude": "unlabeled claims left out where a label is needed",
            "false": "unlabeled claims false",
        },
        "irrelevant_claims": {
            "counted": "irrelevant claims counted where no label is needed",
            "left-out": "irrelevant claims left out",
            "false": "irrelevant claims false",
        },
    }
)


def meaning_of(name: str, value: object) -> str:
    """Description of a convention's value for a table's note."""
    if name == "context_prior":
        return "priors of passages as in the data" if value is None else f"passages at {value:g}"
    if name == "prior":
        return "no priors by source" if value is None else _priors_in_words(str(value))
    if name == "encoding":
        return f"encoding {value}"
    if name == "k":
        how = {"median": "the median number of claims", "half": "half of a response's claims"}
        how["half-down"] = "half of a response's claims, rounded down"
        return f"K {how.get(str(value), str(value))}"
    if name == "logarithm":
        return "natural logarithms" if value == "e" else f"logarithms to base {value}"
    return _MEANINGS[name][value]


def _priors_in_words(text: str) -> str:
    """Return priors by source in words, the first few of them."""
    priors = sorted(parse_priors(text).items())
    named = [
        f"{'others' if source == OTHERS else source} at {value:g}"
        for source, value in priors[:_MOST_SOURCES]
    ]
    more = len(priors) - len(named)
    return f"passages of {', '.join(named)}" + (f" and {more:,} more" if more else "")


def stated(
    conventions: GraphConventions, kind: type[GraphConventions] = Conventions
) -> dict[str, object]:
    """Return the conventions that differ from the defaults, by name.

    Args:
        conventions: conventions in effect.
        kind: class of the conventions to compare.
    """
    values = {each.name: getattr(conventions, each.name) for each in fields(kind)}
    return {name: value for name, value in values.items() if value != getattr(DEFAULT, name)}


def differing(first: Conventions, second: Conventions) -> Iterator[str]:
    """Yield the names of the conventions that differ."""
    for field in fields(Conventions):
        if getattr(first, field.name) != getattr(second, field.name):
            yield field.name


def switched(base: Conventions, other: Conventions, name: str) -> Conventions:
    """Return the conventions with a single convention replaced by its value in `others`."""
    return replace(base, **{name: getattr(other, name)})
