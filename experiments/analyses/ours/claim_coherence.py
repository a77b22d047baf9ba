"""Readouts of the coherence of claims against conflicts planted at known rates, and their times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.settings.limits import Count, Probability
from experiments.study.config import STRICT
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

Rate = Annotated[float, Field(ge=0)]
_REPEATS = 50


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Which responses are drawn, and how they are read.

    Attributes:
        responses: number of responses.
        claims: numbers of claims, of which one is drawn for each response.
        rates: planted conflicts per claim, likewise.
        entailments: entailments per claim on average, likewise.
        encodings: encodings of relations.
        priors: priors of all claims.
        timed: numbers of claims of the responses that are timed.
    """

    responses: Count = 500
    claims: tuple[Annotated[int, Field(ge=8)], ...] = (8, 20, 60)
    rates: tuple[Rate, ...] = (0.0, 0.05, 0.1, 0.2, 0.3)
    entailments: tuple[Rate, ...] = (0.0, 0.3, 1.0)
    encodings: tuple[Literal["implication", "conditional", "mixture"], ...] = (
        "implication",
        "conditional",
        "mixture",
    )
    priors: tuple[Probability, ...] = (0.5, 0.99)
    timed: tuple[Annotated[int, Field(ge=8)], ...] = (30, 100, 300)


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Rank correlation of every readout with what was planted, and how long readouts take."""
    frame = data_frame(correlation_rows(settings, context))
    times = data_frame(time_rows(settings.timed))
    long = frame.melt(["encoding", "prior"], list(READOUTS), "readout", "correlation")
    long["setting"] = long["encoding"] + ", " + long["prior"].astype(str)
    long["readout"] = long["readout"].map(READOUTS)
    figure = line_figure(long, "setting", {"correlation": "rank correlation"}, by="readout")
    columns = (
        *columns_as("encoding | prior:2"),
        *(Column(name, title, digits=2) for name, title in READOUTS.items()),
    )
    drawn = counted(settings.responses, "response")
    caption = f"Rank correlation with planted conflicts per claim, {drawn}."
    timed = Table(
        times,
        columns_as("claims:0 | relations:0 | milliseconds:1 all readouts, ms"),
        "Processor time of all readouts of a response together, without compiling.",
        note=f"Least of {_REPEATS}.",
    )
    note = "The nearer to -1 the better."
    return Artefacts(
        {"readouts": Table(frame, columns, caption, note=note), "times": timed},
        {"correlations": PaperFigure(figure, long, "rank correlation of every readout")},
    )


def correlation_rows(settings: Settings, context: AnalysisContext) -> Iterator[dict[str, Any]]:
    """Yield a row for each encoding and prior: Spearman's correlation of every readout."""
    from scipy.stats import spearmanr

    rng = np.random.default_rng(context.seed)
    drawn = [
        incoherent_response(
            int(rng.choice(settings.claims)),
            float(rng.choice(settings.rates)),
            entailments=float(rng.choice(settings.entailments)),
            seed=rng,
        )
        for _ in range(settings.responses)
    ]
    planted = [graph.metadata[PLANTED_KEY] / len(graph.atoms) for graph in drawn]
    cases = [(encoding, prior) for encoding in settings.encodings for prior in settings.priors]
    with context.track("settings", len(cases)) as step:
        for encoding, prior in cases:
            coherences = [
                coherence(graph.compiled_for(encoding), encoding, prior=prior) for graph in drawn
            ]
            values = {name: [getattr(each, name) for each in coherences] for name in READOUTS}
            step()
            yield {
                "encoding": encoding,
                "prior": prior,
                **{name: float(spearmanr(column, planted)[0]) for name, column in values.items()},
            }


def time_rows(sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
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
