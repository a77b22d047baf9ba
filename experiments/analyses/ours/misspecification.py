"""Calibration of exact posteriors where relation probabilities are wrong or contexts copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from calibration.figures.panels import PAGE, nth_look, panels, reach
from calibration.scores import smooth_ece
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import difference_of_clusters, named
from experiments.analyses.posteriors import (
    LabelledAtoms,
    atom_posteriors,
    labelled_atoms,
    scores_with_intervals,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.study.config import STRICT, DatasetChoice, Encoding, Probability
from experiments.study.data import StudyData

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

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


@dataclass(frozen=True)
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

    __pydantic_config__: ClassVar = STRICT

    synthetic: Mapping[str, Any] = field(default_factory=dict)
    factors: tuple[Factor, ...] = (0.5, 1.0, 2.0)
    noises: tuple[Factor, ...] = (0.0, 1.0, 2.0)
    copied: tuple[Probability, ...] = (0.0, 0.5, 1.0)
    encoding: Encoding = "conditional"


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Calibration by kind and size of the distortion, and the figure of it."""
    chosen = list(levels(settings))
    with context.track("distortions", len(chosen)) as step:
        rows = list(_rows(settings, context, chosen, step))
    frame = data_frame(rows)
    return Artefacts(
        tables={"calibration": _table(frame)},
        figures={"distortion": PaperFigure(_figure(frame), frame, "calibration by distortion")},
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
    atoms, p = _judged(data, encoding)
    before_atoms, before = _judged(untouched, encoding)
    row: dict[str, Any] = {
        "n_responses": len(data.graphs),
        "n_atoms": len(p),
        "mean_p": float(p.mean()),
        "share_true": float(atoms.labels.mean()),
        **scores_with_intervals(p, atoms, SCORES, seed),
        # A calibration error is biased upwards, and its bootstrap twice: it has no interval here.
        "smooth_ece": smooth_ece(p, atoms.labels),
    }
    squares, others = (
        (each.grouping.sums((q - each.labels) ** 2), each.grouping.sizes)
        for each, q in ((atoms, p), (before_atoms, before))
    )
    return row | named("cost", difference_of_clusters(squares, others, seed))


def _judged(data: StudyData, encoding: str) -> tuple[LabelledAtoms, Any]:
    atoms = labelled_atoms(data.graphs, data.name)
    return atoms, atom_posteriors(data.graphs, encoding)[atoms.kept]


def _rows(
    settings: Settings,
    context: AnalysisContext,
    chosen: list[tuple[str, float]],
    step: Callable[[], None],
) -> Iterator[dict[str, Any]]:
    def load(name: str, **distortion: float) -> StudyData:
        arguments = {"seed": context.seed, **settings.synthetic, **distortion}
        return context.load([DatasetChoice(name=name, synthetic=arguments)], "synthetic")[0]

    untouched = load("untouched")
    known: dict[str, Any] = {}
    for axis, level in chosen:
        data = untouched
        if level != UNTOUCHED[axis]:
            data = load(f"{AXES[axis]} {level:g}", **{AXES[axis]: level})
        if data.name not in known:
            known[data.name] = calibration_row(data, untouched, settings.encoding, context.seed)
        yield {"axis": axis, "level": level, **known[data.name]}
        step()


def _table(frame: pd.DataFrame) -> Table:

    return Table(
        frame.assign(title=[TITLES[axis] for axis in frame["axis"]]),
        (
            Column("level", "level", digits=2),
            interval_column("slope", "slope", 2),
            interval_column("in_the_large", "in the large", 2),
            Column("smooth_ece", "smooth ECE", digits=3),
            interval_column("brier", "Brier", 4),
            interval_column("cost", "cost", 4),
            Column("auroc", "AUROC", digits=3),
        ),
        "Calibration of exact posteriors under a distorted relation model",
        group="title",
        note=(
            "Slope: of labels on logit p, 1 if calibrated, below 1 if too extreme. In the large: "
            "0 if right on the whole. Cost: Brier score less that without the distortion, same "
            "responses. Intervals: 95 %, bootstrap over responses."
        ),
    )


def _figure(frame: pd.DataFrame) -> Figure:
    rows = (
        ("slope", "calibration slope", 1.0),
        ("smooth_ece", "smooth ECE", 0.0),
        ("cost", "cost (Brier)", 0.0),
    )
    kinds = list(dict.fromkeys(frame["axis"]))
    size = (PAGE, 1.45 * len(rows) + 0.2)
    with panels(len(rows), len(kinds), size, sharex="col", sharey="row") as (figure, places):
        for row, (name, title, ideal) in zip(places, rows, strict=True):
            for place, axis in zip(row, kinds, strict=True):
                own = frame[frame["axis"] == axis]
                ends = [own.get(f"{name}_{end}", own[name]) for end in ("lower", "upper")]
                place.axhline(ideal, color="0.6", linewidth=0.7)
                place.errorbar(
                    own["level"],
                    own[name],
                    yerr=reach(own[name], *ends),
                    elinewidth=0.8,
                    **nth_look(0),
                )
            row[0].set_ylabel(title)
        for place, axis in zip(places[-1], kinds, strict=True):
            place.set_xlabel(TITLES[axis])
        figure.align_ylabels(places[:, 0])
    return figure
