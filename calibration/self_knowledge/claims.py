"""Claims as arrays, grouped by response, sentence and position."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.grouping import Grouping, group_by_response
from calibration.validation import Floats, Integers, member_named, whole_number
from factormodels.claims import ClaimLabel, ModelJudgment
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.io.claim_records import ClaimRecord, Setting

Codes = NDArray[np.int8]

SUPPORTED, UNSUPPORTED, IRRELEVANT = range(3)
MISSING, FALSE, TRUE, NEITHER = range(-1, 3)

_LABEL_CODES = {
    ClaimLabel.SUPPORTED: SUPPORTED,
    ClaimLabel.UNSUPPORTED: UNSUPPORTED,
    ClaimLabel.IRRELEVANT: IRRELEVANT,
}
_JUDGMENT_CODES: Mapping[ModelJudgment | None, int] = {
    None: MISSING,
    ModelJudgment.FALSE: FALSE,
    ModelJudgment.TRUE: TRUE,
    ModelJudgment.NEITHER: NEITHER,
}

_MOST_SENTENCES = 10**9
"""Maximum number of sentences of a response; sentences are numbered over all responses."""


class Neither(StrEnum):
    """Treatment of the judgment "neither"."""

    INCORRECT = "incorrect"
    """Count it as judged incorrect, as the paper counts "none of the above" (sections 3, 4)."""
    EXCLUDE = "exclude"
    """Count it as no judgment, and leave the claim out in that setting."""


class Average(StrEnum):
    """Unit over which a share in a bin of positions is averaged."""

    SENTENCE = "sentence"
    """The mean over sentences of the share within each sentence (macro average)."""
    CLAIM = "claim"
    """The share among all claims of the bin (pooled)."""


@dataclass(frozen=True, eq=False)
class Claims:
    """Claims as columns.

    Attributes:
        grouping: grouping of the claims by response.
        sentence: int64 (n_claims,), sentence of each claim, numbered from 0 over all responses.
        sentence_response: int64 (n_sentences,), the response of each sentence that has claims.
        sentence_index: int64 (n_sentences,), index i of each sentence in its response, from 1.
        sentence_total: int64 (n_sentences,), number n of sentences of its response.
        label: int8 (n_claims,), 0 supported, 1 unsupported, 2 irrelevant.
        judgments: int8 (n_claims,) by setting: 1 true, 0 false, 2 neither, -1 none.
    """

    grouping: Grouping
    sentence: Integers
    sentence_response: Integers
    sentence_index: Integers
    sentence_total: Integers
    label: Codes
    judgments: Mapping[Setting, Codes]

    @property
    def responses(self) -> tuple[Hashable, ...]:
        """The response ids, in order of first appearance."""
        return tuple(self.grouping.responses)

    @property
    def n_responses(self) -> int:
        """The number of responses."""
        return len(self.grouping.responses)

    def bins(self, n_positions: int) -> Integers:
        """Bin of relative position of each sentence, (n_sentences,), from 0.

        For m bins, bin b contains positions i/n in (b/m, (b+1)/m], so that the last sentence, at
        100%, is in the last bin. Integer arithmetic avoids rounding at edges.
        """
        return np.asarray((n_positions * self.sentence_index - 1) // self.sentence_total)

    def judged_correct(self, setting: Setting, neither: str) -> tuple[Floats, NDArray[np.bool_]]:
        """Indicator of judged correct, float64 (n,), and mask of claims with a judgment, (n,)."""
        codes = self.judgments[setting]
        present = codes != MISSING
        if member_named(Neither, neither, "neither") is Neither.EXCLUDE:
            present &= codes != NEITHER
        return (codes == TRUE).astype(np.float64), present


def as_claims(records: Claims | Iterable[ClaimRecord]) -> Claims:
    """Convert records to `Claims`; an instance of `Claims` is returned unchanged.

    Raises:
        InputError: if there is no record, a claim occurs twice, or a response has inconsistent or
            too large numbers of sentences.
    """
    if isinstance(records, Claims):
        return records
    listed = list(records)
    if not listed:
        raise InputError("records is empty; give at least one claim")
    for position, record in enumerate(listed):
        if not isinstance(record, ClaimRecord):
            raise InputError(
                f"records[{position}] is of type {type(record).__name__}; give ClaimRecord"
            )
    seen: set[tuple[str, str]] = set()
    for record in listed:
        key = (record.response, record.claim)
        if key in seen:
            raise InputError(
                f"response {record.response!r} has the claim {record.claim!r} twice; "
                "give each claim once"
            )
        seen.add(key)
        if record.sentences > _MOST_SENTENCES:
            raise InputError(
                f"response {record.response!r} has {shown(record.sentences)} sentences; give at "
                f"most {_MOST_SENTENCES:,}"
            )
    return claims_of_columns(
        [record.response for record in listed],
        [record.sentence for record in listed],
        [record.sentences for record in listed],
        np.array([_LABEL_CODES[record.label] for record in listed], dtype=np.int8),
        {
            setting: np.array(
                [_JUDGMENT_CODES[record.judgment(setting)] for record in listed], dtype=np.int8
            )
            for setting in Setting
        },
    )


def claims_of_columns(
    responses: Any,
    sentence: Any,
    sentences: Any,
    label: Codes,
    judgments: Mapping[Setting, Codes],
) -> Claims:
    """Build `Claims` from columns with its codes, which are not checked.

    Raises:
        InputError: if a response has inconsistent numbers of sentences.
    """
    grouping = group_by_response(responses)
    index, totals = np.asarray(sentence, dtype=np.int64), np.asarray(sentences, dtype=np.int64)
    length = np.zeros(len(grouping.responses), dtype=np.int64)
    length[grouping.index] = totals
    differing = np.flatnonzero(length[grouping.index] != totals)
    if differing.size:
        claim = int(differing[0])
        response = int(grouping.index[claim])
        raise InputError(
            f"response {grouping.responses[response]!r} has {int(totals[claim])} and "
            f"{int(length[response])} sentences; give the correct number"
        )
    longest = int(totals.max()) + 1
    keys, inverse = np.unique(grouping.index * longest + index, return_inverse=True)
    return Claims(
        grouping=grouping,
        sentence=inverse.astype(np.int64).reshape(-1),
        sentence_response=keys // longest,
        sentence_index=keys % longest,
        sentence_total=length[keys // longest],
        label=label,
        judgments=dict(judgments),
    )


def position_names(n_positions: int) -> tuple[str, ...]:
    """Names of the bins of positions, such as 0-20%, in order.

    Raises:
        InputError: if `n_positions` is not a whole number of at least 1.
    """
    count = whole_number(n_positions, "n_positions", 1)
    edges = [100 * edge / count for edge in range(count + 1)]
    return tuple(f"{low:.3g}-{high:.3g}%" for low, high in pairwise(edges))
