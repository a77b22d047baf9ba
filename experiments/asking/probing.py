"""The probe of a session: a model's accuracy on questions with known answers."""

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
"""Level of intervals and of the one-sided bound that an accuracy must exceed."""

_LEAST_BIAS = 1e-6
"""Smallest preference for a label, for labels that no content-free answer lists."""


class UnansweredProbeError(FactormodelsError):
    """The probe was not answered for a temporary reason."""


@dataclass(frozen=True)
class CorrectionEvidence:
    """Effect of a correction on the answers of a probe.

    Attributes:
        name: the correction.
        scores: scores of the corrected answers.
        difference: change of the mean log loss, with its interval.
    """

    name: str
    scores: LabelScores
    difference: Difference

    @property
    def better(self) -> bool:
        """True if the whole interval is below zero, so that the log loss decreases."""
        return self.difference.upper < 0


@dataclass(frozen=True)
class ProbeResult:
    """Scored answers of a model to a probe.

    Attributes:
        probed: the answers.
        model: the model's name.
        labels: label of each answer, after the correction in use; empty for unreadable answers.
        scores: uncorrected scores of the answers with probabilities; None if there are none.
        corrected: scores after the correction in use; None without one.
        evidence: effect of each correction.
        correction: the correction in use; None without one.
        facts: properties of the log-probabilities; None without log-probabilities.
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
        """Number of readable answers."""
        return sum(map(bool, self.labels))

    @property
    def correct(self) -> int:
        """Number of correct answers."""
        right = zip(self.labels, self.probe.questions, strict=True)
        return sum(label == question.label for label, question in right)

    @property
    def given_correct(self) -> int:
        """Number of correct answers before a correction."""
        right = zip(self.probed.answers, self.probe.questions, strict=True)
        return sum(answer.label == question.label for answer, question in right)

    @property
    def usable(self) -> bool:
        """True if the answers are evidence: better than the best constant answer.

        Unreadable answers are ignored. Without readable answers the result is False.
        """
        answered = [
            question
            for label, question in zip(self.labels, self.probe.questions, strict=True)
            if label
        ]
        if not answered:
            return False
        # Only over answered questions, because the choice of questions says nothing about the
        # model.
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
        """The most frequent answer and its count."""
        given = Counter(label for label in self.labels if label)
        return given.most_common(1)[0] if given else ("", 0)

    @property
    def ordered(self) -> tuple[int, int]:
        """Number of a passage's instructions that were obeyed, and their total.

        An instruction is obeyed if the answer is the requested one, and differs without the
        instruction.
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
        """Number of answers by correct label and given label."""
        table = {right: dict.fromkeys(self.probe.labels, 0) for right in self.probe.labels}
        for question, label in zip(self.probe.questions, self.labels, strict=True):
            if label:
                table[question.label][label] += 1
        return table


def probe_model(model: LanguageModel, name: str) -> ProbeResult | None:
    """Probe a stage that asks a language model; None in a replay without its answers.

    Args:
        model: the language model.
        name: name of a probe of a stage.

    Raises:
        InputError: if there is no such probe.
        LimitReachedError: if a limit on calls or costs is reached.
        UnansweredProbeError: if an outage interrupts the probe.
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
    """Probe a relation model other than a language model.

    Args:
        judge: the relation model.
    """
    return _result(probe_relations(judge, probe_named(RELATIONS)), judge.name, None)


def probe_language_model_relations(
    model: LanguageModel, judging: Callable[[LanguageModel], RelationModel]
) -> ProbeResult | None:
    """Probe the relations of a language model; None in a replay without its answers.

    Args:
        model: the language model.
        judging: returns a relation model for a language model.

    Raises:
        LimitReachedError: if a limit on calls or costs is reached.
        UnansweredProbeError: if an outage interrupts the probe.
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
            f"the probe of {name} was interrupted ({reason}); repeat the command to ask for the "
            "missing answers"
        )


def _result(probed: Probed, name: str, facts: LogProbabilityFacts | None) -> ProbeResult:
    labels = tuple(answer.label for answer in probed.answers)
    return ProbeResult(probed, name, labels, _scored(probed), facts=facts)


def _scored(probed: Probed) -> LabelScores | None:
    """Scores of the answers with probabilities."""
    labels = probed.probe.labels
    kept = [
        (answer.distribution, labels.index(question.label))
        for answer, question in zip(probed.answers, probed.probe.questions, strict=True)
        if answer.distribution is not None
    ]
    return label_scores(*map(np.array, zip(*kept, strict=True))) if kept else None


def with_correction(result: ProbeResult, wanted: str | RelationCorrection) -> ProbeResult:
    """Apply a correction to the result of a probe of relations.

    Args:
        result: the uncorrected result.
        wanted: "automatic" (the probe's correction if it decreases the log loss significantly),
            "none", "probe" or "batch"; or a learned correction.

    Raises:
        InputError: if the probe's correction is requested and undefined.
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
    # Treat the pairs as a run of their own: correct each by the answers to the others.
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
    """Resolve the requested correction of a relation model, with its probe if needed.

    Args:
        wanted: a name of `NAMED`, or a learned correction.
        judge: the relation model.
        model: the language model behind it, or None.
        judging: returns a relation model for a language model.

    Raises:
        InputError: if the probe's correction is requested and undefined, or a replay lacks its
            answers.
        LimitReachedError: if a limit on calls or costs is reached.
        UnansweredProbeError: if an outage interrupts the probe.
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
            f"the cache has no answers to the probe of {model.name}, which the correction "
            f"{wanted} needs; run once without --replay"
        )
    return with_correction(result, wanted).correction


_NO_BIAS = (
    "--relation-correction probe: no answer to a content-free question has probabilities of all "
    "relations; give none, batch or a file, or --method logprobs if the model supports it"
)


def _own_distributions(probed: Probed) -> tuple[Floats, Any, list[str]] | None:
    """The model's own distributions, columns of the correct labels, and groups."""
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
    """Mean answer to content-free questions; None if no answer has a distribution."""
    given = [
        answer.distribution
        for answer in probed.content_free
        if answer.distribution is not None and not answer.shared
    ]
    return np.maximum(mean_answer(given), _LEAST_BIAS) if given else None


def probe_in_session(session: Session, settings: RelationSettings, name: str) -> ProbeResult | None:
    """Probe a stage as a command asks it; None in a replay without its answers.

    Args:
        session: session with the model.
        settings: settings of the relation model, its method and its correction.
        name: name of a probe.

    Raises:
        InputError: if there is no such probe, it needs a language model and none is named, or the
            requested correction is undefined.
        LimitReachedError: if a limit on calls or costs is reached.
        UnansweredProbeError: if an outage interrupts the probe.
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
