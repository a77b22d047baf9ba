"""Files of models, told apart by their content rather than by their name.

`read` and `read_many` know fact-graph JSON, the datasets of `factormodels.io.published.formats`,
UAI models and BIF; any of them may be compressed with gzip, and `-` is standard input. `read_each`
holds one graph of JSON Lines at a time. `read_prompts` and `read_judged_pairs` read datasets that
hold no responses. `write` and `write_many` write fact-graph JSON and UAI. UAI evidence and results:
`factormodels.io.uai`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.bif import looks_like_bif, parse_bif
from factormodels.io.claim_records import ClaimRecord
from factormodels.io.fact_graph_json import write_fact_graph, write_fact_graphs
from factormodels.io.json_records import location, shown
from factormodels.io.published.prompts import Prompt
from factormodels.io.published.unli import JudgedPair
from factormodels.io.reading import is_dataset, items_of, read_judged_pairs, read_prompts
from factormodels.io.records import Content, read_content
from factormodels.io.uai import KINDS, parse_uai, read_names, write_uai

__all__ = [
    "read",
    "read_any",
    "read_each",
    "read_judged_pairs",
    "read_many",
    "read_prompts",
    "write",
    "write_many",
]


def read(path: str | os.PathLike[str]) -> FactGraph | FactorGraph:
    """Model in a file: a fact graph or a factor graph, as its content tells.

    JSON gives a FactGraph (fact-graph JSON, or a single record of a dataset), and so does a table
    of one row; UAI and BIF give a FactorGraph.

    Raises:
        InputError: if the file cannot be read, is of no known kind, is malformed, or holds many
            graphs.
        MissingDependencyError: for BIF, if pgmpy is not installed.
    """
    content = read_content(path, held=True)
    return (
        _model(content, path) if isinstance(content, str) else _only(_graphs(content, path), path)
    )


def read_many(path: str | os.PathLike[str]) -> list[FactGraph]:
    """Fact graphs of a file, in order: JSON, JSON Lines, or a table of a dataset.

    Raises:
        InputError: if the file cannot be read, holds a factor graph or nothing, is malformed, or
            two graphs in it have the same id.
    """
    return list(_many(read_content(path, held=True), path))


def read_each(path: str | os.PathLike[str]) -> Iterator[FactGraph]:
    """Yield the fact graphs that `read_many` returns; of JSON Lines, one at a time is in memory.

    Raises:
        InputError: as `read_many` does, when the graph is due.
    """
    return _many(read_content(path, held=False), path)


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
        raise InputError(
            f"{path}: a fact graph cannot be written to {suffix or 'no suffix'}; {mend}"
        )
    if suffix != ".uai":
        raise InputError(
            f"{path}: a factor graph cannot be written to {suffix or 'no suffix'}; use .uai"
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


def read_any(path: str | os.PathLike[str]) -> FactorGraph | Iterator[FactGraph]:
    """The factor graph of a file, or what `read_each` yields.

    Raises:
        InputError: as `read` and `read_each` do.
        MissingDependencyError: for BIF, if pgmpy is not installed.
    """
    content = read_content(path, held=False)
    if is_dataset(content):
        return _many(content, path)
    model = _model(str(content), path)
    return model if isinstance(model, FactorGraph) else iter([model])


def _model(text: str, path: str | os.PathLike[str]) -> FactGraph | FactorGraph:
    """The one model of a text."""
    word = text.split(maxsplit=1)[0].upper() if text.strip() else ""
    if word in KINDS:
        return parse_uai(text, path, names=read_names(path))
    if word and looks_like_bif(text):
        return parse_bif(text, path)
    if word and is_dataset(text):
        return _only(_graphs(text, path), path)
    raise InputError(f"{path}: {_unknown(text, word)}")


def _only(
    graphs: Iterator[tuple[FactGraph, int | None]], path: str | os.PathLike[str]
) -> FactGraph:
    first, count = None, 0
    for graph, _ in graphs:
        first, count = first or graph, count + 1
    if first is None or count > 1:
        raise InputError(f"{path}: it holds {count} records; use read_many")
    return first


def _many(content: Content, path: str | os.PathLike[str]) -> Iterator[FactGraph]:
    if not is_dataset(content):
        raise InputError(
            f"{path}: it is not JSON; use read for a factor graph, or give one JSON object per line"
        )
    lines_of: dict[str, int | None] = {}
    for graph, line in _graphs(content, path):
        if graph.id in lines_of:
            raise InputError(
                f"{path}: lines {lines_of[graph.id]} and {line} both hold the id {graph.id!r}; "
                "give each response its own"
            )
        lines_of[graph.id] = line
        yield graph


def _graphs(
    content: Content, path: str | os.PathLike[str]
) -> Iterator[tuple[FactGraph, int | None]]:
    """Fact graphs of a file, each with the line of its record."""
    for item, line in items_of(content, path):
        if not isinstance(item, FactGraph):
            held, use = (
                ("prompts", "read_prompts")
                if isinstance(item, Prompt)
                else ("pairs of texts", "read_judged_pairs")
                if isinstance(item, JudgedPair)
                else ("claims", "factormodels.io.claim_records.read_records")
                if isinstance(item, ClaimRecord)
                else ("passages", "factormodels.io.factscore.with_passages")
            )
            raise InputError(f"{location(path, line)}: it holds {held} and no response; use {use}")
        yield item, line


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
