"""What a benchmark found: measurements by family, graph and algorithm, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.bench.answers import BenchAnswer
from experiments.bench.families import Reference

ABSENT = "absent"
"""Status of an algorithm whose library is not installed; other failures are `child` kinds."""

BOUNDS = ("upper", "lower", "elbo")
"""Kinds of log Z that are bounds; an estimate is never compared with one."""


@dataclass(frozen=True)
class Measurement:
    """One algorithm on one graph.

    Attributes:
        algorithm: its name.
        status: how its first call ended, as in `inference.Status`, or why there was none: absent,
            refused, failed, time-out, out of memory.
        remark: one line more on that.
        load_seconds: loading of its libraries, if its process was started for this graph.
        build_seconds: the making of its model.
        first_seconds: its first call on this graph.
        rounds: the rounds in which it was timed warm.
        seconds: seconds per call in each of these rounds.
        calls: calls in each of these rounds.
        peak_bytes: largest memory beyond that of its libraries, where that was measured.
        log_z, log_z_kind, lower, upper: as in `BenchAnswer`.
        max_error, mean_error: of the probabilities in marginals, against the reference.
        log_z_error: log Z (or its bound) minus the true one, in nats.
        facts: as in `BenchAnswer`.
    """

    algorithm: str
    status: str
    remark: str = ""
    load_seconds: float | None = None
    build_seconds: float | None = None
    first_seconds: float | None = None
    rounds: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()
    calls: tuple[int, ...] = ()
    peak_bytes: int | None = None
    log_z: float | None = None
    log_z_kind: str = "none"
    lower: float | None = None
    upper: float | None = None
    max_error: float | None = None
    mean_error: float | None = None
    log_z_error: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return self.first_seconds is not None

    @property
    def warm(self) -> float | None:
        """Median seconds of a warm call; of the first one where there was no other."""
        # The median: a single disturbed round does not move it.
        return float(np.median(self.seconds)) if self.seconds else self.first_seconds

    @property
    def gap(self) -> float | None:
        """Upper minus lower bound on log Z, where the algorithm gives both."""
        if self.upper is None or self.lower is None:
            return None
        return self.upper - self.lower


@dataclass(frozen=True)
class GraphResult:
    """All algorithms on one graph (or batch).

    Attributes:
        label: its name within the family.
        digest: of its numbers: equal only if the graph is.
        graphs: number of graphs, 1 unless it is a batch.
        variables: number of variables.
        factors: number of factors.
        reference: what errors are measured against; "" if nothing is exact.
        yardstick: seconds of the same small work, once in each round: the speed of the machine.
        measurements: one for each algorithm.
    """

    label: str
    digest: str
    graphs: int
    variables: int
    factors: int
    reference: str
    yardstick: tuple[float, ...]
    measurements: tuple[Measurement, ...]

    def of(self, algorithm: str) -> Measurement | None:
        """The measurement of an algorithm."""
        return next((one for one in self.measurements if one.algorithm == algorithm), None)


@dataclass(frozen=True)
class FamilyResult:
    """All graphs of a family.

    Attributes:
        name: its name.
        summary: what its graphs are.
        against: by algorithm, the one that its time is divided by.
        graphs: results on each graph.
    """

    name: str
    summary: str
    against: Mapping[str, str]
    graphs: tuple[GraphResult, ...]

    @property
    def algorithms(self) -> list[str]:
        """Names of the algorithms, in order."""
        return list(dict.fromkeys(m.algorithm for g in self.graphs for m in g.measurements))

    def of(self, algorithm: str) -> list[tuple[GraphResult, Measurement]]:
        """The measurements of an algorithm with their graphs."""
        found = [(graph, graph.of(algorithm)) for graph in self.graphs]
        return [(graph, one) for graph, one in found if one is not None]


def find_reference(answers: Mapping[str, BenchAnswer], given: Reference | None) -> Reference | None:
    """The answer that errors are measured against.

    A given one (files) comes first; without one, the first exact answer with marginals.
    """
    for name, answer in answers.items():
        if answer.status == "exact" and answer.marginals is not None:
            if given is None:
                log_z = answer.log_z if answer.log_z_kind == "exact" else None
                return Reference(name, answer.marginals, log_z)
            return given
    return given


def errors(answer: BenchAnswer, reference: Reference | None) -> dict[str, float | None]:
    """max_error, mean_error and log_z_error of an answer; None where one cannot be told."""
    found: dict[str, float | None] = dict.fromkeys(("max_error", "mean_error", "log_z_error"))
    if reference is None:
        return found
    mine, true = answer.marginals, reference.marginals
    # A reference file may be of another network; then nothing can be said.
    if mine is not None and true is not None and mine.shape == true.shape:
        difference = np.abs(mine - true)
        found["max_error"] = float(difference.max(initial=0.0))
        found["mean_error"] = float(difference.mean()) if difference.size else 0.0
    if answer.log_z is not None and reference.log_z is not None:
        found["log_z_error"] = float(answer.log_z - reference.log_z)
    return found
