"""Whether evidence without labels is a mixture of what was learned of true and of false claims.

An estimate of the share of true claims rests on evidence that is distributed, given truth, as it
was when learned. Then every distribution of evidence among new claims is a mixture of that among
the claims labelled true and that among those labelled false, with the share as its weight. Where
retrieval or the relation model changed, no weight may give it: that is tested here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.intervals import response_weights
from calibration.validation import Floats, Integers
from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph

MOST_THRESHOLDS = 32
"""Distributions of a kind of evidence are compared at so many of its quantiles at most."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks for and against the claims of r responses.

    Attributes:
        values: float64 (n, 4), of each claim: its log odds by all evidence, and the numbers of
            relations with it, of those that support it and of those that contradict it.
        owners: int64 (n,), the response of each claim.
        n_responses: number of responses, r.
    """

    values: Floats
    owners: Integers
    n_responses: int

    def of(self, kept: Integers) -> Evidence:
        """The evidence of some claims, among the same responses."""
        return Evidence(self.values[kept], self.owners[kept], self.n_responses)


def evidence_of(graphs: Sequence[FactGraph], log_odds: Floats, owners: Integers) -> Evidence:
    """Evidence of all atoms of responses, in order.

    Args:
        graphs: the responses.
        log_odds: of each atom by all evidence, (n,).
        owners: the response of each, (n,).
    """
    counts = [row for graph in graphs for row in _counts(graph)]
    # Rounded, since equal evidence in two responses must not differ by the order of a sum.
    columns = np.round(log_odds, 9)[:, np.newaxis], np.array(counts, np.float64).reshape(-1, 3)
    return Evidence(np.concatenate(columns, axis=1), owners, len(graphs))


def mixture_p_value(
    true: Evidence, false: Evidence, new: Evidence, n_bootstrap: int, seed: int
) -> float:
    """P-value of the hypothesis that new evidence is a mixture of that of true and false claims.

    The statistic is the squared distance of the distribution functions from their best mixture,
    summed over the kinds of evidence, each in units of what chance adds to it (of Cramer and von
    Mises, with a weight that is estimated by minimum distance). Its law is that of redrawn
    responses, of those learned from and of the new ones, recentred at the distance of the data
    (Hall and Horowitz 1996, Econometrica 64). Labels and claims of one response stay together.

    Args:
        true: of the claims labelled true, among the r responses that were learned from.
        false: of those labelled false, among the same.
        new: of all claims of s other responses.
        n_bootstrap: number of replicates.
        seed: seed of the replicates.

    Returns:
        The p-value, 1 where no evidence differs from claim to claim; nan for fewer than two
        responses on either side, or no claim of a kind.
    """
    parts = (true, false, new)
    if min(true.n_responses, new.n_responses) < 2 or not all(len(one.values) for one in parts):
        return np.nan
    thresholds = _thresholds(np.concatenate([one.values for one in parts]))
    kinds = np.repeat(np.arange(len(thresholds)), [len(own) for own in thresholds])
    if not kinds.size:
        return 1.0
    sums = [_below(one, thresholds) for one in parts]
    own = [_divided(one.sum(axis=0)) for one in sums]
    known, fresh = (
        np.concatenate(list(response_weights(one.n_responses, n_bootstrap, stream)))
        for one, stream in ((true, 2 * seed), (new, 2 * seed + 1))
    )
    drawn = []
    for value, part, weights in zip(own, sums, (known, known, fresh), strict=True):
        # The variance of a redrawn mean is too small by a factor of 1 - 1/R.
        factor = np.sqrt(len(part) / (len(part) - 1))
        drawn.append(value + factor * (_divided(weights @ part) - value))
    drawn = [one[np.isfinite(np.sum(drawn, axis=(0, 2)))] for one in drawn]
    scale = 1.0 / np.bincount(kinds)[kinds]
    # Each kind of evidence counts as much as its noise lets it: at first all alike.
    for _ in range(2):
        weight, distance = _nearest(own[0], own[1], own[2], scale)
        noise = (drawn[2] - drawn[1] - weight * (drawn[0] - drawn[1]) - distance) ** 2
        of_kind = np.bincount(kinds, noise.mean(axis=0))
        scale = 1.0 / np.maximum(of_kind, _LEAST_NOISE)[kinds]
    distance = _nearest(own[0], own[1], own[2], scale)[1]
    observed = float((scale * distance**2).sum())
    redrawn = _nearest(drawn[0], drawn[1], drawn[2] - distance, scale)[1]
    extreme = int(((scale * redrawn**2).sum(axis=1) >= observed).sum())
    return (extreme + 1) / (len(redrawn) + 1)


_LEAST_NOISE = 1e-12


def _nearest(true: Floats, false: Floats, new: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Weight in [0, 1] of the nearest mixture, (..., 1), and the distances from it, (..., c)."""
    apart, ahead = true - false, new - false
    size = (scale * apart**2).sum(axis=-1, keepdims=True)
    along = (scale * ahead * apart).sum(axis=-1, keepdims=True)
    weight = np.clip(np.divide(along, size, out=np.zeros_like(along), where=size > 0.0), 0.0, 1.0)
    return weight, ahead - weight * apart


def _thresholds(values: Floats) -> list[Floats]:
    """Of each kind of evidence the quantiles that part its values; none where all are alike."""
    found = []
    for column in np.sort(values, axis=0).T:
        at = np.linspace(0, len(column) - 1, MOST_THRESHOLDS + 1).astype(np.int64)
        quantiles = np.unique(column[at])
        found.append(quantiles[quantiles < column[-1]])
    return found


def _below(evidence: Evidence, thresholds: Sequence[Floats]) -> Floats:
    """Numbers of claims of each response up to each threshold, and of all, (r, c + 1)."""
    columns = [
        values[:, np.newaxis] <= own
        for values, own in zip(evidence.values.T, thresholds, strict=True)
    ]
    reached = np.concatenate([*columns, np.ones((len(evidence.values), 1), bool)], axis=1)
    sums = np.zeros((evidence.n_responses, reached.shape[1]))
    np.add.at(sums, evidence.owners, reached)
    return sums


def _divided(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[..., :-1] / sums[..., -1:])


def _counts(graph: FactGraph) -> list[list[int]]:
    """Of each atom: relations with it, those that support it, those that contradict it."""
    counts = {atom: [0, 0, 0] for atom in graph.atom_ids}
    for relation in graph.relations:
        for end in {relation.source, relation.target} & counts.keys():
            counts[end][0] += 1
            if relation.kind is RelationKind.CONTRADICTION:
                counts[end][2] += 1
            elif relation.kind is not RelationKind.NEUTRAL:
                counts[end][1] += 1
    return list(counts.values())
