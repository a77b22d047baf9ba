"""Sigma against human labels: in sample, out of sample, by position and threshold, in transfer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from calibration import self_knowledge as judged
from calibration.self_knowledge import ClaimRecord, IntervalSettings, Setting
from calibration.self_knowledge.balance import judged_counts
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import estimate_figure, line_figure
from experiments.analyses.posteriors import atom_posteriors
from experiments.analyses.user_data import DATA_FILE, hash_of, user_data
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column, text_columns
from experiments.findings.text import p_value
from experiments.settings.judged_claims import (
    ClaimColumns,
    JudgedTable,
    judged_claims,
    judged_graphs,
)
from experiments.study.config import STRICT, Count, DatasetChoice, Probability
from factormodels import datasets
from factormodels.io.tables import read_table
from factormodels.variants import variant

if TYPE_CHECKING:
    import pandas as pd

RARE = frozenset({"rare", "very rare"})
"""Categories of biographies of people of whom little is written."""

ASKED = Setting.DIRECT_ASKING
"""What a claim's confidence or votes count as; the data do not say how the model was asked."""

SHARES = {"self_known": "SK", "self_unknown": "SU", "sigma": "σ", "factuality": "F"}
PREDICTORS = {"sigma": "σ", "factuality": "F here", "rogan_gladen": "Rogan-Gladen", "emq": "EMQ"}
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
    """

    __pydantic_config__: ClassVar = STRICT

    embedded: Annotated[dict[str, EmbeddedJudge], Field(min_length=1)]
    thresholds: dict[str, Probability]
    sweep: Annotated[tuple[Probability, ...], Field(min_length=1)]
    positions: Annotated[int, Field(ge=2)] = 5
    splits: Count = 200
    n_bootstrap: Count = 1000


@dataclass(frozen=True, eq=False)
class JudgedSubject:
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
                *(one.response, one.sentence, one.sentences, one.claim, one.label),
                one.judgement(self.setting),
            )
            for one in self.table.records(self.group, chosen)
        ]


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Sigma in sample, out of sample, by position, over thresholds, in transfer and over models."""
    subjects = dict(_users(settings, context)) | dict(_embedded(settings, context))
    intervals = IntervalSettings("bootstrap", settings.n_bootstrap, context.seed)
    halves: Any = {"n_splits": settings.splits, "seed": context.seed}
    rows: dict[str, list[dict[str, Any]]] = {"in-sample": [], "thresholds": [], "prediction": []}
    shifts: list[tuple[str, str, Floats, Floats]] = []
    with context.track("subjects", len(subjects)) as step:
        for name, subject in subjects.items():
            n_bins = settings.positions if subject.table.has_positions else 1
            records = subject.records()
            found = in_sample(records, n_bins, intervals)
            counts = judged_counts(judged.as_claims(records), ASKED, n_bins, "incorrect")
            positions = tuple(row["position"] for row in found)
            told = judged.prediction_errors(counts, positions, **halves).rows()
            rows["in-sample"] += [{"subject": name, **row} for row in found]
            rows["prediction"] += [{"subject": name, **row} for row in told]
            for threshold in settings.sweep if subject.threshold is not None else ():
                at = subject.records(threshold)
                ahead = judged.out_of_sample(at, ASKED, n_positions=1, **halves).rows()[-1]
                ends = zip(("difference", "lower", "upper"), ("", "_lower", "_upper"), strict=True)
                gap = {f"gap{end}": ahead[one] for one, end in ends}
                (*_, whole) = in_sample(at, 1, intervals)
                rows["thresholds"].append({"subject": name, "threshold": threshold} | whole | gap)
            shifts += _shifts(name, subject.kinds, counts, records)
            step()
    shifts = [*_between(subjects), *shifts]
    rows["transfer"] = [
        {"here": here, "there": there}
        | judged.transfer_errors(one, other, intervals=intervals).rows()[0]
        for here, there, one, other in shifts
    ]
    # Posteriors are no model's judgement of its own claims.
    own = {name: subject.records() for name, subject in subjects.items() if not subject.kinds}
    related = judged.association(own, ASKED, n_positions=settings.positions, intervals=intervals)
    rows["association"] = related.rows()
    frames = {name: data_frame(each) for name, each in rows.items()}
    absent = [name for name in settings.thresholds if name not in subjects]
    where = f"datasets.self-judged in {user_data().where or DATA_FILE}"
    remark = f" Without {' and '.join(absent)}: {where} names no file of that name."
    tables = _tables(frames)
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
            ends = (("", "estimate"), ("_lower", "lower"), ("_upper", "upper"))
            row |= {f"{name}{end}": float(getattr(known[name], of)[cell]) for end, of in ends}
        # How much a judgement tells (Youden's J): the slope that Rogan-Gladen divides by.
        row["informedness"] = row["self_known"] + row["self_unknown"] - 1
        reading = "rejected" if row["corrected"] < 0.05 else "not rejected"
        rows.append(row | {"reading": reading if row["corrected"] >= 0 else "--"})
    return rows


Named = Iterator[tuple[str, JudgedSubject]]


def _users(settings: Settings, context: AnalysisContext) -> Named:
    """Yield whose claims the user's file names."""
    for model, place in user_data().places("self-judged").items():
        name = model or "self-judged"
        table = (
            judged_claims(read_table(place), ClaimColumns())
            if isinstance(place, Path)
            else judged_graphs(datasets.load(place).graphs, place)
        )
        only = None if table.kind == "judgement" else settings.thresholds.get(name, 0.5)
        for group in table.groups:
            for setting, how in table.settings.items():
                parts = (name, *group, how if len(table.settings) > 1 else "")
                yield ", ".join(filter(None, parts)), JudgedSubject(table, group, setting, only, {})
        context.data[f"self-judged: {name}"] = {
            "sha256": hash_of(place),
            "responses": sum(len({one.response for one in each}) for each in table.groups.values()),
            "atoms": sum(map(len, table.groups.values())),
        }


def _embedded(settings: Settings, context: AnalysisContext) -> Named:
    """Yield whose claims come with the package."""
    for name, chosen in settings.embedded.items():
        (data,) = context.load((DatasetChoice(name=chosen.dataset),))
        sure: list[float] | None = None
        if chosen.judge == "posteriors":
            sure = atom_posteriors([variant(g, "FR1") for g in data.graphs], "implication").tolist()
        kinds = {
            graph.id: "rare" if set(graph.metadata["categories"]) & RARE else "others"
            for graph in data.graphs
            if "categories" in graph.metadata
        }
        table = judged_graphs(data.graphs, chosen.dataset, sure)
        yield name, JudgedSubject(table, ("", ""), ASKED, chosen.threshold, kinds)


def _between(subjects: Mapping[str, JudgedSubject]) -> Iterator[tuple[str, str, Floats, Floats]]:
    """Yield pairs of models with confidences: one is learned from, the other used on."""
    counted = {
        name: judged_counts(judged.as_claims(each.records()), ASKED, 1, "incorrect")[:, -1]
        for name, each in subjects.items()
        if each.table.kind == "confidence" and not each.kinds
    }
    for here, there in permutations(counted, 2):
        one, other = counted[here], counted[there]
        nothing = np.zeros_like(one), np.zeros_like(other)
        yield here, there, np.vstack([one, nothing[1]]), np.vstack([nothing[0], other])


def _shifts(
    name: str, kinds: Mapping[str, str], counts: Floats, records: Sequence[ClaimRecord]
) -> Iterator[tuple[str, str, Floats, Floats]]:
    """Yield what is learned from and used on within a model, with counts (n_responses, 2, 3)."""
    if counts.shape[1] > 2:
        yield f"{name}, first bin", "last bin", counts[:, 0], counts[:, -2]
    responses = judged.as_claims(records).responses
    of = np.array([kinds.get(str(each), "") for each in responses])
    for here, there in permutations(sorted(set(of) - {""}), 2):
        one, other = (counts[:, -1] * (of == kind)[:, None, None] for kind in (here, there))
        yield f"{name}, {here}", there, one, other


def _tables(frames: Mapping[str, pd.DataFrame]) -> dict[str, Table]:
    shares = [interval_column(name, title, 3) for name, title in SHARES.items()]
    p = Column("clustered", "p", show=p_value, right=True)
    subject, whole = Column("subject", "subject"), partial(Column, digits=0)
    columns: dict[str, Sequence[Column]] = {
        "in-sample": (
            *(subject, Column("position", "position"), *shares),
            Column("informedness", "SK + SU - 1", digits=3),
            *(whole("false_positives", "FP"), whole("false_negatives", "FN"), p),
            Column("reading", "σ = F"),
        ),
        "thresholds": (
            *(subject, Column("threshold", "threshold", digits=2), *shares, p),
            interval_column("gap", "out of sample", 3),
        ),
        "prediction": (
            *(subject, Column("position", "position")),
            *(interval_column(f"rmse_{name}", title, 3) for name, title in PREDICTORS.items()),
            *(interval_column(name, title, 3) for name, title in RIVALS.items()),
        ),
        "transfer": (
            *(Column("here", "learned on"), Column("there", "used on")),
            Column("target", "F there", digits=3),
            *(interval_column(name, title, 3) for name, title in PREDICTORS.items()),
        ),
        "association": (
            *text_columns("over", "first", "second"),
            Column("correlation", "correlation", digits=2, lower="lower", upper="upper"),
            whole("n_cells", "cells"),
        ),
    }
    return {
        name: Table(frames[name], tuple(shown), *SAID[name][:1], note=SAID[name][1])
        for name, shown in columns.items()
    }


SAID = {
    "in-sample": (
        "Sigma and the factuality of the same claims, by position and over all.",
        "p: McNemar's test of FP = FN clustered by response. The reading takes the exact test over "
        "responses where few differ, by position corrected by Holm.",
    ),
    "thresholds": (
        "The same at other thresholds, over all positions.",
        "Out of sample: σ of half of the responses less the factuality of the other.",
    ),
    "prediction": (
        "Root mean square errors of predictions of the factuality of half of the responses from "
        "the other half.",
        "Over the same splits, with 95 % intervals over responses (jackknife). F here is the "
        "factuality of the labelled half; the last three columns are paired.",
    ),
    "transfer": (
        "Prediction less factuality where the labels are of other subjects or positions.",
        "σ and F here use labels here alone; Rogan-Gladen and EMQ also the judgements there. "
        "Percentile intervals over responses.",
    ),
    "association": (
        "Whether SK goes with the factuality, and SU with the share of unsupported claims.",
        "Pearson's correlation over cells, with percentile intervals over responses.",
    ),
}
"""What each table shows, and the note below it."""


def _figures(frames: Mapping[str, pd.DataFrame]) -> dict[str, PaperFigure]:
    swept, ahead = frames["thresholds"], frames["prediction"]
    long = swept.melt(["subject", "threshold"], ["sigma", "factuality"], "of", "share")
    overall = ahead[ahead["position"] == "overall"]
    # Rogan and Gladen's estimate is not confined to [0, 1]: its errors stay in the table.
    errors = {
        f"rmse_{name}": f"RMSE of {PREDICTORS[name]}" for name in ("sigma", "factuality", "emq")
    }
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
