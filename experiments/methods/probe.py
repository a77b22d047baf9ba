"""A probe of a language model with questions whose answers are known."""

from __future__ import annotations

from typing import Annotated

from experiments.asking.ledger_table import cost_tables, planned_findings
from experiments.asking.probe_tables import probe_sentences, probe_tables
from experiments.asking.probing import probe_in_session
from experiments.asking.relation_models import name_of_relations
from experiments.asking.relation_settings import RelationSettings
from experiments.asking.session import asking
from experiments.asking.settings import AskingSettings, name_of_model
from experiments.findings.findings import Findings
from experiments.settings import USUAL, Names, front_door
from factormodels.errors import InputError
from factormodels.extraction.probe.table import RELATIONS, probe_named, probes


class ProbeSettings(AskingSettings, RelationSettings):
    """Probe.

    Options of `probe`.
    """

    stages: Annotated[Names, USUAL] = (RELATIONS,)
    """Questions to ask: relations, claim relations, an assessor such as factscore, a setting of
    self-judgment such as direct_asking, relevance, refusals; or all.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the probes.

        Raises:
            InputError: if a name is unknown, or none is given.
        """
        if "all" in self.stages:
            return tuple(probes())
        for name in self.stages:
            probe_named(name)
        if not self.stages:
            raise InputError(f"--stages names nothing; give one of {', '.join(probes())}, or all")
        return tuple(dict.fromkeys(self.stages))


@front_door
def probe(*, settings: ProbeSettings) -> Findings:
    """Probe a language model: are its answers evidence, and does a correction help?

    Asks questions with known answers: 36 pairs of a passage and a claim, 72 pairs of claims, 36
    claims of common knowledge, 36 claims on or off a question, and 36 responses that answer or
    decline. The first 36 pairs, twelve for each relation, include identical sentences, paraphrases,
    negations, numbers, other subjects, and passages that instruct the model to give an answer.
    Shows accuracy and log loss, the quality of the log-probabilities, whether the model obeys
    instructions in a passage, and the effect of correcting label bias. Answers that are no better
    than the best constant answer are not evidence. The answers stay in the cache, where `assess`
    finds them.

    Examples::

        probe(model="openai/NAME")
        probe(model="openai/NAME", stages="all")
        probe(model="openai/NAME", api_base="http://127.0.0.1:8080/v1", method="verbalized")
        probe(relations="lexical")

    Args:
        settings: options; in Python, pass the fields as keywords instead.

    Returns:
        Tables: `probe` with a row per stage; `probe_kinds`, `probe_confusion`, `probe_corrections`,
        `probe_log_probabilities`, `probe_answers`, and `cost`.

    Raises:
        InputError: for an unknown name, or if a required model is not named.
        LimitReachedError: if a limit on calls or costs is reached.
        MissingDependencyError: if a library that is needed is not installed.
        UnansweredProbeError: if no question is answered.
    """
    names = settings.names
    with asking(settings) as session:
        asked = [probe_in_session(session, settings, name) for name in names]
    source = name_of_model(settings.model) or name_of_relations(settings.relations or "lexical")
    if settings.dry_run and session.ledger.stages:
        return planned_findings(str(source), session.ledger)
    results = [result for result in asked if result is not None]
    unrecorded = len(asked) - len(results)
    missing = (
        (f"The cache has no answers to {unrecorded} of {len(asked)} probes.",) if unrecorded else ()
    )
    return Findings(
        source=str(source),
        sentences=(*probe_sentences(results), *missing),
        tables={**probe_tables(results), **cost_tables(session.ledger)},
        unshown=("probe_answers",),
        incomplete=bool(unrecorded) or not all(result.usable for result in results),
    )
