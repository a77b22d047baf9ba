"""The graphs that algorithms are measured on: generated families and UAI files, as data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import FactLaws, fr1_forest, fr2, fr3, grid, mixed_reliability
from factormodels.synthetic import random_graph as draw_random_graph


@dataclass(frozen=True)
class Reference:
    """An answer that errors are measured against.

    Attributes:
        source: where it is from.
        marginals: the probability vectors one after another, or None.
        log_z: natural logarithm of the partition function, or None.
    """

    source: str
    marginals: NDArray[np.float64] | None = None
    log_z: float | None = None


def no_reference(number: int) -> Reference | None:  # noqa: ARG001
    """None: the exact answer has to be computed."""
    return None


@dataclass(frozen=True)
class Family:
    """Graphs of one kind and the algorithms compared on them.

    Attributes:
        name: what it is asked for by.
        summary: one line: what the graphs are.
        graphs: makes instance number 0, 1, ...: one graph, or those of a batch.
        algorithms: the algorithms compared, by name.
        slow: further algorithms, which only the preset "full" waits for.
        n_instances: how many instances there are (generated families: in the preset "full").
        labels: names of the instances; their numbers if there are none.
        reference: the reference answer of an instance; None if there is none.
    """

    name: str
    summary: str
    graphs: Callable[[int], Sequence[FactorGraph]]
    algorithms: tuple[str, ...]
    slow: tuple[str, ...] = ()
    n_instances: int = 3
    labels: tuple[str, ...] = ()
    reference: Callable[[int], Reference | None] = no_reference

    def label(self, number: int) -> str:
        """The name of an instance."""
        return self.labels[number] if self.labels else f"seed {number}"


@dataclass(frozen=True)
class Preset:
    """How much is measured.

    Attributes:
        summary: one line: what it is for and how long it takes.
        families: the families.
        n_instances: most instances of a family.
        rounds: most warm turns of every algorithm on an instance.
        budget: seconds of warm calls of an algorithm on an instance, beyond which it sits out.
        time_limit: seconds that building a model and a first call may take.
        slow: whether the slow algorithms of families are waited for.
        runner: responses of the study that the runner is measured with, as `RUNNER`.
    """

    summary: str
    families: tuple[str, ...]
    n_instances: int
    rounds: int
    budget: float
    time_limit: float
    slow: bool = False
    runner: int = 10_000


_LAWS = FactLaws(context_prior=mixed_reliability(0.2))
"""Contexts of FactReasoner's kind, a fifth of them doubtful; relations from Beta(8, 2)."""


def _forest(atoms: int, contexts: int, seed: int) -> tuple[FactorGraph]:
    return (fr1_forest(atoms, contexts, seed=seed, laws=_LAWS),)


def _fr2(atoms: int, contexts: int, density: float, seed: int) -> tuple[FactorGraph]:
    return (fr2(atoms, contexts, density, own=False, seed=seed, laws=_LAWS),)


def _fr3(atoms: int, contexts: int, density: float, among: float, seed: int) -> tuple[FactorGraph]:
    return (fr3(atoms, contexts, density, among, own=False, seed=seed, laws=_LAWS),)


def _grid(side: int, seed: int) -> tuple[FactorGraph]:
    return (grid(side, side, coupling=1.0, field=0.5, seed=seed),)


def _random(variables: int, factors: int, seed: int) -> tuple[FactorGraph]:
    return (
        draw_random_graph(
            variables,
            factors,
            max_arity=3,
            min_cardinality=2,
            max_cardinality=3,
            zero_probability=0.05,
            seed=seed,
        ),
    )


def _batch(count: int, number: int) -> tuple[FactorGraph, ...]:
    # Instances share no graph, and the first graphs of a larger batch are those of a smaller one.
    seeds = range(number * count, (number + 1) * count)
    return tuple(graph for seed in seeds for graph in _fr2(31, 3, 0.05, seed))


_ESTIMATES = ("lbp", "lbp-1e-5", "trw", "wmb-2", "wmb-6", "wmb-10", "cavi", "gibbs")
_PEERS = ("pyagrum", "pgmax")

FAMILIES: tuple[Family, ...] = (
    Family(
        "fr1-31x3",
        "FR1: 31 atoms with 3 contexts each, a forest of 124 variables",
        partial(_forest, 31, 3),
        ("exact", *_ESTIMATES, *_PEERS, "pgmpy"),
    ),
    Family(
        "fr2-31x3-d05",
        "FR2: 31 atoms, 93 contexts, density 0.05",
        partial(_fr2, 31, 3, 0.05),
        ("exact", *_ESTIMATES, *_PEERS),
        slow=("pgmpy",),
    ),
    Family(
        "fr2-26x5-d05",
        "FR2: 26 atoms, 130 contexts, density 0.05",
        partial(_fr2, 26, 5, 0.05),
        ("exact", *_ESTIMATES, *_PEERS),
        slow=("pgmpy",),
    ),
    Family(
        "fr2-26x5-d15",
        "FR2: 26 atoms, 130 contexts, density 0.15 (width about 23)",
        partial(_fr2, 26, 5, 0.15),
        ("exact", *_ESTIMATES, "wmb-14", *_PEERS),
    ),
    Family(
        "fr2-26x5-d40",
        "FR2: 26 atoms, 130 contexts, density 0.4 (width about 25)",
        partial(_fr2, 26, 5, 0.4),
        ("exact", *_ESTIMATES, "wmb-14", "pgmax"),
        slow=("pyagrum",),
        n_instances=1,
    ),
    Family(
        "fr3-31x3",
        "FR3: 31 atoms, 93 contexts, density 0.05, among contexts 0.02",
        partial(_fr3, 31, 3, 0.05, 0.02),
        ("exact", *_ESTIMATES, "wmb-14", "pgmax"),
        slow=("pyagrum",),
        n_instances=1,
    ),
    Family(
        "fr1-2000x5",
        "FR1: 2,000 atoms with 5 contexts each, a forest of 12,000 variables",
        partial(_forest, 2000, 5),
        ("exact", "lbp", "lbp-1e-5", "pgmax"),
        slow=("pyagrum",),
        n_instances=1,
    ),
    Family(
        "fr2-200x5",
        "FR2: 200 atoms, 1,000 contexts, density 0.05 (width about 194): bounds only",
        partial(_fr2, 200, 5, 0.05),
        ("lbp", "lbp-1e-5", "trw", "wmb-2", "wmb-6", "wmb-10", "cavi", "gibbs", "pgmax"),
        slow=("wmb-14",),
        n_instances=1,
    ),
    Family(
        "grid-10x10",
        "Ising grid, 10 x 10, random couplings up to 1, fields up to 0.5",
        partial(_grid, 10),
        ("exact", *_ESTIMATES, *_PEERS),
        slow=("pgmpy",),
    ),
    Family(
        "random-60",
        "60 variables of 2 or 3 states, 60 random factors of up to 3, some zeros",
        partial(_random, 60, 60),
        ("exact", *_ESTIMATES, *_PEERS),
        slow=("pgmpy",),
    ),
    Family(
        "batch-512",
        "512 different graphs of fr2-31x3-d05 in one call",
        partial(_batch, 512),
        ("exact-batch", "lbp-batch", "lbp_jax-batch", "exact-each", "pyagrum-each", "pgmax-union"),
        n_instances=1,
    ),
    Family(
        "batch-2000",
        "2,000 different graphs of fr2-31x3-d05 in one call",
        partial(_batch, 2000),
        ("exact-batch", "lbp-batch", "exact-each"),
        slow=("lbp_jax-batch", "pyagrum-each"),
        n_instances=1,
    ),
)
"""Every generated family, in the order in which they are run."""

PRESETS: dict[str, Preset] = {
    "quick": Preset(
        "three small families and a short study, about a minute",
        ("fr1-31x3", "fr2-31x3-d05", "grid-10x10"),
        n_instances=1,
        rounds=7,
        budget=0.5,
        time_limit=20.0,
        runner=1_000,
    ),
    "standard": Preset(
        "every family once, a few minutes",
        tuple(family.name for family in FAMILIES),
        n_instances=1,
        rounds=7,
        budget=3.0,
        time_limit=90.0,
    ),
    "full": Preset(
        "every family on several graphs, slow peers too, half an hour or more",
        tuple(family.name for family in FAMILIES),
        n_instances=3,
        rounds=20,
        budget=40.0,
        time_limit=600.0,
        slow=True,
    ),
}
"""How much is measured, by name."""

RUNNER = "runner"
"""What the measurement of the runner is asked for by, beside the families."""

RUNNER_SUMMARY = "a study of 10,000 small graphs under 3 backends: seconds, overhead per unit"

FILE_ALGORITHMS = ("exact", "lbp", "lbp-1e-5", "trw", "wmb-6", "wmb-10", "pyagrum", "pgmax")
"""What is measured on UAI files unless algorithms are named."""


def select(names: Iterable[str]) -> tuple[Family, ...]:
    """The families of the given names, UAI files and folders of UAI files.

    Files whose names differ in a final number alone are one family.

    Raises:
        InputError: for a name that is neither a family nor a file or folder.
    """
    by_name = {family.name: family for family in FAMILIES}
    chosen: list[Family] = []
    files: list[Path] = []
    for name in names:
        path = Path(name)
        if name in by_name:
            chosen.append(by_name[name])
        elif path.is_dir():
            found = sorted(path.rglob("*.uai"))
            if not found:
                raise InputError(f"{name}: there is no .uai file in this folder; name another")
            files += found
        elif path.is_file() or path.suffix == ".uai":
            files.append(path)
        else:
            raise InputError(
                f"{name!r} is neither a family nor a file; use one of {', '.join(by_name)}, or "
                "name a UAI file or a folder of such files"
            )
    return (*chosen, *_file_families(dict.fromkeys(files)))


def _file_families(files: Iterable[Path]) -> list[Family]:
    """A family for each folder and set of files, its files as instances."""
    groups: dict[tuple[Path, str], list[Path]] = {}
    for path in files:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file; check the path")
        groups.setdefault((path.parent, set_name(path)), []).append(path)
    families: list[Family] = []
    for (folder, name), paths in groups.items():
        # Two folders may hold files of the same name.
        taken = any(family.name == name for family in families)
        count = f"{len(paths)} UAI files" if len(paths) > 1 else "a UAI file"
        families.append(
            Family(
                name=f"{folder.name}/{name}" if taken else name,
                summary=count,
                graphs=partial(_read, tuple(paths)),
                algorithms=FILE_ALGORITHMS,
                n_instances=len(paths),
                labels=tuple(path.name for path in paths),
                reference=partial(_reference, tuple(paths)),
            )
        )
    return families


def set_name(path: Path) -> str:
    """The name of the set that a network belongs to: that of its file without a number."""
    # A name that is nothing but a number stays.
    return re.sub(r"[_-]\d+$", "", path.stem) or path.stem


def _read(paths: Sequence[Path], number: int) -> tuple[FactorGraph]:
    from factormodels.io.networks.uai import read_uai
    from factormodels.io.networks.uai_results import read_evidence

    graph = read_uai(paths[number])
    evidence = Path(f"{paths[number]}.evid")
    if evidence.exists():
        graph = graph.with_evidence(read_evidence(evidence, graph))
    return (graph,)


def _reference(paths: Sequence[Path], number: int) -> Reference | None:
    from factormodels.io.networks.uai_results import read_log10_partition, read_marginals

    marginals, partition = (Path(f"{paths[number]}.{kind}") for kind in ("MAR", "PR"))
    if not marginals.exists() and not partition.exists():
        return None
    return Reference(
        source=" and ".join(path.name for path in (marginals, partition) if path.exists()),
        marginals=np.concatenate(read_marginals(marginals)) if marginals.exists() else None,
        log_z=read_log10_partition(partition) * math.log(10.0) if partition.exists() else None,
    )
