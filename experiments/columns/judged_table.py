"""Judged claims: a model's judgment of each claim, its position, and its label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calibration.self_knowledge import ClaimLabel, ClaimRecord, ModelJudgement, Setting


@dataclass
class JudgedClaim:
    """A claim with the model's judgments of it, from one row or several.

    Attributes:
        response: id of its response.
        claim: its id there.
        sentence: its sentence, from 1; None where its position is not known.
        sentences: number of sentences, or of places, of its response.
        label: what a person says.
        answers: what the model answered, by setting, once or several times.
        confidence: its confidence, by setting.
        text: what it says; empty where that is not known.
    """

    response: str
    claim: str
    sentence: int | None
    sentences: int | None
    label: ClaimLabel
    answers: dict[Setting, tuple[ModelJudgement, ...]] = field(default_factory=dict)
    confidence: dict[Setting, float] = field(default_factory=dict)
    text: str = ""

    def score(self, setting: Setting) -> float | None:
        """Confidence, or share of answers that say true; None without an answer."""
        if setting in self.confidence:
            return self.confidence[setting]
        answers = self.answers.get(setting, ())
        if not answers:
            return None
        return sum(answer is ModelJudgement.TRUE for answer in answers) / len(answers)

    def judgement(self, setting: Setting, threshold: float | None) -> ModelJudgement | None:
        """Return the judgment in a setting, at a threshold of its confidence or votes.

        Without a threshold the majority of several answers decides, and as many of one as of the
        other are neither.
        """
        answers = self.answers.get(setting, ())
        if len(answers) == 1 and setting not in self.confidence:
            return answers[0]
        score = self.score(setting)
        if score is None:
            return None
        if threshold is None and score == 0.5:
            return ModelJudgement.NEITHER
        reached = score >= threshold if threshold is not None else score > 0.5
        return ModelJudgement.TRUE if reached else ModelJudgement.FALSE


@dataclass(frozen=True)
class JudgedTable:
    """The claims of a table.

    The long frame of `experiments.columns.frame` has one probability of true in a row. A claim has
    words of three meanings, votes or confidences here, in up to three settings, from one row or
    several. Claims may have none of them and count by their position alone. Roles and layouts of
    columns, spellings of labels and numbers, lists in objects and repeated rows are read as for the
    long frame.

    Attributes:
        groups: claims by (model, condition); empty texts where there is no such column.
        settings: what the settings in which a model was asked are called, in the paper's order.
        kind: what the model gave: "judgement", "confidence" or "votes".
        has_positions: whether claims say where they stand.
        has_sentences: whether they say so by sentences.
        remarks: remarks on how the table was read.
    """

    groups: Mapping[tuple[str, str], tuple[JudgedClaim, ...]]
    settings: Mapping[Setting, str]
    kind: str
    has_positions: bool
    has_sentences: bool
    remarks: tuple[str, ...]

    def records(self, group: tuple[str, str], threshold: float | None) -> list[ClaimRecord]:
        """Claims of a group as records, judged at a threshold; None: as `judgement` says."""
        return [
            ClaimRecord(
                claim.response,
                claim.sentence or 1,
                claim.sentences or 1,
                claim.claim,
                claim.label,
                *(claim.judgement(setting, threshold) for setting in Setting),
            )
            for claim in self.groups[group]
        ]
