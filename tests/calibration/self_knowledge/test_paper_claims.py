"""Claims of the Self-Known paper: statistics by other means, intervals, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from calibration.intervals import IntervalSettings
from calibration.self_knowledge import ClaimLabel, ClaimRecord, ModelJudgment, Setting
from calibration.self_knowledge.paper_claims import (
    MARGIN,
    ClaimVerdict,
    Expects,
    PaperClaim,
    paper_claims,
    verdict_of,
)
from tests.calibration.self_knowledge.claims import random_records

DELTA = IntervalSettings("delta")

RECORDS = [record for record in random_records(3, 40) if record.label is not ClaimLabel.IRRELEVANT]


@cache
def results() -> dict[str, PaperClaim]:
    return by_statement(paper_claims(RECORDS, intervals=DELTA))


def by_statement(claims: Sequence[PaperClaim]) -> dict[str, PaperClaim]:
    return {claim.statement: claim for claim in claims}


def judged(setting: Setting, label: str) -> list[tuple[ClaimRecord, bool]]:
    """Return the claims of a label that were judged in a setting, and whether as correct."""
    return [
        (record, judgment is ModelJudgment.TRUE)
        for record in RECORDS
        if record.label == label and (judgment := record.judgment(setting)) is not None
    ]


def share(setting: Setting, label: str, correct: bool) -> float:
    return float(np.mean([(yes is correct) for _, yes in judged(setting, label)]))


def test_trends_are_slopes_of_least_squares() -> None:
    positions = [record.position for record in RECORDS]
    truth = [record.label == "S" for record in RECORDS]
    slope = np.polyfit(positions, truth, 1)[0]
    claim = results()["factuality is lower in later sentences"]
    assert claim.estimate == pytest.approx(slope, abs=1e-9)
    sentences: dict[tuple[str, float], int] = {}
    for record in RECORDS:
        key = record.response, record.position
        sentences[key] = sentences.get(key, 0) + (record.label == "NS")
    slope = np.polyfit([at for _, at in sentences], list(sentences.values()), 1)[0]
    claim = results()["later sentences have more unsupported claims"]
    assert claim.estimate == pytest.approx(slope, abs=1e-9)
    for name, label, correct in (("SK", "S", True), ("SU", "NS", False)):
        rows = judged(Setting.NONE_OF_THE_ABOVE, label)
        slope = np.polyfit([r.position for r, _ in rows], [yes is correct for _, yes in rows], 1)[0]
        claim = results()[f"{name} is much the same at all positions"]
        assert claim.estimate == pytest.approx(slope, abs=1e-9)


def test_shares_and_differences_are_counted() -> None:
    direct, question, third = Setting
    for name, label, correct in (("SK", "S", True), ("SU", "NS", False)):
        a, b, c = (share(setting, label, correct) for setting in (direct, question, third))
        assert results()[f"{name} is similar in settings (a) and (b)"].estimate == pytest.approx(
            b - a
        )
        assert results()[f"{name} differs between settings (b) and (c)"].estimate == pytest.approx(
            c - b
        )
    rows = [r for r in RECORDS if r.judgment(third) is not None]
    errors = [
        (r.label == "NS") * (r.judgment(third) is ModelJudgment.TRUE)
        - (r.label == "S") * (r.judgment(third) is not ModelJudgment.TRUE)
        for r in rows
    ]
    premise = results()["the share judged correct is the factuality, P(d=1|y) = σ"]
    assert premise.estimate == pytest.approx(np.mean(errors))
    rates, asked = {}, (question, third)
    for label in ("S", "NS"):
        both = [r for r in RECORDS if r.label == label and None not in map(r.judgment, asked)]
        flips = [
            r.judgment(question) is ModelJudgment.TRUE
            and r.judgment(third) is not ModelJudgment.TRUE
            for r in both
        ]
        rates[label] = np.mean(flips)
    more = results()["supported claims flip more often than unsupported ones"]
    assert more.estimate == pytest.approx(rates["S"] - rates["NS"])
    assert results()["unsupported claims hardly flip"].estimate == pytest.approx(rates["NS"])


def test_correlations_are_over_positions() -> None:
    cells: dict[int, list[list[bool]]] = {at: [[], [], []] for at in range(5)}
    for label, correct, column in (("S", True, 1), ("NS", False, 2)):
        for record, yes in judged(Setting.NONE_OF_THE_ABOVE, label):
            at = (5 * record.sentence - 1) // record.sentences
            cells[at][0].append(label == "S")
            cells[at][column].append(yes is correct)
    truth, known, unknown = (np.array([np.mean(c[i]) for c in cells.values()]) for i in range(3))
    claim = results()["a higher SK goes with a higher factuality"]
    assert claim.estimate == pytest.approx(np.corrcoef(known, truth)[0, 1])
    claim = results()["a higher SU goes with a lower factuality"]
    assert claim.estimate == pytest.approx(np.corrcoef(unknown, 1 - truth)[0, 1])


def test_intervals_are_those_of_leaving_responses_out() -> None:
    names = sorted({record.response for record in RECORDS})
    statement = "factuality is lower in later sentences"
    values = []
    for name in names:
        rest = [record for record in RECORDS if record.response != name]
        positions = [record.position for record in rest]
        values.append(np.polyfit(positions, [record.label == "S" for record in rest], 1)[0])
    error = math.sqrt((len(names) - 1) * np.var(values))
    claim = results()[statement]
    # Linearised and jackknife errors differ in the second order; Student's t widens both ends.
    assert (claim.upper - claim.lower) / 2 == pytest.approx(2.05 * error, rel=0.12)


def drawn(n_responses: int, seed: int) -> list[ClaimRecord]:
    """Responses in which the paper's claims about positions, settings and flips are true."""
    rng = np.random.default_rng(seed)
    records = []
    for response in range(n_responses):
        for sentence in range(1, 6):
            for number in range(4):
                true = rng.random() < 1.0 - 0.12 * sentence
                b = bool(rng.random() < (0.8 if true else 0.3))
                a = b != (rng.random() < 0.02)
                flips = b and true and rng.random() < 0.1 + 0.08 * sentence
                direct, question = (ModelJudgment("true" if yes else "false") for yes in (a, b))
                third = ModelJudgment.NEITHER if flips else question
                label = ClaimLabel.SUPPORTED if true else ClaimLabel.UNSUPPORTED
                name = f"a{sentence}.{number}"
                records.append(
                    ClaimRecord(f"r{response}", sentence, 5, name, label, direct, question, third)
                )
    return records


def test_claims_that_are_true_hold() -> None:
    rows = by_statement(paper_claims(drawn(150, 0), intervals=DELTA))
    holding = {name for name, row in rows.items() if row.verdict is ClaimVerdict.HOLDS}
    assert holding >= {
        "factuality is lower in later sentences",
        "later sentences have more unsupported claims",
        "SK is similar in settings (a) and (b)",
        "SU is similar in settings (a) and (b)",
        "SK differs between settings (b) and (c)",
        "supported claims flip more often than unsupported ones",
        "unsupported claims hardly flip",
        "supported claims flip more often in later sentences",
        "a higher SK goes with a higher factuality",
    }
    # SU is the same in (b) and (c), and SK falls with the position.
    for name in ("SU differs between settings (b) and (c)", "SK is much the same at all positions"):
        assert rows[name].verdict is ClaimVerdict.REJECTED


def test_claims_decided_by_algebra_need_no_data() -> None:
    alike = results()["P(y), P(y correct) and P(y wrong) are alike"]
    needed = results()["SK = 1 and SU = 0 are necessary for a factuality of 1"]
    assert alike.verdict is needed.verdict is ClaimVerdict.FALSE
    assert needed.estimate == 1.0
    assert "add up to 1" in alike.why


def test_claims_without_their_data_say_why() -> None:
    third = [
        ClaimRecord(r.response, 1, 1, r.id, r.label, none_of_the_above=r.none_of_the_above)
        for r in RECORDS
    ]
    rows = by_statement(paper_claims(third, has_positions=False, intervals=DELTA))
    why = {name: row.why for name, row in rows.items() if row.verdict is ClaimVerdict.NOT_TESTABLE}
    assert why["factuality is lower in later sentences"] == "the sentences of claims are not known"
    assert why["unsupported claims hardly flip"] == "the model was not asked in both settings"
    assert "σ is the factuality" not in why
    bare = [ClaimRecord(r.response, r.sentence, r.sentences, r.claim, r.label) for r in RECORDS]
    rows = by_statement(paper_claims(bare, intervals=DELTA))
    assert rows["σ is the factuality"].why == "no labeled claim was judged"
    assert not math.isnan(rows["factuality is lower in later sentences"].lower)
    few = [record for record in RECORDS if record.response in ("r0", "r1", "r2")]
    rows = by_statement(paper_claims(few, intervals=DELTA))
    assert rows["σ is the factuality"].why == "there are fewer than four responses"


@pytest.mark.parametrize(
    ("expects", "lower", "upper", "verdict"),
    [
        (Expects.ABOVE, 0.1, 0.2, ClaimVerdict.HOLDS),
        (Expects.ABOVE, -0.2, -0.1, ClaimVerdict.REJECTED),
        (Expects.ABOVE, -0.1, 0.1, ClaimVerdict.UNDECIDED),
        (Expects.BELOW, -0.2, -0.1, ClaimVerdict.HOLDS),
        (Expects.NEAR, -MARGIN / 2, MARGIN / 2, ClaimVerdict.HOLDS),
        # Not 0, and not far: equal within the margin.
        (Expects.NEAR, MARGIN / 4, MARGIN / 2, ClaimVerdict.HOLDS),
        (Expects.NEAR, 1.5 * MARGIN, 2 * MARGIN, ClaimVerdict.REJECTED),
        # Not 0, but perhaps within the margin.
        (Expects.NEAR, MARGIN / 2, 2 * MARGIN, ClaimVerdict.UNDECIDED),
        (Expects.NEAR, -MARGIN / 2, 2 * MARGIN, ClaimVerdict.UNDECIDED),
        (Expects.FAR, 0.1, 0.2, ClaimVerdict.HOLDS),
        (Expects.FAR, -MARGIN / 2, MARGIN / 2, ClaimVerdict.REJECTED),
        (Expects.FAR, -0.2, 0.2, ClaimVerdict.UNDECIDED),
        (Expects.FAR, math.nan, math.nan, ClaimVerdict.UNDECIDED),
    ],
)
def test_verdicts(expects: Expects, lower: float, upper: float, verdict: ClaimVerdict) -> None:
    assert verdict_of(expects, 0.0, (lower + upper) / 2, lower, upper) is verdict
