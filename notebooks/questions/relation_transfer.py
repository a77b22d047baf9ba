"""Relation models: does the lexical model transfer between sets of judged pairs?

Question: fitted to one data set of judged pairs, how well does the lexical relation model judge
pairs of another?
Data: demonstration, embedded; and Factcheck-Bench's own file with texts, which
factormodels-data.yaml can name as fastfact-bench.
Rival: the fit to the same data, cross-fitted by response, and the fit to all of them together.

    python notebooks/questions/relation_transfer.py --out docs/results/relation-transfer

It takes 6 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.grouping import group_by_response
from calibration.validation import Floats, Integers
from experiments.analyses.user_data import DATA_FILE, user_data
from experiments.evaluators.relation_quality import LabeledPair, fit_lexical, labeled_pairs
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import LabeledAtoms, scores_with_intervals
from experiments.findings.figures import estimate_figure
from experiments.findings.interval_values import mean_loss_of_clusters
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, interval_column, named
from factormodels import datasets
from factormodels.claims import JUDGED_KINDS, RelationKind
from factormodels.extraction.relation_models.lexical import relation_distributions
from factormodels.extraction.relation_models.lexical_features import pair_features
from factormodels.io.formats.factcheck_bench import read_factcheck_bench

IN_SAMPLE, RESPONSES, DATA = "in-sample", "other responses", "other data"
"""What a fit has seen of the pairs that it is used on: all, none of their responses, none."""

BENCH, CORPUS = "Factcheck-Bench", "demonstration"

PUBLISHED = "Factcheck-Bench, as the package has it"


def relation_transfer(*, folds: int = 10, seed: int = 0) -> Artifacts:
    """Return scores of every fit on both data sets, each with what it has seen.

    Args:
        folds: folds of responses.
        seed: seed of the bootstrap over responses.
    """
    sets = {CORPUS: labeled_pairs(datasets.load(CORPUS).graphs, complete=True)}
    remarks: tuple[str, ...] = ()
    # The embedded claims of Factcheck-Bench have no texts.
    path = user_data().places("fastfact-bench").get("")
    if isinstance(path, Path):
        neutral = {"irrelevant": (RelationKind.NEUTRAL, 0.9)}
        sets = {BENCH: labeled_pairs(read_factcheck_bench(path, neutral))} | sets
    else:
        remarks = (f"Without {BENCH}, whose file {DATA_FILE} can name as fastfact-bench.",)
    frame = data_frame(transfer_rows(sets, folds, seed, published_on=BENCH))
    columns = (
        *columns_as("fitted fitted to | seen sample"),
        interval_column(str(RelationKind.ENTAILMENT), "AUROC, entailment", 3),
        interval_column(str(RelationKind.CONTRADICTION), "AUROC, contradiction", 3),
        interval_column("log_loss", "log loss", 3),
    )
    caption = "The lexical relation model on judged pairs, by what it was fitted to"
    note = (
        "Intervals: 95% over responses. In-sample: fitted to these very pairs; other responses: "
        "without the fold of the pair's response, AUROC of pairs of one fold; other data: to none "
        "of them."
    )
    shown = frame.assign(fit=frame["fitted"] + "\n" + frame["seen"])
    figure = estimate_figure(shown, "fit", {"log_loss": "log loss"}, by="used")
    return Artifacts(
        {"transfer": Table(frame, columns, caption, group="used", note=note)},
        {"fits": PaperFigure(figure, frame, "log loss of every fit")},
        remarks,
    )


def transfer_rows(
    sets: Mapping[str, Sequence[LabeledPair]], folds: int, seed: int, *, published_on: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield a row for every fit and every data set that it is used on.

    A data set's own fit is there twice: in-sample, and cross-fitted by response; so is the fit to
    all of them together, cross-fitted alone.

    Args:
        sets: judged pairs by data set.
        folds: folds of responses.
        seed: seed of the bootstrap over responses.
        published_on: the data set that the package's coefficients were fitted to; "": none.

    Raises:
        InputError: as `fit_lexical`.
    """
    fits = {name: fit_lexical(pairs, folds=folds) for name, pairs in sets.items()}
    together = [
        replace(item, response=f"{name} {item.response}")
        for name, pairs in sets.items()
        for item in pairs
    ]
    pooled = fit_lexical(together, folds=folds)
    ends = np.cumsum([0, *map(len, sets.values())])
    for at, (used, pairs) in enumerate(sets.items()):
        forecasts: list[tuple[str, str, Floats, Integers | None]] = []
        for name, fit in fits.items():
            shares = fit.distributions(pairs)
            forecasts.append((name, IN_SAMPLE if name == used else DATA, shares, None))
            if name == used:
                forecasts.append((name, RESPONSES, fit.cross_validated, fit.folds))
        if len(sets) > 1:
            part = slice(ends[at], ends[at + 1])
            both = pooled.cross_validated[part], pooled.folds[part]
            forecasts.append((" and ".join(sets), RESPONSES, *both))
        if published_on:
            shares = relation_distributions(pair_features([item.pair for item in pairs]))
            forecasts.append((PUBLISHED, IN_SAMPLE if used == published_on else DATA, shares, None))
        for name, seen, p, fold in forecasts:
            row = {"used": used, "pairs": len(pairs), "fitted": name, "seen": seen}
            yield row | _scores(p, fold, pairs, seed)


def _scores(
    shares: Floats, folds: Integers | None, pairs: Sequence[LabeledPair], seed: int
) -> dict[str, float]:
    responses = np.array([item.response for item in pairs])
    codes = np.array([JUDGED_KINDS.index(item.kind) for item in pairs])
    losses = -np.log(np.clip(shares[np.arange(len(codes)), codes], 1e-6, 1.0))
    # Of three relations; the interval is that of the log loss of two.
    row = named("log_loss", mean_loss_of_clusters(losses, group_by_response(responses)))
    everything = np.ones(len(codes), dtype=np.bool_)
    for column, kind in enumerate(JUDGED_KINDS[:2]):
        atoms = LabeledAtoms((codes == column).astype(np.float64), responses, everything)
        area = scores_with_intervals(shares[:, column], atoms, ("auroc",), seed, folds)
        row |= {name.replace("auroc", str(kind)): value for name, value in area.items()}
    return row


if __name__ == "__main__":
    answer_question(relation_transfer, __file__)
