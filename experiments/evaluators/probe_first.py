"""The probe at the start of an assessment: what it asks about, and the correction that follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.asking.probe_tables import probe_sentences
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


@dataclass(frozen=True)
class FirstProbe:
    """What the probe of an assessment found.

    Attributes:
        results: of each stage that was asked.
        unrecorded: stages whose answers a replay does not have.
        correction: the correction of relations that follows; None for none.
    """

    results: tuple[ProbeResult, ...] = ()
    unrecorded: tuple[str, ...] = ()
    correction: RelationCorrection | None = None

    @property
    def sentences(self) -> Iterator[str]:
        """What a reader must know of it."""
        yield from probe_sentences(self.results)
        if self.unrecorded:
            names = " and ".join(self.unrecorded)
            yield (
                f"The cache has no answers to the probe of {names}: whether the model's answers "
                "are evidence is not known."
            )

    @property
    def usable(self) -> bool:
        """Whether all that was probed is evidence."""
        return all(result.usable for result in self.results)


def probe_first(session: Session, settings: AssessSettings, relations: str) -> FirstProbe:
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
    asked = {name: probe_in_session(session, settings, name) for name in names}
    results = tuple(result for result in asked.values() if result is not None)
    unrecorded = tuple(name for name, result in asked.items() if result is None)
    by_probe = asked.get(RELATIONS)
    if by_probe is not None:
        return FirstProbe(results, unrecorded, by_probe.correction)
    if wanted == PROBE:
        raise InputError(
            "--relation-correction probe needs the probe of a relation model that is asked; give "
            "--probe, or batch or none"
        )
    if wanted == BATCH:
        wanted = RelationCorrection(BATCH)
    correction = wanted if isinstance(wanted, RelationCorrection) else None
    return FirstProbe(results, unrecorded, correction)
