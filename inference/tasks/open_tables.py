"""Bounds on marginals of a graph in which some tables are open: each is one of several.

A marginal is a ratio of linear functions of the weights of one pair's tables, so that its extremes
are at single tables. With few open tables, every choice is computed. Given the states of the
variables that they join, the tables have no influence; therefore one exact inference for each joint
state of these variables, without summing over them, suffices for all choices. If that takes too
long, walks toward each variable bound its marginal for any tables (`inference.tasks.open_walks`),
and draws estimate the result of every choice by reweighting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.arrays import Floats
from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import InferenceError, ZeroPartitionError
from inference.batch import batch_results
from inference.exact.backend import Exact
from inference.posterior import Posterior, Status
from inference.tasks.open_walks import Walks

if TYPE_CHECKING:
    from inference.sampling.annealing import AnnealedImportance
    from inference.sampling.estimates import WeightedDraws


_MOST_CHOICES = 80_000
"""Maximum number of choices of a table for every open pair: ten pairs of three distinct tables have
59,049, seven pairs of five tables 78,125."""

_MOST_NUMBERS = 4_000_000
"""Maximum number of posterior entries of the choices that are processed at a time."""

_MOST_STATES = 64
"""Maximum number of joint states of the open pairs' variables; each takes an inference."""

_MOST_SECONDS = 2.0
"""Maximum predicted seconds of these inferences."""

_SEARCH_SECONDS = 0.5
"""Maximum seconds of the preceding search for an elimination order."""

_WIDE = 0.05
"""Width of bounds by walks above which draws are used."""

_ERRORS = 4.0
"""Number of standard errors on either side of an estimate in bounds from draws."""

_MOST_DRAWN = 12
"""Maximum number of populations of draws; the first is without open tables."""

_FIRST_DRAWN = 3
"""Number of populations after which sampling stops if some choices would remain at this pace."""

_LEAST_DRAWN = (-6.0, -12.0)
"""Lower limits of log entries, relative to a table's largest, when draws are made. No state is
forbidden, since the draws must also cover other choices; the second limit is for cases in which the
first leaves few effective draws."""


def open_marginals(
    graph: FactorGraph,
    tables: Mapping[tuple[int, int], Floats],
    otherwise: AnnealedImportance | Callable[[], AnnealedImportance] | None = None,
) -> Floats:
    """Return bounds on P(x = 1) of every variable, for any choice of the tables of open pairs.

    The bounds hold for each choice of a table per pair, and for each weighted mean of two of its
    tables, such as those of a relation at intermediate probabilities. They are attained, by one
    choice each, if at most 80,000 choices of tables over at most six variables are predicted to
    take two seconds by exact inference, and in a forest without a path longer than twelve.
    Otherwise they may be wider, since they allow for any influence from beyond a walk's end or from
    its closing a cycle.

    If they would be wider and draws are allowed, up to 80,000 choices are estimated from draws. The
    bounds are then the extremes of the estimates, each with four standard errors: they hold unless
    an estimate deviates by more than that. Tables of a pair that differ by a constant count as one.

    Args:
        graph: two states per variable, tables over at most two variables.
        tables: log tables of each open pair of variables, (k, 2, 2), indexed [table, state of the
            first, state of the second]; they are added to those of the graph.
        otherwise: settings of the draws, or a function that makes them; None: no draws are made,
            and bounds are certain.

    Returns:
        float64 (n_variables, 2), lower and upper; NaN for variables that no open table affects.

    Raises:
        InputError: for more states or larger tables.
    """
    if (graph.cardinalities != 2).any() or (np.diff(graph.scope_starts) > 2).any():
        raise InputError(
            "bounds under open tables are for variables with two states and tables over two of "
            "them at most; give such a graph"
        )
    tables = {pair: _distinct(choices) for pair, choices in tables.items()}
    walks = Walks.of(graph, tables)
    touched = np.isin(
        walks.components, walks.components[[variable for pair in tables for variable in pair]]
    )
    bounds = np.full((graph.n_variables, 2), np.nan)
    if not touched.any():
        return bounds
    if (attained := _attained(graph, tables)) is not None:
        bounds[touched] = attained[touched]
        return bounds
    bounds[touched] = walks.bounds()[touched]
    wide = bool((np.diff(bounds[touched]) > _WIDE).any())
    if wide and otherwise is not None:
        settings = otherwise() if callable(otherwise) else otherwise
        estimated = _estimated(graph, tables, settings)
        if estimated is not None:
            # Limit the estimates to the certain bounds.
            sure = bounds[touched]
            bounds[touched] = np.clip(estimated[touched], sure[:, :1], sure[:, 1:])
    return bounds


def _attained(graph: FactorGraph, tables: Mapping[tuple[int, int], Floats]) -> Floats | None:
    """Return the minimum and maximum P(x = 1) over all choices, (n_variables, 2).

    Return None if there are too many choices, or if a choice leaves no possible assignment.
    """
    known = {int(v): int(graph.evidence[v]) for v in np.flatnonzero(graph.evidence != UNOBSERVED)}
    free = sorted({variable for pair in tables for variable in pair} - known.keys())
    n_states = 2 ** len(free)
    if prod(map(len, tables.values())) > _MOST_CHOICES or n_states > _MOST_STATES:
        return None
    states = [
        known | dict(zip(free, each, strict=True)) for each in product((0, 1), repeat=len(free))
    ]
    exact = Exact(seconds_limit=_MOST_SECONDS / n_states, search_seconds=_SEARCH_SECONDS)
    log_z, p = np.full(n_states, -np.inf), np.zeros((n_states, graph.n_variables))
    clamped = [graph.with_evidence(each) for each in states]
    for number, result in enumerate(batch_results(clamped, exact)):
        if isinstance(result, Posterior):
            log_z[number], p[number] = result.log_z, result.marginals.of_state(1)
        elif not isinstance(result, ZeroPartitionError):
            return None
    log_weights = log_z[None]
    for (first, second), choices in tables.items():
        added = np.stack([choices[:, each[first], each[second]] for each in states], axis=1)
        log_weights = (log_weights[:, None] + added).reshape(-1, n_states)
    largest = log_weights.max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        return None
    extremes = _Extremes(graph.n_variables)
    for rows in np.array_split(log_weights - largest, _blocks(len(log_weights), p.shape[1])):
        weights = np.exp(rows)
        posteriors = weights @ p / weights.sum(axis=1, keepdims=True)
        extremes.add(posteriors, posteriors)
    return extremes.bounds


def _estimated(
    graph: FactorGraph, tables: Mapping[tuple[int, int], Floats], settings: AnnealedImportance
) -> Floats | None:
    """Return the minimum and maximum P(x = 1) over all choices by draws, including their errors.

    The weight of a draw under a choice is the ratio of the choice's tables to the tables of its
    proposal, initially none. If this leaves few effective draws, as for a table that forbids what
    the rest of the graph implies, further draws are made with tables like the choice's. Return None
    if there are too many choices, or draws do not suffice.
    """
    counts = tuple(map(len, tables.values()))
    n_choices = prod(counts)
    if n_choices > _MOST_CHOICES:
        return None
    left = np.stack(np.unravel_index(np.arange(n_choices), counts), axis=1)
    extremes = _Extremes(graph.n_variables)
    plans: list[Mapping[tuple[int, int], Floats]] = [{}]
    n_drawn = 0
    try:
        while len(left):
            pace = (n_choices - len(left)) / max(n_drawn, 1)
            if n_drawn >= _FIRST_DRAWN and len(left) > pace * (_MOST_DRAWN - n_drawn):
                return None
            # Draw for the first remaining choice, which also covers others.
            first = tuple(left[0])
            for plan in plans:
                if n_drawn == _MOST_DRAWN:
                    return None
                n_drawn += 1
                left = _add_weighed(_drawn(graph, plan, settings), tables, left, settings, extremes)
                if not len(left) or tuple(left[0]) != first:
                    break
            else:
                if n_drawn > 1:
                    return None
            if len(left):
                chosen = [
                    (pair, choices[number])
                    for (pair, choices), number in zip(tables.items(), left[0], strict=True)
                ]
                plans = [
                    {pair: np.maximum(table - table.max(), floor) for pair, table in chosen}
                    for floor in _LEAST_DRAWN
                ]
    except InferenceError:
        return None
    return extremes.bounds.clip(0.0, 1.0)


class _Extremes:
    """Minimum and maximum of the results of choices."""

    def __init__(self, n: int) -> None:
        self.bounds = np.stack([np.full(n, np.inf), np.full(n, -np.inf)], axis=1)

    def add(self, lower: Floats, upper: Floats) -> None:
        """Include the ends of some choices, (c, n) each."""
        ends = (lower.min(axis=0, initial=np.inf), upper.max(axis=0, initial=-np.inf))
        self.bounds[:, 0] = np.minimum(self.bounds[:, 0], ends[0])
        self.bounds[:, 1] = np.maximum(self.bounds[:, 1], ends[1])


def _blocks(n: int, width: int) -> int:
    """Return the number of parts into which to split n rows of `width` numbers."""
    return -(-n * width // _MOST_NUMBERS)


def _distinct(choices: Floats) -> Floats:
    """Return the tables of a pair, (k, 2, 2), without duplicates up to a constant."""
    shifted = choices - choices.max(axis=(1, 2), keepdims=True)
    _, first = np.unique(np.round(shifted, 12), axis=0, return_index=True)
    return choices[np.sort(first)]


class _Drawn(NamedTuple):
    """Draws, as integers and as floats, and the log tables of open pairs that made them."""

    draws: WeightedDraws
    states: Floats
    tables: Mapping[tuple[int, int], Floats]


def _drawn(
    graph: FactorGraph, tables: Mapping[tuple[int, int], Floats], settings: AnnealedImportance
) -> _Drawn:
    """Return draws of the graph with a table for some open pairs.

    Raises:
        InferenceError: if groups of draws do not agree, or `settings` refuses the graph.
    """
    observed = np.flatnonzero(graph.evidence != UNOBSERVED).tolist()
    opened = FactorGraph.from_factors(
        graph.cardinalities, [*graph.factors(), *tables.items()], log=True
    ).with_evidence({variable: int(graph.evidence[variable]) for variable in observed})
    draws = settings.weighted_draws(opened)
    if draws.status is not Status.CONVERGED:
        raise InferenceError("groups of draws do not agree")
    return _Drawn(draws, draws.states.astype(np.float64), tables)


def _add_weighed(
    drawn: _Drawn,
    tables: Mapping[tuple[int, int], Floats],
    left: NDArray[np.int64],
    settings: AnnealedImportance,
    extremes: _Extremes,
) -> NDArray[np.int64]:
    """Add the results of choices by draws; return the choices with too few effective draws.

    Args:
        drawn: the draws.
        tables: log tables of each open pair.
        left: (c, n_pairs), numbers of the tables of each choice.
        settings: minimum number of effective draws.
        extremes: receives the ends.
    """
    draws = drawn.draws
    n_groups, n_draws, n_variables = draws.states.shape
    # Log ratio of each pair's table to the one that made the draws, for each draw, (k, g, d).
    more = [
        (choices - drawn.tables.get((first, second), 0.0))[
            :, draws.states[..., first], draws.states[..., second]
        ]
        for (first, second), choices in tables.items()
    ]
    lacking = []
    for rows in np.array_split(left, _blocks(len(left), n_groups * (n_draws + n_variables))):
        change = np.zeros((len(rows), n_groups, n_draws))
        for column, log_ratio in enumerate(more):
            change += log_ratio[rows[:, column]]
        largest = change.max(axis=(1, 2), keepdims=True)
        factors = np.exp(change - np.where(np.isfinite(largest), largest, 0.0))
        weights = draws.weights * factors
        squares = (weights * factors).sum(axis=(1, 2))
        sizes = weights.sum(axis=(1, 2)) ** 2
        effective = draws.effective * np.divide(
            sizes, squares, out=np.zeros_like(sizes), where=squares > 0.0
        )
        enough = effective >= settings.min_effective
        lacking.append(rows[~enough])
        extremes.add(*_ends(drawn.states, weights[enough], effective[enough]))
    return np.concatenate(lacking)


def _ends(states: Floats, weights: Floats, effective: Floats) -> tuple[Floats, Floats]:
    """Return the mean state of every variable under each choice, minus and plus its error, (c, n)
    each.

    Args:
        states: (g, d, n), states of the draws.
        weights: (c, g, d), weights of the draws under each choice.
        effective: (c,), effective number of draws.
    """
    from inference.sampling.estimates import jackknife

    # The contribution of each group to every variable's sum, and its weight.
    sums = weights.swapaxes(0, 1) @ states
    parts = np.concatenate([sums, weights.sum(axis=2).T[..., None]], axis=2)
    p, errors = jackknife(
        lambda total: total[..., :-1] / total[..., -1:], parts, effective[:, None]
    )
    return p - _ERRORS * errors, p + _ERRORS * errors
