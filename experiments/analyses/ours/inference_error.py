"""Whether the error of inference matters: how far it moves Brier, MAE and rankings of responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from calibration.scores.measures import verdicts
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import estimate_figure
from experiments.analyses.posteriors import (
    LabelledAtoms,
    built_backends,
    labelled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.interval_values import interval_text, kendall, tiny
from experiments.findings.table import Table, columns_as, data_frame, named
from experiments.settings.limits import EncodingName
from experiments.study.config import STRICT, BackendChoice, DatasetChoice
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.fact_graph import FactGraph
from inference import Backend
from inference.batch import claim_posteriors

SCORES = {"brier": "brier", "mae": "precision_mae"}
"""Scores by what the tables call them."""


@dataclass(frozen=True, config=STRICT)
class Settings:
    """What is compared.

    Attributes:
        datasets: labelled responses on which exact inference is possible.
        backends: the approximations.
        encoding: encoding of the relations.
    """

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    backends: Annotated[tuple[BackendChoice, ...], Field(min_length=1)]
    encoding: EncodingName = DEFAULT_ENCODING


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """What each approximation moves on each dataset, and the figure of it."""
    data = context.load(settings.datasets)
    backends = built_backends(settings.backends, f"{context.where}: settings.backends")
    rows: list[dict[str, Any]] = []
    baselines: list[dict[str, Any]] = []
    with context.track("approximations", len(data) * len(backends)) as step:
        for each in data:
            measured = effects(
                each.graphs, backends, settings.encoding, context.seed, each.name, step
            )
            rows += [{"dataset": each.name, **row} for row in measured[1]]
            baselines.append({"dataset": each.name, **measured[0]})
    frame, exact = data_frame(rows), data_frame(baselines)
    moved = Table(
        frame.assign(**{f"{name}_text": interval_text(frame, name, "+") for name in SCORES}),
        columns_as(
            "backend | error> mean |Δp| | verdicts:3 | brier_text> Δ Brier | "
            "mae_text> Δ MAE | tau:3± tau by Pr | tau_mean:3 tau by mean p",
            error=tiny,
        ),
        "What the error of inference moves, approximate less exact",
        group="dataset",
        note="Intervals: bootstrap over responses. Verdicts: share of atoms on the other side of "
        "1/2. tau: Kendall's tau-b of responses ranked under approximate and exact posteriors.",
    )
    of_exact = Table(
        exact,
        columns_as(
            "dataset | n_responses:0 responses | n_atoms:0 labelled atoms | "
            "brier:3± Brier | mae:3± MAE"
        ),
        "Scores of the exact posteriors",
        note="Intervals: 95 % over responses.",
    )
    values = {"brier": "Δ Brier", "mae": "Δ MAE", "tau": "tau by Pr"}
    ideals = {"brier": 0.0, "mae": 0.0, "tau": 1.0}
    figure = estimate_figure(frame, "dataset", values, by="backend", ideals=ideals)
    shown = PaperFigure(figure, frame, "what inference error moves")
    return Artefacts({"effects": moved, "exact": of_exact}, {"matters": shown})


def effects(
    graphs: Sequence[FactGraph],
    backends: Sequence[tuple[str, Backend]],
    encoding: str,
    seed: int,
    where: str = "the data",
    step: Callable[[], None] = lambda: None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The scores of exact posteriors, and what each approximation moves.

    The error of inference is the mean |Δp| over labelled atoms. `brier` and `mae` are the scores'
    changes, approximate less exact, with bootstrap intervals over responses, both redrawn
    together. `tau` is Kendall's tau-b between the responses ranked by Pr under both, and
    `tau_mean` when ranked by the mean posterior, which has hardly any ties. `verdicts` is the
    share of atoms whose verdict at 1/2 changes.

    Args:
        graphs: responses with labels.
        backends: the approximations by label.
        encoding: encoding of the relations.
        seed: seed of the bootstrap.
        where: what errors call the data.
        step: called after every approximation.

    Raises:
        InputError: if no atom is labelled.
    """
    atoms = labelled_atoms(graphs, where)
    exact = claim_posteriors(graphs, encoding)[atoms.kept]
    scores = scores_with_intervals(exact, atoms, tuple(SCORES.values()), seed)
    baseline: dict[str, Any] = {"n_responses": len(atoms.grouping.responses), "n_atoms": len(exact)}
    baseline |= {name.replace("precision_mae", "mae"): value for name, value in scores.items()}
    rows = []
    for label, backend in backends:
        p = claim_posteriors(graphs, encoding, backend)[atoms.kept]
        rows.append({"backend": label, **_moved(p, exact, atoms, seed)})
        step()
    return baseline, rows


def _moved(p: Floats, exact: Floats, atoms: LabelledAtoms, seed: int) -> dict[str, float]:
    supported = [verdicts(each) > 0 for each in (p, exact)]  # their mean over a response is Pr
    row = {"error": float(np.abs(p - exact).mean())}
    row["verdicts"] = float((supported[0] != supported[1]).mean())
    for name, score in SCORES.items():
        row |= named(name, score_change(score, p, exact, atoms, seed))
    # Pr takes few values, which ties most responses; the mean posterior ties hardly any.
    for name, measures in ("tau", supported), ("tau_mean", [p, exact]):
        approximate, true = map(atoms.grouping.means, measures)
        row |= named(name, kendall(approximate, true, seed))
    return row
