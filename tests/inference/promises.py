"""Promises of every backend by graph, in one table that `test_agreement` checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from factormodels import FactorGraph
from inference.messages.lbp import Schedule
from inference.mini_buckets.wmb import Partition, Side
from tests.inference.graphs import (
    attractive,
    forest,
    frustrated,
    independent,
    moderate,
    odd_graph,
    tangled_graph,
)

Kind = Literal["exact", "upper", "lower", "estimate"]


@dataclass(frozen=True)
class Promise:
    """A row: what a backend promises of the graphs `graphs(seed)` for `seeds`.

    Attributes:
        backend: its name.
        graphs: the class of graphs.
        kind: "exact" (marginals and log Z are right), "upper" or "lower" (log Z lies on that side
            of what it is), "estimate" (marginals are near).
        seeds: which graphs of the class.
        tolerance: largest error of a marginal and of log Z relative to max(1, |log Z|); of a
            bound, how far rounding may carry it to the wrong side.
        reason: why so much and no less.
        settings: of the backend.
    """

    backend: str
    graphs: Callable[[int], FactorGraph]
    kind: Kind
    seeds: range
    tolerance: float
    reason: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        settings = ",".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.backend}({settings})-{self.kind}-{self.graphs.__name__}"


ROUNDING = "both sum the same terms in doubles: some hundred roundings of 1e-16"
FIXED_POINT = "a forest's messages are final after two sweeps; what is left is rounding"
DAMPED = "stopped where log messages change by 1e-9, which adds up along a path"
DOUBLES = "pyAgrum sums the same terms in doubles; tables that span more than that it refuses"
ONE_BLOCK = "a forest is one block, whose conditionals are exact and the same at every draw"
ASCENT = "independent variables are settled in one sweep"
GRADIENT = "the ascent stops where no derivative exceeds 1e-4"
WHERE_EQUAL = "where bound and truth coincide, both are rounded some hundred times"
FORESTS = "every forest is summed apart: some thousand roundings of 1e-16"
WEAK = "weak couplings of one sign leave belief propagation some hundredths off"
DRAWS = "a share of 8,000 draws of little correlation has a standard error of about 0.006"
MANY_DRAWS = "a share of 16,384 weighted draws, of which a tenth counts, errs by about 0.01"
PARTICLES = "a share of some hundred effective particles, each drawn eight times: about 0.01"
FEW_DRAWS = "a share of 2,000 draws of little correlation has a standard error of about 0.012"

HASTY = {"restarts": 1, "max_iterations": 3}
"""The bound holds wherever an ascent is stopped, so that it need not be waited for."""

HASTY_FORESTS = {"max_iterations": 20, "weight_updates": 2}
"""The bound holds wherever messages are stopped, with whatever probabilities of the factors."""

SPLIT_FROM_BELOW = {"i_bound": 1, "table_limit": 8, "bound": "lower", "clampings": 5}
"""Buckets are split by entries; where zeros leave no bound, some variables are clamped."""

NO_TIME = {"seconds": 1e-9}
"""Too short for a pass: a bound holds in no time at all."""

BOUNDED = {"memory_limit": 200, "seconds": 0.15}
"""Too little memory to eliminate or clamp graphs of three states, and time for a few rounds."""

SIDES = "the bounds of several algorithms, each rounded some hundred times"

PROMISES = (
    Promise("enumeration", odd_graph, "exact", range(1000), 1e-10, ROUNDING),
    Promise("exact", odd_graph, "exact", range(1000), 1e-10, ROUNDING),
    Promise("exact", forest, "exact", range(200), 1e-10, ROUNDING),
    Promise("exact", frustrated, "exact", range(40), 1e-10, ROUNDING),
    Promise("auto", odd_graph, "exact", range(100), 1e-10, ROUNDING),
    Promise("wmb", tangled_graph, "exact", range(100), 1e-10, ROUNDING, {"i_bound": 12}),
    Promise("ijgp", tangled_graph, "exact", range(100), 1e-10, ROUNDING, {"i_bound": 12}),
    Promise("ijgp", odd_graph, "exact", range(300), 1e-10, ROUNDING, {"i_bound": 12}),
    Promise("ijgp", forest, "exact", range(200), 1e-9, ROUNDING),
    Promise("wmb_is", tangled_graph, "exact", range(50), 1e-10, ROUNDING, {"i_bound": 12}),
    Promise("wmb_is", forest, "exact", range(100), 1e-9, ROUNDING),
    Promise("pgmpy", moderate, "exact", range(40), 1e-10, DOUBLES),
    Promise("pgmpy", forest, "exact", range(60), 1e-10, DOUBLES),
    Promise("pyagrum", moderate, "exact", range(40), 1e-10, DOUBLES),
    Promise("pyagrum", forest, "exact", range(100), 1e-10, DOUBLES),
    Promise("pyagrum", frustrated, "exact", range(40), 1e-10, DOUBLES),
    Promise("exact_jax", odd_graph, "exact", range(6), 1e-10, ROUNDING),
    Promise("lbp", forest, "exact", range(300), 1e-9, FIXED_POINT),
    Promise("lbp", forest, "exact", range(300), 1e-9, FIXED_POINT, {"schedule": "flooding"}),
    Promise("lbp", forest, "exact", range(300), 1e-9, FIXED_POINT, {"schedule": "residual"}),
    Promise("lbp", forest, "exact", range(300), 1e-9, FIXED_POINT, {"schedule": "random"}),
    Promise("lbp_jax", forest, "exact", range(6), 1e-9, FIXED_POINT),
    Promise("pgmax", forest, "exact", range(6), 1e-8, DAMPED),
    Promise("trw", forest, "exact", range(300), 1e-9, FIXED_POINT),
    Promise("gibbs", forest, "exact", range(200), 1e-9, ONE_BLOCK),
    Promise("ais", forest, "exact", range(200), 1e-9, ROUNDING),
    Promise("cavi", independent, "exact", range(100), 1e-9, ASCENT),
    Promise("mean_field", independent, "exact", range(4), 1e-3, GRADIENT),
    Promise("wmb", odd_graph, "upper", range(1000), 1e-11, WHERE_EQUAL, {"i_bound": 1}),
    Promise("wmb", frustrated, "upper", range(200), 1e-11, WHERE_EQUAL, {"i_bound": 2}),
    Promise("auto", frustrated, "upper", range(1, 9, 2), 1e-9, SIDES, BOUNDED),
    Promise("wmb", tangled_graph, "lower", range(200), 1e-11, WHERE_EQUAL, SPLIT_FROM_BELOW),
    Promise("trw", odd_graph, "upper", range(1000), 1e-11, FORESTS, HASTY_FORESTS),
    Promise("trw", tangled_graph, "upper", range(400), 1e-11, FORESTS, HASTY_FORESTS),
    Promise("trw", frustrated, "upper", range(200), 1e-11, FORESTS, HASTY_FORESTS),
    *(
        Promise("trw", graphs, "upper", range(60), 1e-11, FORESTS, settings)
        for graphs in (odd_graph, frustrated)
        for settings in (
            {"max_iterations": 1},
            {"max_iterations": 1, "forests": 1},
            *({"schedule": name, "max_iterations": 3} for name in get_args(Schedule)),
            {"damping": 0.9, "max_iterations": 2},
        )
    ),
    Promise("trw", frustrated, "upper", range(10), 1e-11, FORESTS, NO_TIME),
    *(
        Promise("wmb", graphs, side, range(120), 1e-11, WHERE_EQUAL, {"bound": side} | settings)
        for graphs in (odd_graph, tangled_graph)
        for side in get_args(Side)
        for settings in (
            {"i_bound": i_bound, "iterations": 6, "partition": partition}
            for i_bound in (1, 2)
            for partition in get_args(Partition)
        )
    ),
    Promise("wmb", frustrated, "upper", range(10), 1e-11, WHERE_EQUAL, NO_TIME),
    Promise(
        "wmb", frustrated, "lower", range(10), 1e-11, WHERE_EQUAL, {"bound": "lower"} | NO_TIME
    ),
    Promise("cavi", frustrated, "lower", range(10), 1e-12, WHERE_EQUAL, NO_TIME),
    Promise(
        "wmb", odd_graph, "lower", range(1000), 1e-11, WHERE_EQUAL, {"i_bound": 1, "bound": "lower"}
    ),
    Promise(
        "wmb", frustrated, "lower", range(200), 1e-11, WHERE_EQUAL, {"i_bound": 2, "bound": "lower"}
    ),
    Promise("cavi", odd_graph, "lower", range(1000), 1e-12, WHERE_EQUAL),
    Promise("cavi", frustrated, "lower", range(200), 1e-12, WHERE_EQUAL),
    Promise("mean_field", odd_graph, "lower", range(30), 1e-12, WHERE_EQUAL, HASTY),
    Promise("mean_field", frustrated, "lower", range(20), 1e-12, WHERE_EQUAL, HASTY),
    Promise("lbp", attractive, "estimate", range(200), 0.05, WEAK),
    Promise("lbp_jax", attractive, "estimate", range(20), 0.05, WEAK),
    Promise("pgmax", attractive, "estimate", range(3), 0.05, WEAK),
    Promise("gibbs", moderate, "estimate", range(20), 0.04, DRAWS, {"draws": 2000, "chains": 4}),
    Promise("ijgp", attractive, "estimate", range(100), 0.05, WEAK, {"i_bound": 1}),
    Promise("wmb_is", moderate, "estimate", range(50), 0.04, MANY_DRAWS, {"i_bound": 1}),
    Promise("ais", moderate, "estimate", range(100), 0.06, PARTICLES),
    Promise(
        "numpyro", moderate, "estimate", range(3), 0.08, FEW_DRAWS, {"draws": 500, "chains": 4}
    ),
)
