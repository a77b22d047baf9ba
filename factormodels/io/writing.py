"""Write models to files in the format of the suffix: fact-graph JSON and UAI."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.fact_graph_json import write_fact_graph, write_fact_graphs
from factormodels.io.networks.uai import write_uai


def write(graph: FactGraph | FactorGraph, path: str | os.PathLike[str]) -> None:
    """Write a model: a fact graph to .json or .jsonl, a factor graph to .uai.

    Raises:
        InputError: if the suffix does not fit the model, the format does not support it, or the
            file cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if isinstance(graph, FactGraph):
        if suffix == ".json":
            return write_fact_graph(graph, path)
        if suffix == ".jsonl":
            return write_fact_graphs([graph], path)
        advice = (
            "make it a factor graph first with to_factor_graph"
            if suffix == ".uai"
            else "use .json or .jsonl"
        )
        raise InputError(
            f"{path}: a fact graph cannot be written to {suffix or 'no suffix'}; {advice}"
        )
    if suffix != ".uai":
        raise InputError(
            f"{path}: a factor graph cannot be written to {suffix or 'no suffix'}; use .uai"
        )
    return write_uai(graph, path)


def write_many(graphs: Iterable[FactGraph], path: str | os.PathLike[str]) -> None:
    """Write fact graphs to a .jsonl file, one per line.

    Raises:
        InputError: if the path has another suffix, two graphs share an id, metadata are not valid
            JSON, or the file cannot be written.
    """
    if Path(path).suffix.lower() != ".jsonl":
        raise InputError(f"{path}: many graphs are written one per line; use the suffix .jsonl")
    write_fact_graphs(graphs, path)
