"""Inference on real graphs: do views, encodings and backends change scores?

Question: on graphs of real responses, do the Brier score and the verdicts of labeled claims depend
on the view (FR1, FR2, FR3), on the encoding of relations, and on the algorithm? And does evidence
fall as truth does, from the first sentences of a response to the last? With --learned: how much do
strengths learned from labels gain under each encoding?
Data: factscore (157 biographies) and factcheck-bench, embedded, with their labels.
Rival: exact inference; certified intervals where it would take too long. Rivals of learned
strengths: the same view as stated, learned under implication, and FR1 learned under the encoding.

    python notebooks/questions/real_graphs.py --out docs/results/real-graphs
    python notebooks/questions/real_graphs.py --learned --out docs/results/learned-encodings

The first takes 12 minutes of processor time, the second 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.learned_potentials.methods import cross_fit_task, taught_classes
from calibration.scores.measures import verdicts
from calibration.validation import Floats
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import (
    LabeledAtoms,
    labeled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.figures import estimate_figure
from experiments.findings.figures.positions import decline_figure, fifths_table, mean_by_fifth
from experiments.findings.interval_values import Value, difference_of_clusters, tiny
from experiments.findings.notebook import answer_question
from experiments.findings.table import Column, Table, columns_as, data_frame, named
from factormodels import datasets
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant
from inference import Backend, get_backend
from inference.batch import claim_posteriors
from inference.exact.backend import Exact
from inference.messages.frustration import frustration
from inference.mini_buckets.intervals import certified_intervals

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FOLDS = 5
"""Folds of responses in which strengths are learned."""

ENCODINGS = ("implication", "conditional", "mixture")


@dataclass(frozen=True)
class View:
    """A view of the responses under an encoding, with the approximations of its posteriors.

    Attributes:
        variant: FR1, FR2 or FR3.
        encoding: encoding of the relations, under which strengths are learned too.
        backends: names of the approximations.
        learned: whether a prior and the strengths of six classes are learned from the other folds
            of responses; of each kind, where relations state no distribution.
    """

    variant: str
    encoding: str
    backends: tuple[str, ...] = ()
    learned: bool = False

    @property
    def title(self) -> str:
        """Title of the encoding in tables."""
        return f"{self.encoding}{LEARNED}" if self.learned else self.encoding


BACKENDS: Mapping[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("lbp", "trw", "wmb", "cavi", "ijgp", "gibbs", "wmb_is")},
    "ais": ("ais", {}),
    # Fewer particles, for their time.
    "ais particles=16": ("ais", {"particles": 16}),
    # To improve the forests of trw takes several times as long where relations are mixtures.
    "trw weight_updates=0": ("trw", {"weight_updates": 0}),
}
"""Name and settings of each approximation."""

FOREST = ("cavi",)
"""On forests all others are exact."""

ALL = ("lbp", "trw", "wmb", "cavi", "ijgp", "gibbs", "wmb_is", "ais")
MOST = (*ALL[:-1], "ais particles=16")
DENSE = ("lbp", "trw weight_updates=0", *MOST[2:])
FAST = ("lbp", "wmb", "cavi", "ijgp", "wmb_is")
FEW = ("lbp", "ijgp")

STATED: Mapping[str, tuple[View, ...]] = {
    "factscore": (
        *(View("FR1", encoding, FOREST) for encoding in ENCODINGS),
        View("FR2", "implication", ALL),
        View("FR2", "conditional", MOST),
        View("FR2", "mixture", DENSE),
        View("FR3", "implication", MOST),
        View("FR3", "conditional", MOST),
        View("FR3", "mixture", DENSE),
        View("FR1", "implication", FOREST, learned=True),
        View("FR2", "implication", DENSE, learned=True),
        View("FR3", "implication", DENSE, learned=True),
    ),
    # No relation between its passages is recorded: FR3 is FR2.
    "factcheck-bench": (
        *(View("FR1", encoding, FOREST) for encoding in ENCODINGS),
        View("FR2", "implication", ALL),
        View("FR2", "conditional", MOST),
        View("FR2", "mixture", DENSE),
        View("FR1", "implication", FOREST, learned=True),
        View("FR2", "implication", DENSE, learned=True),
    ),
}
"""Views of each dataset; scores are compared with those of the first."""

TAUGHT: Mapping[str, tuple[View, ...]] = {
    # FR3 adds 42 relations to the 31,488 of FR2.
    "factscore": tuple(
        View(name, encoding, backends, learned=True)
        for name, backends in (("FR1", FOREST), ("FR2", FAST), ("FR3", FEW))
        for encoding in ENCODINGS
    ),
    # Strengths by kind: it states no distributions.
    "factcheck-bench": tuple(
        View(name, encoding, learned=True) for name in ("FR1", "FR2") for encoding in ENCODINGS
    ),
}
"""Views with strengths that are learned under each encoding."""


WIDEST_REFERENCE = 0.01
"""Certified intervals that are wider anywhere bound errors; their middles are not posteriors."""


@dataclass(frozen=True, eq=False)
class KnownPosteriors:
    """Exact or certified posteriors of labeled atoms.

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
        """True if every posterior is known well enough to be scored."""
        return self.shape["interval"] <= WIDEST_REFERENCE


def known_posteriors(
    graphs: Sequence[FactGraph],
    encoding: str,
    atoms: LabeledAtoms,
    exact_seconds: float = 1.0,
    i_bound: int = 6,
    iterations: int = 5,
) -> KnownPosteriors:
    """Exact posteriors of labeled atoms, certified intervals of those of difficult graphs.

    Args:
        graphs: the responses.
        encoding: encoding of their relations.
        atoms: their labeled atoms.
        exact_seconds: a graph is difficult where exact inference is predicted to take longer.
        i_bound: of the mini-buckets of the intervals.
        iterations: of the same.
    """
    exact = Exact(search_seconds=0.2)
    factors = [graph.to_factor_graph(encoding) for graph in graphs]
    predicted = [exact.predict(each) for each in factors]
    easy = np.array([each.seconds <= exact_seconds for each in predicted])
    sizes = [len(graph.atoms) for graph in graphs]
    of_easy = np.repeat(easy, sizes)
    p = np.full(len(of_easy), np.nan)
    if easy.any():
        chosen = [graph for graph, fits in zip(graphs, easy, strict=True) if fits]
        p[of_easy] = claim_posteriors(chosen, encoding, exact)
    lower, upper = p.copy(), p.copy()
    starts = np.cumsum([0, *sizes])
    for start, graph, factor, fits in zip(starts, graphs, factors, easy, strict=False):
        if fits:
            continue
        names = [atom.id for atom in graph.atoms if atom.label is not None]
        intervals = certified_intervals(factor, names, i_bound=i_bound, iterations=iterations)
        for at, atom in enumerate(graph.atoms, start=int(start)):
            if atom.id in intervals:
                lower[at], upper[at] = intervals[atom.id].lower, intervals[atom.id].upper
                p[at] = (lower[at] + upper[at]) / 2
    frustrated = [frustration(each) for each in factors]
    cycles = sum(each.cycles for each in frustrated)
    shape = {
        "responses": len(graphs),
        "cycles": cycles,
        "frustrated": sum(each.frustrated for each in frustrated) / cycles if cycles else np.nan,
        "unbalanced": sum(not each.balanced for each in frustrated),
        "width": float(np.median([each.induced_width for each in predicted])),
        "widest": max(each.induced_width for each in predicted),
        "certified": int((~easy).sum()),
        "interval": float((upper - lower)[atoms.kept].max()),
    }
    return KnownPosteriors(p[atoms.kept], lower[atoms.kept], upper[atoms.kept], shape)


def error_row(p: Floats, known: KnownPosteriors, atoms: LabeledAtoms, seed: int) -> dict[str, Any]:
    """Error of an approximation, and what it moves in the Brier score.

    The error of an atom is its distance from the certified interval, which is at most what the
    posterior is off by, and at least that minus the interval's width.
    """
    error = np.maximum(np.maximum(known.lower - p, p - known.upper), 0.0)
    row: dict[str, Any] = {"error": float(error.mean()), "largest": float(error.max())}
    if not known.is_settled:
        return row | {"verdicts": np.nan, **named("moved", (np.nan,) * 3), "digit": ""}
    losses = [(q - atoms.labels) ** 2 for q in (p, known.p)]
    first, second = ((atoms.grouping.sums(each), atoms.grouping.sizes) for each in losses)
    mean_loss, other = (float(each.mean()) for each in losses)
    # The first digit behind the point at which both are printed differently.
    moved = [digits for digits in range(1, 7) if f"{mean_loss:.{digits}f}" != f"{other:.{digits}f}"]
    return row | {
        "verdicts": float((np.sign(verdicts(p)) != np.sign(verdicts(known.p))).mean()),
        **named("moved", difference_of_clusters(first, second, seed)),
        "digit": str(moved[0]) if moved else "none of 6",
    }


EXACT, CERTIFIED = "exact", "exact or certified"

LEARNED = ", learned"
"""Suffix of the name of an encoding with learned strengths."""

Found = dict[tuple[str, str, str], Floats]
"""Posteriors of labeled atoms by view, encoding and backend."""


def case_rows(learned: Found, atoms: LabeledAtoms, seed: int) -> list[dict[str, Any]]:
    """Scores of every case with intervals, and their differences from the first's, paired."""
    # What differs by rounding alone is tied.
    first = next(iter(learned.values())).round(9)
    rows = []
    for (view, encoding, backend), posterior in learned.items():
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        p = posterior.round(9)
        for name in ("brier", "log_loss", "auroc", "entropy"):
            row |= scores_with_intervals(p, atoms, (name,), seed)
            row |= named(f"{name}_change", score_change(name, p, first, atoms, seed))
        rows.append(row)
    return rows


def learned_rows(learned: Found, atoms: LabeledAtoms, seed: int) -> list[dict[str, Any]]:
    """Rows of the gains of strengths learned under each encoding.

    There is a row for each view with learned strengths, or for each approximation if posteriors are
    not known. The gains are differences in Brier score from the same view as stated under the same
    encoding, from the view learned under *implication*, and from FR1 learned under the same
    encoding, by the same approximation if there is one, else by the first.
    """
    first: dict[tuple[str, str], str] = {}
    for view, encoding, backend in learned:
        first.setdefault((view, encoding), backend)

    def change(p: Floats, view: str, encoding: str, backend: str) -> Value:
        same = (view, encoding, backend)
        other = same if same in learned else (view, encoding, first.get((view, encoding), ""))
        if other not in learned:
            return (np.nan,) * 3
        return score_change("brier", p, learned[other].round(9), atoms, seed)

    rows = []
    for (view, encoding, backend), posterior in learned.items():
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


MADE: Mapping[str, Callable[[Found, LabeledAtoms, int], list[dict[str, Any]]]] = {
    "cases": case_rows,
    "learned": learned_rows,
}
"""Tables that are made of all posteriors of a dataset."""

CASE = "encoding | backend | "

CHANGES = {"stated": "as stated", "implication": "implication", "stars": "FR1"}

COLUMNS: Mapping[str, Sequence[Column]] = {
    "graphs": columns_as(
        "encoding | responses:0 | cycles:0 | frustrated:3 | unbalanced:0 | width:0 | widest:0 | "
        "certified:0 | interval>",
        interval=tiny,
    ),
    "cases": columns_as(
        f"{CASE}brier:4± Brier | log_loss:3± log loss | auroc:3± AUROC | entropy:4± E | "
        "brier_change:4± Brier minus the first"
    ),
    "learned": columns_as(
        f"{CASE}brier:4± Brier | auroc:3± AUROC | "
        + " | ".join(f"{name}:4± difference from {title}" for name, title in CHANGES.items())
    ),
    "errors": columns_as(
        f"{CASE}error> mean |Δp| | largest> | verdicts:4 | moved:6± Δ Brier | digit> moves digit",
        error=tiny,
        largest=tiny,
    ),
}

SAID = {
    "graphs": (
        "Cycles and width of real graphs",
        "Frustrated: share of the cycles of a basis. Unbalanced: responses with a frustrated "
        "cycle. Width: median induced width. Certified: responses on which exact inference is "
        "predicted to take too long. Interval: the widest certified one of an atom.",
    ),
    "cases": (
        "Posteriors of real graphs by view, encoding and backend",
        "Intervals: 95% over responses. Minus the first: paired with the first row of the same "
        "data; the file has the other scores' differences too.",
    ),
    "learned": (
        "Strengths learned under each encoding",
        "Every approximation where posteriors are not known. Less: the Brier score minus the score "
        "of the same view as stated, learned under implication, and of FR1 learned under the same "
        "encoding, by the same backend. Intervals: 95% over responses, paired.",
    ),
    "errors": (
        "Effect of approximate inference on real graphs",
        "Against exact inference, and certified intervals where it does not fit. Verdicts: share "
        "of claims on the other side of 1/2. Moves digit: the first digit of the Brier score that "
        "is printed differently. Intervals: 95% over responses, paired.",
    ),
}
"""Caption and note of each table."""


def view_table(name: str, frame: pd.DataFrame) -> Table:
    """The table of one of `SAID`, in blocks by dataset and view."""
    headed = frame.assign(head=frame["dataset"] + ", " + frame["variant"])
    # A study may have none of what learned strengths would be compared with.
    columns = (
        column
        for column in COLUMNS[name]
        if column.name not in CHANGES or frame[column.name].fillna(0.0).any()
    )
    caption, note = SAID[name]
    return Table(headed, tuple(columns), caption, group="head", note=note)


def real_graphs(
    *,
    learned: bool = False,
    data: tuple[str, ...] = ("factscore", "factcheck-bench"),
    seed: int = 0,
) -> Artifacts:
    """Return scores of every case, and truth beside posteriors by position.

    Args:
        learned: compare strengths that are learned under each encoding, in place of all views.
        data: embedded responses; positions are those of the first.
        seed: seed of the folds and of the bootstrap over responses.
    """
    limits = (1.0, 4, 10) if learned else (10.0, 4, 20)
    views = TAUGHT if learned else STATED
    return compared(
        {name: (datasets.load(name).graphs, views[name]) for name in data}, limits, seed
    )


def compared(
    data: Mapping[str, tuple[Sequence[FactGraph], Sequence[View]]],
    limits: tuple[float, int, int],
    seed: int,
) -> Artifacts:
    """Return the tables and figures of views of responses.

    Args:
        data: responses and their views, by name.
        limits: `exact_seconds`, `i_bound` and `iterations` of `known_posteriors`.
        seed: seed of the folds and of the bootstrap over responses.
    """
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SAID}
    positions = data_frame([])
    for name, (responses, views) in data.items():
        graphs = [g for g in responses if any(a.label is not None for a in g.atoms)]
        atoms = labeled_atoms(graphs, name)
        p_by_case: Found = {}
        for view in views:
            head = {"dataset": name, "variant": view.variant, "encoding": view.title}
            if view.learned:
                task = cross_fit_task(graphs, FOLDS, seed)
                viewed = taught_classes(task, view.variant, view.encoding)
            else:
                viewed = [variant(graph, view.variant) for graph in graphs]
            known = known_posteriors(viewed, view.encoding, atoms, *limits)
            if known.is_settled:
                certain = CERTIFIED if known.shape["certified"] else EXACT
                p_by_case[view.variant, view.title, certain] = known.p
            rows["graphs"].append({**head, **known.shape})
            for label, backend in built(view.backends):
                p = claim_posteriors(viewed, view.encoding, backend)[atoms.kept]
                p_by_case[view.variant, view.title, label] = p
                error = error_row(p, known, atoms, seed)
                rows["errors"].append({**head, "backend": label, **error})
        for table, make in MADE.items():
            rows[table] += [{"dataset": name} | row for row in make(p_by_case, atoms, seed)]
        if positions.empty:
            values = {"true": atoms.labels}
            for (view_name, encoding, _), p in p_by_case.items():
                values.setdefault(f"{view_name}, {encoding}", p)
            positions = mean_by_fifth(graphs, values, atoms, seed)
    frames = {name: data_frame(records) for name, records in rows.items() if records}
    tables = {name: view_table(name, frame) for name, frame in frames.items()}
    cases = frames["cases"]
    settled = cases[cases["backend"].isin([EXACT, CERTIFIED])]
    scores = PaperFigure(brier_figure(settled), cases, "Brier score of every view")
    decline = PaperFigure(decline_figure(positions), positions, "truth and evidence by position")
    tables["positions"] = fifths_table(positions)
    return Artifacts(tables, {"decline": decline, "scores": scores})


def built(names: Sequence[str]) -> list[tuple[str, Backend]]:
    """Return the approximations by the names that tables show."""
    chosen = ((label, *BACKENDS[label]) for label in names)
    return [(label, get_backend(name, **settings)) for label, name, settings in chosen]


def brier_figure(frame: pd.DataFrame) -> Figure:
    """Draw the Brier score of every row of a table of cases or of learned strengths."""
    keys = ["dataset", "variant", "encoding", "backend"]
    shown = frame.assign(case=frame[keys].agg(", ".join, axis=1))
    return estimate_figure(shown, "case", {"brier": "Brier score"}, by="encoding")


if __name__ == "__main__":
    answer_question(real_graphs, __file__)
