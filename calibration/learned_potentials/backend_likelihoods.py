"""Engines: log Z and beliefs of one factor graph by an inference backend, at any log tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibration.learned_potentials.pendant_trees import AGREEING, beliefs_without_pendants
from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import Backend, BeliefFunction
from inference.posterior import LogZKind, Posterior, Status


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What a backend says of a graph of binary variables.

    Attributes:
        log_z: natural logarithm of the partition function, or what stands in for it.
        true: float64 (n,), probability that each variable is true.
        entries: beliefs laid out as `graph.log_values`, the derivative of log Z; None where the
            backend has none.
        settled: whether the backend vouches for its answer (exact or converged).
    """

    log_z: float
    true: Floats
    entries: Floats | None
    settled: bool


@dataclass(frozen=True, eq=False)
class Engine:
    """An inference backend as the source of likelihoods of one structure.

    Attributes:
        backend: the backend.
        graph: a graph of binary variables whose first factors are one prior for each variable, in
            order; its own log tables play no part.
    """

    backend: Backend
    graph: FactorGraph

    @cached_property
    def _beliefs(self) -> BeliefFunction | None:
        if self.backend.name in AGREEING:
            return beliefs_without_pendants(self.backend, self.graph)
        return self.backend.prepare_beliefs(self.graph)

    @property
    def has_beliefs(self) -> bool:
        """Whether beliefs are the derivative of log Z.

        Of a bound that is tightened for a number of passes, for one, they are not: it moves with
        its own weights too.
        """
        return self._beliefs is not None

    @property
    def algorithm(self) -> str:
        """Name of what answers: the backend, or what `auto` has chosen for this structure."""
        if self.backend.name != "auto" or self._beliefs is None:
            return self.backend.name
        return "exact" if self.exact else "lbp"

    @cached_property
    def exact(self) -> bool:
        """Whether log Z and beliefs are those of the model, and so given any labels too."""
        if self._beliefs is None:
            return False
        # Tables that forbid nothing have an answer.
        posterior = self._beliefs(np.zeros(len(self.graph.log_values))).posterior
        return posterior.log_z_kind is LogZKind.EXACT

    def __call__(self, log_values: Floats, clamps: Integers | None) -> Beliefs:
        """Log Z and beliefs.

        Args:
            log_values: the log tables, laid out as those of the graph.
            clamps: the state that each variable is held at, or `UNOBSERVED`; None: none is.

        Raises:
            InputError: if the backend gives no log Z.
            ZeroPartitionError: if no assignment has positive potential.
        """
        if self._beliefs is None:
            evidence = np.full(self.graph.n_variables, UNOBSERVED) if clamps is None else clamps
            asked = replace(self.graph, log_values=log_values, evidence=evidence)
            posterior, entries = self.backend.infer(asked), None
        else:
            if clamps is not None:
                # Zeros in the priors leave the structure, and so what was prepared, as it is.
                held = np.flatnonzero(clamps >= 0)
                log_values = log_values.copy()
                log_values[2 * held + 1 - clamps[held]] = -np.inf
                log_values.flags.writeable = False
            found = self._beliefs(log_values)
            posterior, entries = found.posterior, found.entries
        settled = posterior.status in (Status.EXACT, Status.CONVERGED)
        return Beliefs(_log_z(posterior), posterior.marginals.of_state(1), entries, settled)


def _log_z(posterior: Posterior) -> float:
    if posterior.log_z is None or posterior.log_z_kind is LogZKind.NONE:
        raise InputError(
            f"the backend {posterior.backend!r} gives no log Z, hence no likelihood; use one that "
            "does, such as 'exact', 'lbp' or 'wmb'"
        )
    return posterior.log_z
