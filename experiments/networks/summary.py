"""Summary of measurements by dataset and backend, with certified brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.findings.table import data_frame, named
from experiments.networks.measure import ABSENT, FAILED, REFUSED
from factormodels.nouns import counted
from inference.posterior import LogZKind, Status

if TYPE_CHECKING:
    import pandas as pd

N_BOOTSTRAP = 10_000
"""Number of bootstrap draws of rounds, for the interval of a ratio of times."""

WITHOUT_ANSWER = (REFUSED, FAILED, ABSENT)
"""Statuses of measurements without an answer."""

_OF_LOG_Z = (LogZKind.EXACT, LogZKind.BETHE, LogZKind.ESTIMATE)
"""Kinds of log Z that are not bounds, and so should lie within a bracket."""

_TOUCH = 1e-9
"""Relative tolerance for rounding between a log Z and a bound."""


def with_brackets(measured: pd.DataFrame) -> pd.DataFrame:
    """Add the bracket of log Z of each network, and the position of each answer in it.

    If the reference has no log Z for a network, the first backend with an exact log Z supplies it.
    `least` and `most` are the reference's log Z or, without one, the tightest certified bounds of
    the backends; `lower_error` and `upper_error` are the bounds of a row minus their midpoint.
    `outside` is True if a log Z that is not a bound lies outside them, `violated` if a certified
    bound of the row contradicts the reference.
    """
    frame = _with_exact_log_z(measured)
    networks = frame.groupby(["dataset", "network"], sort=False)
    known = frame["reference_log_z"]
    frame["least"] = known.fillna(networks["lower"].transform("max"))
    frame["most"] = known.fillna(networks["upper"].transform("min"))
    middle = (frame["least"] + frame["most"]) / 2.0
    frame["lower_error"] = frame["lower"] - middle
    frame["upper_error"] = frame["upper"] - middle
    room = frame["reference_rounding"].fillna(_TOUCH) * np.maximum(frame["most"].abs(), 1.0)
    beyond = (frame["log_z"] < frame["least"] - room) | (frame["log_z"] > frame["most"] + room)
    frame["outside"] = beyond & frame["log_z_kind"].isin(_OF_LOG_Z) & known.isna()
    frame["violated"] = (frame["lower"] > frame["most"] + room) | (
        frame["upper"] < frame["least"] - room
    )
    return frame


def _with_exact_log_z(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, with references without a log Z taking the first backend's exact one."""
    frame = measured.copy()
    is_exact = frame["log_z_kind"] == LogZKind.EXACT
    first = (
        frame[["dataset", "network"]]
        .assign(log_z=frame["log_z"].where(is_exact), name=frame["backend"].where(is_exact))
        .groupby(["dataset", "network"], sort=False)
        .transform("first")
    )
    lacks = frame["reference_log_z"].isna() & first["log_z"].notna()
    frame["reference_log_z"] = frame["reference_log_z"].fillna(first["log_z"])
    frame["log_z_error"] = frame["log_z_error"].fillna(frame["log_z"] - frame["reference_log_z"])
    # An exact answer may already be the whole reference.
    of_files = lacks & ~frame["reference"].isin(["", *frame["backend"]])
    frame["reference"] = frame["reference"].mask(
        of_files, frame["reference"] + " and " + first["name"]
    )
    return frame


def summarize(measured: pd.DataFrame, against: str, seed: int) -> pd.DataFrame:
    """Summarize each dataset and backend: status, errors, brackets, memory, ratio of times.

    The ratio is the median over rounds of the ratio within a round, averaged geometrically over
    networks; its interval is the percentile bootstrap over rounds. Errors of probabilities are
    means and maxima over networks with a reference; `log_z_error`, `bracket`, `lower_error` and
    `upper_error` are medians; `first_seconds` and `peak_bytes` are the largest.

    Args:
        measured: rows of `with_brackets`.
        against: the backend that times are divided by.
        seed: seed of the bootstrap.
    """
    rows = []
    for (dataset, backend), group in measured.groupby(["dataset", "backend"], sort=False):
        answered = group[~group["status"].isin(WITHOUT_ANSWER)]
        other = measured[(measured["dataset"] == dataset) & (measured["backend"] == against)]
        # A network may come with its marginals, its log Z, or both.
        judged = answered.dropna(subset=["total_error"])
        log_z = answered["log_z_error"].dropna()
        bracket = (answered["upper"] - answered["lower"]).dropna()
        rows.append(
            {
                "dataset": dataset,
                "backend": backend,
                "networks": len(group),
                "answered": len(answered),
                "settled": int(group["status"].isin((Status.EXACT, Status.CONVERGED)).sum()),
                "seconds": float(np.exp(np.log(answered["seconds"]).mean())),
                **ratio_of(group, other if backend != against else other.iloc[:0], seed),
                "first_seconds": answered["first_seconds"].max(),
                "peak_bytes": answered["peak_bytes"].max(),
                "mean_error": judged["total_error"].sum()
                / (judged["probabilities"].sum() or np.nan),
                "max_error": answered["max_error"].max(),
                "log_z_kind": ", ".join(dict.fromkeys(answered["log_z_kind"])),
                "log_z_error": log_z.median(),
                "furthest": log_z.iloc[log_z.abs().argmax()] if len(log_z) else np.nan,
                "bracket": bracket.median(),
                "lower_error": answered["lower_error"].median(),
                "upper_error": answered["upper_error"].median(),
                "outside": int(answered["outside"].sum()),
            }
        )
    return data_frame(rows)


def warnings(measured: pd.DataFrame) -> list[str]:
    """Remarks on the measurements: bounds that do not hold, failures, references.

    Args:
        measured: rows of `with_brackets`.
    """
    sentences = []
    for backend, group in measured[measured["violated"]].groupby("backend", sort=False):
        first = group.iloc[0]
        sentences.append(
            f"{backend}: {counted(len(group), 'certified bound')} "
            f"{'does' if len(group) == 1 else 'do'} not contain the reference, first on "
            f"{first['dataset']}, {first['network']}: [{first['lower']:.6g}, "
            f"{first['upper']:.6g}] and {first['least']:.6g}."
        )
    for backend, group in measured[measured["outside"]].groupby("backend", sort=False):
        first = group.iloc[0]
        sentences.append(
            f"{backend}: log Z lies outside the best certified bracket of "
            f"{counted(len(group), 'network')}, first of {first['dataset']}, {first['network']}."
        )
    sentences += failures(measured)
    networks = measured.drop_duplicates(["dataset", "network"])
    without = networks[networks["reference_log_z"].isna() & networks["least"].notna()]
    if len(without):
        sentences.append(
            f"{counted(len(without), 'network')} of {len(networks)} "
            f"{'has' if len(without) == 1 else 'have'} no reference log Z: the best certified "
            "bracket takes its place."
        )
    return sentences


def failures(measured: pd.DataFrame) -> list[str]:
    """A sentence for each failed backend, with the first reason."""
    failed = measured[measured["status"] == FAILED]
    return [
        f"{backend} failed on {counted(len(group), 'network')}, first on "
        f"{group['dataset'].iloc[0]}, {group['network'].iloc[0]}: {group['remark'].iloc[0]}."
        for backend, group in failed.groupby("backend", sort=False)
    ]


def ratio_of(group: pd.DataFrame, other: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Ratio of a call's time to another's, with its interval; NaN without pairs.

    Args:
        group: rows of measurements of one backend.
        other: rows of the backend that times are divided by.
        seed: seed of the bootstrap.
    """
    # Only rounds of the same measurement were timed together.
    pairs = group.merge(other, on=["network", "measurement"], suffixes=("", "_other"))
    times = zip(pairs["round_seconds"], pairs["round_seconds_other"], strict=True)
    return _ratio(list(times), seed)


def _ratio(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], seed: int) -> dict[str, Any]:
    """Ratio of a call's time to another's, from the times of both in the same rounds.

    Rounds are redrawn within each network and summarized by a median, unlike the weighted responses
    of `calibration.intervals.replicates`.
    """
    # Use common rounds: slow backends have fewer.
    both = [np.array(list(zip(*pair, strict=False))) for pair in pairs]
    logs = [np.log(times[:, 0] / times[:, 1]) for times in both if len(times)]
    if not logs:
        return named("ratio", [np.nan] * 3)
    value = np.mean([np.median(log) for log in logs])
    # A single round resamples to itself, which would give a zero-width interval.
    ends = np.full(2, np.nan)
    if min(map(len, logs)) > 1:
        draw = np.random.default_rng(seed)
        drawn = [
            np.median(log[draw.integers(0, len(log), (N_BOOTSTRAP, len(log)))], axis=1)
            for log in logs
        ]
        ends = np.quantile(np.mean(drawn, axis=0), [0.025, 0.975])
    return named("ratio", np.exp([value, *ends]).tolist())
