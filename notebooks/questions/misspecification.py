"""Wrong relation models: how much calibration do they cost exact posteriors?

Question: how far do slope, calibration error and Brier score move where a relation model overstates
its probabilities, states them with noise, or where passages copy each other?
Data: drawn responses whose posteriors are calibrated without a distortion.
Rival: the same responses without it.

    python notebooks/questions/misspecification.py

It takes 7 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from calibration.scores import smooth_ece
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import labeled_atoms, scores_with_intervals
from experiments.findings.figures import line_figure
from experiments.findings.interval_values import difference_of_clusters
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, named
from factormodels.fact_graph import FactGraph
from factormodels.synthetic import Constant, Uniform, labeled_responses
from inference.batch import claim_posteriors

SCORES = ("calibration_slope", "calibration_in_the_large", "brier", "auroc")

AXES = {"factors": "log_odds_factor", "noises": "log_odds_noise", "copied": "copied"}
"""Axis -> argument of `factormodels.synthetic.labeled_responses`."""

TITLES = {
    "factors": "factor on the log odds",
    "noises": "noise on the log odds (s.d.)",
    "copied": "share of copied contexts",
}

UNTOUCHED = {"factors": 1.0, "noises": 0.0, "copied": 0.0}

SIZES: Mapping[str, Any] = MappingProxyType(
    {
        "n_atoms": (6, 12),
        "contexts_per_atom": 3,
        "density": 0.05,
        "context_prior": Constant(0.9),
        "strength": Uniform(0.55, 0.95),
    }
)
"""Parameters of the drawn responses, whose posteriors under *conditional* are calibrated."""

ENCODING = "conditional"


def misspecification(
    *,
    factors: tuple[float, ...] = (0.5, 1.5, 2.0, 3.0),
    noises: tuple[float, ...] = (0.5, 1.0, 2.0),
    copied: tuple[float, ...] = (0.25, 0.5, 1.0),
    responses: int = 100,
    seed: int = 0,
) -> Artifacts:
    """Return calibration by kind and size of the distortion, and the figure of it.

    Args:
        factors: factors on the log odds that the relation model states; above 1 it overstates.
        noises: standard deviations of a normal error added to these log odds.
        copied: probabilities that a context copies the one before it, errors and all.
        responses: how many responses are drawn.
        seed: seed of the responses, and of the bootstrap over them.
    """

    def drawn(**distortion: float) -> list[FactGraph]:
        return labeled_responses(responses, seed=seed, **SIZES, **distortion)

    untouched = drawn()
    rows = []
    for axis, level in levels({"factors": factors, "noises": noises, "copied": copied}):
        graphs = untouched if level == UNTOUCHED[axis] else drawn(**{AXES[axis]: level})
        row = calibration_row(graphs, untouched, seed)
        rows.append({"axis": axis, "title": TITLES[axis], "level": level, **row})
    frame = data_frame(rows)
    columns = columns_as(
        "level:2 | slope:2± | in_the_large:2± in the large | smooth_ece:3 smooth ECE | "
        "brier:4± Brier | cost:4± | auroc:3 AUROC"
    )
    caption = "Calibration of exact posteriors under a distorted relation model"
    note = (
        "Slope: of labels on logit p, 1 if calibrated, below 1 if too extreme. In the large: 0 if "
        "right on the whole. Cost: Brier score minus the score without the distortion, same "
        "responses. Intervals: 95%, bootstrap over responses."
    )
    values = {"slope": "slope", "smooth_ece": "smooth ECE", "cost": "cost (Brier)"}
    ideals = {"slope": 1.0, "smooth_ece": 0.0, "cost": 0.0}
    figure = line_figure(frame, "level", values, panel="title", ideals=ideals)
    return Artifacts(
        {"calibration": Table(frame, columns, caption, group="title", note=note)},
        {"distortion": PaperFigure(figure, frame, "calibration by distortion")},
    )


def levels(chosen: Mapping[str, Sequence[float]]) -> Iterator[tuple[str, float]]:
    """Yield each axis and level in ascending order, that without a distortion among them."""
    for axis in AXES:
        for level in sorted({UNTOUCHED[axis], *chosen[axis]}):
            yield axis, level


def calibration_row(
    graphs: Sequence[FactGraph], untouched: Sequence[FactGraph], seed: int
) -> dict[str, Any]:
    """Return the calibration of exact posteriors, and the cost of the distortion.

    `cost` is the Brier score minus the score of the same responses without the distortion, paired
    over responses. Copied contexts carry less evidence, so part of the cost is not the model's.

    Args:
        graphs: responses, distorted.
        untouched: the same responses without it.
        seed: seed of the bootstrap.
    """
    atoms, before = labeled_atoms(graphs, "drawn"), labeled_atoms(untouched, "untouched")
    p = claim_posteriors(graphs, ENCODING)[atoms.kept]
    q = claim_posteriors(untouched, ENCODING)[before.kept]
    losses, others = (
        (known.grouping.sums((each - known.labels) ** 2), known.grouping.sizes)
        for known, each in ((atoms, p), (before, q))
    )
    return {
        "n_responses": len(graphs),
        "n_atoms": len(p),
        "mean_p": float(p.mean()),
        "share_true": float(atoms.labels.mean()),
        **scores_with_intervals(p, atoms, SCORES, seed),
        # A calibration error is biased upwards, and its bootstrap twice: it has no interval here.
        "smooth_ece": smooth_ece(p, atoms.labels),
        **named("cost", difference_of_clusters(losses, others, seed)),
    }


if __name__ == "__main__":
    answer_question(misspecification, __file__)
