"""How a set of extracted claims fails: FaStfact's taxonomy, as labels with counts and shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from calibration.tabular import TableOf
from factormodels.errors import InputError


class FailureCategory(StrEnum):
    """The three ways in which a claim set fails (FaStfact, section 3.2)."""

    UNVERIFIABLE = "unverifiable"
    REDUNDANT = "redundant"
    MISSING = "missing"


class FailureKind(StrEnum):
    """The kinds of failure of each category."""

    SUBJECTIVE = "subjective"
    TAUTOLOGY = "tautology"
    AMBIGUOUS = "ambiguous"
    WITHIN_SENTENCE = "within sentence"
    BETWEEN_SENTENCES = "between sentences"
    REMOVED = "removed"
    MISSED = "missed"

    @property
    def category(self) -> FailureCategory:
        """The category of this kind."""
        if self in (FailureKind.SUBJECTIVE, FailureKind.TAUTOLOGY, FailureKind.AMBIGUOUS):
            return FailureCategory.UNVERIFIABLE
        if self in (FailureKind.WITHIN_SENTENCE, FailureKind.BETWEEN_SENTENCES):
            return FailureCategory.REDUNDANT
        return FailureCategory.MISSING


@dataclass(frozen=True)
class FailureRow:
    """How often one kind, or one category, of failure occurs.

    Attributes:
        name: the kind or the category.
        category: the category.
        count: claims with it; a claim with several kinds of a category counts once for it.
        share: share of the extracted claims. Missing claims are not among these: their share is
            their number relative to the extracted ones, as in FaStfact's table 5.
    """

    name: str
    category: FailureCategory
    count: int
    share: float


class FailureTable(TableOf[FailureRow]):
    """Rows of failures, a tuple of `FailureRow`."""

    __slots__ = ()


def failure_table(claims: Sequence[Sequence[str]], missing: Sequence[str] = ()) -> FailureTable:
    """A row per category, each followed by its kinds, with counts and shares.

    Args:
        claims: the failures of each extracted claim: none, one or several of the unverifiable and
            redundant kinds. Kinds occur together (FaStfact, appendix C.1).
        missing: of each claim that should have been extracted, whether it was "removed" (by a
            check of relevance) or "missed" (by the extractor).

    Raises:
        InputError: for an unknown kind, a kind that is not of its list, or no claims.
    """
    if not claims:
        raise InputError("there are no extracted claims to take shares of; give at least one")
    found = [
        frozenset(_kind(name, f"claim {at}", missing=False) for name in names)
        for at, names in enumerate(claims)
    ]
    absent = [
        frozenset([_kind(name, f"missing claim {at}", missing=True)])
        for at, name in enumerate(missing)
    ]
    everything = [*found, *absent]
    rows = []
    for category in FailureCategory:
        kinds = [kind for kind in FailureKind if kind.category is category]
        count = sum(any(kind in one for kind in kinds) for one in everything)
        rows.append(FailureRow(category.value, category, count, count / len(claims)))
        for kind in kinds:
            count = sum(kind in one for one in everything)
            rows.append(FailureRow(kind.value, category, count, count / len(claims)))
    return FailureTable(rows)


def redundancy_failures(
    representative: Sequence[int], sentences: Sequence[int | None]
) -> tuple[tuple[str, ...], ...]:
    """Redundancy of each claim, from which earlier claim says the same.

    Args:
        representative: for each claim, the index of the first that says the same; its own if there
            is none.
        sentences: the sentence of each claim.

    Raises:
        InputError: for lists of different lengths, or a representative that is later or does not
            exist.
    """
    if len(representative) != len(sentences):
        raise InputError(
            f"there are {len(representative)} representatives and {len(sentences)} sentences; "
            "give one of each per claim"
        )
    labels: list[tuple[str, ...]] = []
    for claim, first in enumerate(representative):
        if not 0 <= first <= claim:
            raise InputError(
                f"the representative of claim {claim} is {first}; give the index of an earlier "
                "claim, or its own"
            )
        kinds = set()
        for earlier in range(claim):
            if first != claim and representative[earlier] == first:
                same = sentences[earlier] is not None and sentences[earlier] == sentences[claim]
                kinds.add(FailureKind.WITHIN_SENTENCE if same else FailureKind.BETWEEN_SENTENCES)
        labels.append(tuple(kind.value for kind in FailureKind if kind in kinds))
    return tuple(labels)


def _kind(name: str, where: str, *, missing: bool) -> FailureKind:
    allowed = [k for k in FailureKind if (k.category is FailureCategory.MISSING) == missing]
    try:
        kind = FailureKind(name)
    except ValueError:
        kind = None
    if kind is None or kind not in allowed:
        raise InputError(
            f"{where}: the failure {name!r} is none of {', '.join(allowed)}; use one of them"
        )
    return kind
