"""The tables of a study of networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.findings.interval_values import tiny
from experiments.findings.table import Table, columns_as
from experiments.findings.text import ABSENT, duration
from inference.memory import memory_size

if TYPE_CHECKING:
    import pandas as pd


def _memory(value: float) -> str:
    """A number of bytes with its unit; "< 1 MiB" below the resolution."""
    if np.isnan(value):
        return ABSENT
    return "< 1 MiB" if value < 2.0**20 else memory_size(value)


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("first_seconds", "seconds"), duration),
    **dict.fromkeys(("mean_error", "max_error", "bracket"), tiny),
    **dict.fromkeys(("log_z_error", "furthest"), partial(tiny, sign="+")),
    "peak_bytes": _memory,
}

_EACH = columns_as(
    "network | backend | status | seconds> time | peak_bytes> memory | max_error> max |Δp| | "
    "log_z_error_text> Δ log Z | bracket> | reference | remark",
    **_SHOWN,
)


def accuracy_table(overall: pd.DataFrame) -> Table:
    """Errors and certified brackets of each backend, a block per dataset.

    Args:
        overall: rows of `experiments.networks.summary.summarize`.
    """
    outside = " | outside:0" if overall["outside"].any() else ""
    # With one network the median is also the maximum.
    furthest = " | furthest>" if (overall["networks"] > 1).any() else ""
    return Table(
        with_shares(overall),
        columns_as(
            "backend | mean_error> mean |Δp| | max_error> max |Δp| | log_z_kind log Z | "
            f"log_z_error> Δ log Z{furthest} | bracket>{outside} | of_settled> settled",
            **_SHOWN,
        ),
        "Accuracy of backends",
        group="dataset",
        note="Δp: error of a probability. Δ log Z: median error, "
        + "and the furthest, " * bool(furthest)
        + "in nats, of the estimate or bound that 'log Z' names. Bracket: median distance of "
        "the certified bounds on log Z, in nats. Settled: exact or converged, of the "
        "measured networks." + " Outside: estimates outside the best bracket." * bool(outside),
    )


def cost_table(overall: pd.DataFrame, against: str) -> Table:
    """Times and memory of each backend, a block per dataset.

    Args:
        overall: rows of `experiments.networks.summary.summarize`.
        against: the backend that times are divided by.
    """
    return Table(
        with_shares(overall.assign(times=ratio_texts(overall))),
        columns_as(
            f"backend | seconds> time | times> times {against} | first_seconds> first call | "
            "peak_bytes> memory | of_answered> answered",
            **_SHOWN,
        ),
        "Time and memory of backends",
        group="dataset",
        note="Time of a repeated call: geometric mean over networks. Ratios of times within the "
        "same rounds, with 95% bootstrap intervals over rounds. First call: the longest. "
        "Memory: the largest peak of a first call beyond the memory of the process before, "
        "without processes that a library starts. Times depend on the machine.",
    )


def network_table(measured: pd.DataFrame) -> Table:
    """Every measurement, a block per dataset.

    Args:
        measured: rows of `experiments.networks.summary.with_brackets`.
    """
    frame = measured.assign(
        bracket=measured["upper"] - measured["lower"],
        log_z_error_text=[_error_text(row) for row in measured.to_dict("records")],
    )
    shown = frame.drop(columns=["round_seconds", "measurement"])
    remarked = bool((frame["remark"] != "").any())
    columns = [column for column in _EACH if remarked or column.name != "remark"]
    return Table(shown, tuple(columns), "Every network", group="dataset")


def ratio_texts(overall: pd.DataFrame) -> list[str]:
    """Format the ratios of times of `summarize` with their intervals."""
    texts = []
    rows: list[dict[Any, Any]] = overall.to_dict("records")
    for row in rows:
        ends = "" if np.isnan(row["ratio_lower"]) else " [{ratio_lower:.3g}, {ratio_upper:.3g}]"
        texts.append(ABSENT if np.isnan(row["ratio"]) else ("{ratio:.3g}" + ends).format(**row))
    return texts


def with_shares(overall: pd.DataFrame) -> pd.DataFrame:
    """Add the shares of settled and answered networks, as "2/3"."""
    shares = {
        f"of_{name}": [
            f"{count}/{total}"
            for count, total in zip(overall[name], overall["networks"], strict=True)
        ]
        for name in ("settled", "answered")
    }
    return overall.assign(**shares)


def _error_text(row: Mapping[Any, Any]) -> str:
    """The error of log Z or, with a bracket, its range."""
    if not np.isnan(row["log_z_error"]):
        return tiny(row["log_z_error"], "+")
    ends = [row["log_z"] - row["most"], row["log_z"] - row["least"]]
    if np.isnan(ends).any():
        return ABSENT
    return " to ".join(tiny(end, "+") for end in ends)
