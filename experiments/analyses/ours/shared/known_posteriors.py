"""Exact posteriors of real graphs, or certified intervals of them, and what approximations err."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.scores.measures import verdicts
from calibration.validation import Floats
from experiments.analyses.posteriors import LabelledAtoms
from experiments.findings.interval_values import difference_of_clusters
from experiments.findings.table import named
from factormodels.fact_graph import FactGraph
from inference.batch import claim_posteriors
from inference.exact.backend import Exact
from inference.messages.frustration import frustration
from inference.mini_buckets.intervals import certified_intervals

WIDEST_REFERENCE = 0.01
"""Certified intervals that are wider anywhere bound errors; their middles are not posteriors."""


@dataclass(frozen=True, eq=False)
class KnownPosteriors:
    """What is known of the posteriors of labelled atoms.

    Attributes:
        p: the posterior: exact, or the middle of the certified interval, (n,).
        lower, upper: ends of the certified interval, `p` itself where that is exact, (n,).
        shape: what a table says of the graphs.
    """

    p: Floats
    lower: Floats
    upper: Floats
    shape: Mapping[str, float]

    @property
    def is_settled(self) -> bool:
        """Whether every posterior is known well enough to be scored."""
        return self.shape["interval"] <= WIDEST_REFERENCE


def known_posteriors(
    graphs: Sequence[FactGraph],
    encoding: str,
    atoms: LabelledAtoms,
    exact_seconds: float = 1.0,
    i_bound: int = 6,
    iterations: int = 5,
) -> KnownPosteriors:
    """Exact posteriors of labelled atoms, certified intervals of those of difficult graphs.

    Args:
        graphs: the responses.
        encoding: encoding of their relations.
        atoms: their labelled atoms.
        exact_seconds: a graph is difficult where exact inference is predicted to take longer.
        i_bound: of the mini-buckets of the intervals.
        iterations: of the same.
    """
    exact = Exact(search_seconds=0.2)
    factors = [graph.to_factor_graph(encoding) for graph in graphs]
    predicted = [exact.predict(each) for each in factors]
    easy = np.array([each.seconds <= exact_seconds for each in predicted])
    sizes = [len(graph.atoms) for graph in graphs]
    of_easy = np.repeat(easy, sizes)
    p = np.full(len(of_easy), np.nan)
    if easy.any():
        chosen = [graph for graph, fits in zip(graphs, easy, strict=True) if fits]
        p[of_easy] = claim_posteriors(chosen, encoding, exact)
    lower, upper = p.copy(), p.copy()
    starts = np.cumsum([0, *sizes])
    for start, graph, factor, fits in zip(starts, graphs, factors, easy, strict=False):
        if fits:
            continue
        names = [atom.id for atom in graph.atoms if atom.label is not None]
        intervals = certified_intervals(factor, names, i_bound=i_bound, iterations=iterations)
        for at, atom in enumerate(graph.atoms, start=int(start)):
            if atom.id in intervals:
                lower[at], upper[at] = intervals[atom.id].lower, intervals[atom.id].upper
                p[at] = (lower[at] + upper[at]) / 2
    frustrated = [frustration(each) for each in factors]
    cycles = sum(each.cycles for each in frustrated)
    shape = {
        "responses": len(graphs),
        "cycles": cycles,
        "frustrated": sum(each.frustrated for each in frustrated) / cycles if cycles else np.nan,
        "unbalanced": sum(not each.balanced for each in frustrated),
        "width": float(np.median([each.induced_width for each in predicted])),
        "widest": max(each.induced_width for each in predicted),
        "certified": int((~easy).sum()),
        "interval": float((upper - lower)[atoms.kept].max()),
    }
    return KnownPosteriors(p[atoms.kept], lower[atoms.kept], upper[atoms.kept], shape)


def error_row(p: Floats, known: KnownPosteriors, atoms: LabelledAtoms, seed: int) -> dict[str, Any]:
    """Error of an approximation, and what it moves in the Brier score.

    The error of an atom is its distance from the certified interval, which is at most what the
    posterior is off by, and at least that less the interval's width.
    """
    error = np.maximum(np.maximum(known.lower - p, p - known.upper), 0.0)
    row: dict[str, Any] = {"error": float(error.mean()), "largest": float(error.max())}
    if not known.is_settled:
        return row | {"verdicts": np.nan, **named("moved", (np.nan,) * 3), "digit": ""}
    losses = [(q - atoms.labels) ** 2 for q in (p, known.p)]
    first, second = ((atoms.grouping.sums(each), atoms.grouping.sizes) for each in losses)
    mean_loss, other = (float(each.mean()) for each in losses)
    # The first digit behind the point at which both are printed differently.
    moved = [digits for digits in range(1, 7) if f"{mean_loss:.{digits}f}" != f"{other:.{digits}f}"]
    return row | {
        "verdicts": float((np.sign(verdicts(p)) != np.sign(verdicts(known.p))).mean()),
        **named("moved", difference_of_clusters(first, second, seed)),
        "digit": str(moved[0]) if moved else "none of 6",
    }
