"""Sigma as a prediction of factuality: in sample, out of sample, and under label shift."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from calibration.self_knowledge import (
    Claims,
    Setting,
    Truth,
    claims_of_counts,
    in_sample_balance,
    label_shift,
    out_of_sample,
    simulate_counts,
)
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.settings.limits import Count, Probability
from experiments.study.config import STRICT

ASKED = Setting.DIRECT_ASKING

NAMES = {
    "sigma": "σ",
    "rogan_gladen": "Rogan–Gladen",
    "emq": "EMQ",
    "factuality": "factuality of the half",
}
"""What predicts the factuality of the other half, and what tables call it."""


@dataclass(frozen=True, config=STRICT)
class Population(Truth):
    """What simulated responses are drawn from."""


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Whose sigma is looked at.

    Attributes:
        populations: simulated responses, by what tables call them.
        prevalences: factualities to which the other half is reweighted.
        splits: splits of the responses in halves, each used both ways.
    """

    populations: Annotated[dict[str, Population], Field(min_length=1)]
    prevalences: Annotated[tuple[Probability, ...], Field(min_length=1)] = (0.1, 0.3, 0.5, 0.7, 0.9)
    splits: Count = 100


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Sigma against factuality in sample, out of sample and under shift."""
    rows: list[dict[str, Any]] = []
    shifts: list[dict[str, Any]] = []
    with context.track("populations", len(settings.populations)) as step:
        for number, (name, population) in enumerate(settings.populations.items()):
            counts = simulate_counts(population, 1, seed=context.seed + number)[0]
            claims = claims_of_counts(counts, ASKED)
            found = prediction_row(claims, ASKED, settings.splits, context.seed)
            rows.append({"population": name} | found)
            halves: Any = {"n_splits": settings.splits, "seed": context.seed}
            shift = label_shift(claims, ASKED, prevalences=settings.prevalences, **halves)
            shifts += [{"population": name, **row} for row in shift.rows()]
            step()
    frame, shifted = data_frame(rows), data_frame(shifts)
    error = "root_mean_square_error"
    wide = shifted.pivot_table(
        index=["population", "prevalence"], columns="predictor", values=error, sort=False
    )
    prediction = Table(
        frame,
        (
            *columns_as(
                "population | sigma:3 σ | factuality:3 | false_positives:0 FP | "
                "false_negatives:0 FN | p_value:3 p (FP = FN) | gap:3[] out of sample"
            ),
            *(Column(f"rmse_{name}", f"RMSE {title}", digits=3) for name, title in NAMES.items()),
        ),
        "Sigma against factuality, in sample and out of sample",
        note="In sample sigma is the factuality exactly where FP = FN; p: McNemar's test clustered "
        "by response. Out of sample: sigma of half of the responses less the factuality of the "
        "other, with its 95 % interval. RMSE: of the prediction of the other half, over splits.",
    )
    shift_table = Table(
        wide.reset_index().rename_axis(columns=None),
        (
            Column("prevalence", "factuality", digits=2),
            *(Column(name, f"RMSE {title}", digits=3) for name, title in NAMES.items()),
        ),
        "Errors of predictions as the factuality shifts and the law of judgements stays",
        group="population",
    )
    # Rogan and Gladen's estimate is not confined to [0, 1]: its errors stay in the table.
    drawn = shifted[shifted["predictor"] != "rogan_gladen"].rename(
        columns={"prevalence": "factuality"}
    )
    values = {error: "RMSE of the prediction"}
    figure = line_figure(drawn, "factuality", values, by="predictor", panel="population")
    return Artefacts(
        {"prediction": prediction, "shift": shift_table},
        {"shift-errors": PaperFigure(figure, shifted, "error of predictions under label shift")},
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
    factuality = float(balance["factuality"][-1])
    wrong_yes, wrong_no = int(balance["false_positives"][-1]), int(balance["false_negatives"][-1])
    odds = factuality * wrong_yes, (1 - factuality) * wrong_no
    return {
        "n_responses": int(balance["n_responses"][-1]),
        "n_claims": int(balance["n_claims"][-1]),
        "sigma": float(balance["sigma"][-1]),
        "factuality": factuality,
        "identity": odds[0] / sum(odds) if sum(odds) else np.nan,
        "false_positives": wrong_yes,
        "false_negatives": wrong_no,
        "p_value": float(balance["clustered"][-1]),
        "gap": float(held_out["difference"][-1]),
        "lower": float(held_out["lower"][-1]),
        "upper": float(held_out["upper"][-1]),
        **{f"rmse_{name}": float(held_out[f"rmse_{name}"][-1]) for name in NAMES},
    }
