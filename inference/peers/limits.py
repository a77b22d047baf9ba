"""Memory limits for the junction trees and eliminations of other libraries."""

from __future__ import annotations

from factormodels.factor_graph import FactorGraph
from inference.exact.orders import plan
from inference.exact.prediction import BYTES_PER_ENTRY, STEPS_PER_SECOND
from inference.memory import allowance, require

_RESTARTS = 1000
_STEPS = 2.0 * STEPS_PER_SECOND
"""Settings of the search for an elimination order, as for `exact`."""

_LARGEST_LOG2 = 1000.0
"""Maximum log2 of a reported table size, since doubles overflow soon after."""


def require_tables(
    library: str, graph: FactorGraph, copies: int, memory_limit: int
) -> tuple[list[int], int]:
    """Check that a graph's largest table fits the memory, by the best elimination order found.

    The order of another library is at best as good as the best of several.

    Args:
        library: name of the library.
        graph: a graph without evidence.
        copies: number of tables as large as the largest in memory at once.
        memory_limit: bytes.

    Returns:
        The elimination order, and its induced width.

    Raises:
        TooLargeError: if the tables take more.
    """
    structure = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
    order, _, cost, _ = plan(*structure, 0, _RESTARTS, _STEPS)
    entries = copies * 2.0 ** min(float(cost.log2_largest), _LARGEST_LOG2)
    require_entries(library, entries, int(cost.width) + 1, memory_limit)
    return order.tolist(), int(cost.width)


def require_entries(library: str, entries: float, variables: int, memory_limit: int) -> None:
    """Check that a library's tables, over at most `variables` variables, fit the memory.

    Raises:
        TooLargeError: if their entries take more bytes than the limit.
    """
    require(
        entries * BYTES_PER_ENTRY,
        allowance(memory_limit),
        f"{library}'s tables, over up to {variables} variables,",
        "use backend 'exact', 'wmb' for bounds or 'lbp' for an estimate, observe variables",
    )
