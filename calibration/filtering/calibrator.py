"""Thresholds by group of responses, with their scores and dependencies, and their file.

Source: Vovk, Lindsay, Nouretdinov and Gammerman 2003, "Mondrian Confidence Machine", for groups
    with separate guarantees.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.filtering.combination import Candidate, Combination, choose_scores
from calibration.filtering.conformal import (
    KEEP_ALL,
    KEEP_NONE,
    STATISTICS,
    ConformalFilter,
    ConformalStatus,
    Guarantee,
    HeldOut,
    Promise,
    compared,
    filter_of,
    held_out,
    response_statistics,
)
from calibration.filtering.dependencies import Dependencies, supported_scores
from calibration.grouping import group_by_response
from calibration.validation import Floats
from factormodels.errors import InputError, unknown_name
from factormodels.io.learned_files import Fields, LearnedFormat, learned_content, read_learned
from factormodels.io.source.files import read_text, write_text
from factormodels.nouns import counted

Group = tuple[str, ...]
"""Values of the columns that make groups; empty without groups."""

FEWEST = 2
"""Minimum number of labeled responses for choosing scores, and for calibrating them."""

_FILE = LearnedFormat(
    "factormodels keep",
    1,
    "calibrator",
    "give the file that factormodels keep --save wrote",
    "calibrate again with keep --save",
)

_MOST_WEIGHT = 1e6
_MOST_RESPONSES = 10_000_000


@dataclass(frozen=True, eq=False)
class ScoredClaims:
    """Claims with their scores.

    Attributes:
        values: scores in [0, 1], (n, k), a column for each given score.
        responses: response ids (n,).
        groups: group of each claim (n,), the same for all claims of a response.
        dependencies: edges between claims of a response.
        names: names of the k scores; if empty, they are those of the combination, in its order.
    """

    values: Floats
    responses: Sequence[Hashable]
    groups: Sequence[Group]
    dependencies: Dependencies = field(
        default_factory=lambda: Dependencies(np.empty(0, np.int64), np.empty(0, np.int64))
    )
    names: Sequence[str] = ()

    def of(self, kept: NDArray[np.bool_]) -> ScoredClaims:
        """Claims in a mask, (n,), that contains whole responses."""
        positions = np.flatnonzero(kept).tolist()
        return ScoredClaims(
            self.values[kept],
            [self.responses[position] for position in positions],
            [self.groups[position] for position in positions],
            self.dependencies.of(kept),
            self.names,
        )

    def columns(self, names: Sequence[str]) -> Floats:
        """Scores of some names, (n, number of names).

        Raises:
            InputError: if there is no score of a name, or scores have no names and their number
                differs.
        """
        n_scores = self.values.shape[1]
        # A single score may have any name.
        if n_scores == len(names) == 1:
            return self.values
        if not self.names:
            if n_scores != len(names):
                raise InputError(
                    f"there are {n_scores} scores without names for {', '.join(names)}; name the "
                    "scores of the claims"
                )
            return self.values
        for name in names:
            if name not in self.names:
                raise InputError(unknown_name(f"the score {name!r}", name, self.names))
        return self.values[:, [self.names.index(name) for name in names]]

    def scores(self, combination: Combination) -> Floats:
        """Score of each claim, (n,), lowered to the lowest among the claims that it depends on.

        Raises:
            InputError: as `columns`.
        """
        alone = combination.scores(self.columns(combination.names))
        return supported_scores(alone, self.dependencies)

    def masks(self) -> dict[Group, NDArray[np.bool_]]:
        """Mask of the claims of each group, (n,), in order of first appearance."""
        grouping = group_by_response(self.groups)
        return {
            self.groups[int(np.argmax(grouping.index == number))]: grouping.index == number
            for number in range(len(grouping.responses))
        }


@dataclass(frozen=True, eq=False)
class CalibratedGroup:
    """Calibration of one group.

    Attributes:
        filter: the threshold with its guarantee.
        statistics: statistics of its labeled responses, as `response_statistics` returns them.
        trial: performance on random halves; None with fewer than two responses.
    """

    filter: ConformalFilter
    statistics: Mapping[str, Floats]
    trial: HeldOut | None


@dataclass(frozen=True, eq=False)
class Calibrator:
    """Calibrated filter of claims.

    Attributes:
        promise: the guarantee, which holds in each group.
        combination: the score that thresholds apply to.
        groups: calibration by group.
        by: columns that make groups; none for a single group.
        depends: column of the claims that a claim depends on; None if claims are independent.
        n_choosing: labeled responses that chose the score and did not calibrate it.
        edited: whether its file has no digest, so that it cannot be verified as unmodified.
        candidates: the scores that were considered, the best first; none from a file.
    """

    promise: Promise
    combination: Combination
    groups: Mapping[Group, CalibratedGroup]
    by: tuple[str, ...] = ()
    depends: str | None = None
    n_choosing: int = 0
    edited: bool = False
    candidates: tuple[Candidate, ...] = ()

    def keep(self, claims: ScoredClaims) -> NDArray[np.bool_]:
        """Mask of the kept claims, (n,); no claim of a group without calibration is kept."""
        scores = claims.scores(self.combination)
        kept = np.zeros(scores.size, dtype=np.bool_)
        for group, inside in claims.masks().items():
            if group in self.groups:
                kept[inside] = self.groups[group].filter.keep(scores[inside])
        return kept

    def exchangeability(self, claims: ScoredClaims) -> dict[tuple[Group, str], float]:
        """P-values by group and statistic, as `exchangeability`, corrected for all of them.

        Groups without calibration are left out.
        """
        scores = claims.scores(self.combination)
        known = {group: inside for group, inside in claims.masks().items() if group in self.groups}
        values = {}
        for group, inside in known.items():
            responses = [claims.responses[position] for position in np.flatnonzero(inside).tolist()]
            new = response_statistics(scores[inside], responses)
            for name, value in compared(self.groups[group].statistics, new).items():
                values[group, name] = min(1.0, len(known) * value)
        return values

    @property
    def trial(self) -> HeldOut | None:
        """Performance on random halves of all groups, weighted by their responses."""
        tried = [(each.filter.n_responses, each.trial) for each in self.groups.values()]
        weights = [n for n, trial in tried if trial is not None]
        trials = [asdict(trial) for _, trial in tried if trial is not None]
        if not trials:
            return None
        names = [each.name for each in fields(HeldOut) if each.name != "n_splits"]
        means = {
            name: float(np.average([trial[name] for trial in trials], weights=weights))
            for name in names
        }
        return HeldOut(**means, n_splits=trials[0]["n_splits"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrator as JSON.

        Raises:
            InputError: if the file cannot be written.
        """
        content = learned_content(_FILE, _as_plain(self), signed=not self.edited)
        write_text(path, f"{json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)}\n")


def fit_calibrator(
    claims: ScoredClaims,
    y: Floats,
    names: Sequence[str],
    promise: Promise,
    *,
    by: Sequence[str] = (),
    depends: str | None = None,
    choosing: float = 0.5,
    n_splits: int = 200,
    seed: int = 0,
) -> Calibrator:
    """Calibrate a threshold for each group on labeled responses.

    The guarantee holds in each group for a new response that is exchangeable with the labeled
    responses of its group (Mondrian conformal prediction). With several scores, a random part of
    the responses of each group chooses the score, and the others calibrate it: given the score,
    the calibrating responses are exchangeable with a new response, so that the guarantee holds.

    Claims without a label are not counted. Their scores still limit the scores of dependent claims.

    Args:
        claims: the claims of the labeled responses.
        y: labels (n,): 1, 0, or nan where unlabeled.
        names: names of the k scores.
        promise: the guarantee.
        by: columns that make groups, recorded for readers.
        depends: column of dependencies, recorded for readers.
        choosing: share of the responses that choose between several scores.
        n_splits: random halves of the responses on which the guarantee is tried.
        seed: seed of the parts and halves.

    Raises:
        InputError: if fewer than two responses with labels are left to choose or to calibrate.
    """
    claims = replace(claims, names=names)
    grouping = group_by_response(claims.responses)
    labeled = (grouping.sums(~np.isnan(y)) > 0)[grouping.index]
    combination, chose = Combination((names[0],)), np.zeros(y.size, np.bool_)
    candidates: tuple[Candidate, ...] = ()
    if len(names) > 1:
        chose = _choosing(claims, labeled, choosing, seed)
        part = claims.of(chose)
        candidates = choose_scores(
            part.values, y[chose], part.responses, part.groups, names, promise,
            adjust=lambda scores: supported_scores(scores, part.dependencies), seed=seed,
        )  # fmt: skip
        combination = candidates[0].combination
    scores = claims.scores(combination)
    calibrations = {}
    for group, inside in claims.masks().items():
        counts = inside & ~np.isnan(y) & ~chose
        if not counts.any():
            continue
        of_group = grouping.of(counts)
        n_responses = len(of_group.responses)
        trial = None
        if n_responses >= FEWEST:
            trial = held_out(
                scores[counts], y[counts], of_group.index, n_splits=n_splits, seed=seed,
                precision=promise.precision, guarantee=promise.guarantee,
                confidence=0.5 if math.isnan(promise.confidence) else promise.confidence,
            )  # fmt: skip
        calibrations[group] = CalibratedGroup(
            filter_of(scores[counts], y[counts], of_group, promise),
            response_statistics(scores[inside], grouping.of(inside).index),
            trial,
        )
    n_choosing = len(grouping.of(chose).responses) if chose.any() else 0
    return Calibrator(
        promise,
        combination,
        MappingProxyType(calibrations),
        tuple(by),
        depends,
        n_choosing,
        candidates=candidates,
    )


def _choosing(
    claims: ScoredClaims, labeled: NDArray[np.bool_], share: float, seed: int
) -> NDArray[np.bool_]:
    """Mask of the claims of responses for choosing the score, a random part of each group."""
    grouping = group_by_response(claims.responses)
    generator = np.random.default_rng((seed, 1))
    chosen: list[int] = []
    n_labeled = 0
    for inside in claims.masks().values():
        responses = np.unique(grouping.index[inside & labeled])
        n_labeled += responses.size
        # Rounded down: a group with one response calibrates.
        n_chosen = int(share * responses.size)
        chosen += generator.permutation(responses)[:n_chosen].tolist()
    if len(chosen) < FEWEST or n_labeled - len(chosen) < FEWEST:
        raise InputError(
            f"{counted(n_labeled, 'response')} with labels cannot both choose between scores and "
            f"calibrate the chosen one; label {2 * FEWEST} or more, or give one score"
        )
    return np.asarray(np.isin(grouping.index, chosen))


def read_calibrator(path: str | os.PathLike[str]) -> Calibrator:
    """Read a calibrator from a file that `Calibrator.save` wrote.

    Raises:
        InputError: if the file is not a calibrator, has another version, or is damaged.
    """
    return calibrator_of(read_text(path), path)


def calibrator_of(text: str, path: str | os.PathLike[str] = "the calibrator") -> Calibrator:
    """Read a calibrator from the text of its file.

    Args:
        text: text written by `Calibrator.save`.
        path: name of the file in errors.

    Raises:
        InputError: as `read_calibrator`.
    """
    calibrator, signed = read_learned(text, path, _FILE, _from_plain)
    return calibrator if signed else replace(calibrator, edited=True)


# ----------------------------------------------------------------------------------------- file


def _as_plain(calibrator: Calibrator) -> dict[str, Any]:
    promise, combination = calibrator.promise, calibrator.combination
    return {
        "guarantee": str(promise.guarantee),
        "precision": promise.precision,
        "confidence": None if math.isnan(promise.confidence) else promise.confidence,
        "scores": {
            "names": [*combination.names],
            "weights": [*combination.weights],
            "constant": combination.constant,
        },
        "choosing_responses": calibrator.n_choosing,
        "by": [*calibrator.by],
        "depends": calibrator.depends,
        "groups": [
            {
                "values": [*group],
                "labeled_responses": each.filter.n_responses,
                "threshold": (
                    each.filter.threshold if each.filter.status is ConformalStatus.OK else None
                ),
                "status": str(each.filter.status),
                "trial": None if each.trial is None else asdict(each.trial),
                "statistics": {name: each.statistics[name].tolist() for name in STATISTICS},
            }
            for group, each in calibrator.groups.items()
        ],
    }


_SHARES = tuple(each.name for each in fields(HeldOut) if each.name != "n_splits")


def _from_plain(content: Fields) -> Calibrator:
    content.only(
        *("guarantee", "precision", "confidence", "scores", "choosing_responses", "by"),
        *("depends", "groups"),
    )
    guarantee = Guarantee(content.text("guarantee", tuple(map(str, Guarantee))))
    precision = content.number("precision", 0.0, 1.0)
    in_the_mean = guarantee is Guarantee.MEAN
    if precision == 0 or (in_the_mean and precision == 1):
        content.refuse("precision", "above 0, and below 1 in the mean")
    if guarantee is Guarantee.COHERENT and precision != 1:
        content.refuse("precision", "1, as in a coherent set")
    confidence = content.optional_number("confidence", 0.0, 1.0)
    if (confidence is None) is not in_the_mean or confidence in (0, 1):
        wanted = "null in the mean" if in_the_mean else "a number between 0 and 1"
        content.refuse("confidence", wanted)
    promise = Promise(precision, math.nan if confidence is None else confidence, guarantee)
    by = content.texts("by")
    groups = [_group_from(each, promise, len(by)) for each in content.objects("groups")]
    if not groups or len(dict(groups)) < len(groups) or (not by and len(groups) > 1):
        content.refuse("groups", "a list of one group or more with different values")
    return Calibrator(
        promise,
        _combination_from(content.object("scores")),
        MappingProxyType(dict(groups)),
        by,
        content.optional_text("depends"),
        content.whole("choosing_responses", 0, _MOST_RESPONSES),
    )


def _combination_from(content: Fields) -> Combination:
    content.only("names", "weights", "constant")
    names = content.texts("names")
    if not names:
        content.refuse("names", "a list of one name or more")
    weights = content.numbers("weights", None, -_MOST_WEIGHT, _MOST_WEIGHT)
    constant = content.number("constant", -_MOST_WEIGHT, _MOST_WEIGHT)
    if len(weights) != (len(names) if len(names) > 1 else 0):
        content.refuse("weights", "a weight for each of several names, and none for one")
    if not weights and constant:
        content.refuse("constant", "0 if a score is used as given")
    return Combination(names, tuple(weights), constant)


def _group_from(content: Fields, promise: Promise, width: int) -> tuple[Group, CalibratedGroup]:
    content.only("values", "labeled_responses", "threshold", "status", "trial", "statistics")
    values = content.items("values", width)
    if not all(isinstance(value, str) for value in values):
        content.refuse("values", "a list of texts")
    n_responses = content.whole("labeled_responses", 1, _MOST_RESPONSES)
    status = ConformalStatus(content.text("status", tuple(map(str, ConformalStatus))))
    if (status is ConformalStatus.KEEPS_NONE) != (n_responses < promise.fewest_responses):
        content.refuse("status", f"that of {counted(n_responses, 'labeled response')}")
    threshold = content.optional_number("threshold", 0.0, 1.0)
    if (threshold is None) == (status is ConformalStatus.OK):
        content.refuse("threshold", "a number if the status is ok, and null if not")
    if threshold is None:
        threshold = KEEP_ALL if status is ConformalStatus.KEEPS_ALL else KEEP_NONE
    chosen = ConformalFilter(
        threshold, promise.precision, promise.confidence, promise.guarantee, n_responses, status
    )
    statistics = _statistics_from(content.object("statistics"), n_responses)
    trial = None if content.value["trial"] is None else _trial_from(content.object("trial"))
    return tuple(values), CalibratedGroup(chosen, statistics, trial)


def _statistics_from(content: Fields, n_responses: int) -> dict[str, Floats]:
    content.only(*STATISTICS)
    mean, size, share = STATISTICS
    values = {
        mean: content.numbers(mean, None, 0.0, 1.0),
        size: content.numbers(size, None, 1.0),
        share: content.numbers(share, None, 0.0, 1.0),
    }
    # Responses without a label have statistics too.
    if len(values[mean]) < n_responses:
        content.refuse(mean, f"a list of {n_responses} or more")
    for name in STATISTICS:
        if len(values[name]) != len(values[mean]):
            content.refuse(name, f"a list of {len(values[mean])}")
    return {name: np.array(numbers) for name, numbers in values.items()}


def _trial_from(content: Fields) -> HeldOut:
    content.only(*_SHARES, "n_splits")
    shares = {name: content.number(name, 0.0, 1.0) for name in _SHARES}
    return HeldOut(**shares, n_splits=content.whole("n_splits", 1))
