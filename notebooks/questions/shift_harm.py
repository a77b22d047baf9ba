"""Shift as harm: do bounds of the effect of a shift hold, and do they distinguish harmful shifts?

Question: a judge learned from some responses is applied to others. Do the bounds of `apply` contain
the share of true claims and the Brier score, and does the test of the mixture detect harm?
Data: factscore, embedded, in the order of its file (rare persons first) and in a random order; and
factcheck-bench, whose evidence has another source.
Rival: the p-value of the test that the evidence is a mixture of the learned evidence.

    python notebooks/questions/shift_harm.py --out docs/results/shift-harm

It takes 20 seconds of processor time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from calibration.learned_potentials import FieldSettings, learn_judge
from experiments.findings.artifacts import Artifacts
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import p_value
from factormodels import datasets
from factormodels.fact_graph import FactGraph


def shift_harm(
    *, learned: int = 100, penalty: float = 30.0, bootstrap: int = 1000, seed: int = 0
) -> Artifacts:
    """Return the bounds of each set, and the values by its labels.

    Args:
        learned: number of biographies that a judge is learned from, where the others are judged.
        penalty: penalty of the field.
        bootstrap: replicates of bounds and test.
        seed: seed of the random order.
    """
    by_rarity = list(datasets.load("factscore").graphs)
    shuffled = random.Random(seed).sample(by_rarity, len(by_rarity))
    others = list(datasets.load("factcheck-bench").graphs)
    cases: dict[tuple[str, str], tuple[Sequence[FactGraph], Sequence[FactGraph]]] = {
        (f"first {learned}", "other biographies"): (by_rarity[:learned], by_rarity[learned:]),
        (f"last {learned}", "other biographies"): (by_rarity[-learned:], by_rarity[:-learned]),
        (f"{learned} at random", "other biographies"): (shuffled[:learned], shuffled[learned:]),
        ("all", "factcheck-bench"): (by_rarity, others),
    }
    rows = []
    for (of, to), (known, new) in cases.items():
        judge = learn_judge(known, FieldSettings(penalty=penalty)).reading(new)
        table = judge.table(new)
        p, labeled = judge.probabilities(table), ~np.isnan(table.labels)
        y = table.labels[labeled]
        harm = judge.harm(table, n_bootstrap=bootstrap)
        rows.append(
            {
                "of": of,
                "to": to,
                "p_value": judge.shift(table, n_bootstrap=bootstrap).p_value,
                **harm._asdict(),
                "true_brier": float(((p[labeled] - y) ** 2).mean()),
                "true_share": float(y.mean()),
                "largest_rise": harm.largest_rise,
                "n_to_label": harm.n_to_label,
                "n_in_any_case": harm.n_in_any_case,
            }
        )
    return Artifacts(tables={"bounds": _table(rows)})


def _table(rows: Sequence[dict[str, object]]) -> Table:
    return Table(
        data_frame(rows),
        columns_as(
            "of learned from | to applied to | p_value> p | unexplained:3 | "
            "brier:3 Brier by posteriors | brier_lower:3 at least | brier_upper:3 at most | "
            "true_brier:3 by labels | share_lower:3 true at least | share_upper:3 at most | "
            "true_share:3 by labels | n_to_label:0 to label | "
            "n_in_any_case:0 in any case",
            p_value=p_value,
        ),
        "Bounds of the effect of a shift of the evidence, and the values by labels.",
        note="p: of the test that the evidence is a mixture of the learned evidence. To label: "
        "responses whose labels give the Brier score to ±0.05, if losses vary as in the training "
        "data, and in any case.",
    )


if __name__ == "__main__":
    answer_question(shift_harm, __file__)
