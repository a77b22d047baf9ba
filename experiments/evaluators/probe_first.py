"""The probe at the start of an assessment: what it asks about, and the correction that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.asking.probing import ProbeResult, probe_in_session
from experiments.asking.relation_correction import (
    BATCH,
    PROBE,
    RelationCorrection,
    wanted_correction,
)
from factormodels.errors import InputError
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from factormodels.extraction.probe.table import CLAIM_RELATIONS, RELATIONS

if TYPE_CHECKING:
    from experiments.asking.session import Session
    from experiments.evaluators.assess import AssessSettings


def is_probed(settings: AssessSettings) -> bool:
    """Whether a language model is probed: where it was asked for, or its answers are kept."""
    if settings.probe is not None:
        return settings.probe
    return isinstance(settings.model, str | LitellmSettings)


def probed_stages(settings: AssessSettings, relations: str) -> tuple[str, ...]:
    """The stages whose answers are one of several labels and that an assessment asks for.

    Args:
        settings: what was asked for.
        relations: where relations come from.
    """
    asks = settings.model is not None
    return (
        # Lexical and recorded relations are no answers of a model that is asked here.
        *([RELATIONS] if relations == "model" or (settings.probe and _is_local(relations)) else []),
        *(settings.assessors if asks else ()),
        *([CLAIM_RELATIONS] if asks and settings.coherence else []),
    )


def _is_local(relations: str) -> bool:
    return relations != "lexical" and not relations.startswith("recorded")


def probe_first(
    session: Session, settings: AssessSettings, relations: str
) -> tuple[tuple[ProbeResult, ...], RelationCorrection | None]:
    """What the probe of an assessment finds, and the correction of its relations.

    Args:
        session: whose model is asked.
        settings: what was asked for.
        relations: where relations come from.

    Raises:
        InputError: if a correction is wanted that needs the probe, and there is none.
        LimitReachedError: if no more may be asked.
        UnansweredProbeError: if an outage cut it off.
    """
    wanted = wanted_correction(settings.relation_correction)
    names = probed_stages(settings, relations) if is_probed(settings) else ()
    asked = (probe_in_session(session, settings, name) for name in names)
    results = tuple(result for result in asked if result is not None)
    for result in results:
        if result.probe.name == RELATIONS:
            return results, result.correction
    if wanted == PROBE:
        raise InputError(
            "--relation-correction probe needs the probe of a relation model that is asked; give "
            "--probe, or batch or none"
        )
    if isinstance(wanted, RelationCorrection):
        return results, wanted
    return results, RelationCorrection(BATCH) if wanted == BATCH else None
