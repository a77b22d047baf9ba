"""toulbar2's search for the most probable assignment, used by `inference.tasks.search_map`.

It searches a tree of assignments best first, with costs moved between tables so that the bound of
every node is tight (soft arc consistency). Its costs are whole numbers: log potentials are rounded
to a number of decimal digits, and proofs hold up to that rounding.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError, MissingDependencyError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import InferenceError, zero_partition
from inference.possible_states import possible_states
from inference.posterior import Status

_LARGEST_COST = 1e15
"""Largest whole number that is exact as a double and whose sums do not overflow."""

_LONGEST = 1e6
"""Maximum seconds of a search, more than eleven days."""

_GRACE = 30.0
"""Ratio of wall time to processor time beyond which a search is assumed to hang."""


class FoundStates(NamedTuple):
    """An assignment found by toulbar2, and its distance from the best.

    Attributes:
        states: int64 (n_variables,), its states, including observed ones.
        log_potential: its log potential, by the original tables.
        upper: upper bound on the log potential of any assignment.
        status: exact if proved to be the best up to the rounding, otherwise interrupted.
        stats: `seconds` of wall time; `nodes` and `backtracks` of the search.
    """

    states: NDArray[np.int64]
    log_potential: float
    upper: float
    status: Status
    stats: dict[str, Any]


def check_search(seconds: float, digits: int, seed: int) -> None:
    """Check the settings of a search.

    Raises:
        InputError: if one is out of range.
    """
    if not 0.0 < seconds <= _LONGEST:
        raise InputError(
            f"the budget of {seconds} seconds is not above 0 and up to {_LONGEST:,.0f}"
        )
    if not 0 <= digits <= 12:
        raise InputError(f"{digits} digits were requested of toulbar2; give 0 to 12")
    if not 0 <= seed < 2**31:
        raise InputError(f"the seed {seed} of toulbar2 is not from 0 to 2^31 - 1")


def search_toulbar2(
    graph: FactorGraph, *, seconds: float = 60.0, digits: int = 6, seed: int = 1
) -> FoundStates:
    """Return the most probable assignment that toulbar2 finds within a time limit.

    Args:
        graph: the factor graph, with or without evidence.
        seconds: processor time of the search, rounded up to whole seconds.
        digits: decimal digits to which log potentials are rounded.
        seed: seed of its random choices.

    Raises:
        InputError: for a setting out of range, or log potentials too far apart for the digits.
        MissingDependencyError: if pytoulbar2 is not installed.
        ZeroPartitionError: if no assignment has positive potential.
        InferenceError: if no assignment of positive potential was found.

    Source: de Givry, Schiex and others, https://toulbar2.github.io/toulbar2; Larrosa & Schiex 2004,
    "Solving weighted CSP by maintaining arc consistency".
    """
    check_search(seconds, digits, seed)
    if find_spec("pytoulbar2") is None:
        raise MissingDependencyError(
            "pytoulbar2 is not installed; install it with: pip install 'factorfacts[toulbar2]'"
        )
    began = time.monotonic()
    support = possible_states(graph.absorb_evidence())
    smaller = support.graph
    states = np.zeros(smaller.n_variables, dtype=np.int64)
    upper, stats = smaller.log_potential(states), {"nodes": 0, "backtracks": 0}
    # Each table, and its contribution to the bound, is rounded by at most half a digit.
    rounding = (smaller.n_factors + 1) * 10.0**-digits
    if smaller.n_variables:
        largest, costs = _costs(smaller, digits)
        answer = _searched(smaller, costs, math.ceil(seconds), digits, seed)
        if answer["states"] is None and answer["ended"]:
            raise zero_partition()
        if answer["states"] is None:
            raise InferenceError(
                "toulbar2 found no assignment of positive potential; give more seconds"
            )
        states = np.array(answer["states"], dtype=np.int64)
        upper = largest - answer["lowest_cost"] + rounding
        stats = {name: answer[name] for name in stats}
    value = smaller.log_potential(states)
    every = support.expand_states(states)
    return FoundStates(
        np.where(graph.evidence != UNOBSERVED, graph.evidence, every),
        float(support.log_constant + value),
        float(support.log_constant + max(upper, value)),
        Status.EXACT if upper - value <= 2.0 * rounding else Status.INTERRUPTED,
        {"seconds": time.monotonic() - began, **stats},
    )


def _costs(graph: FactorGraph, digits: int) -> tuple[float, NDArray[np.float64]]:
    """Return the sum of the largest entries of all tables, and each entry's difference from it."""
    largest = np.maximum.reduceat(graph.log_values, graph.table_starts[:-1])
    lost = np.repeat(largest, np.diff(graph.table_starts)) - graph.log_values
    most = float(lost[np.isfinite(lost)].max(initial=0.0))
    if most * 10.0**digits > _LARGEST_COST:
        raise InputError(
            f"log potentials of one table differ by {most:g}: too much for toulbar2 at {digits} "
            "digits; give fewer digits"
        )
    # Rounded here, since toulbar2 truncates the digits of large tables and rounds those of small
    # ones.
    return float(largest.sum()), np.round(lost, digits)


def _searched(
    graph: FactorGraph, costs: NDArray[np.float64], seconds: int, digits: int, seed: int
) -> dict[str, Any]:
    """Return the answer of a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        task, answer = Path(folder) / "task.npz", Path(folder) / "answer.json"
        np.savez(
            task,
            cardinalities=graph.cardinalities,
            scope_starts=graph.scope_starts,
            scope_variables=graph.scope_variables,
            table_starts=graph.table_starts,
            costs=costs,
            settings=np.array([seconds, digits, seed], dtype=np.int64),
        )
        script = Path(__file__).with_name("toulbar2_process.py")
        command = [sys.executable, "-P", str(script), str(task), str(answer)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_GRACE * (1 + seconds)
            )
        except subprocess.TimeoutExpired:
            raise InferenceError("toulbar2 did not end at its limit of time") from None
        if not answer.exists():
            lines = (done.stdout + done.stderr).strip().splitlines()
            raise InferenceError(f"toulbar2 ended without an answer: {(lines or ['nothing'])[-1]}")
        result: dict[str, Any] = json.loads(answer.read_text())
    return result
