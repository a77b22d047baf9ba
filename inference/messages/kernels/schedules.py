"""Schedules: the order in which the messages of belief propagation are updated (compiled).

`state.py` defines the messages. SWEEP sends them in breadth-first order and back, FLOODING all from
the previous iteration's messages, RANDOM in a new order in every iteration, and RESIDUAL by
decreasing expected change (Elidan, McGraw & Koller 2006, "Residual belief propagation"; expected by
the bounds of Sutton & McCallum 2007, "Improved dynamic schedules for belief propagation"). With m
the old message to a variable, m' the fresh one and d the damping,

    log m <- (1 - d) log m' + d log m    r = max (log m' - log m) - min (log m' - log m)

and RESIDUAL adds (1 - d) r to the priority of every other factor on the variable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inference.kernels.compiled import inlined_kernel, inner_kernel
from inference.kernels.interaction import factors_by_variable
from inference.kernels.random_numbers import shuffle
from inference.kernels.views import lent, read_only
from inference.messages.kernels.order import (
    Heap,
    clear_first,
    raise_priority,
    slots_of,
    sweep_targets,
)
from inference.messages.kernels.state import (
    fresh_message,
    initial_messages,
    refresh_beliefs,
    replace_message,
    workspace,
)

SWEEP = 0
FLOODING = 1
RESIDUAL = 2
RANDOM = 3

ADAPTIVE = -1.0
"""In place of a damping: it follows the residuals."""

CONVERGED = 0
NOT_CONVERGED = 1
ZERO = 2

PATIENCE = 10
STEP = 0.1
MOST = 0.9
EASE = 0.97


class Passing(NamedTuple):
    """Settings of message passing and its end.

    Attributes:
        schedule: SWEEP, FLOODING, RESIDUAL or RANDOM.
        damping: in [0, 1), the share of the old message, as a logarithm, that stays; or ADAPTIVE
            (`adapted` says how).
        tolerance: the largest residual at which it ends.
        max_iterations: maximum number of iterations.
        seed: of the orders of RANDOM.
    """

    schedule: int
    damping: float
    tolerance: float
    max_iterations: int
    seed: int


@inner_kernel
def adapted(damping, residual, smallest, waited):
    """Return damping, smallest residual and iterations since then, for the next iteration.

    Ten iterations in a row without a new smallest residual mean an oscillation: the damping rises
    by 0.1 (to 0.9 at most) and the count begins anew. A new smallest lowers it by 3%. So a run
    that converges without damping has none. These numbers converge most often among those tried
    on evidence graphs, grids and complete graphs, and never later than any fixed damping.
    """
    if residual < smallest:
        return EASE * damping, residual, 0
    if waited + 1 < PATIENCE:
        return damping, smallest, waited + 1
    return min(damping + STEP, MOST), residual, 0


@inlined_kernel
def run(cardinalities, graph, weights, passing):
    """Pass messages, uniform at first, until the largest residual is at most the tolerance.

    Arguments and results are those of `continue_run`, which begins with given messages.
    """
    messages = initial_messages(cardinalities, graph, weights)
    never = np.zeros(1, dtype=np.int64)
    return continue_run(cardinalities, graph, messages, passing, never)


@inner_kernel
def _raise_around(v, starts, around, factor, weight, damping, residual, heap):
    """Raise the priorities of the factors of a variable after a message to it has changed.

    The sum bounds the remaining work in other factors (Sutton & McCallum 2007, "Improved dynamic
    schedules for belief propagation"). In the factor that sent the message, damping and a weight
    below 1 leave a share of the work.

    Args:
        starts, around: int64, the factors at every variable; `v` the variable.
        heap: the `Heap` of the factors.
    """
    starts, around, heap = lent((starts, around, heap))
    for entry in range(starts[v], starts[v + 1]):
        other = around[entry]
        rest = 1.0 - damping
        if other == factor:
            rest = damping + (1.0 - damping) * (1.0 - weight)
        if rest > 0.0:
            raise_priority(heap, other, rest * residual)


@inner_kernel
def continue_run(cardinalities, graph, messages, passing, stop):
    """Pass messages until the largest residual of an iteration is at most the tolerance.

    One iteration renews every message once: along a breadth-first order of the variables from its
    end and back again (SWEEP; `sweep_targets` says which message when), all from the messages of
    the iteration before (FLOODING), factor by factor in a new random order every time (RANDOM), or
    as many factors as there are, by decreasing change of their incoming messages (RESIDUAL).

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        graph: a `Reduced` graph.
        messages: the initial messages; their weights are the powers of the factors, whose tables
            are raised to 1 / weight.
        passing: the `Passing` settings.
        stop: int64 (1,); once it is not 0, the current iteration is the last.

    Returns:
        code: CONVERGED, NOT_CONVERGED or ZERO (no assignment has positive potential).
        messages: the last messages.
        residuals: float64 (iterations,), the largest residual of every iteration; of RESIDUAL the
            bound on the changes that remain at its end.
    """
    graph = lent(graph)
    schedule, damping, tolerance, max_iterations, seed = passing
    weights = messages.weights
    work = workspace(graph, messages)
    n, n_factors = len(cardinalities), len(weights)
    residuals = np.empty(max_iterations, dtype=np.float64)
    turns = np.arange(len(graph.scope_variables))
    if schedule == SWEEP:
        out, back = sweep_targets(n, graph.scope_starts, graph.scope_variables)
        # First back to the beginning of the order, then out again: on a forest that is exact.
        turns = np.empty(2 * len(out), dtype=np.int64)
        for i in range(len(out)):
            turns[i], turns[len(out) + i] = back[i], out[i]
    shuffled = np.arange(n_factors)
    random = np.full(1, seed, dtype=np.uint64)
    starts, around = factors_by_variable(
        n, read_only(graph.scope_starts), read_only(graph.scope_variables)
    )
    # At first every priority is infinite, so that each factor has a turn before any has a second.
    heap = Heap(np.arange(n_factors), np.arange(n_factors), np.full(n_factors, np.inf))
    adaptive = damping == ADAPTIVE
    if adaptive:
        damping = 0.0
    smallest = np.inf
    waited = 0
    for iteration in range(max_iterations):
        largest = 0.0
        if schedule == RANDOM:
            shuffle(random, shuffled)
            slots_of(shuffled, graph.scope_starts, turns)
        # All fresh messages first, from those of the iteration before.
        if schedule == FLOODING:
            for slot in turns:
                if not fresh_message(slot, cardinalities, graph, messages, work):
                    return ZERO, messages, residuals[:iteration]
        for turn in range(n_factors if schedule == RESIDUAL else len(turns)):
            factor = -1
            first, last = turn, turn + 1
            if schedule == RESIDUAL:
                # By the bound, no factor changes a message by more than the tolerance.
                if heap.priority[heap.factors[0]] <= tolerance:
                    break
                # Everything that has not moved since the last update of this factor is in it.
                factor = clear_first(heap)
                first, last = graph.scope_starts[factor], graph.scope_starts[factor + 1]
            for at in range(first, last):
                slot = turns[at]
                if schedule != FLOODING and not fresh_message(
                    slot, cardinalities, graph, messages, work
                ):
                    return ZERO, messages, residuals[:iteration]
                residual = replace_message(slot, damping, graph, messages, work)
                largest = max(largest, residual)
                if schedule != RESIDUAL or residual == 0.0:
                    continue
                _raise_around(
                    graph.scope_variables[slot], starts, around, factor, weights[factor], damping,
                    residual, heap,
                )  # fmt: skip
        # Differences of rounded numbers add up: the beliefs are summed anew once an iteration.
        refresh_beliefs(graph, messages)
        residuals[iteration] = largest
        if schedule == RESIDUAL:
            residuals[iteration] = heap.priority[heap.factors[0]] if n_factors > 0 else 0.0
        if residuals[iteration] <= tolerance:
            return CONVERGED, messages, residuals[: iteration + 1]
        if stop[0] != 0:
            return NOT_CONVERGED, messages, residuals[: iteration + 1]
        if adaptive:
            damping, smallest, waited = adapted(damping, largest, smallest, waited)
    return NOT_CONVERGED, messages, residuals
