"""Writing UAI model files."""

from __future__ import annotations

import os

import numpy as np

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.files import write_text
from factormodels.io.uai_names import check_names, write_names
from factormodels.io.uai_results import write_evidence


def write_uai(
    graph: FactorGraph,
    path: str | os.PathLike[str],
    *,
    evidence_path: str | os.PathLike[str] | None = None,
) -> None:
    """Write a factor graph as a MARKOV file, and its names, unless they are "0", "1", ..., beside.

    Tables are written as potentials, each with the digits that bring its logarithm back: tables
    that came from a file are read again bit for bit, others to one rounding of exp and log.

    Args:
        graph: the factor graph.
        path: the file; the names go to ``<path>.names``.
        evidence_path: the file for the graph's evidence, which the model file cannot hold.

    Raises:
        InputError: if a potential lies outside the range of floats, a name does not fit on a line,
            the graph has evidence and there is no path for it, or a file cannot be written.
    """
    observed = {int(v): int(graph.evidence[v]) for v in np.flatnonzero(graph.evidence >= 0)}
    if observed and evidence_path is None:
        raise InputError(
            f"{path}: the graph has evidence, which a UAI model file cannot hold; "
            "give evidence_path, or absorb the evidence first"
        )
    words = _potential_words(graph, os.fspath(path))
    check_names(graph, path)
    scopes, tables = [], []
    bounds = graph.table_starts.tolist()
    scope_bounds, scope_words = graph.scope_starts.tolist(), list(map(str, graph.scope_variables))
    for f in range(graph.n_factors):
        scope = scope_words[scope_bounds[f] : scope_bounds[f + 1]]
        scopes.append(" ".join([str(len(scope)), *scope]))
        table = words[bounds[f] : bounds[f + 1]]
        tables.append(f"{len(table)}\n {' '.join(table)}")
    head = ["MARKOV", str(graph.n_variables), " ".join(map(str, graph.cardinalities))]
    write_text(path, "\n".join([*head, str(graph.n_factors), *scopes, "", *tables]) + "\n")
    write_names(graph, path)
    if evidence_path is not None:
        write_evidence(observed, evidence_path)


def _potential_words(graph: FactorGraph, path: str) -> list[str]:
    logs = graph.log_values
    finite = logs > -np.inf
    smallest, largest = np.log(np.finfo(np.float64).tiny), np.log(np.finfo(np.float64).max)
    outside = finite & ((logs < smallest) | (logs > largest))
    if outside.any():
        at = int(np.argmax(outside))
        factor = int(np.searchsorted(graph.table_starts, at, side="right")) - 1
        raise InputError(
            f"{path}: factor {factor}: entry {at - graph.table_starts[factor]} of its log table is "
            f"{logs[at]}, and its exponential is outside the range of floats; "
            "add a constant to the log table"
        )
    potentials = np.exp(logs)
    # Of the floats near the exponential, the one with the fewest digits whose logarithm is the
    # table's entry is most likely the number that the entry was made from.
    up, down = np.nextafter(potentials, np.inf), np.nextafter(potentials, 0.0)
    rounded = np.array([float(f"{value:.15g}") for value in potentials.tolist()])
    candidates = [np.nextafter(down, 0.0), np.nextafter(up, np.inf), down, up, potentials, rounded]
    chosen = potentials
    with np.errstate(divide="ignore"):
        for candidate in candidates:
            chosen = np.where(np.log(candidate) == logs, candidate, chosen)
    return [repr(value) for value in chosen.tolist()]
