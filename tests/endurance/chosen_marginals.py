"""How good the marginals are that `auto` chooses, on graphs that it may not eliminate and we may.

    python -m tests.endurance.chosen_marginals [--seeds 100 104] [--seconds 6] [--share 0.05]

Random graphs of several families and the networks of the UAI 2014 competition that are narrow
enough. `auto` may use a share of the memory that elimination takes, so that it has to do without.
Beside its marginals stand those of the tightest upper bound that it found in the same run, of
`lbp`, `ijgp`, `trw` and `ais`, and the best of all of these.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.io.networks.uai import read_uai
from factormodels.io.networks.uai_results import read_evidence
from factormodels.synthetic import fr2, fr3, grid, random_graph
from inference import Status, anytime, get_backend, infer
from inference.backend import InferenceError
from inference.exact.backend import Exact

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "uai2014" / "PR"
COMPARED = ("upper bound", "auto", "lbp", "ijgp", "trw", "ais")


def pairs(coupling: float, field: float, seed: int, *, signed: bool = True) -> FactorGraph:
    """Return 120 binary variables and 200 random pairs of them, attracting or of both signs."""
    rng = np.random.default_rng(seed)
    every = [(i, j) for i in range(120) for j in range(i)]
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    factors: list[tuple[tuple[int, ...], NDArray[np.float64]]] = [
        ((v,), field * rng.normal(size=2)) for v in range(120)
    ]
    for pair in rng.choice(len(every), size=200, replace=False):
        sign = float(rng.choice([-1.0, 1.0])) if signed else 1.0
        factors.append((every[pair], 0.5 * sign * coupling * rng.uniform(0.3, 1.0) * signs))
    return FactorGraph.from_factors([2] * 120, factors, log=True)


def triples(zeros: float, seed: int) -> FactorGraph:
    """Return 36 variables of up to three states and 72 factors of two or three."""
    return random_graph(
        36, 72, min_arity=2, max_arity=3, max_cardinality=3, log_range=3.0,
        zero_probability=zeros, seed=seed,
    )  # fmt: skip


FAMILIES: dict[str, Callable[[int], FactorGraph]] = {
    "pairs, weak": lambda seed: pairs(0.8, 0.5, seed),
    "pairs, strong": lambda seed: pairs(4.0, 0.5, seed),
    "pairs, attracting": lambda seed: pairs(1.5, 0.1, seed, signed=False),
    "grid, weak": lambda seed: grid(14, 14, coupling=1.0, field=0.5, seed=seed),
    "grid, strong": lambda seed: grid(14, 14, coupling=4.0, field=0.5, seed=seed),
    "triples": lambda seed: triples(0.0, seed),
    "triples, zeros": lambda seed: triples(0.05, seed),
    "FR2": lambda seed: fr2(24, 4, density=0.15, seed=seed),
    "FR3": lambda seed: fr3(20, 3, density=0.08, context_density=0.03, seed=seed),
}


def main() -> None:
    """Print the mean absolute errors of marginals by family, and whose `auto` chose."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.chosen_marginals")
    parser.add_argument("--seeds", type=int, nargs=2, default=(100, 104))
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--share", type=float, default=0.05, help="of the memory of elimination")
    parser.add_argument("--only", nargs="*", help="names of families")
    given = parser.parse_args()
    _line("graphs", "number", *COMPARED, "best", "chosen")
    _line("---", *["---:"] * (len(COMPARED) + 2), "---")
    for name, graphs in _families(range(*given.seeds)):
        if given.only and name not in given.only:
            continue
        rows, chosen = [], Counter[str]()
        for graph in graphs:
            found = errors(graph, given.seconds, given.share)
            if found is not None:
                rows.append(found[0])
                chosen[found[1]] += 1
        if not rows:
            continue
        best = [min(row.values()) for row in rows]
        means = [[row[key] for row in rows if key in row] for key in COMPARED]
        shown = ", ".join(f"{who} {count}" for who, count in chosen.most_common())
        _line(name, len(rows), *map(_shown, means), f"{np.mean(best):.4f}", shown)


def errors(graph: FactorGraph, seconds: float, share: float) -> tuple[dict[str, float], str] | None:
    """Mean absolute errors of marginals, and whose `auto` chose; None: it is not wide, or too wide.

    What fails has none.
    """
    needed = Exact().predict(graph).bytes
    if needed > 4e9:
        return None
    limit = int(share * needed)
    truth = infer(graph, memory_limit=8 * 10**9).marginals.flat
    kept: list[anytime._Best] = []

    class Watched(anytime._Best):
        def __post_init__(self) -> None:
            kept.append(self)

    before = anytime._Best
    anytime._Best = Watched  # type: ignore[misc]
    try:
        posterior = infer(graph, "auto", seconds=seconds, memory_limit=limit)
    finally:
        anytime._Best = before  # type: ignore[misc]
    if posterior.status is Status.EXACT or not kept or kept[-1].posterior is None:
        return None
    found = {"auto": posterior.marginals.flat, "upper bound": kept[-1].posterior.marginals.flat}
    for name, settings in (
        ("lbp", {}),
        ("ijgp", {"memory_limit": limit, "seconds": seconds}),
        ("trw", {"seconds": seconds}),
        ("ais", {"memory_limit": limit, "seconds": seconds}),
    ):
        try:
            found[name] = get_backend(name, **settings).infer(graph).marginals.flat
        except InferenceError:
            continue
    by_name = {name: float(np.abs(values - truth).mean()) for name, values in found.items()}
    return by_name, posterior.stats["marginals_by"].partition("(")[0]


def _families(seeds: range) -> Iterator[tuple[str, Iterator[FactorGraph]]]:
    for name, draw in FAMILIES.items():
        yield name, map(draw, seeds)
    for name in ("Grids", "Promedus", "CSP"):
        yield f"UAI {name}", map(_read, sorted(DATA.glob(f"{name}_*.uai")))


def _read(path: Path) -> FactorGraph:
    evidence = Path(f"{path}.evid")
    graph = read_uai(path)
    if evidence.exists():
        graph = graph.with_evidence(read_evidence(evidence))
    return graph.absorb_evidence()


def _shown(values: list[float]) -> str:
    return f"{np.mean(values):.4f}" if values else "--"


def _line(*cells: object) -> None:
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
