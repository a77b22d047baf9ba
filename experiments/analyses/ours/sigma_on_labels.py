"""Sigma against human labels: in sample, out of sample, by position and threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from calibration import self_knowledge as judged
from calibration.self_knowledge import ClaimRecord, IntervalSettings
from calibration.self_knowledge.balance import judged_counts
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import estimate_figure, line_figure
from experiments.analyses.ours.shared.judged_subjects import (
    ASKED,
    EmbeddedJudge,
    embedded_subjects,
    users_subjects,
)
from experiments.analyses.ours.shared.sigma_tables import PREDICTORS, SHARES, sigma_tables
from experiments.analyses.user_data import DATA_FILE, user_data
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import data_frame, named
from experiments.settings.limits import Count, Probability
from experiments.study.config import STRICT

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Whose sigma is held against labels.

    Attributes:
        embedded: judged claims that come with the package, by what tables call them.
        thresholds: confidence from which a claim of a file of `self-judged` in the user's file
            counts as judged correct, by its name there; a file of no threshold has one half.
        sweep: thresholds that are tabulated.
        positions: number of bins of relative position.
        splits: splits of the responses in halves, each used both ways.
        n_bootstrap: replicates of the intervals of SK, SU and sigma.
    """

    embedded: Annotated[dict[str, EmbeddedJudge], Field(min_length=1)]
    thresholds: dict[str, Probability]
    sweep: Annotated[tuple[Probability, ...], Field(min_length=1)]
    positions: Annotated[int, Field(ge=2)] = 5
    splits: Count = 200
    n_bootstrap: Count = 1000


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Sigma in sample, out of sample, by position, and over thresholds."""
    subjects = dict(users_subjects(settings.thresholds, context))
    subjects |= embedded_subjects(settings.embedded, context)
    intervals = IntervalSettings("bootstrap", settings.n_bootstrap, context.seed)
    halves: Any = {"n_splits": settings.splits, "seed": context.seed}
    rows: dict[str, list[dict[str, Any]]] = {"in-sample": [], "thresholds": [], "prediction": []}
    with context.track("subjects", len(subjects)) as step:
        for name, subject in subjects.items():
            n_bins = settings.positions if subject.table.has_positions else 1
            records = subject.records()
            in_sample_rows = in_sample(records, n_bins, intervals)
            counts = judged_counts(judged.as_claims(records), ASKED, n_bins, "incorrect")
            positions = tuple(row["position"] for row in in_sample_rows)
            prediction_rows = judged.prediction_errors(counts, positions, **halves).rows()
            rows["in-sample"] += [{"subject": name, **row} for row in in_sample_rows]
            rows["prediction"] += [{"subject": name, **row} for row in prediction_rows]
            for threshold in settings.sweep if subject.threshold is not None else ():
                at = subject.records(threshold)
                ahead = judged.out_of_sample(at, ASKED, n_positions=1, **halves).rows()[-1]
                gap = named("gap", (ahead[of] for of in ("difference", "lower", "upper")))
                (*_, whole) = in_sample(at, 1, intervals)
                rows["thresholds"].append({"subject": name, "threshold": threshold} | whole | gap)
            step()
    frames = {name: data_frame(each) for name, each in rows.items()}
    absent = [name for name in settings.thresholds if name not in subjects]
    where = f"datasets.self-judged in {user_data().where or DATA_FILE}"
    remark = f" Without {' and '.join(absent)}: {where} names no file of that name."
    tables = sigma_tables(frames)
    if absent:
        tables = {name: replace(t, caption=t.caption + remark) for name, t in tables.items()}
    return Artefacts(tables, _figures(frames))


def in_sample(
    records: Sequence[ClaimRecord], n_bins: int, intervals: IntervalSettings
) -> list[dict[str, Any]]:
    """SK, SU, sigma and factuality with intervals, and the test of sigma = F; a row per position.

    Args:
        records: the claims of a model.
        n_bins: number of bins of relative position; the last row is over all.
        intervals: how intervals are made.
    """
    known = judged.self_knowledge(records, ASKED, n_positions=n_bins, intervals=intervals)
    tested = judged.in_sample_balance(records, ASKED, n_positions=n_bins).rows()
    rows = []
    for cell, row in enumerate(tested):
        for name in ("judged_correct", *SHARES):
            of = known[name]
            row |= named(name, (float(x[cell]) for x in (of.estimate, of.lower, of.upper)))
        # How much a judgement tells (Youden's J): the slope that Rogan-Gladen divides by.
        row["informedness"] = row["self_known"] + row["self_unknown"] - 1
        reading = "rejected" if row["corrected"] < 0.05 else "not rejected"
        rows.append(row | {"reading": reading if row["corrected"] >= 0 else "--"})
    return rows


def _figures(frames: Mapping[str, pd.DataFrame]) -> dict[str, PaperFigure]:
    swept, ahead = frames["thresholds"], frames["prediction"]
    long = swept.melt(["subject", "threshold"], ["sigma", "factuality"], "of", "share")
    overall = ahead[ahead["position"] == "overall"]
    # Rogan and Gladen's estimate is not confined to [0, 1]: its errors stay in the table.
    errors = {f"rmse_{name}": f"RMSE of {PREDICTORS[name]}" for name in ("sigma", "factuality")}
    made = {
        "sigma": (
            line_figure(long, "threshold", {"share": "σ, or F"}, by="of", panel="subject"),
            *(long, "sigma and the factuality by threshold"),
        ),
        "predictions": (
            estimate_figure(overall, "subject", errors),
            *(overall, "errors of predictions of the other half"),
        ),
    }
    return {name: PaperFigure(*each) for name, each in made.items()}
