"""Exact answers beyond marginals: joints, maxima, samples, counts, removals, gradients, bounds.

Find the most probable assignment:

    from inference.tasks import map_assignment
    map_assignment(graph).states

Each task respects the evidence of the graph. `search_map` uses toulbar2 if elimination does not
fit, and bounds the distance of its answer from the best; `open_marginals` returns bounds. The other
tasks are exact, take the settings of `exact` as their last argument, and refuse graphs that exceed
its memory limit.

Compiled code is loaded at the first access of a task.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference.tasks.autodiff import differentiable_log_partition
    from inference.tasks.claim_coherence import Coherence, coherence
    from inference.tasks.counts import CountDistribution, count_distribution
    from inference.tasks.gradients import (
        ValueAndGradient,
        log_partition,
        log_partition_hessian,
        log_probability,
    )
    from inference.tasks.joints import EstimatedJoint, estimated_joint, joint
    from inference.tasks.maximum import (
        Assignment,
        SearchedAssignment,
        map_assignment,
        marginal_map,
        search_map,
    )
    from inference.tasks.open_tables import open_marginals
    from inference.tasks.pairs import pairwise_joints
    from inference.tasks.removals import Effects, without_variables
    from inference.tasks.samples import sample

__all__ = [
    "Assignment",
    "Coherence",
    "CountDistribution",
    "Effects",
    "EstimatedJoint",
    "SearchedAssignment",
    "ValueAndGradient",
    "coherence",
    "count_distribution",
    "differentiable_log_partition",
    "estimated_joint",
    "joint",
    "log_partition",
    "log_partition_hessian",
    "log_probability",
    "map_assignment",
    "marginal_map",
    "open_marginals",
    "pairwise_joints",
    "sample",
    "search_map",
    "without_variables",
]

_MODULES = {
    "Assignment": "maximum",
    "Coherence": "claim_coherence",
    "CountDistribution": "counts",
    "Effects": "removals",
    "EstimatedJoint": "joints",
    "SearchedAssignment": "maximum",
    "ValueAndGradient": "gradients",
    "coherence": "claim_coherence",
    "count_distribution": "counts",
    "differentiable_log_partition": "autodiff",
    "estimated_joint": "joints",
    "joint": "joints",
    "log_partition": "gradients",
    "log_partition_hessian": "gradients",
    "log_probability": "gradients",
    "map_assignment": "maximum",
    "marginal_map": "maximum",
    "open_marginals": "open_tables",
    "pairwise_joints": "pairs",
    "sample": "samples",
    "search_map": "maximum",
    "without_variables": "removals",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
