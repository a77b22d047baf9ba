"""Many settings of one graph on the processor and on the accelerator that JAX finds.

    python -m tests.endurance.accelerator [--settings 100000]

The graph is FR2 with 31 atoms and 93 contexts at density 0.05 (124 variables, induced width 9);
every setting has log tables of its own. Each algorithm runs twice, since the first call compiles.
"arrays" is without an object for every posterior. The last column is the largest distance of a
marginal from that of `exact`.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable

import jax
import numpy as np
from numpy.typing import NDArray

from factormodels.synthetic import fr2
from inference import infer_settings
from inference.peers.jax_backends import JaxElimination

Run = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.accelerator")
    parser.add_argument("--settings", type=int, default=100_000, help="how many log tables")
    count = parser.parse_args().settings
    graph = fr2(31, 3, 0.05, own=False, seed=0)
    noise = np.random.default_rng(0).normal(scale=0.3, size=(count, len(graph.log_values)))
    rows = graph.log_values + noise

    def posteriors(backend: str) -> Run:
        return lambda rows: np.array(
            [one.marginals.flat for one in infer_settings(graph, rows, backend)]
        )

    runs: dict[str, Run] = {
        "exact": posteriors("exact"),
        "exact_jax": posteriors("exact_jax"),
        "exact_jax, arrays": lambda rows: JaxElimination().answers(graph, rows)[1],
        "lbp": posteriors("lbp"),
    }
    device = jax.devices()[0]
    width = JaxElimination().predict(graph).induced_width
    sys.stdout.write(
        f"{count} settings of {graph.n_variables} variables, induced width {width}; "
        f"{os.cpu_count()} processors ({platform.machine()}); JAX {jax.__version__} on "
        f"{device.platform} ({device.device_kind})\n"
        f"{'':<18} {'first, s':>9} {'again, s':>9} {'settings/s':>11} {'from exact':>11}\n"
    )
    exact: NDArray[np.float64] | None = None
    for name, run in runs.items():
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            found = run(rows)
            seconds.append(time.perf_counter() - start)
        exact = found if exact is None else exact
        sys.stdout.write(
            f"{name:<18} {seconds[0]:>9.2f} {seconds[1]:>9.2f} {count / seconds[1]:>11,.0f} "
            f"{np.abs(found - exact).max():>11.1e}\n"
        )
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
