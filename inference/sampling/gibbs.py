"""Block Gibbs sampling: forests of variables are drawn together, and exact conditionals
averaged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.kernels.interaction import factors_by_variable
from inference.possible_states import (
    Support,
    arrays_of,
    assignment,
    hard_factors,
    hard_groups,
    possible_states,
    random_state,
    state_starts,
)
from inference.posterior import Posterior, Status
from inference.sampling.chains import (
    BATCHES,
    FEWEST_DRAWS,
    LARGEST_SEED,
    MOST_CHAINS,
    MOST_DRAWS,
    posterior_of_chains,
    state_type,
    with_observed,
)
from inference.sampling.judged import JudgedSampler
from inference.sampling.kernels.blocks import Blocks, choose_blocks, root_blocks
from inference.sampling.kernels.chain import BlockedGraph
from inference.sampling.kernels.tempering import ChainDraws, run_chain
from inference.settings import setting
from inference.thread_team import map_in_threads, thread_count

_MOST_TEMPERATURES = 100


@dataclass(frozen=True)
class BlockGibbs(JudgedSampler):
    """Gibbs sampling of blocks of variables that form forests when the others are fixed.

    Every draw of a block is exact given the rest, and marginals are averages of the probabilities
    from which the draws were made, which vary less than the draws (Rao-Blackwell). On a forest, one
    block contains all variables, and the marginals are exact.

    Marginals are compared with those of draws from mini-buckets, which are independent of the
    chains; their standard errors include mass that these draws may have missed
    (`inference.sampling.judge`), and `why_not_converged` gives the reason for any doubt.

    Chains start at random assignments of positive potential. If zeros connect more variables than
    fit in a block, nothing shows that a chain can reach every possible state from its start: the
    run then ends as not converged, whatever the diagnostics show. The same applies if a variable
    has one state in all draws, since the chain may never have moved.

    If modes are far apart, chains stay where they began. With two or more `temperatures`, every
    chain has that number of copies, from the graph itself to a graph with only its zeros, and the
    copies exchange places (parallel tempering); the cost of a draw grows in proportion. `stats`
    then hold the rates of exchanges between neighbors (`swap_rates`, the minimum over chains for
    each pair), the inverse temperatures, and the number of `round_trips` that each chain's copies
    made from one end to the other and back; a chain without a round trip has not converged. If one
    block contains all variables, draws are independent and tempering has no effect.

    Attributes:
        seed: seed of blocks, starts and draws, a whole number not below 0.
        chains: number of chains. They run in threads; the result does not depend on the number of
            threads.
        burn_in: sweeps over all blocks before the first draw.
        draws: draws of each chain, one after every sweep.
        min_effective: minimum effective sample size of every state.
        temperatures: number of temperatures; 1: no tempering. Larger graphs need more; increase the
            number until the smallest swap rate is about 0.2.
        judge_i_bound: i-bound of the mini-buckets that validate the run.
        judge_draws: number of draws from these mini-buckets.

    Source: Hamze & de Freitas 2004, "From fields to trees"; Gelfand & Smith 1990, "Sampling-based
    approaches to calculating marginal densities", for the averages; Syed, Bouchard-Cote,
    Deligiannidis & Doucet 2022, "Non-reversible parallel tempering", for the temperatures.
    """

    name: ClassVar[str] = "gibbs"

    seed: int = setting(0, least=0, most=LARGEST_SEED)
    chains: int = setting(4, least=1, most=MOST_CHAINS)
    burn_in: int = setting(500, least=0, most=MOST_DRAWS)
    draws: int = setting(2000, least=FEWEST_DRAWS, most=MOST_DRAWS)
    min_effective: float = setting(400.0, least=0.0)
    temperatures: int = setting(1, least=1, most=_MOST_TEMPERATURES)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return marginals of a graph without evidence, as averages over all chains.

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
            "temperatures": self.temperatures,
        }
        posterior = posterior_of_chains(
            support,
            run.states,
            run.sums,
            self.min_effective,
            run.connected,
            stats,
            self.witness(support, self.seed),
            independent=len(run.blocks.starts) == 2,
        )
        if run.tempering is None:
            return posterior
        exchanges = {
            **posterior.stats,
            "swap_rates": run.tempering.accepted.min(axis=0),
            "inverse_temperatures": run.tempering.inverse,
            "round_trips": run.tempering.round_trips,
        }
        if run.tempering.round_trips.all():
            return replace(posterior, stats=exchanges)
        # Copies that were never at both ends give no information on other modes.
        exchanges["why_not_converged"] = (
            "no copy of one of the chains went from one end of the temperatures to the other and "
            "back"
        )
        return replace(posterior, stats=exchanges, status=Status.NOT_CONVERGED)

    def sample_chains(self, graph: FactorGraph) -> NDArray[Any]:
        """Return draws, (chains, draws, n_variables), states as whole numbers.

        `inference.sampling.chains.to_arviz` converts them for ArviZ.

        Raises:
            ZeroPartitionError, InferenceError: as `infer`.
        """
        support = possible_states(graph.absorb_evidence())
        return with_observed(graph, support, self._run(support).states)

    def _run(self, support: Support) -> _Run:
        graph = support.graph
        for_blocks, *seeds = np.random.SeedSequence(self.seed).spawn(self.chains + 1)
        blocks, connected, by_variable = blocks_of(graph, for_blocks, grown=True)
        *structure, log_values = arrays_of(graph)
        blocked = BlockedGraph._make([*structure, *by_variable, blocks])
        states = np.empty((self.chains, self.draws, graph.n_variables), dtype=state_type(graph))
        batches = min(BATCHES, self.draws)
        sums = np.zeros((self.chains, batches, state_starts(graph)[-1]))
        hard = bool(hard_factors(graph).any())

        tempering = None
        if self.temperatures > 1 and len(blocks.starts) > 2:
            tempering = _Tempering(
                np.tile(np.linspace(1.0, 0.0, self.temperatures), (self.chains, 1)),
                np.zeros((self.chains, self.temperatures - 1)),
                np.zeros(self.chains, dtype=np.int64),
            )

        def a_start(seed: np.random.SeedSequence) -> NDArray[np.int64]:
            if hard:
                return assignment(graph, seed)
            return np.random.default_rng(seed).integers(graph.cardinalities)

        def run_one(number: int) -> None:
            for_start, for_draws = seeds[number].spawn(2)
            inverse, accepted, starts = np.ones(1), np.zeros(0), [for_start]
            if tempering is not None:
                inverse, accepted = tempering.inverse[number], tempering.accepted[number]
                starts = for_start.spawn(self.temperatures)
            round_trips = run_chain(
                blocked,
                log_values,
                inverse,
                np.array([a_start(seed) for seed in starts]),
                random_state(for_draws),
                self.burn_in,
                ChainDraws(states[number], sums[number], accepted),
            )
            if tempering is not None:
                tempering.round_trips[number] = round_trips

        map_in_threads(run_one, range(self.chains), thread_count())
        return _Run(blocks, states, sums, connected, tempering)


def blocks_of(
    graph: FactorGraph, seed: np.random.SeedSequence, *, grown: bool
) -> tuple[Blocks, bool, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return forests that cover a graph, whether they connect all states, and factors by variable.

    Args:
        graph: a graph reduced by `possible_states`.
        seed: seed of the choice.
        grown: whether each forest is as large as possible; otherwise it contains only variables
            that no earlier forest has.
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
class _Tempering:
    """Exchanges between copies of the chains at different temperatures.

    Attributes:
        inverse: float64 (chains, temperatures), inverse temperatures from 1 to 0.
        accepted: float64 (chains, temperatures - 1), mean probability of an exchange.
        round_trips: int64 (chains,), number of times that a copy returned from 0 to 1.
    """

    inverse: NDArray[np.float64]
    accepted: NDArray[np.float64]
    round_trips: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Run:
    """Result of the chains.

    Attributes:
        blocks: the forests that are sampled in turn.
        states: sampled states, (chains, draws, n_variables).
        sums: float64 (chains, batches, n_states), sums of conditional probabilities.
        connected: whether the moves are known to connect all possible states.
        tempering: exchanges between copies; None without tempering.
    """

    blocks: Blocks
    states: NDArray[Any]
    sums: NDArray[np.float64]
    connected: bool
    tempering: _Tempering | None
