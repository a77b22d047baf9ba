"""The choice of an algorithm by what a graph would cost: exact, or the tightest bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from factormodels.factor_graph import FactorGraph
from inference.anytime import improve
from inference.backend import Backend, PredictedCost
from inference.evidence import checked_graph, with_observed
from inference.exact.backend import Exact
from inference.exact.prediction import Prediction
from inference.memory import memory_size
from inference.posterior import Posterior
from inference.stop import Stop, check_seconds

_SEARCH_SHARE = 0.05
"""Share of the time that the search for an elimination order may take."""

_EXACT_SHARE = 0.4
"""Share of the time that elimination may be predicted to take: predictions are rough."""


@dataclass(frozen=True)
class Auto(Backend):
    """Exact elimination if it fits time and memory, otherwise the tightest bounds within them.

    Bounds come from whatever gives the best: `wmb` with larger and larger tables, `trw` from
    above, `cavi` and clamping from below, in rounds that go on while there is time. log Z is the
    best upper bound; `stats` hold `upper`, `lower` and their `gap`, which algorithms gave them
    (`upper_by`, `lower_by`), and why elimination was not used (`reason`). What is exact is the same
    on every run; bounds depend on how far the time reaches.

    Marginals are estimates, of `lbp`, `ijgp`, `ais` or what gave a bound. If `ais` converges, they
    are those of the least mean square error that it estimates (`marginals_error` is its root, and
    `estimate` its log Z); otherwise those of message passing on the largest clusters, if it
    converged and its log Z lies between the bounds; otherwise those of the upper bound. `stats` say
    whose they are (`marginals_by`) and why (`marginals_reason`).

    Attributes:
        seconds: limit of wall time, held to within a tenth and half a second.
        memory_limit: bytes that the tables may take; None: three quarters of what is available.
        seed: seed of everything random.
    """

    name: ClassVar[str] = "auto"

    seconds: float = 10.0
    memory_limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_seconds(self.name, self.seconds)
        self._exact()

    def solve(self, graph: FactorGraph) -> Posterior:
        """Posterior of a graph without evidence, exact or bounded.

        An interrupt returns the best bounds so far, with status interrupted.

        Raises:
            TooLargeError: if a single factor is too large for a table.
            ZeroPartitionError: if no assignment has positive potential.
        """
        *_, last = self.solve_each(graph)
        return last

    def solve_each(self, graph: FactorGraph) -> Iterator[Posterior]:
        """Yield what `solve` would return if it ended now, whenever that is better than before."""
        stop = Stop(self.seconds)
        exact = self._exact()
        allowed = exact.allowance()
        prediction = exact.predict(graph)
        fits = prediction.bytes <= allowed.bytes
        if fits and prediction.seconds <= _EXACT_SHARE * self.seconds:
            posterior = exact.solve(graph)
            stats = {
                **posterior.stats,
                "upper": posterior.log_z,
                "lower": posterior.log_z,
                "gap": 0.0,
                "upper_by": "exact",
                "lower_by": "exact",
                "marginals_by": "exact",
                "marginals_reason": "they are exact",
                "marginals_error": 0.0,
                "reason": f"exact {prediction.method} takes about {prediction.seconds:.2g} s",
            }
            yield replace(posterior, stats=stats)
            return
        lack = (
            f"about {prediction.seconds:.2g} s of {self.seconds:g} s"
            if fits
            else f"{memory_size(prediction.bytes)}, but {allowed}"
        )
        reason = f"exact elimination, of induced width {prediction.induced_width}, needs {lack}"
        yield from improve(graph, stop, allowed.bytes, self.seed, reason)

    def infer_each(self, graph: FactorGraph) -> Iterator[Posterior]:
        """Yield what `infer` would return if it ended now, whenever that is better than before."""
        start = time.perf_counter()
        absorbed = checked_graph(graph).absorb_evidence()
        for posterior in self.solve_each(absorbed):
            marginals = posterior.marginals
            if absorbed is not graph:
                marginals = with_observed(graph, marginals)
            stats = {**posterior.stats, "seconds": time.perf_counter() - start}
            yield replace(posterior, marginals=marginals, stats=stats, backend=self.name)

    def predict(self, graph: FactorGraph) -> PredictedCost:
        """What exact elimination would cost; where that does not fit, the limits themselves."""
        exact = self._exact()
        prediction: Prediction = exact.predict(graph)
        fits = prediction.bytes <= exact.allowed_bytes()
        if fits and prediction.seconds <= _EXACT_SHARE * self.seconds:
            return prediction
        return PredictedCost(self.seconds, self.memory_limit)

    def _exact(self) -> Exact:
        return Exact(
            seed=self.seed,
            memory_limit=self.memory_limit,
            search_seconds=min(2.0, _SEARCH_SHARE * self.seconds),
        )
