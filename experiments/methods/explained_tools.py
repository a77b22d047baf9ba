"""Attribution of differences between tools to conventions, for `score --with`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from experiments.columns.assessed_metadata import METADATA_KEY, conventions_of
from experiments.columns.verdicts import posteriors_by_model
from experiments.evaluators.convention_effects import (
    MOST_SHOWN,
    REPRODUCED,
    ClaimEffects,
    Posteriors,
    changed_most,
    claim_effects,
    claims_table,
    conventions_table,
    effect_sentences,
    names_that_differ,
)
from experiments.findings.table import Table
from experiments.findings.text import verdict
from experiments.methods.solved_views import solved_views
from factormodels.conventions import PRESETS, Conventions
from factormodels.encodings import CONDITIONAL, DEFAULT_ENCODING
from factormodels.extraction.stages.relations import only_asked
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import (
    ASSESSORS_KEY,
    RecordedVerdict,
    recorded_verdicts,
    verdict_facts,
)
from factormodels.nouns import counted
from inference import get_backend

RELEASE = "fact-reasoner-0.8"
"""The conventions of a FactReasoner output, whose file names none."""

_FACTREASONER = "factreasoner"


@dataclass(frozen=True)
class ToolConventions:
    """Conventions behind a tool's posteriors.

    Attributes:
        conventions: its conventions.
        variant: the view of the graph; empty where its output does not say it.
        backend: the algorithm.
    """

    conventions: Conventions
    variant: str = ""
    backend: str = "auto"


def tool_conventions(graphs: Sequence[FactGraph]) -> dict[str, ToolConventions]:
    """The conventions of those who judged the claims of responses, where they are known, by name.

    They are the conventions that `assess` recorded; FactReasoner's outputs have the release's.
    """
    known: dict[str, ToolConventions | None] = {}
    for graph in graphs:
        for variant, view in graph.metadata.get(METADATA_KEY, {}).items():
            if "atoms" in view:
                stated = ToolConventions(conventions_of(view), variant, view.get("backend", "auto"))
                # Responses that were assessed in several ways have no conventions in common.
                known[variant] = stated if known.get(variant, stated) == stated else None
        if _FACTREASONER in recorded_verdicts(graph):
            known[_FACTREASONER] = ToolConventions(PRESETS[RELEASE])
    return {name: stated for name, stated in known.items() if stated is not None}


def as_verdicts(graph: FactGraph, source: str) -> FactGraph:
    """A response with the posteriors that `assess` recorded as verdicts, by variant.

    Args:
        graph: the response.
        source: its file, for messages.

    Raises:
        InputError: if its metadata garble what an assessment has.
    """
    if METADATA_KEY not in graph.metadata:
        return graph
    ours = graph.metadata[METADATA_KEY]
    by_model = posteriors_by_model(graph, source)
    recorded = {
        name: verdict_facts(
            {a: RecordedVerdict(verdict(p), p) for a, p in by_model[name].items() if p is not None}
        )
        for name in ours
    }
    metadata = {key: value for key, value in graph.metadata.items() if key != METADATA_KEY}
    metadata[ASSESSORS_KEY] = {**graph.metadata.get(ASSESSORS_KEY, {}), **recorded}
    return replace(graph, metadata=metadata)


def related_responses(
    graphs: Sequence[FactGraph], outputs: Sequence[Sequence[FactGraph]]
) -> dict[str, FactGraph]:
    """Responses by id: the response itself or a tool's output for it, the first that has relations.

    A tool counts if its claims have the ids and texts of the response's claims.
    """
    related: dict[str, FactGraph] = {}
    texts_of = {graph.id: dict(zip(graph.atom_ids, graph.column("atoms", "text"), strict=True))
           for graph in graphs}  # fmt: skip
    for graph in (graph for each in (graphs, *outputs) for graph in each):
        texts = dict(zip(graph.atom_ids, graph.column("atoms", "text"), strict=True))
        if graph.contexts and graph.relations and texts_of.get(graph.id) == texts:
            related.setdefault(graph.id, graph)
    return related


def explained_tools(
    rows: Sequence[Mapping[str, Any]],
    models: Sequence[str],
    known: Mapping[str, ToolConventions],
    related: Mapping[str, FactGraph],
) -> tuple[dict[str, Table], list[str]]:
    """Tables and sentences about the conventions in which tools differ.

    Each is compared with the first that judged the same variant; one whose output does not state a
    variant, with the first of all.

    Args:
        rows: a row per claim: response, claim, and P(true) by model.
        models: the columns of P(true).
        known: conventions of tools, by model.
        related: the responses with their relations, by id.
    """
    solvable = [row for row in rows if row["response"] in related]
    bases: dict[str, str] = {}
    for name in models:
        if name in known and known[name].variant:
            bases.setdefault(known[name].variant, name)
    if not bases or not solvable:
        return {}, []
    effects: list[ClaimEffects] = []
    tables: list[Table] = []
    every: list[dict[str, Any]] = []
    sentences: list[str] = []
    names: dict[str, None] = {}
    pairs: list[tuple[str, str]] = []
    for name in models:
        other = known.get(name)
        base = "" if other is None else bases.get(other.variant, next(iter(bases.values())))
        if other is None or name == base:
            continue
        first = known[base]
        graphs = [only_asked(graph, first.variant) for graph in related.values()]
        solve = partial(solved_views, graphs, first.variant, get_backend(first.backend))
        before, after = _column(solvable, base), _column(solvable, name)
        second = other.conventions
        if not other.variant:
            # Its class and its command line have different tables by default.
            encodings = (replace(second, encoding=each) for each in (CONDITIONAL, DEFAULT_ENCODING))
            second = min(encodings, key=lambda each: _n_apart(solve(each), after))
        differ = names_that_differ(first.conventions, second, [first.variant])
        if not differ:
            continue
        title = f"{name} against {base}"
        of_pair, _ = claim_effects(before, after, first.conventions, second, differ, solve, title)
        table = conventions_table(of_pair, first.conventions, second, differ)
        tables.append(table)
        pairs.append((base, name))
        every += [{"tools": title} | {str(k): v for k, v in r.items()} for r in table.records()]
        sentences += (
            f"{title}: {each[0].lower()}{each[1:]}" for each in effect_sentences(of_pair, "differ")
        )
        effects += of_pair
        names |= dict.fromkeys(differ)
    if not tables:
        return {}, []
    caption = "Conventions in which tools differ, and what each does to claims, switched alone."
    shown = {"conventions": replace(tables[0], data=every, caption=caption, group="tools")}
    if effects:
        # With several pairs, each has a block whose title names the two.
        sides = ("before", "after") if len(pairs) > 1 else pairs[0]
        most = changed_most(effects, MOST_SHOWN)
        caption = f"The {counted(len(most), 'claim')} that differ most, and what explains that."
        shown["explained"] = claims_table(most, tuple(names), sides, caption)
        shown["explained_claims"] = claims_table(effects, tuple(names), sides)
    return shown, sentences


def _column(rows: Sequence[Mapping[str, Any]], model: str) -> Posteriors:
    return {(row["response"], row["claim"]): row[model] for row in rows}


def _n_apart(solved: Posteriors, p: Posteriors) -> int:
    """Number of posteriors that differ from a solution."""
    return sum(key in solved and abs(solved[key] - each) > REPRODUCED for key, each in p.items())
