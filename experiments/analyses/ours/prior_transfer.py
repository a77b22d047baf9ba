"""Transfer: priors and strengths learned on some responses, used on others without labels.

The share of true claims differs from model to model and topic to topic. Strengths are kept, and
the prior is re-estimated on the unlabelled responses; rivals keep everything, or recalibrate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.figures.panels import PAGE, nth_colour, panels
from calibration.learned_priors import (
    AdaptationStatus,
    AdaptedPrior,
    Specification,
    adapt_prior,
    fit,
)
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import named
from experiments.analyses.posteriors import (
    LabelledAtoms,
    atom_posteriors,
    labelled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.study.config import STRICT, Count, DatasetChoice, Probability
from factormodels.claims import Atom
from factormodels.fact_graph import FactGraph
from factormodels.synthetic import Uniform, labelled_responses
from factormodels.variants import variant

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ENCODING = "implication"

RARE = frozenset({"rare", "very rare"})
"""Categories of biographies of people of whom little is written."""


@dataclass(frozen=True)
class Settings:
    """Between which responses, and what is drawn to see when it works.

    Attributes:
        datasets: labelled responses; each is learned from, and used on each of the others. One with
            categories is also split into rare subjects and others.
        strengths: ends of the laws of relation probabilities of the drawn responses.
        shares: shares of true atoms of the drawn responses; they are learned at 1/2.
        responses: how many drawn responses are learned from, and used on.
        repeats: how often they are drawn.
    """

    __pydantic_config__: ClassVar = STRICT

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    strengths: tuple[tuple[Probability, Probability], ...] = ((0.6, 0.95), (0.5, 0.6))
    shares: tuple[Probability, ...] = (0.2, 0.5, 0.8)
    responses: Annotated[int, Field(ge=2)] = 40
    repeats: Count = 10


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of every way of transfer in every direction, and the simulation."""
    pools = {
        each.name: [variant(graph, "FR1") for graph in each.graphs]
        for each in context.load(settings.datasets)
    }
    rows: list[dict[str, Any]] = []
    estimates: list[dict[str, Any]] = []
    pairs = list(_directions(pools))
    with context.track("directions", len(pairs)) as step:
        for source, target, learned_from, used_on in pairs:
            where = {"source": source, "target": target}
            scores, adapted = transfer(learned_from, used_on, context.seed)
            rows += [{**where, "pair": f"{source} to {target}", **row} for row in scores]
            estimates.append({**where, **adapted})
            step()
    simulated = data_frame(simulation(settings, context.seed))
    frame = data_frame(rows)
    return Artefacts(
        tables={
            "transfer": _transfer_table(frame),
            "shares": shares_table(data_frame(estimates)),
            "identified": _identified_table(simulated),
        },
        figures={
            "directions": PaperFigure(
                directions_figure(frame), frame, "transfer in every direction"
            )
        },
    )


def _directions(
    pools: dict[str, list[FactGraph]],
) -> Iterator[tuple[str, str, Sequence[FactGraph], Sequence[FactGraph]]]:
    for source, target in permutations(pools, 2):
        yield source, target, pools[source], pools[target]
    for name, graphs in pools.items():
        rare = [g for g in graphs if set(g.metadata.get("categories", ())) & RARE]
        others = [g for g in graphs if g not in rare and g.metadata.get("categories")]
        if rare and others:
            yield f"{name}, others", f"{name}, rare", others, rare
            yield f"{name}, rare", f"{name}, others", rare, others


def transfer(
    learned_from: Sequence[FactGraph], used_on: Sequence[FactGraph], seed: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Scores on the second responses of what is learned on the first, and the adapted share.

    Differences are from no adaptation, paired over responses.

    Args:
        learned_from: labelled responses, views of FR1.
        used_on: labelled responses, whose labels serve to score alone.
        seed: seed of the bootstrap.
    """
    from calibration.recalibration import PlattRecalibrator

    known, asked = labelled_atoms(learned_from, "the source"), labelled_atoms(used_on, "the target")
    old = float(known.labels.mean())
    learned = fit(learned_from, Specification(), penalty=3.0)
    kept = learned.apply_all(used_on)
    share = adapt_prior(kept, learned.apply_all(learned_from), encoding=ENCODING, seed=seed)
    default = atom_posteriors(used_on, ENCODING)
    judged = atom_posteriors(learned_from, ENCODING)
    platt = PlattRecalibrator().fit(judged[known.kept], known.labels)
    scaled = platt.predict(default)
    alone = lone_atoms(used_on, scaled)
    learned_alone = lone_atoms(learned_from, platt.predict(judged))
    of_platt = adapt_prior(alone, learned_alone, encoding=ENCODING, seed=seed)
    found = {
        "default": default,
        "base rate": np.full(len(default), old),
        "Platt": scaled,
        "Platt, share adapted": _priors([of_platt.apply(graph) for graph in alone]),
        "no adaptation": atom_posteriors(kept, ENCODING),
        "share adapted": atom_posteriors([share.apply(graph) for graph in kept], ENCODING),
    }
    truth = float(asked.labels.mean())
    row = {"true_share": truth, "n_responses": len(asked.grouping.responses)}
    return (
        score_rows({name: p[asked.kept] for name, p in found.items()}, asked, seed),
        row | _estimate(share) | {"platt_share": of_platt.share},
    )


def lone_atoms(graphs: Sequence[FactGraph], p: Floats) -> list[FactGraph]:
    """The atoms of responses without evidence, their priors set, in order."""
    values = iter(p.tolist())
    return [
        FactGraph(
            graph.id, tuple(Atom(a.id, prior=next(values), label=a.label) for a in graph.atoms)
        )
        for graph in graphs
    ]


def simulation(settings: Settings, seed: int) -> list[dict[str, Any]]:
    """How near the adapted share comes to the drawn one, and how often its interval holds it."""
    rows = []
    for ends in settings.strengths:
        for share in settings.shares:
            found = [
                _drawn(settings.responses, ends, share, (seed, repeat, round(100 * ends[1])))
                for repeat in range(settings.repeats)
            ]
            values = np.array([each.share for each in found])
            sure = [e for e in found if e.status is AdaptationStatus.CONVERGED]
            rows.append(
                {
                    "strength": f"{ends[0]:g} to {ends[1]:g}",
                    "share": share,
                    "mean": float(np.nanmean(values)),
                    "rmse": float(np.sqrt(np.nanmean((values - share) ** 2))),
                    "identified": len(sure) / len(found),
                    "width": float(np.mean([e.upper - e.lower for e in sure])) if sure else np.nan,
                    "held": float(np.mean([e.lower <= share <= e.upper for e in sure]))
                    if sure
                    else np.nan,
                }
            )
    return rows


def _drawn(
    n: int, ends: tuple[float, float], share: float, seed: tuple[int, int, int]
) -> AdaptedPrior:
    """The share adapted on responses drawn with it, of strengths learned at a share of 1/2."""

    def responses(rate: float, stream: int) -> Sequence[FactGraph]:
        return labelled_responses(
            n,
            n_atoms=(6, 12),
            contexts_per_atom=2,
            strength=Uniform(*ends),
            truth_rate=rate,
            reliability=0.99,
            seed=np.random.default_rng((*seed, stream)),
        )

    known = responses(0.5, 0)
    learned = fit(known, Specification(), penalty=3.0)
    target = [replace(graph, id=f"new {graph.id}") for graph in responses(share, 1)]
    adapted = (learned.apply_all(each) for each in (target, known))
    return adapt_prior(*adapted, encoding=ENCODING)


def _priors(graphs: Sequence[FactGraph]) -> Floats:
    return np.array([atom.prior for graph in graphs for atom in graph.atoms])


def _estimate(adapted: AdaptedPrior) -> dict[str, Any]:
    ends = (adapted.share, adapted.lower, adapted.upper)
    return named("adapted", ends) | {
        "old_share": adapted.old_share,
        "status": adapted.status.value.replace("_", " "),
    }


def score_rows(found: dict[str, Floats], atoms: LabelledAtoms, seed: int) -> list[dict[str, Any]]:
    """Scores of every method, and the Brier score's difference from no adaptation."""
    rows = []
    for name, p in found.items():
        row: dict[str, Any] = {"method": name}
        row |= scores_with_intervals(p, atoms, ("brier", "log_loss"), seed)
        change = score_change("brier", p, found["no adaptation"], atoms, seed)
        rows.append(row | named("difference", change))
    return rows


def _transfer_table(frame: pd.DataFrame) -> Table:
    return Table(
        frame,
        (
            Column("method", "method"),
            interval_column("brier", "Brier", 4),
            Column("log_loss", "log loss", digits=3),
            interval_column("difference", "less no adaptation", 4),
        ),
        "What is learned on some responses, used on others",
        group="pair",
        note="Intervals: 95 % over responses of the target. Its labels serve to score alone.",
    )


def shares_table(frame: pd.DataFrame) -> Table:
    """The table of shares that were estimated anew."""
    return Table(
        frame,
        (
            Column("source", "learned on"),
            Column("target", "used on"),
            Column("old_share", "share there", digits=3),
            Column("true_share", "share here", digits=3),
            interval_column("adapted", "adapted", 3),
            Column("platt_share", "Platt adapted", digits=3),
            Column("status", "status"),
        ),
        "The share of true claims re-estimated without labels",
    )


def _identified_table(frame: pd.DataFrame) -> Table:
    return Table(
        frame,
        (
            Column("strength", "relation probabilities"),
            Column("share", "share", digits=2),
            Column("mean", "mean estimate", digits=3),
            Column("rmse", "RMSE", digits=3),
            Column("identified", "identified", digits=2),
            Column("width", "interval", digits=3),
            Column("held", "held", digits=2),
        ),
        "When the share is identified: drawn responses, strengths learned at a share of 1/2",
        note="Identified: share of the draws with an interval; interval: its mean width.",
    )


def directions_figure(frame: pd.DataFrame) -> Figure:
    """What every method changes in every direction.

    Args:
        frame: the table of transfer.
    """
    names = list(dict.fromkeys(frame["pair"]))
    methods = [name for name in dict.fromkeys(frame["method"]) if name != "no adaptation"]
    size = (PAGE, 0.8 + 0.2 * len(names))
    shared = {"sharex": True, "sharey": True}
    with panels(1, len(methods), size, **shared) as (figure, (places,)):
        heights = range(len(names) - 1, -1, -1)
        for place, method in zip(places, methods, strict=True):
            own = frame[frame["method"] == method].set_index("pair").loc[names]
            place.axvline(0.0, color="0.6", linewidth=0.7)
            place.hlines(heights, 0.0, own["difference"], color=nth_colour(0), linewidth=0.8)
            place.plot(own["difference"], heights, "o", color=nth_colour(0))
            place.set_title(method)
        places[0].set_yticks(heights, names)
        figure.supxlabel("Brier score less that of no adaptation", fontsize=8.0)
        return figure
