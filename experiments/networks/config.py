"""Configuration of a study of networks: every key, its meaning and its checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, model_validator

from experiments.findings.venues import DEFAULT_VENUE
from experiments.networks.shapes import GraphShape
from experiments.settings.keyed import Keyed
from experiments.settings.limits import Count, Positive, Seed
from experiments.study.config import (
    DEFAULT_BACKENDS,
    BackendChoice,
    Backends,
    Purpose,
    Seeds,
    Some,
    StudyName,
    VenueName,
    distinct,
    without_folders,
)
from experiments.study.network_files import DRAWN
from experiments.study.reading import RawStudy, model_of

Searcher = Literal["exact", "toulbar2"]
"""Elimination, or toulbar2's search."""

PRESENTATION = ("description", "against", "venue")
"""Keys that no measurement depends on: they may change between a run and its resumption."""


class NetworkChoice(Keyed):
    """Networks of a study: files, or graphs that are drawn."""

    path: str | None = None
    """A UAI or BIF file, a folder that holds some, or a pattern of names such as networks/*.uai,
    relative to the folder of the configuration that names it. Beside a network NAME.uai,
    NAME.uai.evid (or NAME.evid) holds its evidence, NAME.uai.MAR and NAME.uai.PR its reference
    answers."""

    shape: GraphShape | None = None
    """The shape of fact graphs that are drawn."""

    grid: Count | None = None
    """Side of square Ising grids that are drawn, with couplings up to 1 and fields up to 0.5."""

    name: str = ""
    """What tables call the networks; of a path, its files' names without a final number if
    absent."""

    graphs: Count = 1
    """Number of graphs, or batches, that are drawn."""

    batch: Count = 1
    """Graphs of a batch, which one call answers."""

    limit: Count | None = None
    """Only the first networks of the path, up to this number."""

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


class ProgramChoice(Keyed):
    """A program of others on the path, which takes part as a backend does."""

    program: Literal["merlin"]
    """Which one: merlin, with its weighted mini-buckets."""

    label: str = ""
    """What tables call it; the program's name if absent."""

    i_bound: Count = 6
    """Most variables of a mini-bucket beside the one that is eliminated."""

    iterations: Count = 10
    """Passes of messages."""

    seconds: Positive = 60.0
    """A run that takes longer is refused."""

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.label or self.program


class NetworkStudy(Keyed):
    """A study of networks: every backend, with every setting, on every network."""

    study: StudyName

    datasets: Some[NetworkChoice]
    """The networks, files or drawn."""

    description: Purpose = ""

    backends: Backends = DEFAULT_BACKENDS

    programs: tuple[ProgramChoice, ...] = ()
    """Programs of others that are compared where they are on the path."""

    against: str = ""
    """Label of the backend that times are divided by; the first if empty."""

    reference: BackendChoice = BackendChoice(backend="exact", settings={"seconds_limit": 60.0})
    """Backend whose answer is the reference of a network without reference files. If it refuses a
    network, an exact answer of another backend is the reference; without one, the tightest
    certified bracket of log Z."""

    maxima: Annotated[tuple[Searcher, ...], AfterValidator(distinct)] = ()
    """Who searches the most probable states of each network, for a table of its own: exact
    (elimination), toulbar2. Times are divided by those of the first."""

    search_seconds: Positive = 20.0
    """Processor time of toulbar2 on a network."""

    rounds: Count = 7
    """Turns of every backend on a network."""

    budget: Positive = 1.0
    """Seconds of repeated calls of a backend on a network."""

    seed: Seed = 0
    """Seed of graphs that are drawn, of the order of turns, and of backends unless `seeds` is
    given."""

    seeds: Seeds = ()

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
            for key, value in choice.only:
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
        plain: dict[str, Any] = without_folders(self.model_dump(mode="json"))
        return plain

    def measured_part(self) -> dict[str, Any]:
        """Plain form of what its measurements depend on."""
        return {key: value for key, value in self.plain().items() if key not in PRESENTATION}


@dataclass(frozen=True)
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
    study = raw.checked(lambda plain: model_of(NetworkStudy, plain))
    return LoadedNetworks(study, raw)
