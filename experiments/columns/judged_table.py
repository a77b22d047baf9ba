"""Judged claims: a model's judgment of each claim, its position, and its label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calibration.self_knowledge import ClaimLabel, ClaimRecord, ModelJudgment, Setting


@dataclass
class JudgedClaim:
    """A claim with the model's judgments, from one or several rows.

    Attributes:
        response: id of its response.
        claim: id of the claim.
        sentence: its sentence, from 1; None if unknown.
        sentences: number of sentences, or of positions, of its response.
        label: the human label.
        answers: the model's answers, by setting.
        confidence: the model's confidence, by setting.
        text: its text; empty if unknown.
    """

    response: str
    claim: str
    sentence: int | None
    sentences: int | None
    label: ClaimLabel
    answers: dict[Setting, tuple[ModelJudgment, ...]] = field(default_factory=dict)
    confidence: dict[Setting, float] = field(default_factory=dict)
    text: str = ""

    def score(self, setting: Setting) -> float | None:
        """Confidence, or share of answers that mean true; None without an answer."""
        if setting in self.confidence:
            return self.confidence[setting]
        answers = self.answers.get(setting, ())
        if not answers:
            return None
        return sum(answer is ModelJudgment.TRUE for answer in answers) / len(answers)

    def judgment(self, setting: Setting, threshold: float | None) -> ModelJudgment | None:
        """Return the judgment in a setting, at a threshold of its confidence or votes.

        Without a threshold, the majority of several answers decides, and a tie is neither.
        """
        answers = self.answers.get(setting, ())
        if len(answers) == 1 and setting not in self.confidence:
            return answers[0]
        score = self.score(setting)
        if score is None:
            return None
        if threshold is None and score == 0.5:
            return ModelJudgment.NEITHER
        reached = score >= threshold if threshold is not None else score > 0.5
        return ModelJudgment.TRUE if reached else ModelJudgment.FALSE


@dataclass(frozen=True)
class JudgedTable:
    """The claims of a table.

    Unlike a row of the long frame in `experiments.columns.frame`, which has a single probability, a
    claim here has judgments (true, false or neither), votes or confidences, in up to three
    settings, from one or several rows. Claims without judgments count by position only. Roles and
    layouts of columns, spellings of labels and numbers, lists in objects and repeated rows are read
    as for the long frame.

    Attributes:
        groups: claims by (model, condition); empty texts without such a column.
        settings: names of the settings in which a model was asked, in the paper's order.
        kind: kind of the model's judgments: "judgment", "confidence" or "votes".
        has_positions: True if claims have positions.
        has_sentences: True if positions are sentences.
        remarks: remarks on reading the table.
    """

    groups: Mapping[tuple[str, str], tuple[JudgedClaim, ...]]
    settings: Mapping[Setting, str]
    kind: str
    has_positions: bool
    has_sentences: bool
    remarks: tuple[str, ...]

    def records(self, group: tuple[str, str], threshold: float | None) -> list[ClaimRecord]:
        """Claims of a group as records, judged at a threshold, as in `judgment`."""
        return [
            ClaimRecord(
                claim.response,
                claim.sentence or 1,
                claim.sentences or 1,
                claim.claim,
                claim.label,
                *(claim.judgment(setting, threshold) for setting in Setting),
            )
            for claim in self.groups[group]
        ]
