"""Check that the parents in a directed model form no cycle."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from factormodels.errors import InputError


def refuse_cycle(
    parents: Sequence[Sequence[int]], names: Sequence[str], where: str, advice: str
) -> None:
    """Check that no variable is its own ancestor.

    Args:
        parents: indices of each variable's parents.
        names: names of the variables.
        where: the file, for the message.
        advice: the fix, at the end of the message.

    Raises:
        InputError: if there is a directed cycle; it names the variables of one.
    """
    try:
        TopologicalSorter(dict(enumerate(parents))).prepare()
    except CycleError as error:
        circle = " -> ".join(names[variable] for variable in error.args[1])
        raise InputError(f"{where}: the parents form the cycle {circle}; {advice}") from None
