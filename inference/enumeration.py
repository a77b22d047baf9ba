"""Inference by enumeration of all assignments, the reference for the other backends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, TooLargeError, zero_partition
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.settings import setting


@dataclass(frozen=True)
class Enumeration(Backend):
    """Sum over all assignments in a single array.

    Attributes:
        max_states: maximum number of assignments; 2**22 take about 100 MB.
    """

    name: ClassVar[str] = "enumeration"

    max_states: int = setting(2**22, least=1)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the exact posterior of a small graph without evidence.

        Raises:
            TooLargeError: if there are more assignments than `max_states`.
            ZeroPartitionError: if no assignment has positive potential.
        """
        log2_states = float(np.log2(graph.cardinalities).sum())
        if log2_states > math.log2(self.max_states) + 1e-9:
            raise TooLargeError(
                f"this graph has 2^{log2_states:.1f} assignments, and 'enumeration' supports at "
                f"most {self.max_states}; use backend 'exact'"
            )
        # An array has at most 64 axes, so single-state variables get none.
        free = np.flatnonzero(graph.cardinalities > 1)
        axis = {int(variable): position for position, variable in enumerate(free)}
        shape = graph.cardinalities[free]
        joint = np.zeros(shape)
        for scope, table in graph.factors():
            kept = [variable for variable in scope if variable in axis]
            order = np.argsort([axis[variable] for variable in kept])
            expanded = table.reshape(graph.cardinalities[kept]).transpose(order)
            view = np.ones(len(free), dtype=np.int64)
            view[[axis[variable] for variable in kept]] = graph.cardinalities[kept]
            joint = joint + expanded.reshape(view)
        largest = joint.max()
        if largest == -np.inf:
            raise zero_partition()
        weights = np.exp(joint - largest)
        total = weights.sum()
        marginals = []
        for variable in range(graph.n_variables):
            if variable in axis:
                others = tuple(a for a in range(len(free)) if a != axis[variable])
                marginals.append(weights.sum(axis=others) / total)
            else:
                marginals.append(np.ones(1))
        values = np.concatenate(marginals) if marginals else np.zeros(0)
        return Posterior(
            marginals=Marginals.of(graph, values),
            log_z=float(largest + math.log(total)),
            log_z_kind=LogZKind.EXACT,
            status=Status.EXACT,
            stats={"states": joint.size},
        )
