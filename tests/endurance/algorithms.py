"""What the algorithms of inference promise, measured: speeds, errors, bounds."""

from __future__ import annotations

import dataclasses
import gc
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import inference.exact.planner
from factormodels import FactorGraph, datasets, variant
from factormodels.io.networks.uai import read_uai
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from factormodels.synthetic import fr1_forest, fr2, fr3, grid, random_graph
from inference import LogZKind, Posterior, Status, get_backend, infer, infer_batch, infer_settings
from inference.backend import InferenceError
from inference.conformance.exactness import in_order
from inference.exact.backend import Exact
from inference.exact.plans import KeptPlans
from inference.peers.toulbar2_search import search_toulbar2
from tests.inference.graphs import frustrated
from tests.limited_process import Child, ChildError, status_bytes

Row = dict[str, object]
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def noisy(graph: FactorGraph, count: int) -> NDArray[np.float64]:
    """Log tables of so many settings of a graph."""
    noise = np.random.default_rng(0).normal(scale=0.3, size=(count, len(graph.log_values)))
    return graph.log_values + noise


def mixes(count: int) -> Iterator[tuple[str, list[FactorGraph]]]:
    """Yield names of mixes of about `count` graphs of 31 atoms and 93 contexts, and the graphs."""
    make = partial(fr2, 31, 3, 0.05, own=False)

    def settings(graph: FactorGraph, count: int) -> list[FactorGraph]:
        return [graph.with_log_values(row) for row in noisy(graph, count)]

    yield "FR2, one structure", settings(make(seed=0), count)
    yield "FR2, every structure another", [make(seed=seed) for seed in range(count)]
    several = max(1, count // 50)
    graphs = [graph for seed in range(several) for graph in settings(make(seed=seed), 50)]
    yield f"FR2, {several} structures with 50 settings each", graphs
    yield "forests (FR1), one structure", settings(fr1_forest(31, 3, seed=0), count)
    responses = datasets.load("factcheck-bench").graphs[:count]
    graphs = [variant(response, "FR2").to_factor_graph() for response in responses]
    yield f"{len(graphs)} responses of Factcheck-Bench, FR2", graphs


def measured(graphs: list[FactorGraph], backend: str, threads: int, rounds: int) -> list[float]:
    """Microseconds a graph of single calls, one thread and several: the best of all rounds.

    Every way begins without plans, in turn within each round: what else a machine does only ever
    adds to a time.
    """
    ways: list[Callable[[], object]] = [
        lambda: [infer(graph, backend) for graph in graphs],
        lambda: infer_batch(graphs, backend, threads=1),
        lambda: infer_batch(graphs, backend, threads=threads),
    ]
    taken = np.empty((rounds, len(ways)))
    for number in range(rounds):
        for way in np.roll(np.arange(len(ways)), number).tolist():
            gc.collect()
            with patch.object(inference.exact.planner, "KEPT", KeptPlans()):
                start = time.perf_counter()
                answers = ways[way]()
                taken[number, way] = time.perf_counter() - start
            del answers  # Letting go of them is no part of answering.
    times: list[float] = (taken.min(axis=0) * 1e6 / len(graphs)).tolist()
    return times


def batches(graphs: int = 2000, rounds: int = 9, threads: int = 2) -> Iterator[Row]:
    """Batches beside single calls, in one thread and in several."""
    for name, mix in mixes(graphs):
        for backend in ("exact", "lbp"):
            infer_batch(mix[:200], backend, threads=threads)
            single, one, several = measured(mix, backend, threads, rounds)
            yield {
                **{"backend": f"`{backend}`", "graphs": name, "`infer`, µs": single},
                **{"one thread, µs": one, f"{threads} threads, µs": several},
                "`infer` : one thread": single / one,
                f"one thread : {threads} threads": one / several,
            }


def accelerator(settings: int = 100_000) -> Iterator[Row]:
    """Many settings of one graph on the processor and on the accelerator that JAX finds.

    Each algorithm runs twice, since the first call compiles; "arrays" makes no posteriors.
    """
    import jax

    from inference.peers.jax_backends import JaxElimination

    graph = fr2(31, 3, 0.05, own=False, seed=0)
    rows = noisy(graph, settings)
    exact: NDArray[np.float64] | None = None
    for name in ("exact", "exact_jax", "exact_jax, arrays", "lbp"):
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            if name.endswith("arrays"):
                found = JaxElimination().answers(graph, rows)[1]
            else:
                posteriors = infer_settings(graph, rows, name)
                found = np.array([one.marginals.flat for one in posteriors])
            seconds.append(time.perf_counter() - start)
        exact = found if exact is None else exact
        yield {
            **{"": name, "on": f"{jax.devices()[0].device_kind}, {os.cpu_count()} processors"},
            **{"first, s": seconds[0], "again, s": seconds[1]},
            "settings a second": int(settings / seconds[1]),
            "from exact": float(np.abs(found - exact).max()),
        }


def pairs(coupling: float, field: float, seed: int, *, signed: bool = True) -> FactorGraph:
    """Return 120 binary variables and 200 random pairs of them, attracting or of both signs."""
    rng = np.random.default_rng(seed)
    every = list(combinations(range(120), 2))
    tables = np.array([[1.0, -1.0], [-1.0, 1.0]])
    factors: list[tuple[tuple[int, ...], NDArray[np.float64]]] = [
        ((v,), field * rng.normal(size=2)) for v in range(120)
    ]
    for pair in rng.choice(len(every), size=200, replace=False):
        sign = float(rng.choice([-1.0, 1.0])) if signed else 1.0
        factors.append((every[pair], 0.5 * sign * coupling * rng.uniform(0.3, 1.0) * tables))
    return FactorGraph.from_factors([2] * 120, factors, log=True)


_triples = partial(random_graph, 36, 72, min_arity=2, max_arity=3, max_cardinality=3, log_range=3.0)
FAMILIES: dict[str, Callable[[int], FactorGraph]] = {
    "pairs, weak": lambda seed: pairs(0.8, 0.5, seed),
    "pairs, strong": lambda seed: pairs(4.0, 0.5, seed),
    "pairs, attracting": lambda seed: pairs(1.5, 0.1, seed, signed=False),
    "grid, weak": lambda seed: grid(14, 14, coupling=1.0, field=0.5, seed=seed),
    "grid, strong": lambda seed: grid(14, 14, coupling=4.0, field=0.5, seed=seed),
    "triples": lambda seed: _triples(zero_probability=0.0, seed=seed),
    "triples, zeros": lambda seed: _triples(zero_probability=0.05, seed=seed),
    "FR2": lambda seed: fr2(24, 4, density=0.15, seed=seed),
    "FR3": lambda seed: fr3(20, 3, density=0.08, context_density=0.03, seed=seed),
}
COMPARED = ("auto", "lbp", "ijgp", "trw", "ais")


def marginals(
    seeds: tuple[int, ...] = (100, 104), seconds: float = 6.0, share: float = 0.05
) -> Iterator[Row]:
    """Mean errors of the marginals that `auto` chooses, beside others' that it might have chosen.

    Random graphs and the networks of the UAI 2014 competition that are narrow enough for `exact`
    and not for a share of the memory that it takes, which is what the others may use.
    """
    families = {name: map(draw, range(*seeds)) for name, draw in FAMILIES.items()}
    for name in ("Grids", "Promedus", "CSP"):
        paths = sorted((DATA / "uai2014" / "PR").glob(f"{name}_*.uai"))
        families[f"UAI {name}"] = map(_read, paths)
    for name, graphs in families.items():
        found = [one for graph in graphs if (one := errors(graph, seconds, share)) is not None]
        if not found:
            continue
        means: Row = {}
        for who in COMPARED:
            known = [one[0][who] for one in found if who in one[0]]
            means[who] = float(np.mean(known)) if known else None
        chosen = Counter(one[1] for one in found)
        shown = ", ".join(f"{who} {count}" for who, count in chosen.most_common())
        yield {"graphs": name, "number": len(found), **means, "whose `auto` gave": shown}


def errors(graph: FactorGraph, seconds: float, share: float) -> tuple[dict[str, float], str] | None:
    """Mean absolute errors of marginals, and whose `auto` chose; None: it is not wide, or too wide.

    What fails has none.
    """
    needed = Exact().predict(graph).bytes
    if needed > 4e9:
        return None
    truth = infer(graph, memory_limit=8 * 10**9).marginals.flat
    allowed = {"seconds": seconds, "memory_limit": int(share * needed)}
    found, chosen = {}, ""
    for name in COMPARED:
        try:
            posterior = _backend(name, **allowed).infer(graph)
        except InferenceError:
            continue
        if name == "auto" and posterior.status is Status.EXACT:
            return None
        if name == "auto":
            chosen = posterior.stats["marginals_by"].partition("(")[0]
        found[name] = float(np.abs(posterior.marginals.flat - truth).mean())
    return found, chosen


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
    for (name, status, promise), (share, number) in sorted(covered(range(graphs)).items()):
        yield {
            "algorithm": name,
            "status": status,
            "statement": promise,
            "holds": share,
            "of": number,
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
    `ais` with ten times the time. Every answer has a process of its own: `MiB` is what its memory
    grew by, at most, once the network was read and the compiled code loaded.
    """
    for name in networks:
        path = DATA / "uai2014_wide" / "PR" / f"{name}.uai"
        if path.exists():
            log_z = read_log10_partition(Path(f"{path}.PR")) * np.log(10.0)
            about = f"{log_z:.3f}"
            vectors = read_marginals(DATA / "uai2014_wide" / "MAR" / f"{name}.uai.MAR")
            truth = np.concatenate(vectors)
        else:
            said = _alone(name, "ais", 10.0 * seconds, memory)
            about, truth = f"{said['log Z']:.2f} ± {said['error']}", said["marginals"]
        for algorithm in algorithms:
            said = _alone(path if path.exists() else name, algorithm, seconds, memory)
            off = np.abs(said.pop("marginals", truth) - truth)
            said.pop("error", None)
            yield {
                **{"network": name, "algorithm": algorithm, "reference": about},
                **{"mean error": float(off.mean()), "largest": float(off.max())},
                **said,
            }


def _alone(network: Path | str, name: str, seconds: float, memory: int) -> dict[str, Any]:
    child = Child()
    try:
        found: dict[str, Any] = child.call(_answered, network, name, seconds, memory)
    except ChildError as error:
        blank = dict.fromkeys(("lower", "log Z", "upper", "seconds", "of a processor", "MiB"))
        return {**blank, "status": error.reason}
    finally:
        child.close()
    return found


def _answered(
    _: dict[str, Any], network: Path | str, name: str, seconds: float, memory: int
) -> dict[str, Any]:
    """The answer of an algorithm to a network, and what it took."""
    backend = _backend(name, seconds=seconds, memory_limit=memory)
    graph = _read(network) if isinstance(network, Path) else _claims(network)
    _backend(name, seconds=1.0).infer(grid(4, 4, coupling=1.0, field=1.0, seed=0))
    Path("/proc/self/clear_refs").write_text("5")
    before = status_bytes("VmRSS") or 0
    start, worked = time.perf_counter(), time.process_time()
    posterior = backend.infer(graph)
    took, worked = time.perf_counter() - start, time.process_time() - worked
    kind, stats = posterior.log_z_kind, posterior.stats
    below = kind in (LogZKind.LOWER, LogZKind.ELBO, LogZKind.EXACT)
    above = kind in (LogZKind.UPPER, LogZKind.EXACT)
    return {
        "lower": posterior.log_z if below else stats.get("lower"),
        "log Z": posterior.log_z,
        "upper": posterior.log_z if above else stats.get("upper"),
        **{"seconds": took, "of a processor": worked},
        "MiB": ((status_bytes("VmHWM") or 0) - before) // 2**20,
        "status": str(posterior.status),
        "error": stats.get("log_z_standard_error"),
        "marginals": posterior.marginals.flat,
    }


def _backend(name: str, **settings: Any) -> Any:
    """A backend with those of the settings that it takes."""
    taken = {field.name for field in dataclasses.fields(get_backend(name))}
    return get_backend(name, **{key: settings[key] for key in settings.keys() & taken})


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
        reference = graph.log_potential(states)
        try:
            found = search_toulbar2(graph, seconds=seconds)
        except InferenceError as error:
            yield {"network": path.stem, "status": str(error)}
            continue
        yield {
            **{"network": path.stem, "variables": graph.n_variables, "reference": reference},
            **{"found": found.log_potential, "upper bound": found.upper},
            **{"seconds": found.stats["seconds"], "status": str(found.status)},
        }
