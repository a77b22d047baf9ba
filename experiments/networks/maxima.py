"""Searches for the most probable states of networks: quality and time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.findings.interval_values import tiny
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import duration
from experiments.networks.config import Searcher
from experiments.networks.measure import REFUSED, NetworkTask, attempted, timing
from experiments.networks.summary import WITHOUT_ANSWER, ratio_of
from experiments.networks.tables import ratio_texts, with_shares
from factormodels.factor_graph import FactorGraph
from inference.posterior import Status

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("log_potential", "upper", "first_seconds", "seconds")
"""Numbers of a row; nan if there is none."""


class SearchAnswer(NamedTuple):
    """Most probable states that a search found."""

    log_potential: float
    """Log potential of the states."""

    upper: float
    """Upper bound on the log potential of any states."""

    status: Status
    """Exact if the states are proved optimal."""


def measure_maxima(task: NetworkTask) -> list[dict[str, Any]]:
    """A row for each search of a task: its states, and its times in rounds.

    Times are from the factor graph to the states; toulbar2 searches in a separate process, whose
    start is included. A batch is refused.
    """
    graphs, _ = task.loaded
    rows: dict[str, dict[str, Any]] = {}
    searches: dict[str, Callable[[], SearchAnswer]] = {}
    for label, searcher in task.searchers:
        rows[label] = {"backend": label, **dict.fromkeys(NUMBERS, math.nan)}
        if len(graphs) > 1:
            rows[label] |= {"status": REFUSED, "remark": "a batch is not searched"}
            continue
        search = partial(_searches()[searcher], graphs[0], task.search_seconds)
        answer, facts = attempted(search)
        rows[label] |= facts
        if answer is not None:
            rows[label] |= {"log_potential": answer.log_potential, "upper": answer.upper}
            rows[label]["status"] = str(answer.status)
            searches[label] = search
    first = {label: float(rows[label]["first_seconds"]) for label in searches}
    times = timing(searches, first, task.clocking)
    return [{**row, **times[label]} for label, row in rows.items()]


def _searches() -> Mapping[Searcher, Callable[[FactorGraph, float], SearchAnswer]]:
    return {"exact": _by_elimination, "toulbar2": _by_search}


def _by_elimination(graph: FactorGraph, _: float) -> SearchAnswer:
    from inference.tasks import map_assignment

    value = map_assignment(graph).log_potential
    return SearchAnswer(value, value, Status.EXACT)


def _by_search(graph: FactorGraph, seconds: float) -> SearchAnswer:
    from inference.peers.toulbar2_search import search_toulbar2

    states = search_toulbar2(graph, seconds=seconds)
    return SearchAnswer(states.log_potential, states.upper, states.status)


def maxima_table(measured: pd.DataFrame, seed: int) -> Table:
    """Table of the searches' results, a block per dataset.

    Args:
        measured: rows of `measure_maxima` with their dataset and network.
        seed: seed of the bootstrap of ratios.
    """
    best = measured.groupby(["dataset", "network"], sort=False)["log_potential"].transform("max")
    frame = measured.assign(lacking=best - measured["log_potential"])
    against = str(frame["backend"].iloc[0])
    rows = []
    for (dataset, backend), group in frame.groupby(["dataset", "backend"], sort=False):
        answered = group[~group["status"].isin(WITHOUT_ANSWER)]
        other = frame[(frame["dataset"] == dataset) & (frame["backend"] == against)]
        rows.append(
            {
                **{"dataset": dataset, "backend": backend, "networks": len(group)},
                "answered": len(answered),
                "settled": int((group["status"] == Status.EXACT).sum()),
                "seconds": answered["seconds"].median(),
                **ratio_of(group, other if backend != against else other.iloc[:0], seed),
                "lacking": answered["lacking"].max(),
            }
        )
    overall = data_frame(rows)
    return Table(
        with_shares(overall.assign(times=ratio_texts(overall))),
        columns_as(
            f"backend | seconds> time | times> times {against} | lacking> below best | "
            "of_settled> proved | of_answered> answered",
            seconds=duration,
            lacking=tiny,
        ),
        "Search for the most probable states",
        group="dataset",
        note=_note("toulbar2" in set(frame["backend"])),
    )


def _note(with_search: bool) -> str:
    """Return the note of the table, with or without a row of toulbar2."""
    process = ", with the start of the process in which toulbar2 searches" if with_search else ""
    digits = ", by toulbar2 up to six decimal digits of log potentials" if with_search else ""
    return (
        f"Time: the median over networks of a repeated call{process}. Below best: the largest "
        "distance, in nats, from the best states that any search found. Proved: proved "
        f"optimal{digits}."
    )
