"""The lexical relation model fitted to one data set of judged pairs and used on another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibration.figures.panels import draw_interval, nth_colour, nth_marker, panels
from calibration.grouping import group_by_response
from calibration.intervals import (
    IntervalMethod,
    IntervalSettings,
    RatioEstimand,
    RatioSums,
    estimate_all,
)
from calibration.scores import REGISTRY
from calibration.validation import Floats, Integers
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import named
from experiments.analyses.papers.shared.sources import SourceName, absence, user_data
from experiments.analyses.posteriors import LabelledAtoms, scores_with_intervals
from experiments.evaluators.relation_quality import LabelledPair, fit_lexical, labelled_pairs
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.study.config import STRICT, Count
from factormodels import datasets
from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.lexical import KINDS, relation_distributions
from factormodels.extraction.relation_models.lexical_features import pair_features
from factormodels.io.published.factcheck_bench import read_factcheck_bench

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

IN_SAMPLE, RESPONSES, DATA = "in-sample", "other responses", "other data"
"""What a fit has seen of the pairs that it is used on: all, none of their responses, none."""

BENCH, CORPUS = "Factcheck-Bench", "demonstration"

PUBLISHED = "Factcheck-Bench, as the package has it"


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        data: name of Factcheck-Bench's own file, with texts and stances.
        folds: folds of responses.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    data: SourceName = "fastfact-bench"
    folds: Count = 10
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of every fit on both data sets, each with what it has seen."""
    user = user_data(settings.data_file)
    path = user.paths.get(settings.data)
    if not isinstance(path, Path):
        raise InputError(f"{context.where}: {absence(settings.data, user)}")
    neutral = {"irrelevant": (RelationKind.NEUTRAL, 0.9)}
    sets = {
        BENCH: labelled_pairs(read_factcheck_bench(path, neutral)),
        CORPUS: labelled_pairs(datasets.load("demonstration").graphs, complete=True),
    }
    with context.track("fits", 1) as step:
        frame = data_frame(transfer_rows(sets, settings.folds, context.seed, published_on=BENCH))
        step()
    return Artefacts(
        tables={"transfer": _table(frame)},
        figures={"fits": PaperFigure(_figure(frame), frame, "log loss of every fit")},
    )


def transfer_rows(
    sets: Mapping[str, Sequence[LabelledPair]], folds: int, seed: int, *, published_on: str = ""
) -> list[dict[str, Any]]:
    """A row for every fit and every data set that it is used on.

    A data set's own fit is there twice: in-sample, and cross-fitted by response; so is the fit to
    all of them together, cross-fitted alone.

    Args:
        sets: judged pairs by data set.
        folds: folds of responses.
        seed: seed of the bootstrap over responses.
        published_on: the data set that the package's coefficients were fitted to; "": none.

    Raises:
        InputError: as `fit_lexical`.
    """
    fits = {name: fit_lexical(pairs, folds=folds) for name, pairs in sets.items()}
    together = [
        replace(item, response=f"{name} {item.response}")
        for name, pairs in sets.items()
        for item in pairs
    ]
    pooled = fit_lexical(together, folds=folds)
    ends = np.cumsum([0, *map(len, sets.values())])
    rows = []
    for at, (used, pairs) in enumerate(sets.items()):
        found: list[tuple[str, str, Floats, Integers | None]] = []
        for name, fit in fits.items():
            if name == used:
                found.append((name, IN_SAMPLE, fit.distributions(pairs), None))
                found.append((name, RESPONSES, fit.cross_validated, fit.folds))
            else:
                found.append((name, DATA, fit.distributions(pairs), None))
        own = slice(ends[at], ends[at + 1])
        both = pooled.cross_validated[own], pooled.folds[own]
        found.append((" and ".join(sets), RESPONSES, *both))
        if published_on:
            shares = relation_distributions(pair_features([item.pair for item in pairs]))
            found.append((PUBLISHED, IN_SAMPLE if used == published_on else DATA, shares, None))
        base = {"used": used, "pairs": len(pairs)}
        rows += [
            {**base, "fitted": name, "seen": seen, **_scores(p, fold, pairs, seed)}
            for name, seen, p, fold in found
        ]
    return rows


def _scores(
    shares: Floats, folds: Integers | None, pairs: Sequence[LabelledPair], seed: int
) -> dict[str, float]:
    responses = np.array([item.response for item in pairs])
    grouping = group_by_response(responses)
    codes = np.array([KINDS.index(item.kind) for item in pairs])
    losses = -np.log(np.clip(shares[np.arange(len(codes)), codes], 1e-6, 1.0))
    # Of three relations; the interval is that of the log loss of two.
    both = (grouping.sums(losses), grouping.sizes.astype(np.float64))
    above, below = (each[:, np.newaxis] for each in both)
    mean = RatioEstimand("log_loss", RatioSums(above, below), REGISTRY["log_loss"].scale)
    (found,) = estimate_all([mean], IntervalSettings(IntervalMethod.DELTA))
    ends = [float(each[0]) for each in (found.estimate, found.lower, found.upper)]
    row = named("log_loss", (ends[0], ends[1], ends[2]))
    for column, kind in enumerate(KINDS[:2]):
        atoms = LabelledAtoms(
            (codes == column).astype(np.float64), responses, np.ones(len(codes), dtype=np.bool_)
        )
        area = scores_with_intervals(shares[:, column], atoms, ("auroc",), seed, folds)
        row |= {name.replace("auroc", str(kind)): value for name, value in area.items()}
    return row


def _table(frame: pd.DataFrame) -> Table:
    return Table(
        frame,
        (
            Column("fitted", "fitted to"),
            Column("seen", "sample"),
            interval_column(str(RelationKind.ENTAILMENT), "AUROC, entailment", 3),
            interval_column(str(RelationKind.CONTRADICTION), "AUROC, contradiction", 3),
            interval_column("log_loss", "log loss", 3),
        ),
        "The lexical relation model on judged pairs, by what it was fitted to",
        group="used",
        note=(
            "Intervals: 95 % over responses. In-sample: fitted to these very pairs; other "
            "responses: without the fold of the pair's response, AUROC of pairs of one fold; other "
            "data: to none of them."
        ),
    )


def _figure(frame: pd.DataFrame) -> Figure:
    names = [f"{row.fitted} ({row.seen})" for row in frame.itertuples()]
    sets = list(dict.fromkeys(frame["used"]))
    with panels(1, 1, (6.5, 0.9 + 0.22 * len(frame))) as (figure, ((place,),)):
        for height, row in zip(reversed(range(len(frame))), frame.to_dict("records"), strict=True):
            at = sets.index(row["used"])
            ends = row["log_loss"], row["log_loss_lower"], row["log_loss_upper"]
            draw_interval(place, height, ends, color=nth_colour(at), marker=nth_marker(at))
        place.set_yticks(range(len(frame) - 1, -1, -1), names)
        place.set_xlabel("log loss on " + ", then ".join(sets))
    return figure
