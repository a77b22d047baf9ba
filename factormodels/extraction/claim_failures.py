"""Failures of extracted claims: a judge of unverifiable, redundant and missing claims.

Source: FaStfact, section 3, figure 5, table 5 and appendix L; the prompts are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from factormodels.extraction.asking import table
from factormodels.extraction.asking.claim_faults import listed_claims
from factormodels.extraction.asking.loop import ask_all
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.pipeline import Stage
from factormodels.fact_graph import FactGraph

METADATA_KEY = "claim_failures"


@dataclass(frozen=True)
class ClaimFailures:
    """A judge's verdicts on the extraction of a response's claims.

    Attributes:
        of_claims: failures by id of claim, empty for a correct claim; claims that the judge did not
            answer about are absent.
        missing_claims: (text, reason) of missing claims; None if unknown.
        failures: reasons for missing answers.
    """

    of_claims: Mapping[str, tuple[str, ...]]
    missing_claims: tuple[tuple[str, str], ...] | None
    failures: tuple[str, ...]


def judge_claims(graph: FactGraph, model: LanguageModel) -> ClaimFailures:
    """Judge the claims of a response: one call per forty claims, and one for missing claims.

    Args:
        graph: the response's text and its claims.
        model: the judge.
    """
    parts = [
        graph.atoms[first : first + table.CLAIMS_AT_ONCE]
        for first in range(0, len(graph.atoms), table.CLAIMS_AT_ONCE)
    ]
    questions = [
        Question(
            table.CLAIM_FAILURES,
            {"text": graph.response, "claims": listed_claims([atom.text for atom in part])},
            about=len(part),
            parts=len(part),
        )
        for part in parts
    ]
    of_claims: dict[str, tuple[str, ...]] = {}
    failures = []
    for part, answer in zip(parts, ask_all(model, questions), strict=True):
        if isinstance(answer, Failure):
            failures.append(answer.reason)
            continue
        of_claims |= {atom.id: kinds for atom, kinds in zip(part, answer, strict=True)}
    lacking = Question(
        table.MISSING_CLAIMS,
        {"text": graph.response, "claims": listed_claims([atom.text for atom in graph.atoms])},
    )
    (missing,) = ask_all(model, [lacking])
    if isinstance(missing, Failure):
        failures.append(missing.reason)
        return ClaimFailures(of_claims, None, tuple(failures))
    return ClaimFailures(of_claims, missing, tuple(failures))


def claim_failures_stage(model: LanguageModel) -> Stage:
    """Return the stage that stores `judge_claims` in `metadata["claim_failures"]`."""

    def stage(graph: FactGraph) -> FactGraph:
        judged = judge_claims(graph, model)
        facts: dict[str, Any] = {
            "model": model.name,
            "claims": {claim: list(kinds) for claim, kinds in judged.of_claims.items()},
            "missing_claims": None
            if judged.missing_claims is None
            else [list(claim) for claim in judged.missing_claims],
            "failures": list(judged.failures),
        }
        return replace(graph, metadata={**graph.metadata, METADATA_KEY: facts})

    return stage
