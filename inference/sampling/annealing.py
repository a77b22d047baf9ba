"""Annealed importance sampling and sequential Monte Carlo: log Z and marginals with errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import InferenceError
from inference.evidence import checked_graph
from inference.memory import allowance, require
from inference.possible_states import Support, assignment, possible_states, state_starts
from inference.posterior import LogZKind, Posterior, Status
from inference.sampling.estimates import CONFIDENCE, WeightedDraws, log_mean, ratio_errors
from inference.sampling.judge import Witness, judge_log_z, judge_marginals, too_few, why
from inference.sampling.judged import JudgedSampler
from inference.sampling.kernels.annealing import next_inverse_temperature
from inference.sampling.path import AnnealingPath, Particles, annealing_path, forest_draws
from inference.settings import setting
from inference.stop import Stop
from inference.thread_team import map_in_threads, thread_count

_LAST_STEPS = 8
"""Number of steps to the end of a schedule that would otherwise have too many."""

_MOST_STEPS = 100_000

_PILOTS = 8
"""Number of particles that choose the powers if time is limited."""

_PLANS = ((math.inf, 16), (4, 4))
"""Maximum groups and minimum particles of each, in the order in which they are tried for a time."""

_EFFECTIVE = 5.0
"""Effective particles per group from which on the spread of groups measures the error: smaller
groups may agree because all of them miss the same states."""

_JUDGE_SHARE = 0.2
"""Share of the remaining time that draws from mini-buckets may take."""

_SHARE_OF_TIME = 0.8
"""Share of the remaining time for which groups are planned, since their speed varies."""


@dataclass(frozen=True)
class AnnealedImportance(JudgedSampler):
    """Particles carried from equal potentials to those of the graph.

    All tables are raised to a power that grows from 0 to 1 as the particles move by Gibbs sampling
    of blocks; zeros of a forest apply from the start, and the cost of others grows to infinity. A
    first population chooses the powers so that each step keeps a share of its effective number;
    they are then fixed for independent groups of particles, whose estimates of Z are unbiased.
    Their mean is the estimate, and their spread its error. The answer for a forest is exact.

    The run is converged if the groups' estimates of Z agree (an effective number of more than
    half of them), the weights of all particles have an effective number of `min_effective`, and
    draws from mini-buckets, which are independent of the particles, leave no doubt
    (`inference.sampling.judge`); otherwise `why_not_converged` gives the reason. The reported
    standard errors include mass that both may have missed; `log_z_spread` is the error by the
    spread of the groups alone. If groups disagree, or have fewer than five effective particles
    each, their spread is uninformative and no error is reported. If every particle ends in a zero,
    or the time does not suffice for a few of them, log Z is a lower bound, the potential of one
    assignment.

    A time limit changes the number of particles per group but never the powers. A few particles
    choose the powers, and the time of this choice determines how many particles fit.

    Attributes:
        seed: seed of blocks and draws, a whole number not below 0.
        groups: number of independent groups. They run in threads; the result does not depend on
            the number of threads.
        particles: number of particles of each group; an upper limit if `seconds` is set.
        share: share of the effective number of particles that each step keeps.
        resample: share of effective particles below which a group draws them anew by weight
            (sequential Monte Carlo); 0: never (annealed importance sampling).
        sweeps: number of sweeps over all blocks at each step.
        draws: number of final sweeps of each particle, over which marginals are averaged.
        min_effective: minimum effective number of particles of a converged run.
        seconds: limit of wall time, which determines the number of particles per group; further
            groups run while time remains. None: run `groups` groups without a limit. With a limit,
            numbers depend on the clock.
        memory_limit: bytes that particles and tables may take; None: as for `exact`.
        threads: number of groups that run at a time; None: the number of processors.
        judge_i_bound: i-bound of the mini-buckets that validate the run.
        judge_draws: number of draws from these mini-buckets, before the particles move; they take
            at most a fifth of a time limit.

    Source: Neal 2001, "Annealed importance sampling"; Del Moral, Doucet & Jasra 2006, "Sequential
    Monte Carlo samplers"; Zhou, Johansen & Aston 2016 for the steps.
    """

    name: ClassVar[str] = "ais"

    seed: int = setting(0, least=0)
    groups: int = setting(8, least=2)
    particles: int = setting(64, least=2)
    share: float = setting(0.9, above=0.0, below=1.0)
    resample: float = setting(0.5, least=0.0, most=1.0)
    sweeps: int = setting(1, least=1)
    draws: int = setting(8, least=1)
    min_effective: float = setting(100.0, least=0.0)
    seconds: float | None = setting(None, above=0.0)
    memory_limit: int | None = setting(None, above=0)
    threads: int | None = setting(None, least=1)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return estimates for a graph without evidence, with their errors.

        Raises:
            TooLargeError: if particles and tables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if neither a particle nor a search found an assignment of positive
                potential.
        """
        return self.solve_until(graph, Stop(self.seconds))

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """Return the result of `solve` within the remaining time."""
        support = possible_states(graph)
        path = annealing_path(support.graph, np.random.SeedSequence([self.seed, 0]))
        stats: dict[str, Any] = {"seed": self.seed}
        if isinstance(path, Posterior):
            return replace(
                path,
                marginals=support.marginals(path.marginals.flat),
                log_z=support.log_constant + (path.log_z or 0.0),
                stats={
                    **path.stats,
                    **stats,
                    "standard_errors": support.by_name(np.zeros(len(path.marginals.flat))),
                },
            )
        self._require_memory(path.graph)
        part = stop.part(_JUDGE_SHARE * stop.remaining)
        witness = self.witness(support, self.seed, part, self.memory_limit, self.threads)
        schedule = self._schedule(path, stop)
        if schedule is None:
            return self._failed(support, stats)
        groups = self._groups(path, schedule, stop)
        sizes = np.array([group.log_z for group in groups])
        stats |= {
            "inverse_temperatures": len(schedule.steps) - 1,
            "groups": len(groups),
            "particles": schedule.particles,
            "blocks": len(path.blocks.starts) - 1,
        }
        if len(groups) < 2 or not np.isfinite(sizes).any():
            return self._failed(support, stats)
        return self._judged(path, support, groups, witness, stats)

    def _judged(
        self,
        path: AnnealingPath,
        support: Support,
        groups: list[_Group],
        witness: Witness | str,
        stats: dict[str, Any],
    ) -> Posterior:
        """Return the posterior from the groups, checked against the witness."""
        sizes = np.array([group.log_z for group in groups])
        log_z, spread, interval = log_mean(sizes, CONFIDENCE)
        shares, effective, agreeing, status = self._worth(groups)
        sums = np.stack([group.sums for group in groups])
        values, errors = ratio_errors(support.graph, shares, sums, effective)
        offset = support.log_constant + path.log_base
        log_z += offset
        agree = _agree(agreeing, len(groups)) and effective >= _EFFECTIVE * len(groups)
        doubt, error = "", None
        if not agree:
            doubt = (
                f"the groups disagree: their {len(groups)} estimates of Z count for "
                f"{agreeing:.3g}, their particles for {effective:.3g}"
            )
        elif status is not Status.CONVERGED:
            doubt = too_few("particles", effective, self.min_effective)
        if isinstance(witness, str):
            doubt = doubt or witness
        else:
            of_log_z = judge_log_z(log_z, spread, witness)
            of_marginals = judge_marginals(support.graph, values, errors, witness)
            errors, error = of_marginals.errors, of_log_z.error if agree else None
            doubt = doubt or of_log_z.doubt or of_marginals.doubt
            stats |= witness.stats()
        if error is not None:
            low, high = log_z - 2.0 * error, log_z + 2.0 * error
            interval = min(offset + interval[0], low), max(offset + interval[1], high)
        return Posterior(
            marginals=support.marginals(values),
            log_z=log_z,
            log_z_kind=LogZKind.ESTIMATE,
            status=Status.NOT_CONVERGED if doubt else Status.CONVERGED,
            stats={
                **stats,
                "effective_sample_size": effective,
                "effective_groups": agreeing,
                "log_z_standard_error": error,
                "log_z_spread": spread if agree else None,
                "log_z_interval": None if error is None else interval,
                "confidence": CONFIDENCE,
                "standard_errors": support.by_name(errors),
                **why(doubt),
            },
        )

    def weighted_draws(self, graph: FactorGraph) -> WeightedDraws:
        """Return assignments with weights, in groups that are independent samples.

        Every run that ends within `seconds` draws the same.

        Args:
            graph: the factor graph, with or without evidence.

        Raises:
            TooLargeError: if particles, tables and draws would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if no particle ended in such an assignment, or the time did not suffice.
        """
        absorbed = checked_graph(graph).absorb_evidence()
        support = possible_states(absorbed)
        path = annealing_path(support.graph, np.random.SeedSequence([self.seed, 0]))
        each = self.particles * self.draws
        if isinstance(path, Posterior):
            forest = support.graph
            seed = np.random.SeedSequence([self.seed, 2])
            drawn = forest_draws(forest, self.groups * each, seed)
            states = drawn.reshape(self.groups, each, forest.n_variables)
            weights = np.full((self.groups, each), 1.0 / (self.groups * each))
            effective, status = float(self.groups * each), Status.CONVERGED
        else:
            self._require_memory(path.graph, self.groups * each)
            stop = Stop()
            with stop.interrupted_after(self.seconds):
                schedule = self._schedule(path, stop)
                groups = [] if schedule is None else self._groups(path, schedule, stop, keep=True)
            if len(groups) < self.groups:
                raise InferenceError(
                    f"{self.seconds} s do not suffice 'ais' for its draws; give more seconds, or "
                    "ask for fewer particles"
                )
            shares, effective, _, status = self._worth(groups)
            if not shares.any():
                raise InferenceError("no particle of 'ais' ended in a possible state; ask for more")
            states = np.stack([group.states for group in groups])
            group_weights = np.stack([group.weights for group in groups])
            weights = (
                np.tile(group_weights, self.draws) * (shares / shares.sum() / self.draws)[:, None]
            )
        whole = support.expand_states(states)
        observed = graph.evidence != UNOBSERVED
        whole[..., observed] = graph.evidence[observed]
        return WeightedDraws(whole, weights, effective, status)

    def _worth(self, groups: list[_Group]) -> tuple[NDArray[np.float64], float, float, Status]:
        """Return group weights (largest 1), effective numbers of particles and groups, status."""
        sizes = np.array([group.log_z for group in groups])
        if not np.isfinite(sizes).any():
            return np.zeros(len(groups)), 0.0, 0.0, Status.NOT_CONVERGED
        shares = np.exp(sizes - sizes.max())
        weights = np.stack([group.weights for group in groups])
        effective = float(shares.sum() ** 2 / (shares**2 @ (weights**2).sum(axis=1)))
        agreeing = float(shares.sum() ** 2 / (shares**2).sum())
        enough = _agree(agreeing, len(groups)) and effective >= self.min_effective
        status = Status.CONVERGED if enough else Status.NOT_CONVERGED
        return shares, effective, agreeing, status

    def _require_memory(self, graph: FactorGraph, draws: int = 0) -> None:
        threads = min(self.groups, thread_count(self.threads))
        states = float(graph.n_variables * self.particles)
        bytes_ = 8.0 * (
            threads * (2.0 * states + 2.0 * len(graph.log_values))
            + 2.0 * len(graph.log_values)
            + self.groups * state_starts(graph)[-1]
            + 2.0 * draws * graph.n_variables
        )
        limit = allowance(self.memory_limit)
        require(bytes_, limit, "the particles of 'ais'", "ask for fewer particles or groups")

    def _schedule(self, path: AnnealingPath, stop: Stop) -> _Schedule | None:
        """Return inverse temperatures from 0 to 1, chosen by a first population.

        With a time limit, that population is small, and determines how many particles a group can
        have. The result is None if even this population does not finish in half of the time.
        """
        limited = stop.remaining < math.inf
        size = min(self.particles, _PILOTS) if limited else self.particles
        part = stop.part(0.5 * stop.remaining)
        population = Particles(path, size, [self.seed, 1])
        least = part.elapsed
        steps = [0.0]
        with part.within():
            while steps[-1] < 1.0 and population.alive and len(steps) <= _MOST_STEPS:
                following = next_inverse_temperature(
                    steps[-1], population.energies, population.shares(), self.share
                )
                pair = np.array([steps[-1], following])
                if not population.advance(pair, max(self.resample, 0.5), self.sweeps, part):
                    return None
                steps.append(following)
        walked = len(steps) - 1
        if population.alive and steps[-1] < 1.0:
            steps += list(np.linspace(steps[-1], 1.0, _LAST_STEPS + 1)[1:])
        elif steps[-1] < 1.0:
            steps.append(1.0)
        groups, particles = self.groups, self.particles
        if limited:
            seconds = part.elapsed / max(walked, 1) / size
            moves = (len(steps) - 1) * self.sweeps + self.draws
            room = _SHARE_OF_TIME * stop.remaining / max(seconds * moves, 1e-12)
            threads = thread_count(self.threads)
            for most, fewest in _PLANS:
                groups = int(min(self.groups, most))
                particles = int(room / math.ceil(groups / threads))
                if particles >= fewest:
                    break
            else:
                return None
            particles = min(particles, self.particles)
        return _Schedule(np.array(steps), groups, particles, least)

    def _groups(
        self, path: AnnealingPath, schedule: _Schedule, stop: Stop, keep: bool = False
    ) -> list[_Group]:
        """Results of the independent groups that finish in time."""
        steps = schedule.steps

        def run(number: int) -> _Group | None:
            if stop.remaining <= schedule.least_seconds:
                return None
            population = Particles(path, schedule.particles, [self.seed, 2, number])
            if not population.advance(steps, self.resample, self.sweeps, stop):
                return None
            states = np.zeros((0, path.graph.n_variables), dtype=np.int64)
            kept: list[NDArray[np.int64]] | None = [] if keep else None
            sums = population.average(self.draws, stop, kept)
            if sums is None:
                return None
            if kept:
                states = np.concatenate(kept)
            elif keep:
                states = np.tile(population.states, (self.draws, 1))
            return _Group(population.log_z(), population.shares(), sums, states)

        workers = thread_count(self.threads)
        groups: list[_Group] = []
        with stop.within():
            first = 0
            batch = schedule.groups
            while batch:
                results = map_in_threads(run, range(first, first + batch), workers)
                groups += [group for group in results if group is not None]
                first += batch
                late = stop.remaining == math.inf or None in results or stop.over
                batch = 0 if late else workers
        return groups

    def _failed(self, support: Support, stats: dict[str, Any]) -> Posterior:
        """Return a posterior with a certain lower bound, if at most one group has finished."""
        graph = support.graph
        states = assignment(graph, np.random.SeedSequence([self.seed, 3]))
        uniform = np.repeat(1.0 / graph.cardinalities, graph.cardinalities)
        return Posterior(
            marginals=support.marginals(uniform),
            log_z=support.log_constant + graph.log_potential(states),
            log_z_kind=LogZKind.LOWER,
            status=Status.NOT_CONVERGED,
            stats={
                **stats,
                "effective_sample_size": 0.0,
                "standard_errors": support.by_name(np.full(len(uniform), np.inf)),
                "why_not_converged": "fewer than two groups ended in a possible state in the time",
            },
        )


@dataclass(frozen=True, eq=False)
class _Schedule:
    """Annealing schedule of groups, from equal potentials to the potentials of the graph.

    Attributes:
        steps: float64, inverse temperatures from 0 to 1.
        groups: initial number of groups.
        particles: number of particles of each group.
        least_seconds: remaining time that is required to start a group.
    """

    steps: NDArray[np.float64]
    groups: int
    particles: int
    least_seconds: float


def _agree(effective: float, groups: int) -> bool:
    """Return whether groups' estimates of Z agree, by their effective number."""
    return effective >= 0.5 * (groups + 1)


@dataclass(frozen=True, eq=False)
class _Group:
    """Result of a group of particles.

    Attributes:
        log_z: estimate of log Z minus log Z of equal potentials; -inf if no particle is left.
        weights: float64 (n_particles,), final weights, which sum to 1.
        sums: float64 (n_states,), weighted sums of conditional probabilities.
        states: int64 (n_sweeps * n_particles, n_variables), sweep by sweep, if they were stored.
    """

    log_z: float
    weights: NDArray[np.float64]
    sums: NDArray[np.float64]
    states: NDArray[np.int64]
