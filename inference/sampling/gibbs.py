"""Block Gibbs sampling: forests of variables drawn at once, averages of exact conditionals."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend
from inference.kernels.interaction import factors_by_variable
from inference.posterior import Posterior
from inference.sampling.chains import (
    BATCHES,
    check_chains,
    posterior_of_chains,
    state_type,
    with_observed,
)
from inference.sampling.kernels.blocks import Blocks, choose_blocks, root_blocks
from inference.sampling.kernels.chain import run_chain
from inference.support import (
    Support,
    arrays_of,
    assignment,
    hard_factors,
    hard_groups,
    possible_states,
    random_state,
    state_starts,
)


@dataclass(frozen=True)
class BlockGibbs(Backend):
    """Gibbs sampling of blocks of variables that form forests when the others are fixed.

    Every draw of a block is exact given the rest, and marginals are averages of the probabilities
    from which the draws were made, which vary less than the draws (Rao-Blackwell). On a forest one
    block holds everything and the marginals are exact.

    Chains start at random assignments of positive potential. Where zeros tie more variables
    together than a block can hold, nothing shows that a chain can reach every possible state from
    its start: the run then ends as not converged, whatever the diagnostics say. So it does where a
    variable has one state in all draws: that may be a chain that never moved.

    Attributes:
        seed: seed of blocks, starts and draws, a whole number not below 0.
        chains: number of chains; they run in threads, and the result does not depend on how many.
        burn_in: sweeps over all blocks before the first draw.
        draws: draws of each chain, one after every sweep.
        min_effective: effective sample size that every state must reach.

    Source: Hamze & de Freitas 2004, "From fields to trees"; Gelfand & Smith 1990, "Sampling-based
    approaches to calculating marginal densities", for the averages.
    """

    name: ClassVar[str] = "gibbs"

    seed: int = 0
    chains: int = 4
    burn_in: int = 500
    draws: int = 2000
    min_effective: float = 400.0

    def __post_init__(self) -> None:
        check_chains(
            self.name, self.seed, self.chains, self.burn_in, self.draws, self.min_effective
        )

    def solve(self, graph: FactorGraph) -> Posterior:
        """Marginals of a graph without evidence, as averages over all chains.

        Raises:
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if no assignment of positive potential was found to start from.
        """
        support = possible_states(graph)
        run = self._run(support)
        stats = {
            "chains": self.chains,
            "burn_in": self.burn_in,
            "draws": self.draws,
            "blocks": len(run.blocks.starts) - 1,
            "seed": self.seed,
        }
        return posterior_of_chains(
            support,
            run.states,
            run.sums,
            self.min_effective,
            run.connected,
            stats,
            independent=len(run.blocks.starts) == 2,
        )

    def sample_chains(self, graph: FactorGraph) -> NDArray[Any]:
        """Draws, (chains, draws, n_variables), states as whole numbers.

        `inference.sampling.chains.to_arviz` hands them to ArviZ.

        Raises:
            ZeroPartitionError, InferenceError: as `infer`.
        """
        support = possible_states(graph.absorb_evidence())
        return with_observed(graph, support, self._run(support).states)

    def _run(self, support: Support) -> _Run:
        graph = support.graph
        for_blocks, *seeds = np.random.SeedSequence(self.seed).spawn(self.chains + 1)
        blocks, connected, by_variable = blocks_of(graph, for_blocks, grown=True)
        states = np.empty((self.chains, self.draws, graph.n_variables), dtype=state_type(graph))
        batches = min(BATCHES, self.draws)
        sums = np.zeros((self.chains, batches, state_starts(graph)[-1]))
        hard = bool(hard_factors(graph).any())

        def run_one(number: int) -> None:
            for_start, for_draws = seeds[number].spawn(2)
            if hard:
                start = assignment(graph, for_start)
            else:
                start = np.random.default_rng(for_start).integers(graph.cardinalities)
            run_chain(
                *arrays_of(graph),
                *by_variable,
                blocks,
                start,
                random_state(for_draws),
                self.burn_in,
                states[number],
                sums[number],
            )

        with ThreadPoolExecutor(min(self.chains, os.cpu_count() or 1)) as pool:
            list(pool.map(run_one, range(self.chains)))
        return _Run(blocks, states, sums, connected)


def blocks_of(
    graph: FactorGraph, seed: np.random.SeedSequence, *, grown: bool
) -> tuple[Blocks, bool, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Forests that cover a graph, whether they connect all states, and factors by variable.

    Args:
        graph: a graph that `possible_states` left.
        seed: seed of the choice.
        grown: whether each forest is as large as it can be, or holds what no other has yet.
    """
    by_variable = factors_by_variable(graph.n_variables, graph.scope_starts, graph.scope_variables)
    groups = hard_groups(graph)
    member, together = choose_blocks(
        graph.scope_starts,
        graph.scope_variables,
        *by_variable,
        np.cumsum([0, *map(len, groups)]),
        np.concatenate([np.zeros(0, dtype=np.int64), *groups]),
        grown,
        random_state(seed),
    )
    blocks: Blocks = root_blocks(*arrays_of(graph)[:3], *by_variable, member)
    return blocks, bool(together.all()), by_variable


@dataclass(frozen=True, eq=False)
class _Run:
    """What the chains left.

    Attributes:
        blocks: the forests that were drawn in turn.
        states: (chains, draws, n_variables).
        sums: float64 (chains, batches, n_states), sums of conditional probabilities.
        connected: whether the moves are known to connect all possible states.
    """

    blocks: Blocks
    states: NDArray[Any]
    sums: NDArray[np.float64]
    connected: bool
