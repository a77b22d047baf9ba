"""Cost of assessors as a function of a response's size: language model calls and searches.

Sources: FaStfact, table 6, for FactScore, SAFE, VeriScore and FaStfact; FactReasoner, section 4,
for FR1, FR2 and FR3, whose orders of magnitude are counted here pair by pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from factormodels.errors import InputError

CLAIMS_PER_SENTENCE = 4.2
"""Claims per sentence: FActScore's annotators found 974 claims in 232 sentences of 31 biographies.
"""


@dataclass(frozen=True)
class Load:
    """Load of a response on an assessor.

    Attributes:
        sentences: N.
        claims: M (n in FactReasoner).
        queries: q, searches per claim.
        unsure: p, share of claims that FaStfact's pre-verification does not settle.
        stride: w, sentences per extraction call (only FaStfact and FactReasoner).
        per_claim: k, contexts retrieved per claim.
        contexts: m, distinct contexts of the response; None if all k n are distinct.
        revised: True if FactReasoner's Reviser rewrites each claim, with one call per claim.

    Raises:
        InputError: for a number below 0, a share outside [0, 1], or a stride below 1.
    """

    sentences: int
    claims: int
    queries: int = 1
    unsure: float = 1.0
    stride: int = 1
    per_claim: int = 3
    contexts: int | None = None
    revised: bool = True

    def __post_init__(self) -> None:
        least = dict.fromkeys(("sentences", "claims", "queries", "per_claim", "contexts"), 0)
        least["stride"] = 1
        for name, lowest in least.items():
            value = getattr(self, name)
            if value is not None and value < lowest:
                raise InputError(f"{name} is {value}; give a number from {lowest}")
        if not 0 <= self.unsure <= 1:
            raise InputError(f"unsure is {self.unsure}; give a share between 0 and 1")

    @property
    def distinct(self) -> int:
        """Number m of distinct contexts; k n unless it is known."""
        return self.per_claim * self.claims if self.contexts is None else self.contexts


@dataclass(frozen=True)
class MethodCost:
    """Calls and searches of one assessment.

    Attributes:
        extracting: calls that extract or revise claims or write searches.
        verifying: calls that judge claims, or relations.
        searches: queries to a search engine; a local retriever counts none.
    """

    extracting: float
    verifying: float
    searches: float

    @property
    def calls(self) -> float:
        """All calls of the language model."""
        return self.extracting + self.verifying


def factscore(load: Load) -> MethodCost:
    """FActScore: N extracting and M verifying calls, and no search, since passages are local."""
    return MethodCost(load.sentences, load.claims, 0)


def safe(load: Load) -> MethodCost:
    """SAFE: N + 2M + qM and M calls, and qM searches: claims are revised, checked, and each
    query is written by a call."""
    queries = load.queries * load.claims
    return MethodCost(load.sentences + 2 * load.claims + queries, load.claims, queries)


def veriscore(load: Load) -> MethodCost:
    """VeriScore: N extracting and M verifying calls, and qM searches."""
    return MethodCost(load.sentences, load.claims, load.queries * load.claims)


def fastfact(load: Load) -> MethodCost:
    """FaStfact: N/w (rounded up) extracting and pM verifying calls, and pqM searches."""
    pruned = load.unsure * load.claims
    return MethodCost(math.ceil(load.sentences / load.stride), pruned, load.queries * pruned)


def fr1(load: Load) -> MethodCost:
    """FR1: N/w + n extracting calls, kn pairs of claim and context, and qn searches."""
    return _factreasoner(load, load.per_claim * load.claims)


def fr2(load: Load) -> MethodCost:
    """FR2: N/w + n extracting calls, nm pairs of claim and context, and qn searches."""
    return _factreasoner(load, load.claims * load.distinct)


def fr3(load: Load) -> MethodCost:
    """FR3: as FR2, and both orders of every two contexts, m(m - 1) more pairs."""
    m = load.distinct
    return _factreasoner(load, load.claims * m + m * (m - 1))


METHODS: Mapping[str, Callable[[Load], MethodCost]] = MappingProxyType(
    {
        "FactScore": factscore,
        "SAFE": safe,
        "VeriScore": veriscore,
        "FaStfact": fastfact,
        "FR1": fr1,
        "FR2": fr2,
        "FR3": fr3,
    }
)
"""The cost of each assessor."""


def _factreasoner(load: Load, pairs: int) -> MethodCost:
    extracting = math.ceil(load.sentences / load.stride) + load.revised * load.claims
    return MethodCost(extracting, pairs, load.queries * load.claims)
