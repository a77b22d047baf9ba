"""The parts of a fact graph: atoms, contexts, and relations between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from factormodels.errors import InputError, unknown_name
from factormodels.nouns import counted
from factormodels.validation import validated_id, validated_probability

ATOM_PRIOR = 0.5
"""Default prior of an atom, without assumptions on the response (FactReasoner, section 3.1)."""

CONTEXT_PRIOR = 0.99
"""Default prior of a context: the knowledge source is reliable (FactReasoner, section 3.1)."""


SAMPLE_PRIOR = 0.5
"""Default prior of a sampled answer, written by a model of unknown reliability."""


class ContextKind(StrEnum):
    """The kind of a context."""

    PASSAGE = "passage"
    """A passage that was retrieved from a source."""
    SAMPLE = "sample"
    """Another answer of a language model to the question of the response."""


class ClaimLabel(StrEnum):
    """The human label of a claim."""

    SUPPORTED = "S"
    UNSUPPORTED = "NS"
    IRRELEVANT = "IR"


class ModelJudgment(StrEnum):
    """The judgment of a model about a claim."""

    TRUE = "true"
    FALSE = "false"
    NEITHER = "neither"
    """None of the above, or an answer that is neither true nor false."""


class RelationKind(StrEnum):
    """The logical relation that a relation model predicts for an ordered pair of texts.

    The last two kinds relate claims of one response: exactly one of two exclusive claims holds, and
    at least one of two co-necessary claims.
    """

    ENTAILMENT = "entailment"
    CONTRADICTION = "contradiction"
    EQUIVALENCE = "equivalence"
    NEUTRAL = "neutral"
    EXCLUSIVE = "exclusive"
    CO_NECESSITY = "co_necessity"


JUDGED_KINDS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL)
"""Possible judgments of an ordered pair of texts; an equivalence entails in both orders."""

CONFLICTS = frozenset({RelationKind.CONTRADICTION, RelationKind.EXCLUSIVE})
"""Kinds of relations whose two texts cannot both be true."""

SYMMETRIC = frozenset(RelationKind) - {RelationKind.ENTAILMENT}
"""The symmetric kinds."""

LEAST_PROBABILITY = 0.5
"""Least probability at which a relation is evidence; see `is_evidence`."""

_N_EVIDENCE_KINDS = 4
"""Number of kinds that relate evidence to claims. They come first; a distribution may end there."""

SUM_TOLERANCE = 5e-3
"""Tolerance of the sum of a distribution, since files round probabilities to two digits."""


def validated_distribution(
    value: Mapping[str, float] | tuple[float, ...] | None, where: str
) -> tuple[float, ...] | None:
    """Return probabilities of the kinds in the order of `RelationKind`, summing to one; or None.

    The result has four entries, up to neutral, if the later kinds have no probability.

    Args:
        value: probabilities by kind, where absent kinds have probability 0; or of the first four
            kinds or all kinds, in order.
        where: names the place in errors.

    Raises:
        InputError: for an unknown kind, a number outside [0, 1], or a sum other than one.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        kinds = {str(kind) for kind in RelationKind}
        for name in value:
            if name not in kinds:
                raise InputError(
                    unknown_name(f"{where}: distribution: the relation {name!r}", name, kinds)
                )
        numbers = [value.get(kind, 0.0) for kind in RelationKind]
    else:
        numbers = list(value)
    if len(numbers) not in (_N_EVIDENCE_KINDS, len(RelationKind)):
        raise InputError(
            f"{where}: the distribution has {counted(len(numbers), 'number')}; give the "
            "probabilities of "
            f"{', '.join([*RelationKind][:_N_EVIDENCE_KINDS])}, or of all kinds"
        )
    if not any(numbers[_N_EVIDENCE_KINDS:]):
        numbers = numbers[:_N_EVIDENCE_KINDS]
    shares = [validated_probability(number, f"{where}: distribution") for number in numbers]
    total = math.fsum(shares)
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InputError(
            f"{where}: the probabilities of the distribution sum to {total:g}; they must sum to 1"
        )
    # A distribution that sums to one up to rounding in the last bits is kept unchanged.
    return tuple(shares if abs(total - 1.0) < 1e-12 else (share / total for share in shares))


def is_evidence(kind: RelationKind, probability: float, least: float = LEAST_PROBABILITY) -> bool:
    """Return whether a relation of this kind and probability is evidence by itself.

    A neutral relation is not evidence, and neither is one less probable than `least`: the tables of
    *implication* and *conditional* would turn an entailment with probability 0.4 into evidence
    against its target, although no contradiction was predicted. *mixture* reads both, with their
    distributions.
    """
    return kind is not RelationKind.NEUTRAL and probability >= least


def likeliest_kind(
    entailment: float, contradiction: float, neutral: float
) -> tuple[RelationKind, float]:
    """Return the most probable of three kinds and its probability.

    If entailment and contradiction are equally likely, the kind is neutral, with the probability of
    neutral.
    """
    if entailment == contradiction or max(entailment, contradiction) < neutral:
        return RelationKind.NEUTRAL, neutral
    if entailment > contradiction:
        return RelationKind.ENTAILMENT, entailment
    return RelationKind.CONTRADICTION, contradiction


def check_stated_kind(kind: RelationKind, distribution: Sequence[float], where: str) -> None:
    """Check that the opposite of a stated kind is not likelier in the distribution beside it.

    A likelier neutral is accepted: the kind was then chosen by another threshold.

    Args:
        kind: the stated kind.
        distribution: probabilities of the kinds, in the order of `RelationKind`.
        where: names the place in the error.

    Raises:
        InputError: if contradiction is likelier than a stated entailment or equivalence, or
            entailment or equivalence is likelier than a stated contradiction.
    """
    entails, contradicts, equivalent, *_ = distribution
    supports = entails + equivalent
    if kind in (RelationKind.ENTAILMENT, RelationKind.EQUIVALENCE):
        opposite, support, other = RelationKind.CONTRADICTION, supports, contradicts
    else:
        opposite, support, other = RelationKind.ENTAILMENT, contradicts, supports
        if kind is not RelationKind.CONTRADICTION:
            return
    if other > support:
        raise InputError(
            f"{where}: the relation is {kind}, but its distribution favors {opposite} ({other:g} "
            f"against {support:g}); correct one of them"
        )


def _is_plain_probability(value: object) -> bool:
    """Return whether a value is a valid probability that needs no conversion."""
    return type(value) is float and 0.0 <= value <= 1.0


def _is_plain_distribution(value: object) -> bool:
    """Return whether a value is already what `validated_distribution` returns for four kinds."""
    return (
        type(value) is tuple
        and len(value) == _N_EVIDENCE_KINDS
        and _is_plain_probability(value[0])
        and _is_plain_probability(value[1])
        and _is_plain_probability(value[2])
        and _is_plain_probability(value[3])
        and abs(math.fsum(value) - 1.0) < 1e-12
    )


def _validated_text(value: object, where: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"{where}: {value!r} is not text; leave it empty if there is none")


@dataclass(frozen=True, slots=True)
class Atom:
    """A claim of a response: a short sentence that conveys one piece of information.

    Attributes:
        id: name of the atom, unique among the atoms and contexts of its graph.
        text: the claim, understandable out of context; empty if it cannot be distributed.
        prior: prior probability of being true, in [0, 1].
        label: the human judgment, True or False; None if there is none.
        annotation: the annotator's original label ("S", "NS", "IR", "unknown", ...).
        sentence: 1-based index of the sentence of the response that the atom comes from.
    """

    id: str
    text: str = ""
    prior: float = ATOM_PRIOR
    label: bool | None = None
    annotation: str | None = None
    sentence: int | None = None

    def __post_init__(self) -> None:
        validated_id(self.id, "an atom")
        if type(self.text) is not str:
            _validated_text(self.text, f"text of atom {self.id!r}")
        if not _is_plain_probability(self.prior):
            prior = validated_probability(self.prior, f"prior of atom {self.id!r}")
            object.__setattr__(self, "prior", prior)
        if self.label is not None and not isinstance(self.label, bool):
            raise InputError(
                f"label of atom {self.id!r}: {self.label!r} is neither true nor false; "
                "leave it out if there is no judgment"
            )


@dataclass(frozen=True, slots=True)
class Context:
    """A passage of evidence that was retrieved for one or more atoms, or a sampled answer.

    Attributes:
        id: name of the context, unique among the atoms and contexts of its graph.
        text: the passage; empty if it cannot be distributed.
        prior: prior probability of being true, in [0, 1].
        title: title of the page it comes from.
        link: address of the page.
        snippet: extract shown by the search engine.
        retrieved_for: ids of the atoms it was retrieved for (its provenance), in order.
        key: identity of the passage; contexts with equal keys are duplicates. If None, contexts
            with equal normalized texts are duplicates, except sampled answers, each of which
            counts.
        note: free-form remark, such as why the passage misleads.
        kind: whether it is a passage or a sampled answer.
    """

    id: str
    text: str = ""
    prior: float = CONTEXT_PRIOR
    title: str = ""
    link: str = ""
    snippet: str = ""
    retrieved_for: tuple[str, ...] = ()
    key: str | None = None
    note: str = ""
    kind: ContextKind = ContextKind.PASSAGE

    def __post_init__(self) -> None:
        validated_id(self.id, "a context")
        if type(self.text) is not str:
            _validated_text(self.text, f"text of context {self.id!r}")
        if not _is_plain_probability(self.prior):
            prior = validated_probability(self.prior, f"prior of context {self.id!r}")
            object.__setattr__(self, "prior", prior)
        if type(self.kind) is not ContextKind:
            object.__setattr__(self, "kind", _context_kind(self.kind, self.id))
        if isinstance(self.retrieved_for, str):
            raise InputError(
                f"context {self.id!r}: retrieved_for is the text {self.retrieved_for!r}; "
                "give a list of ids of atoms"
            )
        if type(self.retrieved_for) is not tuple:
            object.__setattr__(self, "retrieved_for", tuple(self.retrieved_for))

    @property
    def content(self) -> str:
        """Snippet and text of the context, joined by an empty line.

        A snippet that the text repeats is left out.
        """
        snippet, text = self.snippet.strip(), self.text.strip()
        if not snippet or _plain(snippet.rstrip(" .\N{HORIZONTAL ELLIPSIS}")) in _plain(text):
            return self.text
        return f"{snippet}\n\n{text}" if text else snippet


def _context_kind(value: str, context: str) -> ContextKind:
    try:
        return ContextKind(value)
    except ValueError:
        raise InputError(
            unknown_name(f"context {context!r}: the kind {value!r}", value, ContextKind)
        ) from None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True)
class Relation:
    """A predicted logical relation from one text to another.

    For an entailment, `source` entails `target`. A relation with a probability below 0.5 is kept
    unchanged; encodings that read only its kind and probability treat it as neutral (see
    `is_evidence`).

    Attributes:
        source: id of the first text (for evidence: the context).
        target: id of the second text (for evidence: the atom).
        kind: the relation; a neutral one makes no factor unless it has a distribution and the
            encoding reads it.
        probability: the relation model's probability of `kind`, in [0, 1].
        distribution: the relation model's probabilities of all kinds, by kind or in the order of
            `RelationKind` (kinds after neutral may be left out); None if only the probability of
            `kind` is stated. If `probability` differs from the entry of `kind`, the other kinds
            share the remainder in proportion to their entries.
        uncorrected: distribution before the relation model's label bias was corrected; None if
            nothing was corrected. No posterior depends on it.
    """

    source: str
    target: str
    kind: RelationKind
    probability: float
    distribution: tuple[float, ...] | None = None
    uncorrected: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        validated_id(self.source, "the source of a relation")
        validated_id(self.target, "the target of a relation")
        # Fast path: millions of valid relations are read.
        if (
            self.source != self.target
            and type(self.kind) is RelationKind
            and _is_plain_probability(self.probability)
            and (self.distribution is None or _is_plain_distribution(self.distribution))
            and (self.uncorrected is None or _is_plain_distribution(self.uncorrected))
        ):
            return
        where = f"relation {self.source!r} -> {self.target!r}"
        if self.source == self.target:
            raise InputError(f"{where} refers to itself; a relation joins two different texts")
        try:
            kind = RelationKind(self.kind)
        except ValueError:
            raise InputError(
                unknown_name(f"{where}: the relation {self.kind!r}", self.kind, RelationKind)
            ) from None
        object.__setattr__(self, "kind", kind)
        probability = validated_probability(self.probability, where)
        object.__setattr__(self, "probability", probability)
        distribution = validated_distribution(self.distribution, where)
        object.__setattr__(self, "distribution", distribution)
        uncorrected = validated_distribution(self.uncorrected, f"{where}, uncorrected")
        object.__setattr__(self, "uncorrected", uncorrected)


def evidence_or_neutral(relation: Relation, least: float = LEAST_PROBABILITY) -> Relation:
    """Return the relation, or a neutral relation in its place if it is less probable than `least`.

    The neutral relation keeps the distribution, which *mixture* reads. Its probability is the
    distribution's entry for neutral or, without a distribution, 1 minus the probability of the
    relation.
    """
    if relation.kind is RelationKind.NEUTRAL or relation.probability >= least:
        return relation
    shares = relation.distribution
    neutral = 1.0 - relation.probability if shares is None else shares[_N_EVIDENCE_KINDS - 1]
    return replace(relation, kind=RelationKind.NEUTRAL, probability=neutral)
