"""Whether the error of inference matters: how far it moves Brier, MAE and rankings of responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from calibration.figures.panels import PAGE, name_floor, nth_look, panels, reach
from calibration.scores.measures import verdicts
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import (
    kendall,
    named,
    tiny,
    with_interval,
)
from experiments.analyses.posteriors import (
    LabelledAtoms,
    atom_posteriors,
    built_backends,
    labelled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.study.config import STRICT, BackendChoice, DatasetChoice, Encoding
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.fact_graph import FactGraph
from inference import Backend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Settings:
    """What is compared.

    Attributes:
        datasets: labelled responses on which exact inference is possible.
        backends: the approximations.
        encoding: encoding of the relations.
    """

    __pydantic_config__: ClassVar = STRICT

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    backends: Annotated[tuple[BackendChoice, ...], Field(min_length=1)]
    encoding: Encoding = DEFAULT_ENCODING


_SCORES = {"brier": "brier", "mae": "precision_mae"}
"""Scores by what the tables call them."""


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """What each approximation moves on each dataset, and the figure of it."""
    data = context.load(settings.datasets)
    backends = built_backends(settings.backends, f"{context.where}: settings.backends")
    rows: list[dict[str, Any]] = []
    baselines: list[dict[str, Any]] = []
    with context.track("approximations", len(data) * len(backends)) as step:
        for each in data:
            found = effects(each.graphs, backends, settings.encoding, context.seed, each.name, step)
            rows += [{"dataset": each.name, **row} for row in found[1]]
            baselines.append({"dataset": each.name, **found[0]})
    frame, exact = data_frame(rows), data_frame(baselines)
    return Artefacts(
        tables={"effects": _table(frame), "exact": _exact_table(exact)},
        figures={
            "matters": PaperFigure(_figure(frame, exact), frame, "what inference error moves")
        },
    )


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
    exact = atom_posteriors(graphs, encoding)[atoms.kept]
    baseline: dict[str, Any] = {
        "n_responses": len(atoms.grouping.responses),
        "n_atoms": len(exact),
    }
    found = scores_with_intervals(exact, atoms, tuple(_SCORES.values()), seed)
    for name, score in _SCORES.items():
        baseline |= {f"{name}{end}": found[f"{score}{end}"] for end in ("", "_lower", "_upper")}
    rows = []
    for label, backend in backends:
        p = atom_posteriors(graphs, encoding, backend)[atoms.kept]
        rows.append({"backend": label, **_moved(p, exact, atoms, seed)})
        step()
    return baseline, rows


def _moved(p: Floats, exact: Floats, atoms: LabelledAtoms, seed: int) -> dict[str, Any]:
    grouping = atoms.grouping
    errors = np.abs(p - exact)
    supported = [verdicts(each) > 0 for each in (p, exact)]  # their mean over a response is Pr
    row: dict[str, Any] = {
        "error": float(errors.mean()),
        "max_error": float(errors.max()),
        "verdicts": float((supported[0] != supported[1]).mean()),
    }
    for name, score in _SCORES.items():
        row |= named(name, score_change(score, p, exact, atoms, seed))
    # Pr takes few values, which ties most responses; the mean posterior ties hardly any.
    ranks: dict[str, Sequence[NDArray[Any]]] = {"tau": supported, "tau_mean": [p, exact]}
    for rank, measures in ranks.items():
        approximate, true = (grouping.means(each) for each in measures)
        row |= named(rank, kendall(approximate, true, seed))
    return row


def _table(frame: pd.DataFrame) -> Table:
    records = frame.to_dict("records")
    texts = {
        f"{name}_text": [with_interval(row, name, "+") for row in records]
        for name in ("brier", "mae")
    }
    return Table(
        frame.assign(**texts),
        (
            Column("backend", "backend"),
            Column("error", "mean |Δp|", r"mean $|\Delta p|$", show=tiny, right=True),
            Column("verdicts", "verdicts", digits=3),
            Column("brier_text", "Δ Brier", right=True),
            Column("mae_text", "Δ MAE", right=True),
            interval_column("tau", "tau by Pr", 3),
            Column("tau_mean", "tau by mean p", digits=3),
        ),
        "What the error of inference moves, approximate less exact",
        group="dataset",
        note=(
            "Intervals: bootstrap over responses. Verdicts: share of atoms on the other side of "
            "1/2. tau: Kendall's tau-b of responses ranked under approximate and exact posteriors."
        ),
    )


def _exact_table(exact: pd.DataFrame) -> Table:
    return Table(
        exact,
        (
            Column("dataset", "dataset"),
            Column("n_responses", "responses", digits=0),
            Column("n_atoms", "labelled atoms", digits=0),
            interval_column("brier", "Brier", 3),
            interval_column("mae", "MAE", 3),
        ),
        "Scores of the exact posteriors",
        note="Intervals: 95 % over responses.",
    )


_FLOOR = 1e-5
"""What is less is drawn here."""


def _look(at: int) -> dict[str, Any]:
    return nth_look(at) | {"linestyle": "none", "markeredgewidth": 0.0, "markersize": 4.5}


def _figure(frame: pd.DataFrame, exact: pd.DataFrame) -> Figure:
    """A row of panels for each score, a column for each dataset, a marker for each backend."""
    scores = (("brier", "|Δ Brier|"), ("mae", "|Δ MAE|"), ("tau", "1 − tau"))
    names = list(dict.fromkeys(frame["dataset"]))
    backends = list(dict.fromkeys(frame["backend"]))
    dashed = {"color": "0.4", "linewidth": 0.7, "linestyle": (0, (2, 2))}
    shared = {"sharex": True, "sharey": True}
    size = (PAGE, 1.45 * len(scores) + 0.7)
    with panels(len(scores), len(names), size, **shared) as (figure, grid):
        for row, (name, title) in zip(grid, scores, strict=True):
            for place, dataset in zip(row, names, strict=True):
                own = frame[frame["dataset"] == dataset]
                sizes = np.maximum(_distance(own[name], name), _FLOOR)
                ends = np.sort(
                    [_distance(own[f"{name}_{end}"], name) for end in ("lower", "upper")], axis=0
                )
                # The size of a change that may be of either sign may be none.
                crossing = (own[f"{name}_lower"] <= 0) & (own[f"{name}_upper"] >= 0)
                ends[0] = np.where(crossing & (name != "tau"), 0.0, ends[0])
                arms = reach(sizes, *np.maximum(ends, _FLOOR))
                across = np.maximum(own["error"], _FLOOR)
                for at, backend in enumerate(own["backend"]):
                    look = _look(backends.index(backend))
                    place.errorbar(
                        [across.iloc[at]],
                        [sizes[at]],
                        yerr=arms[:, at : at + 1],
                        elinewidth=0.6,
                        clip_on=False,
                        **look,
                    )
                if name != "tau":
                    of_exact = exact[exact["dataset"] == dataset].iloc[0]
                    half = (of_exact[f"{name}_upper"] - of_exact[f"{name}_lower"]) / 2
                    place.axhline(half, **dashed)
                place.set(xscale="log", yscale="log")
            row[0].set_ylabel(title)
        for place, dataset in zip(grid[0], names, strict=True):
            place.set_title(dataset)
        grid[0][0].set_ylim(top=1.0)
        name_floor(grid[0][0], _FLOOR)
        for place in grid[-1]:
            place.set_xlabel("inference error, mean |Δp|")
        looks = [_look(at) for at in range(len(backends))]
        figure.legend(
            [grid[0][0].plot([], [], **look)[0] for look in (*looks, dashed)],
            [*backends, "half of the exact score's interval"],
            loc="outside lower center",
            ncols=len(backends) + 1,
            columnspacing=1.0,
            handletextpad=0.4,
        )
        return figure


def _distance(values: pd.Series[float], name: str) -> Floats:
    return np.asarray(1.0 - values if name == "tau" else values.abs())
