"""Sigma against human labels: what models say of their own claims, and what that predicts.

Sigma, from the Self-Known paper, is held against the factuality in sample, out of sample, by
position, over thresholds, from some positions or subjects to others, and over models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from calibration.figures.panels import PAGE, draw_interval, nth_colour, nth_look, panels
from calibration.self_knowledge import (
    ClaimRecord,
    IntervalSettings,
    Neither,
    Setting,
    as_claims,
    association,
    in_sample_balance,
    out_of_sample,
    prediction_errors,
    self_knowledge,
    transfer_errors,
)
from calibration.self_knowledge.balance import judged_counts
from calibration.self_knowledge.positions import OVERALL
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.ours.prior_transfer import ENCODING, RARE
from experiments.analyses.papers.self_judgement import SOURCE
from experiments.analyses.papers.shared.sources import DATA_FILE, hash_of, user_data
from experiments.analyses.posteriors import atom_posteriors
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.findings.text import p_value
from experiments.study.config import STRICT, Count, DatasetChoice, Probability
from experiments.study.judged_claims import (
    ClaimColumns,
    JudgedTable,
    judged_claims,
    judged_graphs,
)
from factormodels import datasets
from factormodels.io.tables import read_table
from factormodels.variants import variant

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ASKED = Setting.DIRECT_ASKING
"""What a claim's confidence or votes count as; the data do not say how the model was asked."""

PREDICTORS = {
    "sigma": "σ",
    "factuality": "F here",
    "rogan_gladen": "Rogan-Gladen",
    "emq": "EMQ",
}

RIVALS = {
    "sigma_less_factuality": "σ less F",
    "emq_less_factuality": "EMQ less F",
    "sigma_less_emq": "σ less EMQ",
}


@dataclass(frozen=True)
class EmbeddedJudge:
    """Labelled claims that come with the package, and who judges them.

    Attributes:
        dataset: an embedded dataset.
        judge: ``votes`` of a model on its own sentences, or the ``posteriors`` of FR1, which are a
            checker's and no model's own.
        threshold: share of votes, or posterior, from which a claim counts as judged correct.
    """

    __pydantic_config__: ClassVar = STRICT

    dataset: str
    judge: Literal["votes", "posteriors"] = "votes"
    threshold: Probability = 0.5


@dataclass(frozen=True)
class Settings:
    """Whose sigma is held against labels.

    Attributes:
        embedded: judged claims that come with the package, by what tables call them.
        thresholds: confidence from which a claim of a file of `self-judged` in the user's file
            counts as judged correct, by its name there; a file of no threshold has one half.
        sweep: thresholds that are tabulated.
        positions: number of bins of relative position.
        splits: splits of the responses in halves, each used both ways.
        n_bootstrap: replicates of the intervals of SK, SU, sigma and correlations.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    embedded: dict[str, EmbeddedJudge]
    thresholds: dict[str, Probability]
    sweep: Annotated[tuple[Probability, ...], Field(min_length=1)]
    positions: Annotated[int, Field(ge=2)] = 5
    splits: Count = 200
    n_bootstrap: Count = 1000
    data_file: str | None = None

    def __post_init__(self) -> None:
        if not self.embedded:
            raise ValueError("no claims were given; name some embedded ones")


@dataclass(frozen=True, eq=False)
class _Subject:
    """The judged claims of a model.

    Attributes:
        table: the claims.
        group: which of them.
        setting: how the model was asked.
        threshold: from which confidence they count as judged correct; None: they are judgements.
        kinds: what sets responses of different factuality apart, by response; empty: nothing.
    """

    table: JudgedTable
    group: tuple[str, str]
    setting: Setting
    threshold: float | None
    kinds: Mapping[str, str]

    def records(self, threshold: float | None = None) -> list[ClaimRecord]:
        """The claims, judged at a threshold, as if all were asked in one setting."""
        chosen = self.threshold if threshold is None else threshold
        return [
            ClaimRecord(
                one.response,
                one.sentence,
                one.sentences,
                one.claim,
                one.label,
                one.judgement(self.setting),
            )
            for one in self.table.records(self.group, chosen)
        ]


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Sigma in sample, out of sample, by position, over thresholds, in transfer and over models."""
    subjects, remark = _subjects(settings, context)
    intervals = IntervalSettings("bootstrap", settings.n_bootstrap, context.seed)
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("in-sample", "thresholds", "prediction")
    }
    cells: dict[str, tuple[Floats, tuple[str, ...]]] = {}
    with context.track("subjects", len(subjects)) as step:
        for name, subject in subjects.items():
            records, who = subject.records(), {"subject": name}
            n_bins = settings.positions if subject.table.has_positions else 1
            rows["in-sample"] += [{**who, **row} for row in in_sample(records, n_bins, intervals)]
            claims = as_claims(records)
            counts = judged_counts(claims, ASKED, n_bins, Neither.INCORRECT)
            cells[name] = counts, tuple(map(str, claims.responses))
            errors = prediction_errors(
                counts,
                tuple(row["position"] for row in rows["in-sample"][-n_bins - 1 :]),
                n_splits=settings.splits,
                seed=context.seed,
            )
            rows["prediction"] += [{**who, **row} for row in errors.rows()]
            if subject.threshold is not None:
                rows["thresholds"] += [
                    {**who, **row} for row in thresholds(subject, settings, intervals)
                ]
            step()
    shifts = [
        {
            "here": here,
            "there": there,
            **transfer_errors(one, other, intervals=intervals).rows()[0],
        }
        for here, there, one, other in _shifts(subjects, cells)
    ]
    related = association(
        # Posteriors are no model's judgement of its own claims.
        {name: subject.records() for name, subject in subjects.items() if not subject.kinds},
        ASKED,
        n_positions=settings.positions,
        intervals=intervals,
    )
    frames = {name: data_frame(each) for name, each in rows.items()}
    frames["transfer"] = data_frame(shifts)
    frames["association"] = data_frame(related.rows())
    return Artefacts(
        tables=_tables(frames, remark),
        figures={
            "sigma": PaperFigure(
                _figure(frames, {name: one.threshold for name, one in subjects.items()}),
                frames["in-sample"],
                "sigma over thresholds and by position, and errors of predictions",
            )
        },
    )


def in_sample(
    records: Sequence[ClaimRecord], n_bins: int, intervals: IntervalSettings
) -> list[dict[str, Any]]:
    """SK, SU, sigma and factuality with intervals, and the test of sigma = F; a row per position.

    Args:
        records: the claims of a model.
        n_bins: number of bins of relative position; the last row is over all.
        intervals: how intervals are made.
    """
    known = self_knowledge(records, ASKED, n_positions=n_bins, intervals=intervals)
    tested = in_sample_balance(records, ASKED, n_positions=n_bins).rows()
    return [
        {
            **row,
            **{
                f"{name}{suffix}": float(getattr(known[name], part)[cell])
                for name in ("judged_correct", "self_known", "self_unknown", "sigma", "factuality")
                for suffix, part in (("", "estimate"), ("_lower", "lower"), ("_upper", "upper"))
            },
            # How much a judgement tells (Youden's J): the slope that Rogan-Gladen divides by.
            "informedness": float(
                known["self_known"].estimate[cell] + known["self_unknown"].estimate[cell] - 1
            ),
            "reading": "--"
            if not row["corrected"] >= 0
            else "rejected"
            if row["corrected"] < 0.05
            else "not rejected",
        }
        for cell, row in enumerate(tested)
    ]


def thresholds(
    subject: _Subject, settings: Settings, intervals: IntervalSettings
) -> list[dict[str, Any]]:
    """The overall row of `in_sample` at every threshold, and the error of sigma out of sample."""
    rows = []
    for threshold in settings.sweep:
        records = subject.records(threshold)
        ahead = out_of_sample(
            records, ASKED, n_positions=1, n_splits=settings.splits, seed=intervals.seed
        ).rows()[-1]
        gap = {
            "gap": ahead["difference"],
            "gap_lower": ahead["lower"],
            "gap_upper": ahead["upper"],
        }
        rows.append({"threshold": threshold, **in_sample(records, 1, intervals)[-1], **gap})
    return rows


def _subjects(settings: Settings, context: AnalysisContext) -> tuple[dict[str, _Subject], str]:
    """Who is looked at, and what tables say of who is not."""
    found: dict[str, _Subject] = {}
    user = user_data(settings.data_file)
    given = user.paths.get(SOURCE, {})
    if not isinstance(given, Mapping):
        given = {SOURCE: given}
    for name, place in given.items():
        table = (
            judged_claims(read_table(place), ClaimColumns())
            if isinstance(place, Path)
            else judged_graphs(datasets.load(place).graphs, place)
        )
        only = None if table.kind == "judgement" else settings.thresholds.get(name, 0.5)
        several = len(table.settings) > 1
        for group in table.groups:
            for setting, how in table.settings.items():
                of = ", ".join(filter(None, (name, *group, how if several else "")))
                found[of] = _Subject(table, group, setting, only, {})
        context.data[f"{SOURCE}: {name}"] = {
            "sha256": hash_of(place),
            "responses": sum(len({one.response for one in each}) for each in table.groups.values()),
            "atoms": sum(map(len, table.groups.values())),
        }
    for name, chosen in settings.embedded.items():
        (data,) = context.load((DatasetChoice(name=chosen.dataset),))
        sure: list[float] | None = None
        if chosen.judge == "posteriors":
            graphs = [variant(graph, "FR1") for graph in data.graphs]
            sure = [float(p) for p in atom_posteriors(graphs, ENCODING)]
        table = judged_graphs(data.graphs, chosen.dataset, sure)
        kinds = {
            graph.id: "rare" if set(graph.metadata["categories"]) & RARE else "others"
            for graph in data.graphs
            if "categories" in graph.metadata
        }
        found[name] = _Subject(table, ("", ""), ASKED, chosen.threshold, kinds)
    absent = [name for name in settings.thresholds if name not in found]
    remark = (
        f" Without {' and '.join(absent)}: datasets.{SOURCE} in {user.where or DATA_FILE} names no "
        "file of that name."
    )
    return found, remark if absent else ""


def _shifts(
    subjects: Mapping[str, _Subject], cells: Mapping[str, tuple[Floats, tuple[str, ...]]]
) -> Iterator[tuple[str, str, Floats, Floats]]:
    """Yield what is learned from and used on, with counts (n_responses, 2, 3) of either."""
    own = [name for name in subjects if subjects[name].table.kind == "confidence"]
    own = [name for name in own if not subjects[name].kinds]
    for here, there in permutations(own, 2):
        one, other = cells[here][0][:, -1], cells[there][0][:, -1]
        yield (
            here,
            there,
            np.concatenate([one, np.zeros_like(other)]),
            np.concatenate([np.zeros_like(one), other]),
        )
    for name, (counts, responses) in cells.items():
        if counts.shape[1] > 2:
            yield f"{name}, first bin", "last bin", counts[:, 0], counts[:, -2]
        kinds = np.array([subjects[name].kinds.get(each, "") for each in responses])
        for here, there in permutations(sorted(set(kinds) - {""}), 2):
            own_counts = counts[:, -1]
            yield (
                f"{name}, {here}",
                there,
                own_counts * (kinds == here)[:, None, None],
                own_counts * (kinds == there)[:, None, None],
            )


def _tables(frames: Mapping[str, pd.DataFrame], remark: str) -> dict[str, Table]:
    quantities = tuple(
        interval_column(name, title, 3)
        for name, title in (
            ("self_known", "SK"),
            ("self_unknown", "SU"),
            ("sigma", "σ"),
            ("factuality", "F"),
        )
    )
    p = Column("clustered", "p", show=p_value, right=True)
    tables = {
        "in-sample": Table(
            frames["in-sample"],
            (
                Column("subject", "subject"),
                Column("position", "position"),
                *quantities,
                Column("informedness", "SK + SU - 1", digits=3),
                Column("false_positives", "FP", digits=0),
                Column("false_negatives", "FN", digits=0),
                p,
                Column("reading", "σ = F"),
            ),
            "Sigma and the factuality of the same claims, by position and over all.",
            note=(
                "p: McNemar's test of FP = FN clustered by response. The reading takes the exact "
                "test over responses where few differ, by position corrected by Holm."
            ),
        ),
        "thresholds": Table(
            frames["thresholds"],
            (
                Column("subject", "subject"),
                Column("threshold", "threshold", digits=2),
                *quantities,
                p,
                Column("gap", "out of sample", digits=3, lower="gap_lower", upper="gap_upper"),
            ),
            "The same at other thresholds, over all positions.",
            note="Out of sample: σ of half of the responses less the factuality of the other.",
        ),
        "prediction": Table(
            frames["prediction"],
            (
                Column("subject", "subject"),
                Column("position", "position"),
                *(interval_column(f"rmse_{name}", title, 3) for name, title in PREDICTORS.items()),
                *(interval_column(name, title, 3) for name, title in RIVALS.items()),
            ),
            "Root mean square errors of predictions of the factuality of half of the responses "
            "from the other half.",
            note=(
                "Over the same splits, with 95 % intervals over responses (jackknife). F here is "
                "the factuality of the labelled half; the last three columns are paired."
            ),
        ),
        "transfer": Table(
            frames["transfer"],
            (
                Column("here", "learned on"),
                Column("there", "used on"),
                Column("target", "F there", digits=3),
                *(interval_column(name, title, 3) for name, title in PREDICTORS.items()),
            ),
            "Prediction less factuality where the labels are of other subjects or positions.",
            note=(
                "σ and F here use labels here alone; Rogan-Gladen and EMQ also the judgements "
                "there. Percentile intervals over responses."
            ),
        ),
        "association": Table(
            frames["association"],
            (
                Column("over", "over"),
                Column("first", "first"),
                Column("second", "second"),
                Column("correlation", "correlation", digits=2, lower="lower", upper="upper"),
                Column("n_cells", "cells", digits=0),
            ),
            "Whether SK goes with the factuality, and SU with the share of unsupported claims.",
            note="Pearson's correlation over cells, with percentile intervals over responses.",
        ),
    }
    return {
        name: replace(table, caption=f"{table.caption}{remark}") for name, table in tables.items()
    }


def _figure(frames: Mapping[str, pd.DataFrame], chosen: Mapping[str, float | None]) -> Figure:
    """Sigma and factuality over thresholds and by position, and errors of predictions."""
    swept, placed, ahead = (frames[name] for name in ("thresholds", "in-sample", "prediction"))
    with panels(3, len(chosen), (PAGE, 4.6), sharey="row", sharex="row") as (figure, grid):
        for column, (name, threshold) in zip(grid.T, chosen.items(), strict=True):
            over, by, errors = column
            line = swept[swept["subject"] == name].sort_values("threshold")
            if threshold is not None:
                over.axvline(threshold, color="0.7", linewidth=0.7)
            own = placed[(placed["subject"] == name) & (placed["position"] != OVERALL)]
            for place, across, values in (
                (over, line["threshold"], line),
                (by, range(1, len(own) + 1), own),
            ):
                for at, (quantity, title) in enumerate((("sigma", "σ"), ("factuality", "F"))):
                    place.plot(across, values[quantity], label=title, **nth_look(at))
            over.set(title=name, xlabel="threshold", ylim=(-0.03, 1.03))
            by.set(xlabel="bin of position", ylim=(-0.03, 1.03))
            (row,) = ahead[(ahead["subject"] == name) & (ahead["position"] == OVERALL)].to_dict(
                "records"
            )
            for height, predictor in enumerate(PREDICTORS):
                ends = [row[f"rmse_{predictor}{end}"] for end in ("", "_lower", "_upper")]
                draw_interval(
                    errors, height, (ends[0], ends[1], ends[2]), color=nth_colour(0), fmt="o"
                )
            errors.set_xlabel("RMSE")
            # Rogan and Gladen's estimate is not confined to [0, 1]: its errors leave the panel.
            errors.set(xlim=(0, 0.7), ylim=(len(PREDICTORS) - 0.5, -0.5))
        grid[0][0].legend(loc="lower left", frameon=True, framealpha=1.0, edgecolor="none")
        grid[2][0].set_yticks(range(len(PREDICTORS)), list(PREDICTORS.values()))
        return figure
