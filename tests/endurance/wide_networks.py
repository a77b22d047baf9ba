"""Networks too wide for elimination: bounds, estimates and searches against reference answers.

    python -m tests.endurance.wide_networks bounds [--seconds 20] [--memory 1000000000]
    python -m tests.endurance.wide_networks map [--seconds 60] [--memory 1000000000]

Networks of the UAI 2014 competition with their answers, and two graphs of claims that the
generator beside those data draws; their reference is `ais` with ten times the time, and its
standard error. Searches for the most probable assignment are toulbar2's.
Every answer is a process of its own: `MiB` is what its resident memory grew by, at most, beyond
what it held when the network was read and the compiled code loaded. `seconds` and `memory` are
passed to what takes them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from factormodels import FactorGraph
from factormodels.io.networks.uai import read_uai
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from factormodels.synthetic import grid
from inference import LogZKind, Posterior, get_backend
from inference.peers.toulbar2_search import search_toulbar2

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "uai2014_wide"
NETWORKS = ("linkage_11", "linkage_12", "ObjectDetection_14", "ObjectDetection_16")
CLAIMS = ("FR2_200x5_d0.05", "FR3_200x5_d0.05_c0.002")
BACKENDS = ("auto", "wmb", "trw", "cavi", "ais", "wmb_is", "ijgp", "lbp")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.wide_networks")
    parser.add_argument("table", choices=("bounds", "map", "cell"))
    parser.add_argument("cell", nargs="*", help="network and backend, within a table's own process")
    parser.add_argument("--seconds", type=float, help="of each answer: 20 for bounds, 60 for map")
    parser.add_argument("--memory", type=int, default=10**9, help="bytes that tables may take")
    parser.add_argument("--only", nargs="*", help="names of networks")
    parser.add_argument("--backends", nargs="*", default=BACKENDS, help="of the table of bounds")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with MAP, MAR and PR")
    given = parser.parse_args()
    if given.table == "cell":
        path, backend, kept = (*given.cell, "", "")[:3]
        limits = (given.seconds, given.memory)
        if backend == "toulbar2":
            answer = toulbar2_cell(Path(path), limits[0])
        else:
            answer = marginal_cell(Path(path), backend, *limits, kept)
        json.dump(answer, sys.stdout)
        return 0
    (bounds if given.table == "bounds" else most_probable)(given)
    return 0


def bounds(given: argparse.Namespace) -> None:
    """Print a line of each network and backend."""
    seconds = given.seconds or 20.0
    _line("network", "backend", "lower", "log Z", "upper", "reference", "mean and largest error of "
          "marginals", "seconds", "of a processor", "MiB", "status")  # fmt: skip
    _line(*["---"] * 2, *["---:"] * 8, "---")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only or NETWORKS + CLAIMS:
            path = given.data / "PR" / f"{name}.uai"
            reference = Path(folder) / f"{name}.reference.npz"
            if name in CLAIMS:
                path = Path(folder) / f"{name}.uai"
                generator = given.data.parents[1] / "bench" / "gen.py"
                command = [sys.executable, generator, "--out", folder, "--only", name]
                subprocess.run(command, check=True, capture_output=True)
                said = _cell(path, "ais", 10.0 * seconds, given.memory, str(reference))
                if "refused" in said:
                    raise SystemExit(f"{name} has no reference: {said['refused']}")
                # Where its groups disagree, `ais` states none.
                error = "?" if said["error"] is None else f"{said['error']:.2f}"
                about = f"{said['log_z']:.2f} ± {error}"
            else:
                log_z = read_log10_partition(Path(f"{path}.PR")) * np.log(10.0)
                about = f"{log_z:.3f}"
                vectors = read_marginals(given.data / "MAR" / f"{name}.uai.MAR")
                np.savez(reference, marginals=np.concatenate(vectors))
            for backend in given.backends:
                said = _cell(path, backend, seconds, given.memory, str(reference))
                if "refused" in said:
                    _line(name, backend, *[""] * 3, about, *[""] * 4, said["refused"])
                    continue
                numbers = [_shown(said.get(key)) for key in ("lower", "log_z", "upper")]
                errors = f"{said['mean_error']:.4f}, {said['largest_error']:.3f}"
                spent = (f"{said[key]:.1f}" for key in ("seconds", "processor"))
                held = f"{said['mebibytes']:.0f}"
                _line(name, backend, *numbers, about, errors, *spent, held, said["status"])


def most_probable(given: argparse.Namespace) -> None:
    """Print a line of each MAP task: what toulbar2 finds."""
    _line("network", "variables", "found", "reference", "upper bound", "better by", "seconds",
          "status")  # fmt: skip
    _line("---", *["---:"] * 6, "---")
    for path in sorted((given.data / "MAP").glob("*.uai")):
        if given.only and path.stem not in given.only:
            continue
        said = _cell(path, "toulbar2", given.seconds or 60.0, given.memory)
        if "refused" in said:
            _line(path.stem, *[""] * 6, said["refused"])
            continue
        found, reference = said["found"], said["reference"]
        numbers = (f"{value:.4f}" for value in (found, reference, said["upper"], found - reference))
        _line(path.stem, said["variables"], *numbers, f"{said['seconds']:.1f}", said["status"])


def marginal_cell(
    path: Path, name: str, seconds: float, memory: int, reference: str
) -> dict[str, Any]:
    """The answer of a backend; where the reference is not there, it is written."""
    asked = {"seconds": seconds, "memory_limit": memory}
    taken = {field.name for field in dataclasses.fields(get_backend(name))}
    backend = get_backend(name, **{key: value for key, value in asked.items() if key in taken})
    graph = _read(path)
    warm_up = {"seconds": 1.0} if "seconds" in taken else {}
    dataclasses.replace(backend, **warm_up).infer(grid(4, 4, coupling=1.0, field=1.0, seed=0))
    before = _resident_peak_from_here()
    start, worked = time.perf_counter(), time.process_time()
    posterior = backend.infer(graph)
    took = time.perf_counter() - start
    peak = _resident("VmHWM") - before
    if Path(reference).exists():
        truth = np.load(reference)["marginals"]
    else:
        truth = posterior.marginals.flat
        np.savez(reference, marginals=truth)
    off = np.abs(posterior.marginals.flat - truth)
    lower, upper = _sides(posterior)
    return {
        "lower": lower,
        "log_z": posterior.log_z,
        "upper": upper,
        "error": posterior.stats.get("log_z_standard_error"),
        "mean_error": float(off.mean()),
        "largest_error": float(off.max()),
        "seconds": took,
        "processor": time.process_time() - worked,
        "mebibytes": peak / 2**20,
        "status": str(posterior.status),
    }


def toulbar2_cell(path: Path, seconds: float) -> dict[str, Any]:
    """What toulbar2 finds for a task, beside the reference assignment."""
    graph = _read(path)
    states = np.array(Path(f"{path}.MAP").read_text().split()[2:], dtype=np.int64)
    found = search_toulbar2(graph, seconds=seconds)
    return {
        "variables": graph.n_variables,
        "reference": graph.log_potential(states),
        "found": found.log_potential,
        "upper": found.upper,
        "seconds": found.stats["seconds"],
        "status": str(found.status),
    }


def _sides(posterior: Posterior) -> tuple[float | None, float | None]:
    lower, upper = posterior.stats.get("lower"), posterior.stats.get("upper")
    if posterior.log_z_kind in (LogZKind.LOWER, LogZKind.ELBO, LogZKind.EXACT):
        lower = posterior.log_z
    if posterior.log_z_kind in (LogZKind.UPPER, LogZKind.EXACT):
        upper = posterior.log_z
    return lower, upper


def _read(path: Path) -> FactorGraph:
    graph = read_uai(path)
    evidence = Path(f"{path}.evid")
    return graph.with_evidence(read_evidence(evidence)) if evidence.exists() else graph


def _resident_peak_from_here() -> int:
    """Forget the peak of resident memory so far, and return what is resident now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def _resident(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    raise OSError(f"/proc/self/status has no {key}")


def _cell(path: Path, name: str, seconds: float, memory: int, kept: str = "") -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.endurance.wide_networks", "cell", str(path), name]
    command += [kept] if kept else []
    command += ["--seconds", str(seconds), "--memory", str(memory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"refused": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _line(*cells: object) -> None:
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
