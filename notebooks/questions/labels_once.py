"""Labels once: do intervals cover if the same labels teach a judge and correct it?

Question: a field is learned from the labels of a few responses, and the same labels correct its
probabilities of all claims. How often do intervals cover with a judge that saw the labels and with
judges of folds, and how many labels does a judge save?
Data: factscore, embedded, with all labels hidden except those of the drawn biographies.
Rival: the judge that all of these labels taught, with intervals of `estimate` and with normal ones;
the posteriors of the graphs as given; and the labels alone.

    python notebooks/questions/labels_once.py --out docs/results/labels-once

It takes 4 minutes of processor time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.estimation import (
    QUANTITIES,
    PoweredEstimate,
    Quantity,
    brier,
    estimate,
    minus,
    quantity_by_judges,
)
from calibration.learned_potentials import ClaimTable, FieldSettings
from calibration.learned_potentials.methods import (
    Learner,
    cross_fit_task,
    field,
    fold_judges,
    labeled_folds,
)
from calibration.validation import Floats
from experiments.findings.artifacts import Artifacts
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame
from experiments.settings.inputs import read_graphs

SEEN, FOLDS, GIVEN = "saw the labels", "folds", "graphs as given"

NORMAL = "saw the labels, normal intervals"
"""The judge that saw the labels, with intervals from residuals as they are."""

_OF_NORMAL = ("share", "brier")
"""Quantities that have normal intervals too."""

DIFFERENCE = "brier minus as given"
"""Brier score of the judge minus the score of the posteriors of the graphs as given."""


def labels_once(
    *,
    data: Path = Path("factscore"),
    labels: tuple[int, ...] = (12, 20, 40),
    quantities: tuple[str, ...] = (
        *("share", "brier", "f1-at-k", "accuracy", "auroc", "ece", "kept-precision"),
        DIFFERENCE,
    ),
    folds: int = 5,
    penalty: float = 30.0,
    draws: int = 300,
    finite: bool = False,
    seed: int = 0,
) -> Artifacts:
    """Return coverage and width by quantity, number of labels and judge.

    Args:
        data: file or embedded dataset of labeled responses.
        labels: numbers of responses that are labeled, drawn at random.
        quantities: what is estimated.
        folds: folds of labeled responses.
        penalty: penalty of the field, which has no causes.
        draws: how often labels are drawn.
        finite: estimate for exactly these responses, as `estimate --finite` does.
        seed: seed of the draws.
    """
    task = cross_fit_task(read_graphs(data), 2, seed)
    names = [*task.table.names]
    counting = ~np.isnan(task.table.labels)
    of_evidence = task.table.of(names, ())
    table = replace(
        of_evidence,
        values=of_evidence.values[counting],
        labels=of_evidence.labels[counting],
        responses=of_evidence.responses[counting],
        ids=tuple(each for each, counts in zip(of_evidence.ids, counting, strict=True) if counts),
    )
    learner = field(FieldSettings(penalty=penalty))
    rows = []
    for n in labels:
        outcomes: dict[tuple[str, str], list[tuple[float, ...]]] = {}
        for number in range(draws):
            hidden = hidden_labels(table, n, seed + number)
            drawn = outcomes_of(
                learner,
                hidden,
                table.labels,
                task.default[counting],
                quantities,
                folds,
                number,
                finite=finite,
            )
            for key, outcome in drawn:
                outcomes.setdefault(key, []).append(outcome)
        rows += [
            {
                "quantity": quantity,
                "n": n,
                "judge": judge,
                **_means(np.array(values)),
                "draws": draws,
            }
            for (quantity, judge), values in outcomes.items()
        ]
    return Artifacts(tables={"coverage": _table(rows)})


def hidden_labels(table: ClaimTable, n: int, seed: int) -> ClaimTable:
    """The table with the labels of n responses, drawn at random."""
    drawn = np.random.default_rng(seed).choice(table.n_responses, n, replace=False)
    return replace(table, labels=np.where(np.isin(table.responses, drawn), table.labels, np.nan))


def outcomes_of(
    learner: Learner,
    table: ClaimTable,
    truth: Floats,
    given: Floats,
    quantities: tuple[str, ...],
    folds: int,
    seed: int,
    *,
    finite: bool = False,
) -> Iterator[tuple[tuple[str, str], tuple[float, ...]]]:
    """Yield by quantity and judge the cover of the value by all labels, and the widths."""
    judges = fold_judges(learner, table, labeled_folds(table, folds, seed))
    seen = learner(table, [table.labeled])[0](table)
    for name in quantities:
        options: dict[str, Any] = {"n_bins": 5} if name == "ece" else {}
        for judge in (SEEN, FOLDS) if name == DIFFERENCE else (SEEN, FOLDS, GIVEN):
            in_folds = judge == FOLDS
            p = given if judge == GIVEN else seen
            if in_folds:
                p = judges.on_one_scale() if name == "auroc" else judges.unseen()

            def quantity(
                labels: Floats, by_folds: bool, name: str = name, p: Floats = p, **more: Any
            ) -> Any:
                plain = "brier" if name == DIFFERENCE else name
                if by_folds:
                    quantity_of_p = quantity_by_judges(
                        plain, judges, labels, table.responses, **more
                    )
                else:
                    quantity_of_p = QUANTITIES[plain](p, labels, table.responses, **more)
                if name == DIFFERENCE and isinstance(quantity_of_p, Quantity):
                    return minus(quantity_of_p, brier(given, labels, table.responses))
                return quantity_of_p

            estimated = estimate(quantity(table.labels, in_folds, **options), finite=finite)
            value = estimate(quantity(truth, by_folds=False, **options), power=0.0).value
            ends = estimated.lower, estimated.upper
            yield (name, judge), _outcome(estimated, value, ends, estimated.labels_saved)
            if judge == SEEN and name in _OF_NORMAL:
                ends = normal_interval(quantity(table.labels, by_folds=False), estimated.power)
                yield (name, NORMAL), _outcome(estimated, value, ends, math.nan)


def normal_interval(quantity: Quantity, power: float) -> tuple[float, float]:
    """Normal 95% interval from the residuals of responses, without corrections."""
    linear = quantity.linear(power)
    residuals = linear.labels + power * (linear.everywhere - linear.predictions)
    reach = 1.96 * float(np.linalg.norm(quantity.grouping.sums(residuals)))
    return linear.value(power) - reach, linear.value(power) + reach


def _outcome(
    estimated: PoweredEstimate, value: float, ends: tuple[float, float], saved: float
) -> tuple[float, ...]:
    lower, upper = ends
    return (
        lower <= value <= upper,
        estimated.value - value,
        upper - lower,
        estimated.labels_lower <= value <= estimated.labels_upper,
        estimated.labels_upper - estimated.labels_lower,
        saved,
        estimated.may_lack_kinds,
    )


def _means(outcomes: Floats) -> dict[str, float]:
    names = ("covers", "bias", "width", "labels_cover", "labels_width", "saved", "warned")
    means = dict(zip(names, outcomes.mean(axis=0).tolist(), strict=True))
    # Probabilities tell the bins of claims and save no labels of an ECE, whose factors are nan.
    saved = outcomes[:, names.index("saved")]
    lower, upper = np.quantile(saved, [0.025, 0.975])
    return {**means, "saved_lower": float(lower), "saved_upper": float(upper)}


def _table(rows: list[dict[str, Any]]) -> Table:
    return Table(
        data_frame(rows),
        columns_as(
            "quantity | n:0 labeled | judge | covers:3 | bias:3 | width:3 | "
            "labels_cover:3 labels alone cover | labels_width:3 width of labels alone | "
            "saved:2± labels saved"
        ),
        "Coverage of the value by all labels by nominal 95% intervals, by judge.",
        note=f"{rows[0]['draws']} draws. Bias: mean estimate minus the value by all labels. "
        "Labels alone: without the probabilities of other claims. Labels saved: how many times as "
        "many labels alone would give the same interval, mean and 2.5 to 97.5% of the draws.",
    )


if __name__ == "__main__":
    answer_question(labels_once, __file__)
