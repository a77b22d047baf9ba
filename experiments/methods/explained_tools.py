"""Attribution of differences between tools to conventions, for `score --with`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from experiments.columns.assessed_metadata import METADATA_KEY, conventions_of
from experiments.columns.verdicts import posteriors_by_model
from experiments.evaluators.convention_effects import (
    MOST_SHOWN,
    REPRODUCED,
    Attribution,
    Comparison,
    Posteriors,
    attributions,
    changed_most,
    claims_table,
    conventions_table,
    effect_sentences,
)
from experiments.findings.table import Table
from experiments.findings.text import verdict
from experiments.methods.solved_views import least_reduced, solved_views
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
"""Conventions of FactReasoner's outputs, whose files state none."""

_FACTREASONER = "factreasoner"


@dataclass(frozen=True)
class ToolConventions:
    """Conventions behind a tool's posteriors.

    Attributes:
        conventions: conventions of the tool.
        variant: view of the graph; empty if the output does not state it.
        backend: the algorithm.
    """

    conventions: Conventions
    variant: str = ""
    backend: str = "auto"


def tool_conventions(graphs: Sequence[FactGraph]) -> dict[str, ToolConventions]:
    """Known conventions of the assessors of responses, by name of the assessor.

    `assess` records its conventions; FactReasoner's outputs have the conventions of its release.
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
        InputError: if its metadata of an assessment are malformed.
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
    """Responses with relations, by id: the least reduced of the response and the tools' outputs.

    A tool counts if its claims have the ids and texts of the response's claims.
    """
    related: dict[str, list[FactGraph]] = {}
    texts_of = {graph.id: dict(zip(graph.atom_ids, graph.column("atoms", "text"), strict=True))
           for graph in graphs}  # fmt: skip
    for graph in (graph for each in (graphs, *outputs) for graph in each):
        texts = dict(zip(graph.atom_ids, graph.column("atoms", "text"), strict=True))
        if graph.contexts and graph.relations and texts_of.get(graph.id) == texts:
            related.setdefault(graph.id, []).append(graph)
    return {id_: least_reduced(known) for id_, known in related.items()}


def explained_tools(
    rows: Sequence[Mapping[str, Any]],
    models: Sequence[str],
    known: Mapping[str, ToolConventions],
    related: Mapping[str, FactGraph],
) -> tuple[dict[str, Table], list[str]]:
    """Tables and sentences about the conventions in which tools differ.

    Each tool is compared with the first tool of the same variant; a tool without a stated variant
    is compared with the first of all.

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
    tables: list[Table] = []
    every: list[dict[str, Any]] = []
    sentences: list[str] = []
    attributed: list[Attribution] = []
    pairs = []
    for compared, attribution in attributions(
        _compared_tools(solvable, models, known, related, bases)
    ):
        if not attribution.names:
            continue
        title, of_claims = compared.cell, attribution.effects
        table = conventions_table(of_claims, compared.first, compared.second, attribution.names)
        tables.append(table)
        pairs.append((compared.base, compared.name))
        every += [{"tools": title} | {str(k): v for k, v in r.items()} for r in table.records()]
        sentences += (
            f"{title}: {each[0].lower()}{each[1:]}"
            for each in effect_sentences(of_claims, "differ")
        )
        attributed.append(attribution)
    effects = [effect for attribution in attributed for effect in attribution.effects]
    names = tuple(dict.fromkeys(name for attribution in attributed for name in attribution.names))
    if not tables:
        return {}, []
    caption = "Conventions in which tools differ, and the effect of switching each alone."
    shown = {"conventions": replace(tables[0], data=every, caption=caption, group="tools")}
    if effects:
        # With several pairs, the title of each block names its pair.
        sides = ("before", "after") if len(pairs) > 1 else pairs[0]
        most = changed_most(effects, MOST_SHOWN)
        caption = (
            f"The {counted(len(most), 'claim')} that differ most, with the conventions that "
            "explain the difference."
        )
        shown["explained"] = claims_table(most, names, sides, caption)
        shown["explained_claims"] = claims_table(effects, names, sides)
    return shown, sentences


@dataclass(frozen=True)
class _ComparedTools(Comparison):
    """Two tools on the same claims.

    Attributes:
        base: the first tool.
        name: the other.
    """

    base: str
    name: str


def _compared_tools(
    rows: Sequence[Mapping[str, Any]],
    models: Sequence[str],
    known: Mapping[str, ToolConventions],
    related: Mapping[str, FactGraph],
    bases: Mapping[str, str],
) -> Iterator[_ComparedTools]:
    """Yield each tool with known conventions beside the tool that it is compared with."""
    for name in models:
        other = known.get(name)
        base = "" if other is None else bases.get(other.variant, next(iter(bases.values())))
        if other is None or name == base:
            continue
        first = known[base]
        graphs = [only_asked(graph, first.variant) for graph in related.values()]
        solve = partial(solved_views, graphs, first.variant, get_backend(first.backend))
        before, after = _column(rows, base), _column(rows, name)
        second = other.conventions
        if not other.variant:
            # The release's class and command line have different default tables.
            encodings = (replace(second, encoding=each) for each in (CONDITIONAL, DEFAULT_ENCODING))
            second = min(encodings, key=lambda each: _n_apart(solve(each), after))
        conventions = first.conventions, second
        title = f"{name} against {base}"
        yield _ComparedTools(title, first.variant, before, after, *conventions, solve, base, name)


def _column(rows: Sequence[Mapping[str, Any]], model: str) -> Posteriors:
    return {(row["response"], row["claim"]): row[model] for row in rows}


def _n_apart(solved: Posteriors, p: Posteriors) -> int:
    """Number of posteriors that differ from the solved ones."""
    return sum(key in solved and abs(solved[key] - each) > REPRODUCED for key, each in p.items())
