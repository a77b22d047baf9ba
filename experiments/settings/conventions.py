"""Options for conventions of papers and tools: together, by the name of a paper, or one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from experiments.settings import Option, Settings
from experiments.settings.limits import K_MEANING, KPolicy, Probability
from experiments.settings.source_priors import LearnedWith, as_prior, is_number, learned_with
from factormodels.conventions import (
    DEFAULT,
    F1,
    PRESETS,
    Conventions,
    Equivalence,
    Irrelevant,
    Logarithm,
    SharedPassage,
    Unlabeled,
    WeakRelations,
    meaning_of,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted, is_or_are
from factormodels.passage_sources import OTHERS, PassageKey, name_in, parse_priors
from factormodels.variants import has_default_prior, passage_source

_MOST_NAMED = 4
"""Sources that a sentence names."""

if TYPE_CHECKING:
    PresetName = str
else:
    PresetName = Literal[tuple(PRESETS)]


class NamedConventions(Settings):
    """Conventions.

    The option that names a set of conventions.
    """

    like: Annotated[PresetName | None, Option("NAME", "as")] = None
    """Declare the conventions of a paper or a tool: paper (FactReasoner's) or fact-reasoner-0.8
    (its release). Each also has its own option."""

    def declared(self, **more: Any) -> Conventions:
        """The conventions in force.

        Args:
            more: conventions that other options declare, by name; None for none.
        """
        base = DEFAULT if self.like is None else PRESETS[self.like]
        given = {
            name: getattr(self, name, None) for name in Conventions.__dataclass_fields__
        } | more
        # Other commands have an encoding even if none is declared.
        if "encoding" not in self.model_fields_set and "encoding" not in more:
            given["encoding"] = None
        if given["prior_by"] is not None and (given["prior"] is None or is_number(given["prior"])):
            raise InputError(
                "--prior-by applies to names in --prior, and there are none; give --prior NAME=P"
            )
        if given["prior"] is not None and is_number(given["prior"]):
            if given["context_prior"] is not None:
                raise InputError("--prior and --context-prior set the same number; leave one out")
            given |= {"context_prior": float(given["prior"]), "prior": None}
        return replace(base, **{name: value for name, value in given.items() if value is not None})


class GraphConventionSettings(NamedConventions):
    """Conventions of graphs.

    Conventions that turn passages and relations into a model.
    """

    context_prior: Annotated[Probability | None, Option("P")] = None
    """Prior of passages without a stated one: .99 in the paper, .9 in the release."""

    equivalence: Annotated[Equivalence | None, Option("WHICH")] = None
    """Probability of an equivalence of two passages: the smaller or larger of the two entailment
    probabilities."""

    shared_passage: Annotated[SharedPassage | None, Option("HOW")] = None
    """Treatment in FR1 of a passage linked to several claims: copied for each claim, or one
    variable."""

    weak_relations: Annotated[WeakRelations | None, Option("HOW")] = None
    """Relations with probability below 1/2: left-out, or kept as in the release."""


class SourcePriorSettings(GraphConventionSettings):
    """Priors of passages by source."""

    prior: Annotated[
        str | None,
        BeforeValidator(as_prior),
        WithJsonSchema({"type": ["number", "string", "object", "null"]}),
        Option(
            "P|NAME=P|TABLE",
            repeatable=True,
            python="float | str | os.PathLike[str] | Mapping[str, float] | None",
        ),
    ] = None
    """Prior of passages without a stated one: a number; or by source, as in --prior
    wikipedia.org=.95 --prior blog=.6 (* for all others); or a table with the columns source and
    prior."""

    prior_by: PassageKey | None = None
    """Meaning of names in --prior: the domain of a passage's address (a name includes its
    subdomains), the source in its record (otherwise the domain), or the kind (passage). Sampled
    answers are always named sample."""

    _learned_with: LearnedWith | None = PrivateAttr(default=None)
    """Encoding that a table in --prior states for its priors."""

    @model_validator(mode="wrap")
    @classmethod
    def _with_stated_encoding(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(given)
        if isinstance(given, Mapping) and made.prior is not None and not is_number(made.prior):
            made._learned_with = learned_with(given.get("prior"))
            # A study has several encodings, which it checks itself. The command line makes settings
            # again from these, in which the table is no longer named.
            if "encoding" in cls.model_fields:
                made.check_encodings([made.declared().encoding])
        return made

    def check_encodings(self, encodings: Iterable[str]) -> None:
        """Check that priors learned with one encoding are used with the same.

        Raises:
            InputError: for another encoding.
        """
        learned = self._learned_with
        if learned is None:
            return
        if other := next((each for each in encodings if each != learned.encoding), None):
            raise InputError(
                f"{learned.location}: the priors were learned with the encoding {learned.encoding} "
                f"and have another effect with {other}; use the encoding {learned.encoding}, or "
                "delete this column"
            )


class ScoreConventionSettings(NamedConventions):
    """Conventions of scores.

    Conventions that scores of claims depend on.
    """

    f1: Annotated[F1 | None, Option("HOW")] = None
    """F1 over pooled claims, or by-response, as a mean over responses."""

    logarithm: Annotated[Logarithm | None, Option("BASE")] = None
    """Base of the logarithms of E and of surprisal: 10, e or 2."""

    irrelevant_claims: Annotated[Irrelevant | None, Option("HOW")] = None
    """Claims labeled irrelevant: counted where no label is needed, left-out, or false."""


class MeasureConventionSettings(ScoreConventionSettings):
    """Conventions of measures.

    Conventions that scores and measures of responses depend on.
    """

    k: Annotated[KPolicy | None, Field(description=K_MEANING), Option("K")] = None

    unlabeled: Annotated[Unlabeled | None, Option("HOW")] = None
    """Claims without a label in measures that need one: exclude, or false."""


class ConventionSettings(GraphConventionSettings, MeasureConventionSettings):
    """Conventions of papers and tools."""


def graph_names(variants: Iterable[str]) -> tuple[str, ...]:
    """Names of the conventions that posteriors of some views depend on."""
    seen = set(variants)
    of_views = {"equivalence": "FR3", "shared_passage": "FR1"}
    return (
        "context_prior",
        "prior",
        "prior_by",
        *(name for name, view in of_views.items() if view in seen),
        "weak_relations",
        "encoding",
    )


def note_of(conventions: Conventions, names: Sequence[str]) -> str:
    """Note of a table on the conventions of its numbers.

    Args:
        conventions: all conventions in force.
        names: conventions that the table's numbers depend on; if empty, there is no sentence.
    """
    if not names:
        return ""
    # Without priors by source nothing depends on what identifies a source.
    silent = {"prior", "prior_by"} if conventions.prior is None else {"prior_by"}
    values = {name: getattr(conventions, name) for name in names if name not in silent}
    preset = next(
        (
            known
            for known, each in PRESETS.items()
            if all(getattr(each, name) == value for name, value in values.items())
        ),
        "",
    )
    paper = " of FactReasoner's paper (Marinescu et al. 2025)"
    whose = {"": "", "paper": paper}.get(preset, f" of {preset}")
    meanings = ", ".join(meaning_of(name, value) for name, value in values.items())
    return f"Conventions{whose}: {meanings}."


def own_prior_remarks(graphs: Iterable[FactGraph], conventions: Conventions) -> tuple[str, ...]:
    """Sentences on passages whose stated priors do not change, and on sources without use.

    Args:
        graphs: the responses.
        conventions: conventions in force.
    """
    if conventions.context_prior is None and conventions.prior is None:
        return ()
    graphs = tuple(graphs)
    by_source = _source_remarks(graphs, conventions)
    stated = n_passages = 0
    for graph in graphs:
        n_passages += len(graph.contexts)
        stated += sum(not has_default_prior(context) for context in graph.contexts)
    if not stated:
        return by_source
    return (
        *by_source,
        f"{stated:,} of {counted(n_passages, 'passage')} {is_or_are(stated)} stated with their "
        "own prior, which is kept.",
    )


def _source_remarks(graphs: Sequence[FactGraph], conventions: Conventions) -> tuple[str, ...]:
    """Sentences on passages whose source has no prior, and on priors that no passage has."""
    if conventions.prior is None:
        return ()
    priors, by = parse_priors(conventions.prior), conventions.prior_by
    used: Counter[str | None] = Counter(
        name_in(passage_source(context, graph, by), by, priors)
        for graph in graphs
        for context in graph.contexts
        if has_default_prior(context)
    )
    sentences = []
    if left := used[None]:
        sentences.append(
            f"{left:,} of {counted(used.total(), 'passage')} {is_or_are(left)} of sources that "
            "--prior does not name, and keep their prior; use * for all others."
        )
    unused = [name for name in priors if name not in used and name != OTHERS]
    if unused:
        some = ", ".join(unused[:_MOST_NAMED])
        more = f" and {len(unused) - _MOST_NAMED:,} more" if len(unused) > _MOST_NAMED else ""
        sentences.append(f"No passage is of these sources in --prior: {some}{more}.")
    return tuple(sentences)
