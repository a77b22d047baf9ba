"""Sigma against human labels: does (1-SU)/(2-SU-SK) predict factuality?

Question: does sigma equal the factuality of the same claims (a test of FP = FN), and does it
predict the factuality of other responses, by position in the response and by threshold?
Data: selfcheck (votes of a model on its own sentences) and factscore (posteriors of FR1), embedded;
and files of judged claims that factormodels-data.yaml names under datasets.self-judged.
Rival: the factuality of the labeled half, and Rogan and Gladen's estimate.

    python notebooks/questions/sigma_on_labels.py --out docs/results/sigma-on-labels

It takes 11 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from calibration import self_knowledge as judged
from calibration.self_knowledge import ClaimRecord, IntervalSettings, Setting
from calibration.self_knowledge.balance import judged_counts
from experiments.analyses.user_data import DATA_FILE, user_data
from experiments.columns.judged_claims import judged_claims, judged_graphs
from experiments.columns.judged_table import JudgedTable
from experiments.columns.options import ClaimColumns
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.figures import estimate_figure, line_figure
from experiments.findings.figures.positions import balance_rows
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, named
from experiments.findings.text import p_value
from factormodels import datasets
from factormodels.io.tables.data_table import read_table
from factormodels.variants import variant
from inference.batch import claim_posteriors

if TYPE_CHECKING:
    import pandas as pd

ASKED = Setting.DIRECT_ASKING
"""Setting of confidences and votes; the data do not say how the model was asked."""


@dataclass(frozen=True)
class EmbeddedJudge:
    """Labeled claims that come with the package, and who judges them.

    Attributes:
        dataset: an embedded dataset.
        judge: ``votes`` of a model on its own sentences, or the ``posteriors`` of FR1, which are a
            checker's and no model's own.
        threshold: share of votes, or posterior, from which a claim counts as judged correct.
    """

    dataset: str
    judge: Literal["votes", "posteriors"] = "votes"
    threshold: float = 0.5


EMBEDDED: Mapping[str, EmbeddedJudge] = MappingProxyType(
    {
        "SelfCheckGPT": EmbeddedJudge("selfcheck", "votes", 0.5),
        "FR1 posteriors": EmbeddedJudge("factscore", "posteriors", 0.6),
    }
)
"""Judged claims that come with the package, by what tables call them."""

THRESHOLDS: Mapping[str, float] = MappingProxyType({"NQ": 0.9, "MATH": 0.9})
"""Confidence from which a claim of a file of `self-judged` in the user's file counts as judged
correct, by its name there; a file of no threshold has one half."""

SWEEP = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def sigma_on_labels(
    *,
    embedded: tuple[str, ...] = tuple(EMBEDDED),
    sweep: tuple[float, ...] = SWEEP,
    positions: int = 5,
    splits: int = 200,
    n_bootstrap: int = 1000,
    seed: int = 0,
) -> Artifacts:
    """Return sigma in sample, out of sample, by position, and over thresholds.

    Args:
        embedded: names of judged claims that come with the package.
        sweep: thresholds that are tabulated.
        positions: number of bins of relative position.
        splits: splits of the responses in halves, each used both ways.
        n_bootstrap: replicates of the intervals of SK, SU and sigma.
        seed: seed of the splits and of the bootstrap.
    """
    subjects = dict(users_subjects(THRESHOLDS))
    subjects |= embedded_subjects({name: EMBEDDED[name] for name in embedded})
    intervals = IntervalSettings("bootstrap", n_bootstrap, seed)
    halves: Any = {"n_splits": splits, "seed": seed}
    rows: dict[str, list[dict[str, Any]]] = {"in-sample": [], "thresholds": [], "prediction": []}
    for name, subject in subjects.items():
        n_bins = positions if subject.table.has_positions else 1
        records = subject.records()
        in_sample_rows = balance_rows(records, n_bins, intervals)
        counts = judged_counts(judged.as_claims(records), ASKED, n_bins, "incorrect")
        places = tuple(row["position"] for row in in_sample_rows)
        prediction_rows = judged.prediction_errors(counts, places, **halves).rows()
        rows["in-sample"] += [{"subject": name, **row} for row in in_sample_rows]
        rows["prediction"] += [{"subject": name, **row} for row in prediction_rows]
        for threshold in sweep if subject.threshold is not None else ():
            at = subject.records(threshold)
            ahead = judged.out_of_sample(at, ASKED, n_positions=1, **halves).rows()[-1]
            gap = named("gap", (ahead[of] for of in ("difference", "lower", "upper")))
            (*_, whole) = balance_rows(at, 1, intervals)
            rows["thresholds"].append({"subject": name, "threshold": threshold} | whole | gap)
    frames = {name: data_frame(each) for name, each in rows.items()}
    absent = [name for name in THRESHOLDS if name not in subjects]
    where = f"datasets.self-judged in {user_data().where or DATA_FILE}"
    remark = f" Without {' and '.join(absent)}: {where} names no file of that name."
    tables = sigma_tables(frames)
    if absent:
        tables = {name: replace(t, caption=t.caption + remark) for name, t in tables.items()}
    return Artifacts(tables, _figures(frames))


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


@dataclass(frozen=True, eq=False)
class JudgedSubject:
    """The judged claims of a model.

    Attributes:
        table: the claims.
        group: which of them.
        setting: how the model was asked.
        threshold: from which confidence they count as judged correct; None: they are judgments.
    """

    table: JudgedTable
    group: tuple[str, str]
    setting: Setting
    threshold: float | None

    def records(self, threshold: float | None = None) -> list[ClaimRecord]:
        """The claims, judged at a threshold, as if all were asked in one setting."""
        chosen = self.threshold if threshold is None else threshold
        return [
            ClaimRecord(
                *(record.response, record.sentence, record.sentences, record.claim, record.label),
                record.judgment(self.setting),
            )
            for record in self.table.records(self.group, chosen)
        ]


Named = Iterator[tuple[str, JudgedSubject]]


def users_subjects(thresholds: Mapping[str, float]) -> Named:
    """Yield whose claims the user's file names; confidences have thresholds by its names."""
    for model, source in user_data().places("self-judged").items():
        name = model or "self-judged"
        table = (
            judged_claims(read_table(source), ClaimColumns())
            if isinstance(source, Path)
            else judged_graphs(datasets.load(source).graphs, source)
        )
        only = None if table.kind == "judgment" else thresholds.get(name, 0.5)
        for group in table.groups:
            for setting, how in table.settings.items():
                parts = (name, *group, how if len(table.settings) > 1 else "")
                yield ", ".join(filter(None, parts)), JudgedSubject(table, group, setting, only)


def embedded_subjects(judges: Mapping[str, EmbeddedJudge]) -> Named:
    """Yield whose claims come with the package."""
    for name, chosen in judges.items():
        graphs = datasets.load(chosen.dataset).graphs
        sure: list[float] | None = None
        if chosen.judge == "posteriors":
            sure = claim_posteriors([variant(g, "FR1") for g in graphs], "implication").tolist()
        table = judged_graphs(graphs, chosen.dataset, sure)
        yield name, JudgedSubject(table, ("", ""), ASKED, chosen.threshold)


SHARES = {"self_known": "SK", "self_unknown": "SU", "sigma": "σ", "factuality": "F"}
PREDICTORS = {"sigma": "σ", "factuality": "F here", "rogan_gladen": "Rogan-Gladen"}
RIVALS = {"sigma_minus_factuality": "σ minus F"}


def _intervals(titles: Mapping[str, str], before: str = "") -> str:
    return " | ".join(f"{before}{name}:3± {title}" for name, title in titles.items())


TABLES = {
    "in-sample": (
        f"subject | position | {_intervals(SHARES)} | informedness:3 SK + SU - 1 | "
        "false_positives:0 FP | false_negatives:0 FN | clustered> p | reading σ = F",
        "Sigma and the factuality of the same claims, by position and over all.",
        "p: McNemar's test of FP = FN clustered by response. The reading takes the exact test over "
        "responses where few differ, by position corrected by Holm.",
    ),
    "thresholds": (
        f"subject | threshold:2 | {_intervals(SHARES)} | clustered> p | gap:3± out of sample",
        "The same at other thresholds, over all positions.",
        "Out of sample: σ of half of the responses minus the factuality of the other.",
    ),
    "prediction": (
        f"subject | position | {_intervals(PREDICTORS, 'rmse_')} | {_intervals(RIVALS)}",
        "Root mean square errors of predictions of the factuality of half of the responses from "
        "the other half.",
        "Over the same splits, with 95% intervals over responses (jackknife). F here is the "
        "factuality of the labeled half; the last column is paired.",
    ),
}
"""Columns, caption and note of each table."""


def sigma_tables(frames: Mapping[str, pd.DataFrame]) -> dict[str, Table]:
    """The tables of a study of sigma, by the name of their frames."""
    return {
        name: Table(frames[name], columns_as(columns, clustered=p_value), caption, note=note)
        for name, (columns, caption, note) in TABLES.items()
    }


if __name__ == "__main__":
    answer_question(sigma_on_labels, __file__)
