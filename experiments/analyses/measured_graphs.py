"""What backends are measured on: networks in files, and the answers that errors are against."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from factormodels.io.reading import read
from factormodels.nouns import counted
from inference import Backend, InferenceError, Posterior, infer_batch

KINDS = ("uai", "bif")
"""Suffixes of the networks of a folder."""


@dataclass(frozen=True)
class Reference:
    """An answer that errors are measured against.

    Attributes:
        source: a backend's name, or names of files.
        marginals: probability vectors of all variables one after another, or None.
        log_z: natural logarithm of the partition function, or None.
        induced_width: of the order that it was found by, nan where none is known.
    """

    source: str
    marginals: NDArray[np.float64] | None = None
    log_z: float | None = None
    induced_width: float = math.nan


def reference_of(graphs: Sequence[FactorGraph], backend: Backend) -> Reference | None:
    """The answer of a backend to graphs, None if it refuses one of them."""
    try:
        answers = infer_batch(graphs, backend)
    except InferenceError:
        return None
    alone = answers[0] if len(graphs) == 1 else None
    return Reference(
        backend.name,
        flat_marginals(answers),
        alone.log_z if alone else None,
        alone.stats.get("induced_width", math.nan) if alone else math.nan,
    )


def read_network(path: Path) -> tuple[FactorGraph, Reference | None]:
    """A network in UAI or BIF with its evidence, and the answers in NAME.uai.MAR and NAME.uai.PR.

    Whatever program wrote these files may so be compared with backends.

    Raises:
        InputError: if a file is damaged, or the answers are of another network.
    """
    graph = read(path)
    if not isinstance(graph, FactorGraph):
        raise InputError(f"{path}: it is a fact graph; name a network in UAI or BIF")
    evidence, marginals, partition = (Path(f"{path}.{kind}") for kind in ("evid", "MAR", "PR"))
    if evidence.exists():
        graph = graph.with_evidence(read_evidence(evidence, graph))
    answers = [each.name for each in (marginals, partition) if each.exists()]
    if not answers:
        return graph, None
    flat = np.concatenate(read_marginals(marginals)) if marginals.exists() else None
    if flat is not None and len(flat) != graph.cardinalities.sum():
        raise InputError(
            f"{marginals}: it has {counted(len(flat), 'probability', 'probabilities')} and "
            f"{path.name} has "
            f"{counted(graph.cardinalities.sum(), 'state')}; put the answers of this network "
            "beside it"
        )
    log_z = read_log10_partition(partition) * math.log(10.0) if partition.exists() else None
    return graph, Reference(" and ".join(answers), flat, log_z)


def networks(path: Path) -> Iterator[tuple[str, str, list[FactorGraph], Reference | None]]:
    """Yield family, name, graph and answers of a network, or of every one in a folder.

    Networks whose names differ in a final number alone are one family.

    Args:
        path: a file, a folder, or a pattern of the names of files, such as networks/*.uai.

    Raises:
        InputError: if a folder has none, no file has such a name, or one cannot be read.
    """
    files = [path]
    if not path.exists() and re.search(r"[*?\[]", path.name):
        files = sorted(each for each in path.parent.glob(path.name) if each.is_file())
        if not files:
            raise InputError(f"{path}: no file has such a name; name another")
    elif path.is_dir():
        files = sorted(each for kind in KINDS for each in path.rglob(f"*.{kind}"))
    if not files:
        raise InputError(f"{path}: there is no .uai or .bif file in this folder; name another")
    for file in files:
        graph, answers = read_network(file)
        name = str(file.relative_to(path)) if path.is_dir() else file.name
        yield re.sub(r"[_-]\d+$", "", file.stem) or file.stem, name, [graph], answers


def flat_marginals(answers: Sequence[Posterior]) -> NDArray[np.float64]:
    """The probability vectors of all variables of all graphs, one after another."""
    flat: NDArray[np.float64] = np.concatenate([answer.marginals.flat for answer in answers])
    return flat
