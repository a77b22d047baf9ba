"""Directed models: the parents that the tables of a file declare form no cycle."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from factormodels.errors import InputError


def refuse_cycle(
    parents: Sequence[Sequence[int]], names: Sequence[str], where: str, mend: str
) -> None:
    """Refuse parents of which one descends from itself.

    Args:
        parents: for each variable, the indices of its parents.
        names: the names of the variables.
        where: the file, which the message names.
        mend: what to do, as the end of the sentence.

    Raises:
        InputError: if there is a directed cycle; it names the variables of one.
    """
    try:
        TopologicalSorter(dict(enumerate(parents))).prepare()
    except CycleError as error:
        circle = " -> ".join(names[variable] for variable in error.args[1])
        raise InputError(f"{where}: the parents form the cycle {circle}; {mend}") from None
