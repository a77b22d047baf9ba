"""Scores of many samples of the same forecasts, and isotonic fits of many rows (compiled).

A sample counts each response a whole number of times, as a bootstrap by responses does. Isotonic
fits pool adjacent violators (Ayer, Brunk, Ewing, Reid & Silverman 1955, "An empirical distribution
function for sampling with incomplete information"); they decompose the Brier score into
miscalibration, discrimination and uncertainty (Dimitriadis, Gneiting & Jordan 2021, "Stable
reliability diagrams for probabilistic classifiers"). With n_b the weight and s_b the share of true
atoms of block b, n the total weight and s the overall share,

    B = MCB - DSC + UNC    MCB = B - B'    DSC = UNC - B'    UNC = s (1 - s)
    B' = sum_b n_b s_b (1 - s_b) / n

where B is the Brier score of the forecasts, and B' the Brier score of the isotonic fit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import kernel

MISCALIBRATION, DISCRIMINATION, AUROC, ECE, SLOPE, INTERCEPT, AURC = range(7)
N_SCORES = 7

_MOST_ITERATIONS = 60
_CONVERGED = 1e-6
_EULER_GAMMA = 0.5772156649015329


@kernel
def isotonic_blocks(sums, weights, values, sizes):
    """Pool adjacent violators, and return the number of blocks.

    Args:
        sums: weighted sum of each point, (m,); points without weight are left out.
        weights: weight of each point, (m,).
        values: output (m,): the sums of the blocks come first.
        sizes: output (m,): the weights of the blocks come first.
    """
    last = -1
    for point in range(len(weights)):
        if weights[point] <= 0:
            continue
        last += 1
        # Each point is a block at first.
        values[last], sizes[last] = sums[point], weights[point]
        # Means of blocks must ascend: other blocks are pooled. Products avoid a division.
        while last > 0 and values[last - 1] * sizes[last] >= values[last] * sizes[last - 1]:
            values[last - 1] += values[last]
            sizes[last - 1] += sizes[last]
            last -= 1
    return last + 1


@kernel
def isotonic_gains(weight, observed, forecast, of_mean, gains):
    """Write the reduction of the Brier score by isotonic recalibration for each row.

    Args:
        weight: share of each cell, (n_cells,).
        observed: shares of true atoms, (n_rows, n_cells), which may be outside [0, 1].
        forecast: forecast of each cell, (n_cells,).
        of_mean: whether the forecast is the overall share of true atoms, in place of `forecast`.
        gains: the result, (n_rows,).
    """
    n_cells = len(weight)
    values, sizes, sums = np.empty(n_cells), np.empty(n_cells), np.empty(n_cells)
    total = weight.sum()
    for row in range(len(observed)):
        brier = mean = 0.0
        for cell in range(n_cells):
            share = observed[row, cell]
            sums[cell] = weight[cell] * share
            mean += sums[cell]
            if not of_mean:
                # Brier score before: true atoms lose (1 - p)^2, false ones p^2.
                rest = weight[cell] - sums[cell]
                brier += sums[cell] * (1 - forecast[cell]) ** 2 + rest * forecast[cell] ** 2
        if of_mean:
            inside = min(max(mean, 0.0), 1.0)
            brier = mean * (1 - inside) ** 2 + (total - mean) * inside**2
        for block in range(isotonic_blocks(sums, weight, values, sizes)):
            # After: a block with the share s of true atoms loses s (1 - s) an atom.
            share = min(max(values[block] / sizes[block], 0.0), 1.0)
            brier -= sizes[block] * share * (1 - share)
        gains[row] = brier


class Points(NamedTuple):
    """The m distinct probabilities of forecasts, with the data that scores need.

    Attributes:
        p: float64 (m,), the probabilities, ascending.
        logit: float64 (m,), their logits.
        counted: float64 (m,), 1 for points in the logistic fit, 0 for others.
        bins: int64, first point of each bin of the calibration error.
        order: int64 (m,), the points in the order in which they are kept for AURC.
        last: int64 (k,), position in that order of the last point of each tie.
        counts_false: bool (m,), whether the errors of a point are its false atoms rather than its
            true ones.
        first: int64 (m,), position of the first atom of each point.
    """

    p: NDArray[np.float64]
    logit: NDArray[np.float64]
    counted: NDArray[np.float64]
    bins: NDArray[np.int64]
    order: NDArray[np.int64]
    last: NDArray[np.int64]
    counts_false: NDArray[np.bool_]
    first: NDArray[np.int64]


class Atoms(NamedTuple):
    """The n atoms, in the order of the points.

    Attributes:
        response: int64 (n,), response of each atom.
        weights: float64 (n,), weight of each atom.
        y: float64 (n,), label of each atom.
    """

    response: NDArray[np.int64]
    weights: NDArray[np.float64]
    y: NDArray[np.float64]


@kernel
def score_samples(points, atoms, start, multiplicity, wanted, scores):
    """Write scores of samples in which each response occurs a given number of times.

    Args:
        points: the `Points`.
        atoms: the `Atoms`.
        start: float64 (2,), initial intercept and slope of the logistic fit.
        multiplicity: float64 (n_samples, n_responses), how often each response occurs.
        wanted: bool (7,), whether to compute each score; the others are nan.
        scores: float64 (n_samples, 7), the result; nan if a score is not defined.
    """
    p, logit, counted, bins, order, last, counts_false, first = points
    response, weights, y = atoms
    m = len(p)
    weight, true = np.empty(m), np.empty(m)
    values, sizes = np.empty(m), np.empty(m)
    for sample in range(len(multiplicity)):
        total = total_true = 0.0
        for point in range(m):
            stop = first[point + 1] if point + 1 < m else len(y)
            point_weight = point_true = 0.0
            for atom in range(first[point], stop):
                each = weights[atom] * multiplicity[sample, response[atom]]
                point_weight += each
                point_true += each * y[atom]
            weight[point], true[point] = point_weight, point_true
            total += point_weight
            total_true += point_true
        scores[sample, :] = np.nan
        if total <= 0:
            continue
        if wanted[MISCALIBRATION] or wanted[DISCRIMINATION]:
            brier = after = 0.0
            for point in range(m):
                brier += true[point] * (1 - p[point]) ** 2
                brier += (weight[point] - true[point]) * p[point] ** 2
            for block in range(isotonic_blocks(true, weight, values, sizes)):
                after += values[block] * (1 - values[block] / sizes[block])
            # MCB = before - after, DSC = UNC - after, with UNC = rate (1 - rate).
            rate = total_true / total
            scores[sample, MISCALIBRATION] = (brier - after) / total
            scores[sample, DISCRIMINATION] = rate * (1 - rate) - after / total
        if wanted[AUROC] and 0 < total_true < total:
            # The share of pairs of a true and a false atom that p orders, ties counting half.
            below = ordered = 0.0
            for point in range(m):
                false = weight[point] - true[point]
                ordered += true[point] * (below + false / 2)
                below += false
            scores[sample, AUROC] = ordered / (total_true * below)
        if wanted[ECE]:
            # ECE = sum over bins of |sum of (y - p)| / n.
            error = 0.0
            for number in range(len(bins)):
                stop = bins[number + 1] if number + 1 < len(bins) else m
                distance = 0.0
                for point in range(bins[number], stop):
                    distance += true[point] - weight[point] * p[point]
                error += abs(distance)
            scores[sample, ECE] = error / total
        if wanted[SLOPE] or wanted[INTERCEPT]:
            line = _fit_line(logit, counted, weight, true, start)
            scores[sample, INTERCEPT], scores[sample, SLOPE] = line
        if wanted[AURC]:
            scores[sample, AURC] = _risk_area(weight, true, order, last, counts_false) / total


@kernel
def _fit_line(logit, counted, weight, true, start):
    """Return intercept and slope of a logistic fit; nan if there is none (`fit_logistic`).

    Newton steps are damped if a logit would change by more than 0.1.

    Args:
        logit, counted, start: as in `score_samples`.
        weight, true: float64 (m,), weight of all atoms and of the true atoms of each point.
    """
    m = len(logit)
    first_true = first_false = -1
    last_true = last_false = n_present = -1
    for point in range(m):
        if counted[point] * weight[point] > 0:
            n_present += 1
            if true[point] > 0:
                first_true = point if first_true < 0 else first_true
                last_true = point
            if weight[point] - true[point] > 0:
                first_false = point if first_false < 0 else first_false
                last_false = point
    # A fit needs both classes, two probabilities, and no threshold that separates the classes.
    if first_true < 0 or first_false < 0 or n_present < 1:
        return np.nan, np.nan
    if first_true >= last_false or first_false >= last_true:
        return np.nan, np.nan
    intercept, slope = start
    for _ in range(_MOST_ITERATIONS):
        of_intercept = of_slope = total = cross = square = 0.0
        for point in range(m):
            size = counted[point] * weight[point]
            if size <= 0:
                continue
            x = logit[point]
            predicted = 1 / (1 + math.exp(-(intercept + slope * x)))
            residual = true[point] - size * predicted
            information = size * predicted * (1 - predicted)
            of_intercept += residual
            of_slope += residual * x
            total += information
            cross += information * x
            square += information * x * x
        # A Newton step: the inverse of the information, 2 x 2, times the score.
        determinant = total * square - cross * cross
        if not determinant > 0:
            return np.nan, np.nan
        up = (square * of_intercept - cross * of_slope) / determinant
        turn = (total * of_slope - cross * of_intercept) / determinant
        # The change of the logit is linear in x: it is largest at one of the ends.
        largest = max(abs(up + turn * logit[0]), abs(up + turn * logit[m - 1]))
        if not largest < np.inf:
            return np.nan, np.nan
        if largest > 0.1:
            damping = math.log1p(largest) / largest
            up, turn = up * damping, turn * damping
        intercept, slope = intercept + up, slope + turn
        if largest < _CONVERGED:
            return intercept, slope
    return np.nan, np.nan


@kernel
def _risk_area(weight, true, order, last, counts_false):
    """Return the sum of the risk over the first 1, 2, ... atoms up to all (`risk_areas`).

    Args:
        weight, true: as in `_fit_line`.
        order, last, counts_false: as in `Points`.
    """
    kept = wrong = area = reached = 0.0
    position = 0
    for tie in range(len(last)):
        added = errors = 0.0
        while position <= last[tie]:
            point = order[position]
            added += weight[point]
            errors += weight[point] - true[point] if counts_false[point] else true[point]
            position += 1
        if added > 0:
            # Within a tie atoms come in any order: errors grow at its rate. The sum of 1 / n over
            # the tie is a difference of harmonic numbers.
            rate = errors / added
            after = _harmonic_number(kept + added)
            area += (wrong - rate * kept) * (after - reached)
            kept, wrong, reached = kept + added, wrong + errors, after
    return area + wrong


@kernel
def _harmonic_number(x):
    """Return the harmonic number of a real x: the digamma function at x + 1, plus Euler's constant.

    The recurrence moves x to where three terms of the asymptotic series are below rounding.
    """
    below = 0.0
    while x < 40:
        x += 1
        below += 1 / x
    inverse = 1 / (x * x)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse / 252))
    return math.log(x) + 0.5 / x - series + _EULER_GAMMA - below
