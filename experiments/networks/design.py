"""The design of a study of networks: its networks, cells and measurements."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple

from experiments.networks.config import LoadedNetworks, ProgramChoice, Searcher
from experiments.networks.data import NetworkSource, sources
from experiments.networks.maxima import NUMBERS as OF_SEARCHES
from experiments.networks.measure import NUMBERS
from experiments.settings.backend_settings import build_backend
from experiments.study.cells import NO_VIEW, StudyAlgorithm, StudyCell
from experiments.study.config import allows
from experiments.study.design import inference_algorithms
from experiments.study.parts import RunPlan
from factormodels.errors import InputError, unknown_name
from inference import Backend
from inference.peers.merlin_program import Merlin, missing_program


class Measurement(NamedTuple):
    """Measurement of a backend, or of a search for the most probable states, on a network."""

    network: int
    """Position of the network."""

    what: int | Searcher
    """Index of the cell, or name of the search."""

    @property
    def key(self) -> str:
        """Key in the store of a run."""
        return f"{self.network} {self.what}"


@dataclass(frozen=True)
class NetworkDesign:
    """A study of networks with everything needed to run it.

    Attributes:
        loaded: the study.
        sources: its networks.
        cells: all combinations of a dataset and a backend with its settings and seed.
        judge: backend that computes references.
    """

    loaded: LoadedNetworks
    sources: tuple[NetworkSource, ...]
    cells: tuple[StudyCell, ...]
    judge: Backend

    def label(self, algorithm: StudyAlgorithm) -> str:
        """Name of an algorithm in tables, with its seed if the table has a row for each seed."""
        seeds = {
            cell.algorithm.seed for cell in self.cells if cell.algorithm.title == algorithm.title
        }
        return f"{algorithm.title} seed {algorithm.seed}" if len(seeds) > 1 else algorithm.title

    @property
    def base(self) -> str:
        """Label of the algorithm that times are divided by; the first of several seeds."""
        title = self.loaded.study.base
        algorithms = [cell.algorithm for cell in self.cells]
        return next((self.label(each) for each in algorithms if each.title == title), title)

    def measurements(self) -> list[Measurement]:
        """All measurements, ordered by network."""
        return [
            Measurement(number, what)
            for number, source in enumerate(self.sources)
            for what in (*self._cells_of(source), *self.loaded.study.maxima)
        ]

    def _cells_of(self, source: NetworkSource) -> list[int]:
        return [at for at, cell in enumerate(self.cells) if cell.dataset == source.dataset]

    def plan(self) -> RunPlan:
        """Plan of its run."""
        return RunPlan(
            # Include the row format, so that rows of earlier versions are not continued.
            study={**self.loaded.study.measured_part(), "numbers": [*NUMBERS, *OF_SEARCHES]},
            cells=[{**cell.key(), "setting": cell.algorithm.setting} for cell in self.cells],
            data={f"{each.dataset}/{each.name}": each.sha256 for each in self.sources},
            models={},
        )


def design(loaded: LoadedNetworks) -> NetworkDesign:
    """The design of a study of networks.

    Raises:
        InputError: for an unknown or invalid setting of a backend, a missing dataset, or an
            unreadable network.
        MissingDependencyError: if the reference needs a library that is not installed.
    """
    study, blame = loaded.study, loaded.raw.blame
    chosen = [
        *inference_algorithms(study.backends, study.all_seeds, blame),
        *map(_program, study.programs),
    ]
    ((_, settings),) = study.reference.settings_of_each()
    blame_setting = partial(study.reference.place_of, blame("reference"))
    judge = build_backend(study.reference.backend, settings, blame_setting)
    every = sources(loaded)
    datasets = list(dict.fromkeys(source.dataset for source in every))
    for position, choice in enumerate(study.backends):
        for name in choice.only.datasets or ():
            if name not in datasets:
                where = blame(f"backends[{position}].only.datasets")
                raise InputError(unknown_name(f"{where}: the dataset {name!r}", name, datasets))
    cells = tuple(
        StudyCell(dataset, NO_VIEW, algorithm)
        for dataset in datasets
        for algorithm in chosen
        if algorithm.choice < 0 or allows(study.backends[algorithm.choice], "datasets", dataset)
    )
    return NetworkDesign(loaded, every, cells, judge)


def _program(choice: ProgramChoice) -> StudyAlgorithm:
    """An external program as an algorithm, or with the reason for its absence."""
    backend = Merlin(choice.i_bound, choice.iterations, choice.seconds)
    lacks = missing_program()
    return StudyAlgorithm(
        # No list of backends contains it.
        choice=-1,
        title=choice.title,
        name=choice.program,
        seed=0,
        setting=json.dumps(asdict(backend), sort_keys=True),
        backend=None if lacks else backend,
        error=lacks,
    )
