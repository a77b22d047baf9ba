"""Skewed responses: do intervals from few labels cover if responses are unequal?

Question: in ten worlds (clustered claims, responses of lognormal sizes, rare errors, invented
answers, over-sharp, good and useless probabilities), how often do the intervals of `estimate` and
of `score` cover the truth, and do they warn if they may not?
Data: simulated; the truth is the value of 40,000 responses.
Rival: PPI++ as in ppi-python 0.2.3, which takes claims for independent; and the classical interval
of a mean, by the labeled claims alone. For a judge that the same labels trained in folds: residuals
alone, without `training_variance`.

    python notebooks/questions/skewed_responses.py --parts parts --out docs/results/skewed-responses

Each cell, a world and a number of labeled responses, is kept in the folder of --parts; an
interrupted run continues there. It takes 9 minutes of processor time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibration import score
from calibration.estimation import (
    QUANTITIES,
    FoldJudges,
    PoweredEstimate,
    brier,
    estimate,
    minus,
    quantity_by_judges,
)
from calibration.estimation.estimates import Inverted
from calibration.estimation.linear import Linearized
from calibration.folds import response_folds
from calibration.scores.families.pointwise import brier_losses
from calibration.validation import Floats, Integers
from experiments.findings.artifacts import Artifacts
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame
from experiments.progress import tell
from factormodels.errors import InputError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

_MEAN_SIZE = 8
"""Claims of a response in the mean."""

_DIFFERENCE = "brier of two judges"
"""Brier score of the probabilities minus the score of duller ones, on the same claims."""

_SCORED = "score: "
"""Start of the name of a quantity that `calibration.score` has of the labeled claims."""

_LEARNED = "learned: "
"""Start of the name of a quantity of a judge that the labels trained in folds."""

_RESIDUALS = "learned, residuals: "
"""The same with the variance of residuals alone."""

_NOISE = 5
"""Columns of noise that the judge reads beside the log odds of the probabilities."""

_FOLDS = 5

_JUDGED = 1000
"""Responses of the population in which the value of each judge is computed."""

_MEANS = ("share", "brier", "accuracy")
"""Means over claims, which PPI++ and the classical interval have too."""

_POPULATION = 40_000

_LEVEL = 0.95
"""Nominal coverage of all intervals."""


class World(NamedTuple):
    """The law of a response.

    Log odds of truth are normal about `level` with a standard deviation of `spread`; of that
    variance, and of the variance of what decides truth besides, `correlation` is common to a
    response.

    Attributes:
        skewed: whether sizes are lognormal with a deviation of 1.2, else from 4 to 12.
        correlation: intraclass correlation.
        level: mean log odds.
        spread: standard deviation of log odds.
        by_size: how far log odds fall with the logarithm of size.
        knows_size: whether probabilities do, too.
        invented: share of responses all of whose claims are false.
        seen: how far log odds of probabilities are lower in these.
        sharpness: factor on the log odds of probabilities.
        useless: whether probabilities are shuffled among claims.
    """

    skewed: bool = False
    correlation: float = 0.1
    level: float = 0.8
    spread: float = 1.5
    by_size: float = 0.0
    knows_size: bool = True
    invented: float = 0.0
    seen: float = 0.0
    sharpness: float = 1.0
    useless: bool = False


WORLDS = {
    "even": World(),
    "clustered": World(correlation=0.5),
    "skewed": World(skewed=True, by_size=0.5),
    "skewed, unseen": World(skewed=True, by_size=0.5, knows_size=False),
    "rare errors": World(level=3.5),
    "invented": World(invented=0.1, level=1.5),
    "invented, seen": World(invented=0.1, level=1.5, seen=1.5),
    "over-sharp": World(sharpness=3.0),
    "good": World(spread=4.0),
    "useless": World(useless=True),
}


def skewed_responses(
    *,
    labels: tuple[int, ...] = (10, 20, 40, 80),
    worlds: tuple[str, ...] = tuple(WORLDS),
    quantities: tuple[str, ...] = (
        *("share", "mean-share", "brier", "f1-at-k", "accuracy", "auroc", "kept-precision", "ece"),
        *(_DIFFERENCE, "score: brier", "score: auroc"),
    ),
    responses: int = 160,
    draws: int = 1000,
    parts: Path | None = None,
    seed: int = 0,
) -> Artifacts:
    """Return coverage and width by quantity, world and number of labeled responses.

    Args:
        labels: numbers of labeled responses.
        worlds: names of worlds.
        quantities: what is estimated; "score: " before the name of a score is what `score` prints
            of the labeled claims alone; "learned: " is of a judge that the labels train in folds.
        responses: number of responses with probabilities; twice the labeled ones if that is more.
        draws: how often responses are drawn in each cell.
        parts: folder where finished cells are kept and taken from; None: nowhere.
        seed: seed of the draws.

    Raises:
        InputError: for an unknown world, or a part of other options.
    """
    for name in worlds:
        if name not in WORLDS:
            raise InputError(unknown_name(f"--worlds {name}", name, WORLDS))
    cells = []
    for name in worlds:
        truths: dict[str, float] = {}
        for n in labels:
            cell = _Cell(name, n, quantities, max(responses, 2 * n), draws, seed)
            kept = None if parts is None else parts / f"{name.replace(', ', '-')}-{n}.csv"
            rows = None if kept is None else _kept(kept, cell)
            if rows is None:
                tell(f"{name}: {n} labeled")
                truths = truths or _truths(WORLDS[name], quantities, seed)
                rows = data_frame(_cell_rows(cell, truths))
                if kept is not None:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    rows.to_csv(kept, index=False)
            cells.append(rows)
    return Artifacts(tables=_tables(cells))


class _Cell(NamedTuple):
    """A world and a number of labeled responses, simulated together."""

    world: str
    n: int
    quantities: tuple[str, ...]
    responses: int
    draws: int
    seed: int


def _kept(path: Path, cell: _Cell) -> pd.DataFrame | None:
    """The rows of a finished cell; None where it is not finished.

    Raises:
        InputError: if they are of other quantities, or another number of draws.
    """
    import pandas as pd

    if not path.exists():
        return None
    rows = pd.read_csv(path)
    if {*rows["quantity"]} != {*cell.quantities} or {*rows["draws"]} != {cell.draws}:
        raise InputError(
            f"{path}: it was made with other --quantities or --draws; name another folder with "
            "--parts"
        )
    return rows


def drawn(world: World, n: int, generator: np.random.Generator) -> tuple[Floats, Floats, Integers]:
    """Probabilities, labels and responses (n_claims,) of n responses."""
    from scipy.special import expit, ndtr

    sizes = generator.integers(4, 13, n)
    if world.skewed:
        # The mean of a lognormal number is exp(μ + σ²/2).
        lengths = generator.lognormal(math.log(_MEAN_SIZE) - 0.72, 1.2, n)
        sizes = np.maximum(1, np.rint(lengths)).astype(np.int64)
    responses = np.repeat(np.arange(n), sizes)

    def alike() -> Floats:
        """Standard normal numbers, those of a response with the correlation of the world."""
        common = generator.normal(size=n)[responses]
        each = generator.normal(size=responses.size)
        return np.asarray(
            math.sqrt(world.correlation) * common + math.sqrt(1 - world.correlation) * each
        )

    log_odds = world.level + world.spread * alike()
    by_size = -world.by_size * np.log(sizes / _MEAN_SIZE)[responses]
    invented = (generator.random(n) < world.invented)[responses]
    y = (ndtr(alike()) < expit(log_odds + by_size)) & ~invented
    known = log_odds + by_size * world.knows_size - world.seen * invented
    p = expit(world.sharpness * known)
    if world.useless:
        p = generator.permutation(p)
    return p, y.astype(np.float64), responses


def _quantity(name: str, p: Floats, labels: Floats, responses: Integers) -> Linearized | Inverted:
    if name == _DIFFERENCE:
        duller = 0.7 * p + 0.1
        return minus(brier(p, labels, responses), brier(duller, labels, responses))
    options: dict[str, Any] = {"f1-at-k": {"k": _MEAN_SIZE}, "ece": {"n_bins": 5}}.get(name, {})
    return QUANTITIES[name](p, labels, responses, **options)


def _truths(world: World, quantities: tuple[str, ...], seed: int) -> dict[str, float]:
    """The value of each quantity of a large population."""
    p, y, responses = drawn(world, _POPULATION, np.random.default_rng((seed, 1)))
    truths = {}
    for name in quantities:
        plain = name.removeprefix(_SCORED)
        if name.startswith((_LEARNED, _RESIDUALS)):
            # Every draw has a judge and a value of its own.
            truths[name] = math.nan
        elif plain in QUANTITIES and plain != "ece":
            truths[name] = estimate(_quantity(plain, p, y, responses), power=0.0).value
        elif name == "ece":
            bins = np.minimum((p * 5).astype(np.int64), 4)
            truths[name] = float(np.abs(np.bincount(bins, y - p)).sum() / p.size)
        elif name == _DIFFERENCE:
            truths[name] = estimate(_quantity(name, p, y, responses), power=0.0).value
        else:
            scored = score(p, y, responses, scores=(plain,), intervals=None)
            truths[name] = scored.models[0].scores[plain].value
    return truths


class _Outcome(NamedTuple):
    """An interval, whether something says that it may not hold, and those of others."""

    lower: float
    upper: float
    warned: bool
    alone: tuple[float, float]
    ppi: tuple[float, float]
    classical: tuple[float, float]
    truth: float = math.nan


_NONE = (math.nan, math.nan)


def _cell_rows(cell: _Cell, truths: dict[str, float]) -> list[dict[str, Any]]:
    outcomes: dict[str, list[_Outcome]] = {name: [] for name in cell.quantities}
    world = WORLDS[cell.world]
    for draw in range(cell.draws):
        world_number = [*WORLDS].index(cell.world)
        generator = np.random.default_rng((cell.seed, 2, world_number, cell.n, draw))
        p, y, responses = drawn(world, cell.responses, generator)
        for name, outcome in _outcomes(cell, p, y, responses):
            outcomes[name].append(outcome)
        for name, outcome in _learned_outcomes(cell, p, y, responses, generator):
            outcomes[name].append(outcome)
    return [
        {
            "quantity": name,
            "world": cell.world,
            "n": cell.n,
            **_summary(of_quantity, truths[name]),
            "draws": cell.draws,
        }
        for name, of_quantity in outcomes.items()
    ]


def _outcomes(
    cell: _Cell, p: Floats, y: Floats, responses: Integers
) -> Iterator[tuple[str, _Outcome]]:
    known = responses < cell.n
    labels = np.where(known, y, np.nan)
    for name in cell.quantities:
        if name.startswith((_LEARNED, _RESIDUALS)):
            continue
        if name.startswith(_SCORED):
            plain = name.removeprefix(_SCORED)
            (model,) = score(p[known], y[known], responses[known], scores=(plain,)).models
            each = model.scores[plain]
            warned = math.isfinite(each.coverage) or model.may_lack_kinds(_LEVEL, plain)
            yield name, _Outcome(each.lower, each.upper, warned, _NONE, _NONE, _NONE)
            continue
        try:
            estimated = estimate(_quantity(name, p, labels, responses))
        except InputError:
            # Labels that are all alike have no AUROC, and the command prints why.
            yield name, _Outcome(*_NONE, True, _NONE, _NONE, _NONE)
            continue
        yield name, _estimated(estimated, name, p, y, known)


def _learned_outcomes(
    cell: _Cell, p: Floats, y: Floats, responses: Integers, generator: np.random.Generator
) -> Iterator[tuple[str, _Outcome]]:
    """Outcomes of a judge that reads the log odds of the probabilities and columns of noise."""
    names = [name for name in cell.quantities if name.startswith((_LEARNED, _RESIDUALS))]
    if not names:
        return
    known = responses < cell.n
    labels = np.where(known, y, np.nan)
    fold = np.full(responses.size, -1)
    fold[known] = response_folds(np.arange(cell.n), _FOLDS, 0)[responses[known]]
    population, truth, of_population = _population(cell.world, cell.seed)
    columns = [
        np.column_stack([_log_odds(each), noise, np.ones(each.size)])
        for each, noise in (
            (p, generator.normal(size=(p.size, _NOISE))),
            (population, np.random.default_rng(0).normal(size=(population.size, _NOISE))),
        )
    ]
    weights = ridge(columns[0][known], y[known], fold[known] != np.arange(_FOLDS)[:, np.newaxis])
    judges = FoldJudges(fold, _probabilities(weights @ columns[0].T))
    # A new response is judged by the mean of the judges.
    mean = _probabilities(weights @ columns[1].T).mean(axis=0)
    quantities: dict[str, tuple[Any, float]] = {}
    for name in names:
        plain = name.removeprefix(_LEARNED).removeprefix(_RESIDUALS)
        try:
            if plain not in quantities:
                quantities[plain] = (
                    quantity_by_judges(plain, judges, labels, responses),
                    _value(plain, mean, truth, of_population),
                )
            quantity, value = quantities[plain]
            if name.startswith(_RESIDUALS):
                quantity = replace(quantity, training_variance=0.0)
            estimated = estimate(quantity)
        except InputError:
            yield name, _Outcome(*_NONE, True, _NONE, _NONE, _NONE)
            continue
        yield name, _estimated(estimated, name, p, y, known)._replace(truth=value)


def _value(name: str, p: Floats, y: Floats, responses: Integers) -> float:
    if name in _MEANS:
        return float(_mean_of(name, p, y)[0].mean())
    return estimate(_quantity(name, p, y, responses), power=0.0).value


@lru_cache(maxsize=1)
def _population(world: str, seed: int) -> tuple[Floats, Floats, Integers]:
    return drawn(WORLDS[world], _JUDGED, np.random.default_rng((seed, 3)))


def ridge(columns: Floats, labels: Floats, parts: Any) -> Floats:
    """Weights of logistic regressions on parts of the claims, with a penalty of 3, by Newton.

    Args:
        columns: float64 (n, d), the last of ones.
        labels: labels, (n,).
        parts: bool (n_parts, n), the claims that train each regression.

    Returns:
        float64 (n_parts, d).
    """
    n_parts, d = len(parts), columns.shape[1]
    weights, penalty = np.zeros((n_parts, d)), 3.0
    products = (columns[:, :, np.newaxis] * columns[:, np.newaxis]).reshape(len(columns), d * d)
    for _ in range(8):
        p = _probabilities(weights @ columns.T)
        curvature = ((parts * p * (1 - p)) @ products).reshape(n_parts, d, d)
        slope = (parts * (labels - p)) @ columns - penalty * weights
        steps = np.linalg.solve(curvature + penalty * np.eye(d), slope[..., np.newaxis])
        weights = weights + steps[..., 0]
    return weights


def _log_odds(p: Floats) -> Floats:
    inside = np.clip(p, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(inside / (1 - inside)))


def _probabilities(log_odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(log_odds, -30, 30))))


def _estimated(estimated: PoweredEstimate, name: str, p: Floats, y: Floats, known: Any) -> _Outcome:
    ppi = classical = _NONE
    if name in _MEANS:
        values, predicted = _mean_of(name, p, y)
        ppi = ppi_interval(values[known], predicted[known], predicted[~known])
        classical = ppi_interval(values[known], predicted[known], predicted[~known], weight=0.0)
    return _Outcome(
        *(estimated.lower, estimated.upper, estimated.may_lack_kinds),
        (estimated.labels_lower, estimated.labels_upper),
        *(ppi, classical),
    )


def _mean_of(name: str, p: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Terms of a mean by the label of each claim, and by its probability."""
    if_true, if_false = {
        "share": (np.ones_like(p), np.zeros_like(p)),
        "brier": brier_losses(p),
        "accuracy": ((p > 0.5).astype(np.float64), (p <= 0.5).astype(np.float64)),
    }[name]
    return np.where(y > 0, if_true, if_false), p * if_true + (1 - p) * if_false


def ppi_interval(
    observed: Floats, predicted: Floats, others: Floats, weight: float | None = None
) -> tuple[float, float]:
    """The 95% interval of a mean by PPI++, as `ppi_mean_ci` of ppi-python 0.2.3 has it.

    Args:
        observed: what labels say, (n,).
        predicted: what is predicted of the same items, (n,).
        others: what is predicted of items without a label, (m,).
        weight: weight of the predictions; None for the one of PPI++; 0 for the classical interval.
    """
    n, m = observed.size, others.size
    if weight is None:
        covariance = float(np.mean((observed - observed.mean()) * (predicted - predicted.mean())))
        spread = float(np.var(np.concatenate([predicted, others]), ddof=1))
        weight = min(max(covariance / ((1 + n / m) * spread), 0.0), 1.0) if spread > 0 else 0.0
    rectifier = observed - weight * predicted
    value = float(rectifier.mean() + weight * others.mean())
    error = math.sqrt(float(rectifier.var()) / n + weight**2 * float(others.var()) / m)
    return value - 1.959963984540054 * error, value + 1.959963984540054 * error


def _summary(outcomes: list[_Outcome], common: float) -> dict[str, float]:
    truths = np.array([each.truth for each in outcomes])
    truth = np.where(np.isnan(truths), common, truths)

    def held(ends: Floats) -> Floats:
        """1.0 for each interval that contains the truth, 0.0 for others, nan without one."""
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        return np.where(np.isnan(ends[:, 0]), np.nan, inside)

    ends = np.array([each[:2] for each in outcomes], dtype=np.float64)
    warned = np.array([each.warned for each in outcomes])
    silent = ~warned & ~np.isnan(ends[:, 0])
    return {
        "covers": _mean(held(ends)),
        "width": _mean(ends[:, 1] - ends[:, 0]),
        "silent": float(silent.mean()),
        "silent_covers": _mean(held(ends)[silent]),
        **{
            f"{name}_covers": _mean(held(np.array([getattr(each, name) for each in outcomes])))
            for name in ("alone", "ppi", "classical")
        },
    }


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else math.nan


def _tables(cells: list[pd.DataFrame]) -> dict[str, Table]:
    import pandas as pd

    frame = pd.concat(cells, ignore_index=True)
    order = list(dict.fromkeys(frame["quantity"]))
    frame = frame.sort_values("quantity", key=lambda names: names.map(order.index), kind="stable")
    coverage = Table(
        frame,
        columns_as(
            "world | n:0 labeled | covers:3 | width:3 | silent:2 without a warning | "
            "silent_covers:3 these cover | alone_covers:3 labels alone cover | "
            "ppi_covers:3 PPI++ covers | classical_covers:3 classical covers"
        ),
        "Coverage of nominal 95% intervals in ten worlds.",
        group="quantity",
        note=f"{frame['draws'].iloc[0]} draws. Without a warning: share of draws whose interval is "
        "printed without a warning that it may not cover. PPI++ and the classical interval take "
        "claims for independent.",
    )
    by_n = frame.groupby(["quantity", "n"], sort=False)
    ranges = by_n.agg(
        least=("covers", "min"),
        most=("covers", "max"),
        silent=("silent", "mean"),
        alone=("alone_covers", "min"),
        ppi=("ppi_covers", "min"),
        classical=("classical_covers", "min"),
    ).reset_index()
    enough = frame[frame["silent"] * frame["draws"] >= _ENOUGH]
    silent = enough.groupby(["quantity", "n"])["silent_covers"].min().rename("silent_least")
    ranges = ranges.merge(silent.reset_index(), on=["quantity", "n"], how="left")
    worst = Table(
        ranges,
        columns_as(
            "quantity | n:0 labeled | least:3 covers at least | most:3 at most | "
            "silent:2 without a warning | silent_least:3 these cover at least | "
            "alone:3 labels alone at least | ppi:3 PPI++ at least | classical:3 classical at least"
        ),
        "The lowest and the highest coverage of ten worlds.",
        note=f"{frame['draws'].iloc[0]} draws. Those without a warning count in worlds with "
        f"{_ENOUGH} or more of them.",
    )
    return {"coverage": coverage, "worst": worst}


_ENOUGH = 100
"""Draws of which a coverage is told."""


if __name__ == "__main__":
    answer_question(skewed_responses, __file__)
