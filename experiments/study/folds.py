"""The folds of cells whose priors were learned in cross-fitting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.study.config import Study
from experiments.study.judgements import Judgements
from experiments.study.rows import CellRows


def cross_fitted_folds(
    study: Study, cell: CellRows, judgements: Judgements
) -> NDArray[np.int64] | None:
    """Fold of every response of a cell, (n_responses,), -1 without a label; None if not learned.

    Responses are dealt out as `experiments.study.learned_priors` does.
    """
    from calibration.folds import response_folds

    title = cell.named()["prior"]
    settings = (setting for priors in study.priors for setting in priors.settings())
    learned = next((one.learned for one in settings if one.title == title), None)
    if learned is None or learned.judge:
        return None
    labelled = np.unique(judgements.index[~np.isnan(judgements.label)])
    fold = np.full(len(judgements.ids), -1)
    names = [judgements.responses[at] for at in labelled.tolist()]
    fold[labelled] = response_folds(names, learned.folds, study.seed)
    return fold
