"""The path from equal potentials to those of a graph, and particles that follow it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from factormodels.arrays import frozen
from factormodels.factor_graph import FactorGraph
from inference.exact.backend import Exact
from inference.kernels.forests import spanning_forest
from inference.kernels.interaction import factors_by_variable
from inference.possible_states import arrays_of, hard_factors, random_state, state_starts
from inference.posterior import Posterior
from inference.sampling.chains import state_type
from inference.sampling.gibbs import blocks_of
from inference.sampling.kernels.annealing import (
    ParticleArrays,
    TemperedGraph,
    anneal,
    move_particles,
)
from inference.sampling.kernels.blocks import Blocks, root_blocks
from inference.sampling.kernels.chain import BlockedGraph
from inference.sampling.kernels.tempering import ChainDraws, run_chain
from inference.stop import Stop

_LOOK_SECONDS = 0.1
"""Seconds between checks of the clock by particles."""


@dataclass(frozen=True, eq=False)
class AnnealingPath:
    """Path from equal potentials, at inverse temperature 0, to those of a graph, at 1.

    Zeros of factors that form a forest apply from the start; the cost of others grows gradually.

    Attributes:
        graph: the graph, as `possible_states` leaves it.
        forest: the same variables with the factors of the forest alone, 0 or 1.
        log_base: its log Z.
        fixed: float64 (n_entries,), -inf for a zero of the forest, else 0.
        slopes: float64 (n_entries,), multiplied by the inverse temperature: the log tables, with
            the smallest logarithm of a table in place of its zeros.
        zeros: float64 (n_entries,), 1 for a zero of a factor outside the forest, else 0.
        blocks: the forests of variables that are drawn in turn.
        by_variable: the factors of every variable.
    """

    graph: FactorGraph
    forest: FactorGraph
    log_base: float
    fixed: NDArray[np.float64]
    slopes: NDArray[np.float64]
    zeros: NDArray[np.float64]
    blocks: Blocks
    by_variable: tuple[NDArray[np.int64], NDArray[np.int64]]

    @cached_property
    def tempered(self) -> TemperedGraph:
        """Return the arrays of this path in the form of the kernels."""
        *structure, log_values = arrays_of(self.graph)
        return TemperedGraph(
            BlockedGraph._make([*structure, *self.by_variable, self.blocks]),
            log_values,
            self.fixed,
            self.slopes,
            self.zeros,
        )


def annealing_path(graph: FactorGraph, seed: np.random.SeedSequence) -> AnnealingPath | Posterior:
    """Return the path to a graph reduced by `possible_states`, or its posterior if it is a forest.

    Strong factors stay out of the forest, since draws from them would reach only one of many modes.
    """
    starts = graph.table_starts
    finite = np.isfinite(graph.log_values)
    hard = hard_factors(graph)
    order = np.argsort(~hard, kind="stable")
    kept = spanning_forest(graph.n_variables, graph.scope_starts, graph.scope_variables, order)
    if kept.all():
        return Exact().solve(graph)
    kept &= hard
    inside = np.repeat(kept, np.diff(starts))
    smallest = np.minimum.reduceat(np.where(finite, graph.log_values, np.inf), starts[:-1])
    arities = np.diff(graph.scope_starts)
    forest = replace(
        graph,
        scope_starts=np.concatenate([[0], np.cumsum(arities[kept])]),
        scope_variables=graph.scope_variables[np.repeat(kept, arities)],
        table_starts=np.concatenate([[0], np.cumsum(np.diff(starts)[kept])]),
        log_values=np.where(finite, 0.0, -np.inf)[inside],
    )
    blocks, _, by_variable = blocks_of(graph, seed, grown=False)
    return AnnealingPath(
        graph=graph,
        forest=forest,
        log_base=Exact().solve(forest).log_z or 0.0,
        fixed=frozen(np.where(inside & ~finite, -np.inf, 0.0), np.float64),
        slopes=np.where(finite, graph.log_values, np.repeat(smallest, np.diff(starts))),
        zeros=(~finite & ~inside).astype(np.float64),
        blocks=blocks,
        by_variable=by_variable,
    )


class Particles:
    """Weighted particles at a common inverse temperature; initially, draws from the start of the
    path.

    Attributes:
        states: int64 (n_particles, n_variables).
        energies: float64 (n_particles, 2), sums of `slopes` and `zeros` of the path.
    """

    def __init__(self, path: AnnealingPath, particles: int, entropy: Sequence[int]) -> None:
        for_draws, for_moves = np.random.SeedSequence(entropy).spawn(2)
        self._path = path
        self._log_weights = np.zeros(particles)
        self._log_z = np.zeros(1)
        self.states = forest_draws(path.forest, particles, for_draws)
        self.energies = np.zeros((particles, 2))
        self._arrays = ParticleArrays(
            self.states, random_state(for_moves), self.energies, self._log_weights, self._log_z
        )
        self._move(path.fixed, 0, np.zeros(0), Stop().flag)

    @property
    def alive(self) -> bool:
        """True if a particle has a positive weight."""
        return bool(self._log_weights.max() > -np.inf)

    def shares(self) -> NDArray[np.float64]:
        """Weights of the particles, which sum to 1 or are all 0."""
        if not self.alive:
            return np.zeros(len(self._log_weights))
        weights = np.exp(self._log_weights - self._log_weights.max())
        result: NDArray[np.float64] = weights / weights.sum()
        return result

    def log_z(self) -> float:
        """Return the estimate of log Z at the current inverse temperature minus log Z at 0."""
        if not self.alive:
            return -math.inf
        top = self._log_weights.max()
        return float(self._log_z[0] + top + math.log(np.exp(self._log_weights - top).mean()))

    def advance(self, steps: NDArray[np.float64], resample: float, sweeps: int, stop: Stop) -> bool:
        """Move the particles through inverse temperatures, beginning with the current one.

        Args:
            steps: float64, the inverse temperatures.
            resample: share of effective particles below which they are resampled by weight.
            sweeps: number of sweeps over all blocks at each.
            stop: the time, and the flag that ends a step; no step begins that would take longer.

        Returns:
            True if the last inverse temperature was reached in time or no particle is left;
            otherwise the particles are unusable.
        """
        path = self._path
        at, count, pace = 0, 1, 0.0
        while at < len(steps) - 1 and self.alive:
            began = time.monotonic()
            if stop.remaining <= pace * count:
                return False
            reached = steps[at : at + count + 1]
            anneal(path.tempered, self._arrays, reached, resample, sweeps, stop.flag)
            if stop.flag[0]:
                return False
            at += count
            # Between checks of the clock there are as many steps as fit in a tenth of a second.
            pace = (time.monotonic() - began) / count
            count = max(1, min(2 * count, int(_LOOK_SECONDS / max(pace, 1e-6))))
        return True

    def average(
        self, draws: int, stop: Stop, kept: list[NDArray[np.int64]] | None = None
    ) -> NDArray[np.float64] | None:
        """Return weighted sums of conditional probabilities at inverse temperature 1, flat.

        Args:
            draws: sweeps over all blocks.
            stop: the time, and the flag that ends a sweep; no sweep but the first begins that would
                take longer.
            kept: a list to which the states after every sweep are added; None: they are not stored.

        Returns:
            The sums over the sweeps that ended in time; None if there is none.
        """
        sums = np.zeros(state_starts(self._path.graph)[-1])
        for sweep in range(draws if self.alive else 0):
            began = time.monotonic()
            before = sums.copy()
            self._move(self._path.graph.log_values, 1, sums, stop.flag)
            if stop.flag[0]:
                return before if sweep else None
            if kept is not None:
                kept.append(self.states.copy())
            if stop.remaining <= time.monotonic() - began:
                break
        return sums

    def _move(
        self,
        log_values: NDArray[np.float64],
        sweeps: int,
        sums: NDArray[np.float64],
        stop: NDArray[np.int64],
    ) -> None:
        move_particles(
            self._path.tempered, log_values, self._arrays, sweeps, self.shares(), sums, stop
        )


def forest_draws(
    forest: FactorGraph, count: int, seed: np.random.SeedSequence
) -> NDArray[np.int64]:
    """Return independent draws from a forest, (count, n_variables)."""
    by_variable = factors_by_variable(
        forest.n_variables, forest.scope_starts, forest.scope_variables
    )
    whole = np.ones((1, forest.n_variables), dtype=np.bool_)
    blocks = root_blocks(*arrays_of(forest)[:3], *by_variable, whole)
    drawn = np.empty((count, forest.n_variables), dtype=state_type(forest))
    *structure, log_values = arrays_of(forest)
    run_chain(
        BlockedGraph._make([*structure, *by_variable, blocks]),
        log_values,
        np.ones(1),
        np.zeros((1, forest.n_variables), dtype=np.int64),
        random_state(seed),
        0,
        ChainDraws(drawn, np.zeros((1, state_starts(forest)[-1])), np.zeros(0)),
    )
    return drawn.astype(np.int64)
