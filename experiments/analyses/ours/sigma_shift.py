"""Sigma as a prediction of factuality: in sample, out of sample, and under label shift."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.figures.panels import PAGE, nth_look, panels
from calibration.figures.sigma_shift import label_shift_figure
from calibration.self_knowledge import (
    Claims,
    LabelShift,
    Setting,
    Truth,
    as_claims,
    claims_of_counts,
    in_sample_balance,
    label_shift,
    out_of_sample,
    read_records,
    simulate_counts,
)
from experiments.analyses.context import AnalysisContext
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.study.config import STRICT, Count, Probability
from factormodels.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Share = Annotated[float, Field(gt=0, lt=1)]

PREDICTORS = ("sigma", "rogan_gladen", "emq", "factuality")


@dataclass(frozen=True)
class Population:
    """What simulated responses are drawn from, as `calibration.self_knowledge.Truth`.

    Attributes:
        factuality: mean share of supported claims.
        self_known: mean SK.
        self_unknown: mean SU.
        correlation: intraclass correlation of claims of one response.
        responses: number of responses.
        claims: mean number of claims of a response.
    """

    __pydantic_config__: ClassVar = STRICT

    factuality: Share = 0.6
    self_known: Share = 0.7
    self_unknown: Share = 0.55
    correlation: Share = 0.2
    responses: Annotated[int, Field(ge=4)] = 100
    claims: Annotated[float, Field(ge=1)] = 25.0


@dataclass(frozen=True)
class Records:
    """Recorded self-judgements.

    Attributes:
        path: a file of records, relative to the folder of the configuration that names it.
        setting: how the model was asked.
    """

    __pydantic_config__: ClassVar = STRICT

    path: str
    setting: Setting = Setting.NONE_OF_THE_ABOVE


@dataclass(frozen=True)
class Settings:
    """Whose sigma is looked at.

    Attributes:
        populations: simulated responses, by what tables call them.
        records: recorded self-judgements, by what tables call them.
        prevalences: factualities to which the other half is reweighted.
        splits: splits of the responses in halves, each used both ways.
    """

    __pydantic_config__: ClassVar = STRICT

    populations: dict[str, Population] | None = None
    records: dict[str, Records] | None = None
    prevalences: Annotated[tuple[Probability, ...], Field(min_length=1)] = (0.1, 0.3, 0.5, 0.7, 0.9)
    splits: Count = 100

    def __post_init__(self) -> None:
        if not self.populations and not self.records:
            raise ValueError("no claims were given; name some populations or records")
        if set(self.populations or ()) & set(self.records or ()):
            raise ValueError("a population and records share a name; give each its own")


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Sigma against factuality in sample, out of sample and under shift."""
    rows: list[dict[str, Any]] = []
    shifts: dict[str, LabelShift] = {}
    subjects = list(_subjects(settings, context))
    with context.track("populations", len(subjects)) as step:
        for name, claims, setting in subjects:
            rows.append(
                {
                    "population": name,
                    **prediction_row(claims, setting, settings.splits, context.seed),
                }
            )
            shifts[name] = label_shift(
                claims,
                setting,
                prevalences=settings.prevalences,
                n_splits=settings.splits,
                seed=context.seed,
            )
            step()
    frame = data_frame(rows)
    shifted = data_frame(
        [{"population": name, **row} for name, shift in shifts.items() for row in shift.rows()]
    )
    first = next(iter(shifts))
    return Artefacts(
        tables={"prediction": _prediction_table(frame), "shift": _shift_table(shifted)},
        figures={
            "shift-errors": PaperFigure(
                _figure(shifted, frame), shifted, "error of predictions under label shift"
            ),
            "predictions": PaperFigure(
                label_shift_figure(shifts[first], title=first),
                shifted[shifted["population"] == first],
                "predictions under label shift",
            ),
        },
    )


def prediction_row(claims: Claims, setting: str, splits: int, seed: int) -> dict[str, Any]:
    """Sigma and factuality in sample, and what sigma of one half says of the other.

    In sample, the odds of sigma are those of the factuality times FP/FN, identically: `identity`
    is what these give for sigma. `gap` is sigma less factuality out of sample with its interval
    over responses.

    Args:
        claims: the claims.
        setting: how the model was asked.
        splits: splits in halves.
        seed: seed of the splits.
    """
    balance = in_sample_balance(claims, setting, n_positions=1)
    held_out = out_of_sample(claims, setting, n_positions=1, n_splits=splits, seed=seed)
    factuality = float(balance.factuality[-1])
    wrong_yes, wrong_no = int(balance.false_positives[-1]), int(balance.false_negatives[-1])
    odds = factuality * wrong_yes, (1 - factuality) * wrong_no
    return {
        "n_responses": int(balance.n_responses[-1]),
        "n_claims": int(balance.n_claims[-1]),
        "sigma": float(balance.sigma[-1]),
        "factuality": factuality,
        "identity": odds[0] / sum(odds) if sum(odds) else np.nan,
        "false_positives": wrong_yes,
        "false_negatives": wrong_no,
        "p_value": float(balance.clustered[-1]),
        "gap": float(held_out.difference[-1]),
        "lower": float(held_out.lower[-1]),
        "upper": float(held_out.upper[-1]),
        **{f"rmse_{name}": float(held_out.root_mean_square_error[name][-1]) for name in PREDICTORS},
    }


def _subjects(settings: Settings, context: AnalysisContext) -> Iterator[tuple[str, Claims, str]]:
    for number, (name, population) in enumerate((settings.populations or {}).items()):
        truth = Truth(
            factuality=population.factuality,
            self_known=population.self_known,
            self_unknown=population.self_unknown,
            correlation=population.correlation,
            n_responses=population.responses,
            n_claims=population.claims,
        )
        counts = simulate_counts(truth, 1, seed=context.seed + number)[0]
        yield name, claims_of_counts(counts, Setting.DIRECT_ASKING), Setting.DIRECT_ASKING
    for name, records in (settings.records or {}).items():
        try:
            found = as_claims(read_records(context.folder / records.path))
        except InputError as error:
            raise InputError(f"{context.where}: settings.records.{name}: {error}") from None
        yield name, found, records.setting


_NAMES = {
    "sigma": "σ",
    "rogan_gladen": "Rogan–Gladen",
    "emq": "EMQ",
    "factuality": "factuality of the half",
}


def _prediction_table(frame: pd.DataFrame) -> Table:
    return Table(
        frame,
        (
            Column("population", "population"),
            Column("sigma", "σ", r"$\sigma$", digits=3),
            Column("factuality", "factuality", digits=3),
            Column("false_positives", "FP", digits=0),
            Column("false_negatives", "FN", digits=0),
            Column("p_value", "p (FP = FN)", digits=3),
            Column("gap", "out of sample", digits=3, lower="lower", upper="upper"),
            *(Column(f"rmse_{name}", f"RMSE {_NAMES[name]}", digits=3) for name in PREDICTORS),
        ),
        "Sigma against factuality, in sample and out of sample",
        note=(
            "In sample sigma is the factuality exactly where FP = FN; p: McNemar's test clustered "
            "by response. Out of sample: sigma of half of the responses less the factuality of "
            "the other, with its 95 % interval. RMSE: of the prediction of the other half, over "
            "splits."
        ),
    )


def _shift_table(shifted: pd.DataFrame) -> Table:
    wide = shifted.pivot_table(
        index=["population", "prevalence"],
        columns="predictor",
        values="root_mean_square_error",
        sort=False,
    ).reset_index()
    wide.columns.name = None
    names = [name for name in PREDICTORS if name in wide]
    return Table(
        wide,
        (
            Column("prevalence", "factuality", digits=2),
            *(Column(name, f"RMSE {_NAMES[name]}", digits=3) for name in names),
        ),
        "Errors of predictions as the factuality shifts and the law of judgements stays",
        group="population",
    )


def _figure(shifted: pd.DataFrame, frame: pd.DataFrame) -> Figure:
    names = list(dict.fromkeys(shifted["population"]))
    # What stays as it is under a shift above, what follows it below.
    rows = (("sigma", "factuality"), ("rogan_gladen", "emq"))
    shared = {"sharex": True, "sharey": True}
    with panels(len(rows), len(names), (PAGE, 3.6), **shared) as (figure, grid):
        for column, name in zip(grid.T, names, strict=True):
            own = shifted[shifted["population"] == name]
            factuality = float(frame["factuality"][frame["population"] == name].iloc[0])
            for place, predictors in zip(column, rows, strict=True):
                place.axvline(factuality, color="0.7", linewidth=0.7, zorder=0)
                for at, predictor in enumerate(predictors):
                    line = own[own["predictor"] == predictor].sort_values("prevalence")
                    place.plot(
                        line["prevalence"],
                        line["root_mean_square_error"],
                        label=_NAMES[predictor],
                        **nth_look(at),
                    )
            column[0].set(title=name, xlim=(0, 1))
        for place in grid[:, 0]:
            place.legend(loc="upper center", frameon=True, framealpha=1.0, edgecolor="none")
        # Rogan and Gladen's estimate is not confined to [0, 1]: its errors may leave the panel.
        grid[0][0].set_ylim(0, 0.8)
        figure.supxlabel("factuality after the shift", fontsize=8.0)
        figure.supylabel("RMSE of the prediction", fontsize=8.0)
        return figure
