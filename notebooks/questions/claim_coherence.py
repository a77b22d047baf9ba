"""Claim coherence: which readout detects planted conflicts?

Question: how do readouts of the coherence of claims rank responses, and how long do they take?
Data: drawn responses of claims alone, with conflicts planted at known rates.
Rival: the planted conflicts per claim, and every other readout.

    python notebooks/questions/claim_coherence.py --out docs/results/claim-coherence

It takes 46 seconds of processor time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.figures import line_figure
from experiments.findings.notebook import answer_question
from experiments.findings.table import Column, Table, columns_as, data_frame
from factormodels.nouns import counted
from factormodels.synthetic import incoherent_response
from factormodels.synthetic.incoherent import PLANTED_KEY
from inference.tasks import coherence

READOUTS = {
    "mean_marginal": "mean marginal",
    "no_active_conflict": "no active conflict",
    "reified": "reified",
    "position": "position of log Z",
    "consistency": "consistency",
    "agreement": "agreement",
}
"""Readouts, and what tables call them."""

CLAIMS, RATES, ENTAILMENTS = (8, 20, 60), (0.0, 0.05, 0.1, 0.2, 0.3), (0.0, 0.3, 1.0)
"""Numbers of claims, planted conflicts per claim and entailments per claim on average, of which one
each is drawn for a response."""

PRIORS = (0.5, 0.99)
"""Priors of all claims."""

_REPEATS = 50


def claim_coherence(
    *,
    responses: int = 500,
    encodings: tuple[str, ...] = ("implication", "conditional", "mixture"),
    timed: tuple[int, ...] = (30, 100, 300),
    seed: int = 0,
) -> Artifacts:
    """Return the rank correlation of every readout with what was planted, and times of readouts.

    Args:
        responses: number of responses.
        encodings: encodings of relations.
        timed: numbers of claims of the responses that are timed.
        seed: seed of the responses.
    """
    frame = data_frame(correlation_rows(responses, encodings, seed))
    times = data_frame(time_rows(timed))
    long = frame.melt(["encoding", "prior"], list(READOUTS), "readout", "correlation")
    long["setting"] = long["encoding"] + ", " + long["prior"].astype(str)
    long["readout"] = long["readout"].map(READOUTS)
    figure = line_figure(long, "setting", {"correlation": "rank correlation"}, by="readout")
    columns = (
        *columns_as("encoding | prior:2"),
        *(Column(name, title, digits=2) for name, title in READOUTS.items()),
    )
    drawn = counted(responses, "response")
    caption = f"Rank correlation with planted conflicts per claim, {drawn}."
    timed = Table(
        times,
        columns_as("claims:0 | relations:0 | milliseconds:1 all readouts, ms"),
        "Processor time of all readouts of a response together, without compiling.",
        note=f"Least of {_REPEATS}.",
    )
    note = "The nearer to -1, the better."
    return Artifacts(
        {"readouts": Table(frame, columns, caption, note=note), "times": timed},
        {"correlations": PaperFigure(figure, long, "rank correlation of every readout")},
    )


def correlation_rows(
    responses: int, encodings: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield a row for each encoding and prior: Spearman's correlation of every readout."""
    rng = np.random.default_rng(seed)
    drawn = [
        incoherent_response(
            int(rng.choice(CLAIMS)),
            float(rng.choice(RATES)),
            entailments=float(rng.choice(ENTAILMENTS)),
            seed=rng,
        )
        for _ in range(responses)
    ]
    planted = [graph.metadata[PLANTED_KEY] / len(graph.atoms) for graph in drawn]
    for encoding, prior in ((encoding, prior) for encoding in encodings for prior in PRIORS):
        coherences = [
            coherence(graph.compiled_for(encoding), encoding, prior=prior) for graph in drawn
        ]
        values = {name: [getattr(each, name) for each in coherences] for name in READOUTS}
        yield {
            "encoding": encoding,
            "prior": prior,
            **{name: float(spearmanr(column, planted)[0]) for name, column in values.items()},
        }


def time_rows(sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the processor time of all readouts for a response of each size."""
    for n in sizes:
        facts = incoherent_response(n, 0.1, seed=0).compiled
        seconds = []
        for _ in range(_REPEATS + 1):
            start = time.process_time()
            claim_coherence = coherence(facts, prior=0.99)
            seconds.append(time.process_time() - start)
        # The first compiles what the others use.
        yield {
            "claims": n,
            "relations": claim_coherence.n_relations,
            "milliseconds": 1e3 * min(seconds[1:]),
        }


if __name__ == "__main__":
    answer_question(claim_coherence, __file__)
