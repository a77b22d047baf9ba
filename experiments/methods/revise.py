"""Revision of answers: doubtful claims are dropped, hedged or corrected."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from calibration.intervals import Scale, mean_interval
from experiments.asking.failed_calls import calls_in_ledger, with_failed_calls
from experiments.asking.ledger_table import cost_tables, planned_findings
from experiments.asking.probe_settings import FirstProbeSettings
from experiments.asking.relation_models import relation_model
from experiments.asking.session import asking
from experiments.asking.settings import AskingSettings, Model
from experiments.columns.frame import claim_row, long_table
from experiments.columns.responses import load_responses
from experiments.evaluators.display.marked_texts import deciding_excerpts
from experiments.evaluators.probe_first import FirstProbe, first_probe, is_probed, with_probe
from experiments.findings.findings import CLAIMS, Findings
from experiments.findings.table import Table, columns_as, data_frame, named, with_note
from experiments.findings.text import with_interval
from experiments.progress import each_response
from experiments.settings import USUAL, Option, front_door
from experiments.settings.conventions import (
    SourcePriorSettings,
    graph_names,
    note_of,
    own_prior_remarks,
)
from experiments.settings.limits import Encoding, Least, Openness, VariantName
from factormodels.claims import (
    CONFLICTS,
    LEAST_PROBABILITY,
    Atom,
    Relation,
    RelationKind,
    is_evidence,
)
from factormodels.conventions import Conventions
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import InputError
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.probe.table import RELATIONS
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.sentences import sentences_of
from factormodels.extraction.stages.corrections import corrections, passages_against, relations_to
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted
from factormodels.variants import between_claims, variant

if TYPE_CHECKING:
    from experiments.settings.inputs import Responses

KEPT, HEDGED, CORRECTED, DROPPED = "kept", "hedged", "corrected", "dropped"
ACTIONS = (KEPT, HEDGED, CORRECTED, DROPPED)

METADATA_KEY = "revision"
"""Metadata key of a revised response: the change of each original claim."""

HEDGE = "It is not certain whether this is so: "
"""Prefix of a hedged claim."""


class ReviseSettings(
    AskingSettings,
    FirstProbeSettings,
    SourcePriorSettings,
):
    """Revision.

    Options of `revise`.
    """

    keep: Annotated[float, Field(ge=0, le=1), Option("P", usual=True)] = 0.5
    """Keep claims with at least this probability unchanged."""

    drop: Annotated[float, Field(ge=0, le=1), Option("P", usual=True)] = 0.2
    """Correct claims below this probability, or drop them if no passage has the correction; hedge
    claims between the two probabilities.
    """

    model: Annotated[Model, USUAL] = None
    """Language model that corrects claims from the passages that contradict them; as litellm spells
    it, with its key from the environment. Without a model, claims are only dropped and hedged."""

    relations: Annotated[str | None, Option("NAME", usual=True)] = None
    """Judge of corrected claims: lexical, model (given by --model), recorded:FILE or nli:FOLDER; by
    default the language model.
    """

    openness: Openness = OPENNESS

    least: Least = LEAST_PROBABILITY

    variant: VariantName | None = None
    """Recorded relations to use; by default FR2, or all as given if a response has relations
    between claims, which FR1, FR2 and FR3 leave out.
    """

    encoding: Encoding = DEFAULT_ENCODING


@dataclass(frozen=True)
class Change:
    """Change of a claim.

    Attributes:
        atom: the original claim.
        action: one of `ACTIONS`.
        before: its posterior.
        text: its replacement; empty if it was dropped.
        after: posterior of the replacement in the revised response; NaN if there is none.
        passage: id of the passage that best supports a correction; for a hedged or dropped claim,
            of the passage most likely to contradict it.
        reason: why the claim is doubtful, or why it was not corrected.
    """

    atom: Atom
    action: str
    before: float
    text: str = ""
    after: float = math.nan
    passage: str = ""
    reason: str = ""


@front_door
def revise(responses: Responses, settings: ReviseSettings) -> Findings:
    """Revise responses by the posteriors of their claims: keep, hedge, correct or drop each.

    The language model corrects a claim from the passages that contradict it. The new text is kept
    only if the relation model finds that a passage entails it and its posterior in the new graph is
    high enough, so every added fact is in a passage. Shows a row per response, then every change;
    --report makes a page of them. With --out it also writes the revised responses as graphs, with
    their texts.

    Examples::

        revise("assessed/graphs.jsonl").report("revised.html")
        revise("assessed/graphs.jsonl", model="openai/NAME").save("revised")
        revise("demonstration", keep=0.6, drop=0.3)

    Args:
        responses: Responses with claims, passages and relations: the graphs of `assess`, fact
            graphs or an embedded dataset. In Python also fact graphs.
        settings: options; in Python, pass the fields as keywords instead. A language model may be
            an object.

    Raises:
        InputError: if the responses cannot be read, none has relations, or an option does not fit.
        MissingDependencyError: if a relation model needs a library that is not installed.
    """
    if settings.drop > settings.keep:
        raise InputError(
            f"--drop {settings.drop:g} is more than --keep {settings.keep:g}; give less, or as much"
        )
    loaded = load_responses(responses).only(
        lambda graph: graph.atoms and graph.relations,
        "claims or relations",
        "no response has claims and relations, so doubtful claims cannot be found; give the "
        "graphs of `factormodels assess`",
    )
    graphs = loaded.graphs
    if settings.model is None and settings.relations is not None:
        raise InputError(
            "--relations judges corrected claims, and no model corrects them; name one with --model"
        )
    changes: dict[str, list[Change]] = {}
    revised: list[FactGraph] = []
    failures: list[str] = []
    with asking(settings) as session:
        model = session.model
        judge = None
        probed = FirstProbe()
        if model is not None:
            named = settings.relations or "model"
            judge, _ = relation_model(named, model, openness=settings.openness)
            probed = _probed(named, model, settings)
        for graph in each_response(graphs):
            new, response_changes, lost = revised_response(graph, settings, model, judge)
            changes[graph.id] = response_changes
            revised.append(new)
            failures += [f"{graph.id}, {atom}: {reason}" for atom, reason in lost]
    if settings.dry_run:
        return planned_findings(loaded.source, session.ledger)
    conventions = settings.declared()
    note = note_of(conventions, graph_names({_view_of(graph, settings) for graph in graphs}))
    tables = {
        "responses": with_note(_responses(changes), note),
        "changes": with_note(_changes(changes), note),
    }
    if any(atom.label is not None for graph in graphs for atom in graph.atoms):
        tables["labels"] = _labels(changes)
    caption = "The claims that the revised responses assert, judged again."
    tables[CLAIMS] = long_table(_claims(revised, changes), caption)
    tables |= cost_tables(session.ledger, len(graphs))
    remarks = [*loaded.remarks, *own_prior_remarks(graphs, conventions)]
    if settings.variant not in (None, "given"):
        unused = sum(len(between_claims(graph)) for graph in graphs)
        if unused:
            remarks.append(
                f"{counted(unused, 'relation')} between claims: {settings.variant} leaves "
                f"{'it' if unused == 1 else 'them'} out."
            )
    if failures:
        remarks.append(
            f"{counted(len(failures), 'claim')} could not be corrected because there was no "
            f"answer; the first reason: {failures[0]}"
        )
    findings = Findings(
        source=loaded.source,
        sentences=(*_sentences(changes), *remarks),
        tables=tables,
        unshown=(CLAIMS,),
        incomplete=bool(failures),
        tidy=lambda: tables[CLAIMS].frame,
        graphs=tuple(revised),
    )
    return with_probe(with_failed_calls(findings, calls_in_ledger(session.ledger)), probed)


def _probed(relations: str, model: LanguageModel, settings: ReviseSettings) -> FirstProbe:
    """Result of probing the model that judges corrected claims."""
    if relations != "model" or not is_probed(settings.probe, settings.model):
        return FirstProbe()

    return first_probe([(RELATIONS, model)], openness=settings.openness)


def revised_response(
    graph: FactGraph,
    settings: ReviseSettings,
    model: LanguageModel | None,
    judge: RelationModel | None,
) -> tuple[FactGraph, list[Change], tuple[tuple[str, str], ...]]:
    """The revised response, the change of each claim, and failed questions.

    The revised response does not assert dropped and hedged claims, so they are not claims of it.
    """
    conventions = settings.declared()
    # The revised response keeps its passages' priors; `_posteriors` applies the declared ones.
    structural = replace(conventions, context_prior=None, prior=None, weak_relations="left-out")
    view = variant(graph, _view_of(graph, settings), structural)
    before = _posteriors(view, conventions)
    doubtful = [atom for atom in view.atoms if before[atom.id] < settings.keep]
    refuted = [atom for atom in doubtful if before[atom.id] < settings.drop]
    texts: Mapping[str, str] = {}
    lost: tuple[tuple[str, str], ...] = ()
    relations: list[Relation] = []
    if model is not None and judge is not None and refuted:
        answered = corrections(view, refuted, model, _excerpts(view, refuted))
        texts, lost = answered.texts, answered.failures
        kept_weak = (
            conventions.weak_relations == "kept" and "least" not in settings.model_fields_set
        )
        least = 0.0 if kept_weak else settings.least
        relations = relations_to(view, texts, judge, least=least)
    best = _best_passages(relations)
    corrected = {atom: text for atom, text in texts.items() if atom in best}
    kept = {atom.id for atom in view.atoms} - {atom.id for atom in doubtful}
    # Corrections that are improbable in the graph are removed, and the others judged without them.
    while True:
        new = _with_texts(view, kept, corrected, relations)
        after = _posteriors(new, conventions)
        unlikely = [atom for atom in corrected if after[atom] < settings.keep]
        if not unlikely:
            break
        corrected = {atom: text for atom, text in corrected.items() if atom not in unlikely}
    changes = []
    for atom in view.atoms:
        p = before[atom.id]
        against, doubt = _doubt(view, atom.id)
        if atom.id in kept:
            change = Change(atom, KEPT, p, atom.text, after[atom.id])
        elif atom.id in corrected:
            change = Change(atom, CORRECTED, p, corrected[atom.id], after[atom.id], best[atom.id])
        elif p >= settings.drop:
            change = Change(atom, HEDGED, p, f"{HEDGE}{atom.text}", passage=against, reason=doubt)
        else:
            why = _reason(atom.id, texts, best, model) or doubt
            change = Change(atom, DROPPED, p, passage=against, reason=why)
        changes.append(change)
    facts = {
        change.atom.id: {"action": change.action, "was": change.atom.text, "p": change.before}
        for change in changes
    }
    text = _text(graph, changes)
    return (
        replace(new, response=text, metadata={**new.metadata, METADATA_KEY: facts}),
        changes,
        lost,
    )


def _excerpts(view: FactGraph, atoms: Sequence[Atom]) -> dict[tuple[str, str], str]:
    """Excerpts of the passages that contradict claims: the decisive sentences."""
    contents = {context.id: context.content for context in view.contexts}
    asked = [(atom, name) for atom in atoms for name in passages_against(view, atom.id)]
    texts = deciding_excerpts(
        [(contents[name], atom.text, RelationKind.CONTRADICTION) for atom, name in asked]
    )
    return {(atom.id, name): text for (atom, name), text in zip(asked, texts, strict=True)}


def _doubt(view: FactGraph, atom: str) -> tuple[str, str]:
    """The passage most likely to contradict a claim, if any, and why the claim is doubtful."""
    against = passages_against(view, atom)
    if against:
        return against[0], "a passage contradicts it"
    conflict = any(
        relation.kind in CONFLICTS
        and is_evidence(relation.kind, relation.probability)
        and atom in (relation.source, relation.target)
        for relation in between_claims(view)
    )
    return "", "another claim contradicts it" if conflict else "too little support"


def _view_of(graph: FactGraph, settings: ReviseSettings) -> str:
    return settings.variant or ("given" if between_claims(graph) else "FR2")


def _posteriors(graph: FactGraph, conventions: Conventions) -> dict[str, float]:
    from inference import infer

    if not graph.atoms:
        return {}
    declared = variant(graph, "given", conventions)
    posterior = infer(declared.to_factor_graph(conventions.encoding))
    return {atom: float(posterior.marginals[atom][1]) for atom in graph.atom_ids}


def _best_passages(relations: Sequence[Relation]) -> dict[str, str]:
    """Passage most likely to entail each claim, for entailed claims."""
    best: dict[str, Relation] = {}
    for relation in relations:
        strongest = best.get(relation.target)
        if relation.kind is RelationKind.ENTAILMENT and (
            strongest is None or relation.probability > strongest.probability
        ):
            best[relation.target] = relation
    return {target: relation.source for target, relation in best.items()}


def _with_texts(
    view: FactGraph, kept: set[str], corrected: Mapping[str, str], relations: Sequence[Relation]
) -> FactGraph:
    """Graph of the kept claims, and of the corrected claims with their new relations."""
    atoms = tuple(
        # A label applies to the old text only.
        replace(atom, text=corrected[atom.id], label=None, annotation=None)
        if atom.id in corrected
        else atom
        for atom in view.atoms
        if atom.id in kept or atom.id in corrected
    )
    gone = {atom.id for atom in view.atoms} - kept
    stay = [
        relation for relation in view.relations if not {relation.source, relation.target} & gone
    ]
    new = [relation for relation in relations if relation.target in corrected]
    contexts = tuple(
        replace(
            context,
            retrieved_for=tuple(a for a in context.retrieved_for if a in kept or a in corrected),
        )
        for context in view.contexts
    )
    return replace(view, atoms=atoms, contexts=contexts, relations=(*stay, *new))


def _reason(
    atom: str, texts: Mapping[str, str], best: Mapping[str, str], model: LanguageModel | None
) -> str:
    if model is None:
        return ""
    if atom not in texts:
        return "no passage has the correction"
    return "no passage entails the correction" if atom not in best else "not probable enough"


def _text(graph: FactGraph, changes: Sequence[Change]) -> str:
    """Text of the revised response; a sentence is unchanged if all its claims are kept.

    Other sentences are replaced by the replacements of their claims; sentences without a claim
    stay. If claims do not name their sentences, the remaining texts are listed in order.
    """
    sentences = sentences_of(graph) if graph.response.strip() else ()
    placed = [change.atom.sentence for change in changes]
    counted_alike = graph.metadata.get("sentences", len(sentences)) == len(sentences)
    if not sentences or not counted_alike or None in placed:
        return " ".join(change.text for change in changes if change.text)
    by_sentence: dict[int, list[Change]] = {}
    for change in changes:
        by_sentence.setdefault(change.atom.sentence or 0, []).append(change)
    parts = []
    for number, sentence in enumerate(sentences, 1):
        sentence_changes = by_sentence.get(number, [])
        if all(change.action == KEPT for change in sentence_changes):
            parts.append(sentence)
        else:
            parts += [change.text for change in sentence_changes if change.text]
    return " ".join(parts)


def _responses(changes: Mapping[str, Sequence[Change]]) -> Table:
    rows = []
    for response, response_changes in changes.items():
        counts = Counter(change.action for change in response_changes)
        after = [change.after for change in response_changes if not math.isnan(change.after)]
        rows.append(
            {
                "response": response,
                "claims": len(response_changes),
                **{action: counts[action] for action in ACTIONS},
                "before": float(np.mean([change.before for change in response_changes])),
                "after": float(np.mean(after)) if after else math.nan,
            }
        )
    return Table(
        data_frame(rows),
        columns_as(
            "response | claims:0 | kept:0 | hedged:0 | corrected:0 | dropped:0 | "
            "before:3 mean P before | after:3 mean P after"
        ),
        "Changes to the claims of each response.",
        note="Mean P after: mean of the claims that the revised response asserts, judged again.",
    )


def _changes(changes: Mapping[str, Sequence[Change]]) -> Table:
    rows = [
        {
            "response": response,
            "claim": change.atom.id,
            "action": change.action,
            "before": change.before,
            "after": change.after,
            "was": change.atom.text,
            "is": change.text,
            "passage": change.passage,
            "reason": change.reason,
        }
        for response, response_changes in changes.items()
        for change in response_changes
        if change.action != KEPT
    ]
    names = ("response", "claim", "action", "before", "after", "was", "is", "passage", "reason")
    return Table(
        data_frame(rows, list(names)),
        columns_as(
            "response | claim | action | before:3 P before | after:3 P after | was | is | "
            "passage | reason"
        ),
        "Claims that changed.",
    )


def _claims(
    revised: Sequence[FactGraph], changes: Mapping[str, Sequence[Change]]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each claim that a revised response asserts."""
    for graph in revised:
        change_of = {change.atom.id: change for change in changes[graph.id]}
        for atom in graph.atoms:
            change = change_of[atom.id]
            yield claim_row(
                graph.id, atom, change.after, action=change.action, before=change.before
            )


def _labels(changes: Mapping[str, Sequence[Change]]) -> Table:
    """Outcome for labeled claims: removed errors, and lost true claims."""
    rows = []
    for label, title in ((False, "false"), (True, "true")):
        row: dict[str, Any] = {"label": title}
        for action in ACTIONS:
            shares = [
                float(np.mean(of_label))
                for response_changes in changes.values()
                if (
                    of_label := [
                        c.action == action for c in response_changes if c.atom.label is label
                    ]
                )
            ]
            ends = mean_interval(shares, scale=Scale.PROBABILITY)
            row |= named(action, ends)
        row["claims"] = sum(
            c.atom.label is label for response_changes in changes.values() for c in response_changes
        )
        rows.append(row)
    return Table(
        data_frame(rows),
        columns_as("label | claims:0 | kept:3± | hedged:3± | corrected:3± | dropped:3±"),
        "Changes to claims with human labels: shares, means over responses.",
        note="A false claim that is not kept is a removed error; a true claim that is not kept is "
        "lost. The new texts of corrected claims have no labels.",
    )


def _sentences(changes: Mapping[str, Sequence[Change]]) -> list[str]:
    every = [change for response_changes in changes.values() for change in response_changes]
    counts = Counter(change.action for change in every)
    listed = ", ".join(f"{counts[action]:,} {action}" for action in ACTIONS if counts[action])
    sentences = [
        f"{counted(len(every), 'claim')} of {counted(len(changes), 'response')}: {listed}."
    ]
    apart = [
        float(np.mean(after)) - float(np.mean([change.before for change in response_changes]))
        for response_changes in changes.values()
        if (after := [change.after for change in response_changes if not math.isnan(change.after)])
    ]
    gain = mean_interval(apart, scale=Scale.NUMBER)
    if not math.isnan(gain[0]):
        sentences.append(
            "The mean P of the claims that a response asserts changes by "
            f"{with_interval(*gain)}, judged by the same graph. The revision optimizes this "
            "value, so the change does not prove that the revised text is right."
        )
    return sentences
