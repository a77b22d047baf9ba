"""Speed of this machine in exact inference, measured once and kept with the compiled kernels."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from threading import Lock

import numpy as np

import factormodels
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.source.files import atomic_path
from factormodels.synthetic import chain as long_chain
from factormodels.synthetic import fr2, grid
from inference.exact.conditioning import condition, conditioning
from inference.exact.kernels.propagation import propagate
from inference.exact.plans import Plan
from inference.exact.prediction import REFERENCE, STEPS_PER_SECOND, Work, fresh_work
from inference.kernels.preparation import PREPARATION

logger = logging.getLogger(__name__)

_FEWEST_RUNS = 5
_SECONDS = 0.1
"""Minimum runs and seconds of a measurement. Only the fastest run counts, since others may have
shared the processor."""

_RELEVANT = 0.02
"""Minimum share of the work for which the speed of a kind is measured."""

_SLOWEST, _FASTEST = 50.0, 0.05
"""Range of credible factors; a factor outside it is a measurement error."""

_FRESH_ENTRIES = 2**22

MEASURED = "measured on this machine"


@dataclass(frozen=True)
class Speed:
    """Seconds of this machine for a second of the reference processor, by kind of work.

    Attributes:
        factors: one factor for each kind; 1.0 for one that was not measured.
        source: where they are from, for `stats`.
    """

    factors: Work
    source: str

    def seconds(self, work: Work) -> float:
        """Return the predicted seconds of some work on one core of this machine."""
        return float(np.dot(self.factors, work))


REFERENCE_SPEED = Speed(Work(*(1.0 for _ in Work._fields)), REFERENCE)


def speed_for(work: Work) -> Speed:
    """Return the speed of this machine for the kinds of work that matter here.

    Speeds that no process has measured on this machine are measured now, in about a second after
    the kernels are compiled; neither time counts as an algorithm's.
    """
    wanted = [
        group
        for group in _GROUPS
        if sum(getattr(work, kind) for kind in group) > _RELEVANT * work.seconds
    ]
    return _speed_of(wanted)


def measure_speed() -> Speed:
    """Return the speed of this machine for every kind of work, measured unless it is known.

    No later process that can read the file of kernels' machine code measures it again.
    """
    return _speed_of(_GROUPS)


def _speed_of(wanted: Sequence[tuple[str, ...]]) -> Speed:
    with _MEASURING, PREPARATION.counted():
        _complete(wanted)
        return Speed(REFERENCE_SPEED.factors._replace(**_KNOWN.factors), _KNOWN.source)


@dataclass
class _Known:
    """Factors by kind that this process has measured or read, and their source."""

    factors: dict[str, float] = field(default_factory=dict)
    source: str = MEASURED

    def lacks(self, group: tuple[str, ...]) -> bool:
        """Return whether a kind of a group is not known."""
        return not self.factors.keys() >= set(group)


_MEASURING = Lock()
_KNOWN = _Known()


def _complete(wanted: Sequence[tuple[str, ...]]) -> None:
    """Read or measure the factors of some groups of kinds, unless they are known."""
    if not any(map(_KNOWN.lacks, wanted)):
        return
    path = _path()
    _KNOWN.factors.update(_read(path))
    missing = list(filter(_KNOWN.lacks, wanted))
    if not missing:
        return
    for kind in chain.from_iterable(missing):
        _KNOWN.factors[kind] = _measured(kind)
    rounded = {kind: round(factor, 3) for kind, factor in _KNOWN.factors.items()}
    logger.info("measured the speed of exact inference: %s", rounded)
    _KNOWN.source = MEASURED + _not_kept(path, _KNOWN.factors)


def _measured(kind: str) -> float:
    """Return the factor of a kind of work, from the fastest of some runs of an example."""
    example = _EXAMPLES[kind]()
    example.run()  # Compiles its kernels, or reads them from disk.
    begin, runs, seconds = time.thread_time(), 0, math.inf
    while runs < _FEWEST_RUNS or time.thread_time() - begin < _SECONDS:
        start = time.thread_time()
        example.run()
        seconds = min(seconds, time.thread_time() - start)
        runs += 1
    return min(max(seconds / example.work.seconds, _FASTEST), _SLOWEST)


@dataclass(frozen=True)
class _Example:
    """Work of mostly one kind: the function that does it, and its reference seconds."""

    run: Callable[[], object]
    work: Work


def _elimination(graph: FactorGraph) -> _Example:
    plan = Plan.of(graph, 0, 0, STEPS_PER_SECOND, math.inf)
    work = plan.cost_of(graph).work._replace(fresh=0.0)
    return _Example(lambda: plan.run(graph.log_values, lambda: 1), work)


def _conditioning() -> _Example:
    graph = fr2(13, 40, density=0.9, seed=0)
    plan = conditioning(graph)
    if plan is None:
        raise RuntimeError("the claims of an FR2 graph are a cover of its pairs")
    return _Example(lambda: condition(graph, plan, 1), Work(states=plan.seconds))


def _square(side: int, cardinality: int = 2, scale: float = 1.0) -> FactorGraph:
    return grid(side, side, coupling=scale, field=scale, cardinality=cardinality, seed=0)


_EXAMPLES: dict[str, Callable[[], _Example]] = {
    "steps": lambda: _elimination(long_chain(50_000, coupling=1.0, field=1.0, seed=0)),
    "entries": lambda: _elimination(_square(13)),
    "streamed": lambda: _elimination(_square(15)),
    "products": lambda: _elimination(_square(4, cardinality=16)),
    "fresh": lambda: _Example(lambda: np.ones(_FRESH_ENTRIES), fresh_work(8.0 * _FRESH_ENTRIES)),
    "logs": lambda: _elimination(_square(13, scale=1000.0)),
    "states": _conditioning,
}
"""Examples by kind. Tables of `entries` stay in a core's cache, those of `streamed` take 100 MB."""

_GROUPS: tuple[tuple[str, ...], ...] = (
    ("steps", "entries", "streamed", "products", "fresh"),
    ("logs",),
    ("states",),
)
"""Kinds that are measured together, since a run needs the kernels of all of them."""


def _path() -> Path | None:
    """Return the file of this machine's factors, beside the kernels' machine code; None if that is
    not kept.

    Its name changes with the version, the constants, the kernels and the processor.
    """
    folder = propagate.stats.cache_path
    return None if folder is None else Path(folder) / f"speed-{_digest()}.json"


@cache
def _digest() -> str:
    here = Path(__file__).parent
    digest = hashlib.sha256(f"{factormodels.__version__} {_processor()}".encode())
    for file in (Path(__file__), *sorted(here.glob("*.py")), *sorted(here.glob("kernels/*.py"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _processor() -> str:
    """Return the name of the processor, as precisely as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    return " ".join((platform.machine(), platform.processor(), *sorted(names), str(os.cpu_count())))


def _read(path: Path | None) -> dict[str, float]:
    """Return the factors in a file; none if it is absent or damaged."""
    if path is None:
        return {}
    try:
        factors = json.loads(path.read_text(encoding="utf-8"))
        return {
            kind: float(factors[kind])
            for kind in Work._fields
            if kind in factors and _FASTEST <= float(factors[kind]) <= _SLOWEST
        }
    # Whatever error the damage causes, the factors are measured again.
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _not_kept(path: Path | None, factors: dict[str, float]) -> str:
    """Keep the factors in a file; return the reason if they are not kept, for the end of a
    clause."""
    if path is None:
        return ", not kept: machine code is not kept on disk either"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as part:
            part.write_text(json.dumps(factors), encoding="utf-8")
    except (OSError, InputError):
        return f", not kept: {path.parent} cannot be written to"
    return ""
