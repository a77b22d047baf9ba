"""Files of models, told apart by their content rather than by their name.

`read` and `read_many` know fact-graph JSON, FactReasoner's atoms-and-contexts JSON, FActScore's and
Factcheck-Bench's JSON Lines, UAI models and BIF; any of them may be compressed with gzip. `write`
and `write_many` write fact-graph JSON and UAI. UAI evidence and results: `factormodels.io.uai`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.bif import looks_like_bif, parse_bif
from factormodels.io.fact_graph_json import (
    looks_like_fact_graph,
    parse_fact_graph,
    write_fact_graph,
    write_fact_graphs,
)
from factormodels.io.factcheck_bench import looks_like_factcheck, parse_factcheck_record
from factormodels.io.factreasoner import looks_like_factreasoner, parse_factreasoner
from factormodels.io.factscore import looks_like_factscore, parse_factscore_record
from factormodels.io.files import read_text
from factormodels.io.json_records import location, shown
from factormodels.io.json_text import decode, decode_lines
from factormodels.io.uai import KINDS, parse_uai, read_names, write_uai

__all__ = ["read", "read_many", "write", "write_many"]

_JSON_KEYS = (
    "a fact graph has nodes and edges, FactReasoner's file atoms and contexts, FActScore's lines "
    "output and annotations, Factcheck-Bench's lines response and sentences"
)


def read(path: str | os.PathLike[str]) -> FactGraph | FactorGraph:
    """Return the model in a file: a fact graph or a factor graph, as its content tells.

    JSON gives a FactGraph (fact-graph JSON, FactReasoner's, or a single record of FActScore or
    Factcheck-Bench); UAI and BIF give a FactorGraph.

    Raises:
        InputError: if the file cannot be read, is of no known kind, is malformed, or holds many
            graphs.
        MissingDependencyError: for BIF, if pgmpy is not installed.
    """
    text = read_text(path)
    word = text.split(maxsplit=1)[0].upper() if text.strip() else ""
    if word in KINDS:
        return parse_uai(text, path, names=read_names(path))
    if word.startswith(("{", "[")):
        records = _records(text, path)
        if len(records) > 1:
            raise InputError(f"{path}: it holds {len(records)} records; use read_many")
        return _fact_graph(*records[0], path)
    if word and looks_like_bif(text):
        return parse_bif(text, path)
    raise InputError(f"{path}: {_unknown(text, word)}")


def read_many(path: str | os.PathLike[str]) -> list[FactGraph]:
    """Return the fact graphs in a JSON Lines file, in order, or the one of a JSON file.

    Raises:
        InputError: if the file cannot be read, holds a factor graph or nothing, is malformed, or
            two graphs in it have the same id.
    """
    text = read_text(path)
    if not text.lstrip().startswith(("{", "[")):
        raise InputError(
            f"{path}: it is not JSON; use read for a factor graph, or give one JSON object per line"
        )
    lines_of: dict[str, int | None] = {}
    graphs = []
    for obj, line in _records(text, path):
        graph = _fact_graph(obj, line, path)
        if graph.id in lines_of:
            raise InputError(
                f"{path}: lines {lines_of[graph.id]} and {line} both hold the id {graph.id!r}; "
                "give each response its own"
            )
        lines_of[graph.id] = line
        graphs.append(graph)
    return graphs


def write(graph: FactGraph | FactorGraph, path: str | os.PathLike[str]) -> None:
    """Write a model: a fact graph to .json or .jsonl, a factor graph to .uai.

    Raises:
        InputError: if the suffix does not fit the model, the format cannot hold it, or the file
            cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if isinstance(graph, FactGraph):
        if suffix == ".json":
            return write_fact_graph(graph, path)
        if suffix == ".jsonl":
            return write_fact_graphs([graph], path)
        mend = (
            "make it a factor graph first with to_factor_graph"
            if suffix == ".uai"
            else "use .json or .jsonl"
        )
        raise InputError(f"{path}: a fact graph is not written to {suffix or 'no suffix'}; {mend}")
    if suffix != ".uai":
        raise InputError(
            f"{path}: a factor graph is not written to {suffix or 'no suffix'}; use .uai"
        )
    return write_uai(graph, path)


def write_many(graphs: Iterable[FactGraph], path: str | os.PathLike[str]) -> None:
    """Write fact graphs to a .jsonl file, one per line.

    Raises:
        InputError: if the suffix is another, two graphs share an id, JSON cannot hold their
            metadata, or the file cannot be written.
    """
    if Path(path).suffix.lower() != ".jsonl":
        raise InputError(f"{path}: many graphs are written one per line; use the suffix .jsonl")
    write_fact_graphs(graphs, path)


def _records(text: str, path: str | os.PathLike[str]) -> list[tuple[Any, int | None]]:
    """Return (JSON value, line) of each record; the line is None where one value fills the file."""
    first, *others = [line for line in text.split("\n") if line.strip()]
    if not others or not (others[0].startswith("{") or _is_json(first)):
        return [(decode(text, path), None)]
    return [(obj, line) for line, obj in decode_lines(text, path)]


def _is_json(text: str) -> bool:
    try:
        decode(text, "")
    except InputError:
        return False
    return True


def _fact_graph(obj: Any, line: int | None, path: str | os.PathLike[str]) -> FactGraph:
    if looks_like_fact_graph(obj):
        return parse_fact_graph(obj, path, line)
    if looks_like_factreasoner(obj):
        return parse_factreasoner(obj, path, line)
    if looks_like_factscore(obj):
        return parse_factscore_record(obj, path, line or 1)
    if looks_like_factcheck(obj):
        return parse_factcheck_record(obj, path, line or 1)
    where = location(path, line)
    if not isinstance(obj, dict):
        raise InputError(f"{where}: {shown(obj)} is not a JSON object; give one object per graph")
    raise InputError(f"{where}: its keys are {shown(list(obj))}, but {_JSON_KEYS}; correct them")


def _unknown(text: str, word: str) -> str:
    if not word:
        return "the file is empty; name a file with a model"
    if word in ("MAR", "PR"):
        return f"it is a UAI result file ({word}), not a model; name the model's file"
    if all(part.isdigit() for part in text.split()):
        return "it holds only numbers, as UAI evidence does, and no model; name the model's file"
    return (
        f"it begins with {shown(word)}, as no known model does; give JSON, UAI (MARKOV or BAYES) "
        "or BIF (network)"
    )
