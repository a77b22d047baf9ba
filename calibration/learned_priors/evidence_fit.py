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

from calibration.validation import Floats, Integers
from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph

MOST_THRESHOLDS = 32
"""Distributions of a kind of evidence are compared at so many of its quantiles at most."""

LEAST_TAIL = 0.05
"""Evidence as rare is not compared: few responses show none of it, and its noise hides the rest."""


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
    responses: of those learned from, and once of the new ones, recentred at the distance of the
    data (Hall and Horowitz 1996, Econometrica 64), once of as many of those learned from, their
    claims weighted to the mixture. The larger p-value counts: few new responses show too little of
    how responses vary, and those learned from may vary less. Claims of one response stay together.

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
    of_true, of_false, of_new = (_below(one, thresholds) for one in parts)
    totals = [one.sum(axis=0) for one in (of_true, of_false, of_new)]
    own_true, own_false, own_new = map(_divided, totals)
    generator = np.random.default_rng(seed)

    def draws(size: int, of: int) -> Floats:
        return generator.multinomial(size, np.full(of, 1.0 / of), n_bootstrap).astype(np.float64)

    def moves(weights: Floats, sums: Floats) -> Floats:
        # The variance of a redrawn mean is too small by a factor of 1 - 1/R.
        factor = np.sqrt(len(sums) / (len(sums) - 1))
        return np.asarray(factor * (_divided(weights @ sums) - _divided(sums.sum(axis=0))))

    known = draws(true.n_responses, true.n_responses)
    like_new = draws(new.n_responses, true.n_responses)
    moved_true, moved_false = moves(known, of_true), moves(known, of_false)
    moved_new = moves(draws(new.n_responses, new.n_responses), of_new)
    scale = 1.0 / np.bincount(kinds)[kinds]
    laws: list[tuple[Floats, Floats, Floats]] = []
    # Each kind of evidence counts as much as its noise lets it: at first all alike.
    for _ in range(2):
        weight = float(_nearest(own_true, own_false, own_new, scale)[0][0])
        mixed = weight / totals[0][-1] * of_true + (1.0 - weight) / totals[1][-1] * of_false
        centre = weight * own_true + (1.0 - weight) * own_false
        laws, noise = [], []
        for moved in (moved_new, _divided(like_new @ mixed) - centre):
            law = own_true + moved_true, own_false + moved_false, centre + moved
            kept = np.isfinite(np.sum(law, axis=(0, 2)))
            drawn_true, drawn_false, drawn_new = (one[kept] for one in law)
            laws.append((drawn_true, drawn_false, drawn_new))
            mixture = weight * drawn_true + (1.0 - weight) * drawn_false
            noise.append(np.square(drawn_new - mixture).mean(axis=0))
        of_kind = np.bincount(kinds, np.max(noise, axis=0))
        scale = 1.0 / np.maximum(of_kind, _LEAST_NOISE)[kinds]
    observed = _size(_nearest(own_true, own_false, own_new, scale)[1], scale)
    p_values = []
    for law in laws:
        sizes = _size(_nearest(*law, scale)[1], scale)
        p_values.append((int((sizes >= observed).sum()) + 1) / (len(sizes) + 1))
    return max(p_values)


_LEAST_NOISE = 1e-12


def _size(distance: Floats, scale: Floats) -> Floats:
    """Statistic of distances, (..., c)."""
    return np.asarray((scale * distance**2).sum(axis=-1))


def _nearest(true: Floats, false: Floats, new: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Weight in [0, 1] of the nearest mixture, (..., 1), and the distances from it, (..., c)."""
    apart, ahead = true - false, new - false
    size = (scale * apart**2).sum(axis=-1, keepdims=True)
    along = (scale * ahead * apart).sum(axis=-1, keepdims=True)
    weight = np.clip(np.divide(along, size, out=np.zeros_like(along), where=size > 0.0), 0.0, 1.0)
    return weight, ahead - weight * apart


def _thresholds(values: Floats) -> list[Floats]:
    """Of each kind of evidence the quantiles that part its values, rare ones aside."""
    found = []
    for column in np.sort(values, axis=0).T:
        at = np.linspace(0, len(column) - 1, MOST_THRESHOLDS + 1).astype(np.int64)
        quantiles = np.unique(column[at])
        share = np.searchsorted(column, quantiles, side="right") / len(column)
        found.append(quantiles[(share >= LEAST_TAIL) & (share <= 1.0 - LEAST_TAIL)])
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
