"""What the stages of an assessment did with a response, in words, and what failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from factormodels.extraction.pipeline import STAGE_KEYS
from factormodels.extraction.stages.relations import METADATA_KEY as RELATIONS_KEY
from factormodels.fact_graph import FactGraph
from factormodels.object_repr import counted
from factormodels.recorded_verdicts import ASSESSORS_KEY


def stage_failures(graph: FactGraph) -> list[tuple[str, list[str]]]:
    """What failed, as (stage and reason, ids of what it is missing of), in the order of stages."""
    found: dict[str, list[str]] = {}
    for what, where, reason in _failures(graph):
        found.setdefault(f"{what}: {reason}", []).append(where)
    return list(found.items())


def _failures(graph: FactGraph) -> Iterator[tuple[str, str, str]]:
    for key in STAGE_KEYS:
        for one in graph.metadata.get(key, {}).get("failures", ()):
            yield key, str(one[0]), str(one[-1])
    for source, target, reason in graph.metadata.get(RELATIONS_KEY, {}).get("missing", ()):
        yield RELATIONS_KEY, f"{source} → {target}", reason
    for name, facts in graph.metadata.get(ASSESSORS_KEY, {}).items():
        for atom, reason in facts["missing"]:
            yield name, atom, reason


def stage_remarks(graph: FactGraph) -> list[str]:
    """One line per stage: what it did with a response, and what is missing."""
    lines = []
    facts: dict[str, Any] = dict(graph.metadata)
    if "retrieval" in facts:
        found = facts["retrieval"]
        lines.append(
            f"{found['retriever']}: {found['queries']} queries, {found['passages']} passages, "
            f"{found['contexts']} contexts after duplicates, "
            f"{len(found.get('dropped', ()))} pages left out, {len(found['failures'])} failures"
        )
    if "duplicates" in facts:
        repeated = counted(len(facts["duplicates"]), "claim")
        lines.append(f"{repeated} said before: judged once, counted each time")
    if "summaries" in facts:
        told = facts["summaries"]
        lines.append(
            f"{told['model']}: {len(told['passages'])} passages summarised, "
            f"{len(told['dropped'])} dropped as irrelevant, {len(told['failures'])} failures"
        )
    if "relations" in facts:
        asked = facts["relations"]
        kinds = ", ".join(
            f"{asked[kind]} {kind}" for kind in ("entailment", "contradiction", "neutral")
        )
        lines.append(
            f"{asked['model']}: {asked['asked']} pairs asked, {kinds} ({asked['made_neutral']} "
            f"of them for a probability below {asked['least']:g}), {len(asked['missing'])} missing"
        )
    for name, found in facts.get(ASSESSORS_KEY, {}).items():
        # Those that were recorded elsewhere do not say which model gave them.
        of = f" of {found['model']}" if "model" in found else " as recorded"
        lines.append(
            f"{name}: {len(found['verdicts'])} verdicts{of}, {len(found['missing'])} missing"
        )
    return lines
