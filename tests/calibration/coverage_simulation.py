"""Coverage of a known truth by the interval of every score, with correlated claims in a response.

    python -m tests.calibration.coverage_simulation 20 50 92    # responses: a quarter of an hour
    python -m tests.calibration.coverage_simulation             # the table of the record

A test runs a short one, and another holds the guide and `calibration.scores.coverage` to
the file.

Forecasts: logit p is normal with variance 2.25, of which a share, the intraclass correlation, is
common to a response; one claim in twenty is undecided, p = 1/2. Labels: true if a normal number, of
which the same share of the variance is common, lies below the quantile of the true probability
sigmoid(INTERCEPT + SLOPE logit p). Each claim's true probability given its p is then exactly that,
whatever the correlation. Responses have seven claims each, or very unequal numbers: lognormal with
a standard deviation of 1 about the same mean, from 1 to some 80.

An interval should contain the score of the population: of infinitely many claims, their true
probabilities known, with the same bins. It is computed from a fine grid of quantiles of p; means
over responses, from a hundred thousand of them. A plain calibration error of few claims is far
above that, which is why it is not enough to look at replicates of it.

Differences are of these forecasts and of blurred ones, whose normal numbers have a correlation of
0.8 with theirs and which know nothing else of the labels.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

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
RECORD = Path(__file__).parents[2] / "docs" / "results" / "interval-coverage.md"

OWN, PERCENTILE, DIFFERENCE = "own", "percentile", "difference"
"""Kinds of intervals: that of the registry, percentiles of plain replicates, and that of the
difference of two methods."""

COLUMNS = ("interval", "score", "n_responses", "sizes", "correlation", "n", "held", "below")
"""Columns of the file."""

BLURRED = 0.8
"""Correlation of the normal numbers of two methods whose scores are compared."""

logger = logging.getLogger(__name__)


class CoverageDesign(NamedTuple):
    """Design of a simulation.

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
    values = generator.normal(size=responses.size)
    numbers: Floats = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * values
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
    scores = sample_scores(sample, SampleSettings(), others)
    return {
        name: mean_loss(sample, name) if name in LOSSES else scores[name].value for name in names
    }


def by_response(p: Floats, y: Floats, responses: Integers) -> dict[str, float]:
    """Return the scores of `BY_RESPONSE`."""
    scores = score(p, y, responses, scores=BY_RESPONSE, k=MEAN_SIZE, intervals=None)
    return {name: scores[name].value for name in BY_RESPONSE}


def coverage(
    design: CoverageDesign,
    n_simulations: int,
    *,
    n_bootstrap: int = 300,
    seed: int = 0,
    scores: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return how often intervals over responses hold the truth, a row per score.

    Columns are those of the design; `score`, its name; `n`, the number of data sets with an
    interval; `held`, the share of them whose interval held the truth; and `below`, of those whose
    interval was below the truth.

    Args:
        design: of the data sets and intervals.
        n_simulations: number of simulated data sets.
        n_bootstrap: number of replicates of the intervals that draw some.
        seed: seed of the data sets; the replicates of each have its number as seed.
        scores: which scores; all that have such intervals if None.
    """
    intervals, names, truth = _PARTS[design.interval](design, scores)
    outcomes: dict[str, list[tuple[bool, bool]]] = {name: [] for name in names}
    # Correlation and sizes take part in the seed, lest all cells have the same luck.
    seeds = [design.n_responses, int(100 * design.correlation), SIZES.index(design.sizes)]
    for number in range(n_simulations):
        generator = np.random.default_rng([seed, number, *seeds])
        how = IntervalSettings(n_bootstrap=n_bootstrap, seed=number)
        for name, (lower, upper) in intervals(generator, how):
            if not math.isnan(lower):
                outcomes[name].append((lower <= truth[name] <= upper, upper < truth[name]))
    means = {name: (len(each), *np.mean(each, axis=0).round(4).tolist())
             for name, each in outcomes.items() if each}  # fmt: skip
    rows = pd.DataFrame.from_dict(means, orient="index", columns=["n", "held", "below"])
    return rows.rename_axis("score").reset_index().assign(**design._asdict())[[*COLUMNS]]


Ends = Iterator[tuple[str, tuple[float, float]]]
"""Names of scores, and the ends of their intervals."""

Intervals = Callable[[np.random.Generator, IntervalSettings], Ends]
"""Yields the intervals of scores of data that are drawn."""

Part = tuple[Intervals, Sequence[str], Mapping[str, float]]
"""What makes intervals, of which scores, and what these are in the population."""


def _intervals_of_registry(design: CoverageDesign, scores: Sequence[str] | None) -> Part:
    """Intervals of the registry."""
    names = (*SCORES, *BY_RESPONSE) if scores is None else scores

    def intervals(generator: np.random.Generator, how: IntervalSettings) -> Ends:
        drawn = draw(generator, design.n_responses, design.correlation, design.sizes)
        scores = score(*drawn, scores=names, k=MEAN_SIZE, intervals=how)
        yield from ((name, scores[name].interval) for name in names)

    return intervals, names, truths(design.sizes, design.correlation)


def _percentile(design: CoverageDesign, scores: Sequence[str] | None) -> Part:
    """Percentiles of plain replicates: what not to do, and why.

    Without smooth ECE, of which a replicate takes long.
    """
    names = [name for name in SCORES if name != "smooth_ece"] if scores is None else scores

    def values(sample: Sample) -> Floats:
        return np.array(list(of_sample(sample, names).values()))

    def intervals(generator: np.random.Generator, how: IntervalSettings) -> Ends:
        p, y, ids = draw(generator, design.n_responses, design.correlation, design.sizes)
        draws = response_weights(design.n_responses, how.n_bootstrap, how.seed)
        statistic = of_samples(forecasts(p, y, None, ids), values)
        ends = np.stack(percentile_interval(replicates(statistic, draws), 0.95), axis=1)
        yield from zip(names, map(tuple, ends.tolist()), strict=True)

    return intervals, names, truths(design.sizes, design.correlation)


def _difference(design: CoverageDesign, scores: Sequence[str] | None) -> Part:
    """Intervals of the difference of two methods.

    There is none for scores that labels alone decide, and for verdicts that neither method leaves
    open.
    """
    names = [
        name
        for name in (REGISTRY if scores is None else scores)
        if REGISTRY[name].interval is not IntervalMethod.BASE_RATE
        and name not in ("human_precision", "undecided")
    ]
    truth = difference_truths()
    if not truth.keys() >= set(names):
        truth = truth | response_differences(design.sizes, design.correlation)

    def intervals(generator: np.random.Generator, how: IntervalSettings) -> Ends:
        drawn = draw_two(generator, design.n_responses, design.correlation, design.sizes)
        for name in names:
            difference = score_difference(
                name, *drawn, k=MEAN_SIZE, n_bootstrap=how.n_bootstrap, seed=how.seed
            )
            yield name, difference.interval

    return intervals, names, truth


_PARTS = {OWN: _intervals_of_registry, PERCENTILE: _percentile, DIFFERENCE: _difference}


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
    first, other = (by_response(each, y, responses) for each in methods)
    return {name: first[name] - other[name] for name in BY_RESPONSE}


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


def covered(cells: pd.DataFrame, interval: str, score: str, n_responses: int) -> float:
    """Return the coverage at the number of responses of a warning.

    For scores, the coverage with responses of equal or of unequal sizes, whichever is farther from
    95%; each is a mean over correlations, which about a thousand data sets determine to within a
    hundredth. For differences, which have fewer data sets, the mean over all designs.
    """
    asked = {"interval": interval, "score": score, "n_responses": n_responses}
    chosen = cells[(cells[[*asked]] == pd.Series(asked)).all(axis=1)]
    groups = chosen.groupby("sizes" if interval == OWN else "interval", sort=False)["held"]
    means = [float(covered_of_group.to_numpy().mean()) for _, covered_of_group in groups]
    return round(float(max(means, key=lambda share: float(abs(share - 0.95)))), 3)


def measured(cells: pd.DataFrame, interval: str) -> dict[str, tuple[float, ...]]:
    """Return the values of `MEASURED` in `scores.coverage`, or of the table of differences."""
    return {
        name: tuple(covered(cells, interval, name, n_responses) for n_responses in RESPONSES)
        for name in sorted(cells.loc[cells["interval"] == interval, "score"].unique())
    }


def record_table(cells: pd.DataFrame) -> str:
    """Return the table of the record: of every score the mean over cells, and the extreme ones."""
    heads = " | ".join(str(n_responses) for n_responses in RESPONSES)
    kinds = [kind for kind in _PARTS if kind in set(cells["interval"])]
    lines = [
        f"| score | interval | {heads} | percentiles: {heads} |"
        + f" differences: {heads} |" * (DIFFERENCE in kinds),
        "| --- " * (2 + len(kinds) * len(RESPONSES)) + "|",
    ]
    texts = cells.groupby(["score", "interval", "n_responses"])["held"].agg(_cell_text)
    for name in sorted(set(cells["score"]), key=list(REGISTRY).index):
        texts_of_row = (texts.get((name, kind, n), "--") for kind in kinds for n in RESPONSES)
        method = str(REGISTRY[name].interval).replace("_", " ")
        lines.append(f"| `{name}` | {method} | {' | '.join(texts_of_row)} |")
    return "\n".join(lines)


def _cell_text(shares: pd.Series[float]) -> str:
    text = f"{shares.mean():.2f}"
    return text if len(shares) == 1 else f"{text} ({shares.min():.2f} to {shares.max():.2f})"


def simulated(design: CoverageDesign, scores: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the coverage of scores in a design, of as many data sets as time allows."""
    if design.interval == OWN:
        return coverage(design, 400, scores=scores)
    if design.interval == DIFFERENCE:
        return coverage(design, 120 if design.n_responses == 50 else 60, scores=scores)
    return coverage(design, 200, n_bootstrap=200, scores=scores)


def designs(n_responses: int) -> list[CoverageDesign]:
    """Return the designs of a number of responses."""
    every = [
        CoverageDesign(kind, n_responses, *each)
        for kind in (OWN, DIFFERENCE)
        for each in itertools.product(SIZES, CORRELATIONS)
    ]
    return [*every, CoverageDesign(PERCENTILE, n_responses, "equal", 0.1)]


def simulate(
    wanted: Sequence[CoverageDesign], workers: int, scores: Sequence[str] | None = None
) -> None:
    """Simulate designs in processes, and write the rows of each to the file as it ends.

    Rows of scores that are not simulated are unchanged.
    """
    cells = pd.read_csv(FILE) if FILE.exists() else pd.DataFrame(columns=[*COLUMNS])
    numbers = {*cells["n_responses"], *(each.n_responses for each in wanted)}
    order = [each for number in sorted(numbers) for each in designs(number)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        ends = {pool.submit(simulated, design, scores): design for design in wanted}
        for end in as_completed(ends):
            outcomes = end.result()
            again = np.array([each == ends[end] for each in _designs(cells)], dtype=bool)
            if scores is not None:
                again &= cells["score"].isin(outcomes["score"]).to_numpy()
            cells = pd.concat([cells[~again], outcomes])
            places = [order.index(each) for each in _designs(cells)]
            cells = cells.iloc[np.argsort(places, kind="stable")]
            cells.to_csv(FILE, index=False)
            logger.info("%s", ends[end])


def _designs(cells: pd.DataFrame) -> Iterator[CoverageDesign]:
    """Yield the design of every row."""
    return map(CoverageDesign._make, cells[[*CoverageDesign._fields]].itertuples(index=False))


def main() -> None:
    """Run the simulation of some numbers of responses, or write the table of the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("responses", nargs="*", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", choices=(OWN, DIFFERENCE, PERCENTILE), help="only this part")
    parser.add_argument("--scores", nargs="+", choices=REGISTRY, help="only these scores")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    if given.responses:
        wanted = [each for n in given.responses for each in designs(n)]
        wanted = [each for each in wanted if given.part in (None, each.interval)]
        simulate(wanted, given.workers, given.scores)
        return
    cells = pd.read_csv(FILE)
    text = RECORD.read_text(encoding="utf-8")
    before, _, rest = text.partition("| score |")
    after = rest[rest.index("\n\n") :]
    RECORD.write_text(before + record_table(cells) + after, encoding="utf-8")
    for interval in (OWN, DIFFERENCE):
        logger.info("%s", interval)
        for name, shares in measured(cells, interval).items():
            logger.info("    %r: %r,", name, shares)


if __name__ == "__main__":
    main()
