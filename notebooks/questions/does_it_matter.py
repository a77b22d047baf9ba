"""Does the error of inference matter: how far does it move reported scores?

Question: how far do approximate posteriors move the Brier score, the MAE of precision, and the
ranking of responses?
Data: factcheck-bench and demonstration, embedded, and drawn responses, sparse and dense.
Rival: exact inference.

    python notebooks/questions/does_it_matter.py

It takes 18 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

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
from experiments.findings.interval_values import interval_text, kendall, tiny
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, named
from experiments.settings.inputs import read_graphs
from factormodels.fact_graph import FactGraph
from factormodels.synthetic import Uniform, labeled_responses
from inference import Backend, get_backend
from inference.batch import claim_posteriors

SCORES = {"brier": "brier", "mae": "precision_mae"}
"""Scores by what the tables call them."""

DRAWN: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {"sparse": {"density": 0.1}, "dense": {"density": 0.3, "context_density": 0.05}}
)
"""Parameters of the drawn responses."""

BACKENDS: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "lbp": ("lbp", {}),
        "wmb-6": ("wmb", {"i_bound": 6}),
        "wmb-2": ("wmb", {"i_bound": 2}),
        "wmb-1": ("wmb", {"i_bound": 1}),
        "trw": ("trw", {}),
        "cavi": ("cavi", {}),
    }
)
"""Name and settings of the approximations, by label."""


def does_it_matter(
    *,
    data: tuple[Path, ...] = (Path("factcheck-bench"), Path("demonstration")),
    drawn: int = 80,
    encoding: str = "implication",
    seed: int = 0,
) -> Artifacts:
    """Return the effect of each approximation on each dataset, and its figure.

    Args:
        data: files or embedded datasets of labeled responses on which exact inference is possible.
        drawn: how many responses of each kind are drawn; 0: none.
        encoding: encoding of the relations.
        seed: seed of the bootstrap over responses.
    """
    sizes: Any = {"n_atoms": (8, 14), "contexts_per_atom": 2, "context_prior": Uniform(0.5, 0.95)}
    cases: dict[str, Sequence[FactGraph]] = {}
    for name, densities in DRAWN.items() if drawn else ():
        cases[name] = labeled_responses(drawn, seed=0, **sizes, **densities)
    cases |= {str(name): read_graphs(name) for name in data}
    backends = [
        (label, get_backend(name, **settings)) for label, (name, settings) in BACKENDS.items()
    ]
    rows: list[dict[str, Any]] = []
    baselines: list[dict[str, Any]] = []
    for name, graphs in cases.items():
        baseline, moved_rows = effects(graphs, backends, encoding, seed, name)
        rows += [{"dataset": name, **row} for row in moved_rows]
        baselines.append({"dataset": name, **baseline})
    frame, exact = data_frame(rows), data_frame(baselines)
    moved = Table(
        frame.assign(**{f"{name}_text": interval_text(frame, name, "+") for name in SCORES}),
        columns_as(
            "backend | error> mean |Δp| | verdicts:3 | brier_text> Δ Brier | "
            "mae_text> Δ MAE | tau:3± tau by Pr | tau_mean:3 tau by mean p",
            error=tiny,
        ),
        "Effect of the error of inference, approximate minus exact",
        group="dataset",
        note="Intervals: bootstrap over responses. Verdicts: share of atoms on the other side of "
        "1/2. tau: Kendall's tau-b of responses ranked under approximate and exact posteriors.",
    )
    of_exact = Table(
        exact,
        columns_as(
            "dataset | n_responses:0 responses | n_atoms:0 labeled atoms | "
            "brier:3± Brier | mae:3± MAE"
        ),
        "Scores of the exact posteriors",
        note="Intervals: 95% over responses.",
    )
    values = {"brier": "Δ Brier", "mae": "Δ MAE", "tau": "tau by Pr"}
    ideals = {"brier": 0.0, "mae": 0.0, "tau": 1.0}
    figure = estimate_figure(frame, "dataset", values, by="backend", ideals=ideals)
    shown = PaperFigure(figure, frame, "what inference error moves")
    return Artifacts({"effects": moved, "exact": of_exact}, {"matters": shown})


def effects(
    graphs: Sequence[FactGraph],
    backends: Sequence[tuple[str, Backend]],
    encoding: str,
    seed: int,
    where: str = "the data",
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The scores of exact posteriors, and the effect of each approximation.

    The error of inference is the mean |Δp| over labeled atoms. `brier` and `mae` are the scores'
    changes, approximate minus exact, with bootstrap intervals over responses, both redrawn
    together. `tau` is Kendall's tau-b between the responses ranked by Pr under both, and
    `tau_mean` when ranked by the mean posterior, which has hardly any ties. `verdicts` is the
    share of atoms whose verdict at 1/2 changes.

    Args:
        graphs: responses with labels.
        backends: the approximations by label.
        encoding: encoding of the relations.
        seed: seed of the bootstrap.
        where: what errors call the data.

    Raises:
        InputError: if no atom is labeled.
    """
    atoms = labeled_atoms(graphs, where)
    exact = claim_posteriors(graphs, encoding)[atoms.kept]
    scores = scores_with_intervals(exact, atoms, tuple(SCORES.values()), seed)
    baseline: dict[str, Any] = {"n_responses": len(atoms.grouping.responses), "n_atoms": len(exact)}
    baseline |= {name.replace("precision_mae", "mae"): value for name, value in scores.items()}
    rows = []
    for label, backend in backends:
        p = claim_posteriors(graphs, encoding, backend)[atoms.kept]
        rows.append({"backend": label, **_moved(p, exact, atoms, seed)})
    return baseline, rows


def _moved(p: Floats, exact: Floats, atoms: LabeledAtoms, seed: int) -> dict[str, float]:
    supported = [verdicts(each) > 0 for each in (p, exact)]  # their mean over a response is Pr
    row = {"error": float(np.abs(p - exact).mean())}
    row["verdicts"] = float((supported[0] != supported[1]).mean())
    for name, score in SCORES.items():
        row |= named(name, score_change(score, p, exact, atoms, seed))
    # Pr takes few values, which ties most responses; the mean posterior ties hardly any.
    for name, measures in ("tau", supported), ("tau_mean", [p, exact]):
        approximate, true = map(atoms.grouping.means, measures)
        row |= named(name, kendall(approximate, true, seed))
    return row


if __name__ == "__main__":
    answer_question(does_it_matter, __file__)
