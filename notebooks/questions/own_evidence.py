"""Evidence of others: do other responses' passages or other claims' evidence help a judge?

A retriever that searches the documents of all responses also finds passages on other persons. A
judge may also read the evidence of a claim's neighbors, the other claims of its sentence and
response. Judges with and without these are compared on new responses and on other data.

Question: how much does a learned judge lose by passages of all responses in place of own ones, and
do columns of neighbors help in five folds and from any data set to any other?
Data: factscore and factcheck-bench, embedded, with their labels; and SelfCheckGPT's own file with
its sampled passages (selfcheck_wikibio.jsonl), which --selfcheck names: lexical relations of each
sentence with the sampled passages found for it are its evidence.
Rival: the same judge with own passages, and without columns of neighbors.

    python notebooks/questions/own_evidence.py --out docs/results/own-evidence

It takes 41 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from calibration.folds import response_folds
from calibration.learned_potentials.columns import (
    RESPONSE,
    SENTENCE,
    ClaimTable,
    claim_table,
    records_texts,
)
from calibration.learned_potentials.methods import cross_fitted, field
from calibration.validation import Floats
from experiments import assess
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import (
    RANKED,
    LabeledAtoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.figures import estimate_figure
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, named
from experiments.settings.inputs import read_graphs
from factormodels.claims import Context
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats import selfcheck as selfcheck_format
from factormodels.io.json import read_json_lines

COLUMNS, NEIGHBORS = ("evidence", "position"), "neighbors"
CAUSES = (SENTENCE, RESPONSE)
SELFCHECK = "selfcheck"
_SCORES = "brier:4± Brier | log_loss:3± log loss | auroc:3± AUROC"


def own_evidence(
    *,
    data: tuple[Path, ...] = (Path("factscore"), Path("factcheck-bench")),
    selfcheck: tuple[Path, ...] = (),
    top_k: int = 3,
    folds: int = 5,
    seed: int = 0,
) -> Artifacts:
    """Return scores with own passages and with those of all, with and without neighbors.

    Args:
        data: files or embedded datasets of labeled responses with evidence.
        selfcheck: SelfCheckGPT's file, with sampled passages.
        top_k: passages per sentence of that file.
        folds: folds of responses.
        seed: seed of the folds and of the bootstrap over responses.
    """
    sets = {path.stem: with_labels(read_graphs(path)) for path in data}
    tables, remarks = {}, list[str]()
    for path in selfcheck:
        by_scope = {scope: searched(sampled(path), scope, top_k) for scope in ("own", "all")}
        sets[SELFCHECK] = by_scope["own"]
        frame = data_frame(scope_rows(by_scope, folds, seed))
        tables["scope"] = Table(
            frame,
            columns_as(f"scope passages of | columns | {_SCORES} | difference:4± Brier minus own"),
            "Judges learned from a response's own passages and from the passages of all",
            note="SelfCheckGPT: sentences on 119 persons, sampled passages. On responses not seen. "
            "Intervals: 95% over responses, differences paired.",
        )
    if not selfcheck:
        remarks.append("Without SelfCheckGPT, whose file --selfcheck names.")
    frame = data_frame(neighbor_rows(sets, folds, seed))
    tables["neighbors"] = Table(
        frame,
        columns_as(
            "used | learned learned from | columns without neighbors | "
            "brier:4± Brier without | with:4± Brier with | change:4± with minus without"
        ),
        "A judge without and with columns of neighbors",
        group="used",
        note="Learned from the same data: on responses of other folds. Intervals: 95% over "
        "responses, differences paired; below 0 neighbors help.",
    )
    shown = frame.assign(fit=frame["learned"] + " to " + frame["used"])
    figure = estimate_figure(shown, "fit", {"change": "change of the Brier score"}, by="columns")
    drawn = {"changes": PaperFigure(figure, frame, "Columns of neighbors: change of Brier")}
    return Artifacts(tables, drawn, tuple(remarks))


def with_labels(graphs: Sequence[FactGraph]) -> list[FactGraph]:
    """The responses with a labeled claim."""
    return [graph for graph in graphs if any(atom.label is not None for atom in graph.atoms)]


def sampled(path: Path) -> list[FactGraph]:
    """Labeled sentences of SelfCheckGPT's file, with the sampled passages of each response.

    Raises:
        InputError: if the file is none of SelfCheckGPT, or holds no sampled passages.
    """
    graphs = []
    for line, record in read_json_lines(path):
        graph = selfcheck_format.read(record, path, line)
        passages = record.get("sample_passages") if isinstance(record, dict) else None
        if not isinstance(passages, list) or not passages:
            raise InputError(f"{path}, line {line}: there is no list 'sample_passages'; add it")
        contexts = tuple(
            Context(f"c{number}", str(text), title=f"sample {number}")
            for number, text in enumerate(passages, 1)
        )
        graphs.append(replace(graph, contexts=contexts))
    return graphs


def searched(graphs: Sequence[FactGraph], scope: str, top_k: int) -> list[FactGraph]:
    """Responses with the passages found for each sentence, and their lexical relations."""
    assessed = assess(
        graphs, retriever="local", scope=scope, top_k=top_k, variant="FR1", relations="lexical"
    )
    return list(assessed.graphs)


def fitted_folds(table: ClaimTable, folds: int, seed: int) -> Floats:
    """Cross-fitted probability of each claim by a linear field."""
    fold = response_folds(np.arange(table.n_responses), folds, seed)[table.responses]
    return cross_fitted(field(), table, fold)


def atoms_of(table: ClaimTable) -> LabeledAtoms:
    """The labeled claims of a table."""
    kept = ~np.isnan(table.labels)
    return LabeledAtoms(table.labels[kept], table.responses[kept], kept)


def scope_rows(
    by_scope: Mapping[str, Sequence[FactGraph]], folds: int, seed: int
) -> list[dict[str, Any]]:
    """Yield a row for each scope and set of columns, with the difference from own passages."""
    rows = []
    for columns in (COLUMNS, (*COLUMNS, "texts")):
        own_p = None
        for scope, graphs in by_scope.items():
            table = claim_table(graphs, columns, CAUSES)
            atoms = atoms_of(table)
            p = fitted_folds(table, folds, seed)[atoms.kept]
            own_p = p if own_p is None else own_p
            row: dict[str, Any] = {"scope": scope, "columns": ", ".join(columns)}
            row |= scores_with_intervals(p, atoms, RANKED, seed)
            rows.append(row | named("difference", score_change("brier", p, own_p, atoms, seed)))
    return rows


def neighbor_rows(
    sets: Mapping[str, Sequence[FactGraph]], folds: int, seed: int
) -> list[dict[str, Any]]:
    """A row for each data set in folds, with texts too where it has them, and for each transfer."""
    rows = []
    for name, graphs in sets.items():
        texts = [(*COLUMNS, "texts")] if records_texts(graphs) else []
        for columns in (COLUMNS, *texts):
            tables = [
                claim_table(graphs, each, CAUSES) for each in (columns, (*columns, NEIGHBORS))
            ]
            both = [fitted_folds(table, folds, seed) for table in tables]
            rows.append(_row(name, name, columns, tables[0], both, seed))
    for source, target in permutations(sets, 2):
        tables, both = [], list[Floats]()
        for columns in (COLUMNS, (*COLUMNS, NEIGHBORS)):
            taught = claim_table(sets[source], columns, CAUSES)
            (predict,) = field()(taught, [taught.labeled])
            tables.append(claim_table(sets[target], columns, CAUSES))
            both.append(predict(tables[-1]))
        rows.append(_row(target, source, COLUMNS, tables[0], both, seed))
    return rows


def _row(
    used: str,
    learned: str,
    columns: Sequence[str],
    table: ClaimTable,
    both: Sequence[Floats],
    seed: int,
) -> dict[str, Any]:
    atoms = atoms_of(table)
    without, beside = (p[atoms.kept] for p in both)
    row: dict[str, Any] = {"used": used, "learned": learned, "columns": ", ".join(columns)}
    row |= scores_with_intervals(without, atoms, ("brier",), seed)
    scores = scores_with_intervals(beside, atoms, ("brier",), seed)
    row |= {name.replace("brier", "with"): value for name, value in scores.items()}
    return row | named("change", score_change("brier", beside, without, atoms, seed))


if __name__ == "__main__":
    answer_question(own_evidence, __file__)
