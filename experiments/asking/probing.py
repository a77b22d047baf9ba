"""The probe of a session: a model's accuracy on known questions before its answers are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration.estimate import Difference
from calibration.label_bias import (
    LabelScores,
    beats_constant,
    compare_corrections,
    label_scores,
    left_out_means,
    mean_answer,
    without_bias,
)
from calibration.validation import Floats
from experiments.asking.relation_correction import (
    AUTOMATIC,
    BATCH,
    NONE,
    PROBE,
    RelationCorrection,
    wanted_correction,
)
from experiments.asking.relation_models import relation_model
from experiments.asking.relation_settings import RelationSettings
from experiments.asking.session import Session
from factormodels.claims import likeliest_kind
from factormodels.errors import FactormodelsError, InputError
from factormodels.extraction.asking.table import RELATION
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.accounting import Account, charged_to
from factormodels.extraction.language_model.cache import NotRecordedError
from factormodels.extraction.probe.asking import (
    Probed,
    probe_relations,
    probe_stage,
    watched,
)
from factormodels.extraction.probe.log_probabilities import (
    LogProbabilityFacts,
    log_probability_facts,
)
from factormodels.extraction.probe.table import RELATIONS, Probe, probe_named
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.relation_models.base import RelationModel

LEVEL = 0.95
"""Level of the one-sided bound that an accuracy has to clear, and of intervals."""

_LEAST_BIAS = 1e-6
"""A preference counts as no smaller: a label that no answer without content lists has one."""


class UnansweredProbeError(FactormodelsError):
    """Nobody answered the probe for a reason that may pass."""


@dataclass(frozen=True)
class CorrectionEvidence:
    """Effect of a correction on the answers of a probe.

    Attributes:
        name: the correction.
        scores: scores of the corrected answers.
        difference: their mean log loss less that before, with its interval.
    """

    name: str
    scores: LabelScores
    difference: Difference

    @property
    def better(self) -> bool:
        """True if the whole interval is below zero: the log loss is smaller."""
        return self.difference.upper < 0


@dataclass(frozen=True)
class ProbeResult:
    """Scored answers of a model to a probe.

    Attributes:
        probed: the answers.
        model: the model's name.
        labels: what each answer counts as, corrected where a correction is in use; empty where it
            could not be read.
        scores: scores of the answers that have probabilities, as they were given; None where none
            has.
        corrected: scores after the correction in use; None without one.
        evidence: what each correction would do.
        correction: the correction in use; None without one.
        facts: what their log-probabilities are worth; None of a relation model that has none.
    """

    probed: Probed
    model: str
    labels: tuple[str, ...]
    scores: LabelScores | None
    corrected: LabelScores | None = None
    evidence: tuple[CorrectionEvidence, ...] = ()
    correction: RelationCorrection | None = None
    facts: LogProbabilityFacts | None = None

    @property
    def probe(self) -> Probe:
        """The probe."""
        return self.probed.probe

    @property
    def answered(self) -> int:
        """Number of answers that could be read."""
        return sum(map(bool, self.labels))

    @property
    def correct(self) -> int:
        """Number of answers that are right."""
        right = zip(self.labels, self.probe.questions, strict=True)
        return sum(label == question.label for label, question in right)

    @property
    def given_correct(self) -> int:
        """Number of answers that are right before a correction."""
        right = zip(self.probed.answers, self.probe.questions, strict=True)
        return sum(answer.label == question.label for answer, question in right)

    @property
    def usable(self) -> bool:
        """True if the answers are evidence: better than the best constant answer.

        An answer that could not be read is no answer; where none could, nothing is evidence.
        """
        answered = [
            question
            for label, question in zip(self.labels, self.probe.questions, strict=True)
            if label
        ]
        if not answered:
            return False
        # Over the answered questions: which ones were answered is no merit of the model.
        right = Counter(question.label for question in answered)
        chance = max(right.values()) / len(answered)
        if chance == 1.0:
            return False
        return beats_constant(self.correct, len(answered), chance, level=LEVEL)

    def would_be_usable(self, evidence: CorrectionEvidence) -> bool:
        """Return True if the answers would be evidence under a correction."""
        n = evidence.scores.n
        chance = evidence.scores.confusion.sum(axis=1).max() / n
        right = round(evidence.scores.accuracy * n)
        return chance < 1.0 and beats_constant(right, n, float(chance), level=LEVEL)

    @property
    def commonest(self) -> tuple[str, int]:
        """The commonest answer and how often it was given."""
        given = Counter(label for label in self.labels if label)
        return given.most_common(1)[0] if given else ("", 0)

    @property
    def ordered(self) -> tuple[int, int]:
        """Number of a passage's instructions that were obeyed, and their total.

        An order is obeyed if the answer is the one it wants, and was another without it.
        """
        by_id = {
            question.id: label
            for question, label in zip(self.probe.questions, self.labels, strict=True)
        }
        orders = [question for question in self.probe.questions if question.order]
        return (
            sum(
                by_id[question.id] == question.order != by_id[question.group]
                for question in orders
                if by_id[question.group]
            ),
            len(orders),
        )

    @property
    def confusion(self) -> dict[str, dict[str, int]]:
        """Number of answers by right label and given label."""
        table = {right: dict.fromkeys(self.probe.labels, 0) for right in self.probe.labels}
        for question, label in zip(self.probe.questions, self.labels, strict=True):
            if label:
                table[question.label][label] += 1
        return table


def probe_model(model: LanguageModel, name: str) -> ProbeResult | None:
    """Probe a stage that asks a language model; None in a replay without its answers.

    Args:
        model: who is asked.
        name: name of a probe of a stage.

    Raises:
        InputError: if there is no such probe.
        LimitReachedError: if no more may be asked.
        UnansweredProbeError: if an outage cut it off.
    """
    probe = probe_named(name)
    try:
        with charged_to(account := Account()):
            probed = probe_stage(model, probe)
    except NotRecordedError:
        return None
    _refuse_outage(probed, account, model.name)
    words = _words(model, probe, RELATION.prompt if probe.stage is None else probe.stage.prompt)
    return _result(probed, model.name, log_probability_facts(probed, words))


def _words(model: LanguageModel, probe: Probe, name: str) -> Sequence[str]:
    """The words of a probe's labels in the prompt of a name, lower case."""
    prompt = prompts_of(model)[name]
    return prompt.words(probe.labels) if set(prompt.labels) <= {*probe.labels} else probe.labels


def probe_judge(judge: RelationModel) -> ProbeResult:
    """Probe a relation model that is no language model.

    Args:
        judge: who is asked.
    """
    return _result(probe_relations(judge, probe_named(RELATIONS)), judge.name, None)


def probe_language_model_relations(
    model: LanguageModel, judging: Callable[[LanguageModel], RelationModel]
) -> ProbeResult | None:
    """Probe the relations of a language model; None in a replay without its answers.

    Args:
        model: who is asked.
        judging: makes the relation model from a language model.

    Raises:
        LimitReachedError: if no more may be asked.
        UnansweredProbeError: if an outage cut it off.
    """
    probe = probe_named(RELATIONS)
    asked, seen = watched(model)
    judge = judging(asked)
    try:
        with charged_to(account := Account()):
            probed = probe_relations(judge, probe, seen)
    except NotRecordedError:
        return None
    _refuse_outage(probed, account, model.name)
    words = _words(model, probe, getattr(judge, "prompt", RELATION.prompt))
    return _result(probed, model.name, log_probability_facts(probed, words))


def _refuse_outage(probed: Probed, account: Account, name: str) -> None:
    reason = probed.outage or next(iter(account.outages), "")
    if reason:
        raise UnansweredProbeError(
            f"the probe of {name} was cut off ({reason}); repeat the command, which asks for what "
            "is missing"
        )


def _result(probed: Probed, name: str, facts: LogProbabilityFacts | None) -> ProbeResult:
    labels = tuple(answer.label for answer in probed.answers)
    return ProbeResult(probed, name, labels, _scored(probed), facts=facts)


def _scored(probed: Probed) -> LabelScores | None:
    """Scores of the answers that have probabilities."""
    labels = probed.probe.labels
    kept = [
        (answer.distribution, labels.index(question.label))
        for answer, question in zip(probed.answers, probed.probe.questions, strict=True)
        if answer.distribution is not None
    ]
    return label_scores(*map(np.array, zip(*kept, strict=True))) if kept else None


def with_correction(result: ProbeResult, wanted: str | RelationCorrection) -> ProbeResult:
    """The result of a probe of relations with a correction in use, chosen by it.

    Args:
        result: the result, uncorrected.
        wanted: "automatic", which takes the probe's correction if its log loss is significantly
            smaller; "none", "probe" or "batch"; or a learned correction.

    Raises:
        InputError: if the probe gives no correction, and it is wanted.
    """
    scored = _own_distributions(result.probed)
    by_probe = _bias_without_content(result.probed)
    if scored is None:
        if wanted == PROBE:
            raise InputError(_NO_BIAS)
        return result
    shares, right, groups = scored
    candidates: dict[str, Floats] = {}
    if by_probe is not None:
        candidates[PROBE] = without_bias(shares, by_probe)
    # As if the pairs were a separate run, each corrected by the answers to the others.
    candidates[BATCH] = without_bias(shares, left_out_means(shares, groups))
    learned = wanted if isinstance(wanted, RelationCorrection) else None
    if learned is not None:
        candidates[learned.name] = learned.corrected(shares)
    evidence = {
        name: CorrectionEvidence(
            name,
            label_scores(corrected, right),
            compare_corrections(corrected, shares, right, groups, level=LEVEL),
        )
        for name, corrected in candidates.items()
    }
    correction = learned
    if wanted == PROBE and by_probe is None:
        raise InputError(_NO_BIAS)
    if wanted == PROBE or (wanted == AUTOMATIC and PROBE in evidence and evidence[PROBE].better):
        correction = RelationCorrection(
            PROBE, None if by_probe is None else tuple(by_probe.tolist())
        )
    elif wanted == BATCH:
        correction = RelationCorrection(BATCH)
    used = replace(result, evidence=tuple(evidence.values()), correction=correction)
    if correction is None:
        return used
    corrected = iter(candidates[correction.name].tolist())
    labels = tuple(
        str(likeliest_kind(*next(corrected))[0])
        if answer.distribution is not None and not answer.shared
        else answer.label
        for answer in result.probed.answers
    )
    return replace(used, labels=labels, corrected=evidence[correction.name].scores)


def resolved_correction(
    wanted: str | RelationCorrection,
    judge: RelationModel,
    model: LanguageModel | None,
    judging: Callable[[LanguageModel], RelationModel],
) -> RelationCorrection | None:
    """The correction that is wanted of a relation model, by its probe where that decides it.

    Args:
        wanted: a name of `NAMED`, or a correction that was learned.
        judge: the relation model.
        model: the language model that it asks; None of another.
        judging: makes the relation model from a language model.

    Raises:
        InputError: if the probe gives no correction that is wanted, or a replay lacks its answers.
        LimitReachedError: if no more may be asked.
        UnansweredProbeError: if an outage cut it off.
    """
    if isinstance(wanted, RelationCorrection):
        return wanted
    if wanted in (NONE, BATCH):
        return None if wanted == NONE else RelationCorrection(BATCH)
    if model is None:
        return with_correction(probe_judge(judge), wanted).correction
    result = probe_language_model_relations(model, judging)
    if result is None:
        raise InputError(
            f"the cache has no answers to the probe of {model.name}, which the correction {wanted} "
            "needs; ask once without replay"
        )
    return with_correction(result, wanted).correction


_NO_BIAS = (
    "--relation-correction probe: no answer to a question without content has probabilities of all "
    "relations; give none, batch or a file, or --method logprobs where the model has them"
)


def _own_distributions(probed: Probed) -> tuple[Floats, Any, list[str]] | None:
    """Distributions that are the model's own, columns of the right labels, and groups."""
    labels = probed.probe.labels
    kept = [
        (answer.distribution, labels.index(question.label), question.group)
        for answer, question in zip(probed.answers, probed.probe.questions, strict=True)
        if answer.distribution is not None and not answer.shared
    ]
    if len({group for *_, group in kept}) < 2:
        return None
    return (
        np.array([shares for shares, *_ in kept]),
        np.array([column for _, column, _ in kept]),
        [group for *_, group in kept],
    )


def _bias_without_content(probed: Probed) -> Floats | None:
    """Mean answer to the questions without content; None where none has a distribution."""
    given = [
        answer.distribution
        for answer in probed.content_free
        if answer.distribution is not None and not answer.shared
    ]
    return np.maximum(mean_answer(given), _LEAST_BIAS) if given else None


def probe_in_session(session: Session, settings: RelationSettings, name: str) -> ProbeResult | None:
    """Probe a stage as a command would ask it; None in a replay without its answers.

    Args:
        session: whose model is asked.
        settings: which relation model is asked, how, and how its answers are corrected.
        name: name of a probe.

    Raises:
        InputError: if there is no such probe, it needs a language model and none was named, or it
            gives no correction that is wanted.
        LimitReachedError: if no more may be asked.
        UnansweredProbeError: if an outage cut it off.
    """
    if name != RELATIONS:
        return probe_model(session.needed_model(f"the probe of {name} needs"), name)
    wanted = wanted_correction(settings.relation_correction)
    chosen = settings.relations or ("lexical" if session.model is None else "model")

    def judging(model: LanguageModel | None) -> RelationModel:
        return relation_model(
            chosen,
            model,
            method=settings.method,
            window=settings.window,
            openness=settings.openness,
            prompt=settings.relation_prompt,
        )[0]

    if chosen != "model":
        return with_correction(probe_judge(judging(None)), wanted)
    result = probe_language_model_relations(
        session.needed_model("--relations model needs"), judging
    )
    return None if result is None else with_correction(result, wanted)
