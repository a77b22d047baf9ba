"""Does inference matter on real graphs: views, encodings and backends on the same labelled claims.

The reference is exact inference, and certified intervals where that would take too long. And the
decline with position: whether evidence falls as truth does, from the first sentences to the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.figures.panels import (
    coincide,
    draw_interval,
    name_lines,
    nth_colour,
    nth_look,
    nth_marker,
    panel_grid,
    panels,
    reach,
    together,
)
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import (
    Value,
    difference_of_clusters,
    mean_of_clusters,
    named,
    tiny,
)
from experiments.analyses.ours.learned_strengths import problem, taught_classes
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
from experiments.study.config import STRICT, BackendChoice, Count, DatasetChoice, Encoding
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant
from inference.exact.backend import Exact
from inference.messages.frustration import frustration
from inference.mini_buckets.intervals import certified_intervals

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIFTHS = ("0-20 %", "20-40 %", "40-60 %", "60-80 %", "80-100 %")

CHANGE = "last less first"

EXACT, CERTIFIED = "exact", "exact or certified"

LEARNED = ", learned"
"""What follows the name of an encoding where strengths are learned."""

WIDEST_REFERENCE = 0.01
"""Certified intervals that are wider anywhere bound errors; their middles are not posteriors."""

FOLDS = 5
"""Folds of responses in which strengths are learned."""


@dataclass(frozen=True)
class ApproximatedView:
    """One view of the responses under one encoding, and what approximates its posteriors.

    Attributes:
        variant: FR1, FR2 or FR3.
        encoding: encoding of the relations, under which strengths are learned too.
        backends: the approximations.
        learned: whether a prior and the strengths of six classes are learned from the other folds
            of responses; of each kind, where relations state no distribution.
    """

    __pydantic_config__: ClassVar = STRICT

    variant: str
    encoding: Encoding
    backends: tuple[BackendChoice, ...] = ()
    learned: bool = False

    @property
    def title(self) -> str:
        """What tables call its encoding."""
        return f"{self.encoding}{LEARNED}" if self.learned else self.encoding


@dataclass(frozen=True)
class ComparedViews:
    """Responses and how they are viewed.

    Attributes:
        dataset: labelled responses.
        views: what is compared; scores are compared with those of the first.
    """

    __pydantic_config__: ClassVar = STRICT

    dataset: DatasetChoice
    views: Annotated[tuple[ApproximatedView, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Settings:
    """What is compared.

    Attributes:
        data: the responses; positions are those of the first.
        exact_seconds: responses whose exact inference is predicted to take longer get certified
            intervals in its place.
        i_bound: of the mini-buckets of the intervals.
        iterations: of the same.
    """

    __pydantic_config__: ClassVar = STRICT

    data: Annotated[tuple[ComparedViews, ...], Field(min_length=1)]
    exact_seconds: Annotated[float, Field(ge=0)] = 1.0
    i_bound: Count = 6
    iterations: Count = 5


@dataclass(frozen=True, eq=False)
class KnownPosteriors:
    """What is known of the posteriors of labelled atoms.

    Attributes:
        p: the posterior: exact, or the middle of the certified interval, (n,).
        lower, upper: ends of the certified interval, `p` itself where that is exact, (n,).
        shape: what a table says of the graphs.
    """

    p: Floats
    lower: Floats
    upper: Floats
    shape: Mapping[str, float]

    @property
    def is_settled(self) -> bool:
        """Whether every posterior is known well enough to be scored."""
        return self.shape["interval"] <= WIDEST_REFERENCE


Found = dict[tuple[str, str, str], Floats]
"""Posteriors of labelled atoms by view, encoding and backend."""


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of every case, and truth beside posteriors by position."""
    loaded = context.load([each.dataset for each in settings.data], "data")
    scores: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    positions: list[dict[str, Any]] = []
    learned: list[dict[str, Any]] = []
    total = sum(1 + len(view.backends) for each in settings.data for view in each.views)
    with context.track("posteriors", total) as step:
        for at, (asked, data) in enumerate(zip(settings.data, loaded, strict=True)):
            kept = [g for g in data.graphs if any(a.label is not None for a in g.atoms)]
            atoms = labelled_atoms(kept, data.name)
            found: Found = {}
            for number, view in enumerate(asked.views):
                if view.learned:
                    task = problem(kept, FOLDS, context.seed, data.name)
                    graphs = taught_classes(task, view.variant, view.encoding)
                else:
                    graphs = [variant(graph, view.variant) for graph in kept]
                known = reference(graphs, view.encoding, atoms, settings)
                step()
                own = view.variant, view.title
                certain = EXACT if known.shape["certified"] == 0 else CERTIFIED
                if known.is_settled:
                    found[(*own, certain)] = known.p
                shapes.append({"dataset": data.name, "variant": own[0], "encoding": own[1]})
                shapes[-1] |= known.shape
                place = f"{context.where}: settings.data[{at}].views[{number}].backends"
                for label, backend in built_backends(view.backends, place):
                    p = atom_posteriors(graphs, view.encoding, backend)[atoms.kept]
                    found[(*own, label)] = p
                    row = {"dataset": data.name, "variant": own[0], "encoding": own[1]}
                    errors.append(
                        {**row, "backend": label, **error_row(p, known, atoms, context.seed)}
                    )
                    step()
            scores += [{"dataset": data.name, **r} for r in case_rows(found, atoms, context.seed)]
            learned += [
                {"dataset": data.name, **row} for row in learned_rows(found, atoms, context.seed)
            ]
            if not at:
                positions = position_rows(kept, found, atoms, context.seed)
    frames = {
        "graphs": data_frame(shapes),
        "cases": data_frame(scores),
        "learned": data_frame(learned),
        "errors": data_frame(errors),
        "positions": wide_positions(positions),
    }
    makers = {
        "graphs": _graphs_table,
        "cases": _cases_table,
        "learned": _learned_table,
        "errors": errors_table,
        "positions": _positions_table,
    }
    return Artefacts(
        tables={
            name: make(_headed(frames[name])) for name, make in makers.items() if len(frames[name])
        },
        figures={
            "decline": PaperFigure(
                decline_figure(frames["positions"]),
                data_frame(positions),
                "truth and evidence by position",
            ),
            "scores": PaperFigure(
                scores_figure(frames["cases"]), frames["cases"], "Brier score of every view"
            ),
        },
    )


def reference(
    graphs: Sequence[FactGraph], encoding: str, atoms: LabelledAtoms, settings: Settings
) -> KnownPosteriors:
    """Exact posteriors of labelled atoms, certified intervals of those of difficult graphs."""
    exact = Exact(search_seconds=0.2)
    factors = [graph.to_factor_graph(encoding) for graph in graphs]
    predicted = [exact.predict(each) for each in factors]
    easy = np.array([each.seconds <= settings.exact_seconds for each in predicted])
    sizes = [len(graph.atoms) for graph in graphs]
    of_easy = np.repeat(easy, sizes)
    p = np.full(len(of_easy), np.nan)
    if easy.any():
        chosen = [graph for graph, fits in zip(graphs, easy, strict=True) if fits]
        p[of_easy] = atom_posteriors(chosen, encoding, exact)
    lower, upper = p.copy(), p.copy()
    starts = np.cumsum([0, *sizes])
    for start, graph, factor, fits in zip(starts, graphs, factors, easy, strict=False):
        if fits:
            continue
        names = [atom.id for atom in graph.atoms if atom.label is not None]
        found = certified_intervals(
            factor, names, i_bound=settings.i_bound, iterations=settings.iterations
        )
        for at, atom in enumerate(graph.atoms, start=int(start)):
            if atom.id in found:
                lower[at], upper[at] = found[atom.id].lower, found[atom.id].upper
                p[at] = (lower[at] + upper[at]) / 2
    frustrated = [frustration(each) for each in factors]
    cycles = sum(each.cycles for each in frustrated)
    widths = [each.induced_width for each in predicted]
    open_ends = (upper - lower)[atoms.kept]
    shape = {
        "responses": len(graphs),
        "cycles": cycles,
        "frustrated": sum(each.frustrated for each in frustrated) / cycles if cycles else np.nan,
        "unbalanced": sum(not each.balanced for each in frustrated),
        "width": float(np.median(widths)),
        "widest": max(widths),
        "certified": int((~easy).sum()),
        "interval": float(open_ends.max()),
    }
    return KnownPosteriors(p[atoms.kept], lower[atoms.kept], upper[atoms.kept], shape)


def error_row(p: Floats, known: KnownPosteriors, atoms: LabelledAtoms, seed: int) -> dict[str, Any]:
    """Error of an approximation, and what it moves in the Brier score.

    The error of an atom is its distance from the certified interval, which is at most what the
    posterior is off by, and at least that less the interval's width.
    """
    from calibration.scores.measures import verdicts

    error = np.maximum(np.maximum(known.lower - p, p - known.upper), 0.0)
    sums = [(atoms.grouping.sums((q - atoms.labels) ** 2), atoms.grouping.sizes)
            for q in (p, known.p)]  # fmt: skip
    briers = [float(((q - atoms.labels) ** 2).mean()) for q in (p, known.p)]
    row: dict[str, Any] = {"error": float(error.mean()), "largest": float(error.max())}
    if not known.is_settled:
        return row | {"verdicts": np.nan, **named("moved", (np.nan,) * 3), "digit": ""}
    return row | {
        "verdicts": float((np.sign(verdicts(p)) != np.sign(verdicts(known.p))).mean()),
        **named("moved", difference_of_clusters(sums[0], sums[1], seed)),
        "digit": _moved_digit(*briers),
    }


def _moved_digit(one: float, other: float) -> str:
    """The first digit behind the point at which two numbers are printed differently, up to 6."""
    moved = [digits for digits in range(1, 7) if f"{one:.{digits}f}" != f"{other:.{digits}f}"]
    return str(moved[0]) if moved else "none of 6"


def case_rows(found: Found, atoms: LabelledAtoms, seed: int) -> list[dict[str, Any]]:
    """Scores of every case with intervals, and their differences from the first's, paired."""
    # What differs by rounding alone is tied.
    first = next(iter(found.values())).round(9)
    rows = []
    for (view, encoding, backend), posterior in found.items():
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        p = posterior.round(9)
        for name in ("brier", "log_loss", "auroc", "entropy"):
            row |= scores_with_intervals(p, atoms, (name,), seed)
            row |= named(f"{name}_change", score_change(name, p, first, atoms, seed))
        rows.append(row)
    return rows


def learned_rows(found: Found, atoms: LabelledAtoms, seed: int) -> list[dict[str, Any]]:
    """What strengths learned under an encoding gain: over those stated, others, and over FR1.

    One row for each view with learned strengths, or for each approximation where its posteriors
    are not known. Its Brier score less that of the same view as stated under the same encoding; of
    the same view learned under *implication*; and of FR1 learned under the same encoding: by the
    same approximation where there is one, else by the first.
    """
    first: dict[tuple[str, str], str] = {}
    for view, encoding, backend in found:
        first.setdefault((view, encoding), backend)

    def change(p: Floats, view: str, encoding: str, backend: str) -> Value:
        own = (view, encoding, backend)
        other = own if own in found else (view, encoding, first.get((view, encoding), ""))
        if other not in found:
            return (np.nan,) * 3
        return score_change("brier", p, found[other].round(9), atoms, seed)

    rows = []
    for (view, encoding, backend), posterior in found.items():
        known = first[view, encoding] in (EXACT, CERTIFIED)
        if not encoding.endswith(LEARNED) or (known and backend != first[view, encoding]):
            continue
        p = posterior.round(9)
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        row |= scores_with_intervals(p, atoms, ("brier", "auroc"), seed)
        row |= named("stated", change(p, view, encoding.removesuffix(LEARNED), backend))
        row |= named("implication", change(p, view, f"implication{LEARNED}", backend))
        row |= named("stars", change(p, "FR1", encoding, EXACT))
        rows.append(row)
    return rows


def position_rows(
    graphs: Sequence[FactGraph],
    found: Found,
    atoms: LabelledAtoms,
    seed: int,
) -> list[dict[str, Any]]:
    """The share of true atoms and the mean posterior of each view by fifth of the response.

    A position is the sentence by the number of sentences; one on an edge belongs to the fifth below
    it. Every sentence counts the same, as in Self-Known's figure 1.
    """
    places = []
    for graph in graphs:
        stated = graph.metadata.get("sentences")
        last = stated if isinstance(stated, int) else max(a.sentence or 1 for a in graph.atoms)
        places += [(f"{graph.id} {a.sentence}", (a.sentence or 1) / last) for a in graph.atoms]
    kept = [place for place, labelled in zip(places, atoms.kept, strict=True) if labelled]
    _, sentence, counts = np.unique(
        [name for name, _ in kept], return_inverse=True, return_counts=True
    )
    weight = 1.0 / counts[sentence]
    fifth = np.ceil(np.array([at for _, at in kept]) * 5 - 1e-9).astype(np.int64) - 1
    values = {"true": atoms.labels}
    for (view, encoding, backend), p in found.items():
        values.setdefault(f"{view}, {encoding}", p)
        del backend
    rows = []
    for name, each in values.items():
        per = [
            (
                atoms.grouping.sums(np.where(fifth == at, weight * each, 0.0)),
                atoms.grouping.sums(np.where(fifth == at, weight, 0.0)),
            )
            for at in range(len(FIFTHS))
        ]
        for at, title in enumerate(FIFTHS):
            rows.append(
                {"of": name, "position": title, **named("mean", mean_of_clusters(*per[at], seed))}
            )
        fall = named("mean", difference_of_clusters(per[-1], per[0], seed))
        rows.append({"of": name, "position": CHANGE, **fall})
    return rows


def wide_positions(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for truth and for each view, with a column for each fifth and for the change."""
    wide: dict[str, dict[str, Any]] = {}
    for row in rows:
        own = wide.setdefault(row["of"], {"of": row["of"]})
        own |= {f"{row['position']}{end}": row[f"mean{end}"] for end in ("", "_lower", "_upper")}
    return data_frame(list(wide.values()))


def _headed(frame: pd.DataFrame) -> pd.DataFrame:
    if "dataset" not in frame:
        return frame
    return frame.assign(head=frame["dataset"] + ", " + frame["variant"])


_CASE = (Column("encoding", "encoding"), Column("backend", "backend"))


def _cases_table(frame: pd.DataFrame) -> Table:
    return Table(
        frame,
        (
            *_CASE,
            interval_column("brier", "Brier", 4),
            interval_column("log_loss", "log loss", 3),
            interval_column("auroc", "AUROC", 3),
            interval_column("entropy", "E", 4),
            interval_column("brier_change", "Brier less the first", 4),
        ),
        "Posteriors of real graphs by view, encoding and backend",
        group="head",
        note=(
            "Intervals: 95 % over responses. Less the first: paired with the first row of the same "
            "data; the file has the other scores' differences too."
        ),
    )


def _learned_table(frame: pd.DataFrame) -> Table:
    changes = {"stated": "as stated", "implication": "implication", "stars": "FR1"}
    return Table(
        frame,
        (
            *_CASE,
            interval_column("brier", "Brier", 4),
            interval_column("auroc", "AUROC", 3),
            # A study may have none of what it would be compared with.
            *(
                interval_column(name, f"less {title}", 4)
                for name, title in changes.items()
                if frame[name].fillna(0.0).any()
            ),
        ),
        "Strengths learned under each encoding",
        group="head",
        note=(
            "Every approximation where posteriors are not known. Less: Brier score less that of "
            "the same view as stated, learned under implication, and of FR1 learned under the same "
            "encoding, by the same backend. Intervals: 95 % over responses, paired."
        ),
    )


def errors_table(frame: pd.DataFrame) -> Table:
    """The table of what approximate inference moves, its blocks headed by the column `head`."""
    return Table(
        frame,
        (
            *_CASE,
            Column("error", "mean |Δp|", show=tiny, right=True),
            Column("largest", "largest", show=tiny, right=True),
            Column("verdicts", "verdicts", digits=4),
            interval_column("moved", "Δ Brier", 6),
            Column("digit", "moves digit", right=True),
        ),
        "What approximate inference moves on real graphs",
        group="head",
        note=(
            "Against exact inference, and certified intervals where it does not fit. Verdicts: "
            "share of claims on the other side of 1/2. Moves digit: the first digit of the Brier "
            "score that is printed differently. Intervals: 95 % over responses, paired."
        ),
    )


def _graphs_table(frame: pd.DataFrame) -> Table:
    return Table(
        frame,
        (
            Column("encoding", "encoding"),
            Column("responses", "responses", digits=0),
            Column("cycles", "cycles", digits=0),
            Column("frustrated", "frustrated", digits=3),
            Column("unbalanced", "unbalanced", digits=0),
            Column("width", "width", digits=0),
            Column("widest", "widest", digits=0),
            Column("certified", "certified", digits=0),
            Column("interval", "interval", show=tiny, right=True),
        ),
        "Cycles and width of real graphs",
        group="head",
        note=(
            "Frustrated: share of the cycles of a basis. Unbalanced: responses with a frustrated "
            "cycle. Width: median induced width. Certified: responses on which exact inference is "
            "predicted to take too long. Interval: the widest certified one of an atom."
        ),
    )


def _positions_table(frame: pd.DataFrame) -> Table:
    fifths = tuple(interval_column(title, title, 3) for title in (*FIFTHS, CHANGE))
    return Table(
        frame,
        (Column("of", "of"), *fifths),
        "Truth and posteriors by position, every sentence counting the same",
        note="Intervals: 95 % over responses.",
    )


def decline_figure(wide: pd.DataFrame) -> Figure:
    """The share of true claims and mean posteriors by fifth, a panel for each encoding.

    Args:
        wide: the table of positions.
    """
    found = {row["of"]: row for row in wide.to_dict("records")}
    # In every panel what is true.
    encodings = list(dict.fromkeys(name.partition(", ")[2] for name in found if ", " in name))
    with panel_grid(len(encodings), (2.3, 2.2), most=2, sharey=True) as (figure, places):
        for place, encoding in zip(places, encodings, strict=True):
            curves = {
                name.partition(", ")[0]: [
                    [row[f"{at}{end}"] for at in FIFTHS] for end in ("", "_lower", "_upper")
                ]
                for name, row in found.items()
                if name.partition(", ")[2] in ("", encoding)
            }
            lines: dict[str, Any] = {}
            for name, ends in together(curves, lambda one, other: coincide(one, other)).items():
                across = [fifth + 0.06 * len(lines) for fifth in range(len(FIFTHS))]
                look = nth_look(len(lines)) | {"elinewidth": 0.8}
                lines[name] = place.errorbar(across, ends[0], yerr=reach(*ends), **look).lines[0]
            place.set_xticks(range(len(FIFTHS)), [each.removesuffix(" %") for each in FIFTHS])
            place.tick_params(axis="x", labelsize=6.0)
            place.set(xlabel="position in the response, %", title=encoding)
            name_lines(place, lines)
        places[0].set_ylabel("share true, or mean posterior")
        return figure


def scores_figure(cases: pd.DataFrame) -> Figure:
    """The Brier score of every view under every encoding by its reference.

    Args:
        cases: the table of cases.
    """
    return _brier_figure(cases[cases["backend"].isin([EXACT, CERTIFIED])], "")


def learned_figure(learned: pd.DataFrame) -> Figure:
    """The Brier score of strengths learned under each encoding, by every algorithm of the table.

    Args:
        learned: the table of learned strengths.
    """
    return _brier_figure(learned, "backend")


def _brier_figure(frame: pd.DataFrame, also: str) -> Figure:
    shown = frame.to_dict("records")
    keys = ("dataset", "variant", "encoding", *filter(None, (also,)))
    names = [", ".join(row[key] for key in keys) for row in shown]
    encodings = list(dict.fromkeys(row["encoding"] for row in shown))
    with panels(1, 1, (5.5, 0.8 + 0.19 * len(shown))) as (figure, ((place,),)):
        for height, row in zip(reversed(range(len(shown))), shown, strict=True):
            at = encodings.index(row["encoding"])
            ends = row["brier"], row["brier_lower"], row["brier_upper"]
            draw_interval(place, height, ends, color=nth_colour(at), marker=nth_marker(at))
        place.set_yticks(range(len(shown) - 1, -1, -1), names)
        place.set_xlabel("Brier score")
    return figure
