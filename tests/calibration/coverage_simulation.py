"""How often the interval of every score holds a known truth, where claims of a response are alike.

    python -m tests.calibration.coverage_simulation 20 50 92    # responses: a quarter of an hour
    python -m tests.calibration.coverage_simulation             # what was found, into the guide

A test runs a short one, and another holds the guide and `calibration.scores.coverage` to
the file.

Forecasts: logit p is normal with variance 2.25, of which a share, the intraclass correlation, is
common to a response; one claim in twenty is undecided, p = 1/2. Labels: true if a normal number, of
which the same share of the variance is common, lies below the quantile of the true probability
sigmoid(INTERCEPT + SLOPE logit p). Each claim's true probability given its p is then exactly that,
whatever the correlation. Responses have seven claims each, or very unequal numbers: lognormal with
a standard deviation of 1 about the same mean, from 1 to some 80.

What an interval should hold is the score of the population: of infinitely many claims, their true
probabilities known, with the same bins. It is computed from a fine grid of quantiles of p; means
over responses, from a hundred thousand of them. A plain calibration error of few claims is far
above that, which is why it is not enough to look at replicates of it.

Differences are of these forecasts and of blurred ones, whose normal numbers have a correlation of
0.8 with theirs and which know nothing else of the labels.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import logging
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from calibration import score
from calibration.forecasts import Sample, forecasts
from calibration.intervals import (
    IntervalMethod,
    IntervalSettings,
    of_samples,
    percentile_interval,
    replicates,
    response_weights,
)
from calibration.scores.coverage import SIMULATED_RESPONSES
from calibration.scores.definition import SampleSettings
from calibration.scores.families.pointwise import LOSSES, mean_loss
from calibration.scores.logistic import sigmoid
from calibration.scores.registry import MEASURES, REGISTRY, SAMPLE_SCORES, sample_scores
from calibration.significance.differences import score_difference
from calibration.validation import Floats, Integers

SLOPE, INTERCEPT, LOGIT_VARIANCE, UNDECIDED = 0.8, 0.2, 2.25, 0.05
MEAN_SIZE = 7
CORRELATIONS = (0.0, 0.1, 0.3)
SIZES = ("equal", "unequal")
RESPONSES = SIMULATED_RESPONSES

SCORES = (*LOSSES, *SAMPLE_SCORES)
"""Scores that a population of forecasts has."""

BY_RESPONSE = tuple(name for name in dict.fromkeys((*MEASURES, *REGISTRY)) if name not in SCORES)
"""The other scores, means over responses most of them; those of the papers first."""

FILE = Path(__file__).with_name("coverage.csv")
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "coverage.md"

OWN, PERCENTILE, DIFFERENCE = "own", "percentile", "difference"
"""Kinds of intervals: that of the registry, percentiles of plain replicates, and that of the
difference of two methods."""

BLURRED = 0.8
"""Correlation of the normal numbers of two methods whose scores are compared."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CoverageCell:
    """How often the intervals of one score held the truth.

    Attributes:
        interval: one of the kinds: ``own``, ``percentile`` or ``difference``.
        score: name of the score.
        n_responses: number of responses of each data set.
        sizes: ``equal`` or ``unequal``.
        correlation: intraclass correlation.
        n: number of data sets with an interval.
        held: share of them whose interval held the truth.
        below: share of them whose interval was below the truth.
    """

    interval: str
    score: str
    n_responses: int
    sizes: str
    correlation: float
    n: int
    held: float
    below: float


def true_probability(p: Floats) -> Floats:
    """Return the probability that claims are true, given p."""
    return sigmoid(INTERCEPT + SLOPE * (np.log(p) - np.log1p(-p)))


def draw(
    generator: np.random.Generator,
    n_responses: int,
    correlation: float = 0.3,
    sizes: str = "unequal",
) -> tuple[Floats, Floats, Integers]:
    """Return probabilities, labels and response ids."""
    responses = drawn_responses(generator, n_responses, sizes)
    p = sigmoid(alike(generator, responses, correlation) * math.sqrt(LOGIT_VARIANCE))
    p[generator.random(responses.size) < UNDECIDED] = 0.5
    return p, alike_labels(generator, true_probability(p), responses, correlation), responses


def drawn_responses(generator: np.random.Generator, n_responses: int, sizes: str) -> Integers:
    """Return the response id of every claim."""
    numbers = np.full(n_responses, MEAN_SIZE)
    if sizes == "unequal":
        drawn = generator.lognormal(math.log(MEAN_SIZE) - 0.5, 1.0, n_responses)
        numbers = np.maximum(1, np.rint(drawn)).astype(np.int64)
    return np.repeat(np.arange(n_responses), numbers)


def alike(generator: np.random.Generator, responses: Integers, correlation: float) -> Floats:
    """Return standard normal numbers, of which those of a response have a correlation."""
    common = generator.normal(size=responses.max() + 1)[responses]
    own = generator.normal(size=responses.size)
    numbers: Floats = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    return numbers


def alike_labels(
    generator: np.random.Generator, true: Floats, responses: Integers, correlation: float
) -> Floats:
    """Return labels of these probabilities, whose normal numbers are alike within a response."""
    from scipy.special import ndtr

    labels: Floats = (ndtr(alike(generator, responses, correlation)) < true).astype(np.float64)
    return labels


@cache
def truths(sizes: str, correlation: float) -> dict[str, float]:
    """Return what every score is in the population."""
    from scipy.special import ndtri

    n, undecided = 19_000, 1000
    logits = ndtri((np.arange(n) + 0.5) / n) * math.sqrt(LOGIT_VARIANCE)
    p = np.sort(np.append(sigmoid(logits), np.full(undecided, 0.5)))
    points = forecasts(p, np.arange(p.size) % 2)
    weight = points.sizes.astype(np.float64)
    population = Sample(points, weight, weight * true_probability(points.p))
    # Knots and bins are those of the population.
    many = draw(np.random.default_rng(0), 100_000, correlation, sizes)
    return of_sample(population, SCORES) | by_response(*many)


def of_sample(sample: Sample, names: Sequence[str]) -> dict[str, float]:
    """Return scores of `SCORES` of a sample, by name."""
    others = [name for name in names if name not in LOSSES]
    found = sample_scores(sample, SampleSettings(), others)
    return {
        name: mean_loss(sample, name) if name in LOSSES else found[name].value for name in names
    }


def by_response(p: Floats, y: Floats, responses: Integers) -> dict[str, float]:
    """Return the scores of `BY_RESPONSE`."""
    found = score(p, y, responses, scores=BY_RESPONSE, k=MEAN_SIZE, intervals=None)
    return {name: found[name].value for name in BY_RESPONSE}


def coverage(
    n_simulations: int,
    n_responses: int,
    correlation: float,
    sizes: str,
    *,
    n_bootstrap: int = 300,
    seed: int = 0,
    scores: Sequence[str] | None = None,
) -> list[CoverageCell]:
    """Return how often intervals over responses hold the truth.

    Args:
        n_simulations: number of simulated data sets.
        n_responses: number of responses of each.
        correlation: intraclass correlation.
        sizes: ``equal`` or ``unequal``.
        n_bootstrap: number of replicates of the intervals that draw some.
        seed: seed of the data sets; the replicates of each have its number as seed.
        scores: which scores; all of them if None.
    """
    truth = truths(sizes, correlation)
    outcomes: dict[str, list[tuple[bool, bool]]] = {}
    for number in range(n_simulations):
        # Correlation and sizes take part in the seed, lest all cells have the same luck.
        key = [seed, number, n_responses, int(100 * correlation), SIZES.index(sizes)]
        p, y, responses = draw(np.random.default_rng(key), n_responses, correlation, sizes)
        names = (*SCORES, *BY_RESPONSE) if scores is None else scores
        how = IntervalSettings(n_bootstrap=n_bootstrap, seed=number)
        found = score(p, y, responses, scores=names, k=MEAN_SIZE, intervals=how)
        for name in names:
            lower, upper = found[name].interval
            if not math.isnan(lower):
                held = lower <= truth[name] <= upper, upper < truth[name]
                outcomes.setdefault(name, []).append(held)
    return _cells(OWN, outcomes, n_responses, sizes, correlation)


def percentile_coverage(
    n_simulations: int, n_responses: int, *, n_bootstrap: int = 200, seed: int = 0
) -> list[CoverageCell]:
    """Return how often percentiles of plain replicates hold the truth: what not to do, and why.

    Arguments are those of `coverage`, of responses of equal size with a correlation of 0.1. Without
    smooth ECE, of which a replicate takes long.
    """
    correlation, sizes = 0.1, "equal"
    truth = truths(sizes, correlation)
    names = [name for name in SCORES if name != "smooth_ece"]
    outcomes: dict[str, list[tuple[bool, bool]]] = {name: [] for name in names}
    for number in range(n_simulations):
        key = [seed, number, n_responses, int(100 * correlation), SIZES.index(sizes)]
        p, y, responses = draw(np.random.default_rng(key), n_responses, correlation, sizes)
        points = forecasts(p, y, None, responses)

        def values(sample: Sample) -> Floats:
            return np.array(list(of_sample(sample, names).values()))

        draws = response_weights(n_responses, n_bootstrap, number)
        lower, upper = percentile_interval(replicates(of_samples(points, values), draws), 0.95)
        for name, low, high in zip(names, lower.tolist(), upper.tolist(), strict=True):
            if not math.isnan(low):
                outcomes[name].append((low <= truth[name] <= high, high < truth[name]))
    return _cells(PERCENTILE, outcomes, n_responses, sizes, correlation)


def difference_coverage(
    n_simulations: int,
    n_responses: int,
    correlation: float,
    sizes: str,
    *,
    n_bootstrap: int = 300,
    seed: int = 0,
    scores: Sequence[str] | None = None,
) -> list[CoverageCell]:
    """Return how often intervals of the difference of two methods hold that of the truths.

    Arguments are those of `coverage`. Of what labels alone decide, and of verdicts that neither
    method leaves open, there is no difference.
    """
    names = [
        name
        for name in (REGISTRY if scores is None else scores)
        if REGISTRY[name].interval is not IntervalMethod.BASE_RATE
        and name not in ("human_precision", "undecided")
    ]
    truth = difference_truths()
    if not truth.keys() >= set(names):
        truth = truth | response_differences(sizes, correlation)
    outcomes: dict[str, list[tuple[bool, bool]]] = {name: [] for name in names}
    for number in range(n_simulations):
        key = [seed, number, n_responses, int(100 * correlation), SIZES.index(sizes)]
        drawn = draw_two(np.random.default_rng(key), n_responses, correlation, sizes)
        for name in names:
            found = score_difference(
                name, *drawn, k=MEAN_SIZE, n_bootstrap=n_bootstrap, seed=number
            )
            if not math.isnan(found.lower):
                held = found.lower <= truth[name] <= found.upper, found.upper < truth[name]
                outcomes[name].append(held)
    return _cells(DIFFERENCE, outcomes, n_responses, sizes, correlation)


def draw_two(
    generator: np.random.Generator, n_responses: int, correlation: float, sizes: str
) -> tuple[Floats, Floats, Floats, Integers]:
    """Return probabilities of two methods, labels and response ids."""
    responses = drawn_responses(generator, n_responses, sizes)
    sharp, noise = (alike(generator, responses, correlation) for _ in range(2))
    blurred = BLURRED * sharp + math.sqrt(1 - BLURRED**2) * noise
    first, second = (sigmoid(each * math.sqrt(LOGIT_VARIANCE)) for each in (sharp, blurred))
    y = alike_labels(generator, true_probability(first), responses, correlation)
    return first, second, y, responses


@cache
def response_differences(sizes: str, correlation: float) -> dict[str, float]:
    """Return what the difference of every score of `BY_RESPONSE` is in the population."""
    *methods, y, responses = draw_two(np.random.default_rng(0), 100_000, correlation, sizes)
    one, other = (by_response(each, y, responses) for each in methods)
    return {name: one[name] - other[name] for name in BY_RESPONSE}


@cache
def difference_truths() -> dict[str, float]:
    """Return what the difference of every score of `SCORES` is in the population."""
    from scipy.special import ndtri

    n = 20_000
    normal, deviation = ndtri((np.arange(n) + 0.5) / n), math.sqrt(LOGIT_VARIANCE)
    # What sharp forecasts are, given blurred ones: Gauss's quadrature.
    nodes, shares = np.polynomial.hermite_e.hermegauss(60)
    sharp = BLURRED * normal[:, np.newaxis] + math.sqrt(1 - BLURRED**2) * nodes
    p = sigmoid(normal * deviation)
    given_blurred = true_probability(sigmoid(sharp * deviation)) @ (shares / shares.sum())
    points = forecasts(p, np.arange(n) % 2)
    weight = points.sizes.astype(np.float64)
    first, second = (
        of_sample(Sample(points, weight, weight * true), SCORES)
        for true in (true_probability(p), given_blurred)
    )
    return {name: first[name] - second[name] for name in SCORES}


def _cells(
    interval: str,
    outcomes: Mapping[str, Sequence[tuple[bool, bool]]],
    n_responses: int,
    sizes: str,
    correlation: float,
) -> list[CoverageCell]:
    return [
        CoverageCell(
            interval,
            name,
            n_responses,
            sizes,
            correlation,
            len(own),
            *np.mean(own, axis=0).round(4).tolist(),
        )
        for name, own in outcomes.items()
    ]


def read_cells() -> list[CoverageCell]:
    """Return the cells that were simulated."""
    with FILE.open(encoding="utf-8", newline="") as lines:
        return [
            CoverageCell(
                row["interval"],
                row["score"],
                int(row["n_responses"]),
                row["sizes"],
                float(row["correlation"]),
                int(row["n"]),
                float(row["held"]),
                float(row["below"]),
            )
            for row in csv.DictReader(lines)
        ]


def write_cells(cells: Sequence[CoverageCell]) -> None:
    """Write simulated cells to the file."""
    with FILE.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, [field.name for field in fields(CoverageCell)])
        writer.writeheader()
        writer.writerows(asdict(cell) for cell in cells)


def covered(cells: Sequence[CoverageCell], interval: str, score: str, n_responses: int) -> float:
    """Return the coverage with so many responses that a warning is of.

    Of scores that with responses of equal sizes or of unequal ones, the farther from 95 %, each the
    mean over correlations, which a thousand data sets or so settle to within a hundredth. Of
    differences, of which there are fewer data sets, the mean over all designs.
    """
    own = [
        cell
        for cell in cells
        if (cell.interval, cell.score, cell.n_responses) == (interval, score, n_responses)
    ]
    groups = [own]
    if interval == OWN:
        groups = [[cell for cell in own if cell.sizes == sizes] for sizes in SIZES]
    means: list[float] = [float(np.mean([each.held for each in own])) for own in groups if own]
    return round(float(max(means, key=lambda held: float(abs(held - 0.95)))), 3)


def measured(cells: Sequence[CoverageCell], interval: str) -> dict[str, tuple[float, ...]]:
    """What `MEASURED` of `scores.coverage` should be, or that of differences."""
    names = dict.fromkeys(cell.score for cell in cells if cell.interval == interval)
    return {
        name: tuple(covered(cells, interval, name, n_responses) for n_responses in RESPONSES)
        for name in sorted(names)
    }


def guide_table(cells: Sequence[CoverageCell]) -> str:
    """Return the table of the guide: of every score the mean over cells, and the extreme ones."""
    heads = " | ".join(str(n_responses) for n_responses in RESPONSES)
    kinds = [
        kind
        for kind in (OWN, PERCENTILE, DIFFERENCE)
        if any(cell.interval == kind for cell in cells)
    ]
    lines = [
        f"| score | interval | {heads} | percentiles: {heads} |"
        + f" differences: {heads} |" * (DIFFERENCE in kinds),
        "| --- " * (2 + len(kinds) * len(RESPONSES)) + "|",
    ]
    names = dict.fromkeys(cell.score for cell in cells)
    for name in sorted(names, key=list(REGISTRY).index):
        texts = [f"`{name}`", str(REGISTRY[name].interval).replace("_", " ")]
        for interval in kinds:
            for n_responses in RESPONSES:
                held = [
                    cell.held
                    for cell in cells
                    if (cell.interval, cell.score, cell.n_responses)
                    == (interval, name, n_responses)
                ]
                texts.append(_cell_text(held))
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines)


def _cell_text(held: Sequence[float]) -> str:
    if not held:
        return "--"
    text = f"{np.mean(held):.2f}"
    if len(held) > 1:
        text += f" ({min(held):.2f} to {max(held):.2f})"
    return text


@dataclass(frozen=True)
class CoverageDesign:
    """What is simulated at once: of the kind of interval, the design of the data sets.

    Attributes:
        interval: one of the kinds.
        n_responses: number of responses of each data set.
        sizes: ``equal`` or ``unequal``.
        correlation: intraclass correlation.
    """

    interval: str
    n_responses: int
    sizes: str
    correlation: float

    def simulated(self) -> list[CoverageCell]:
        """Return the cells of all scores."""
        if self.interval == OWN:
            return coverage(400, self.n_responses, self.correlation, self.sizes)
        if self.interval == DIFFERENCE:
            n = 120 if self.n_responses == 50 else 60
            return difference_coverage(n, self.n_responses, self.correlation, self.sizes)
        return percentile_coverage(200, self.n_responses)


def designs(n_responses: int) -> list[CoverageDesign]:
    """Return the designs of a number of responses."""
    every = [
        CoverageDesign(kind, n_responses, *each)
        for kind in (OWN, DIFFERENCE)
        for each in itertools.product(SIZES, CORRELATIONS)
    ]
    return [*every, CoverageDesign(PERCENTILE, n_responses, "equal", 0.1)]


def simulate(wanted: Sequence[CoverageDesign], workers: int) -> None:
    """Simulate designs in processes, and write the cells of each to the file as it ends."""
    cells = read_cells() if FILE.exists() else []
    numbers = {each.n_responses for each in cells} | {each.n_responses for each in wanted}
    order = [each for number in sorted(numbers) for each in designs(number)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        ends = {pool.submit(design.simulated): design for design in wanted}
        for end in as_completed(ends):
            cells = [cell for cell in cells if _design(cell) != ends[end]] + end.result()
            cells.sort(key=lambda cell: order.index(_design(cell)))
            write_cells(cells)
            logger.info("%s", ends[end])


def _design(cell: CoverageCell) -> CoverageDesign:
    return CoverageDesign(cell.interval, cell.n_responses, cell.sizes, cell.correlation)


def main() -> None:
    """Run the simulation of some numbers of responses, or write what was found into the guide."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("responses", nargs="*", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", choices=(OWN, DIFFERENCE, PERCENTILE), help="only this part")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    if given.responses:
        wanted = [each for n in given.responses for each in designs(n)]
        wanted = [each for each in wanted if given.part in (None, each.interval)]
        simulate(wanted, given.workers)
        return
    cells = read_cells()
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition("| score |")
    after = rest[rest.index("\n\n") :]
    GUIDE.write_text(before + guide_table(cells) + after, encoding="utf-8")
    for interval in (OWN, DIFFERENCE):
        logger.info("%s", interval)
        for name, held in measured(cells, interval).items():
            logger.info("    %r: %r,", name, held)


if __name__ == "__main__":
    main()
