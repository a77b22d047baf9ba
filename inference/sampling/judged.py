"""Samplers whose runs are compared with draws from mini-buckets."""

from __future__ import annotations

from dataclasses import dataclass

from inference.backend import Backend, InferenceError, ZeroPartitionError
from inference.mini_buckets.structure import LARGEST_I_BOUND
from inference.possible_states import Support
from inference.sampling.importance import FEWEST_DRAWS, MiniBucketSampling
from inference.sampling.judge import Witness
from inference.settings import setting
from inference.stop import Stop


@dataclass(frozen=True)
class JudgedSampler(Backend):
    """A sampler whose runs are compared with draws from mini-buckets.

    Attributes:
        judge_i_bound: i-bound of these mini-buckets, narrowed to about half a second.
        judge_draws: number of draws.
    """

    judge_i_bound: int = setting(10, least=1, most=LARGEST_I_BOUND)
    judge_draws: int = setting(4096, least=FEWEST_DRAWS)

    def witness(
        self,
        support: Support,
        seed: int,
        stop: Stop | None = None,
        memory_limit: int | None = None,
        threads: int | None = None,
    ) -> Witness | str:
        """Return a graph's witness from mini-buckets and their draws, or the reason why there is
        none.

        Args:
            support: result of `possible_states` for the graph.
            seed: seed of the draws.
            stop: the time limit; None: there is no limit.
            memory_limit, threads: as for `wmb_is`.

        Raises:
            ZeroPartitionError: if no assignment has positive potential.
        """
        draws = MiniBucketSampling(
            i_bound=self.judge_i_bound,
            samples=self.judge_draws,
            seed=seed,
            memory_limit=memory_limit,
            threads=threads,
        )
        try:
            return draws.witness(support, stop or Stop())
        except ZeroPartitionError:
            raise
        except InferenceError as error:
            return f"nothing was there to judge the run by: {error}"
