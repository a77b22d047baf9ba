"""Errors of the marginals that `auto` chooses where no error is known, beside the alternatives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import fr2, fr3, grid, random_graph
from inference import (
    InferenceError,
    Posterior,
    ZeroPartitionError,
    infer,
)
from inference.anytime import Clamping, _Best, conditioned_runs
from inference.exact.backend import Exact
from inference.mini_buckets.ijgp import JoinGraphPropagation
from inference.mini_buckets.wmb import coarse_bound
from inference.stop import Stop
from tests.endurance import Row
from tests.inference.judged_graphs import scaled

Floats = NDArray[np.float64]
Tables = list[tuple[Sequence[int], NDArray[np.float64]]]

LOG_RANGES = (1.0, 5.0, 25.0)
"""Largest absolute value of a log potential."""

_SEEN = 38
"""Number of seeds whose graphs were looked at while the rule was derived, changed and checked."""


def _of(cardinalities: Sequence[int] | NDArray[np.int64], factors: Tables) -> FactorGraph:
    return FactorGraph.from_factors(cardinalities, factors, log=True)


def grids(seed: int, log_range: float) -> FactorGraph:
    """Grids of 11 by 11 that attract and repel."""
    return grid(11, 11, coupling=log_range, field=0.3 * log_range, seed=seed)


def complete(seed: int, log_range: float) -> FactorGraph:
    """Complete graphs of 13 variables of two or three states."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, 13)
    pairs = [(i, j) for i in range(13) for j in range(i)]
    tables = [rng.uniform(-log_range, log_range, tuple(cards[list(p)])) for p in pairs]
    return _of(cards, list(zip(pairs, tables, strict=True)))


def claims_and_evidence(seed: int, log_range: float) -> FactorGraph:
    """FR2 graphs of 16 claims and 64 contexts."""
    return scaled(fr2(16, 4, density=0.25, seed=seed), 0.25 * log_range)


def related_evidence(seed: int, log_range: float) -> FactorGraph:
    """FR3 graphs of 14 claims and 42 contexts."""
    return scaled(fr3(14, 3, density=0.12, context_density=0.03, seed=seed), 0.25 * log_range)


def noisy_or(seed: int, log_range: float) -> FactorGraph:
    """Two layers: 22 rare causes, 30 observed findings of four causes each."""
    rng = np.random.default_rng(seed)
    prior = -rng.uniform(0.0, log_range, 22)
    factors: Tables = [((v,), np.array([0.0, prior[v]])) for v in range(22)]
    on = np.indices((2,) * 4).reshape(4, -1)
    for _ in range(30):
        scope = sorted(rng.choice(22, 4, replace=False).tolist())
        nothing = np.minimum(-rng.uniform(0.0, min(log_range, 30.0), 4) @ on - 0.05, -1e-12)
        table = np.log(-np.expm1(nothing)) if rng.random() < 0.6 else nothing
        factors.append((scope, table.reshape((2,) * 4)))
    return _of([2] * 22, factors)


def deterministic(seed: int, log_range: float) -> FactorGraph:
    """Random tables of two and three variables, of whose entries a third is zero."""
    return random_graph(
        26, 44, min_arity=2, max_arity=3, min_cardinality=2, max_cardinality=3,
        zero_probability=0.3, log_range=log_range, seed=seed,
    )  # fmt: skip


def pedigrees(seed: int, log_range: float) -> FactorGraph:
    """Two loci of 24 people, whose parents may be any two that are older.

    The larger the log range, the rarer a wrong observation and a recombination.
    """
    rare = 0.5 * float(np.exp(-min(log_range, 12.0) / 2.0))
    return pedigree(seed, people=24, loci=2, rare=rare)


def pedigree(
    seed: int, *, people: int, loci: int, rare: float, near: int | None = None
) -> FactorGraph:
    """Alleles of people at some loci, as in linkage analysis.

    Selectors choose which allele of a parent is inherited, the same one at the next locus unless
    there is a recombination. Half of the people are observed, without the order of their alleles.

    Args:
        seed: seed of all draws.
        people: number of people, of whom the first eight are founders.
        loci: number of loci.
        rare: probability of a wrong observation, relative to a right one, and of a recombination.
        near: number of the next older people among whom the parents are, which bounds the width;
            None: all.
    """
    rng = np.random.default_rng(seed)
    alleles = np.arange(people * loci * 2).reshape(people, loci, 2)
    cards = [3] * alleles.size
    factors: Tables = []
    passed = np.zeros((2, 3, 3, 3))
    for x, y in np.ndindex(3, 3):
        passed[0, x, y, x] = passed[1, x, y, y] = 1.0
    link = np.array([[1.0 - rare, rare], [rare, 1.0 - rare]])
    for person in range(people):
        older = min(person, near or person)
        parents = person - older + rng.choice(older, 2, replace=False) if person >= 8 else None
        for side in range(2):
            for locus in range(loci):
                allele = int(alleles[person, locus, side])
                if parents is None:
                    factors.append(((allele,), rng.dirichlet(np.ones(3) * 2.0)))
                    continue
                selector = len(cards)
                cards.append(2)
                factors.append(
                    ((selector, *alleles[parents[side], locus].tolist(), allele), passed)
                )
                if locus:
                    factors.append(((selector - 1, selector), link))
        if rng.random() < 0.5:
            for locus in range(loci):
                x, y = rng.integers(0, 3, 2)
                observed = np.full((3, 3), rare)
                observed[x, y] = observed[y, x] = 1.0
                factors.append((alleles[person, locus].tolist(), observed))
    return FactorGraph.from_factors(cards, factors)


def many_states(seed: int, log_range: float) -> FactorGraph:
    """Chains of 30 variables of 8 to 12 states with eight further pairs, as in object detection."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(8, 13, 30)
    pairs = [(v, v + 1) for v in range(29)]
    pairs += [tuple(sorted(rng.choice(30, 2, replace=False).tolist())) for _ in range(8)]
    factors: Tables = [((v,), rng.uniform(-log_range, log_range, cards[v])) for v in range(30)]
    factors += [(p, rng.uniform(-log_range, log_range, tuple(cards[list(p)]))) for p in pairs]
    return _of(cards, factors)


def frustrated(seed: int, log_range: float) -> FactorGraph:
    """Twenty variables whose pairs attract or repel by one strength, with weak fields."""
    rng = np.random.default_rng(seed)
    factors: Tables = [((v,), rng.uniform(-0.1, 0.1, 2)) for v in range(20)]
    agree = 0.5 * log_range * (2.0 * np.eye(2) - 1.0)
    factors += [
        ((i, j), float(rng.choice([-1.0, 1.0])) * agree)
        for i in range(20)
        for j in range(i)
        if rng.random() < 0.4
    ]
    return _of([2] * 20, factors)


def sparse(seed: int, log_range: float) -> FactorGraph:
    """Fifty-five variables with 100 random pairs and fields."""
    rng = np.random.default_rng(seed)
    factors: Tables = [((v,), rng.uniform(-log_range, log_range, 2)) for v in range(55)]
    factors += [
        (rng.choice(55, 2, replace=False).tolist(), rng.uniform(-log_range, log_range, (2, 2)))
        for _ in range(100)
    ]
    return _of([2] * 55, factors)


KINDS: tuple[Callable[[int, float], FactorGraph], ...] = (
    grids, complete, claims_and_evidence, related_evidence, noisy_or, deterministic, pedigrees,
    many_states, frustrated, sparse,
)  # fmt: skip


def portfolio(log2_table: float, width: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the name, backend and settings of runs as `auto` makes them, without a clock.

    Args:
        log2_table: log2 of the largest table of elimination, which no run may have.
        width: induced width, which no cluster may have.
    """
    yield "lbp", "lbp", {"tolerance": 1e-6}
    for bound in sorted({2, max(2, width // 3), max(2, width // 2)}):
        settings = {"i_bound": bound, **_DAMPED}
        yield f"ijgp(i_bound={bound})", "ijgp", settings
    yield "cavi", "cavi", {}
    yield "trw", "trw", {"weight_updates": 4}
    for power in sorted({6, int((log2_table + 2) // 2), int(log2_table - 4)}):
        table = 2**power
        settings = {"i_bound": 26, "table_limit": table, "clampings": 0}
        yield f"wmb(table_limit={table})", "wmb", settings
    yield "wmb_is", "wmb_is", {"i_bound": 1, "samples": 512}


_CONDITIONED = "conditioned ijgp"
"""No backend, but what `auto` makes of `ijgp`."""

_DAMPED: dict[str, Any] = {"damping": 0.5, "tolerance": 1e-6}

Choice = Callable[[_Best, dict[str, Posterior]], str]
"""Function that names one of several runs."""


def most_central(best: _Best, runs: dict[str, Posterior]) -> str:
    """Return the run nearest to the others, the rule before this one.

    Message passing counts within the bounds only; the lower bound's distribution does not where
    there are others.
    """
    names = {best.upper_by, best.lower_by, *(_within(best, runs) or ())} & runs.keys()
    if len(names) > 2:
        names.discard(best.lower_by)
    ordered: list[str] = sorted(names)
    flat = np.stack([runs[name].marginals.flat for name in ordered])
    apart = np.abs(flat[:, None] - flat[None]).mean(axis=2).sum(axis=1)
    return ordered[int(np.argmin(apart))]


def _within(best: _Best, runs: dict[str, Posterior]) -> list[str]:
    families = {**best.messages, **best.samples}
    return [
        name
        for name, run in runs.items()
        if any(run is p and best._within(p) for p in families.values())
    ]


def clusters(best: _Best, runs: dict[str, Posterior]) -> str:
    """Return the join graph with the largest clusters, a converged one if there is one."""
    return next(name for name, run in runs.items() if run is best.messages["ijgp"])


def conditioned(best: _Best, runs: dict[str, Posterior]) -> str:
    """Return join-graph propagation given assignments, or without if that was not run."""
    given = best.messages.get(_CONDITIONED)
    return clusters(best, runs) if given is None else _name_of(given, runs)


_CHOSEN = "the rule"

_CERTAIN = ("they are exact", "the bounds certify that their error is no larger")
"""Reasons of marginals of `auto` that no other estimate is compared with."""

_SINGLE = "`wmb`, tightest bound"
"""The best single algorithm of all."""

_DIGITS = 1e-4
"""Errors are compared to four digits."""

_SMALL = 1e-3
"""Mean errors below this are of no consequence, whatever their ratio."""

CHOICES: dict[str, Choice] = {
    _CHOSEN: lambda best, runs: _name_of(best.choice().posterior, runs),
    "nearest to the others": most_central,
    "tightest upper bound": lambda best, _: best.upper_by,
    _SINGLE: lambda best, _: best.largest[0] if best.largest else best.upper_by,
    "`lbp`": lambda *_: "lbp",
    "`ijgp`, largest clusters": clusters,
    "`conditioned ijgp`": conditioned,
}


def _name_of(posterior: Posterior, runs: dict[str, Posterior]) -> str:
    return next(name for name, run in runs.items() if run is posterior)


class Error(NamedTuple):
    """Errors of some marginals.

    Attributes:
        squared: root mean square over states.
        mean: mean absolute error over states.
    """

    squared: float
    mean: float


class Errors(NamedTuple):
    """Errors of marginals on a graph.

    Attributes:
        choices: of the marginals that each choice takes; only of `auto`'s if no rule was needed.
        smallest: of the best single algorithm by each measure.
        smallest_run: of the best run, also given each assignment of some variables.
        stated: root mean square error that `auto` states.
        case: the case of the rule; empty if none was needed.
        decided: what decided on the marginals.
    """

    choices: dict[str, Error]
    smallest: Error
    smallest_run: Error
    stated: float
    case: str
    decided: str


def runs_of(graph: FactorGraph, seed: int) -> tuple[_Best, dict[str, Posterior]]:
    """Return the results of the portfolio."""
    cost = Exact().predict(graph)
    best = _Best(upper=coarse_bound(graph, "upper"), upper_by="largest entries")
    runs: dict[str, Posterior] = {}
    for name, backend, settings in portfolio(cost.log2_largest_table, cost.induced_width):
        try:
            runs[name] = infer(graph, backend, seed=seed, **settings)
        except InferenceError:
            continue
    for name, posterior in runs.items():
        best.take(name, posterior)
    table = 2 ** max(5, int(cost.log2_largest_table / 2))
    name, clamping = f"clamping(table_limit={table})", Clamping(table, seed, best.mode(graph), 32)
    runs[name] = clamping.solve_until(graph, Stop(60.0))
    best.take(name, runs[name])
    passed = best.messages.get("ijgp")
    # It takes long, and matters only where nothing is exact or certified.
    if passed is not None and not best.closed:
        joined = JoinGraphPropagation(i_bound=passed.stats["i_bound"], **_DAMPED, seed=seed)
        for name, _, run in conditioned_runs(joined, passed.marginals, best):
            with suppress(InferenceError):
                runs[name] = run(graph, Stop())
                best.take(name, runs[name])
    return best, runs


def errors_of(graph: FactorGraph, seed: int) -> Errors:
    """Return the errors on a graph."""
    absorbed = graph.absorb_evidence()
    best, runs = runs_of(absorbed, seed)
    choice = best.choice()
    truth = infer(absorbed, "exact").marginals.flat
    errors = {}
    for name, run in runs.items():
        off = run.marginals.flat - truth
        errors[name] = Error(float(np.sqrt(np.mean(off**2))), float(np.abs(off).mean()))
    single = [error for name, error in errors.items() if not name.startswith(_CONDITIONED)]
    smallest, smallest_run = (
        Error(*(min(each) for each in zip(*of_runs, strict=True)))
        for of_runs in (single, errors.values())
    )
    choices = {
        name: errors[choose(best, runs)]
        for name, choose in CHOICES.items()
        if choice.case or name == _CHOSEN
    }
    decided = "a sampler measures errors"
    if choice.case:
        decided = "the rule decides"
    elif choice.reason in _CERTAIN:
        decided = "exact, or certified by bounds"
    return Errors(choices, smallest, smallest_run, choice.error or 0.0, choice.case, decided)


def marginals(seeds: int = 16, first: int = 0) -> Iterator[Row]:
    """Errors of the marginals that `auto` chooses, on seen and fresh graphs and by what decides.

    The choices were derived from and changed by graphs of seeds below 38. Graphs of later seeds are
    fresh.
    Every seed makes 30 graphs: ten kinds by three log ranges. On most of them no rule is needed: an
    algorithm is exact, bounds certify the marginals, or a sampler is sure of its error.
    """
    halves: dict[str, list[Errors]] = defaultdict(list)
    for seed in range(first, first + seeds):
        half = "fresh" if seed >= _SEEN else "seen"
        for made in KINDS:
            for log_range in LOG_RANGES:
                try:
                    errors = errors_of(made(seed, log_range), seed)
                except ZeroPartitionError:
                    continue
                halves[half].append(errors)
    for half, of_graphs in halves.items():
        ruled = [errors for errors in of_graphs if errors.case]
        for name in CHOICES:
            yield _row(half, name, ruled, name)
        yield _row(half, "the best of each graph", ruled, None)
        for case in ("agreeing", "alone"):
            of_case = [errors for errors in ruled if errors.case == case]
            yield _row(half, f"the rule, case {case!r}", of_case, _CHOSEN)
        for decided in sorted({errors.decided for errors in of_graphs}):
            of_kind = [errors for errors in of_graphs if errors.decided == decided]
            yield _row(half, f"`auto`, {decided}", of_kind, _CHOSEN)
        yield _row(half, "`auto`, also without the rule", of_graphs, _CHOSEN)


def _row(half: str, shown: str, graphs: list[Errors], name: str | None) -> Row:
    """Return the errors of a choice; of the best of each graph if `name` is None."""
    chosen = [errors.smallest if name is None else errors.choices[name] for errors in graphs]
    squared, mean = np.array(chosen).T
    least_squared, least = np.array([errors.smallest for errors in graphs]).T
    stated = np.array([errors.stated for errors in graphs])
    least_run = np.array([errors.smallest_run.mean for errors in graphs])
    single = np.array([errors.choices.get(_SINGLE, errors.smallest).mean for errors in graphs])
    return {
        "graphs": f"{half}: {len(graphs)}",
        "marginals of": shown,
        "root mean square error": float(np.sqrt(np.mean(squared**2))),
        "largest": float(squared.max()),
        "mean |Δp|": float(mean.mean()),
        "mean |Δp| at most 1.1 times the best": float(np.mean(mean <= 1.1 * least + _DIGITS)),
        "or below .001": float(np.mean((mean <= 1.1 * least + _DIGITS) | (mean <= _SMALL))),
        "at most 1.1 times the best run": float(np.mean(mean <= 1.1 * least_run + _DIGITS)),
        "at most 1.1 times `wmb`": float(np.mean(mean <= 1.1 * single + _DIGITS))
        if all(errors.case for errors in graphs)
        else None,
        "error at most .01 above 1.1 times the best": float(
            np.mean(squared <= 1.1 * least_squared + 0.01)
        ),
        "stated error, root mean square": float(np.sqrt(np.mean(stated**2)))
        if name == _CHOSEN
        else None,
        "error at most twice the stated one": float(np.mean(squared <= 2.0 * stated + _DIGITS))
        if name == _CHOSEN
        else None,
    }
