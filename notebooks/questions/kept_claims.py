"""Kept claims: do promises of conformal filtering hold on new responses?

Question: `keep` promises a least share of true claims among the kept ones, in the mean or with a
probability. How many responses have that share, and how many claims are kept?
Data: factscore (posteriors under FR1) and selfcheck (the share of Yes among votes), embedded.
Rival: the promise itself; half of the responses teach, the other half are judged.

    python notebooks/questions/kept_claims.py --out docs/results/kept-claims

It takes 11 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibration.filtering import Guarantee, held_out
from calibration.validation import Floats
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import labeled_atoms
from experiments.findings.figures import line_figure
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame
from experiments.settings.inputs import read_graphs
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant
from inference.batch import claim_posteriors


def kept_claims(
    *,
    data: tuple[Path, ...] = (Path("factscore"), Path("selfcheck")),
    precisions: tuple[float, ...] = (0.5, 0.7, 0.8, 0.9),
    confidences: tuple[float, ...] = (0.8, 0.9),
    splits: int = 200,
    seed: int = 0,
) -> Artifacts:
    """Return the promises, and the shares of new responses that meet them, by data.

    Args:
        data: files or embedded datasets of labeled responses.
        precisions: least shares of true claims among those kept.
        confidences: probabilities that a response has that; each precision is promised in the mean
            as well.
        splits: random halves of the responses.
        seed: seed of the halves.
    """
    rows: list[dict[str, Any]] = []
    for name in data:
        graphs = read_graphs(name)
        p = probabilities(graphs, "FR1")
        for precision in precisions:
            promised = promised_rows(graphs, p, precision, confidences, splits, seed)
            rows += [{"data": str(name), **row} for row in promised]
    frame = data_frame(rows)
    columns = columns_as(
        "promise | precision:2 least precision | reached:3 responses that have it | "
        "reached_nonempty:3 without empty ones | mean:3 mean precision | kept:3 claims kept"
    )
    title = "Promises of conformal filtering, and the shares of new responses that meet them."
    note = f"Means over {splits} random halves: learned on one, tried on the other. A response of "
    note += "which no claim is kept has every precision, but for the column without empty ones."
    table = Table(frame, columns, title, group="data", note=note)
    drawn = frame.rename(columns={"precision": "least precision"})
    figure = line_figure(drawn, "least precision", {"kept": "claims kept"}, "promise", "data")
    return Artifacts({"promises": table}, {"kept": PaperFigure(figure, frame, "claims kept")})


def probabilities(graphs: Sequence[FactGraph], name: str) -> Floats:
    """Probability of every claim, in order: the share of Yes among votes, or a posterior."""
    votes = [graph.metadata.get("votes", {}).get(a.id) for graph in graphs for a in graph.atoms]
    if all(votes):
        return np.array([each.count("Y") / len(each) for each in votes])
    return claim_posteriors([variant(graph, name) for graph in graphs], "implication")


def promised_rows(
    graphs: Sequence[FactGraph],
    p: Floats,
    precision: float,
    confidences: Sequence[float],
    splits: int,
    seed: int,
) -> list[dict[str, Any]]:
    """A row for each confidence, and one for the promise in the mean."""
    atoms = labeled_atoms(graphs, "data")
    promises: list[dict[str, Any]] = [{"confidence": confidence} for confidence in confidences]
    promises.append({"guarantee": Guarantee.MEAN})
    rows = []
    for promise in promises:
        outcome = held_out(p[atoms.kept], atoms.labels > 0, atoms.responses, precision=precision,
                         n_splits=splits, seed=seed, **promise)  # fmt: skip
        confidence = promise.get("confidence")
        rows.append({
            "promise": "in the mean" if confidence is None else f"with probability {confidence:g}",
            "precision": precision,
            "reached": outcome.reached,
            "reached_nonempty": outcome.reached_nonempty,
            "mean": outcome.precision,
            "kept": outcome.kept,
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    answer_question(kept_claims, __file__)
