"""The networks of a study, from files or generated, and reference answers from files."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.networks.config import LoadedNetworks, NetworkChoice
from experiments.networks.shapes import draw_graph
from experiments.study.manifest import file_hash
from experiments.study.network_files import SUFFIXES, has_network_suffix
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph, digest
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from factormodels.io.reading import read
from factormodels.nouns import counted
from factormodels.synthetic import grid
from inference import Posterior

PRINTED = 1e-5
"""Relative error of a log Z in a file, since programs print six digits."""

ROUNDED = 1e-9
"""Relative error of a log Z that a backend computed exactly."""


@dataclass(frozen=True)
class Reference:
    """An answer that errors are measured against.

    Attributes:
        source: a backend's name, or names of files.
        marginals: probability vectors of all variables one after another, or None.
        log_z: natural logarithm of the partition function, or None.
        induced_width: induced width of its elimination order, NaN if unknown.
        rounding: relative error of `log_z`.
    """

    source: str
    marginals: NDArray[np.float64] | None = None
    log_z: float | None = None
    induced_width: float = math.nan
    rounding: float = ROUNDED


Loaded = tuple[tuple[FactorGraph, ...], Reference | None]
"""The graphs of a network (several for a batch), and the answers in files."""


@dataclass(frozen=True)
class NetworkSource:
    """A network of a study, which is read or generated where it is measured.

    Attributes:
        dataset: name of its dataset in tables.
        name: its name within the dataset.
        sha256: hash of its numbers, its evidence and its answers.
        variables: number of its variables.
        load: reads or generates the network.
    """

    dataset: str
    name: str
    sha256: str
    variables: int
    load: Callable[[], Loaded]


def sources(loaded: LoadedNetworks) -> tuple[NetworkSource, ...]:
    """The networks of a study, each read or generated once as a check.

    Raises:
        InputError: if a path has no networks, a network cannot be read, or two have the same name.
    """
    every: list[NetworkSource] = []
    for position, choice in enumerate(loaded.study.datasets):
        try:
            every += _sources(choice, loaded)
        except InputError as error:
            raise InputError(f"{loaded.raw.blame(f'datasets[{position}]')}: {error}") from None
    names = Counter((source.dataset, source.name) for source in every)
    for (dataset, name), count in names.items():
        if count > 1:
            raise InputError(
                f"{loaded.raw.where}: datasets: {counted(count, 'network')} of {dataset} have "
                f"the name {name!r}; give the datasets different names"
            )
    return tuple(every)


def _sources(choice: NetworkChoice, loaded: LoadedNetworks) -> Iterator[NetworkSource]:
    if choice.path is None:
        for number in range(choice.graphs):
            draw = partial(_drawn, choice, loaded.study.seed, number)
            graphs, _ = draw()
            size = sum(graph.n_variables for graph in graphs)
            yield NetworkSource(choice.name, f"number {number}", digest(graphs), size, draw)
        return
    folder = loaded.raw.folder / choice.path
    for file in network_files(folder)[: choice.limit]:
        (graph,), _ = read_network(file)
        name = str(file.relative_to(folder)) if folder.is_dir() else file.name
        yield NetworkSource(
            choice.name or family_of(file),
            name,
            _hash_of_files(file),
            graph.n_variables,
            partial(read_network, file),
        )


def _drawn(choice: NetworkChoice, seed: int, number: int) -> Loaded:
    """The graphs of a generated network."""
    # Batches share no graphs, and a larger batch begins with the graphs of a smaller one.
    numbers = range(number * choice.batch, (number + 1) * choice.batch)
    if choice.shape is not None:
        return tuple(draw_graph(choice.shape, (seed, each)) for each in numbers), None
    side = choice.grid or 1
    draws = (np.random.default_rng([seed, each]) for each in numbers)
    return tuple(grid(side, side, coupling=1.0, field=0.5, seed=draw) for draw in draws), None


def network_files(path: Path) -> list[Path]:
    """Files of a path: the file itself, the files in a folder, or the matches of a pattern.

    Raises:
        InputError: if a folder has no networks, or no file matches.
    """
    if path.exists() and not path.is_dir():
        return [path]
    if path.is_dir():
        files = sorted({file for suffix in SUFFIXES for file in path.rglob(f"*.{suffix}")})
        if not files:
            raise InputError(f"{path}: there is no .uai or .bif file in this folder; name another")
        return files
    files = sorted(each for each in path.parent.glob(path.name) if each.is_file())
    # A pattern such as grid* also matches files of evidence and answers, which are not networks.
    files = [file for file in files if has_network_suffix(file)] or files
    if not files:
        raise InputError(f"{path}: no file matches; name another path")
    return files


def family_of(file: Path) -> str:
    """Family of a network: the file name without suffix and final number."""
    stem = re.sub(rf"\.({'|'.join(map(re.escape, SUFFIXES))})$", "", file.name, flags=re.I)
    return re.sub(r"[_-]\d+$", "", stem) or stem


def read_network(path: Path) -> Loaded:
    """Read a network in UAI or BIF with its evidence, and the answers in NAME.uai.MAR and
    NAME.uai.PR.

    Backends can thus be compared with any program that writes these files.

    Raises:
        InputError: if a file is damaged, or the answers do not fit the network.
    """
    graph = read(path)
    if not isinstance(graph, FactorGraph):
        raise InputError(f"{path}: this is a fact graph; name a network in UAI or BIF")
    for evidence in _evidence_files(path):
        graph = graph.with_evidence(read_evidence(evidence, graph))
    marginals, partition = (Path(f"{path}.{kind}") for kind in ("MAR", "PR"))
    answers = [each.name for each in (marginals, partition) if each.exists()]
    if not answers:
        return (graph,), None
    flat = np.concatenate(read_marginals(marginals)) if marginals.exists() else None
    if flat is not None and len(flat) != graph.cardinalities.sum():
        raise InputError(
            f"{marginals}: it has {counted(len(flat), 'probability', 'probabilities')} and "
            f"{path.name} has {counted(graph.cardinalities.sum(), 'state')}; use the answers of "
            "this network"
        )
    log_z = read_log10_partition(partition) * math.log(10.0) if partition.exists() else None
    return (graph,), Reference(" and ".join(answers), flat, log_z, rounding=PRINTED)


def _evidence_files(path: Path) -> list[Path]:
    """The evidence file of a network, if there is one.

    Raises:
        InputError: if there are two evidence files.
    """
    both = [Path(f"{path}.evid"), path.with_suffix(".evid")]
    files = [file for file in dict.fromkeys(both) if file.exists()]
    if len(files) > 1:
        raise InputError(
            f"{path}: {files[0].name} and {files[1].name} both contain evidence; keep one of them"
        )
    return files


def _hash_of_files(path: Path) -> str:
    """Hash of a network's file and of its evidence and answer files."""
    beside = [Path(f"{path}.{kind}") for kind in ("MAR", "PR")]
    files = [path, *_evidence_files(path), *(file for file in beside if file.exists())]
    state = hashlib.sha256()
    for file in files:
        state.update(f"{file.name} {file_hash(file)}\n".encode())
    return state.hexdigest()


def flat_marginals(answers: Iterable[Posterior]) -> NDArray[np.float64]:
    """The concatenated probability vectors of all variables of all graphs."""
    flat: NDArray[np.float64] = np.concatenate([answer.marginals.flat for answer in answers])
    return flat


def facts_of(every: Sequence[NetworkSource]) -> dict[str, dict[str, object]]:
    """Manifest entry of each dataset: a hash, and the numbers of networks and variables."""
    by_dataset: dict[str, list[NetworkSource]] = {}
    for source in every:
        by_dataset.setdefault(source.dataset, []).append(source)
    return {
        dataset: {
            "sha256": hashlib.sha256(
                "\n".join(f"{source.name} {source.sha256}" for source in group).encode()
            ).hexdigest(),
            "networks": len(group),
            "variables": sum(source.variables for source in group),
        }
        for dataset, group in by_dataset.items()
    }
