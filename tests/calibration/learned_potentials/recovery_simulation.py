"""Coverage of the generating parameters by intervals of learned priors.

    python -m tests.calibration.learned_potentials.recovery_simulation

draws data sets of 300 responses, fits each, and logs coverage, bias and the ratio of the mean
standard error to the spread of the estimates; a minute or two. A test fits one such data set.
"""

from __future__ import annotations

import logging
import math
import sys
from dataclasses import dataclass

import numpy as np

from calibration.learned_potentials.graph_fitting import fit_potentials as fit
from tests.calibration.learned_potentials.data import GENERATOR, TRUTH, generated

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recovery:
    """Recovery of one parameter, on the unbounded scale.

    Attributes:
        name: the parameter.
        covered: share of data sets whose 95 percent interval holds the truth.
        within_two: share whose estimate is within two standard errors of it.
        bias: mean of estimate minus truth.
        spread: standard deviation of the estimates.
        error: mean of the standard errors.
        undetermined: data sets that left the parameter at a bound or confounded, in no mean.
    """

    name: str
    covered: float
    within_two: float
    bias: float
    spread: float
    error: float
    undetermined: int


def recovery(n_simulations: int, n_responses: int = 300, seed: int = 1) -> list[Recovery]:
    """Return how well each parameter is recovered over many data sets."""
    estimates_of: dict[str, list[tuple[float, float, bool]]] = {name: [] for name in TRUTH}
    for number in range(n_simulations):
        learned = fit(generated(n_responses, [seed, number]), GENERATOR)
        errors = np.sqrt(np.diag(learned.covariance)).tolist()
        for value, error in zip(learned.table(), errors, strict=True):
            covered = value.lower <= TRUTH[value.name] <= value.upper
            estimates_of[value.name].append((learned.by_name[value.name], error, covered))
    return [_summary(name, rows) for name, rows in estimates_of.items()]


def _summary(name: str, rows: list[tuple[float, float, bool]]) -> Recovery:
    p = TRUTH[name]
    truth = p if name == "temperature" else math.log(p / (1 - p))
    known = [row for row in rows if not math.isnan(row[1])]
    estimates, errors, covered = (np.array(column) for column in zip(*known, strict=True))
    return Recovery(
        name=name,
        covered=float(covered.mean()),
        within_two=float((np.abs(estimates - truth) <= 2 * errors).mean()),
        bias=float(estimates.mean() - truth),
        spread=float(estimates.std(ddof=1)),
        error=float(errors.mean()),
        undetermined=len(rows) - len(known),
    )


def main() -> None:
    """Run the simulation and log one line per parameter."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    for row in recovery(60):
        logger.info(
            "%-14s covered %.3f, within two errors %.3f, bias %+.3f, spread %.3f, error %.3f, "
            "undetermined %d",
            *(row.name, row.covered, row.within_two, row.bias, row.spread, row.error),
            row.undetermined,
        )


if __name__ == "__main__":
    main()
