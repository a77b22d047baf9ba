"""Exact answers to more than marginals: joints, maxima, samples, counts, removals, gradients.

from inference.tasks import map_assignment
map_assignment(graph).states

Each task respects the evidence of the graph, takes the settings of `exact` as its last argument,
and refuses what does not fit the memory that they allow. Compiled code is loaded when a task is
first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference.tasks.autodiff import differentiable_log_partition
    from inference.tasks.counts import CountDistribution, count_distribution
    from inference.tasks.gradients import ValueAndGradient, log_partition, log_probability
    from inference.tasks.joints import joint
    from inference.tasks.maximum import Assignment, map_assignment, marginal_map
    from inference.tasks.pairs import pairwise_joints
    from inference.tasks.removals import Effects, without_factors, without_variables
    from inference.tasks.samples import sample

__all__ = [
    "Assignment",
    "CountDistribution",
    "Effects",
    "ValueAndGradient",
    "count_distribution",
    "differentiable_log_partition",
    "joint",
    "log_partition",
    "log_probability",
    "map_assignment",
    "marginal_map",
    "pairwise_joints",
    "sample",
    "without_factors",
    "without_variables",
]

_MODULES = {
    "Assignment": "maximum",
    "CountDistribution": "counts",
    "Effects": "removals",
    "ValueAndGradient": "gradients",
    "count_distribution": "counts",
    "differentiable_log_partition": "autodiff",
    "joint": "joints",
    "log_partition": "gradients",
    "log_probability": "gradients",
    "map_assignment": "maximum",
    "marginal_map": "maximum",
    "pairwise_joints": "pairs",
    "sample": "samples",
    "without_factors": "removals",
    "without_variables": "removals",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
