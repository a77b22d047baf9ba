"""NumPyro's Gibbs sampler for discrete variables, which samples one variable at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import numpy as np
import numpyro
from jax import numpy as jnp
from numpy.typing import NDArray
from numpyro import distributions
from numpyro.infer import DiscreteGibbs

from factormodels.factor_graph import FactorGraph
from inference.backend import TooLargeError
from inference.possible_states import (
    Support,
    arrays_of,
    assignment,
    hard_factors,
    possible_states,
)
from inference.posterior import Posterior
from inference.sampling.chains import (
    BATCHES,
    FEWEST_DRAWS,
    LARGEST_SEED,
    MOST_CHAINS,
    MOST_DRAWS,
    batch_sums,
    posterior_of_chains,
    with_observed,
)
from inference.sampling.judged import JudgedSampler
from inference.sampling.kernels.chain import slot_strides
from inference.settings import setting


@dataclass(frozen=True)
class NumPyroGibbs(JudgedSampler):
    """NumPyro's DiscreteGibbs, which samples each variable from its conditional distribution.

    NumPyro's DiscreteHMCGibbs is this sampler followed by a step of HMC, which has no effect
    without continuous variables. NumPyro evaluates all factors for every state of every variable,
    so that a sweep over n variables costs n times the necessary work: use this backend as an
    independent reference for graphs of some hundred variables, and 'gibbs' otherwise. Marginals are
    shares of the draws.

    Variables move one at a time. If factors have zeros over several free variables, nothing shows
    that the chain can reach every possible state, and the run ends as not converged. As for
    'gibbs', draws from mini-buckets validate the run.

    Attributes:
        seed: seed of starts and draws, a whole number not below 0.
        chains: number of chains, which run in parallel.
        burn_in: sweeps over all variables before the first draw.
        draws: draws of each chain, one after every sweep.
        min_effective: minimum effective sample size of every state.
        max_evaluations: maximum factor evaluations of a run, 1e9 of which take about 10 s.
        judge_i_bound: i-bound of the mini-buckets that validate the run.
        judge_draws: number of their draws.
    """

    name: ClassVar[str] = "numpyro"

    seed: int = setting(0, least=0, most=LARGEST_SEED)
    chains: int = setting(4, least=1, most=MOST_CHAINS)
    burn_in: int = setting(500, least=0, most=MOST_DRAWS)
    draws: int = setting(1000, least=FEWEST_DRAWS, most=MOST_DRAWS)
    min_effective: float = setting(400.0, least=0.0)
    max_evaluations: float = setting(1e10, above=0.0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return marginals of a graph without evidence, as shares of the draws.

        Raises:
            TooLargeError: if the run would cost more than `max_evaluations`.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if no assignment of positive potential was found to start from.
        """
        support = possible_states(graph)
        states = self._run(support)
        sums = batch_sums(support.graph, states, min(BATCHES, self.draws))
        arities = np.diff(support.graph.scope_starts)
        connected = not (hard_factors(support.graph) & (arities > 1)).any()
        stats = {
            "chains": self.chains,
            "burn_in": self.burn_in,
            "draws": self.draws,
            "numpyro": numpyro.__version__,
            "seed": self.seed,
        }
        witness = self.witness(support, self.seed)
        return posterior_of_chains(
            support, states, sums, self.min_effective, connected, stats, witness
        )

    def sample_chains(self, graph: FactorGraph) -> NDArray[Any]:
        """Return draws, (chains, draws, n_variables), with states as whole numbers.

        `inference.sampling.chains.to_arviz` converts them for ArviZ.

        Raises:
            TooLargeError, ZeroPartitionError, InferenceError: as in `infer`.
        """
        support = possible_states(graph.absorb_evidence())
        return with_observed(graph, support, self._run(support))

    def _run(self, support: Support) -> NDArray[Any]:
        graph = support.graph
        self._check_cost(graph)
        if not graph.n_variables:
            return np.zeros((self.chains, self.draws, 0), dtype=np.int64)
        for_keys, *seeds = np.random.SeedSequence(self.seed).spawn(self.chains + 1)
        hard = bool(hard_factors(graph).any())
        starts = np.stack(
            [
                assignment(graph, seed)
                if hard
                else np.random.default_rng(seed).integers(graph.cardinalities)
                for seed in seeds
            ]
        )
        counts = np.unique(graph.cardinalities)
        groups = [np.flatnonzero(graph.cardinalities == count) for count in counts]
        key = jax.random.key(int(for_keys.generate_state(1)[0]))
        # In single precision, sums of many logarithms lose the difference between two states.
        with jax.enable_x64(True):
            samples = _sample(
                jax.random.split(key, self.chains),
                [starts[:, group] for group in groups],
                (groups, *_look_up(graph)),
                counts=tuple(counts.tolist()),
                burn_in=self.burn_in,
                draws=self.draws,
            )
        states = np.empty((self.chains, self.draws, graph.n_variables), dtype=np.int64)
        for group, drawn in zip(groups, samples, strict=True):
            states[:, :, group] = np.asarray(drawn)
        return states

    def _check_cost(self, graph: FactorGraph) -> None:
        # The conditional distribution of a variable takes one evaluation per other state.
        moves = float((graph.cardinalities - 1).sum())
        cost = moves * graph.n_factors * self.chains * (self.burn_in + self.draws)
        if cost > self.max_evaluations:
            raise TooLargeError(
                f"NumPyro would look up {cost:.1e} factors, and 'numpyro' is allowed "
                f"{self.max_evaluations:.1e}: a sweep over {graph.n_variables} variables evaluates "
                f"all {graph.n_factors} factors for each; use backend 'gibbs', ask for fewer "
                "draws, or raise max_evaluations"
            )


def _look_up(graph: FactorGraph) -> tuple[NDArray[Any], ...]:
    """Return index arrays for each factor's entry at an assignment, and the log tables.

    The entry of factor f is ``starts[f] + sum(strides[f] * states[variables[f]])``, where scopes
    are padded to the maximum arity with strides of 0.
    """
    arities = np.diff(graph.scope_starts)
    slot = np.arange(len(graph.scope_variables)) - np.repeat(graph.scope_starts[:-1], arities)
    factor = np.repeat(np.arange(graph.n_factors), arities)
    variables = np.zeros((graph.n_factors, int(arities.max(initial=1))), dtype=np.int64)
    variables[factor, slot] = graph.scope_variables
    strides = np.zeros_like(variables)
    strides[factor, slot] = slot_strides(*arrays_of(graph)[:3])
    return graph.table_starts[:-1], variables, strides, graph.log_values


def _model(
    counts: tuple[int, ...],
    groups: list[jax.Array],
    starts: jax.Array,
    variables: jax.Array,
    strides: jax.Array,
    log_values: jax.Array,
) -> None:
    """NumPyro model of a factor graph: uniform variables, and all factors as one term.

    Args:
        counts: the distinct numbers of states, each of which is one site.
        groups: the variables with each number of states.
        starts, variables, strides, log_values: the result of `_look_up`.
    """
    states = jnp.zeros(sum(len(group) for group in groups), dtype=int)
    for count, group in zip(counts, groups, strict=True):
        uniform = distributions.Categorical(logits=jnp.zeros(count)).expand([len(group)])
        states = states.at[group].set(numpyro.sample(_site(count), uniform))
    entries = starts + (strides * states[variables]).sum(axis=1)
    numpyro.factor("log_potential", log_values[entries].sum())


def _site(count: int) -> str:
    return f"variables_of_{count}_states"


@partial(jax.jit, static_argnames=("counts", "burn_in", "draws"))
def _sample(
    keys: jax.Array,
    starts: list[jax.Array],
    tables: tuple[Any, ...],
    *,
    counts: tuple[int, ...],
    burn_in: int,
    draws: int,
) -> list[jax.Array]:
    """Return draws of all chains, (chains, draws, variables) for each number of states."""
    kernel = DiscreteGibbs(_model)
    sites = [_site(count) for count in counts]
    arguments = (counts, *tables)

    def run_one(key: jax.Array, start: list[jax.Array]) -> list[jax.Array]:
        def sweep(state: Any, _: None) -> tuple[Any, list[jax.Array]]:
            state = kernel.sample(state, arguments, {})
            return state, [state.z[site] for site in sites]

        begun = kernel.init(key, burn_in, dict(zip(sites, start, strict=True)), arguments, {})
        # A single loop for burn-in and draws, since two would be compiled separately.
        _, drawn = jax.lax.scan(sweep, begun, length=burn_in + draws)
        return [part[burn_in:] for part in drawn]

    return jax.vmap(run_one)(keys, starts)
