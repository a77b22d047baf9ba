"""Sentences of findings on the failed calls of each stage.

All commands take their sentences on failed calls, and the resulting exit code, from this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from experiments.findings.findings import Findings
from factormodels.extraction.language_model.accounting import Ledger
from factormodels.extraction.stages.retrieval import METADATA_KEY as RETRIEVAL_KEY
from factormodels.nouns import counted

_SEARCHES = "retrieval"
"""Stage that asks a search service instead of a language model."""


@dataclass(frozen=True)
class StageCalls:
    """Calls that a stage made.

    Attributes:
        made: number of calls, including calls answered from a cache.
        failed: number of calls without a usable answer.
        reason: reason of the first failure.
    """

    made: int = 0
    failed: int = 0
    reason: str = ""

    def __add__(self, other: StageCalls) -> StageCalls:
        return StageCalls(
            self.made + other.made, self.failed + other.failed, self.reason or other.reason
        )


def calls_in_ledger(ledger: Ledger) -> dict[str, StageCalls]:
    """Calls of each stage of a session."""
    return {
        stage: StageCalls(usage.made, usage.failures, usage.reason)
        for stage, usage in ledger.stages.items()
    }


def calls_of_responses(
    consumed: Iterable[Mapping[str, Mapping[str, Any]]],
    metadata: Iterable[Mapping[str, Any]] = (),
) -> dict[str, StageCalls]:
    """Calls of each stage for responses, over all runs.

    Args:
        consumed: usage of each response by stage, as in `Account.take`.
        metadata: metadata of each response with a result, whose searches are counted too.
    """
    calls: dict[str, StageCalls] = {}
    for stages in consumed:
        for stage, taken in stages.items():
            failed = taken.get("failed", {"calls": taken["answers"], "failures": 0, "reason": ""})
            calls[stage] = calls.get(stage, StageCalls()) + StageCalls(
                failed["calls"], failed["failures"], failed["reason"]
            )
    for facts in metadata:
        if searched := facts.get(RETRIEVAL_KEY):
            lost = searched.get("unsearched", ())
            calls[_SEARCHES] = calls.get(_SEARCHES, StageCalls()) + StageCalls(
                searched["queries"], len(lost), next(iter(lost), "")
            )
    return calls


def failure_sentences(calls: Mapping[str, StageCalls]) -> list[str]:
    """Sentences on failed calls, one per stage: their number, their share, the first reason."""
    return [
        f"{stage}: {each.failed:,} of {counted(each.made, 'call')} failed "
        f"({each.failed / each.made:.1%}); the first: {each.reason}"
        for stage, each in calls.items()
        if each.failed
    ]


def failed_throughout(calls: Mapping[str, StageCalls]) -> bool:
    """Return True if some stage made calls and none was answered."""
    return any(each.failed == each.made > 0 for each in calls.values())


def with_failed_calls(findings: Findings, calls: Mapping[str, StageCalls]) -> Findings:
    """Findings with sentences on failed calls, incomplete if all calls of a stage failed."""
    return replace(
        findings,
        sentences=(*findings.sentences, *failure_sentences(calls)),
        incomplete=findings.incomplete or failed_throughout(calls),
    )
