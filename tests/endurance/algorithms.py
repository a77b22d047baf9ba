"""What the algorithms of inference promise, measured: speeds, errors, bounds."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

import inference.exact.planner
from factormodels import FactorGraph, datasets, variant
from factormodels.io.networks.uai import read_uai
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from factormodels.synthetic import fr1_forest, fr2, grid, random_graph
from inference import LogZKind, Posterior, get_backend, infer, infer_batch
from inference.backend import InferenceError
from inference.conformance.exactness import in_order
from inference.exact.plans import KeptPlans
from inference.peers.toulbar2_search import search_toulbar2
from tests.inference.graphs import frustrated
from tests.limited_process import status_bytes
from tests.memory import peak_anew

Row = dict[str, object]
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def mixes(count: int) -> Iterator[tuple[str, list[FactorGraph]]]:
    """Yield names of mixes of about `count` graphs of 31 atoms and 93 contexts, and the graphs."""
    make = partial(fr2, 31, 3, 0.05, own=False)

    def settings(graph: FactorGraph, count: int) -> list[FactorGraph]:
        noise = np.random.default_rng(0).normal(scale=0.3, size=(count, len(graph.log_values)))
        return [graph.with_log_values(row) for row in graph.log_values + noise]

    yield "FR2, one structure", settings(make(seed=0), count)
    yield "FR2, every structure another", [make(seed=seed) for seed in range(count)]
    several = [one for seed in range(count // 50) for one in settings(make(seed=seed), 50)]
    yield f"FR2, {count // 50} structures with 50 settings each", several
    yield "forests (FR1), one structure", settings(fr1_forest(31, 3, seed=0), count)
    responses = datasets.load("factcheck-bench").graphs[:count]
    graphs = [variant(response, "FR2").to_factor_graph() for response in responses]
    yield f"{len(graphs)} responses of Factcheck-Bench, FR2", graphs


def batches(graphs: int = 2000, rounds: int = 9, threads: int = 2) -> Iterator[Row]:
    """Batches beside single calls, in one thread and in several: the best of all rounds.

    Every way begins without plans, in turn within each round: what else a machine does only ever
    adds to a time.
    """
    for name, mix in mixes(graphs):
        for backend in ("exact", "lbp"):
            infer_batch(mix[:200], backend, threads=threads)
            taken = np.empty((rounds, 3))
            for number, way in np.ndindex(taken.shape):
                with patch.object(inference.exact.planner, "KEPT", KeptPlans()):
                    start = time.perf_counter()
                    if way == 0:
                        answers = [infer(graph, backend) for graph in mix]
                    else:
                        answers = infer_batch(mix, backend, threads=(1, threads)[way - 1])
                    taken[number, way] = time.perf_counter() - start
                del answers  # Letting go of them is no part of answering.
            single, one, several = (taken.min(axis=0) * 1e6 / len(mix)).tolist()
            yield {
                **{"backend": f"`{backend}`", "graphs": name, "`infer`, µs": single},
                **{"one thread, µs": one, f"{threads} threads, µs": several},
                "`infer` : one thread": single / one,
                f"one thread : {threads} threads": one / several,
            }


def held(graph: FactorGraph, truth: Posterior, posterior: Posterior) -> dict[str, list[bool]]:
    """Return by promise whether it holds."""
    log_z, stats = truth.log_z or 0.0, posterior.stats
    found: dict[str, list[bool]] = {}
    if posterior.log_z_kind is not LogZKind.ESTIMATE:
        return found
    if (error := stats["log_z_standard_error"]) is not None:
        found["log Z within two standard errors"] = [
            abs((posterior.log_z or 0.0) - log_z) <= 2 * error
        ]
    if (interval := stats.get("log_z_interval")) is not None:
        found["log Z in the interval of 95 %"] = [interval[0] <= log_z <= interval[1]]
    if "upper" in stats:
        slack = 1e-9 * max(1.0, abs(log_z))
        inside = stats["lower"] - slack <= log_z <= stats["upper"] + slack
        found["log Z in the bounds of 95 %"] = [inside]
    certain = {name: np.zeros(len(values)) for name, values in posterior.marginals.items()}
    wide = in_order(graph, certain | stats["standard_errors"])
    off = np.abs(posterior.marginals.flat - truth.marginals.flat)
    found["marginals within two standard errors"] = (off <= 2 * wide + 1e-9).tolist()
    return found


def covered(seeds: Iterable[int]) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Return the share that holds and of how many, by backend, status and promise.

    Grids of strong couplings of both signs with factors of three variables (every third with
    zeros), FR2 graphs and random graphs, in turn.
    """
    counts: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for seed in seeds:
        graph = (
            frustrated(seed // 3),
            fr2(6, 3, density=0.4, seed=seed),
            random_graph(
                *(10, 16), max_arity=3, max_cardinality=3, zero_probability=seed % 2 / 20, seed=seed
            ),
        )[seed % 3]
        truth = infer(graph)
        for name, backend, settings in (
            ("ais", "ais", {}),
            ("ais, not resampled", "ais", {"resample": 0.0}),
            ("wmb_is", "wmb_is", {"i_bound": 2}),
        ):
            posterior = infer(graph, backend, seed=seed, **settings)
            for promise, answers in held(graph, truth, posterior).items():
                counts[name, str(posterior.status), promise] += answers
    return {key: (float(np.mean(answers)), len(answers)) for key, answers in counts.items()}


def coverage(graphs: int = 500) -> Iterator[Row]:
    """How often the stated errors and bounds of `ais` and `wmb_is` hold where exact is known."""
    for key, (share, number) in sorted(covered(range(graphs)).items()):
        yield dict(zip(("algorithm", "status", "statement"), key, strict=True)) | {
            **{"holds": share, "of": number}
        }


def bounds(
    networks: tuple[str, ...] = (
        *("linkage_11", "linkage_12", "ObjectDetection_14", "ObjectDetection_16"),
        *("FR2_200x5_d0.05", "FR3_200x5_d0.05_c0.002"),
    ),
    algorithms: tuple[str, ...] = ("auto", "wmb", "trw", "cavi", "ais", "wmb_is", "ijgp", "lbp"),
    seconds: float = 20.0,
    memory: int = 10**9,
) -> Iterator[Row]:
    """Networks too wide for elimination: bounds, estimates and marginals beside reference answers.

    Networks of the UAI 2014 competition with their answers, and graphs of claims whose reference is
    `ais` with ten times the time. `MiB` is what the memory grew by, at most.
    """
    for name in networks:
        path = DATA / "uai2014_wide" / "PR" / f"{name}.uai"
        if path.exists():
            graph = _read(path)
            log_z = f"{read_log10_partition(Path(f'{path}.PR')) * np.log(10.0):.3f}"
            truth = np.concatenate(
                read_marginals(DATA / "uai2014_wide" / "MAR" / f"{name}.uai.MAR")
            )
        else:
            graph = _claims(name)
            known = infer(graph, "ais", seconds=10.0 * seconds)
            log_z = f"{known.log_z:.2f} ± {known.stats['log_z_standard_error']}"
            truth = known.marginals.flat
        for algorithm in algorithms:
            said = _answered(graph, algorithm, seconds=seconds, memory_limit=memory)
            off = np.abs(said.pop("marginals") - truth)
            errors = {"mean error": float(off.mean()), "largest": float(off.max())}
            yield {"network": name, "log Z": log_z, "algorithm": algorithm, **errors, **said}


def _answered(graph: FactorGraph, name: str, **limits: float) -> dict[str, Any]:
    """The answer of an algorithm to a network, and what it took."""
    taken = {field.name for field in dataclasses.fields(get_backend(name))}
    backend = get_backend(name, **{key: limits[key] for key in limits.keys() & taken})
    # What is compiled or loaded once is not counted.
    infer(grid(4, 4, coupling=1.0, field=1.0, seed=0), name)
    before, start, worked = peak_anew(), time.perf_counter(), time.process_time()
    posterior = backend.infer(graph)
    took, worked = time.perf_counter() - start, time.process_time() - worked
    kind, stats = posterior.log_z_kind, posterior.stats
    below = kind in (LogZKind.LOWER, LogZKind.ELBO, LogZKind.EXACT)
    above = kind in (LogZKind.UPPER, LogZKind.EXACT)
    return {
        "lower": posterior.log_z if below else stats.get("lower"),
        "estimate": posterior.log_z,
        "upper": posterior.log_z if above else stats.get("upper"),
        **{"seconds": took, "of a processor": worked},
        "MiB": ((status_bytes("VmHWM") or 0) - before) // 2**20,
        "status": str(posterior.status),
        "marginals": posterior.marginals.flat,
    }


def _claims(name: str) -> FactorGraph:
    """A graph of claims that the generator beside the data draws."""
    generator = DATA.parent / "bench" / "gen.py"
    with TemporaryDirectory() as folder:
        command = [sys.executable, str(generator), "--out", folder, "--only", name]
        subprocess.run(command, check=True, capture_output=True)
        return read_uai(Path(folder) / f"{name}.uai")


def _read(path: Path) -> FactorGraph:
    graph, evidence = read_uai(path), Path(f"{path}.evid")
    return graph.with_evidence(read_evidence(evidence)) if evidence.exists() else graph


def most_probable(networks: tuple[str, ...] = ("*",), seconds: float = 60.0) -> Iterator[Row]:
    """What toulbar2 finds for the competition's MAP tasks, beside its reference assignments."""
    folder = DATA / "uai2014_wide" / "MAP"
    for path in sorted(path for name in networks for path in folder.glob(f"{name}.uai")):
        graph = _read(path)
        states = np.array(Path(f"{path}.MAP").read_text().split()[2:], dtype=np.int64)
        try:
            found = search_toulbar2(graph, seconds=seconds)
        except InferenceError as error:
            yield {"network": path.stem, "status": str(error)}
            continue
        yield {
            **{"network": path.stem, "variables": graph.n_variables},
            **{"reference": graph.log_potential(states), "found": found.log_potential},
            **{"upper bound": found.upper, "seconds": found.stats["seconds"]},
            "status": str(found.status),
        }
