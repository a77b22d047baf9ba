"""The probe before an evaluation: its questions, its findings and the resulting correction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from experiments.asking.probe_tables import probe_cautions, probe_sentences, probe_tables
from experiments.asking.probing import (
    ProbeResult,
    probe_in_session,
    probe_language_model_relations,
    probe_model,
)
from experiments.asking.relation_correction import (
    BATCH,
    PROBE,
    RelationCorrection,
    wanted_correction,
)
from experiments.asking.relation_models import relation_model
from experiments.findings.findings import Findings
from experiments.findings.responses import ListedResponses
from experiments.findings.table import with_note
from factormodels.errors import InputError
from factormodels.extraction.asking.table import ASSESSORS
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.probe.asking import STAGE, probe_calls
from factormodels.extraction.probe.table import CLAIM_RELATIONS, RELATIONS, RELEVANCES
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.fact_graph import FactGraph
from factormodels.metadata.stage_keys import PROBE_KEY

if TYPE_CHECKING:
    from experiments.asking.session import Session
    from experiments.evaluators.assess import AssessSettings


def is_probed(wanted: bool | None, model: Any) -> bool:
    """Return True if a language model is to be probed: on request, or if its answers are cached.

    Args:
        wanted: the user's choice; None for no choice.
        model: the model, as the user gave it.
    """
    if model is None or wanted is not None:
        return bool(wanted)
    return isinstance(model, str | LitellmSettings)


def probed_stages(settings: AssessSettings, relations: str) -> tuple[str, ...]:
    """Stages of an assessment with answers from a fixed set of labels.

    Args:
        settings: settings of the assessment.
        relations: source of relations.
    """
    asks = settings.model is not None
    by_relevance = any(ASSESSORS[assessor].steps for assessor in settings.assessors)
    by_relevance |= settings.core and settings.core_relevance
    return (
        # Lexical and recorded relations are not answers of a model.
        *([RELATIONS] if relations == "model" or (settings.probe and _is_local(relations)) else []),
        *(settings.assessors if asks else ()),
        *([RELEVANCES] if asks and by_relevance else []),
        *([CLAIM_RELATIONS] if asks and settings.coherence else []),
    )


def _is_local(relations: str) -> bool:
    return relations != "lexical" and not relations.startswith("recorded")


@dataclass(frozen=True)
class FirstProbe:
    """Result of the probe of an assessment.

    Attributes:
        results: results of each probed stage.
        unrecorded: stages without recorded answers in a replay.
        correction: resulting correction of relations; None for no correction.
    """

    results: tuple[ProbeResult, ...] = ()
    unrecorded: tuple[str, ...] = ()
    correction: RelationCorrection | None = None

    @property
    def sentences(self) -> Iterator[str]:
        """Remarks on the probe."""
        yield from probe_sentences(self.results)
        if self.unrecorded:
            names = " and ".join(self.unrecorded)
            yield (
                f"The cache has no answers to the probe of {names}: it is unknown whether the "
                "model's answers are evidence."
            )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Sentences on probes whose answers are not evidence."""
        return tuple(probe_cautions(self.results))

    @property
    def usable(self) -> bool:
        """True if all probed answers are evidence."""
        return all(result.usable for result in self.results)


def first_probe(
    stages: Iterable[tuple[str, LanguageModel | None]],
    *,
    openness: float = OPENNESS,
) -> FirstProbe:
    """Probe stages whose answers are not corrected.

    Args:
        stages: names of probes with their models.
        openness: largest width of the range of a relation's probability from log-probabilities.

    Raises:
        LimitReachedError: if a limit on calls or costs is reached.
        UnansweredProbeError: if an outage interrupts the probe.
    """

    def judging(model: LanguageModel) -> RelationModel:
        return relation_model("model", model, openness=openness)[0]

    results, unrecorded = [], []
    for name, model in stages:
        if model is None:
            continue
        if name == RELATIONS:
            result = probe_language_model_relations(model, judging)
        else:
            result = probe_model(model, name)
        if result is None:
            unrecorded.append(name)
        else:
            results.append(result)
    return FirstProbe(tuple(results), tuple(unrecorded))


def with_probe(findings: Findings, probed: FirstProbe) -> Findings:
    """Add the findings of the probe: its sentences first, its table before the costs.

    If a model's answers are not evidence, the page states it at the top, and the file of each table
    of results in its note, which papers keep. Only the summary row of the probe is added;
    `factormodels probe` shows the other tables.
    """
    if not (probed.results or probed.unrecorded):
        return findings
    probe = probe_tables(probed.results)
    last = {name: table for name, table in findings.tables.items() if name == "cost"}
    others = {
        name: with_note(table, " ".join(probed.cautions))
        for name, table in findings.tables.items()
        if name not in last
    }
    listed, cautions = findings.listed, probed.cautions
    return replace(
        findings,
        sentences=(*probed.sentences, *findings.sentences),
        tables={**others, **probe, **last},
        unshown=(*findings.unshown, *(name for name in probe if name != "probe")),
        incomplete=findings.incomplete or not probed.usable,
        listed=partial(_cautioned, listed, cautions) if listed and cautions else listed,
    )


def _cautioned(listed: Callable[[], ListedResponses], cautions: tuple[str, ...]) -> ListedResponses:
    """Responses with additional cautions, the given ones first, without duplicates."""
    responses = listed()
    return replace(responses, cautions=tuple(dict.fromkeys((*cautions, *responses.cautions))))


def probe_recorded(graph: FactGraph, cautions: tuple[str, ...]) -> FactGraph:
    """Return the response with failed probes of its models in its metadata.

    The warning then stays with the file when it is read without the findings of this run.
    """
    metadata = {**graph.metadata, PROBE_KEY: {"cautions": list(cautions)}}
    return replace(graph, metadata=metadata)


def planned_probe(names: Iterable[str]) -> dict[str, int]:
    """Number of calls of the probes, as a row of a dry run; empty without probes."""
    calls = sum(probe_calls(name) for name in names)
    return {STAGE: calls} if calls else {}


def probe_first(session: Session, settings: AssessSettings, relations: str) -> FirstProbe:
    """Run the probe of an assessment, and return it with the correction of relations.

    Args:
        session: session with the model.
        settings: settings of the assessment.
        relations: source of relations.

    Raises:
        InputError: if a correction needs the probe and there is none.
        LimitReachedError: if a limit on calls or costs is reached.
        UnansweredProbeError: if an outage interrupts the probe.
    """
    wanted = wanted_correction(settings.relation_correction)
    stages = probed_stages(settings, relations)
    # A local relation model is probed on request.
    names = stages if settings.probe or is_probed(settings.probe, settings.model) else ()
    asked = {name: probe_in_session(session, settings, name) for name in names}
    results = tuple(result for result in asked.values() if result is not None)
    unrecorded = tuple(name for name, result in asked.items() if result is None)
    by_probe = asked.get(RELATIONS)
    if by_probe is not None:
        return FirstProbe(results, unrecorded, by_probe.correction)
    if wanted == PROBE:
        raise InputError(
            "--relation-correction probe needs a probe of the relation model; add --probe, or "
            "give batch or none"
        )
    if wanted == BATCH:
        wanted = RelationCorrection(BATCH)
    correction = wanted if isinstance(wanted, RelationCorrection) else None
    return FirstProbe(results, unrecorded, correction)
