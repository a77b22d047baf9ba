"""Page view of assessed responses, from the metadata of their assessment.

Nothing is inferred again: posteriors, evidence and effects of passages come from the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from calibration.scores.measures import entropy_warnings
from experiments.asking.failed_calls import failure_sentences
from experiments.columns.assessed_metadata import METADATA_KEY, conventions_of
from experiments.evaluators.batches.batch import calls_of_graphs
from experiments.evaluators.core import kept_claims
from experiments.evaluators.display.assess_tables import (
    measure_sentences,
    missing_sentences,
    origin_table,
    stage_failures,
    stage_remarks,
    summary_table,
)
from experiments.evaluators.display.listed_evidence import (
    Borne,
    evidence_of,
    graphs_shown,
    n_relations,
)
from experiments.evaluators.display.marked_texts import marked_response
from experiments.evaluators.response import judged, summarize_judged, with_core
from experiments.findings.findings import Findings
from experiments.findings.responses import (
    Effect,
    Ended,
    Evidence,
    ListedClaim,
    ListedFailure,
    ListedJudge,
    ListedResponse,
    ListedResponses,
)
from experiments.findings.table import with_note
from experiments.settings.conventions import graph_names, note_of
from factormodels.claims import RelationKind
from factormodels.conventions import Conventions
from factormodels.errors import InputError
from factormodels.extraction.language_model.accounting import total
from factormodels.extraction.stages.duplicates import every_atom
from factormodels.extraction.stages.relations import only_asked
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY
from factormodels.metadata.stage_keys import CONSUMPTION_KEY, PROBE_KEY
from factormodels.nouns import counted
from factormodels.variants import variant as variant_of

MOST_LISTED = 2000
"""Largest number of responses on a page; of more, the most doubtful."""

CORE = "core"
"""Name on the page of the claims that count by Core."""

MORE = "factormodels report FILE --response ID"


def listed_responses(
    graphs: Sequence[FactGraph], without_result: Iterable[tuple[str, str]] = ()
) -> ListedResponses:
    """Page view of the responses of an assessment.

    Args:
        graphs: the responses, with their assessment in their metadata.
        without_result: (id, reason) of responses without a result.
    """
    variants = [*dict.fromkeys(name for graph in graphs for name in graph.metadata[METADATA_KEY])]
    assessors = dict.fromkeys(
        name for graph in graphs for name in graph.metadata.get(ASSESSORS_KEY, {})
    )
    shown = graphs
    if len(graphs) > MOST_LISTED:
        doubtful = {id(graph) for graph in sorted(graphs, key=_doubt, reverse=True)[:MOST_LISTED]}
        shown = [graph for graph in graphs if id(graph) in doubtful]
    return ListedResponses(
        answers=(
            *(ListedJudge(name, view) for view, name in enumerate(variants)),
            *(ListedJudge(name, None) for name in assessors),
        ),
        views=tuple(variants),
        responses=tuple(_listed(graph, variants, [*assessors]) for graph in shown),
        n_responses=len(graphs),
        failures=tuple(_failures(graphs, shown, without_result)),
        selections=(CORE,) if any(kept_claims(graph) is not None for graph in shown) else (),
        replaces=("claims", "evidence", "doubtful", "responses"),
        more=MORE,
        compared=True,
        lead=tuple(f"Relation model: {name}." for name in relation_models(graphs)),
        cautions=(*recorded_probe_cautions(graphs), *relation_cautions(graphs)),
    )


def relation_models(graphs: Sequence[FactGraph]) -> list[str]:
    """Names of the models that judged the relations of responses."""
    asked = (graph.metadata["relations"] for graph in graphs if "relations" in graph.metadata)
    return list(dict.fromkeys(str(facts["model"]) for facts in asked))


def recorded_probe_cautions(graphs: Sequence[FactGraph]) -> tuple[str, ...]:
    """Return the recorded sentences on failed probes, without duplicates."""
    recorded = (graph.metadata.get(PROBE_KEY, {}).get("cautions", ()) for graph in graphs)
    return tuple(dict.fromkeys(sentence for each in recorded for sentence in each))


def relation_cautions(graphs: Sequence[FactGraph]) -> Iterator[str]:
    """Yield cautions about the relation model for readers of posteriors."""
    if "lexical" in relation_models(graphs):
        yield (
            'The lexical model compares words, not meaning: it may judge "does not sell" '
            'supported by "sells". A language model (--model) or a classifier (--relations '
            "nli:FOLDER) reads meaning."
        )


def findings_of_graphs(graphs: Sequence[FactGraph], source: str) -> Findings:
    """Findings from assessed responses, without the run that assessed them.

    Args:
        graphs: the responses, with their assessment in their metadata.
        source: name of the responses.
    """
    how: dict[str, tuple[str, str]] = {}
    conventions: dict[str, Conventions] = {}
    for graph in graphs:
        for name, view in graph.metadata[METADATA_KEY].items():
            view_how, declared = (view["encoding"], view["backend"]), conventions_of(view)
            if (how.setdefault(name, view_how), conventions.setdefault(name, declared)) != (
                view_how,
                declared,
            ):
                raise InputError(
                    f"{source}: its responses were assessed with several encodings, backends or "
                    "conventions; assess them with the same settings"
                )
    assessors = dict.fromkeys(
        name for graph in graphs for name in graph.metadata.get(ASSESSORS_KEY, {})
    )
    responses = [judged(graph) for graph in graphs]
    with entropy_warnings():
        compared = summarize_judged(responses, (*how, *assessors))
        kept = with_core(responses)
        k = compared.k
        cored = None
        if kept and k is not None:
            cored = summarize_judged(kept, (*how, *assessors), k=k)
        summary = summary_table(compared, cored, how)
    if conventions:
        first = next(iter(conventions.values()))
        summary = with_note(summary, note_of(first, graph_names(how)))
    return Findings(
        source=source,
        sentences=(
            *recorded_probe_cautions(graphs),
            *relation_cautions(graphs),
            *measure_sentences(compared),
            *missing_sentences(responses, graphs),
            *(f"{each}." for each in failure_sentences(calls_of_graphs(graphs))),
            *_spent(graphs),
        ),
        tables={"summary": summary, "origins": origin_table(responses)},
        listed=partial(listed_responses, graphs),
    )


def _spent(graphs: Sequence[FactGraph]) -> Iterator[str]:
    """Yield remarks on the calls to a relation model and their cost."""
    asked = [graph.metadata["relations"] for graph in graphs if "relations" in graph.metadata]
    for model in dict.fromkeys(facts["model"] for facts in asked):
        model_facts = [facts for facts in asked if facts["model"] == model]
        sentence = f"{model}: {counted(sum(facts['asked'] for facts in model_facts), 'pair')} asked"
        taken = [
            graph.metadata[CONSUMPTION_KEY]["relations"]
            for graph in graphs
            if graph.metadata.get("relations", {}).get("model") == model
            and "relations" in graph.metadata.get(CONSUMPTION_KEY, {})
        ]
        spent = total(taken) if taken else None
        if spent and spent["unpriced"] < spent["answers"]:
            sentence += f", {spent['cost']:.4f} US dollars"
        yield f"{sentence}."


def _doubt(graph: FactGraph) -> float:
    """Expected share of false claims by the first variant; an unknown claim counts as one half."""
    view: Mapping[str, Any] = next(iter(graph.metadata[METADATA_KEY].values()), {})
    p = [_posterior(view, same) for _, same in every_atom(graph)]
    return sum(0.5 if posterior is None else 1.0 - posterior for posterior in p) / max(1, len(p))


def _posterior(view: Mapping[str, Any], atom: str) -> float | None:
    # A claim without any answered relation is unknown.
    if "atoms" not in view or atom in view["unanswered"]:
        return None
    value: float = view["atoms"][atom]["p"]
    return value


def _listed(graph: FactGraph, variants: Sequence[str], assessors: Sequence[str]) -> ListedResponse:
    views = [graph.metadata[METADATA_KEY].get(name, {}) for name in variants]
    judges = [graph.metadata.get(ASSESSORS_KEY, {}).get(name) for name in assessors]
    atoms = every_atom(graph)
    pieces = marked_response(replace(graph, atoms=tuple(atom for atom, _ in atoms)))
    evidence = _evidence(graph, views)
    kept = kept_claims(graph)
    seen = [
        variant_of(only_asked(graph, name), name) if "atoms" in view else None
        for name, view in zip(variants, views, strict=True)
    ]
    return ListedResponse(
        id=graph.id,
        dataset="",
        topic=graph.topic,
        query=graph.query,
        pieces=pieces,
        claims=tuple(
            ListedClaim(
                atom,
                (
                    *(_posterior(view, same) for view in views),
                    *((judge or _NOBODY)["verdicts"].get(same, {}).get("p") for judge in judges),
                ),
                evidence.get(same, ()),
                tuple(_range(view, same) for view in views),
                (
                    *("" for _ in views),
                    *(
                        (judge or _NOBODY)["verdicts"].get(same, {}).get("label", "")
                        for judge in judges
                    ),
                ),
                () if kept is None or atom.id not in kept else (CORE,),
                same_as="" if same == atom.id else same,
            )
            for atom, same in atoms
        ),
        passages=graph.contexts,
        n_relations=tuple(
            None if view_graph is None else n_relations(graph, view_graph) for view_graph in seen
        ),
        ended=(
            *(Ended(view.get("status", "failed"), view.get("error", "")) for view in views),
            *(Ended("judged" if judge else "not asked") for judge in judges),
        ),
        failures=tuple((reason, tuple(where)) for reason, where in stage_failures(graph)),
        notes=(
            *(
                _settings_in_words(name, view)
                for name, view in zip(variants, views, strict=True)
                if view
            ),
            *stage_remarks(graph),
        ),
        graphs=tuple(graphs_shown(graph, seen)),
    )


_NOBODY: Mapping[str, Any] = {"verdicts": {}}


def _settings_in_words(name: str, view: Mapping[str, Any]) -> str:
    """Return the settings of a variant in words."""
    by = view.get("answered_by")
    sentence = f"{name}: {view['encoding']}, {view['backend']}"
    if by not in (None, view["backend"]):
        sentence += f", answered by {by}"
    return f"{sentence}: {view['error']}" if "error" in view else f"{sentence}, {view['status']}"


def _range(view: Mapping[str, Any], atom: str) -> tuple[float, float] | None:
    ends = view.get("open", {}).get(atom)
    return None if ends is None else (round(ends[0], 6), round(ends[1], 6))


def _evidence(
    graph: FactGraph, views: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Evidence, ...]]:
    borne: dict[Borne, dict[int, Effect]] = {}
    for number, view in enumerate(views):
        for atom, facts in view.get("atoms", {}).items():
            for item in facts["evidence"]:
                key = Borne(
                    atom, item["context"], RelationKind(item["relation"]), item["probability"]
                )
                change, p = item["change"], facts["p"]
                borne.setdefault(key, {})[number] = (
                    Effect()
                    if change is None
                    else Effect(p - change, change, item.get("change_error") or 0.0)
                )
    return evidence_of(graph, borne, len(views))


def _failures(
    graphs: Sequence[FactGraph],
    shown: Sequence[FactGraph],
    without_result: Iterable[tuple[str, str]],
) -> Iterator[ListedFailure]:
    """Yield missing results of all responses, by stage and reason."""
    places = {graph.id: position for position, graph in enumerate(shown)}
    counts_by_reason: dict[tuple[str, str], Counter[str]] = {}
    for name, reason in without_result:
        counts_by_reason.setdefault(("no result", reason), Counter())[name] += 1
    for graph in graphs:
        for failure, where in stage_failures(graph):
            stage, _, reason = failure.partition(": ")
            counts_by_reason.setdefault((stage, reason), Counter())[graph.id] += len(where)
        for name, view in graph.metadata[METADATA_KEY].items():
            if "error" in view:
                counts_by_reason.setdefault((f"inference, {name}", view["error"]), Counter())[
                    graph.id
                ] += 1
    for (stage, reason), counts in counts_by_reason.items():
        lacking = tuple((name, places.get(name)) for name in counts)
        yield ListedFailure(stage, reason, counts.total(), lacking)
