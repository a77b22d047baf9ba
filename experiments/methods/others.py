"""Outputs of other tools beside one's own: verdicts on the same claims in one table."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.intervals import mean_interval
from calibration.scores.measures import f1_at_k
from experiments.findings.table import Column, Table, data_frame, interval_column, text_columns
from experiments.findings.text import counted
from experiments.methods.inputs import posteriors_by_model
from experiments.study.inputs import graphs_of
from factormodels.aligned_claims import Alignment, with_verdicts_of
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io import read_many
from factormodels.io.tables import DataTable

Graphs = str | os.PathLike[str] | Iterable[FactGraph]


@dataclass(frozen=True, eq=False)
class Beside:
    """Claims that every tool judged.

    Attributes:
        table: a row per claim: response, claim, label and P(true) by each.
        models: the columns of P(true).
        alignments: what was found of each tool's claims.
        sentences: what a reader must know.
    """

    table: DataTable
    models: tuple[str, ...]
    alignments: tuple[Alignment, ...]
    sentences: tuple[str, ...]


def beside(data: Any, files: Sequence[Path], source: str) -> Beside:
    """Responses with labels and claims, and what other tools wrote of the same responses.

    Claims that not all of them judged are left out, so that all are scored on the same claims.

    Args:
        data: responses: a file, the name of an embedded dataset, or fact graphs.
        files: the outputs of the tools.
        source: what the responses are called.

    Raises:
        InputError: if a file cannot be read, holds no verdicts, or no claim is judged by all.
    """
    graphs: tuple[FactGraph, ...] = (
        tuple(graphs_of(data)) if isinstance(data, str | os.PathLike) else tuple(data)
    )
    if not all(isinstance(graph, FactGraph) for graph in graphs):
        raise InputError("--with needs responses with claims and labels, not a table of numbers")
    alignments: list[Alignment] = []
    for file in files:
        found = with_verdicts_of(graphs, read_many(file), str(file))
        alignments += found
        graphs = found[-1].graphs
    told = {graph.id: posteriors_by_model(graph) for graph in graphs}
    models = tuple(dict.fromkeys(name for by_model in told.values() for name in by_model))
    rows: list[dict[str, Any]] = []
    n_labelled = 0
    for graph in graphs:
        for atom in graph.atoms:
            n_labelled += atom.label is not None
            p = {name: told[graph.id].get(name, {}).get(atom.id) for name in models}
            if None not in p.values():
                rows.append({"response": graph.id, "claim": atom.id, "label": atom.label, **p})
    kept = sum(row["label"] is not None for row in rows)
    if not kept:
        raise InputError(
            f"{source}: no labelled claim is judged by all of {', '.join(models)}; see how many "
            "of its claims each shares, with one --with at a time"
        )
    sentences = [
        f"Scored are the {counted(kept, 'labelled claim')} of {n_labelled:,} that all "
        f"{len(models)} judged.",
        *(_sentence(each) for each in alignments),
    ]
    columns = ("response", "claim", "label", *models)
    table = DataTable(source, "table", columns, tuple(rows), (None,) * len(rows))
    return Beside(table, models, tuple(alignments), tuple(sentences))


def _sentence(each: Alignment) -> str:
    order = " Its responses are told by their order alone." if each.by_order else ""
    return (
        f"{each.name} judges {each.n_others:,} claims; {each.n_aligned:,} of {each.n_claims:,} "
        f"claims here are among them, by their words, in {counted(each.n_responses, 'response')}."
        f"{order}"
    )


def measures_table(found: Beside, reference: str) -> Table:
    """Pr and F1@K of each, means over responses, and their differences from the reference.

    K is the median number of claims of a response; those that not all judged do not count.
    """
    responses: dict[str, list[Mapping[str, Any]]] = {}
    for row in found.table.rows:
        responses.setdefault(row["response"], []).append(row)
    k = float(np.median([len(rows) for rows in responses.values()]))
    own: dict[str, dict[str, list[float]]] = {}
    for model in found.models:
        p = [np.array([row[model] for row in rows], dtype=float) for rows in responses.values()]
        own[model] = {
            "precision": [float((each > 0.5).mean()) for each in p],
            "f1_at_k": [f1_at_k(each, k) for each in p],
        }
    measured: list[dict[str, Any]] = []
    for model in found.models:
        line: dict[str, Any] = {"model": model, "n_responses": len(responses)}
        for name, values in own[model].items():
            _put(line, name, mean_interval(values))
            if model != reference:
                apart = np.subtract(values, own[reference][name])
                _put(line, f"{name}_less", _paired(apart))
        measured.append(line)
    titles = (("precision", "Pr"), ("f1_at_k", "F1@K"))
    columns = [*text_columns("model")]
    for name, title in titles:
        columns.append(interval_column(name, title, 3))
        if len(found.models) > 1:
            columns.append(interval_column(f"{name}_less", f"{title} less {reference}", 3))
    frame = data_frame(measured)
    for column in columns:
        for each in (column.name, column.lower, column.upper):
            if each and each not in frame:
                frame[each] = math.nan
    return Table(
        frame,
        tuple(columns),
        f"Pr and F1@K by each, means over responses, K = {k:g}.",
        note=f"Differences are paired by response, from {reference}; 95% intervals.",
    )


def _paired(apart: Any) -> tuple[float, float, float]:
    from calibration.intervals import Scale

    return mean_interval(apart, scale=Scale.NUMBER)


def _put(row: dict[str, Any], name: str, ends: tuple[float, float, float]) -> None:
    row[name], row[f"{name}_lower"], row[f"{name}_upper"] = ends


def aligned_table(alignments: Sequence[Alignment]) -> Table:
    """What was found of each tool's claims."""
    rows = [
        {
            "tool": each.name,
            "others": each.n_others,
            "claims": each.n_claims,
            "aligned": each.n_aligned,
            "responses": each.n_responses,
        }
        for each in alignments
    ]
    return Table(
        data_frame(rows),
        (
            *text_columns("tool"),
            Column("others", "its claims", digits=0),
            Column("claims", "claims here", digits=0),
            Column("aligned", "aligned", digits=0),
            Column("responses", "responses", digits=0),
        ),
        "Claims of other tools that are claims here.",
        note="Aligned one to one by their words; claims that differ in a number or a negation "
        "are different claims.",
    )
