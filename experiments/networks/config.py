"""Configuration of a study of networks: every key, its meaning and its checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from dataclasses import dataclass as plain_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, model_validator
from pydantic.dataclasses import dataclass

from experiments.findings.venues import DEFAULT_VENUE
from experiments.networks.shapes import GraphShape
from experiments.settings.limits import Count, Positive, Seed
from experiments.study.config import (
    STRICT,
    BackendChoice,
    Short,
    Some,
    VenueName,
    distinct,
    file_name,
    without_folders,
)
from experiments.study.network_files import DRAWN
from experiments.study.reading import RawStudy, canonical, model_of

Searcher = Literal["exact", "toulbar2"]
"""Elimination, or toulbar2's search."""

PRESENTATION = ("description", "against", "venue")
"""Keys that no measurement depends on: they may change between a run and its resumption."""


@dataclass(frozen=True, config=STRICT)
class NetworkChoice:
    """Networks of a study: files, or graphs that are drawn.

    Attributes:
        path: a UAI or BIF file, a folder that holds some, or a pattern of names such as
            networks/*.uai, relative to the folder of the configuration that names it. Beside a
            network NAME.uai, NAME.uai.evid (or NAME.evid) holds its evidence, NAME.uai.MAR and
            NAME.uai.PR its reference answers.
        shape: the shape of fact graphs that are drawn.
        grid: side of square Ising grids that are drawn, with couplings up to 1 and fields up to
            0.5.
        name: what tables call the networks; of a path, its files' names without a final number if
            absent.
        graphs: number of graphs, or batches, that are drawn.
        batch: graphs of a batch, which one call answers.
        limit: only the first networks of the path, up to this number.
    """

    path: str | None = None
    shape: GraphShape | None = None
    grid: Count | None = None
    name: str = ""
    graphs: Count = 1
    batch: Count = 1
    limit: Count | None = None

    @model_validator(mode="after")
    def _consistent(self) -> NetworkChoice:
        given = [key for key in ("path", *DRAWN) if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError("give one of path, shape and grid")
        if self.path is None and not self.name:
            raise ValueError("give networks that are drawn a name")
        if self.path is not None and (self.graphs, self.batch) != (1, 1):
            raise ValueError("graphs and batch are for networks that are drawn; leave them out")
        if self.path is None and self.limit is not None:
            raise ValueError("limit is for a path; give the number of drawn networks as graphs")
        return self


@dataclass(frozen=True, config=STRICT)
class ProgramChoice:
    """A program of others on the path, which takes part as a backend does.

    Attributes:
        program: which one: merlin, with its weighted mini-buckets.
        label: what tables call it; the program's name if absent.
        i_bound: most variables of a mini-bucket beside the one that is eliminated.
        iterations: passes of messages.
        seconds: a run that takes longer is refused.
    """

    program: Literal["merlin"]
    label: str = ""
    i_bound: Count = 6
    iterations: Count = 10
    seconds: Positive = 60.0

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.label or self.program


@dataclass(frozen=True, config=STRICT)
class NetworkStudy:
    """A study of networks: every backend, with every setting, on every network.

    Attributes:
        study: its name, and the name of its folder of results.
        datasets: the networks, files or drawn.
        description: what it is for.
        backends: what is compared.
        programs: programs of others that are compared where they are on the path.
        against: label of the backend that times are divided by; the first if empty.
        reference: backend whose answer is the reference of a network without reference files. If it
            refuses a network, an exact answer of another backend is the reference; without one,
            the tightest certified bracket of log Z.
        maxima: who searches the most probable states of each network, for a table of its own: exact
            (elimination), toulbar2. Times are divided by those of the first.
        search_seconds: processor time of toulbar2 on a network.
        rounds: turns of every backend on a network.
        budget: seconds of repeated calls of a backend on a network.
        seed: seed of graphs that are drawn, of the order of turns, and of backends unless `seeds`
            is given.
        seeds: seeds of the backends that have a setting `seed` and are not given one; `seed` alone
            if absent.
        venue: what LaTeX tables and figures fit: article, acl, icml, neurips, iclr, aaai, slides,
            or widths of a column and of the text in points, such as 219x455.
    """

    study: Annotated[str, AfterValidator(file_name)]
    datasets: Some[NetworkChoice]
    description: str = ""
    backends: Annotated[Some[BackendChoice], Short("text", "backend")] = (BackendChoice("auto"),)
    programs: Annotated[tuple[ProgramChoice, ...], Short("text", "program")] = ()
    against: str = ""
    reference: Annotated[BackendChoice, Short(text="backend")] = field(
        default_factory=lambda: BackendChoice("exact", settings={"seconds_limit": 60.0})
    )
    maxima: Annotated[tuple[Searcher, ...], AfterValidator(distinct)] = ()
    search_seconds: Positive = 20.0
    rounds: Count = 7
    budget: Positive = 1.0
    seed: Seed = 0
    seeds: Annotated[tuple[Seed, ...], AfterValidator(distinct), Short("any")] = ()
    venue: VenueName = DEFAULT_VENUE

    @model_validator(mode="after")
    def _consistent(self) -> NetworkStudy:
        labels = [title for choice in self.backends for title, _ in choice.settings_of_each()]
        labels += [choice.title for choice in self.programs]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"backends: two are called {label!r}; give each its own label")
        if self.against and self.against not in labels:
            raise ValueError(
                f"against: {self.against!r} is not among the backends; use one of "
                f"{', '.join(labels)}"
            )
        if len(self.reference.settings_of_each()) != 1:
            raise ValueError("reference: a grid is several backends; name one")
        for position, choice in enumerate(self.backends):
            for key, value in asdict(choice.only).items():
                if value is not None and key not in ("datasets", "seeds"):
                    raise ValueError(
                        f"backends[{position}].only.{key}: networks have no {key}; leave it out"
                    )
        return self

    @property
    def base(self) -> str:
        """Label of the backend that times are divided by."""
        return self.against or self.backends[0].settings_of_each()[0][0]

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds of backends that have a setting `seed`."""
        return self.seeds or (self.seed,)

    def plain(self) -> dict[str, Any]:
        """The study as plain data, every default written out, files without folders."""
        plain: dict[str, Any] = without_folders(json.loads(json.dumps(asdict(self))))
        return plain

    def measured_part(self) -> dict[str, Any]:
        """Plain form of what its measurements depend on."""
        return {key: value for key, value in self.plain().items() if key not in PRESENTATION}


@plain_dataclass(frozen=True)
class LoadedNetworks:
    """A study of networks with where it came from.

    Attributes:
        study: the study.
        raw: what was written.
    """

    study: NetworkStudy
    raw: RawStudy


def load_networks(raw: RawStudy, data: Path | None = None) -> LoadedNetworks:
    """Validate plain data and return the study of networks.

    Args:
        raw: the data.
        data: a network, folder or pattern that is measured beside its datasets.

    Raises:
        InputError: for a key or value that it cannot have.
    """
    if data is not None:
        # A path of the command line starts where the command is given.
        beside = [*raw.raw["datasets"], {"path": str(data.absolute())}]
        raw = replace(raw, raw={**raw.raw, "datasets": beside})
    study = raw.checked(lambda plain: model_of(NetworkStudy, plain, _canonical(plain)))
    return LoadedNetworks(study, raw)


def _canonical(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The data with what may be in short written out."""
    full = canonical(plain)
    if isinstance(full.get("reference"), str):
        full["reference"] = {"backend": full["reference"]}
    programs = full.get("programs")
    if isinstance(programs, str):
        programs = [programs]
    if isinstance(programs, list):
        full["programs"] = [
            {"program": each} if isinstance(each, str) else each for each in programs
        ]
    return full
