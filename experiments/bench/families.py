"""The families of graphs that are timed, as data: a new one is a new entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph


@dataclass(frozen=True)
class Family:
    """A family of graphs and the algorithms compared on it.

    Attributes:
        name: what it is asked for by.
        summary: one line: what the graphs are.
        graph: makes the graph of a seed.
        subject: the algorithm whose speed is in question.
        peers: the algorithms that it is compared with; each gets a ratio.
        n_graphs: number of graphs, with seeds 0, 1, ...
        repeats: timings of every algorithm on every graph.
    """

    name: str
    summary: str
    graph: Callable[[int], FactorGraph]
    subject: str = "exact"
    peers: tuple[str, ...] = ()
    n_graphs: int = 1
    repeats: int = 3


def _fr2_31x3(seed: int) -> FactorGraph:
    from factormodels.synthetic import fr2

    return fr2(31, 3, 0.05, seed=seed)


def _fr1_forest(seed: int) -> FactorGraph:
    from factormodels.synthetic import fr1_forest

    return fr1_forest(50_000, 3, seed=seed)


FAMILIES: tuple[Family, ...] = (
    Family(
        name="fr2-31x3",
        summary="FR2: 31 atoms, 93 contexts, own always related, others with density 0.05",
        graph=_fr2_31x3,
        peers=("pgmpy", "pyagrum"),
        n_graphs=6,
        repeats=1,
    ),
    Family(
        name="fr1-200k",
        summary="FR1: a forest of 200,000 variables (50,000 atoms with 3 contexts each)",
        graph=_fr1_forest,
        peers=("lbp",),
        n_graphs=1,
        repeats=6,
    ),
)
"""Every family, in the order in which they are run."""


def select(names: Iterable[str]) -> tuple[Family, ...]:
    """Return the families of the given names, or all of them if there is no name.

    Raises:
        InputError: for an unknown name.
    """
    by_name = {family.name: family for family in FAMILIES}
    wanted = list(names)
    for name in wanted:
        if name not in by_name:
            raise InputError(f"the family {name!r} is unknown; use one of {', '.join(by_name)}")
    return tuple(by_name[name] for name in wanted) if wanted else FAMILIES
