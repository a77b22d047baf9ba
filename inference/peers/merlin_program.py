"""merlin's weighted mini-buckets, run by its program on the path, as an independent reference.

merlin multiplies potentials without scaling, and writes no marginals if their product leaves the
range of doubles. It therefore receives an equivalent graph with potentials near 1
(`peers.balanced`).
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError, MissingDependencyError
from factormodels.factor_graph import FactorGraph
from factormodels.io.json import decode
from factormodels.io.networks.uai import write_uai
from inference.backend import Backend, InferenceError
from inference.peers.balanced import balanced, within_doubles
from inference.posterior import LogZKind, Posterior, Status
from inference.settings import setting

PROGRAM = "merlin"
"""Its name on the path."""

_PRINTED = 0.5e-6
"""Half a unit of the last printed digit."""

_NETWORK, _EVIDENCE, _ANSWER = "network.uai", "network.evid", "answer"


def missing_program() -> str:
    """Return the sentence on how to get merlin; empty if it is on the path."""
    if shutil.which(PROGRAM) is not None:
        return ""
    return (
        f"the program {PROGRAM} is not on the path; compile https://github.com/radum2275/merlin "
        "and add its folder bin to PATH"
    )


@dataclass(frozen=True)
class Merlin(Backend):
    """merlin's weighted mini-buckets: marginals, and an upper bound on log Z as it computes it.

    Attributes:
        i_bound: maximum number of variables of a mini-bucket, in addition to its eliminated
            variable.
        iterations: number of message passes.
        seconds: limit of wall time, at which the run is ended with an error.

    Source: Liu & Ihler 2011, "Bounding the partition function using Hölder's inequality", as
    merlin implements it (github.com/radum2275/merlin).
    """

    name: ClassVar[str] = "merlin"

    i_bound: int = setting(6, least=1)
    iterations: int = setting(10, least=1)
    seconds: float = setting(60.0, above=0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph without evidence.

        Raises:
            MissingDependencyError: if the program is not on the path.
            ZeroPartitionError: if messages show that no assignment has positive potential.
            InferenceError: if merlin ends without an answer, or takes longer than `seconds`.
        """
        if lacks := missing_program():
            raise MissingDependencyError(lacks)
        support = balanced(graph)
        value, vectors = 0.0, [np.zeros(0)]
        if support.graph.n_variables:
            answer = self._run(support.graph)
            value, vectors = _parsed(answer, support.graph)
        return Posterior(
            marginals=support.marginals(np.concatenate(vectors)),
            log_z=support.log_constant + value + _PRINTED,
            log_z_kind=LogZKind.UPPER,
            # merlin does not report how far its messages were from a fixed point.
            status=Status.NOT_CONVERGED,
            stats={"i_bound": self.i_bound, "iterations": self.iterations},
        )

    def _run(self, graph: FactorGraph) -> Any:
        """Return the answer of the program for a graph, as JSON."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with within_doubles(PROGRAM):
                write_uai(graph, folder / _NETWORK)
            (folder / _EVIDENCE).write_text("0\n", encoding="utf-8")
            options = {
                **{"input-file": folder / _NETWORK, "evidence-file": folder / _EVIDENCE},
                **{"output-file": folder / _ANSWER, "output-format": "json", "task": "MAR"},
                **{"algorithm": "wmb", "ibound": self.i_bound, "iterations": self.iterations},
            }
            words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
            try:
                done = subprocess.run(
                    [PROGRAM, *words],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=self.seconds,
                )
            except subprocess.TimeoutExpired:
                raise InferenceError(
                    f"merlin took more than {self.seconds:g} seconds; raise `seconds` or lower "
                    "`i_bound`"
                ) from None
            # Versions append different suffixes to the name of the file.
            files = [path for path in folder.iterdir() if path.name.startswith(_ANSWER)]
            if done.returncode or len(files) != 1:
                lines = (done.stdout + done.stderr).strip().splitlines()
                raise InferenceError(
                    f"merlin ended without an answer (exit code {done.returncode}): "
                    f"{(lines or ['it printed nothing'])[-1]}"
                )
            text = files[0].read_text(encoding="utf-8")
        try:
            # Some objects in its output end in a comma, which JSON does not allow.
            return decode(re.sub(r",(\s*[}\]])", r"\1", text), "merlin's answer")
        except InputError as error:
            raise InferenceError(f"{error}") from None


def _parsed(answer: Any, graph: FactorGraph) -> tuple[float, list[NDArray[np.float64]]]:
    """Return the log partition function and the marginals of an answer, in the graph's order.

    Raises:
        InferenceError: if a variable lacks its marginal, or a number is not finite.
    """
    try:
        by_variable = {
            int(each["variable"]): np.array(each["marginal"], dtype=np.float64)
            for each in answer["solution"]
        }
        value = float(answer["value"])
        vectors = [by_variable[variable] for variable in range(graph.n_variables)]
    except (KeyError, TypeError, ValueError) as error:
        raise InferenceError(f"merlin's answer lacks what it should have ({error!r})") from None
    fits = all(
        len(vector) == count and vector.sum() > 0.0
        for vector, count in zip(vectors, graph.cardinalities.tolist(), strict=True)
    )
    if not (fits and math.isfinite(value) and np.isfinite(np.concatenate(vectors)).all()):
        raise InferenceError("merlin's answer has marginals that are no distributions")
    # Printed digits do not sum to one.
    return value, [vector / vector.sum() for vector in vectors]
