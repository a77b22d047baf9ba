"""Coherence of a response's claims: relations between the claims, and readouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from calibration.intervals import mean_interval
from experiments.asking.failed_calls import calls_in_ledger, with_failed_calls
from experiments.asking.ledger_table import cost_tables, planned_findings
from experiments.asking.probe_settings import FirstProbeSettings
from experiments.asking.relation_models import relation_model
from experiments.asking.session import Session, asking
from experiments.asking.settings import AskingSettings, Model
from experiments.columns.frame import claim_row, long_table
from experiments.columns.responses import load_responses
from experiments.evaluators.calls.likeness import MEANING, likeness_of_pairs
from experiments.evaluators.probe_first import FirstProbe, first_probe, is_probed, with_probe
from experiments.findings.findings import CLAIMS, Findings
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import with_interval
from experiments.progress import each_response
from experiments.settings import USUAL, Option, Settings, front_door
from experiments.settings.conventions import note_of
from experiments.settings.inputs import relation_remarks
from experiments.settings.limits import Encoding, Least, Openness
from factormodels.claims import LEAST_PROBABILITY, Atom
from factormodels.conventions import DEFAULT
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.probe.table import CLAIM_RELATIONS, RELATIONS
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.stages.claim_relations import (
    METADATA_KEY,
    claim_pairs,
    lexical_shares,
    likeliest_related,
    most_valuable,
    with_judged_claims,
    with_senses,
)
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted
from factormodels.variants import between_claims, claims_alone
from inference.backend import InferenceError

if TYPE_CHECKING:
    from experiments.columns.responses import ResponsesIn
    from inference.tasks import Coherence


class ClaimCoherenceSettings(Settings):
    """Coherence.

    Options of `assess` on relations between claims.
    """

    coherence: bool = False
    """Also report the agreement among the claims of each response, as `coherence` does."""

    claim_window: Annotated[int | None, Field(ge=1), Option("CLAIMS")] = None
    """With --coherence: relate only claims at most this far apart, unless the responses have
    relations between claims.
    """


GIVEN, SENSES = "given", "senses"

ASSERTED = 0.99
"""Prior of a claim accepted as stated, the same as for a passage (docs/how-to/coherence.md)."""


class CoherenceSettings(
    AskingSettings,
    FirstProbeSettings,
):
    """Relations between claims.

    Options of `coherence`.
    """

    relations: Annotated[str | None, Option("NAME", usual=True)] = None
    """Source of the relations between claims: given (from the graphs), lexical, model or senses (by
    --model; senses also finds exclusive and co-necessary claims), recorded:FILE or nli:FOLDER. By
    default given if there are any, otherwise senses with --model, otherwise lexical.
    """

    window: Annotated[int | None, Field(ge=1), Option("CLAIMS", usual=True)] = None
    """Largest distance between two claims to ask about."""

    most: Annotated[int | None, Field(ge=1), Option("PAIRS", usual=True)] = None
    """Largest number of pairs to ask about per response."""

    by: Annotated[str, Option("NAME")] = "related"
    """Choice of these pairs: most likely related by their words (related), largest loss of
    consistency if they conflict, by words and posteriors (value), or most similar by embeddings of
    a local model (meaning:FOLDER).
    """

    openness: Openness = OPENNESS

    least: Least = LEAST_PROBABILITY

    model: Annotated[Model, USUAL] = None
    """Language model that relates claims; as litellm spells it, with its key from the environment.
    """

    encoding: Encoding = DEFAULT_ENCODING

    prior: Annotated[float, Field(ge=0, le=1), Option("P")] = ASSERTED
    """Prior of every claim; 0.99 accepts the claims as a response asserts them."""

    evidence: Annotated[bool, USUAL] = False
    """Include the passages of the graphs, with their relations and priors."""


@dataclass(frozen=True, eq=False)
class _Found:
    """Findings on a response.

    Attributes:
        graph: the response with its relations.
        seen: the claims, passages and relations that are included.
        readouts: its readouts; None if there are none.
        failure: reason for missing readouts.
    """

    graph: FactGraph
    seen: FactGraph
    readouts: Coherence | None = None
    failure: str = ""


@front_door
def coherence(responses: ResponsesIn, settings: CoherenceSettings) -> Findings:
    """Measure how well the claims of each response agree, independently of evidence.

    Shows a row per response with the agreement, which depends only on conflicts between claims, and
    other common readouts: the mean marginal, the probability that no conflict is active, a reified
    node, the position of log Z. All are exact. Then shows the conflicts, the most expensive first.
    With --out also writes the graphs with their relations, which every command reads.

    Examples::

        coherence("at-odds")
        coherence("graphs.jsonl")
        coherence("answers.jsonl", model="openai/NAME", window=8)
        coherence("demonstration", relations="lexical", most=40).save("results/coherence")

    Args:
        responses: Responses with claims: fact graphs, FActScore's JSON Lines, an embedded dataset
            or another file of responses; or a table with response, claim and text, a row for each
            claim. In Python also fact graphs, a data frame, or findings.
        settings: options; in Python, pass the fields as keywords instead. Language models may be
            objects.

    Raises:
        InputError: if the responses cannot be read, none has a claim, or an option does not fit.
        MissingDependencyError: if a relation model needs a library that is not installed.
    """
    loaded = load_responses(responses).only(
        lambda graph: graph.atoms,
        "claims",
        "no response has claims; list claims with `factormodels assess`, and give its graphs",
    )
    graphs = loaded.graphs
    relations = settings.relations or _default_relations(graphs, settings)
    if relations != GIVEN and not any(
        atom.text.strip() for graph in graphs for atom in graph.atoms
    ):
        raise InputError(
            "the claims have no texts, so their relations cannot be judged; give responses with "
            "the texts of their claims, or with relations between them"
        )
    readings: list[_Found] = []
    with asking(settings) as session:
        relate = _relating(relations, session.model, settings)
        probed = _probed(relations, session, settings)
        for graph in each_response(graphs):
            readings.append(_readouts(relate(graph), settings))
    if settings.dry_run:
        return planned_findings(loaded.source, session.ledger)
    conflicts = _conflicts(readings)
    tables = {"responses": _responses(readings, settings)}
    if len(conflicts.frame):
        tables["conflicts"] = conflicts
    tables[CLAIMS] = long_table(_claims(readings), "P(true) of each claim, given the others.")
    tables |= cost_tables(session.ledger, len(readings))
    failed = [reading.failure for reading in readings if reading.failure]
    stateless = sum(reading.readouts.log_z == -math.inf for reading in readings if reading.readouts)
    missing = sum(
        len(reading.graph.metadata.get(METADATA_KEY, {}).get("missing", ())) for reading in readings
    )
    remarks = [*loaded.remarks, *failed]
    if settings.model is not None and relations == GIVEN:
        remarks.append(
            "The responses already have relations between their claims, so the model was not "
            f"asked; add --relations {SENSES} to ask it."
        )
    remarks += relation_remarks((reading.seen for reading in readings), settings.encoding)
    if stateless:
        remarks.append(
            f"The certain relations of {counted(stateless, 'response')} leave no possible state "
            "of the claims. The agreement, the consistency and the costs still measure the "
            "conflict; the other readouts are undefined."
        )
    findings = Findings(
        source=loaded.source,
        sentences=(*_sentences(readings, relations, missing), *dict.fromkeys(remarks)),
        tables=tables,
        settings={"relations": relations},
        unshown=(CLAIMS,),
        incomplete=bool(failed or missing),
        tidy=lambda: tables[CLAIMS].frame,
        graphs=tuple(reading.graph for reading in readings),
    )
    return with_probe(with_failed_calls(findings, calls_in_ledger(session.ledger)), probed)


def _probed(relations: str, session: Session, settings: CoherenceSettings) -> FirstProbe:
    """Result of probing the questions about claims."""
    names = {SENSES: CLAIM_RELATIONS, "model": RELATIONS}
    if relations not in names or not is_probed(settings.probe, settings.model):
        return FirstProbe()

    return first_probe([(names[relations], session.model)], openness=settings.openness)


def _default_relations(graphs: Sequence[FactGraph], settings: CoherenceSettings) -> str:
    if any(between_claims(graph) for graph in graphs):
        return GIVEN
    return "lexical" if settings.model is None else SENSES


def _relating(
    relations: str, model: LanguageModel | None, settings: CoherenceSettings
) -> Callable[[FactGraph], FactGraph]:
    """Stage that adds the relations between claims to a response."""
    if settings.by != "related" and settings.most is None:
        raise InputError(f"--by {settings.by} chooses pairs only with --most; give --most N")
    if relations == GIVEN:
        for name in ("window", "most"):
            if getattr(settings, name) is not None:
                raise InputError(
                    f"--{name} chooses pairs to ask about, and the relations are given; add "
                    f"--relations {'lexical' if model is None else SENSES}"
                )
        return lambda graph: graph

    alike = None
    if settings.by not in ("related", "value"):
        if not settings.by.startswith(MEANING):
            known = ("related", "value", f"{MEANING}FOLDER")
            raise InputError(unknown_name(f"--by {settings.by!r}", settings.by, known))
        alike = likeness_of_pairs(settings.by, settings.cache.absolute().parent)

    def pairs(graph: FactGraph) -> Any:
        chosen = claim_pairs(graph, settings.window)
        if settings.most is None or settings.most >= len(chosen):
            return chosen
        if settings.by == "related":
            return likeliest_related(chosen, settings.most)
        if alike is not None:
            texts = [TextPair(a.text, b.text) for a, b in chosen]
            return most_valuable(chosen, alike(texts), settings.most)
        return most_valuable(chosen, values_of_pairs(graph, chosen, settings), settings.most)

    if relations == SENSES:
        if model is None:
            raise InputError("--relations senses needs a language model; name one with --model")
        return lambda graph: with_senses(graph, model, pairs(graph), least=settings.least)
    judge, _ = relation_model(relations, model, openness=settings.openness, also=(GIVEN, SENSES))
    return lambda graph: with_judged_claims(graph, judge, pairs(graph), least=settings.least)


def values_of_pairs(
    graph: FactGraph, pairs: Sequence[tuple[Atom, Atom]], settings: CoherenceSettings
) -> NDArray[np.float64]:
    """Cost of each pair if it were the only conflict, judged by its words, float (n,).

    The cost is -log(1 - q P(both true)), where q is the lexical model's probability of a
    contradiction (the larger of both orders), and the claims have their distribution without
    relations between claims.
    """
    from inference.tasks import pairwise_joints

    q = lexical_shares(pairs)[:, :, 1].max(axis=1)
    alone = set(between_claims(graph))
    relations = (
        [relation for relation in graph.relations if relation not in alone]
        if settings.evidence
        else ()
    )
    kept = graph.contexts if settings.evidence else ()
    bare = replace(graph, contexts=kept, relations=tuple(relations))
    facts = bare.with_priors(atoms=dict.fromkeys(bare.atom_ids, settings.prior))
    joints = pairwise_joints(facts.to_factor_graph(settings.encoding), list(graph.atom_ids))
    position_of = {atom: number for number, atom in enumerate(graph.atom_ids)}
    both = np.array([joints[position_of[a.id], position_of[b.id], 1, 1] for a, b in pairs])
    result: NDArray[np.float64] = -np.log1p(-np.minimum(q * both, 1.0 - 1e-12))
    return result


def _readouts(graph: FactGraph, settings: CoherenceSettings) -> _Found:
    from inference.tasks import coherence as readouts

    seen = graph if settings.evidence else claims_alone(graph)
    try:
        computed = readouts(
            seen.compiled_for(settings.encoding), settings.encoding, prior=settings.prior
        )
    except InferenceError as error:
        return _Found(graph, seen, failure=f"{graph.id}: {error}")
    return _Found(graph, seen, computed)


_READOUTS = (
    "agreement:3 | consistency:3 | mean_marginal:3 mean P | reified:3 | position:3 log Z | "
    "no_active_conflict:3 no conflict active"
)
_NUMBERS = (*(column.name for column in columns_as(_READOUTS)), "log_z", "floor", "ceiling")


def _responses(readings: Sequence[_Found], settings: CoherenceSettings) -> Table:
    rows = []
    for each in readings:
        measured = each.readouts
        rows.append(
            {
                "response": each.graph.id,
                "claims": len(each.graph.atoms),
                "relations": len(between_claims(each.graph))
                if measured is None
                else measured.n_relations,
                "conflicts": math.nan if measured is None else len(measured.conflicts),
                **{name: getattr(measured, name, math.nan) for name in _NUMBERS},
            }
        )
    return Table(
        data_frame(rows),
        columns_as(f"response | claims:0 | relations:0 | conflicts:0 | {_READOUTS}"),
        "Agreement among the claims of each response.",
        note=(
            "Agreement: the consistency per claim, its n-th root; 1 without conflicts. It comes "
            "first because it depends only on conflicts, at any response size; the others are "
            "common readouts. Consistency: probability that no real conflict is violated. Mean "
            "P: mean posterior of the claims. No conflict active: probability that no "
            "contradiction or exclusion has both claims true. Reified: posterior of a node that "
            "makes all relations hold. Log Z: position between the most probable state, 0, and "
            "log Z without conflicts, 1. " + _conventions_note(settings)
        ),
    )


def _claims(readings: Sequence[_Found]) -> Iterator[dict[str, Any]]:
    """Yield a row for each claim; p is missing where a response has no readouts."""
    for each in readings:
        atoms = each.seen.atoms
        measured = each.readouts
        p = [None] * len(atoms) if measured is None else measured.marginals.tolist()
        for atom, p_true in zip(atoms, p, strict=True):
            yield claim_row(each.graph.id, atom, p_true)


def _conventions_note(settings: CoherenceSettings) -> str:
    """Sentence on the conventions of the graphs, without those about passages if there is no
    evidence."""
    names = (*(["context_prior"] if settings.evidence else []), "weak_relations", "encoding")
    return note_of(replace(DEFAULT, encoding=settings.encoding), names)


def _conflicts(readings: Sequence[_Found]) -> Table:
    rows = []
    for each in readings:
        measured = each.readouts
        if measured is None:
            continue
        texts = {atom.id: atom.text for atom in each.seen.atoms}
        places = zip(
            measured.conflicts.tolist(),
            measured.active.tolist(),
            measured.costs.tolist(),
            strict=True,
        )
        for index, active, cost in places:
            relation = each.seen.relations[index]
            rows.append(
                {
                    "response": each.graph.id,
                    "first": relation.source,
                    "second": relation.target,
                    "relation": str(relation.kind),
                    "p": relation.probability,
                    "both_true": active,
                    "cost": cost,
                    "first_text": texts[relation.source],
                    "second_text": texts[relation.target],
                }
            )
    rows.sort(key=lambda row: -row["cost"])
    names = ("response", "first", "second", "relation", "p", "both_true", "cost")
    texts_ = ("first_text", "second_text")
    return Table(
        data_frame(rows, [*names, *texts_]),
        columns_as(
            "response | first | second | relation | p:2 | both_true:3 P(both) | cost:3 | "
            "first_text first claim | second_text second claim"
        ),
        "Conflicts between claims, the most expensive first.",
        note=(
            "P(both): posterior that both claims are true. Cost: -log of the consistency if it "
            "were the only conflict."
        ),
    )


def _sentences(readings: Sequence[_Found], relations: str, missing: int) -> list[str]:
    known = [each.readouts for each in readings if each.readouts is not None]
    sentences = [
        f"{counted(sum(measured.n_relations for measured in known), 'relation')} between the "
        f"{counted(sum(measured.n_claims for measured in known), 'claim')} of "
        f"{counted(len(known), 'response')}, "
        f"{sum(len(measured.conflicts) for measured in known):,} of them conflicts "
        f"(relations: {relations})."
    ]
    if known:
        agreement = with_interval(*mean_interval([measured.agreement for measured in known]))
        sentences.append(f"Agreement per claim, mean over responses: {agreement}.")
    if relations == "given" and known and not any(measured.n_relations for measured in known):
        sentences.append(
            "No graph has relations between claims, so this agreement has no meaning: judge the "
            "claims with --relations lexical or --model."
        )
    if relations == "lexical":
        sentences.append(
            "The lexical model compares the words of two claims, and was fitted to passages and "
            "claims, not to pairs of claims; use --model to ask a language model instead."
        )
    every = sum(len(claim_pairs(each.graph)) for each in readings)
    asked = sum(each.graph.metadata.get(METADATA_KEY, {}).get("asked", 0) for each in readings)
    if relations != GIVEN and asked < every:
        sentences.append(
            f"{asked:,} of {counted(every, 'pair')} of claims were asked about. Conflicts among "
            "the others are not detected, and could only lower the consistency and the "
            "agreement."
        )
    if missing:
        sentences.append(f"{counted(missing, 'pair')} could not be judged and have no relation.")
    return sentences
