"""What a junction tree or an elimination of another library would take, told before it begins."""

from __future__ import annotations

from factormodels.factor_graph import FactorGraph
from inference.exact.orders import plan
from inference.exact.prediction import BYTES_PER_ENTRY, STEPS_PER_SECOND
from inference.memory import allowance, require

_RESTARTS = 1000
_STEPS = 2.0 * STEPS_PER_SECOND
"""Of the search for an elimination order, as for `exact`."""

_LARGEST_LOG2 = 1000.0
"""Larger tables are told as of this power of two: doubles end soon after."""


def require_tables(
    library: str, graph: FactorGraph, copies: int, memory_limit: int
) -> tuple[list[int], int]:
    """Refuse a graph whose largest table would not fit, by the best elimination order found.

    The order of another library is no better than the best of several, but may be as good.

    Args:
        library: who would make the table.
        graph: a graph without evidence.
        copies: how many tables as large as the largest are held at once.
        memory_limit: bytes.

    Returns:
        The elimination order, and its induced width.

    Raises:
        TooLargeError: if they take more.
    """
    structure = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
    order, _, cost = plan(*structure, 0, _RESTARTS, _STEPS)
    entries = copies * 2.0 ** min(float(cost.log2_largest), _LARGEST_LOG2)
    require_entries(library, entries, int(cost.width) + 1, memory_limit)
    return order.tolist(), int(cost.width)


def require_entries(library: str, entries: float, variables: int, memory_limit: int) -> None:
    """Refuse tables, over up to so many variables, that would not fit.

    Raises:
        TooLargeError: if their entries take more bytes than the limit.
    """
    require(
        entries * BYTES_PER_ENTRY,
        allowance(memory_limit),
        f"{library}'s tables, over up to {variables} variables,",
        "use backend 'exact', 'wmb' for bounds or 'lbp' for an estimate, observe variables",
    )
