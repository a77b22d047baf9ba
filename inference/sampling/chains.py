"""Results of Markov chains: marginals with standard errors, convergence, samples for export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError, MissingDependencyError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from factormodels.nouns import counted
from inference.possible_states import Support, state_starts
from inference.posterior import LogZKind, Posterior, Status
from inference.sampling.diagnostics import effective_sample_size, split_chains, split_r_hat
from inference.sampling.judge import Witness, judge_marginals, too_few, why

if TYPE_CHECKING:
    from xarray import DataTree

R_HAT_LIMIT = 1.01
"""Chains disagree if split R-hat is above this value (Vehtari et al. 2021, section 4)."""

LARGEST_SEED = 2**63 - 1
MOST_CHAINS = 10_000
FEWEST_DRAWS = 4
MOST_DRAWS = 100_000_000
"""Limits of the settings of backends with chains; R-hat needs four draws."""

BATCHES = 25
"""Number of parts of a chain, whose means give the standard error of the overall mean."""

_VARIABLES_AT_ONCE = 256

_LARGEST_IN_A_BYTE = 256


def to_arviz(graph: FactorGraph, states: NDArray[Any]) -> DataTree:
    """Convert samples for ArviZ: group `posterior`, array `state` (chain, draw, variable).

    Args:
        graph: the factor graph, whose names are the coordinates of the dimension `variable`.
        states: (chains, draws, n_variables), as `sample_chains` of a backend returns them.

    Raises:
        InputError: if the samples do not fit this graph.
        MissingDependencyError: if arviz-base is not installed.
    """
    if states.ndim != 3 or states.shape[2] != graph.n_variables:
        raise InputError(
            f"samples of shape {states.shape} do not fit this graph; give (chains, draws, "
            f"{graph.n_variables}), as sample_chains returns them"
        )
    try:
        from arviz_base import from_dict
    except ImportError as error:
        raise MissingDependencyError(
            "samples for ArviZ need arviz-base; run: pip install 'factorfacts[notebooks]'"
        ) from error
    tree: DataTree = from_dict(
        {"posterior": {"state": states}},
        coords={"variable": list(graph.names)},
        dims={"state": ["variable"]},
    )
    return tree


def state_type(graph: FactorGraph) -> type[np.uint8] | type[np.int32]:
    """Return the smallest type of array for the states of every variable."""
    largest = int(graph.cardinalities.max(initial=1))
    return np.uint8 if largest <= _LARGEST_IN_A_BYTE else np.int32


def with_observed(graph: FactorGraph, support: Support, states: NDArray[Any]) -> NDArray[Any]:
    """Return assignments of a graph from assignments of its support without evidence.

    Args:
        graph: the graph, with its evidence.
        support: result of `possible_states` for the graph without its evidence.
        states: (..., variables of the support).
    """
    result = support.expand_states(states.astype(state_type(graph)))
    observed = graph.evidence != UNOBSERVED
    result[..., observed] = graph.evidence[observed]
    return result


def batch_sums(graph: FactorGraph, states: NDArray[Any], batches: int) -> NDArray[np.float64]:
    """Return the count of each state in each batch of draws, (chains, batches, n_states)."""
    chains, draws, _ = states.shape
    batch = np.arange(draws) * batches // draws
    starts = state_starts(graph)
    sums = np.zeros((chains, batches, starts[-1]))
    for variable in range(graph.n_variables):
        for state in range(graph.cardinalities[variable]):
            hits = states[:, :, variable] == state
            for chain in range(chains):
                sums[chain, :, starts[variable] + state] = np.bincount(
                    batch, hits[chain], minlength=batches
                )
    return sums


def standard_errors(
    graph: FactorGraph, sums: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return marginals and their standard errors, flat over states, by batch means.

    Args:
        graph: the factor graph that the chains sampled.
        sums: (chains, batches, n_states), sums of the probabilities of each state over a batch,
            in any unit that is the same for the states of a variable.

    Source: Flegal & Jones 2010, "Batch means and spectral variance estimators in MCMC".
    """
    if not graph.n_variables:
        return np.zeros(0), np.zeros(0)
    starts = state_starts(graph)[:-1]
    totals = np.add.reduceat(sums, starts, axis=2)
    means = (sums / np.repeat(totals, graph.cardinalities, axis=2)).reshape(-1, sums.shape[2])
    pooled = sums.sum(axis=(0, 1))
    marginals = pooled / np.repeat(np.add.reduceat(pooled, starts), graph.cardinalities)
    if len(means) < 2:
        return marginals, np.full(len(marginals), np.inf)
    return marginals, means.std(axis=0, ddof=1) / np.sqrt(len(means))


def convergence(graph: FactorGraph, states: NDArray[Any]) -> dict[str, Any]:
    """Return the largest R-hat and the smallest effective sample size over all states.

    States that occur in every draw or in none are uninformative and left out; see
    `constant_variables`. A graph without an informative state has R-hat 1 and as many effective
    draws as there are draws.

    Args:
        graph: the factor graph that the chains sampled.
        states: (chains, draws, n_variables).
    """
    chains, draws, _ = states.shape
    r_hat, least = 1.0, float(chains * draws)
    silent = 0
    for first in range(0, graph.n_variables, _VARIABLES_AT_ONCE):
        part = states[:, :, first : first + _VARIABLES_AT_ONCE]
        counts = graph.cardinalities[first : first + _VARIABLES_AT_ONCE]
        for state in range(int(counts.max())):
            # Of two states, one determines the other.
            wanted = counts > state if state else counts > 2
            series = (part[:, :, wanted] == state).astype(np.float64)
            series = series[:, :, np.ptp(series, axis=(0, 1)) > 0.0]
            silent += int(wanted.sum()) - series.shape[2]
            if series.shape[2]:
                r_hat = max(r_hat, float(split_r_hat(series).max()))
                sizes = effective_sample_size(split_chains(series))
                least = min(least, float(sizes.min()))
    return {
        "r_hat_max": r_hat,
        "effective_sample_size_min": least,
        "constant_states": silent,
        "constant_variables": len(constant_variables(states)),
    }


def constant_variables(states: NDArray[Any]) -> NDArray[np.int64]:
    """Return the variables that have the same state in every draw of every chain, int64."""
    return np.flatnonzero((states == states[:1, :1]).all(axis=(0, 1)))


def posterior_of_chains(
    support: Support,
    states: NDArray[Any],
    sums: NDArray[np.float64],
    min_effective: float,
    connected: bool,
    stats: Mapping[str, Any],
    witness: Witness | str,
    *,
    independent: bool = False,
) -> Posterior:
    """Return the posterior from chains that sampled the support of a graph.

    The status is converged if the largest split R-hat is below 1.01, the smallest effective sample
    size is at least `min_effective`, the moves of the chain are known to connect all states, no
    variable kept one state in all draws (such a chain may merely have stayed where it began), and
    the witness agrees. `stats["standard_errors"]` holds the standard errors of the marginals by
    variable: 0 for a certain variable, infinite for one that never moved.

    Args:
        support: result of `possible_states` for the graph.
        states: (chains, draws, variables of the support).
        sums: as for `standard_errors`.
        min_effective: the required effective sample size of every state.
        connected: whether the chain is known to reach every possible state from every other.
        stats: further results to report.
        witness: the witness that the marginals are compared with, or the reason why there is none.
        independent: whether draws are known to be independent, so that a variable with one state in
            all draws is no sign of a chain that does not move.
    """
    marginals, errors = standard_errors(support.graph, sums)
    diagnostics = convergence(support.graph, states)
    effective = diagnostics["effective_sample_size_min"]
    if not independent:
        # A state in no draw may have a probability up to one over the effective number of draws.
        errors = np.where((marginals > 0.0) & (marginals < 1.0), errors, 1.0 / effective)
    if diagnostics["constant_variables"] and not independent:
        still = np.zeros(support.graph.n_variables, dtype=bool)
        still[constant_variables(states)] = True
        errors = np.where(np.repeat(still, support.graph.cardinalities), np.inf, errors)
    doubt = ""
    if not connected:
        doubt = "zeros tie variables together, and nothing shows that a chain reaches every state"
    elif diagnostics["constant_variables"] and not independent:
        doubt = (
            f"{counted(diagnostics['constant_variables'], 'variable')} had one state in all draws"
        )
    elif not diagnostics["r_hat_max"] < R_HAT_LIMIT:
        doubt = (
            f"the chains disagree: R-hat is {diagnostics['r_hat_max']:.4g}, not below {R_HAT_LIMIT}"
        )
    elif not effective >= min_effective:
        doubt = too_few("draws", effective, min_effective)
    judged: dict[str, float] = {}
    if isinstance(witness, str):
        doubt = doubt or witness
    else:
        verdict = judge_marginals(support.graph, marginals, errors, witness)
        errors, doubt = verdict.errors, doubt or verdict.doubt
        judged = witness.stats()
    return Posterior(
        marginals=support.marginals(marginals),
        log_z=None,
        log_z_kind=LogZKind.NONE,
        status=Status.NOT_CONVERGED if doubt else Status.CONVERGED,
        stats={
            **stats,
            **diagnostics,
            "connected": connected,
            **judged,
            "standard_errors": support.by_name(errors),
            **why(doubt),
        },
    )
