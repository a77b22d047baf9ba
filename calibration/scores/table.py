"""The table of scores: every score of a set of forecasts, each with its intervals, as tidy rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from calibration.forecasts import (
    LOGIT_CLIP,
    Extremes,
    clipped_weight,
    extremes_named,
    forecasts,
    logit_clip,
)
from calibration.labels import LabelPolicy
from calibration.scores.coverage import coverage_warning
from calibration.scores.definition import SampleSettings
from calibration.scores.logistic_calibration import LOGIT_SCORES
from calibration.scores.registry import REGISTRY, SAMPLE_SCORES, sample_scores
from calibration.scores.score_intervals import NO_INTERVAL, score_intervals, why_no_interval
from calibration.tabular import TableOf
from calibration.validation import open_interval, whole_number
from factormodels.errors import InputError


@dataclass(frozen=True)
class ScoreRow:
    """One score of one set of forecasts; nan where a number is not defined.

    Attributes:
        score: name of the score, one of `SCORES`.
        value: the score.
        status: ``ok``; ``clipped`` if probabilities of 0 or 1 were moved to take their logit;
            ``infinite``; or why there is no value: ``one_class``, ``constant_forecast``,
            ``separated``, ``too_few_atoms``.
        lower: lower end of its interval; nan where there is none, as `no_interval` says why.
        upper: upper end.
        standard_error: standard error, clustered by response.
        method: how the interval is made, an `IntervalMethod`.
        coverage: share of simulated data sets of about this many responses whose interval held the
            truth, in the worst case (`calibration.scores.coverage`), where it leaves what
            the level promises by more than `COVERAGE_GOAL` allows; else nan.
        level: nominal coverage of the intervals.
        resampled: what the bootstrap draws: ``responses``, or ``atoms`` if those were not given.
        n_atoms: number of atoms.
        n_responses: number of responses; the number of atoms if those were not given.
        n_bootstrap: number of bootstrap replicates.
        n_undefined: how many of the resamples behind the interval have no finite value.
        n_unlabelled: number of atoms that had no label.
        n_clipped: number of atoms whose p had no logit that the score could take: moved to `clip`,
            or left out; 0 for scores that take none.
    """

    score: str
    value: float
    status: str
    lower: float
    upper: float
    standard_error: float
    method: str
    coverage: float
    level: float
    resampled: str
    n_atoms: int
    n_responses: int
    n_bootstrap: int
    n_undefined: int
    n_unlabelled: int = 0
    n_clipped: float = 0

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the score's interval, nan where there is none."""
        return self.lower, self.upper

    @property
    def no_interval(self) -> str:
        """Why there is a value and no interval, in words; empty where there is one."""
        return why_no_interval(self.value, self.lower, self.n_responses)


class ScoreTable(TableOf[ScoreRow]):
    """Rows of scores, a tuple of `ScoreRow`."""

    __slots__ = ()


SCORES: Mapping[str, str] = {name: REGISTRY[name].meaning for name in SAMPLE_SCORES}
"""What each score of a table means, by its name, in the order of the rows."""


def score_table(
    p: ArrayLike,
    y: Any,
    weights: ArrayLike | None = None,
    responses: Any = None,
    n_bootstrap: int = 1000,
    seed: int = 0,
    *,
    scores: Sequence[str] | None = None,
    level: float = 0.95,
    n_bins: int = 10,
    clip: float = LOGIT_CLIP,
    extremes: str = Extremes.CLIP,
    workers: int | None = None,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> ScoreTable:
    """Every score of a set of forecasts, each with its interval over responses.

    A score that is not defined is nan and has a status that says why; that is not an error. Each
    score has the one interval that `REGISTRY` names.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,), True or False, None where unlabelled.
        weights: how many atoms each counts as, (n,), or None for one each.
        responses: response ids (n,); without them atoms count as independent, and intervals are
            too short where atoms of a response are alike.
        n_bootstrap: number of replicates of the intervals that draw some; 0 for no intervals.
        seed: seed of the bootstrap.
        scores: names of `SCORES`, or None for all of them.
        level: nominal coverage of the intervals, between 0 and 1.
        n_bins: number of bins.
        clip: p is moved into [clip, 1 - clip] where a score needs its logit.
        extremes: what becomes of p outside: ``clip``, or ``leave-out`` as in rms's val.prob.
        workers: number of threads, or None for one per processor, 4 at most. The numbers do not
            depend on it.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, no labelled atom, an unknown score, or
            a bad setting.
    """
    points = forecasts(p, y, weights, responses, unlabelled)
    names = _chosen(scores)
    n_bootstrap = whole_number(n_bootstrap, "n_bootstrap", 0)
    seed = whole_number(seed, "seed", 0)
    level = open_interval(level, "level", 0, 1)
    settings = SampleSettings(
        whole_number(n_bins, "n_bins", 1), logit_clip(clip), extremes_named(extremes)
    )
    workers = min(os.cpu_count() or 1, 4) if workers is None else workers
    workers = whole_number(workers, "workers", 1)
    whole = points.sample()
    estimates = sample_scores(whole, settings, names)

    intervals = dict.fromkeys(names, NO_INTERVAL)
    if n_bootstrap:
        intervals |= score_intervals(
            points,
            settings,
            estimates,
            level=level,
            n_bootstrap=n_bootstrap,
            seed=seed,
            workers=workers,
        )
    return ScoreTable(
        ScoreRow(
            score=name,
            value=estimates[name].value,
            status=str(estimates[name].status),
            lower=intervals[name].lower,
            upper=intervals[name].upper,
            standard_error=intervals[name].standard_error,
            method=str(REGISTRY[name].interval),
            coverage=coverage_warning(name, points.n_responses, level),
            level=level,
            resampled="responses" if points.clustered else "atoms",
            n_atoms=points.y.size,
            n_responses=points.n_responses,
            n_bootstrap=n_bootstrap,
            n_undefined=intervals[name].n_undefined,
            n_unlabelled=points.n_unlabelled,
            n_clipped=clipped_weight(whole, settings.clip) if name in LOGIT_SCORES else 0,
        )
        for name in names
    )


def _chosen(scores: Sequence[str] | None) -> tuple[str, ...]:
    if scores is None:
        return tuple(SCORES)
    if isinstance(scores, str):
        raise InputError(f"scores is the text {scores!r}; give a list of names")
    for name in scores:
        if name not in SCORES:
            raise InputError(f"scores has {name!r}; choose some of {', '.join(SCORES)}")
    return tuple(dict.fromkeys(scores))
