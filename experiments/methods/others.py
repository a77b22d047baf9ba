"""Outputs of other tools beside one's own: verdicts on the same claims in one table."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.intervals import Scale, mean_interval
from calibration.scores.measures import f1_at_k
from experiments.evaluators.batch import CONSUMPTION_KEY
from experiments.findings.table import Table, columns_as, data_frame, interval_column
from experiments.findings.text import counted
from experiments.methods.probability_table import posteriors_by_model
from experiments.settings.inputs import graphs_of
from factormodels.aligned_claims import Alignment, with_verdicts_of
from factormodels.errors import InputError
from factormodels.extraction.language_model.accounting import total
from factormodels.fact_graph import FactGraph
from factormodels.io import read_many
from factormodels.io.tables import DataTable
from factormodels.recorded_verdicts import SECONDS_KEY

if TYPE_CHECKING:
    from calibration.estimate import Estimate
    from calibration.scoring import ScoreTable

Graphs = str | os.PathLike[str] | Iterable[FactGraph]

_SCORES: Mapping[str, str] = MappingProxyType({"brier": "Brier", "auroc": "AUROC", "ece": "ECE"})
_COSTS = columns_as(
    "answers:1 calls | prompt_tokens:0 tokens in | completion_tokens:0 tokens out | cost:4 US$ | "
    "seconds:1"
)
_NOTHING = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Beside:
    """Claims that every tool judged.

    Attributes:
        table: a row per claim: response, claim, label and P(true) by each.
        models: the columns of P(true).
        alignments: what was found of each tool's claims.
        costs: what a response took, by model, of those of which a file says it.
        sentences: what a reader must know.
    """

    table: DataTable
    models: tuple[str, ...]
    alignments: tuple[Alignment, ...]
    costs: Mapping[str, Mapping[str, float]]
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
    mine = _cost(graphs)
    costs: dict[str, Mapping[str, float]] = {}
    for file in files:
        others = read_many(file)
        found = with_verdicts_of(graphs, others, str(file))
        alignments += found
        graphs = found[-1].graphs
        costs |= dict.fromkeys((each.name for each in found), _cost(others))
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
    known = {name: costs.get(name, mine) for name in models}
    taken = {name: cost for name, cost in known.items() if cost}
    return Beside(table, models, tuple(alignments), taken, tuple(sentences))


def _cost(graphs: Sequence[FactGraph]) -> dict[str, float]:
    """What responses took on average, of those that say it; nothing where none does."""
    taken = [total(graph.metadata.get(CONSUMPTION_KEY, {}).values()) for graph in graphs]
    asked = [each for each in taken if each["answers"]]
    # An answer whose price is not known would count for nothing.
    priced = [each for each in asked if not each["unpriced"]]
    row = {
        key: _mean([each[key] for each in asked])
        for key in ("answers", "prompt_tokens", "completion_tokens")
    }
    row["cost"] = _mean([each["cost"] for each in priced])
    row["seconds"] = _mean([one for each in graphs if (one := each.metadata.get(SECONDS_KEY))])
    return {key: value for key, value in row.items() if not math.isnan(value)}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _sentence(each: Alignment) -> str:
    order = " Its responses are told by their order alone." if each.by_order else ""
    return (
        f"{each.name} judges {each.n_others:,} claims; {each.n_aligned:,} of {each.n_claims:,} "
        f"claims here are among them, by their words, in {counted(each.n_responses, 'response')}."
        f"{order}"
    )


def tools_table(found: Beside, scored: ScoreTable) -> Table:
    """What each tool is worth on the same claims, and what a response took, a row each.

    Of each measure there is the difference from the reference, paired by response. K is the median
    number of claims of a response; those that not all judged do not count.
    """
    reference = scored.reference
    claims = data_frame(found.table.rows).groupby("response", sort=False)
    k = float(claims.size().median())
    own = {
        model: {
            "precision": [float((p > 0.5).mean()) for _, p in claims[model]],
            "f1_at_k": [f1_at_k(p.to_numpy(dtype=float), k) for _, p in claims[model]],
        }
        for model in found.models
    }
    by_model = {each.name: each for each in scored.models}
    rows = []
    for model in found.models:
        line: dict[str, Any] = {"model": model, "n_responses": len(claims)}
        scores, apart = by_model[model].scores, by_model[model].differences
        for name in _SCORES:
            _put(line, name, _ends(scores.get(name)))
            _put(line, f"{name}_less", _ends(apart.get(name)))
        for name, values in own[model].items():
            _put(line, name, mean_interval(values))
            differs = np.subtract(values, own[reference][name])
            ends = _NOTHING if model == reference else mean_interval(differs, scale=Scale.NUMBER)
            _put(line, f"{name}_less", ends)
        rows.append(line | dict(found.costs.get(model, {})))
    frame = data_frame(rows)
    columns = [*columns_as("model")]
    for name, title in (*_SCORES.items(), ("precision", "Pr"), ("f1_at_k", "F1@K")):
        columns.append(interval_column(name, title, 3))
        if len(found.models) > 1:
            columns.append(interval_column(f"{name}_less", f"{title} less {reference}", 3))
    columns += [column for column in _COSTS if column.name in frame]
    return Table(
        frame,
        tuple(columns),
        f"Each tool on the same claims: Brier score, AUROC and calibration error (ECE), Pr and "
        f"F1@K as means over responses (K = {k:g}), and what a response took on average.",
        note=f"Differences are paired by response, from {reference}; 95% intervals. Costs are "
        "those that files say: calls, tokens and prices of what factormodels assessed, seconds of "
        "FactReasoner's outputs.",
    )


def _ends(found: Estimate | None) -> tuple[float, float, float]:
    return _NOTHING if found is None else (found.value, found.lower, found.upper)


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
        columns_as("tool | others:0 its claims | claims:0 claims here | aligned:0 | responses:0"),
        "Claims of other tools that are claims here.",
        note="Aligned one to one by their words; claims that differ in a number or a negation "
        "are different claims.",
    )
