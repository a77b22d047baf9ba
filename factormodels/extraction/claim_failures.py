"""What is wrong with extracted claims: a judge of unverifiable, redundant and missing ones.

Source: FaStfact, section 3, figure 5, table 5 and appendix L; the prompts are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.pipeline import Stage
from factormodels.extraction.stages.asking import Question, ask_all
from factormodels.fact_graph import FactGraph

METADATA_KEY = "claim_failures"
STAGE = "claim failures"
PROMPTS = ("claim_failures", "missing_claims")

CATEGORIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unverifiable": ("subjective", "tautology", "ambiguous"),
        "redundant": ("intra-sentence", "inter-sentence"),
    }
)
"""Failures of claims that are there, by the category that figure 5 has them under."""

MISSING = ("relevance", "extractor")
"""Why claims are missing (table 5): removed as irrelevant, or missed by the extractor."""

_FAILURES = tuple(name for names in CATEGORIES.values() for name in names)
_CLAIMS_AT_ONCE = 40
_TOKENS_PER_CLAIM = 40
_MISSING_TOKENS = 2000


@dataclass(frozen=True)
class ClaimFailures:
    """What a judge says of the claims of a response.

    Attributes:
        of_claims: failures by id of claim, none where it is as it should be; a claim that the judge
            did not answer on is not there.
        missing_claims: (text, reason) of claims that are missing; None where nobody knows.
        failures: why an answer is missing.
    """

    of_claims: Mapping[str, tuple[str, ...]]
    missing_claims: tuple[tuple[str, str], ...] | None
    failures: tuple[str, ...]


def judge_claims(graph: FactGraph, model: LanguageModel) -> ClaimFailures:
    """Failures of the claims of a response: a call for every forty of them, and one for what lacks.

    Args:
        graph: the response's text and its claims.
        model: the judge.
    """
    parts = [
        graph.atoms[first : first + _CLAIMS_AT_ONCE]
        for first in range(0, len(graph.atoms), _CLAIMS_AT_ONCE)
    ]
    questions = [
        Question(
            {"text": graph.response, "claims": _listed([atom.text for atom in part])},
            partial(_read_failures, count=len(part)),
            _TOKENS_PER_CLAIM * len(part),
        )
        for part in parts
    ]
    of_claims: dict[str, tuple[str, ...]] = {}
    failures = []
    for part, found in zip(parts, ask_all(model, PROMPTS[0], STAGE, questions), strict=True):
        if isinstance(found, Failure):
            failures.append(found.reason)
            continue
        of_claims |= {atom.id: own for atom, own in zip(part, found, strict=True)}
    lacking: Question[tuple[tuple[str, str], ...]] = Question(
        {"text": graph.response, "claims": _listed([atom.text for atom in graph.atoms])},
        _read_missing,
        _MISSING_TOKENS,
    )
    (missing,) = ask_all(model, PROMPTS[1], STAGE, [lacking])
    if isinstance(missing, Failure):
        failures.append(missing.reason)
        return ClaimFailures(of_claims, None, tuple(failures))
    return ClaimFailures(of_claims, missing, tuple(failures))


def claim_failures_stage(model: LanguageModel) -> Stage:
    """Stage that keeps `judge_claims` in `metadata["claim_failures"]`."""

    def stage(graph: FactGraph) -> FactGraph:
        found = judge_claims(graph, model)
        told: dict[str, Any] = {
            "model": model.name,
            "claims": {claim: list(own) for claim, own in found.of_claims.items()},
            "missing_claims": None
            if found.missing_claims is None
            else [list(one) for one in found.missing_claims],
            "failures": list(found.failures),
        }
        return replace(graph, metadata={**graph.metadata, METADATA_KEY: told})

    return stage


def _listed(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))


def _read_failures(value: Any, count: int) -> tuple[tuple[str, ...], ...] | None:
    """Failures of every claim, in order; None unless there are those of each."""
    if not isinstance(value, list) or len(value) != count:
        return None
    found = []
    for number, one in enumerate(value, 1):
        if not isinstance(one, dict) or one.get("claim") != number:
            return None
        own = one.get("failures")
        if not isinstance(own, list) or any(name not in _FAILURES for name in own):
            return None
        found.append(tuple(name for name in _FAILURES if name in own))
    return tuple(found)


def _read_missing(value: Any) -> tuple[tuple[str, str], ...] | None:
    if not isinstance(value, list):
        return None
    found = []
    for one in value:
        text = one.get("claim") if isinstance(one, dict) else None
        if not isinstance(text, str) or not text.strip() or one.get("reason") not in MISSING:
            return None
        found.append((" ".join(text.split()), str(one["reason"])))
    return tuple(found)
