"""What a linear field's log odds are made of: evidence, position, neighbours and causes."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.learned_potentials.columns import FAMILIES
from calibration.learned_potentials.fitting import fit_fields
from calibration.learned_potentials.methods import ColumnMethod, CrossFitTask


def median_response(task: CrossFitTask, method: ColumnMethod) -> list[dict[str, Any]]:
    """Claims of the response whose Brier score a linear field moves by the median.

    A row has the claim's place from 1 on, its label, its posterior before and after by a field of
    the other folds, and by name of a family of columns, or "causes", what it adds to the posterior
    log odds beyond those of a claim whose columns are all at their means.
    """
    table, fold = method.table(task), task.fold
    labelled, labels, index = table.labelled, table.labels, table.responses
    parts = [labelled[fold[labelled] != one] for one in range(task.n_folds)]
    families = {
        family: [place for place, name in enumerate(table.names) if name in names]
        for family, names in FAMILIES.items()
    }
    families = {family: places for family, places in families.items() if places}
    after = np.empty(len(fold))
    log_odds = {name: np.empty(len(fold)) for name in (*families, "causes")}
    for one, field in enumerate(fit_fields(table, parts)):
        own = fold == one
        p = field.probabilities(table)
        after[own] = p[own]
        weighed = field.scale(table.values) * field.parameters[0, :-1]
        for family, places in families.items():
            log_odds[family][own] = weighed[own][:, places].sum(axis=1)
        moved = np.log(p) - np.log1p(-p) - field.log_odds(table)
        log_odds["causes"][own] = moved[own]
    gains = (task.default - labels) ** 2 - (after - labels) ** 2
    means = np.bincount(index, np.nan_to_num(gains)) / np.bincount(index)
    chosen = np.flatnonzero(index == int(np.argsort(means)[len(means) // 2]))
    return [
        {
            "claim": place + 1,
            "label": labels[at],
            "before": task.default[at],
            "after": after[at],
            **{name: own[at] for name, own in log_odds.items()},
        }
        for place, at in enumerate(chosen.tolist())
    ]
