"""Conversion of a model from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.findings.findings import Findings
from experiments.findings.table import Column, Table, columns_as
from experiments.settings import front_door
from experiments.settings.inputs import (
    DEFAULT_VARIANT,
    ModelSettings,
    read_graphs,
    read_model,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io import write, write_many
from factormodels.variants import variant as variant_of

SUFFIXES = (".json", ".jsonl", ".uai")


class ConvertSettings(ModelSettings):
    """Conversion.

    Options of `convert`.
    """


@front_door
def convert(source: Path, target: Path, settings: ConvertSettings) -> Findings:
    """Convert a model from one format to another.

    The format of SOURCE is recognized by content. The suffix of TARGET selects the format to write:
    .json for one fact graph, .jsonl for one fact graph per line, .uai for a factor graph (the names
    of its variables are written to TARGET.names).

    Examples::

        convert("factreasoner.json", "graph.json")
        convert("graph.json", "graph.uai", variant="FR2", encoding="conditional")
        convert("alarm.bif", "alarm.uai")
        convert("annotated.jsonl", "graphs.jsonl")
        convert("demonstration", "demonstration.jsonl")

    Args:
        source: Fact graph JSON, FactReasoner, FActScore, Factcheck-Bench, UAI or BIF; or the name
            of an embedded dataset.
        target: A file ending in .json, .jsonl or .uai.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if the source is invalid, or cannot be converted to the target's format.
    """
    source, target = Path(source), Path(target)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"{target}: a model cannot be written to {suffix or 'a file without suffix'}; "
            f"use {', '.join(SUFFIXES)}"
        )
    # samefile sees through links and different spellings of a path.
    if source.exists() and target.exists() and source.samefile(target):
        raise InputError(f"{target}: this is the input itself; give the output another name")
    if suffix == ".uai":
        graph = settings.load_one(source).factor_graph
        write(graph, target)
        return _found(source, target, variables=graph.n_variables,
                      factors=graph.n_factors)  # fmt: skip
    if settings.encoding is not None:
        raise InputError(
            f"{target}: a fact graph contains relations, not tables, so --encoding "
            f"{settings.encoding} has no effect; leave it out"
        )
    view = settings.variant or DEFAULT_VARIANT
    if suffix == ".jsonl" and settings.response is None:
        graphs = [variant_of(graph, view, settings.declared()) for graph in read_graphs(source)]
        write_many(graphs, target)
    else:
        model = read_model(source, settings.response)
        if not isinstance(model, FactGraph):
            raise InputError(
                f"{source}: this is a general network without atoms and contexts; write it to a "
                ".uai file"
            )
        graphs = [variant_of(model, view, settings.declared())]
        write(graphs[0], target)
    return _found(
        source,
        target,
        responses=len(graphs),
        atoms=sum(len(graph.atoms) for graph in graphs),
        contexts=sum(len(graph.contexts) for graph in graphs),
        relations=sum(len(graph.relations) for graph in graphs),
    )


def _found(source: Path, target: Path, **counts: int) -> Findings:
    row: dict[str, Any] = {"file": str(target), **counts}
    columns = (*columns_as("file"), *(Column(name, name, digits=0) for name in counts))
    return Findings(
        str(source), tables={"written": Table([row], columns, "The written file and its contents.")}
    )
