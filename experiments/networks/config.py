"""Configuration of a study of networks: every key, its meaning and its checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

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
    ShownNames,
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

PRESENTATION = ("description", "against", "venue", "rename")
"""Keys that do not affect measurements and may change when a run is resumed."""


class NetworkChoice(Keyed):
    """Networks of a study: files, or generated graphs."""

    path: str | None = None
    """A UAI or BIF file, a folder of them, or a pattern of names such as networks/*.uai, relative
    to the folder of the configuration. For a network NAME.uai, NAME.uai.evid (or NAME.evid) has the
    evidence, and NAME.uai.MAR and NAME.uai.PR the reference answers."""

    shape: GraphShape | None = None
    """Shape of generated fact graphs."""

    grid: Count | None = None
    """Side length of generated square Ising grids, with couplings up to 1 and fields up to 0.5."""

    name: str = ""
    """Name in tables; for a path, by default its files' names without a final number."""

    graphs: Count = 1
    """Number of generated graphs, or batches."""

    batch: Count = 1
    """Number of graphs per batch, which a single call answers."""

    limit: Count | None = None
    """Only the first networks of the path, up to this number."""

    @model_validator(mode="after")
    def _consistent(self) -> NetworkChoice:
        given = [key for key in ("path", *DRAWN) if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError("give one of path, shape and grid")
        if self.path is None and not self.name:
            raise ValueError("generated networks need a name; add name")
        if self.path is not None and (self.graphs, self.batch) != (1, 1):
            raise ValueError("graphs and batch apply to generated networks; leave them out")
        if self.path is None and self.limit is not None:
            raise ValueError(
                "limit applies to a path; give the number of generated networks as graphs"
            )
        return self


class ProgramChoice(Keyed):
    """An external program on the PATH, compared like a backend."""

    program: Literal["merlin"]
    """Name of the program: merlin, with its weighted mini-buckets."""

    label: str = ""
    """Name in tables; the program's name if absent."""

    i_bound: Count = 6
    """Largest number of variables of a mini-bucket besides the eliminated one."""

    iterations: Count = 10
    """Passes of messages."""

    seconds: Positive = 60.0
    """Time limit of a run in seconds."""

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.label or self.program


class NetworkStudy(Keyed):
    """A study of networks: every backend, with every setting, on every network."""

    study: StudyName

    datasets: Some[NetworkChoice]
    """The networks, from files or generated."""

    description: Purpose = ""

    backends: Backends = DEFAULT_BACKENDS

    programs: tuple[ProgramChoice, ...] = ()
    """External programs to compare if they are on the PATH."""

    against: str = ""
    """Label of the backend that times are divided by; the first if empty."""

    reference: BackendChoice = BackendChoice(backend="exact", settings={"seconds_limit": 60.0})
    """Backend whose answer is the reference of a network without reference files. If it refuses a
    network, an exact answer of another backend is the reference; without one, the tightest
    certified bracket of log Z."""

    maxima: Annotated[tuple[Searcher, ...], AfterValidator(distinct)] = ()
    """Algorithms that search the most probable states of each network, for a separate table: exact
    (elimination), toulbar2. Times are divided by the times of the first."""

    search_seconds: Positive = 20.0
    """Limit on toulbar2's processor time per network."""

    rounds: Count = 7
    """Number of turns of every backend on a network."""

    budget: Positive = 1.0
    """Seconds of repeated calls per backend and network."""

    seed: Seed = 0
    """Seed of generated graphs, of the order of turns, and of backends unless `seeds` is given."""

    seeds: Seeds = ()

    venue: VenueName = DEFAULT_VENUE

    rename: ShownNames = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> NetworkStudy:
        labels = [title for choice in self.backends for title, _ in choice.settings_of_each()]
        labels += [choice.title for choice in self.programs]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"backends: two have the label {label!r}; give each its own label")
        if self.against and self.against not in labels:
            raise ValueError(
                f"against: {self.against!r} is not among the backends; use one of "
                f"{', '.join(labels)}"
            )
        if len(self.reference.settings_of_each()) != 1:
            raise ValueError("reference: a grid means several backends; name one backend")
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
        """The study as plain data, with every default and file names without folders."""
        plain: dict[str, Any] = without_folders(self.model_dump(mode="json"))
        # Studies without the key keep their hash from before the key existed.
        if not plain["rename"]:
            del plain["rename"]
        return plain

    def measured_part(self) -> dict[str, Any]:
        """Plain form of the part that measurements depend on."""
        return {key: value for key, value in self.plain().items() if key not in PRESENTATION}


@dataclass(frozen=True)
class LoadedNetworks:
    """A study of networks with its origin.

    Attributes:
        study: the study.
        raw: the data as written.
    """

    study: NetworkStudy
    raw: RawStudy


def load_networks(raw: RawStudy, data: Path | None = None) -> LoadedNetworks:
    """Validate plain data and return the study of networks.

    Args:
        raw: the data.
        data: an additional network, folder or pattern to measure.

    Raises:
        InputError: for an invalid key or value.
    """
    if data is not None:
        # Paths on the command line are relative to the current folder.
        beside = [*raw.raw["datasets"], {"path": str(data.absolute())}]
        raw = replace(raw, raw={**raw.raw, "datasets": beside})
    study = raw.checked(lambda plain: model_of(NetworkStudy, plain))
    return LoadedNetworks(study, raw)
