"""The data of a study: responses by dataset, with a hash of what was really used."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from experiments.config import DatasetChoice, Priors, Study
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_text
from factormodels.io.files import read_text

_NETWORK = re.compile(r"\s*(MARKOV|BAYES|network)\b", re.IGNORECASE)
"""How a UAI or BIF file begins."""


@dataclass(frozen=True)
class StudyData:
    """The responses of one dataset of a study.

    Attributes:
        name: what the study calls it.
        graphs: one fact graph per response, with the study's priors.
        sha256: hash of the graphs' JSON as loaded, before the study's priors.
    """

    name: str
    graphs: tuple[FactGraph, ...]
    sha256: str

    @property
    def n_atoms(self) -> int:
        """Number of atoms of all responses."""
        return sum(len(graph.atoms) for graph in self.graphs)

    @property
    def n_labelled(self) -> int:
        """Number of atoms with a human label."""
        return sum(atom.label is not None for graph in self.graphs for atom in graph.atoms)


def load_data(study: Study, folder: Path, where: str) -> tuple[StudyData, ...]:
    """Return the datasets of a study, in its order.

    Args:
        study: the study.
        folder: where relative paths start.
        where: what errors call its configuration.

    Raises:
        InputError: for an unknown dataset or option, a bad file, no response, or repeated ids.
    """
    return tuple(
        _load(choice, f"{where}: datasets[{position}]", folder, study.priors)
        for position, choice in enumerate(study.datasets)
    )


def _load(choice: DatasetChoice, place: str, folder: Path, priors: Priors) -> StudyData:
    try:
        graphs = tuple(_graphs(choice, folder))[: choice.limit]
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    if not graphs:
        raise InputError(f"{place}: {choice.title!r} holds no response; name other data")
    seen: set[str] = set()
    for graph in graphs:
        if graph.id in seen:
            raise InputError(
                f"{place}: {choice.title!r} has two responses {graph.id!r}; give each its own id"
            )
        seen.add(graph.id)
    return StudyData(
        name=choice.title,
        graphs=tuple(
            graph.with_priors(atoms=priors.atom, contexts=priors.context) for graph in graphs
        ),
        sha256=_hash(graphs),
    )


def _graphs(choice: DatasetChoice, folder: Path) -> Iterable[FactGraph]:
    if choice.path is not None:
        from factormodels.io import read_many

        path = folder / choice.path
        if _NETWORK.match(read_text(path)):
            raise InputError(
                f"{path}: this is a network; a study takes fact graphs, use `factormodels infer` "
                "for a network"
            )
        return read_many(path)
    from factormodels import datasets

    return datasets.load(choice.name, **choice.options).graphs


def _hash(graphs: Iterable[FactGraph]) -> str:
    digest = hashlib.sha256()
    for graph in graphs:
        digest.update(fact_graph_text(graph).encode("utf-8", "surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()
