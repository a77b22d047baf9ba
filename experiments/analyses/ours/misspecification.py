"""Calibration of exact posteriors where relation probabilities are wrong or contexts copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from calibration.scores import smooth_ece
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.analyses.posteriors import labelled_atoms, scores_with_intervals
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.interval_values import difference_of_clusters
from experiments.findings.table import Table, columns_as, data_frame, named
from experiments.settings.limits import EncodingName, Probability
from experiments.study.config import STRICT, DatasetChoice
from experiments.study.data import StudyData
from inference.batch import claim_posteriors

SCORES = ("calibration_slope", "calibration_in_the_large", "brier", "auroc")

AXES = {"factors": "log_odds_factor", "noises": "log_odds_noise", "copied": "copied"}
"""Key of the settings -> argument of `factormodels.synthetic.labelled_responses`."""

TITLES = {
    "factors": "factor on the log odds",
    "noises": "noise on the log odds (s.d.)",
    "copied": "share of copied contexts",
}

UNTOUCHED = {"factors": 1.0, "noises": 0.0, "copied": 0.0}

Factor = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, config=STRICT)
class Settings:
    """What is distorted.

    Attributes:
        synthetic: arguments of `factormodels.synthetic.labelled_responses`: what responses are
            drawn from; it should leave posteriors under the encoding calibrated.
        factors: factors on the log odds that the relation model states; above 1 it overstates.
        noises: standard deviations of a normal error added to these log odds.
        copied: probabilities that a context copies the one before it, errors and all.
        encoding: encoding of the relations.
    """

    synthetic: Mapping[str, Any] = field(default_factory=dict)
    factors: tuple[Factor, ...] = (0.5, 1.0, 2.0)
    noises: tuple[Factor, ...] = (0.0, 1.0, 2.0)
    copied: tuple[Probability, ...] = (0.0, 0.5, 1.0)
    encoding: EncodingName = "conditional"


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Calibration by kind and size of the distortion, and the figure of it."""

    def load(name: str, **distortion: float) -> StudyData:
        arguments = {"seed": context.seed, **settings.synthetic, **distortion}
        return context.load([DatasetChoice(name=name, synthetic=arguments)], "synthetic")[0]

    untouched = load("untouched")
    chosen = list(levels(settings))
    rows = []
    with context.track("distortions", len(chosen)) as step:
        for axis, level in chosen:
            data = untouched
            if level != UNTOUCHED[axis]:
                data = load(f"{AXES[axis]} {level:g}", **{AXES[axis]: level})
            row = calibration_row(data, untouched, settings.encoding, context.seed)
            rows.append({"axis": axis, "title": TITLES[axis], "level": level, **row})
            step()
    frame = data_frame(rows)
    columns = columns_as(
        "level:2 | slope:2± | in_the_large:2± in the large | smooth_ece:3 smooth ECE | "
        "brier:4± Brier | cost:4± | auroc:3 AUROC"
    )
    caption = "Calibration of exact posteriors under a distorted relation model"
    note = (
        "Slope: of labels on logit p, 1 if calibrated, below 1 if too extreme. In the large: 0 if "
        "right on the whole. Cost: Brier score less that without the distortion, same responses. "
        "Intervals: 95 %, bootstrap over responses."
    )
    values = {"slope": "slope", "smooth_ece": "smooth ECE", "cost": "cost (Brier)"}
    ideals = {"slope": 1.0, "smooth_ece": 0.0, "cost": 0.0}
    figure = line_figure(frame, "level", values, panel="title", ideals=ideals)
    return Artefacts(
        {"calibration": Table(frame, columns, caption, group="title", note=note)},
        {"distortion": PaperFigure(figure, frame, "calibration by distortion")},
    )


def levels(settings: Settings) -> Iterator[tuple[str, float]]:
    """Each axis and level in ascending order, that without a distortion among them."""
    for axis in AXES:
        for level in sorted({UNTOUCHED[axis], *getattr(settings, axis)}):
            yield axis, level


def calibration_row(
    data: StudyData, untouched: StudyData, encoding: str, seed: int
) -> dict[str, Any]:
    """How calibrated exact posteriors are, and what the distortion costs.

    `cost` is the Brier score less that of the same responses without the distortion, paired over
    responses; copied contexts carry less evidence, so that part of it is no fault of the model.

    Args:
        data: responses, distorted.
        untouched: the same responses without it.
        encoding: encoding of the relations.
        seed: seed of the bootstrap.
    """
    atoms, before = (labelled_atoms(each.graphs, each.name) for each in (data, untouched))
    p, q = (
        claim_posteriors(each.graphs, encoding)[known.kept]
        for each, known in ((data, atoms), (untouched, before))
    )
    losses, others = (
        (known.grouping.sums((each - known.labels) ** 2), known.grouping.sizes)
        for known, each in ((atoms, p), (before, q))
    )
    return {
        "n_responses": len(data.graphs),
        "n_atoms": len(p),
        "mean_p": float(p.mean()),
        "share_true": float(atoms.labels.mean()),
        **scores_with_intervals(p, atoms, SCORES, seed),
        # A calibration error is biased upwards, and its bootstrap twice: it has no interval here.
        "smooth_ece": smooth_ece(p, atoms.labels),
        **named("cost", difference_of_clusters(losses, others, seed)),
    }
