"""What an algorithm returns, whoever wrote it, and the call that is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference import Posterior


@dataclass(frozen=True)
class BenchAnswer:
    """What an algorithm found out about a graph.

    Attributes:
        marginals: the probability vectors one after another, in order of the variables; None if
            there are none.
        log_z: natural logarithm of the partition function, None if there is none.
        log_z_kind: what it is: exact, upper, lower, bethe, elbo or none.
        status: how the run ended, as in `inference.Status`.
        lower, upper: bounds on log Z, where the algorithm gives both.
        facts: what else is worth a line: induced width, iterations and the like.
    """

    marginals: NDArray[np.float64] | None
    log_z: float | None = None
    log_z_kind: str = "none"
    status: str = "converged"
    lower: float | None = None
    upper: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """An algorithm with its model of a graph, ready to be timed.

    Attributes:
        run: what is timed: computes all marginals and returns them in the library's own form.
        read: makes an answer of what `run` returned; not timed.
    """

    run: Callable[[], Any]
    read: Callable[[Any], BenchAnswer]


_FACTS = ("induced_width", "iterations", "arithmetic", "chosen", "largest_table")


def answer_of(posterior: Posterior) -> BenchAnswer:
    """A posterior as an answer."""
    stats = posterior.stats
    return BenchAnswer(
        marginals=posterior.marginals.flat,
        log_z=posterior.log_z,
        log_z_kind=str(posterior.log_z_kind),
        status=str(posterior.status),
        lower=stats.get("lower"),
        upper=stats.get("upper"),
        facts={name: stats[name] for name in _FACTS if name in stats},
    )
