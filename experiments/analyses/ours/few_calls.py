"""Few calls: of the pairs that a variant asks about, how few give the verdicts that all give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.analyses.ours.shared.recorded_calls import (
    VALUE,
    Recorded,
    first,
    laws,
    orders,
    posteriors,
    recorded,
    risk_rows,
    stated_risks,
    true,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.settings.limits import Folds
from experiments.study.config import STRICT, DatasetChoice
from factormodels.extraction.relation_models.consensus import likeness_named

if TYPE_CHECKING:
    import pandas as pd

_SHARES = (
    *(0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.42, 0.45, 0.5, 0.53, 0.55, 0.6, 0.65),
    *(0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
)
"""Every twentieth of the calls; those of own passages alone in FR2, and of stopping at one half."""

_RISKS = "data | variant | most:2 risk up to | claims:0 | stated:3 mean stated | changed:3±"


@dataclass(frozen=True, config=STRICT)
class Settings:
    """On what, and where the orders are looked at.

    Attributes:
        datasets: responses whose relations are recorded; with the variant FR1 only passages that
            were found for a claim are asked about, with FR3 also pairs of passages, which come last
            in every order, and otherwise all of a claim and a passage.
        shares: shares of the calls after which verdicts are compared.
        risks_at: those after which stated risks are compared with what changes.
        folds: folds of responses from which the law of answers is learned.
        together: whether one law is learned from all the data, as that of `assess` is; otherwise
            each has its own.
        least: relations that are less probable count as neutral, as they do for `assess` below
            1/2; embedded ones are counted whatever their probability.
        likeness: by what neighbours' passages come where there are texts, as `consensus` spells it:
            words, order, letters, or meaning:FOLDER; otherwise the share of the claim's words.
    """

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    shares: tuple[float, ...] = _SHARES
    risks_at: tuple[float, ...] = (0.1, 0.2, 0.3)
    folds: Folds = 5
    together: bool = False
    least: Annotated[float, Field(ge=0, le=1)] = 0.0
    likeness: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Verdicts kept by order and share of calls, and how far stated risks hold."""
    kept, risks = list[dict[str, Any]](), list[dict[str, Any]]()
    names = [(choice.variants or ("FR2",))[0] for choice in settings.datasets]
    loaded = context.load(settings.datasets)
    data = [recorded(one.graphs, name, settings.folds, context.seed, settings.least)
            for one, name in zip(loaded, names, strict=True)]  # fmt: skip
    for one, name, own in zip(loaded, names, data, strict=True):
        with context.track(f"{one.name}, {name}", settings.folds + 8) as step:
            learned_from = data if settings.together else [own]
            found = compared(own, name, learned_from, settings, context.seed, step)
            for rows, more in zip((kept, risks), found, strict=True):
                rows += [{"data": one.name, "variant": name, **row} for row in more]
    frame = data_frame(kept)
    drawn = frame.rename(columns={"share": "share of calls"})
    drawn["panel"] = frame["data"] + ", " + frame["variant"]
    figure = line_figure(drawn, "share of calls", {"kept": "verdicts kept"}, "method", "panel")
    told = "Stated risk that a verdict changes, and the share of verdicts that do."
    tables = {
        "kept": _kept_table(frame),
        "risks": Table(data_frame(risks), columns_as(_RISKS), told),
    }
    return Artefacts(tables, {"frontier": PaperFigure(figure, frame, "verdicts kept by calls")})


def compared(
    own: Recorded,
    name: str,
    learned_from: Sequence[Recorded],
    settings: Settings,
    seed: int,
    step: Callable[[], None],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of both tables; verdicts are those of exact inference under *implication*."""
    by_fold = laws(own, learned_from, seed, step)
    alike = likeness_named(settings.likeness) if settings.likeness else None
    found = orders(own, name, by_fold, seed, alike)
    size, whole = found[VALUE].pair.size, posteriors(own, found[VALUE], own.calls)
    rows = []
    for method, order in found.items():
        for share in settings.shares:
            calls = round(share * own.calls)
            p = posteriors(own, first(order, calls), max(0, calls - size))
            row = {"method": method, "share": share, "calls": calls}
            row["kept"] = float((true(p) == true(whole)).mean())
            rows.append(row | {"change": float(np.abs(p - whole).mean())})
        step()
    looks = [first(found[VALUE], round(share * own.calls)) for share in settings.risks_at]
    stated = np.concatenate([stated_risks(own, by_fold, order, seed) for order in looks])
    changed = np.concatenate([true(posteriors(own, order)) != true(whole) for order in looks])
    response = np.repeat(np.arange(len(own.graphs)), [len(one.atoms) for one in own.graphs])
    return rows, risk_rows(stated, changed, np.tile(response, len(looks)), seed)


def _kept_table(frame: pd.DataFrame) -> Table:
    wide = frame.pivot_table("kept", ["data", "variant", "share", "calls"], "method").reset_index()
    columns = columns_as("data | variant | share:2 share of calls | calls:0")
    columns += tuple(Column(name, name, digits=3) for name in dict.fromkeys(frame["method"]))
    title = "Share of verdicts that are those of all calls, by the order in which pairs are asked."
    return Table(wide, columns, title)
